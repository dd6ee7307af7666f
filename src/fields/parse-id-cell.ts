/**
 * Parses the id in a cell of a table.
 *
 * Spaces around an id, zeros before it and `.0` after it do not count: programs add them to
 * numbers. `1.000` is not accepted, because it is one in half of the world, and a thousand in the
 * other half. `="00123"` and `'00123` are how people make Excel show the zeros of a number.
 *
 * @returns the cell itself if it is not an integer
 */
export function parseIdCell(cell: string): bigint | string {
  // JavaScript holds integers of up to 15 digits exactly, and parses them faster.
  if (/^-?\d{1,40}$/.test(cell)) return BigInt(cell.length <= 15 ? Number(cell) : cell)
  const { formulaDigits, textDigits, plainDigits } = idForms.exec(cell)?.groups ?? {}
  const digits = formulaDigits ?? textDigits ?? plainDigits
  return digits === undefined ? cell : BigInt(digits)
}

const idForms =
  /^\s*(?:="(?<formulaDigits>-?\d{1,40})"|'(?<textDigits>-?\d{1,40})|(?<plainDigits>-?\d{1,40})(?:\.0)?)\s*$/

/**
 * Whether a cell has a number with an exponent of at least 15, such as `1.23457E+19`. Spreadsheets
 * show and save integers like this, and nobody can tell which digits they had.
 */
export function isRoundedNumber(cell: string): boolean {
  return /^\s*-?\d(?:[.,]\d*)?E\+?(?:1[5-9]|[2-9]\d|\d{3,})\s*$/i.test(cell)
}
