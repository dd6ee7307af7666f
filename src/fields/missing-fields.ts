/* The errors about columns of a table, or keys of a list, whose fields are missing or not clear. */
import { PlantsError } from '../errors.js'
import { listNames } from '../formats/names.js'
import type { Cells, TableHead } from '../formats/reader.js'
import { type ColumnAnswers, formatOptions } from './column-answers.js'
import { proposeColumns } from './column-questions.js'
import type { FieldOptions, WantedName } from './options.js'
import { describeColumns } from './sample.js'

/** The first rows of an input, whatever its columns are, about which the dialogue asks. */
export interface Sample {
  noun: 'column' | 'key'
  /**
   * A workbook in which no sheet has the columns has a head for each sheet. The first row of objects
   * has their keys.
   */
  heads: readonly TableHead[]
}

/** Fields are missing, or may be in several columns, which a person can tell. */
export class ColumnsError extends PlantsError {
  constructor(
    message: string,
    hint: string,
    readonly sample: Sample,
    details?: readonly string[],
  ) {
    super('input', message, { hint, details })
  }
}

interface FieldSource {
  /** The file, for messages. */
  name: string
  sample: Sample
  /** The first rows, and the index of the one with the names that are there instead. */
  rows: readonly Cells[]
  headerRow: number
  /** The line of these names; undefined for JSON, and with `--columns`. */
  line?: number | undefined
  /** The sheet that has them, and all sheets of its workbook. */
  sheet?: string | undefined
  sheets?: readonly string[] | undefined
}

export function createMissingFieldsError(
  missingNames: readonly WantedName[],
  options: FieldOptions,
  source: FieldSource,
): PlantsError {
  const { name, sample, rows, headerRow } = source
  const { noun } = sample
  const nouns = missingNames.length === 1 ? noun : `${noun}s`
  const answers = proposeColumns({ noun, rows, headerRow }, options)
  return new ColumnsError(
    `${name} has no ${nouns} ${listNames(missingNames.map((wanted) => wanted.name))}`,
    chooseHint(missingNames, options, source, answers),
    sample,
    describeSource(source, answers?.columns !== undefined),
  )
}

function chooseHint(
  missingNames: readonly WantedName[],
  { map }: FieldOptions,
  { sample: { noun, heads }, sheet }: FieldSource,
  answers: ColumnAnswers | undefined,
): string {
  const mapped = missingNames.find(({ field }) => map[field]?.length)
  if (mapped) return `Correct ${mapped.field}=${noun.toUpperCase()} in --map. ${askHint}`
  if (answers) {
    const isOnlySheet = heads.filter(({ rows }) => rows.length > 0).length < 2
    const options = formatOptions(isOnlySheet ? answers : { sheet, ...answers })
    return `${askHint}. Without one, add ${options}`
  }
  const lacksOnlyIds = missingNames.every(({ field }) => field === 'id')
  return lacksOnlyIds ? 'Add --by-name' : 'See: plants help tables'
}

const askHint = 'On a terminal, the import of a file asks'

/** Describes what is there instead, in lines below the message. */
function describeSource(
  { sample, rows, headerRow, line, sheet, sheets = [] }: FieldSource,
  isHeaderless: boolean,
): string[] {
  const names = describeColumns(rows, headerRow).map((column) => column.name)
  const position = line === undefined ? `${sample.noun}s` : `line ${line}`
  const sheetClause = sheet === undefined ? '' : ` of the sheet ${listNames([sheet])}`
  const verdict = isHeaderless ? ' is no header' : ''
  const details = [`${position}${sheetClause}${verdict}: ${listNames(names) || 'none'}`]
  if (sheets.length > 1) details.push(`sheets: ${sheets.slice(0, maxSheets).join(', ')}`)
  return details
}

const maxSheets = 8
