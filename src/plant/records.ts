import { must } from '../platform/errors.js'
import { toJson } from './exact-json.js'
import { fieldNames, type StoredPlant } from './plant.js'

/** A plant, or how many have a text. */
export interface PlantRecord extends Partial<StoredPlant> {
  count?: bigint
}

export type Column = keyof PlantRecord

/** Counts the plants with an empty text, which a table cannot tell from no value. */
export async function* countEmptyTexts(
  pages: AsyncIterable<StoredPlant[]>,
  onCounted: (plants: number) => Promise<void>,
): AsyncGenerator<StoredPlant[]> {
  let count = 0
  for await (const page of pages) {
    for (const { name, tag } of page) if (name === '' || tag === '') count += 1
    yield page
  }
  if (count > 0) await onCounted(count)
}

/** In quotes also if it is empty, which other programs tell from no value, or if an import would trim it. */
export function tableCell(text: string, delimiter: string): string {
  const isSpecial = text === '' || special.test(text) || text.includes(delimiter)
  return isSpecial ? `"${text.replaceAll('"', '""')}"` : text
}

const special = /["\r\n]|^\p{White_Space}|\p{White_Space}$/u

/** The formats of many plants, in a file or on stdout. */
export const formatNames = ['ndjson', 'json', 'csv', 'tsv'] as const
export type FormatName = (typeof formatNames)[number]
export type FileFormat = FormatName | 'xlsx'

/** Writes records as they come. In a table (RFC 4180), the cell of a missing field is empty; JSON omits the field. */
export function documentIn(format: FormatName, fields: readonly Column[] = fieldNames) {
  const linesOf = lineWriter(format, fields)
  const isArray = format === 'json'
  let head = isArray ? '[\n' : format === 'ndjson' ? '' : `${fields.join(delimiterOf[format])}\n`
  return {
    add: (records: readonly PlantRecord[]) => {
      if (records.length === 0) return ''
      const text = linesOf(records)
      // In JSON, a line feed is always the end of a record.
      const part = isArray ? head + text.slice(0, -1).replaceAll('\n', ',\n') : head + text
      head = isArray ? ',\n' : ''
      return part
    },
    end: () => (!isArray ? head : head === ',\n' ? '\n]\n' : '[\n]\n'),
  }
}

const delimiterOf = { csv: ',', tsv: '\t' }

/** Returns a function that writes a line for each record. */
function lineWriter(
  format: FormatName,
  fields: readonly Column[],
): (records: readonly PlantRecord[]) => string {
  const lines = (records: readonly PlantRecord[], write: (record: PlantRecord) => string) =>
    records.map((record) => `${write(record)}\n`).join('')
  if (format === 'csv' || format === 'tsv') {
    const delimiter = delimiterOf[format]
    const cell = (value: PlantRecord[Column]) =>
      typeof value === 'string' ? tableCell(value, delimiter) : String(value ?? '')
    const [first, others] = [must(fields[0]), fields.slice(1)] // without an array for each record
    return (records) =>
      lines(records, (record) =>
        others.reduce(
          (line, name) => `${line}${delimiter}${cell(record[name])}`,
          cell(record[first]),
        ),
      )
  }
  const pick = (record: PlantRecord) =>
    Object.fromEntries(fields.map((name) => [name, record[name]]))
  const write = fields === fieldNames ? toJson : (record: PlantRecord) => toJson(pick(record))
  return (records) => lines(records, write)
}
