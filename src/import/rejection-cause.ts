/*
 * Finds out whether only the id of a record is wrong, and for which cause. Then an option, or one
 * change of the whole input, may help more than correcting each record.
 */
import { NumberLiteral } from '../plant/json.js'
import type { SyntaxCause } from '../plant/json-syntax.js'
import type { Outcome, Problem } from '../stores/change.js'

/**
 * Why a record is rejected, if the hint of the import depends on it.
 *
 * - `missingId`, `quotedId`, `formattedId`, `textId`: the record has no id, has one in quotes in
 *   JSON, has a number that is not in plain digits, such as `1.234`, or has a text with letters in
 *   the place of an id. Nothing else is wrong in it.
 * - `surplusCells`: the row of a table has more cells than the header.
 * - `repeatedId`: the plant of an earlier record has the same id.
 * - `repeatedName`: with `--by-name`, an earlier record has the name, and another tag.
 * - `unreadableConflict`: the id exists, and the service does not let the token read the plant, so
 *   the plant may be equal to the record.
 * - `generatedId`: another plant has the id that was generated for the record.
 * - `reservedId`: the id is one that `--by-name` may generate. The ids in stdin are not known
 *   before.
 * - `unsavedFormula`: a cell of a workbook has a formula whose value the workbook lacks.
 * - `commonName`: with `--by-name`, several plants have the name.
 * - A cause of `SyntaxCause`: the record is not JSON.
 */
export type RejectionCause =
  | 'missingId'
  | 'quotedId'
  | 'formattedId'
  | 'textId'
  | 'surplusCells'
  | 'repeatedId'
  | 'repeatedName'
  | 'unreadableConflict'
  | 'generatedId'
  | 'reservedId'
  | 'unsavedFormula'
  | 'commonName'
  | SyntaxCause

/** Why a record is not stored. */
export interface RecordProblem extends Problem {
  rejectionCause?: RejectionCause | undefined
}

/** What became of a record. */
export type RecordOutcome =
  | Exclude<Outcome, { problem: Problem }>
  | { type: 'rejected' | 'unknown' | 'notSent'; problem: RecordProblem }

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
