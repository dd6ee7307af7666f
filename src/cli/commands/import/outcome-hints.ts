/*
 * Chooses the hint of an import that has rejected records. Often all of them have one cause, and
 * then one option, or one change of the input, helps for all of them.
 */
import { assertDefined } from '../../../errors.js'
import type { ImportPlan } from '../../../import/inputs.js'
import type { RejectedRecord, RejectionCause } from '../../../import/outcomes.js'
import { syntaxHints } from '../../../plant/json-syntax.js'

/** Why a record was rejected; `other` if only the record itself says how to correct it. */
export type HintCause = RejectionCause | 'conflict' | 'other'

export function findHintCause({ kind, rejectionCause }: RejectedRecord): HintCause {
  return rejectionCause ?? (kind === 'conflict' ? 'conflict' : 'other')
}

interface HintOptions {
  plan: ImportPlan
  /** How many records were read, with those that were not rejected. */
  recordCount: number
  /** The file with the rejected records; undefined if there is none. */
  rejects: string | undefined
  /** Whether the input is a rejects file itself, which is only a part of a list. */
  isRejectsFile: boolean
}

/**
 * Returns the advice for the most frequent cause. When it is followed, the next run has the advice
 * for the next cause.
 *
 * @param causeCounts how many records were rejected for each cause
 */
export function chooseOutcomeHint(
  causeCounts: ReadonlyMap<HintCause, number>,
  { plan, recordCount, rejects, isRejectsFile }: HintOptions,
): string {
  const cause = findMainCause(causeCounts)
  switch (cause) {
    case 'textId':
      // A few texts among integers are mistakes in these records. Without their ids, all others
      // would get new ones. A rejects file has only the mistakes.
      if (isRejectsFile || assertDefined(causeCounts.get(cause)) * 2 <= recordCount)
        return chooseOtherHint(rejects, plan)
      return plan.map.id
        ? `If the ids are no whole numbers, put id= instead of id=${plan.map.id.join()}, and add --by-name`
        : 'If the ids are no whole numbers, add --map id= and --by-name'
    case 'missingId':
      if (plan.sync || isRejectsFile) return 'Write an id into each record'
      // The ids of the other records show that the list has ids.
      if (causeCounts.get(cause) !== recordCount) return chooseOtherHint(rejects, plan)
      return causeHints[cause]
    case 'conflict':
      if (plan.ifExists !== 'same') return causeHints.generatedId
      return plan.byName ? wholeListHint : causeHints[cause]
    case 'other':
      return chooseOtherHint(rejects, plan)
    default:
      return causeHints[cause]
  }
}

/** Finds the most frequent cause; of equals, one that says more than `other`. */
export function findMainCause(causeCounts: ReadonlyMap<HintCause, number>): HintCause {
  const greatestCount = Math.max(...causeCounts.values())
  const causes = [...causeCounts.keys()].filter((key) => causeCounts.get(key) === greatestCount)
  return causes.find((key) => key !== 'other') ?? 'other'
}

/**
 * An import with `--atomic` stores nothing, and one with `--by-name` matches the whole list, so a
 * rejects file is not enough.
 */
function chooseOtherHint(rejects: string | undefined, plan: ImportPlan): string {
  const { atomic, byName, sync } = plan
  if (sync) return 'Correct the input, and run the command again'
  if (rejects === undefined)
    return 'Correct the input, and run the command again. To get the rejected records, add --rejects FILE'
  return atomic || byName
    ? 'Correct the input, and run the command again with a new --rejects file'
    : `Correct the records in ${rejects}, and import it with the same options and a new --rejects file`
}

/** The records of a part of a list stand for plants of another part, which an update would change. */
const wholeListHint =
  'If the list has several files, import all in one command. To change plants, add --if-exists update'

const causeHints: Readonly<Record<Exclude<HintCause, 'other' | 'textId'>, string>> = {
  ...syntaxHints,
  conflict:
    'To keep the plants that exist, add --if-exists skip. To change them, add --if-exists update',
  unreadableConflict:
    'Use a token that may read plants, so that a record is compared with the plant that has its id',
  surplusCells: 'Put each cell that contains the delimiter in double quotes',
  repeatedId: 'Where an id occurs twice, give each plant an id of its own',
  generatedId: 'Another import runs at the same time. Run the same command again',
  missingId: 'If the plants have no ids, add --by-name',
  quotedId: 'In JSON, write ids as numbers, without quotes',
  formattedId: 'Write ids in plain digits, such as 1234',
  unsavedFormula: 'Open the workbook in a spreadsheet, save it, and run the command again',
}
