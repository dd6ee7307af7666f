#!/usr/bin/env node
// Starts the program: with a code cache in Node.js, and without one in Bun, which has no V8.
//
// An old Node.js must be able to parse and run this file, to say which version is needed. So it
// uses neither `?.` nor `node:fs`, which Node.js 12 does not know.
const { existsSync } = require('fs')
const { isAbsolute, join } = require('path')

const dist = join(__dirname, '../dist')
const { env, versions } = process
const [major, minor] = versions.node.split('.').map(Number)

if (major < 20 || (major === 20 && minor < 19))
  fail(`plants needs Node.js 20.19 or newer; this is ${versions.node}`)
else if (!existsSync(join(dist, 'main.js')))
  fail('plants is not built\n  Build it with: npm run build')
else if ('bun' in versions) require(join(dist, 'main.js')).start()
else void require('./code-cache.js').startFrom(dist, findCacheFolder())

// The exit code is that of an internal error: no command line can help.
function fail(message) {
  process.stderr.write(`${message}\n`)
  process.exitCode = 70
}

// Without a folder for caches, or where NODE_DISABLE_COMPILE_CACHE is set, nothing is cached.
function findCacheFolder() {
  // On Windows, the folder `plants` also has the store, and a cache may be deleted.
  const [base, name] =
    process.platform === 'win32'
      ? [env.LOCALAPPDATA || '', 'plants/Cache']
      : [env.XDG_CACHE_HOME || (env.HOME && join(env.HOME, '.cache')) || '', 'plants']
  return isAbsolute(base) && !env.NODE_DISABLE_COMPILE_CACHE ? join(base, name) : undefined
}
