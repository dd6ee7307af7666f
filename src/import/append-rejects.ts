import { PlantsError } from '../errors.js'
import type { ImportEntries } from './import-entries.js'
import type { Position } from './parse-checkpoint.js'
import { appendRejectedRecords, disownFile } from './rejects-file.js'

/**
 * Appends the rejected records of a chunk, which is committed, to their file. Then the checkpoint
 * is saved without them.
 *
 * @param header the header of the file, which precedes the first record
 * @returns the position without these records
 */
export async function appendRejects(
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
    // The file belongs to another program, and the checkpoint must say so. If that program is a
    // process that has resumed this import, saving fails, and its error says that.
    if (error instanceof PlantsError && error.kind === 'usage')
      await entries.saveCheckpoint({ ...position, rejects: disownFile(rejects) })
    throw error
  }
  await entries.saveCheckpoint(nextPosition)
  return nextPosition
}
