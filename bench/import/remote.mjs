import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { peers } from '../peers.mjs'
import { start } from '../server.mjs'
import { clients } from './clients.mjs'
import { installed } from './programs.mjs'
import { writeRows } from './rows.mjs'
import { countPlants, removeStore } from './store.mjs'
import { printRates, thousands } from './table.mjs'

const mostRows = 200_000

/**
 * The same rows to a service on loopback, from each client that is installed; every turn has a service and a store of
 * its own.
 */
export async function measureRemote(bench) {
  const present = installed(Object.values(clients), bench.env)
  const input = { rows: join(bench.folder, 'remote'), count: Math.min(bench.rows, mostRows) }
  await writeRows(`${input.rows}.ndjson`, { count: input.count, order: 'random', format: 'ndjson' })
  const entries = present.map(({ title, bar }) => ({ title, bar, rates: [] }))
  for (let round = 0; round < bench.rounds; round += 1) {
    for (const [index, client] of present.entries()) entries[index].rates.push(await take(client, input, bench))
  }
  printRates('import remote', `${thousands(input.count)} plants, ids at random, to plants serve on loopback`, entries)
}

/** Creates a second. */
async function take(client, input, bench) {
  const token = randomBytes(16).toString('hex')
  const env = { ...bench.env, PLANTS_SERVE_TOKEN: token, PLANTS_TOKEN: token, NO_PROXY: '*', no_proxy: '*' }
  const { url, stop } = await start(peers.serve, { ...bench, env })
  const { rate, least, most } = await client.ask({ ...bench, url, input, token, env })
  await stop()
  const found = countPlants(bench.store)
  if (found < least || found > most) throw new Error(`${client.title}: there are ${found} plants instead of ${least}`)
  removeStore(bench.store)
  return rate
}
