import { peers } from '../peers.mjs'
import { printMemory } from '../report.mjs'
import { underLoad } from './turn.mjs'

/** What a node needs over a million creates, which must not grow with them. */
export async function measureMemory(bench) {
  const database = await bench.server.database({ hasTables: true })
  printMemory(
    await underLoad(peers.serve, { store: database.url, countPlants: database.count }, bench, { count: 1_000_000 }),
  )
  await database.drop()
}
