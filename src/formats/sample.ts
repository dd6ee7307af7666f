/*
 * Describes the columns of a table, or the keys of a list, whose fields are not clear: for the
 * error, and for the dialogue that asks a person about them.
 */
import { PlantsError } from '../errors.js'
import type { Cells, InputOptions, Sample } from './chunk.js'
import { isRejectsName, listNames, readNames, type WantedName } from './columns.js'
import { parseIdCell } from './parse-id-cell.js'

/** A column of a table, or a key of JSON. */
export interface Column {
  /** The number of the column, from 1 on, as `--map` takes it. */
  number: number
  /** The name in the header; empty if it has none. */
  name: string
  /** The cells below the header that are not empty. */
  values: readonly string[]
  /** Whether each row has a different integer. */
  hasUniqueIntegers: boolean
}

/**
 * Describes the columns without those of a rejects file, which have no field of a plant.
 *
 * @param headerRow the index of the header; -1 without one
 */
export function describeColumns(rows: readonly Cells[], headerRow: number): Column[] {
  const header = readNames(rows[headerRow])
  const records = rows.slice(headerRow + 1).map(readNames)
  const width = Math.max(0, ...rows.map((row) => row.length))
  return Array.from({ length: width }, (_, index) => index)
    .filter((index) => !isRejectsName(header[index] ?? ''))
    .map((index, position) => {
      const cells = records.map((row) => row[index] ?? '')
      const name = (header[index] ?? '').trim().replace(/\s+/g, ' ')
      const values = cells.filter((text) => text !== '')
      return { number: position + 1, name, values, hasUniqueIntegers: areUniqueIntegers(cells) }
    })
}

function areUniqueIntegers(cells: readonly string[]): boolean {
  const isUnique = new Set(cells.map(parseIdCell)).size === cells.length
  return cells.length > 0 && isUnique && cells.every(isInteger)
}

export function isInteger(cell: string): boolean {
  return typeof parseIdCell(cell) === 'bigint'
}

/** Fields are missing, or may be in several columns, which a person can tell. */
export class ColumnsError extends PlantsError {
  readonly sample: Sample

  constructor(message: string, hint: string, sample: Sample, details?: readonly string[]) {
    super('input', message, { hint, details })
    this.sample = sample
  }
}

interface FieldSource {
  /** The file, for messages. */
  name: string
  sample: Sample
  /** The names of the columns or keys that are there instead. */
  names: readonly string[]
  /** The line of these names; undefined for JSON, and with `--columns`. */
  line?: number | undefined
  /** The sheet that has them, and all sheets of its workbook. */
  sheet?: string | undefined
  sheets?: readonly string[]
}

export function createMissingFieldsError(
  missingNames: readonly WantedName[],
  options: InputOptions,
  source: FieldSource,
): PlantsError {
  const { name, sample } = source
  const { noun } = sample
  const nouns = missingNames.length === 1 ? noun : `${noun}s`
  return new ColumnsError(
    `${name} has no ${nouns} ${listNames(missingNames.map((wanted) => wanted.name))}`,
    chooseHint(missingNames, options, noun.toUpperCase()),
    sample,
    describeSource(source),
  )
}

/** @param value stands for the name of a column or a key */
function chooseHint(
  missingNames: readonly WantedName[],
  { map }: InputOptions,
  value: string,
): string {
  const mapped = missingNames.find(({ field }) => map[field]?.length)
  if (mapped) return `Correct ${mapped.field}=${value} in --map. ${askHint}`
  if (missingNames.every(({ field }) => field === 'id'))
    return `Add --map id=${value}, or without ids --by-name`
  return `Add --map name=${value},tag=${value},id=${value}. ${askHint}`
}

const askHint = 'On a terminal, the import of a file asks'

/** Describes what is there instead, in lines below the message. */
function describeSource({ sample, names, line, sheet, sheets = [] }: FieldSource): string[] {
  const position = line === undefined ? `${sample.noun}s` : `line ${line}`
  const sheetClause = sheet === undefined ? '' : ` of the sheet ${listNames([sheet])}`
  const details = [`${position}${sheetClause}: ${listNames(names) || 'none'}`]
  if (sheets.length > 1) details.push(`sheets: ${sheets.slice(0, maxSheets).join(', ')}`)
  return details
}

const maxSheets = 8
