/* The names of columns and keys that a rejects file has besides those of its input. */

import { foldLabel } from '../formats/names.js'
import type { Cells } from '../formats/reader.js'

/** The columns that a rejects file has before the columns of its input. */
export const rejectColumns = ['rejected_line', 'rejected_reason']

/** Whether a column or a key was added by a rejects file, and so has no field of a plant. */
export function isRejectsName(name: string): boolean {
  return /^rejected_(?:line|reason|text)$/.test(foldLabel(name))
}

/** Whether a row is the header of a rejects file. */
export function isRejectsHeader([firstCell]: Cells = []): boolean {
  return typeof firstCell === 'string' && isRejectsName(firstCell)
}

/** Whether an object has only what a rejects file says of a line that is not JSON. */
export function isRejectedText(object: object): boolean {
  const keys = Object.keys(object)
  return keys.includes('rejected_text') && keys.every(isRejectsName)
}

/** This says how to correct such a line. Its text alone is no plant, even if it is corrected. */
export const replaceRejectedTextHint =
  'Replace "rejected_text" and its text with the keys and values of the corrected line'
