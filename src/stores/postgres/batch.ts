import { equalPlants, type NewPlant } from '../../plant/plant.js'
import type { PlantsError } from '../../platform/errors.js'
import { idExists, keyConflict } from '../conflict.js'
import type { OpenOptions } from '../store.js'
import type { Client } from './client.js'
import { isRefusal } from './errors.js'
import type { Account } from './login.js'
import { checkServer } from './server-state.js'
import { barrier, type Entry, findStatement, insertStatement, newWriteId, pinned, type Row, toPlant } from './sql.js'

/** A plant that is to be created, with somebody who waits for the answer. */
export interface Creation extends Entry {
  /** those of writes that may have stored it */
  writeIds: bigint[]
  /** what came of it: nothing more is done about it then */
  answer: 'created' | PlantsError | undefined
}

interface Sending {
  client: Client
  account: Account
  options: Pick<OpenOptions, 'allowAsyncCommit'>
}

/**
 * Creates plants with one statement, and notes the answer of each. One without an answer was not stored: what stood in its way has gone
 * meanwhile.
 *
 * @param creations in the order of their ids, each id and each key once
 * @returns how many were created
 * @throws when the server refused it, so that nothing was stored of those without an answer; or when the connection was lost: then they
 * keep the id of this write
 */
export async function sendBatch(creations: Creation[], sending: Sending): Promise<number> {
  const { client, options } = sending
  const writeId = newWriteId()
  for (const { writeIds } of creations) writeIds.push(writeId)
  try {
    const created = await client.ask(insertStatement(creations, writeId, options.allowAsyncCommit))
    const ids = new Set(created.map(([id]) => id))
    for (const creation of creations) {
      if (ids.has(String(creation.plant.id))) creation.answer = 'created'
      else creation.writeIds.pop()
    }
    await settle(creations, sending)
    return ids.size
  } catch (error) {
    if (isRefusal(error)) for (const { writeIds } of creations) if (writeIds.at(-1) === writeId) writeIds.pop()
    throw error
  }
}

/** Finds out why plants were not created. */
async function settle(creations: Creation[], { client, account, options }: Sending): Promise<void> {
  const unclear = creations.filter(({ answer }) => answer === undefined)
  if (unclear.length === 0) return
  const verdicts = verdictsOn(unclear, await client.ask(findStatement(unclear)))
  // It is there, but it may be there before it is on the standbys: what is written behind it waits for both.
  if ([...verdicts.values()].includes('created')) await client.ask(pinned(barrier))
  for (const [creation, verdict] of verdicts) creation.answer = verdict
  if (verdicts.size < unclear.length) await checkServer(client, account.address, options)
}

/** By what stands in the way of each plant: itself, or another one; none where nothing does. */
export function verdictsOn(creations: Creation[], rows: Row[]): Map<Creation, 'created' | PlantsError> {
  const byKey = new Map(rows.filter(([which]) => which === 'key').map((row) => [row[3], row]))
  const byId = new Map(rows.filter(([which]) => which === 'id').map((row) => [row[1], row]))
  return new Map(
    creations.flatMap((creation): [Creation, 'created' | PlantsError][] => {
      const { plant, key, writeIds } = creation
      const first = key === undefined ? undefined : byKey.get(key)
      const other = byId.get(String(plant.id))
      if (first) return [[creation, equalPlants(plantIn(first), plant) ? 'created' : keyConflict(plantIn(first).id)]]
      if (!other) return []
      const isOurs = key === undefined && writeIds.some((writeId) => String(writeId) === other[2])
      return [[creation, isOurs ? 'created' : idExists(plant.id)]]
    }),
  )
}

function plantIn([, id = null, , , ...texts]: Row): NewPlant {
  return toPlant([id, ...texts])
}
