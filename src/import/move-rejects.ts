import { PlantsError } from '../errors.js'
import type { ImportEntries } from './import-entries.js'
import type { Position } from './parse-checkpoint.js'
import { appendRejectedRecords, disownFile } from './rejects-file.js'

/**
 * Appends the rejected records of a committed chunk to the rejects file, and then saves the
 * checkpoint without these records.
 *
 * @param header the header of the file, which is written before the first record
 * @returns the position without these records
 */
export async function moveRejectsToFile(
  entries: ImportEntries,
  position: Position,
  header: string,
): Promise<Position> {
  const { rejects } = position
  if (!rejects?.rows) return position
  const nextPosition = { ...position }
  try {
    nextPosition.rejects = appendRejectedRecords(rejects, header)
  } catch (error) {
    // The file belongs to another program, and the checkpoint must say so. The other program may be
    // another process with this import. Then saving the checkpoint fails with the right error.
    if (error instanceof PlantsError && error.kind === 'usage')
      await entries.saveCheckpoint({ ...position, rejects: disownFile(rejects) })
    throw error
  }
  await entries.saveCheckpoint(nextPosition)
  return nextPosition
}
