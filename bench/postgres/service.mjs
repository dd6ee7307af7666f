import { join } from 'node:path'
import { run } from '../import/run.mjs'
import { countPlants, removeStore } from '../import/store.mjs'
import { peers } from '../peers.mjs'
import { printTable } from './table.mjs'
import { underLoad } from './turn.mjs'

const script = (name) => join(import.meta.dirname, name)

/** A service as most are: a statement for each request, prepared, over a pool. It checks nothing of what it is sent. */
const usual = { title: 'node:http, an INSERT a request', args: ({ store }) => [script('insert-service.mjs'), store] }

const contenders = {
  file: { title: 'plants serve, a file', take: takeFile },
  database: { title: 'plants serve, the database', take: (bench) => takeDatabase(peers.serve, bench) },
  usual: { title: `${usual.title}, 10 connections`, take: (bench) => takeDatabase(usual, bench) },
  ceiling: { title: 'no service: 1000 rows a statement, 4 connections', take: takeCeiling },
}

const columns = [
  { head: 'creates/s', of: ({ rate }) => rate, digits: 0 },
  { head: 'x a file', of: ({ rate }, { file }) => rate / file.rate },
  { head: 'p50 ms', of: ({ p50 }) => p50 },
  { head: 'p99 ms', of: ({ p99 }) => p99 },
  { head: 'CPU us', of: ({ cpu }) => cpu, digits: 1 },
  { head: "server's", of: ({ databaseCpu }) => databaseCpu, digits: 1 },
  { head: 'load %', of: ({ load }) => load * 100, digits: 0 },
  { head: 'others %', of: ({ others }) => others * 100, digits: 0 },
]

const bars = [
  { what: 'plants serve, the database / a file', least: 0.6, of: ({ database, file }) => database.rate / file.rate },
  {
    what: 'plants serve, the database / an INSERT a request',
    least: 1,
    of: ({ database, usual: other }) => database.rate / other.rate,
  },
]

/**
 * A service on the database beside one on a file, one that sends a statement a request, and what the protocol can do.
 */
export async function measureService(bench) {
  const entries = Object.fromEntries(
    Object.entries(contenders).map(([name, { title }]) => [name, { title, turns: [] }]),
  )
  for (let round = 0; round < bench.rounds; round += 1) {
    for (const [name, { take }] of Object.entries(contenders)) entries[name].turns.push(await take(bench))
  }
  printTable('postgres service', `Creates over 64 connections, ${bench.seconds} s a turn`, columns, entries, bars)
}

async function takeFile(bench) {
  const store = join(bench.folder, 'serve.db')
  const found = await underLoad(peers.serve, { store, countPlants: () => countPlants(store) }, bench)
  removeStore(store)
  return found
}

async function takeDatabase(peer, bench) {
  const database = await bench.server.database({ hasTables: true })
  const found = await underLoad(peer, { store: database.url, countPlants: database.count }, bench)
  await database.drop()
  return found
}

async function takeCeiling({ server, seconds, env }) {
  const database = await server.database({ hasTables: true })
  const argv = [process.execPath, script('ceiling.mjs'), database.url, String(seconds), String(server.pid)]
  const { out } = await run(argv, { env, keepsOut: true })
  await database.drop()
  return JSON.parse(out)
}
