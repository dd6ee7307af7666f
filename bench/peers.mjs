import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { fetchPackages } from './packages.mjs'

const scripts = join(import.meta.dirname, 'peers')

/** What people would use instead, with its `title`, `argv`, `files` in the folder, and `countPlants`. */
export function fastifyServer(folder, env) {
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
    countPlants: () => Number(execFileSync(argv[0], [...argv.slice(1), 'count'], { env })),
  }
}
