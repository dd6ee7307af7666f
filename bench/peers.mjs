// What people would use instead, from the registry of npm: servers, and a loader.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fetchPackages } from './packages.mjs'
import { addressOnceListening, freePort } from './server.mjs'

const scripts = join(import.meta.dirname, 'peers')

/**
 * The servers, each with `title`, `prepare`, which makes its files and returns the options of a start, `files`, and
 * `countPlants`, if each plant is stored before it is acknowledged.
 *
 * @param folder where their files are
 * @param description a file with the OpenAPI description of the service
 */
export function peerServers(folder, description, env) {
  const addon = fetchPackages(
    'peers/fastify',
    ['fastify@5.12.8', 'better-sqlite3@12.11.1'],
    'better-sqlite3/build/Release/better_sqlite3.node',
    { compiled: 'better-sqlite3' },
  )
  const jsonServer = fetchPackages(
    'peers/json-server',
    ['json-server@0.17.4'],
    'json-server/lib/cli/bin.js',
  )
  const prism = fetchPackages(
    'peers/prism',
    ['@stoplight/prism-cli@5.14.2'],
    '@stoplight/prism-cli/dist/index.js',
  )
  const [database, json] = [join(folder, 'peer.db'), join(folder, 'peer.json')]
  const fastify = [process.execPath, join(scripts, 'fastify.mjs'), addon, database]
  return [
    {
      title: 'Fastify, better-sqlite3',
      prepare: async () => ({ argv: fastify }),
      files: [database],
      countPlants: () => Number(execFileSync(fastify[0], [...fastify.slice(1), 'count'], { env })),
    },
    {
      title: 'json-server (no sync)',
      prepare: async () => {
        writeFileSync(json, '{"plants":[]}')
        return listening([jsonServer, json, '--quiet'])
      },
      files: [json], // in which some of those are missing that it acknowledged before its end
    },
    {
      title: 'Prism (stores nothing)',
      prepare: () => listening([prism, 'mock', description, '--verboseLevel', 'silent']),
      files: [],
    },
  ]
}

async function listening(command) {
  const port = await freePort()
  const argv = [process.execPath, ...command, '--port', port]
  return { argv, address: addressOnceListening(port) }
}

/** DuckDB's package as a loader of a CSV, with `argv` and `count` for the path of a database. */
export function duckdbLoader(csv, env) {
  const base = fetchPackages(
    'peers/duckdb',
    ['@duckdb/node-api@1.5.6-r.1'],
    '@duckdb/node-api/package.json',
  )
  const argv = (file) => [process.execPath, join(scripts, 'duckdb.mjs'), base, file, csv]
  return {
    argv,
    count: (file) => execFileSync(process.execPath, [...argv(file).slice(1), 'count'], { env }),
  }
}
