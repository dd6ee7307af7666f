import { createHash, randomUUID } from 'node:crypto'
import { PlantsError } from '../errors.js'
import type { ImportPlan } from './inputs.js'
import type { Checkpoint, Position } from './parse-checkpoint.js'

/** The error for a checkpoint that no import has saved like this, for example a damaged one. */
export class InvalidCheckpointError extends PlantsError {
  constructor(message: string, plan: ImportPlan) {
    // With `--restart`, records without ids would be stored again under other ids. With `--match
    // name`, those that are stored are found by their names.
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
 * Whether an import that generates ids may begin again without `--restart`: what it has stored is
 * found by its name, and so gets no second id.
 */
export function findsStoredByName({ idFrom, match }: ImportPlan): boolean {
  return idFrom !== undefined && match !== undefined
}

/** Creates the checkpoint of an import that is at its beginning. */
export function createCheckpoint(
  properties: Pick<Checkpoint, 'source' | 'firstId' | 'restart' | 'answers'>,
): Checkpoint {
  const counts = { created: 0, updated: 0, skipped: 0, unknown: 0, rejected: {} }
  const position = { input: 0, records: 0, counts, nextId: properties.firstId }
  return { version: 1, importId: randomUUID(), ...properties, position }
}

/**
 * Returns the position after further records, and changes nothing.
 *
 * @param rejectedRows what these records add to the rejects file
 */
export function movePosition(position: Position, records: number, rejectedRows: string): Position {
  const rejects = position.rejects && { ...position.rejects, rows: rejectedRows }
  return { ...position, records: position.records + records, rejects }
}

/** Builds the id of a row from what the row is about, such as the paths of the files. */
export function buildCheckpointId(...strings: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(strings)).digest('hex').slice(0, 32)
}
