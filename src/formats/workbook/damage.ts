import { createInputError, type PlantsError } from '../../errors.js'

/**
 * A workbook is not valid by its standard. The functions that throw this error do not know the name
 * of the file. So the message is the end of a sentence that begins with `stock.xlsx is damaged: `.
 */
export class DamageError extends Error {
  override readonly name = 'DamageError'
}

/** Converts a `DamageError` to an error that names the file. Other errors stay as they are. */
export function explainDamage(file: string, error: unknown): unknown {
  if (!(error instanceof DamageError)) return error
  return createInputError(
    `${file} is damaged: ${error.message}`,
    'Download or copy it again, or save it again as .xlsx or CSV in a spreadsheet program',
    error,
  )
}

export function createTooLargeError(file: string): PlantsError {
  return createInputError(
    `${file} unpacks to too much data`,
    'Save the sheet as CSV, and import that',
  )
}
