import type { ImportPlan } from '../../import/inputs.js'
import { groupDigits } from '../../plant/plant.js'
import type { Io } from '../../platform/io.js'
import { askToChoose } from '../prompts.js'

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

/** The answer, as options of an import. */
type PolicyAnswer = Pick<ImportPlan, 'ifExists' | 'sync'>

/**
 * Asks what to do with the plants that the store has already. Enter changes them only if most of
 * them equal their records: another list, whose numbers are the same by chance, changes nothing.
 */
export function askForPolicy(
  { equal, differing, missing }: Comparison,
  io: Io,
): Promise<PolicyAnswer> {
  const numbers = [groupDigits(differing), groupDigits(missing ?? 0)] as const
  const change = {
    value: { ifExists: 'update' } as PolicyAnswer,
    name: `Change those that differ (${numbers[0]})`,
  }
  const sync = {
    value: { ifExists: 'update', sync: true } as PolicyAnswer,
    name: `Make the store equal to the list (change ${numbers[0]}, delete ${numbers[1]})`,
  }
  const leave = { value: { ifExists: 'skip' } as PolicyAnswer, name: 'Leave them as they are' }
  const choices = [
    ...(differing > 0 ? [change] : []),
    ...(missing === undefined ? [] : [sync]),
    leave,
  ]
  const isSameList = differing > 0 && equal >= differing
  const initial = (isSameList ? change : leave).value
  const lackClause = missing === undefined ? '' : ` Plants that the list lacks: ${numbers[1]}.`
  const message = `Plants that differ from the list: ${numbers[0]}.${lackClause} What should be done?`
  return askToChoose({ message, choices, initial }, io)
}
