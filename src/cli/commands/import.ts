import { fieldNames, fieldsInWords } from '../../plant/fields.js'
import { formatNames } from '../../plant/records.js'
import { malformed } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { invalidValue, parseConcurrency, parseCount, parseText } from '../../platform/values.js'
import { existsPolicies } from '../../stores/common/conflict.js'
import { defaultConcurrency } from '../../stores/common/store.js'
import { isOwn, schemes, takesCredential } from '../../stores/registry.js'
import { commonEncodings, encodingOf } from '../../transfer/formats/encoding.js'
import type { FieldRules } from '../../transfer/formats/header.js'
import { resolveSettings } from '../context.js'
import {
  defineCommand,
  dryRunOption,
  type OptionDefinition,
  parseId,
  pathOption,
  retryOption,
} from '../define-command.js'

const options = [
  {
    ...dryRunOption('create nothing, and report what would be created, updated and rejected'),
    conflicts: ['atomic', 'restart'],
  },
  { flags: '--atomic', description: 'create all plants or none; other writers wait meanwhile', conflicts: ['restart'] },
  {
    group: 'Reading the file',
    flags: '--format <name>',
    description: 'ndjson, json (an array), csv or tsv; by default by the name of the file, or its content',
    choices: formatNames,
  },
  {
    flags: '--sheet <name>',
    description: 'the sheet of a workbook: its name or number; by default the only one that has the columns of plants',
    parse: parseText,
  },
  {
    flags: '--encoding <name>',
    description: 'such as windows-1252, utf-16le or shift_jis; by default that of a byte order mark, else UTF-8',
    values: commonEncodings,
    parse: parseEncoding,
  },
  {
    flags: '--delimiter <character>',
    description: 'the delimiter of a table: one character, or tab; by default detected from the first lines',
    values: [',', ';', 'tab', '|'],
    parse: parseDelimiter,
  },
  {
    flags: '--columns <names>',
    description: 'the columns of a table without a header: id,name,tag',
    parse: parseColumns,
  },
  {
    flags: '--map <fields>',
    description: `the fields of the input for ${fieldsInWords}: name=CommonName,tag=Family; id= ignores the ids of the input`,
    parse: parseMap,
  },
  {
    flags: '--id-from <int64>',
    description: 'assign ids to plants that have none, starting at this one, or at next: the greatest id plus 1',
    values: ['next'],
    parse: parseIdFrom,
  },
  {
    group: 'Existing ids',
    flags: '--if-exists <what>',
    description: 'when the id exists: error, skip, same (skip equal plants) or update (change what the record has)',
    choices: existsPolicies,
    default: 'error',
  },
  {
    group: 'Errors',
    flags: '--max-errors <count>',
    description: 'stop after this many rejected plants',
    parse: parseCount,
  },
  pathOption('--rejects <path>', 'write the rejected records to this file, with their lines and the reasons'),
  { group: 'Resuming', flags: '--restart', description: 'begin again instead of resuming an interrupted import' },
  {
    group: 'Services',
    flags: '--concurrency <count>',
    description: `maximum number of requests in flight to a service; by default ${defaultConcurrency}`,
    parse: parseConcurrency,
  },
  retryOption,
] as const satisfies readonly OptionDefinition[]

export const importPlants = defineCommand({
  name: 'import',
  description:
    'Create plants from files or stdin: NDJSON, JSON, CSV, TSV or an Excel workbook. If an import is interrupted, the same command resumes it.',
  arguments: [{ name: '[files...]', description: 'files to read, also .gz; "-" for stdin', values: 'file' }],
  options,
  examples: [
    'plants import plants.ndjson',
    'plants import stock.xlsx --map name=CommonName,tag=Family --id-from next',
    'plants import plants.ndjson --if-exists update --dry-run',
  ],
  async run({ args, flags }, io) {
    const settings = await resolveSettings(flags, io)
    const { store } = settings
    const { format, sheet, encoding, delimiter, columns, map = {}, idFrom, ifExists, maxErrors = Infinity } = flags
    if (flags.atomic && !isOwn(store))
      throw malformed(
        `--atomic is not supported at ${store.name}: a service cannot roll back what was created`,
        'Leave it out: an interrupted import can be resumed',
      )
    const ofTable = columns ? '--columns' : delimiter === undefined ? undefined : '--delimiter'
    if (ofTable && (format === 'json' || format === 'ndjson'))
      throw malformed(`${ofTable} applies to csv and tsv, but not to ${format}`, 'Leave out one of them')
    if (map.id === '' && idFrom === undefined)
      throw malformed('--map id= leaves the plants without ids', 'Assign ids: --id-from next')
    if (/\.xlsx$/i.test(flags.rejects ?? ''))
      throw malformed('Rejected rows of a workbook are written as CSV', 'For example: --rejects rejected.csv')
    const inputs = inputsOf(args, io)
    if (flags.concurrency && isOwn(store))
      await settings.warn(`--concurrency applies only to services, and has no effect on ${schemes[store.scheme].noun}`)
    if (flags.retry !== undefined && !takesCredential(store))
      await settings.warn('--retry applies to services and databases, and has no effect on a file')
    const { runImport } = await import('../import-run.js')
    const rules = { map, columns, idFrom, isPartial: ifExists === 'update' }
    await runImport(
      {
        plan: {
          ...{ inputs, format, sheet, encoding, delimiter, rules, ifExists, maxErrors },
          maxRecords: isOwn(store) ? Infinity : recordsAtOnce,
          readsAhead: store.scheme !== 'file',
        },
        rejects: flags.rejects === undefined ? undefined : io.resolvePath(flags.rejects),
        isRestart: flags.restart === true,
        showsAll: flags.output === 'ndjson',
        mode: flags.dryRun ? 'dryRun' : flags.atomic ? 'atomic' : 'resumable',
      },
      { ...settings, storeOptions: { ...settings.storeOptions, concurrency: flags.concurrency, retry: flags.retry } },
      io,
    )
  },
})

/** At a service: less than a second of requests. */
const recordsAtOnce = 500

function inputsOf(files: string[], io: Io): { path: string; name: string }[] {
  if (files.length === 0 && !io.stdin.isPiped)
    throw malformed('import needs a file, or plants on stdin', 'For example: plants import plants.ndjson')
  const names = files.length === 0 ? ['-'] : files
  if (names.filter((name) => name === '-').length > 1)
    throw malformed('Stdin can be read only once', 'Use "-" only once')
  return names.map((name) =>
    name === '-' ? { path: '-', name: 'stdin' } : { path: io.resolvePath(parseText('file', name)), name },
  )
}

/** A label of the Encoding Standard, such as `cp1252` for windows-1252. */
function parseEncoding(flag: string, text: string): string {
  const encoding = encodingOf(text)
  if (encoding !== undefined) return encoding
  const message = `${flag} must be an encoding such as ${commonEncodings.join(', ')}, but was ${JSON.stringify(shorten(text))}`
  throw malformed(message, 'Its names are at https://encoding.spec.whatwg.org/#names-and-labels')
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

function parseColumns(_flag: string, text: string): string[] {
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
    const rule = `must map a field of the input to ${fieldsInWords.replace(' and ', ' or ')}`
    throw malformed(
      `${flag} ${rule}, but was ${JSON.stringify(shorten(text))}`,
      `For example: ${flag} name=CommonName,tag=Family`,
    )
  }
  return Object.fromEntries(entries.map(([, field = '', source = '']) => [field, source]))
}
