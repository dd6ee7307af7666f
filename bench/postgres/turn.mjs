import { randomBytes } from 'node:crypto'
import { end } from '../place.mjs'
import { load, start, tailOf } from '../server.mjs'

/**
 * Puts nodes of a service under load, each from its start to its end, and checks that what they have acknowledged is
 * there.
 *
 * @param count how many nodes, which share the store
 * @returns what `load` has found
 */
export async function underLoad(
  peer,
  { store, count = 1, countPlants },
  { folder, env, server, seconds },
  orders = {},
) {
  const nodes = []
  for (let index = 0; index < count; index += 1) nodes.push(await start(peer, { folder, store, env }))
  const servers = nodes.map(({ url, pid }) => ({ url, pid }))
  const base = String((1n << 51n) + BigInt(`0x${randomBytes(6).toString('hex')}`))
  const asked = { servers, database: server.pid, status: 200, base, seconds, warmUp: Math.min(2, seconds), ...orders }
  const found = await load(asked, env)
  if (found.failure) end(1, `${peer.title}: ${found.failure}\n${tailOf(folder)}`)
  await Promise.all(nodes.map(({ stop }) => stop()))
  const stored = await countPlants()
  if (stored !== found.acknowledged)
    end(1, `${peer.title}: ${found.acknowledged} plants were acknowledged, ${stored} are stored`)
  return found
}
