import { type FieldName, fieldNames } from '../../plant/plant.js'
import { inputError, must } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import { foldText } from '../../stores/common/search.js'
import type { Cells, Chunk, FieldRules, Header } from './chunk.js'

/** The first columns or keys of a rejects file, which an import ignores. */
export const rejectNames: readonly string[] = ['rejected_line', 'rejected_reason', 'rejected_text']

export const maxHeaderRows = 20

/** The index of the first row that has the columns; -1 with `columns`, and undefined if there is none. */
export function findHeader({ records }: Chunk<Cells>, rules: FieldRules): number | undefined {
  if (rules.columns) return records.length > 0 ? -1 : undefined
  const found = records.findIndex((row) => missingIn(namesIn(row), rules).length === 0)
  return found === -1 ? undefined : found
}

/**
 * @param index see `findHeader`
 * @throws {PlantsError} `input` for a column that is missing, or there twice
 */
export function headerAt(
  index: number | undefined,
  rows: Chunk<Cells>,
  rules: FieldRules,
  source: string,
): Header {
  const row = index ?? likelyHeader(rows)
  const names = row === -1 ? must(rules.columns) : namesIn(must(rows.records[row]))
  const missing = missingIn(names, rules)
  if (missing.length > 0) {
    const { map } = rules
    const wanted = missing.map((field) =>
      map[field] ? `${field} (${listOf([map[field]])})` : field,
    )
    const place = row === -1 ? 'it' : `line ${rows.lines[row]}`
    throw inputError(
      `${source} has no column for ${wanted.join(' and ')}: ${place} has only ${listOf(names)}`,
      'Choose columns with --map id=COLUMN,name=COLUMN, or name those of a table without a header with --columns id,name. Plants without ids: --id-from next',
    )
  }
  const columns = new Map<FieldName, number>()
  for (const field of fieldNames) {
    const [column, ...others] = columnsOf(field, names, rules)
    if (column !== undefined) columns.set(field, column)
    if (others.length > 0)
      throw inputError(
        `Several columns of ${source} may be the ${field}`,
        `Choose one with --map ${field}=COLUMN, or give each a different name`,
      )
  }
  const read = [...columns.values()]
  const repeated = [...names.keys()].filter((column) => !rejectNames.includes(must(names[column])))
  const others = repeated.filter((column) => {
    const name = plain(must(names[column]))
    const isIgnored = fieldNames.some((field) => field === name && rules.map[field] === '')
    return name !== '' && !isIgnored && !read.includes(column)
  })
  return { names, columns, others, repeated }
}

function likelyHeader({ records }: Chunk<Cells>): number {
  return Math.max(
    0,
    records.findIndex((cells) => namesIn(cells).filter(Boolean).length > 1),
  )
}

function missingIn(names: readonly string[], rules: FieldRules): FieldName[] {
  const has = (field: FieldName) => columnsOf(field, names, rules).length > 0
  const mayLack = {
    id: (rules.idFrom ?? rules.match) !== undefined,
    name: rules.ifExists === 'update' && has('tag'),
    tag: true,
  }
  return fieldNames.filter((field) => !has(field) && (rules.map[field] || !mayLack[field]))
}

/** As a search compares texts, unless `map` names one exactly. */
function columnsOf(field: FieldName, names: readonly string[], { map }: FieldRules): number[] {
  const wanted = map[field] ?? field
  if (wanted === '') return []
  const isExact = map[field] !== undefined && names.includes(wanted)
  const folded = plain(wanted)
  const isWanted = (name: string) => (isExact ? name === wanted : plain(name) === folded)
  return names.flatMap((name, column) => (isWanted(name) ? column : []))
}

/** Without soft hyphens and spaces without a width, which nobody sees. */
function plain(name: string): string {
  return foldText(
    name
      .replace(/[\u00ad\u200b]/g, '')
      .trim()
      .replace(/\s+/g, ' '),
  )
}

function namesIn(row: Cells): string[] {
  return row.map((cell) => (typeof cell === 'string' ? cell : (cell?.text ?? '')))
}

export function listOf(names: readonly string[]): string {
  const some = names.filter(Boolean)
  const shown = some.slice(0, 8).map((name) => JSON.stringify(shorten(name)))
  const others = some.length - shown.length
  return `${shown.join(', ')}${others > 0 ? ` and ${others} more` : ''}`
}
