import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { hangLimitsMs } from './helpers/sandbox/hang.mjs'

const testTimeout = Math.min(
  hangLimitsMs.test * Number(process.env['PLANTS_SOAK'] || 1),
  2 ** 31 - 1,
)
// Starts nothing before a test asks for it.
const globalSetup = './helpers/postgres/server.ts'
const setupFiles = './helpers/sandbox/setup.ts'
// Where .ci/run collects what passed, failed and was skipped, of each project and runtime.
const reports = process.env['PLANTS_TEST_REPORTS']

delete process.env['PLANTS_STORE'] // workers inherit it

export default defineConfig({
  cacheDir: '../node_modules/.vite',
  test: {
    root: import.meta.dirname,
    // Most tests wait for processes of their own, or for a time-out, so a machine with two cores has room for six.
    maxWorkers: 6,
    // No module of the program keeps anything of a run, so one worker need not load them again for each file: a seventh
    // of the time.
    isolate: false,
    hookTimeout: testTimeout,
    teardownTimeout: hangLimitsMs.wait,
    expect: { poll: { timeout: hangLimitsMs.wait }, requireAssertions: true },
    // A title shows a column of its table in full: 40 characters, the default, cut words off.
    chaiConfig: { truncateThreshold: 200 },
    ...(reports && {
      reporters: ['default', ['json', { outputFile: join(reports, `${randomUUID()}.json`) }]],
    }),
    // What a developer's own shell or CI says about stores, colours and prompts must not reach a test.
    env: {
      CI: '',
      PLANTS_DATA_DIR: '/nonexistent',
      NO_COLOR: '',
      NODE_EXTRA_CA_CERTS: '',
    },
    projects: [
      { extends: true, test: { name: 'architecture', include: ['architecture.test.ts'] } },
      {
        extends: true,
        test: {
          name: 'suite',
          include: [
            'unit/**/*.test.ts',
            'commands/**/*.test.ts',
            'transcripts/*.test.ts',
            'conformance/**/*.test.ts',
            'process/**/*.test.ts',
          ],
          testTimeout,
          globalSetup,
          setupFiles,
        },
      },
      // A part of the suite: the program in this process.
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['unit/**/*.test.ts', 'commands/**/*.test.ts', 'transcripts/*.test.ts'],
          testTimeout,
          setupFiles,
        },
      },
      // Of what is run against another program, with PLANTS_BIN, only the tests that start it say anything.
      {
        extends: true,
        test: {
          name: 'black-box',
          include: ['process/**/*.test.ts', 'conformance/service/**/*.test.ts'],
          exclude: ['process/cli/loads.test.ts'], // which looks into the chunks of the bundle
          testTimeout,
          globalSetup,
        },
      },
      // What is shipped, and the scripts of the project. They need the package registry, and what npm run build:binary
      // makes.
      { extends: true, test: { name: 'release', include: ['release/**/*.test.ts'], testTimeout } },
    ],
  },
})
