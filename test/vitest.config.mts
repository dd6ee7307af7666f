import { defineConfig } from 'vitest/config'

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
      {
        extends: true,
        test: {
          name: 'suite',
          include: ['**/*.test.ts'],
          exclude: ['architecture.test.ts'],
          testTimeout: 60_000 * Number(process.env['PLANTS_SOAK'] || 1),
        },
      },
    ],
  },
})
