/*
 * What became of the records of a chunk: an outcome for each of them, made of the outcomes of the
 * changes, and for which cause a record was rejected. If all records have one
 * cause, an option, or one change of the whole input, may help more than correcting each record.
 */
import { assertDefined } from '../errors.js'
import type { Chunk, RawRecord } from '../fields/chunk.js'
import { NumberLiteral } from '../plant/json.js'
import type { SyntaxCause } from '../plant/json-syntax.js'
import { type Change, getTargetId, type Outcome, type Problem } from '../stores/change.js'

/**
 * Why a record is rejected, if the hint of the import depends on it.
 *
 * - `missingId`, `quotedId`, `formattedId`, `textId`: the record has no id, has one in quotes in
 *   JSON, has a number that is not in plain digits, such as `1.234`, or has a text with letters in
 *   the place of an id. Nothing else is wrong in it.
 * - `surplusCells`: the row of a table has more cells than the header.
 * - `repeatedId`: the plant of an earlier record has the same id.
 * - `unreadableConflict`: the id exists, and the service does not let the token read the plant, so
 *   the plant may be equal to the record.
 * - `generatedId`: another plant has the id that was generated for the record.
 * - `unsavedFormula`: a cell of a workbook has a formula whose value the workbook lacks.
 * - A cause of `SyntaxCause`: the record is not JSON.
 */
export type RejectionCause =
  | 'missingId'
  | 'quotedId'
  | 'formattedId'
  | 'textId'
  | 'surplusCells'
  | 'repeatedId'
  | 'unreadableConflict'
  | 'generatedId'
  | 'unsavedFormula'
  | SyntaxCause

/** Why a record is not stored. */
export interface RecordProblem extends Problem {
  rejectionCause?: RejectionCause | undefined
}

/** What a record changes. */
export type MappedChange = Exclude<Change, { type: 'delete' }> & {
  /** Whether the import has assigned the id. */
  isGenerated: boolean
}

/** What a record leads to: a change, nothing, or a rejection. */
export type MappedRecord = MappedChange | { type: 'skipped' } | RecordProblem

export function isChange(mapping: MappedRecord): mapping is MappedChange {
  return !('error' in mapping) && mapping.type !== 'skipped'
}

/** What became of a record. */
export type RecordOutcome =
  | Exclude<Outcome, { problem: Problem }>
  | { type: 'rejected' | 'unknown' | 'notSent'; problem: RecordProblem }

export interface RejectedRecord extends RecordProblem {
  /** The line of the input in which the record begins. */
  line: number
  raw: RawRecord
}

/**
 * Returns an outcome for each record of a chunk. A record that was mapped to a reason is rejected,
 * one that equals its plant is skipped, and any other has the outcome of its change.
 *
 * @param mappings for each record, what it leads to
 * @param outcomes the outcomes of the changes
 */
export function mergeOutcomes(
  chunk: Chunk,
  mappings: readonly MappedRecord[],
  outcomes: readonly Outcome[],
): RecordOutcome[] {
  let changeCount = 0
  const mergedOutcomes = mappings.map((mapping) => {
    if ('error' in mapping) return rejectRecord(mapping)
    if (!isChange(mapping)) return mapping
    const outcome = assertDefined(outcomes[changeCount])
    changeCount += 1
    const isUnreadable = 'problem' in outcome && outcome.problem.isUnreadable
    return isUnreadable ? rejectRecord(outcome.problem, 'unreadableConflict') : outcome
  })
  return explainConflicts(mergedOutcomes, mappings, chunk)
}

function rejectRecord(
  problem: RecordProblem,
  rejectionCause = problem.rejectionCause,
): RecordOutcome {
  return { type: 'rejected', problem: { ...problem, rejectionCause } }
}

/**
 * Says of a conflict that the id was generated, or that the plant with the id is that of an earlier
 * record of the chunk. Whether an earlier chunk has the id is not known: to remember all ids would
 * need too much memory.
 */
function explainConflicts(
  outcomes: RecordOutcome[],
  mappings: readonly MappedRecord[],
  { lines }: Chunk,
): RecordOutcome[] {
  if (!outcomes.some(isConflict)) return outcomes
  // A repeated import skips what it has created before, and says the same.
  const firstLines = new Map<bigint, number>()
  return outcomes.map((outcome, index) => {
    const change = assertDefined(mappings[index])
    if (!isChange(change)) return outcome
    const id = getTargetId(change)
    const isStored = outcome.type === 'created' || outcome.type === 'skipped'
    if (isStored && !firstLines.has(id)) firstLines.set(id, assertDefined(lines[index]))
    if (!isConflict(outcome)) return outcome
    if (change.isGenerated) {
      // If the conflict has a cause already, the plant with the id may be that of the record.
      if (outcome.problem.rejectionCause) return outcome
      const message = `The record has no id, and another plant has the generated id ${id}`
      return rejectRecord({ ...outcome.problem, message }, 'generatedId')
    }
    const firstLine = firstLines.get(id)
    if (firstLine === undefined) return outcome
    const message = `The id ${id} also occurs in line ${firstLine}, with a different plant`
    return rejectRecord({ ...outcome.problem, message }, 'repeatedId')
  })
}

function isConflict(
  outcome: RecordOutcome,
): outcome is Extract<RecordOutcome, { problem: RecordProblem }> {
  return outcome.type === 'rejected' && outcome.problem.kind === 'conflict'
}

/** Whether a service has said what became of the record. */
export function isAnswered({ type }: RecordOutcome): boolean {
  return type !== 'notSent' && type !== 'unknown'
}

/** @param outcomes for each record of the chunk */
export function findRejections(
  { records, lines }: Chunk,
  outcomes: readonly RecordOutcome[],
): RejectedRecord[] {
  const rejections: RejectedRecord[] = []
  outcomes.forEach((outcome, index) => {
    if (outcome.type !== 'rejected') return
    const [line, raw] = [assertDefined(lines[index]), assertDefined(records[index])]
    rejections.push({ ...outcome.problem, line, raw })
  })
  return rejections
}

/**
 * @param id the id of a record that is no valid plant; any value
 * @param reasons what `findProblems` says of the record
 */
export function findIdCause(id: unknown, reasons: readonly string[]): RejectionCause | undefined {
  if (reasons.length > 1) return undefined
  if (id === undefined || id === null) return 'missingId'
  if (id instanceof NumberLiteral) return isFormattedNumber(id.source) ? 'formattedId' : undefined
  if (typeof id !== 'string') return undefined
  // Integers in the cells of a table are parsed before this, so such a string is one of JSON.
  if (/^-?\d{1,19}$/.test(id)) return 'quotedId'
  if (isFormattedNumber(id)) return 'formattedId'
  return /\p{L}/u.test(id) ? 'textId' : undefined
}

/** Whether a text is a number with separators, decimals or an exponent: `1.234`, `1,5` or `1E3`. */
function isFormattedNumber(text: string): boolean {
  return /^[+-]?\d+(?:[.,'’\s]\d+)*(?:E[+-]?\d+)?$/i.test(text) && /[^-\d]/.test(text)
}
