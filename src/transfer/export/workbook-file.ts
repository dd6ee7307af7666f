import { writeXlsxStream, XLSX_MAX_ROWS_PER_SHEET } from 'hucre/xlsx'
import { fieldNames, type NewPlant } from '../../plant/fields.js'
import { malformed } from '../../platform/errors.js'

/** Texts are texts, also those that begin with `=`, and so are ids of more than 15 digits, which spreadsheets round. */
export async function* workbookOf(pages: AsyncIterable<NewPlant[]>): AsyncGenerator<Uint8Array> {
  const columns = fieldNames.map((header) => ({ header, width: 24 }))
  yield* writeXlsxStream(rowsOf(pages), { name: 'Plants', columns, freezePane: { rows: 1 }, maxRowsPerSheet: Infinity })
}

async function* rowsOf(pages: AsyncIterable<NewPlant[]>) {
  let rows = 1
  for await (const page of pages) {
    for (const plant of page) {
      rows += 1
      if (rows > XLSX_MAX_ROWS_PER_SHEET)
        throw malformed(
          `A sheet has at most ${XLSX_MAX_ROWS_PER_SHEET} rows`,
          'Use --limit and --after, or a .csv file',
        )
      yield fieldNames.map((name) => cellOf(plant, name))
    }
  }
}

function cellOf(plant: NewPlant, name: keyof NewPlant): string | number | null {
  const value = plant[name]
  if (typeof value === 'bigint') return value > -maxNumber && value < maxNumber ? Number(value) : String(value)
  if (value !== undefined && value.length > maxText)
    throw malformed(
      `The ${name} of the plant with id ${plant.id} has ${value.length} characters, but a cell has at most ${maxText}`,
      'Use a .csv file',
    )
  return value === undefined ? null : value.replace(/_(?=x[\dA-F]{4}_)|[\ufffe\uffff]/gi, escaped)
}

/** Such as `_x005F_`, for what would be read as such a word, and for characters that XML cannot have. */
function escaped(character: string): string {
  return `_x${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}_`
}

const maxNumber = 10n ** 15n
/** in UTF-16 code units, as Excel counts */
const maxText = 32_767
