import { type FieldName, fieldNames } from '../../plant/plant.js'
import { inputError, must, type PlantsError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import type { Cells, Chunk, FieldRules, FormatReader, Header } from './chunk.js'
import { collapseWhiteSpace } from './text.js'

/** The first columns or keys of a rejects file, which an import ignores. */
export const rejectNames: readonly string[] = ['rejected_line', 'rejected_reason', 'rejected_text']

export const maxHeaderRows = 20

/** The index of the first row that has the columns; -1 with `columns`, and undefined if there is none. */
export function findHeader(
  { records, problems }: Chunk<Cells>,
  rules: FieldRules,
): number | undefined {
  if (rules.columns) return records.length > 0 ? -1 : undefined
  const rows = records.slice(0, maxHeaderRows)
  const found = rows.findIndex(
    (row, index) => !problems.has(index) && missingIn(namesIn(row), rules).length === 0,
  )
  return found === -1 ? undefined : found
}

/** The index of the row that is probably the header, if none has the columns. */
export function likelyHeader(rows: readonly Cells[]): number {
  const likely = rows.findIndex((row) => namesIn(row).filter(Boolean).length > 1)
  return Math.max(0, likely)
}

/**
 * @param index see `findHeader`
 * @throws {PlantsError} `input` for a column that is missing, or there twice
 */
export function headerAt(
  index: number | undefined,
  { records, lines, problems }: Chunk<Cells>,
  rules: FieldRules,
  source: string,
): { header: Header; skipped: FormatReader['skipped'] } {
  const row = index ?? likelyHeader(records)
  const line = lines[Math.max(0, row)]
  const why = index === undefined && problems.get(row)
  if (why) throw inputError(`The header of ${source} cannot be read: ${why.message}`, chooseColumns)
  const names = namesIn(index === -1 ? must(rules.columns) : must(records[row]))
  const missing = missingIn(names, rules)
  if (missing.length > 0) {
    const { map } = rules
    const wanted = missing
      .map((field) => (map[field] ? `${field} (${listOf([map[field]])})` : field))
      .join(' and ')
    const within = records.length < maxHeaderRows ? '' : ` in its first ${maxHeaderRows} rows`
    const what = `no column${missing.length > 1 ? 's' : ''} for ${wanted}`
    const only = listOf(asMapped(names))
    throw inputError(
      index === -1
        ? `${source} has ${what}: its columns are named ${only}`
        : `${source} has ${what}${within}: line ${line} has only ${only}`,
      hintFor(missing, rules),
    )
  }
  const columns = new Map<FieldName, number>()
  for (const field of fieldNames) {
    const found = columnsOf(field, names, rules)
    if (found[0] !== undefined) columns.set(field, found[0])
    const called = found.map((column) => must(names[column]))
    if (called.length > 1) throw severalColumns(field, called, source)
  }
  const read = [...columns.values()]
  const kept = [...names.keys()].filter((column) => !rejectNames.includes(must(names[column])))
  const isIgnored = (name: string) =>
    plain(name) === '' || fieldNames.some((one) => one === plain(name) && rules.map[one] === '')
  const others = kept.filter((column) => !read.includes(column) && !isIgnored(must(names[column])))
  const header = { names, columns, others, kept }
  return { header, skipped: row > 0 ? { rows: row, header: must(line) } : undefined }
}

function severalColumns(field: FieldName, names: readonly string[], source: string): PlantsError {
  const areDifferent = new Set(names).size === names.length
  return inputError(
    `Several columns of ${source} may be the ${field}: ${listOf(names)}`,
    areDifferent
      ? `Choose one with --map ${field}=COLUMN, or give each a different name`
      : 'Give each a different name',
  )
}

function hintFor(missing: readonly FieldName[], { map }: FieldRules): string {
  if (missing.some((field) => map[field]))
    return 'Correct --map: it names a column that is not there'
  return missing.join() === 'id' ? chooseIdColumn : chooseColumns
}

const chooseIdColumn =
  'Choose its column with --map id=COLUMN, or number the plants with --id-from next, and add --match name if some are stored'
const chooseColumns =
  'Choose columns with --map id=COLUMN,name=COLUMN, or name those of a table without a header with --columns id,name'

function missingIn(names: readonly string[], rules: FieldRules): FieldName[] {
  const has = (field: FieldName) => columnsOf(field, names, rules).length > 0
  const isPatch = rules.isPartial && (has('name') || has('tag'))
  return fieldNames.filter((name) => {
    const mayLack =
      name === 'id' ? (rules.idFrom ?? rules.match) !== undefined : isPatch || name === 'tag'
    return !has(name) && !(mayLack && !rules.map[name])
  })
}

/** Without regard to case and white space, unless `map` names one exactly. */
function columnsOf(field: FieldName, names: readonly string[], { map }: FieldRules): number[] {
  const wanted = map[field] ?? field
  if (wanted === '') return []
  const isExact = map[field] !== undefined && names.includes(wanted)
  const isWanted = (name: string) => (isExact ? name === wanted : plain(name) === plain(wanted))
  return names.flatMap((name, column) => (isWanted(name) ? column : []))
}

function plain(name: string): string {
  return collapseWhiteSpace(name).toLowerCase()
}

function namesIn(row: Cells): string[] {
  return row.map((cell) => (typeof cell === 'string' ? cell : (cell?.text ?? '')))
}

/** As an option can name them: a line break is a space. */
function asMapped(names: readonly string[]): string[] {
  return names.map(collapseWhiteSpace)
}

export function listOf(names: readonly string[]): string {
  const some = names.filter(Boolean)
  if (some.length === 0) return 'empty cells'
  const shown = some.slice(0, 8).map((name) => JSON.stringify(shorten(name)))
  return `${shown.join(', ')}${some.length > shown.length ? ` and ${some.length - shown.length} more` : ''}`
}
