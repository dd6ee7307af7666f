import { PlantsError } from '../../errors.js'
import type { NewPlant } from '../../plant.js'
import type { CreateOptions, Foresight, OpenOptions, PostgresAddress } from '../store.js'
import { usingOnce } from './asking.js'
import { type Creation, verdictsOn } from './batch.js'
import { inspectPostgres } from './inspect.js'
import { identify } from './schema.js'
import { findStatement } from './statements.js'

/**
 * Finds out what a create would do, and changes nothing.
 *
 * @throws {PlantsError} what it would throw, as far as that can be told
 */
export async function foresee(address: PostgresAddress, plant: NewPlant, create: CreateOptions, options: OpenOptions): Promise<Foresight> {
  const { isWritable } = await inspectPostgres(address, options)
  if (!isWritable)
    throw new PlantsError('unavailable', `${address.user} can create nothing in ${address.name}`, { hint: 'See: plants doctor' })
  return usingOnce(address, options, async (connection) => {
    if ((await identify(connection, address)) === 0) return { exists: false, creates: true }
    const creation: Creation = { plant, key: create.idempotencyKey, attempts: [], answer: undefined }
    const verdict = verdictsOn([creation], await connection.query(findStatement([creation]))).get(creation)
    if (verdict instanceof PlantsError) throw verdict
    return { exists: true, creates: verdict === undefined }
  })
}
