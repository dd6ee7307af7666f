import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

const testTimeout = 60_000 * Number(process.env['PLANTS_SOAK'] || 1)
// Starts nothing before a test asks for it.
const globalSetup = './helpers/postgres/setup.ts'

export default defineConfig({
  cacheDir: '../node_modules/.vite',
  test: {
    root: import.meta.dirname,
    // Most tests wait for processes of their own, or for a time-out, so a machine with two cores has room for three.
    maxWorkers: 3,
    // A loaded machine is slow, not broken: what is waited for has as long as a test has.
    expect: { poll: { timeout: 30_000 } },
    // What a developer's own shell says about stores and colours must not reach a test.
    env: { PLANTS_STORE: '', PLANTS_DATA_DIR: '/nonexistent', NO_COLOR: '', NODE_EXTRA_CA_CERTS: '' },
    projects: [
      { extends: true, test: { name: 'architecture', include: ['architecture.test.ts'] } },
      { extends: true, test: { name: 'suite', include: ['**/*.test.ts'], exclude: ['architecture.test.ts'], testTimeout, globalSetup } },
      // Of what is run against another program, with PLANTS_BIN, only the tests that start it say anything.
      { extends: true, test: { name: 'black-box', include: blackBoxTests(), testTimeout, globalSetup } },
    ],
  },
})

/** The tests that start the program as a process: those that import, over however many others, the helper that does. */
function blackBoxTests(): string[] {
  const starter = join(import.meta.dirname, 'helpers/process.ts')
  const names = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
  return names.filter((name) => name.endsWith('.test.ts') && reachedFrom(join(import.meta.dirname, name)).has(starter))
}

function reachedFrom(file: string): Set<string> {
  const reached = new Set([file])
  for (const each of reached) for (const imported of testsImports(each)) reached.add(imported)
  return reached
}

/** The files of this folder that a file imports, for more than their types. */
function testsImports(file: string): string[] {
  const imports = [...readFileSync(file, 'utf8').matchAll(/^import (?!type )[^']*'(\.[^']+)\.js'/gm)]
  return imports.map(([, path]) => join(file, '..', `${path}.ts`)).filter((path) => path.startsWith(import.meta.dirname))
}
