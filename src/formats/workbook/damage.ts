import { inputError, type PlantsError } from '../../errors.js'

/**
 * A workbook is not as ECMA-376 says. Parts of the reader throw this without knowing the file; the
 * message continues `stock.xlsx is damaged: `.
 */
export class DamageError extends Error {
  override readonly name = 'DamageError'
}

/** Converts a `DamageError` to the error that names the file. It returns any other error as is. */
export function explainDamage(file: string, error: unknown): unknown {
  if (!(error instanceof DamageError)) return error
  return inputError(
    `${file} is damaged: ${error.message}`,
    'Open it in a spreadsheet program, and save it again as .xlsx or CSV',
    error,
  )
}

export function createTooLargeError(file: string): PlantsError {
  return inputError(`${file} unpacks to too much data`, 'Save the sheet as CSV, and import that')
}
