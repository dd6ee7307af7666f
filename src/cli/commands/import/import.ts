import { Option } from 'commander'
import {
  createValueError,
  parseFilePath,
  parseNonEmptyString,
} from '../../../config/option-values.js'
import { createUsageError } from '../../../errors.js'
import { foldLabel } from '../../../formats/names.js'
import { formatNames } from '../../../formats/write.js'
import type { ImportInput, ImportPlan } from '../../../import/inputs.js'
import { fieldNames } from '../../../plant/fields.js'
import { parseFileEnding, spreadsheetEndings } from '../../../platform/file-names.js'
import type { Io } from '../../../platform/io.js'
import { existsPolicies } from '../../../stores/change.js'
import { findKind } from '../../../stores/kinds.js'
import { leaveOutHint, type PlantsCommand } from '../../command.js'
import { type CommandContext, type ContextOptions, readStoreContext } from '../../context.js'
import { addRetry } from '../../options.js'

type ImportOptions = ContextOptions & Partial<ImportPlan> & Pick<ImportPlan, 'ifExists'>

export function define(command: PlantsCommand): void {
  command
    .description(
      'Create plants from files or stdin: NDJSON, JSON, CSV, TSV or a workbook (.xlsx, .ods). ' +
        'On a terminal, the command prompts for everything that it cannot find in the files. ' +
        'An import may be stopped at any moment: the same command skips what is stored, and stores the rest.',
    )
    .argument('[files...]', 'files to read, plain or compressed with gzip (.gz), or "-" for stdin')
    .repeatableValue(
      '--map <fields>',
      'columns or keys to read, such as id=Nr,name=Kind,tag=Family, or id= to ignore the ids',
      parseMap,
    )
    .choice(
      '--if-exists <what>',
      'what to do with a record whose id exists: "same" rejects it if it differs from the plant, "skip" skips it, "update" changes the plant',
      existsPolicies,
      {
        defaultValue: 'same',
      },
    )
    .addOption(
      new Option(
        '--sync',
        'make the store equal to the list: change plants as "update" does, and delete those that the list does not have',
      ).conflicts(['ifExists', 'rejects']),
    )
    .option('-y, --yes', 'delete without confirmation, with --sync')
    .value(
      '--rejects <path>',
      'write the rejected records and the reasons to this new file: .csv for a table, .ndjson for JSON',
      parseRejectsPath,
    )
    .addOption(
      new Option('--dry-run', 'show what would be imported, without importing it').conflicts(
        'atomic',
      ),
    )
    .option(
      '--atomic',
      'import all plants or none; until it ends, other programs cannot write to the store',
    )
  addReadingOptions(command)
  addRetry(command.optionsGroup('Running:'))
    .addExamples(
      'plants import list.xlsx',
      'plants import stock.xlsx --map id=No,name=Kind',
      'plants import list.csv --by-name --sync --dry-run',
    )
    .handler((options: ImportOptions, io, files: string[]) => {
      const hasPolicy = options.sync || command.getOptionValueSource('ifExists') !== 'default'
      return importPlants({ ...options, hasPolicy }, io, files, command.argv)
    })
}

function addReadingOptions(command: PlantsCommand): void {
  command
    .optionsGroup('Reading:')
    .choice(
      '--format <name>',
      'format of the input; by default, detected from the file name or the content',
      formatNames,
      { hint: 'Leave it out for a workbook, which is recognized by its content' },
    )
    .option(
      '--by-name',
      'match the whole list with the store: a record without an id stands for the plant with its name, and a new one gets the next id',
    )
    .value(
      '--key <name>',
      'key of the outermost JSON object that holds the list of plants',
      parseNonEmptyString,
    )
    .value(
      '--columns <names>',
      'names for the columns of a table without a header, such as id,name,tag',
      parseColumns,
    )
    .value(
      '--delimiter <character>',
      'character between the cells of a table, or "tab" for a tab',
      parseDelimiter,
    )
    .option('--no-quotes', 'read quotes in a table as ordinary characters')
    .value(
      '--encoding <name>',
      'encoding of the input, such as windows-1252 (default: UTF-8); plants help tables lists more',
      parseNonEmptyString,
    )
    .value(
      '--sheet <name>',
      'name or number of the sheet to read from a workbook',
      parseNonEmptyString,
    )
}

async function importPlants(
  options: ImportOptions,
  io: Io,
  files: string[],
  argv: readonly string[],
): Promise<void> {
  const context = await readStoreContext(options, io)
  if (options.atomic && !findKind(context.address).isDirect)
    throw createUsageError(
      `--atomic is not supported at ${context.address.name}: a service cannot roll back`,
      'Leave it out',
    )
  if (files.length === 0 && !io.stdin.isPiped)
    throw createUsageError(
      'import needs a file to read, or plants on stdin',
      'For example: plants import list.xlsx',
    )
  const plan = buildPlan(options, files, context)
  const { runImport } = await import('./run-import.js')
  await runImport(plan, context, argv)
}

/** @param files without files, stdin is read */
function buildPlan(
  options: ImportOptions,
  files: readonly string[],
  { io }: CommandContext,
): ImportPlan {
  return {
    ...options,
    inputs: (files.length === 0 ? ['-'] : files).map((file) => resolveInput(file, io)),
    map: options.map ?? {},
    ifExists: options.sync ? 'update' : options.ifExists,
    rejects: options.rejects && io.resolvePath(options.rejects),
  }
}

function resolveInput(file: string, io: Io): ImportInput {
  if (file === '-') return { path: '-', name: 'stdin' }
  const path = parseNonEmptyString('The name of a file to import', file)
  // A URL may contain a secret, so the message does not repeat it.
  if (/^[a-z][a-z\d+.-]+:\/\//i.test(path))
    throw createUsageError(
      'import reads files, not URLs',
      'Download it, and give the path of the file',
    )
  return { path: io.resolvePath(path), name: file }
}

/**
 * A rejects file is a table or NDJSON, whatever its name. A spreadsheet would not open a table with
 * the name of a workbook.
 */
function parseRejectsPath(flag: string, text: string): string {
  const { ending, isGzip } = parseFileEnding(text)
  if (text === '-' || isGzip || spreadsheetEndings.includes(ending))
    throw createUsageError(`${flag} writes a text file`, `Name a table: ${flag} rejected.csv`)
  return parseFilePath(flag, text)
}

function parseColumns(flag: string, text: string): string[] {
  return parseNonEmptyString(flag, text)
    .split(',')
    .map((name) => name.trim())
}

function parseDelimiter(flag: string, text: string): string {
  const character = text === 'tab' ? '\t' : text
  if (!/^[^\w"\r\n\0\x80-\uffff]$/.test(character))
    throw createValueError(flag, 'one character such as ; or |, or the word tab', text, "';'")
  return character
}

/**
 * Parses `id=Nr,name=Genus,name=Species`. A column may have "," and "=" in its name, so the option
 * is divided only before the name of a field and "=".
 */
function parseMap(
  flag: string,
  text: string,
  previousMap: ImportPlan['map'] = {},
): ImportPlan['map'] {
  const map = { ...previousMap }
  for (const pair of text.split(/,(?=\s*(?:id|name|tag)\s*=)/)) {
    const [name = '', ...parts] = pair.split('=')
    const field = fieldNames.find((fieldName) => fieldName === name.trim())
    if (!field || parts.length === 0)
      throw createValueError(
        flag,
        'one or more of id=COLUMN, name=COLUMN and tag=COLUMN',
        text,
        'name=Kind,tag=Family',
      )
    const column = parts.join('=').trim()
    const columns = map[field] ?? []
    const mayJoin = field === 'name' && columns.length > 0 && column !== ''
    if (map[field] !== undefined && !mayJoin)
      throw createUsageError(`${flag} names two columns for the ${field}`, leaveOutHint)
    if (columns.map(foldLabel).includes(foldLabel(column)))
      throw createUsageError(`${flag} names one column twice for the ${field}`, leaveOutHint)
    map[field] = column === '' ? [] : [...columns, column]
  }
  return map
}
