import { createHash, randomUUID } from 'node:crypto'
import { PlantsError } from '../errors.js'
import type { ImportPlan } from './inputs.js'
import type { Checkpoint, Position } from './parse-checkpoint.js'

/** The checkpoint of an import is not valid. For example, another program has changed it. */
export class InvalidCheckpointError extends PlantsError {
  constructor(message: string, plan: ImportPlan) {
    // With `--restart`, plants with generated ids would be stored again under other ids. With
    // `--match name`, the stored plants are found by their names.
    const firstHint =
      plan.idFrom === undefined
        ? 'Start over with --restart'
        : 'To import only plants with new names, add --match name'
    // With one of these options, `runImport` deletes the checkpoint, and the next run begins again.
    const hint = plan.restart || findsStoredByName(plan) ? 'Run the same command again' : firstHint
    super('accessDenied', message, { hint })
  }
}

/**
 * Whether an import finds the plants with generated ids that it has stored. It finds them by their
 * names, so it may begin again, and no plant gets a second id.
 */
export function findsStoredByName({ idFrom, match }: ImportPlan): boolean {
  return idFrom !== undefined && match !== undefined
}

/** Creates the checkpoint of a new import. */
export function createCheckpoint(
  properties: Pick<Checkpoint, 'source' | 'firstId' | 'restart' | 'answers'>,
): Checkpoint {
  const counts = { created: 0, updated: 0, skipped: 0, rejected: {} }
  const position = { input: 0, records: 0, counts, nextId: properties.firstId }
  return { version: 1, importId: randomUUID(), ...properties, position }
}

/**
 * Returns the position after further records, and changes nothing.
 *
 * @param records how many records follow the position
 * @param rejectedRows the rows of these records for the rejects file
 */
export function movePosition(position: Position, records: number, rejectedRows: string): Position {
  const rejects = position.rejects && { ...position.rejects, rows: rejectedRows }
  return { ...position, records: position.records + records, rejects }
}

/**
 * Builds the id of an entry in the table `imports` from strings, such as the paths of the files.
 */
export function buildEntryId(...strings: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(strings)).digest('hex').slice(0, 32)
}
