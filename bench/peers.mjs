import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { fetchPackages } from './packages.mjs'

const scripts = join(import.meta.dirname, 'peers')

/** Prepares what people would use instead of `plants serve`, with its database in the folder. */
export function prepareFastify(folder, env) {
  const addon = fetchPackages(
    'peers/fastify',
    ['fastify@5.12.8', 'better-sqlite3@12.11.1'],
    'better-sqlite3/build/Release/better_sqlite3.node',
    { compiled: 'better-sqlite3' },
  )
  const database = join(folder, 'peer.db')
  const argv = [process.execPath, join(scripts, 'fastify.mjs'), addon, database]
  return {
    title: 'Fastify',
    argv,
    files: [database],
    buildFillCommand: (list) => [...argv, 'fill', list],
    countPlants: () => Number(execFileSync(argv[0], [...argv.slice(1), 'count'], { env })),
  }
}
