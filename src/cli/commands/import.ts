import { Option } from 'commander'
import { invalidValue, parseCount, parseText, wholeNumber } from '../../config/option-values.js'
import { fieldNames } from '../../plant/plant.js'
import { formatNames } from '../../plant/records.js'
import { isWindows, usageError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { shellWord } from '../../platform/shell.js'
import { existsPolicies } from '../../stores/common/change.js'
import { defaultConcurrency } from '../../stores/http/http-options.js'
import { schemes } from '../../stores/registry.js'
import type { FieldRules } from '../../transfer/formats/chunk.js'
import { commonEncodings, encodingOf } from '../../transfer/formats/text.js'
import type { PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import type { ImportOptions } from '../import-options.js'
import { addRetry, parseId, warnOfUselessRetry } from '../options.js'

export function defineImport(command: PlantsCommand, io: Io): void {
  command
    .description(
      'Create plants from files or stdin: NDJSON, JSON, CSV, TSV or an Excel workbook. If an import is interrupted, the same command resumes it.',
    )
    .argument('[files...]', 'files to read, also .gz; "-" for stdin')
    .choice(
      '--if-exists <what>',
      'when the id exists; by default error, or same with --match',
      existsPolicies,
    )
    .value('--rejects <path>', 'write rejected records and reasons to this file', parseText)
    .addOption(
      new Option('--dry-run', 'only report what would be done').conflicts(['atomic', 'restart']),
    )
    .addOption(
      new Option('--atomic', 'all plants or none; other writers wait').conflicts('restart'),
    )
    .optionsGroup('Reading:')
    .choice('--format <name>', 'by default by the name of the file, or its content', formatNames)
    .value('--map <fields>', 'the columns: id=Nr,name=Kind,tag=Family; id= ignores ids', parseMap)
    .value('--id-from <int64>', 'number plants without ids from this one, or next', parseIdFrom)
    .choice('--match <field>', 'a record without an id is the plant with its name', ['name'])
    .option('--columns <names>', 'those of a table without a header: id,name,tag', parseColumns)
    .value('--delimiter <character>', 'of a table: one character, or tab', parseDelimiter)
    .value('--encoding <name>', 'such as windows-1252; by default UTF-8', parseEncoding)
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
    .handler((options: Given, files: string[]) => importPlants(files, withPolicy(options), io))
}

type Given = Omit<ImportOptions, 'ifExists'> & Partial<Pick<ImportOptions, 'ifExists'>>

/** A plant that is matched exists: that alone is no reason to reject its record. */
function withPolicy(options: Given): ImportOptions {
  return { ...options, ifExists: options.ifExists ?? (options.match ? 'same' : 'error') }
}

export async function importPlants(files: string[], options: ImportOptions, io: Io): Promise<void> {
  const context = await CommandContext.from(options, io)
  const { address, reporter } = context
  const { format, delimiter, columns, map, idFrom, match, rejects } = options
  if (options.atomic && address.scheme === 'http')
    throw usageError(
      `--atomic is not supported at ${address.name}: a service cannot roll back what was created`,
      'Leave it out: an interrupted import can be resumed',
    )
  const ofTable = columns ? '--columns' : delimiter === undefined ? undefined : '--delimiter'
  if (ofTable && (format === 'json' || format === 'ndjson'))
    throw usageError(
      `${ofTable} applies to csv and tsv, but not to ${format}`,
      'Leave out one of them',
    )
  if (map?.id === '' && idFrom === undefined && !match)
    throw usageError('--map id= leaves the plants without ids', 'Assign ids: --id-from next')
  if (rejects === '-')
    throw usageError(
      'Rejected records go to a file',
      isWindows ? 'Name a file' : 'For stdout: --rejects /dev/stdout',
    )
  if (rejects !== undefined && /\.xlsx$/i.test(rejects))
    throw usageError(
      'Rejected rows of a workbook are written as CSV',
      'For example: --rejects rejected.csv',
    )
  const rejectsPath = rejects === undefined ? undefined : io.resolvePath(rejects)
  if (rejectsPath !== undefined && (await context.isStoreFile(rejectsPath)))
    throw usageError(
      `${rejectsPath} is the store itself, or belongs to it`,
      'Choose another file with --rejects',
    )
  const inputs = inputsOf(files, io)
  if (options.concurrency && address.scheme !== 'http')
    await reporter.warn(
      `--concurrency applies only to services, and has no effect on ${schemes[address.scheme].noun}`,
    )
  await warnOfUselessRetry(options.retry, address, reporter)
  const { runImport } = await import('../import-run.js')
  await runImport(
    inputs,
    { ...options, ...(rejectsPath !== undefined && { rejects: rejectsPath }) },
    context,
  )
}

function inputsOf(files: string[], io: Io): { path: string; name: string }[] {
  if (files.length === 0 && !io.stdin.isPiped)
    throw usageError(
      'import needs a file, or plants on stdin',
      'For example: plants import plants.ndjson',
    )
  const names = files.length === 0 ? ['-'] : files
  if (names.filter((name) => name === '-').length > 1)
    throw usageError('Stdin can be read only once', 'Use "-" only once')
  return names.map((name) =>
    name === '-'
      ? { path: '-', name: 'stdin' }
      : { path: io.resolvePath(parseText('file', name)), name },
  )
}

/** A label of the Encoding Standard, such as `cp1252` for windows-1252. */
function parseEncoding(flag: string, text: string): string {
  const encoding = encodingOf(text)
  if (encoding !== undefined) return encoding
  const message = `${flag} must be an encoding such as ${commonEncodings.join(', ')}, but was ${JSON.stringify(shorten(text))}`
  throw usageError(message, 'Its names are at https://encoding.spec.whatwg.org/#names-and-labels')
}

/** One ASCII character other than a letter, a digit, `_` or `"`, or `tab`. */
function parseDelimiter(flag: string, text: string): string {
  const character = text === 'tab' || text === '\\t' ? '\t' : text
  if (!/^[^\w"\r\n\0\x80-\uffff]$/.test(character))
    throw invalidValue(flag, 'one character such as ; or |, or the word tab', text, "';'")
  return character
}

function parseIdFrom(flag: string, text: string): bigint | 'next' {
  return text === 'next' ? text : parseId(flag, text)
}

function parseColumns(text: string): string[] {
  return text.split(',').map((name) => name.trim())
}

/** `name=CommonName,tag=Family`; a field without a source is not read, and a source may have commas */
function parseMap(flag: string, text: string): FieldRules['map'] {
  const names = fieldNames.join('|')
  const entry = new RegExp(`^\\s*(${names})\\s*=\\s*([^,]*?|[^=]*[^=,])\\s*$`)
  const parts = text.split(new RegExp(`,(?=\\s*(?:${names})\\s*=)`))
  const entries = parts.map((part) => entry.exec(part) ?? [])
  const fields = entries.map(([, field]) => field)
  const isNameless = entries.some(([, field, source]) => field === 'name' && source === '')
  if (isNameless || fields.includes(undefined) || new Set(fields).size < fields.length) {
    const rule = 'must map a field of the input to id, name or tag'
    throw usageError(
      `${flag} ${rule}, but was ${JSON.stringify(shorten(text))}`,
      reversedMap(flag, text) ?? `For example: ${flag} name=CommonName,tag=Family`,
    )
  }
  return Object.fromEntries(entries.map(([, field = '', source = '']) => [field, source]))
}

/** For `Nr=id,Art=name`, which has the fields last. */
function reversedMap(flag: string, text: string): string | undefined {
  const pairs = text.split(',').map((pair) => pair.split('=').map((word) => word.trim()))
  const fields = pairs.map(([, field]) => field)
  const areFields = fields.every((field) => fieldNames.some((name) => name === field))
  if (!areFields || new Set(fields).size < fields.length || pairs.some((pair) => pair.length !== 2))
    return undefined
  return `Use: ${flag} ${shellWord(pairs.map(([source, field]) => `${field}=${source}`).join())}`
}
