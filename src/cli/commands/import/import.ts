import { Option } from 'commander'
import { invalidValue, parseCount, parseText, wholeNumber } from '../../../config/option-values.js'
import { usageError } from '../../../errors.js'
import { formatNames } from '../../../formats/write.js'
import type { ImportInput, ImportPlan } from '../../../import/inputs.js'
import { fieldNames } from '../../../plant/fields.js'
import type { Io } from '../../../platform/io.js'
import { existsPolicies } from '../../../stores/change.js'
import { defaultConcurrency } from '../../../stores/http/http-options.js'
import { hasCapability, requireCapability } from '../../../stores/kinds.js'
import { leaveOut, type PlantsCommand } from '../../command.js'
import { CommandContext } from '../../command-context.js'
import { addRetry, parseId } from '../../options.js'
import type { ContextOptions } from '../../settings-context.js'

type ImportOptions = ContextOptions & Partial<ImportPlan> & Pick<ImportPlan, 'ifExists'>

export function define(command: PlantsCommand): void {
  command
    .description(
      'Create plants from files or stdin: NDJSON, JSON, CSV, TSV or an Excel workbook. ' +
        'On a terminal, it asks for what a file does not say. ' +
        'The same command resumes an interrupted import.',
    )
    .argument('[files...]', 'files to read, also .gz; "-" for stdin')
    .choice('--if-exists <what>', 'when the id exists', existsPolicies, 'same')
    .value('--rejects <path>', 'write rejected records and reasons to this file', parseText)
    .addOption(
      new Option('--dry-run', 'only report what would be done').conflicts(['atomic', 'restart']),
    )
    .addOption(
      new Option('--atomic', 'all plants or none; other writers wait').conflicts('restart'),
    )
    .optionsGroup('Reading:')
    .choice('--format <name>', 'by default by the name of the file, or its content', formatNames)
    .repeatableValue(
      '--map <fields>',
      'the columns: id=Nr,name=Kind,tag=Family; id= ignores ids',
      parseMap,
    )
    .value('--id-from <int64>', 'number plants without ids from this one, or next', (flag, text) =>
      text === 'next' ? text : parseId(flag, text),
    )
    .choice('--match <field>', 'a record without an id is the plant with its name', ['name'])
    .option('--columns <names>', 'those of a table without a header: id,name,tag', (text) =>
      text.split(',').map((name) => name.trim()),
    )
    .value('--delimiter <character>', 'of a table: one character, or tab', parseDelimiter)
    .option('--no-quotes', 'quotes are ordinary characters in a table')
    .value('--encoding <name>', 'such as windows-1252; by default UTF-8', parseText)
    .value('--sheet <name>', 'of a workbook: its name or number', parseText)
    .optionsGroup('Running:')
    .value('--max-errors <count>', 'stop after so many rejected plants', parseCount)
    .option('--restart', 'begin again instead of resuming')
    .value(
      '--concurrency <count>',
      `requests in flight to a service; by default ${defaultConcurrency}`,
      wholeNumber('a whole number', 1, 1024, '64'),
    )
  addRetry(command)
    .addExamples(
      'plants import plants.ndjson',
      'plants import stock.xlsx --map name=CommonName,tag=Family --id-from next',
      'plants import list.csv --match name --id-from next --if-exists update --dry-run',
    )
    .handler((options: ImportOptions, io, files: string[]) =>
      importPlants(options, io, files, command.argv),
    )
}

async function importPlants(
  options: ImportOptions,
  io: Io,
  files: string[],
  words: readonly string[],
): Promise<void> {
  const context = await (await CommandContext.from(options, io)).forWrites()
  const { address } = context
  if (options.atomic) requireCapability(address, 'transactions', '--atomic')
  if (files.length === 0 && !io.stdin.isPiped)
    throw usageError(
      'import needs a file, or plants on stdin',
      'For example: plants import plants.ndjson',
    )
  // A dry run does not ask a service for its names: a record without an id is a new plant.
  const areNew = options.match && options.dryRun && !hasCapability(address, 'direct')
  const { map = {}, maxErrors = Infinity, idFrom = areNew ? 'next' : undefined } = options
  const inputs = (files.length === 0 ? ['-'] : files).map((file) => resolveInput(file, io))
  const rejects = options.rejects && io.resolvePath(options.rejects)
  const { runImport } = await import('./run-import.js')
  await runImport({ ...options, rejects, inputs, map, idFrom, maxErrors }, context, words)
}

function resolveInput(file: string, io: Io): ImportInput {
  if (file === '-') return { path: '-', name: 'stdin' }
  return { path: io.resolvePath(parseText('file', file)), name: file }
}

function parseDelimiter(flag: string, text: string): string {
  const character = text === 'tab' ? '\t' : text
  if (!/^[^\w"\r\n\0\x80-\uffff]$/.test(character))
    throw invalidValue(flag, 'one character such as ; or |, or the word tab', text, "';'")
  return character
}

/** A column may have "," and "=" in its name: a pair begins with the name of a field. */
function parseMap(flag: string, text: string, before: ImportPlan['map'] = {}): ImportPlan['map'] {
  const map = { ...before }
  for (const pair of text.split(/,(?=\s*(?:id|name|tag)\s*=)/)) {
    const [name = '', ...parts] = pair.split('=')
    const field = fieldNames.find((fieldName) => fieldName === name.trim())
    if (!field || parts.length === 0)
      throw invalidValue(
        flag,
        'pairs of id, name or tag and a column',
        text,
        'name=Kind,tag=Family',
      )
    if (map[field] !== undefined)
      throw usageError(`${flag} names two columns for the ${field}`, leaveOut)
    map[field] = parts.join('=').trim()
  }
  return map
}
