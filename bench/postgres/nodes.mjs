import { peers } from '../peers.mjs'
import { printTable } from './table.mjs'
import { underLoad } from './turn.mjs'

const counts = [1, 2, 4]

const columns = [
  { head: 'creates/s', of: ({ rate }) => rate, digits: 0 },
  { head: 'x one', of: ({ rate }, all) => rate / all[1].rate },
  { head: 'p50 ms', of: ({ p50 }) => p50 },
  { head: 'p99 ms', of: ({ p99 }) => p99 },
  { head: "nodes' CPU s", of: ({ cpu }) => cpu / 10 },
  { head: "server's CPU s", of: ({ databaseCpu }) => databaseCpu / 10 },
  { head: 'load %', of: ({ load }) => load * 100, digits: 0 },
  { head: 'others %', of: ({ others }) => others * 100, digits: 0 },
]

/** Several nodes on one database. The seconds of the processor are for 100,000 creates. */
export async function measureNodes(bench) {
  const entries = Object.fromEntries(
    counts.map((count) => [count, { title: count === 1 ? '1 node' : `${count} nodes`, turns: [] }]),
  )
  for (let round = 0; round < bench.rounds; round += 1) {
    for (const count of counts) entries[count].turns.push(await take(count, bench))
  }
  printTable('postgres nodes', 'Nodes on one machine, 64 connections in all; CPU for 100,000 creates', columns, entries)
}

async function take(count, bench) {
  const database = await bench.server.database({ hasTables: true })
  const found = await underLoad(peers.serve, { store: database.url, count, countPlants: database.count }, bench)
  await database.drop()
  return found
}
