import { groupDigits } from '../../plant/plant.js'
import type { Io } from '../../platform/io.js'
import { askToChoose, type Choice } from '../prompts.js'
import type { ImportAnswers } from './answers.js'

/** How a list and the plants of a store differ. */
export interface Comparison {
  /** How many records have a plant that equals them. */
  equal: number
  /** How many records have a plant that differs from them. */
  differing: number
  /**
   * How many plants of the store the list lacks; undefined unless it seems to be the list of the
   * whole store: it has at least half of its plants, and none of its records is rejected.
   */
  missing: number | undefined
}

/**
 * Asks what to do with the plants that the store has already. Enter changes them only if most of
 * them equal their records: another list, whose numbers are the same by chance, changes nothing.
 */
export function askForPolicy(
  { equal, differing, missing }: Comparison,
  io: Io,
): Promise<ImportAnswers> {
  const [changes, deletions] = [groupDigits(differing), groupDigits(missing ?? 0)]
  const change: Choice<ImportAnswers> = {
    value: { ifExists: 'update' },
    name: `Change those that differ (${changes})`,
  }
  const sync: Choice<ImportAnswers> = {
    value: { ifExists: 'update', sync: true },
    name: `Make the store equal to the list (change ${changes}, delete ${deletions})`,
  }
  const leave: Choice<ImportAnswers> = {
    value: { ifExists: 'skip' },
    name: 'Leave them as they are',
  }
  const choices = [
    ...(differing > 0 ? [change] : []),
    ...(missing === undefined ? [] : [sync]),
    leave,
  ]
  const isSameList = differing > 0 && equal >= differing
  const initial = (isSameList ? change : leave).value
  const lackClause = missing === undefined ? '' : ` Plants that the list lacks: ${deletions}.`
  const message = `Plants that differ from the list: ${changes}.${lackClause} What should be done?`
  return askToChoose({ message, choices, initial }, io)
}
