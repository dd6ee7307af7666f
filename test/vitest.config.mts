import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

const testTimeout = 60_000 * Number(process.env['PLANTS_SOAK'] || 1)
// Starts nothing before a test asks for it.
const globalSetup = './helpers/postgres/setup.ts'
const releaseTests = 'release/**/*.test.ts'
// Where .ci/run collects what passed, failed and was skipped, of each project and runtime.
const reports = process.env['PLANTS_TEST_REPORTS']

export default defineConfig({
  cacheDir: '../node_modules/.vite',
  test: {
    root: import.meta.dirname,
    // Most tests wait for processes of their own, or for a time-out, so a machine with two cores has room for four.
    maxWorkers: 4,
    // A loaded machine is slow, not broken: what is waited for has as long as a test has.
    expect: { poll: { timeout: 30_000 } },
    ...(reports && { reporters: ['default', ['json', { outputFile: join(reports, `${randomUUID()}.json`) }]] }),
    // What a developer's own shell says about stores and colours must not reach a test.
    env: { PLANTS_STORE: '', PLANTS_DATA_DIR: '/nonexistent', NO_COLOR: '', NODE_EXTRA_CA_CERTS: '' },
    projects: [
      { extends: true, test: { name: 'architecture', include: ['architecture.test.ts'] } },
      {
        extends: true,
        test: { name: 'suite', include: ['**/*.test.ts'], exclude: ['architecture.test.ts', releaseTests], testTimeout, globalSetup },
      },
      // A part of the suite: what starts no process and opens no socket.
      {
        extends: true,
        test: {
          name: 'unit',
          include: testsWithout(/'(node:child_process|node:https?|node:net|node:tls|execa|@lydell\/node-pty)'/),
          testTimeout,
        },
      },
      // Of what is run against another program, with PLANTS_BIN, only the tests that start it say anything.
      { extends: true, test: { name: 'black-box', include: testsThatReach('helpers/process.ts'), testTimeout, globalSetup } },
      // What is shipped, and the scripts of the project. They need the package registry, and what npm run build:binary makes.
      { extends: true, test: { name: 'release', include: [releaseTests], testTimeout } },
    ],
  },
})

/** The tests of the suite that import a helper, over however many files. */
function testsThatReach(helper: string): string[] {
  return suite().filter((name) => reachedFrom(join(import.meta.dirname, name)).has(join(import.meta.dirname, helper)))
}

/** The tests of the suite of which no file that they reach matches a pattern. */
function testsWithout(pattern: RegExp): string[] {
  const isFree = (file: string) => !pattern.test(readFileSync(file, 'utf8'))
  return suite().filter((name) => [...reachedFrom(join(import.meta.dirname, name))].every(isFree))
}

function suite(): string[] {
  const names = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
  return names.filter((name) => name.endsWith('.test.ts') && name !== 'architecture.test.ts' && !name.startsWith('release/'))
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
