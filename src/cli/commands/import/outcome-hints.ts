/*
 * Chooses the hint of an import that has rejected records.
 * Often all records are rejected for one cause, and then one option, or one change of the input,
 * helps for all of them.
 *
 * If an import has stored plants with generated ids, no hint proposes to import its input again as
 * it was: the plants would be stored again under other ids. With `--match name`, they are found.
 */

import type { RejectedRecord } from '../../../import/format-rejects.js'
import type { ImportPlan } from '../../../import/inputs.js'
import type { RejectionCause } from '../../../import/rejection-cause.js'
import { syntaxHints } from '../../../plant/json-syntax.js'
import { quoteWord } from '../../../platform/shell.js'

type Cause = RejectionCause | 'conflict'

/** The hint at the end of an import depends on these facts. */
interface ImportOutcome {
  /** The number of records that were rejected, also by an interrupted run. */
  rejectedCount: number
  /** Whether all records were rejected. */
  isNothingStored: boolean
  /** The file with the rejected records; undefined if there is none. */
  rejects: string | undefined
  /** Whether all rejected records were printed. */
  areAllListed: boolean
}

/** The records with these causes must be corrected like those that no cause explains. */
const causesToCorrect: ReadonlySet<Cause> = new Set<Cause>([
  'surplusCells',
  'formattedId',
  'otherQuotes',
  'valueComma',
])

export class OutcomeHints {
  readonly #plan: ImportPlan
  /** The file of the first record that was rejected for each cause. */
  readonly #files = new Map<Cause, string>()
  #explainedCount = 0
  /** Whether a line was rejected that is not JSON. */
  #hasText = false

  constructor(plan: ImportPlan) {
    this.#plan = plan
  }

  /** @param file the name of the input, for commands */
  noteRejections(rejections: readonly RejectedRecord[], file: string): void {
    for (const { error, kind, raw, rejectionCause } of rejections) {
      this.#hasText ||= kind === 'input' && typeof raw === 'string'
      const cause = rejectionCause ?? (error === 409 ? 'conflict' : undefined)
      if (cause === undefined) continue
      if (!causesToCorrect.has(cause)) this.#explainedCount += 1
      if (!this.#files.has(cause)) this.#files.set(cause, file)
    }
  }

  chooseHint(outcome: ImportOutcome): string {
    const hint = this.#describeCauses(outcome)
    if (outcome.areAllListed || outcome.rejects !== undefined) return hint
    if (hint.includes('--rejects FILE')) return hint
    const listHint = this.#plan.dryRun
      ? 'To list all rejected records, add --output json'
      : this.#chooseWriteHint(outcome)
    return `${hint}. ${listHint}`
  }

  /**
   * Whether the input may be imported again. It may not if plants without an id are stored, because
   * they would be stored again under other ids.
   */
  #mayRepeat({ isNothingStored }: Pick<ImportOutcome, 'isNothingStored'>): boolean {
    const { idFrom, match, dryRun, atomic } = this.#plan
    const storesIdlessPlants = idFrom !== undefined && match === undefined && !dryRun && !atomic
    return isNothingStored || !storesIdlessPlants
  }

  /** Returns a hint for each cause, and one for the records that no cause explains. */
  #describeCauses(outcome: ImportOutcome): string {
    const causes = [...this.#files]
    // An id that is wrong in one record of many is an error in that record.
    const areAllExplained = this.#explainedCount === outcome.rejectedCount
    const isCauseOfAll = areAllExplained && outcome.isNothingStored && causes.length === 1
    const hints = causes.map(([cause, file]) =>
      this.#describe(cause, { ...outcome, file, isCauseOfAll }),
    )
    const isExplained = areAllExplained && !hints.includes(undefined)
    return [...hints, isExplained ? undefined : this.#chooseOtherHint(outcome)]
      .filter(Boolean)
      .join('. ')
  }

  #chooseOtherHint(outcome: ImportOutcome): string {
    const { dryRun, atomic } = this.#plan
    const { rejects } = outcome
    if (dryRun || atomic) {
      const hasRejectsFile = !dryRun && rejects !== undefined
      return `${correctInputHint}${hasRejectsFile ? ' with a new --rejects file' : ''}`
    }
    if (rejects === undefined)
      return this.#mayRepeat(outcome) ? correctOrWriteHint : this.#chooseWriteHint(outcome)
    const textHint = this.#hasText
      ? ', replace each line that has "rejected_text" with its corrected JSON object'
      : ''
    const options = 'with the same options and a new --rejects file'
    return `Correct the records in ${rejects}${textHint}, and import that file ${options}`
  }

  /** Chooses how to get all rejected records in a file. */
  #chooseWriteHint(outcome: ImportOutcome): string {
    const matchHint = this.#mayRepeat(outcome) ? '' : ` --match name. ${skippedSentence}`
    return writeRejectsHint + matchHint
  }

  #describe(
    cause: Cause,
    { file, isCauseOfAll, ...outcome }: ImportOutcome & { file: string; isCauseOfAll: boolean },
  ): string | undefined {
    const { idFrom, map } = this.#plan
    switch (cause) {
      case 'conflict':
        return idFrom === undefined ? describeConflict(outcome) : undefined
      case 'unreadableConflict':
        return idFrom === undefined ? unreadableConflictHint : undefined
      case 'surplusCells':
        return 'Put each cell that contains the delimiter in double quotes'
      case 'repeatedId':
        return 'Where an id occurs twice, give each plant an id of its own, or delete one of the records'
      case 'generatedId':
        return this.#describeGeneratedId(outcome)
      case 'missingId':
        return 'To generate ids for plants without one, add --id-from next'
      case 'quotedId':
        return describeUnquoting(file, map.id || 'id')
      case 'formattedId':
        return formattedIdHint
      case 'otherQuotes':
      case 'valueComma':
        return syntaxHints[cause]
      case 'textId':
        if (!isCauseOfAll) return undefined
        if (map.id)
          return 'To ignore the ids, give id= instead of the id in --map, and add --id-from next'
        return `To ignore invalid ids, add --map id=${idFrom === undefined ? ' --id-from next' : ''}`
      case 'unsavedFormula':
        return this.#describeUnsavedFormula(outcome)
      case 'newName':
        return 'To create plants with new names, add --id-from next'
      case 'commonName':
        return 'If several plants have the name, put the id of the right one into a column or key id'
    }
  }

  /** The ids after the largest one are free, whatever ids the store and the input have. */
  #describeGeneratedId(outcome: ImportOutcome): string | undefined {
    const { rejects } = outcome
    const { idFrom } = this.#plan
    if (idFrom === undefined || idFrom === 'next') return undefined
    if (rejects !== undefined) return `Import ${rejects} with --id-from next, not ${idFrom}`
    const replaceHint = `Replace --id-from ${idFrom} with --id-from next`
    if (this.#mayRepeat(outcome)) return replaceHint
    return `${replaceHint}, and add --match name. ${skippedSentence}`
  }

  /** A rejects file gets the value of the formula from a person. */
  #describeUnsavedFormula(outcome: ImportOutcome): string | undefined {
    const { rejects } = outcome
    return rejects === undefined && this.#mayRepeat(outcome) ? saveFormulasHint : undefined
  }
}

const correctInputHint = 'Correct the input, and run the command again'
const correctOrWriteHint = `${correctInputHint}. To write all rejected records to a file, add --rejects FILE`
export const skippedSentence = 'Plants that are stored unchanged are skipped'
export const restartHint = `When you run the command again, add --restart. ${skippedSentence}`
export const againHint = `again. ${skippedSentence}`
/** An import that has stored plants with generated ids gets this hint. */
export const newNamesHint =
  'To import only plants with new names, run the command again with --match name'
const writeRejectsHint =
  'To write all rejected records to a file, run the command again with --rejects FILE'
const formattedIdHint =
  'Write ids in plain digits, such as 1234. If a spreadsheet has shortened them, ' +
  'format their column as whole numbers there, and save the table again'
const saveFormulasHint =
  'To save the values of the formulas, open the workbook in a spreadsheet, and save it. ' +
  'Then run the command again'

const unreadableConflictHint =
  'The service does not let the token read plants, so a record is not compared with the plant ' +
  'that has its id. To skip plants that exist, add --if-exists skip, or use a token that may read'

/** A rejects file is not overwritten, so it is imported instead of the same input. */
function describeConflict({ rejects }: Pick<ImportOutcome, 'rejects'>): string {
  const otherIdsHint = 'If the records are other plants, give them other ids'
  return rejects === undefined
    ? `To keep the plants that exist, add --if-exists skip. To change them, add --if-exists update. ${otherIdsHint}`
    : `To change the plants that exist, import ${rejects} with the same options, --if-exists update and a new --rejects file. ${otherIdsHint}`
}

/** Describes how quotes around the ids of JSON are removed. `jq` would round large ids. */
function describeUnquoting(file: string, key: string): string {
  if (!/^\w+$/.test(key) || file.endsWith('.gz'))
    return 'In JSON, write ids as numbers, without quotes'
  const pattern = key === 'id' ? '[iI][dD]' : key
  const command = `sed -E 's/("${pattern}" *: *)"(-?[0-9]+)"/\\1\\2/g'`
  const pipeAdvice = 'To write ids as numbers, as JSON needs them, pipe'
  if (file === 'stdin') return `${pipeAdvice} the input through this first: ${command}`
  return `${pipeAdvice} this into the same command, with - instead of ${file}: ${command} ${quoteWord(file)}`
}
