import { PlantsError } from '../errors.js'
import type { CheckpointRows } from './checkpoint-rows.js'
import type { Position } from './parse-checkpoint.js'
import { appendRows, disownFile } from './rejects-file.js'

/**
 * Appends the rejected records of a chunk, which is committed, to their file. Then the checkpoint
 * is saved without them.
 *
 * @param header the header of the file, which precedes the first rows
 * @returns the position without these rows
 */
export async function appendRejects(
  checkpointRows: CheckpointRows,
  position: Position,
  header: string,
): Promise<Position> {
  const { rejects } = position
  if (!rejects?.rows) return position
  const appended = { ...position }
  try {
    appended.rejects = appendRows(rejects, header, { isResumed: false })
  } catch (error) {
    // The file belongs to another program, and the checkpoint must say so. If that program is a
    // process that has resumed this import, saving fails, and its error says that.
    if (error instanceof PlantsError && error.kind === 'usage')
      await checkpointRows.saveCheckpoint({ ...position, rejects: disownFile(rejects) })
    throw error
  }
  await checkpointRows.saveCheckpoint(appended)
  return appended
}
