import { inputError, type PlantsError } from '../../errors.js'

/** Why a workbook cannot be read: it follows `stock.xlsx is damaged: `. */
export class DamageError extends Error {
  override readonly name = 'DamageError'
}

/** Says which file is damaged. Any other error stays as it is. */
export function explainDamage(file: string, error: unknown): unknown {
  if (!(error instanceof DamageError)) return error
  return inputError(
    `${file} is damaged: ${error.message}`,
    'Open it in a spreadsheet, and save it again as .xlsx or CSV',
    error,
  )
}

export function createTooLargeError(file: string): PlantsError {
  return inputError(`${file} unpacks to too much data`, 'Save the sheet as CSV, and import that')
}
