import { type FieldName, fieldNames, inWords, plantFields, textNames } from '../../plant/fields.js'
import { malformed, type PlantsError, shellOption } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import { must } from '../../platform/values.js'
import { type Cells, type Chunk, recordTooLarge } from './chunk.js'

export interface FieldRules {
  /** such as `CommonName` for `name`; by default the same name, and an empty one is not read */
  map: Partial<Record<FieldName, string>>
  /** of a table without a header */
  columns: readonly string[] | undefined
  /** of the first record without one, from which the others count up; `next` is above all ids of the store and the inputs */
  idFrom: bigint | 'next' | undefined
  /** texts may be missing, and then stay as they are stored */
  isPartial: boolean
}

export interface Header {
  /** as they are in the input; an unnamed column is empty */
  names: readonly string[]
  /** the columns of fields, those that are not there without */
  columns: ReadonlyMap<FieldName, number>
  /** unknown fields */
  others: readonly number[]
  /** the columns that a rejects file repeats */
  kept: readonly number[]
}

/** The first columns or keys of a rejects file, which an import ignores. */
export const rejectNames = ['rejected_line', 'rejected_reason', 'rejected_text'] as const

export const maxHeaderRows = 20

/** The first row that has the columns, or else the one that is most likely meant. */
export function findHeader(rows: readonly Cells[], rules: FieldRules): { index: number; isFound: boolean } {
  const index = rows.slice(0, maxHeaderRows).findIndex((row) => missingIn(namesIn(row), rules).length === 0)
  if (index !== -1) return { index, isFound: true }
  const likely = rows.findIndex((row) => namesIn(row).filter(Boolean).length > 1)
  return { index: Math.max(0, likely), isFound: false }
}

/** Throws `malformed` for a column that is there twice, and for columns of `--columns` that do not suffice. */
export function headerOf(row: Cells, rules: FieldRules, source: string): Header {
  const names = namesIn(row)
  while (names.at(-1) === '') names.pop()
  if (missingIn(names, rules).length > 0) throw missingColumns(names, `${source}: --columns has`, rules)
  const columns = new Map<FieldName, number>()
  for (const field of fieldNames) {
    const [column, ...others] = columnsOf(field, names, rules)
    if (column !== undefined) columns.set(field, column)
    if (others.length > 0)
      throw ambiguous(
        source,
        field,
        [column, ...others].map((one) => must(names[must(one)])),
      )
  }
  const isRead = new Set(columns.values())
  const all = names.map((_, column) => column)
  const isReject = (column: number) => rejectNames.some((name) => name === names[column])
  const isIgnored = (name: string) => fieldNames.some((field) => field === plain(name) && rules.map[field] === '')
  const others = all.filter((column) => {
    const name = must(names[column])
    return name !== '' && !isRead.has(column) && !isReject(column) && !isIgnored(name)
  })
  return { names, columns, others, kept: all.filter((column) => !isReject(column)) }
}

/** @param index of the row that is most likely meant */
export function missingHeader(rows: Chunk<Cells>, index: number, rules: FieldRules, source: string): PlantsError {
  if (rows.problems.get(index) === recordTooLarge) {
    const example = 'It must name the columns, for example: id,name,tag'
    return malformed(`The header of ${source} cannot be read: ${recordTooLarge.message}`, example)
  }
  const where = `${source} has no header: line ${rows.lines[index]} has`
  return missingColumns(namesIn(must(rows.records[index])), where, rules)
}

function missingColumns(names: readonly string[], where: string, rules: FieldRules): PlantsError {
  const missing = missingIn(names, rules)
  const wanted = missing.map((field) => {
    if (rules.map[field]) return `${JSON.stringify(shorten(rules.map[field]))} for ${field}`
    return rules.isPartial && field !== 'id' ? textNames.join(' or ') : field
  })
  const pairs = fieldNames.flatMap((field) => {
    const column = rules.map[field] ?? (missing.includes(field) ? 'COLUMN' : undefined)
    return column === undefined ? [] : `${field}=${column}`
  })
  const numbered = missing[0] === 'id' && rules.idFrom === undefined ? ', or number the plants with --id-from next' : ''
  const what = `${missing.length === 1 ? 'column' : 'columns'} ${inWords(wanted, 'and')}`
  return malformed(
    `${where} no ${what}, only ${listOf(names)}`,
    `Choose columns with${shellOption('map', pairs.join())}${numbered}`,
  )
}

function missingIn(names: readonly string[], rules: FieldRules): FieldName[] {
  const has = (field: FieldName) => columnsOf(field, names, rules).length > 0
  const isPatch = rules.isPartial && textNames.some(has)
  return plantFields.flatMap(({ name, isRequired }) => {
    const mayLack = name === 'id' ? rules.idFrom !== undefined : isPatch || !isRequired
    return has(name) || (mayLack && !rules.map[name]) ? [] : name
  })
}

/** Without regard to case and surrounding spaces, unless `--map` names one exactly. */
function columnsOf(field: FieldName, names: readonly string[], { map }: FieldRules): number[] {
  const wanted = map[field] ?? field
  if (wanted === '') return []
  const isExact = map[field] !== undefined && names.includes(wanted)
  const isWanted = (name: string) => (isExact ? name === wanted : plain(name) === plain(wanted))
  return names.flatMap((name, column) => (isWanted(name) ? column : []))
}

function plain(name: string): string {
  return name.trim().toLowerCase()
}

function namesIn(row: Cells): string[] {
  return row.map((cell) => (typeof cell === 'string' ? cell : (cell?.text ?? '')))
}

function ambiguous(source: string, field: FieldName, names: readonly string[]): PlantsError {
  const shown = names.slice(0, 8).map((name) => JSON.stringify(shorten(name)))
  const isSame = new Set(names).size < names.length
  const which = names.map((name) => `${field}=${shorten(name)}`)
  const hint = isSame ? 'Give each column a different name' : `Choose one with --map: ${inWords(which, 'or')}`
  return malformed(`Several columns of ${source} may be the ${field}: ${inWords(shown, 'and')}`, hint)
}

function listOf(names: readonly string[]): string {
  const some = names.filter(Boolean)
  if (some.length === 0) return 'empty cells'
  const shown = some.slice(0, 8).map((name) => JSON.stringify(shorten(name)))
  return `${shown.join(', ')}${some.length > shown.length ? ` and ${some.length - shown.length} more` : ''}`
}
