import type { NewPlant } from '../../plant/plant.js'
import { PlantsError } from '../../platform/errors.js'
import type { CreateOptions, Foresight, OpenOptions, PostgresAddress } from '../store.js'
import { usingOnce } from './asking.js'
import { type Creation, verdictsOn } from './batch.js'
import { rightsOver } from './inspect.js'
import { identify } from './schema.js'
import { mayNotCreate } from './server-state.js'
import { findStatement } from './statements.js'

/**
 * Finds out what a create would do, and changes nothing.
 *
 * @throws {PlantsError} what it would throw, as far as that can be told
 */
export function foresee(address: PostgresAddress, plant: NewPlant, create: CreateOptions, options: OpenOptions): Promise<Foresight> {
  return usingOnce(address, options, async (connection) => {
    const { isWritable } = await rightsOver(connection)
    if (!isWritable) throw mayNotCreate(address)
    if ((await identify(connection, address)) === 0) return { exists: false, creates: true }
    const creation: Creation = { plant, key: create.idempotencyKey, attempts: [], answer: undefined }
    const verdict = verdictsOn([creation], await connection.query(findStatement([creation]))).get(creation)
    if (verdict instanceof PlantsError) throw verdict
    return { exists: true, creates: verdict === undefined }
  })
}
