import { equalPlants, type NewPlant } from '../../plant/plant.js'
import type { PlantsError } from '../../platform/errors.js'
import { idExists, keyConflict } from '../common/conflict.js'
import type { OpenOptions } from '../common/store.js'
import type { Client } from './client.js'
import { isServerError } from './errors.js'
import type { Account } from './login.js'
import { checkServer } from './server-state.js'
import { barrier, type Entry, findStatement, insertStatement, newWriteId, pinned, type Row, toPlant } from './sql.js'

/** A plant to create, whose caller waits for the answer. */
export interface Creation extends Entry {
  /** the ids of the writes that may have stored it */
  writeIds: bigint[]
  /** the final result; undefined until then */
  answer: 'created' | PlantsError | undefined
}

interface Sending {
  client: Client
  account: Account
  options: Pick<OpenOptions, 'allowAsyncCommit'>
}

/**
 * Creates plants with one statement, and sets the answer of each. A plant without an answer was not stored, because of a conflicting plant
 * that has been deleted meanwhile.
 *
 * @param creations in ascending order of id, each id and each key once
 * @returns how many were created
 * @throws when the server reported an error: then plants without an answer were not stored; or when the connection was lost: then they
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
    if (isServerError(error)) for (const { writeIds } of creations) if (writeIds.at(-1) === writeId) writeIds.pop()
    throw error
  }
}

/** Determines why plants were not created. */
async function settle(creations: Creation[], { client, account, options }: Sending): Promise<void> {
  const unclear = creations.filter(({ answer }) => answer === undefined)
  if (unclear.length === 0) return
  const outcomes = outcomesOf(unclear, await client.ask(findStatement(unclear)))
  // The plant is visible, but possibly not on the standbys yet. A later commit waits until it is.
  if ([...outcomes.values()].includes('created')) await client.ask(pinned(barrier))
  for (const [creation, outcome] of outcomes) creation.answer = outcome
  if (outcomes.size < unclear.length) await checkServer(client, account.address, options)
}

/** The result of each plant that conflicts with a row: `created` if the row is the plant itself, else the error. */
export function outcomesOf(creations: Creation[], rows: Row[]): Map<Creation, 'created' | PlantsError> {
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
