import { defineConfig } from 'vitest/config'
import { helpPages } from '../bin/build/help-pages.mjs'
import { hangLimitsMs } from './helpers/sandbox/hang.mjs'

const testTimeout = Math.min(
  hangLimitsMs.test * Number(process.env['PLANTS_SOAK'] || 1),
  2 ** 31 - 1,
)
// The second starts nothing before a test asks for it.
const globalSetup = ['./helpers/sandbox/programs.ts', './helpers/postgres/server.ts']
const setupFiles = './helpers/sandbox/setup.ts'

/** The folders that `npm test` runs. Each folder begins with a page that says what it is for. */
const folders = ['unit', 'contract', 'service', 'transcripts', 'commands', 'process', 'documents']
const listTests = (folder: string) => `${folder}/**/*.test.ts`

delete process.env['PLANTS_STORE'] // workers inherit it

export default defineConfig({
  cacheDir: '../node_modules/.vite',
  plugins: [helpPages],
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
    // What a developer's own shell or CI says about stores, colours and prompts must not reach a test.
    env: {
      CI: '',
      PLANTS_DATA_DIR: '/nonexistent',
      NO_COLOR: '',
      NODE_EXTRA_CA_CERTS: '',
    },
    projects: [
      {
        extends: true,
        test: { name: 'architecture', include: ['architecture.test.ts'], testTimeout },
      },
      // One project for all folders, because each project loads the program into workers of its own.
      {
        extends: true,
        test: {
          name: 'suite',
          include: folders.map(listTests),
          testTimeout,
          globalSetup,
          setupFiles,
        },
      },
      ...[...folders, 'nightly'].map((name) => ({
        extends: true as const,
        test: { name, include: [listTests(name)], testTimeout, globalSetup, setupFiles },
      })),
    ],
  },
})
