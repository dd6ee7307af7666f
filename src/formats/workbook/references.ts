/* Parses references to cells and ranges, such as `AB7` and `C2:C4` (ECMA-376 part 1, 18.18.7). */

/** The size of a sheet in Excel and LibreOffice. */
export const maxRows = 1_048_576
export const maxColumns = 16_384

/** Converts the letters of a column to its number from 0 on: `A` is 0, and `AB` is 27. */
export function parseColumn(letters: string): number {
  let column = 0
  for (let index = 0; index < letters.length; index += 1)
    column = column * 26 + letters.charCodeAt(index) - 64
  return column - 1
}

/** Formats the reference of a range. The column of its first cell counts from 0 on. */
export function formatRange(column: number, row: number, columns: number, rows: number): string {
  return `${formatColumn(column)}${row}:${formatColumn(column + columns - 1)}${row + rows - 1}`
}

function formatColumn(column: number): string {
  const letter = String.fromCharCode(65 + (column % 26))
  return column < 26 ? letter : formatColumn(Math.floor(column / 26) - 1) + letter
}

/**
 * Whether a range of merged cells, such as `C2:C4`, has cells of records: only its first cell has a
 * value, so records lack theirs. A reference that is not valid is ignored.
 *
 * @param columns the indexes of the columns that are read
 */
export function mergesRecords(
  reference: string,
  headerLine: number,
  columns: readonly number[],
): boolean {
  const [, first = '', , last = '', lastRow] =
    /^([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})$/.exec(reference) ?? []
  const isRead = (column: number) => column >= parseColumn(first) && column <= parseColumn(last)
  return Number(lastRow) > headerLine && columns.some(isRead)
}
