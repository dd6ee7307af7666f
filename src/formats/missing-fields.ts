/* The error for a table or a list that lacks a column or a key that an import needs. */
import { createInputError, type PlantsError } from '../errors.js'
import type { InputOptions } from './chunk.js'
import { idOptionsHint, listNames, type WantedName } from './columns.js'

interface FieldSource {
  /** The file, for messages. */
  name: string
  noun: 'column' | 'key'
  /** The names of the columns or keys that are there instead. */
  names: readonly string[]
  /** The line of these names; undefined for JSON, and with `--columns`. */
  line?: number | undefined
  /** The sheet that has them, and all sheets of its workbook. */
  sheet?: string | undefined
  sheets?: readonly string[]
}

const nameHints = {
  column: 'Add --map name=COLUMN,tag=COLUMN,id=COLUMN. On a terminal, the import of a file asks',
  key: 'Add --map name=KEY,tag=KEY,id=KEY. On a terminal, the import of a file asks',
}

export function createMissingFieldsError(
  missingNames: readonly WantedName[],
  options: InputOptions,
  source: FieldSource,
): PlantsError {
  const { name, noun } = source
  const nouns = missingNames.length === 1 ? noun : `${noun}s`
  const isOnlyId = missingNames.every(({ field }) => field === 'id') && !options.map.id?.length
  return createInputError(
    `${name} has no ${nouns} ${listNames(missingNames.map((wanted) => wanted.name))}`,
    isOnlyId ? idOptionsHint : nameHints[noun],
    undefined,
    describeSource(source),
  )
}

/** Describes what is there instead, in lines below the message. */
function describeSource({ noun, names, line, sheet, sheets = [] }: FieldSource): string[] {
  const position = line === undefined ? `${noun}s` : `line ${line}`
  const sheetClause = sheet === undefined ? '' : ` of the sheet ${listNames([sheet])}`
  const details = [`${position}${sheetClause}: ${listNames(names) || 'none'}`]
  if (sheets.length > 1) details.push(`sheets: ${sheets.slice(0, maxSheets).join(', ')}`)
  return details
}

const maxSheets = 8
