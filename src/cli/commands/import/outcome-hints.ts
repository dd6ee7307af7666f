/*
 * Chooses the hint of an import that has rejected records.
 * Often all records are rejected for one cause, and then one option, or one change of the input,
 * helps for all of them.
 */

import { assignsIds, idOptionsHint, replaceRejectedTextHint } from '../../../formats/columns.js'
import type { RejectedRecord } from '../../../import/format-rejects.js'
import type { ImportPlan } from '../../../import/inputs.js'
import type { RejectionCause } from '../../../import/rejection-cause.js'
import { syntaxHints } from '../../../plant/json-syntax.js'
import { quoteWord } from '../../../platform/shell.js'

type Cause = RejectionCause | 'conflict'

/** The hint at the end of an import depends on these facts. */
interface ImportOutcome {
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
      : writeRejectsHint
    return `${hint}. ${listHint}`
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

  #chooseOtherHint({ rejects }: ImportOutcome): string {
    const { dryRun, atomic } = this.#plan
    if (dryRun) return correctInputHint
    if (atomic) return `${correctInputHint}${rejects === undefined ? '' : newRejectsClause}`
    if (rejects === undefined)
      return `${correctInputHint}. To write all rejected records to a file, add --rejects FILE`
    const textHint = this.#hasText ? `. ${replaceRejectedTextHint}` : ''
    const importHint = `Import that file with the same options and a new --rejects file`
    return `Correct the records in ${rejects}${textHint}. ${importHint}`
  }

  #describe(
    cause: Cause,
    {
      file,
      isCauseOfAll,
      isNothingStored,
      rejects,
    }: ImportOutcome & { file: string; isCauseOfAll: boolean },
  ): string | undefined {
    const { byName, idFrom, map } = this.#plan
    switch (cause) {
      case 'conflict':
        return idFrom === undefined ? describeConflict(rejects, byName) : undefined
      case 'unreadableConflict':
        return idFrom === undefined ? unreadableConflictHint : undefined
      case 'surplusCells':
        return isNothingStored ? unnamedColumnHint : quoteCellsHint
      case 'repeatedId':
        return 'Where an id occurs twice, give each plant an id of its own, or delete one of the records'
      case 'generatedId':
        return byName ? takenNameHint : movedRowsHint
      case 'reservedId':
        return 'Import the list from a file, whose ids are known before the first one is generated'
      case 'missingId':
        return idOptionsHint
      case 'quotedId':
        return describeUnquoting(file, map.id?.[0] ?? 'id')
      case 'formattedId':
        return formattedIdHint
      case 'otherQuotes':
      case 'valueComma':
        return syntaxHints[cause]
      case 'textId':
        return isCauseOfAll ? describeTextIds(this.#plan) : undefined
      case 'unsavedFormula':
        return rejects === undefined ? saveFormulasHint : undefined
      case 'commonName':
        return 'If several plants have the name, put the id of the right one into a column or key id'
    }
  }
}

const correctInputHint = 'Correct the input, and run the command again'
const newRejectsClause = ' with a new --rejects file'
const writeRejectsHint =
  'To write all rejected records to a file, run the command again with --rejects FILE'
const formattedIdHint =
  'Write ids in plain digits, such as 1234. If a spreadsheet has shortened them, ' +
  'format their column as whole numbers there, and save the table again'
const saveFormulasHint =
  'To save the values of the formulas, open the workbook in a spreadsheet, and save it. ' +
  'Then run the command again'
const quoteCellsHint = 'Put each cell that contains the delimiter in double quotes'
const unnamedColumnHint =
  'If the header lacks the name of a column, as in a table that R writes, add the name. ' +
  'Otherwise, put each cell that contains the delimiter in double quotes'
const takenNameHint = 'Another import runs at the same time. Run the same command again'
const movedRowsHint =
  'If the list is stored and its rows have moved, import it with --by-name or with ids of its own. ' +
  'If it is new, begin with an --id-from above all ids of the store'

const unreadableConflictHint =
  'The service does not let the token read plants, so a record is not compared with the plant ' +
  'that has its id. To skip plants that exist, add --if-exists skip, or use a token that may read'

function describeTextIds(plan: ImportPlan): string {
  if (plan.map.id?.length)
    return 'To ignore the ids, give id= instead of the id in --map, and add --by-name'
  return `To ignore invalid ids, add --map id=${assignsIds(plan) ? '' : ' --by-name'}`
}

const giveIdsHint = 'If the records are other plants, give them ids of their own'
const ignoreIdsHint = 'If the records are other plants, ignore their ids: --map id= --by-name'

/** A rejects file is not overwritten, so it is imported instead of the same input. */
function describeConflict(rejects: string | undefined, isFoundByName = false): string {
  const otherIdsHint = isFoundByName ? giveIdsHint : ignoreIdsHint
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
