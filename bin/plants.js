#!/usr/bin/env node
try {
  require('../dist/main.js').start()
} catch (error) {
  if (error.code !== 'MODULE_NOT_FOUND') throw error
  process.stderr.write('plants is not built\n  Build it with: npm run build\n')
  process.exitCode = 70
}
