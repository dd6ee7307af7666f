import type { Command, Help } from 'commander'
import { defaultOf, flagOf, settingNames, settingOf } from '../../config/setting-table.js'
import { textFields } from '../../plant/fields.js'
import { type ExitCode, exitCodes } from '../../platform/errors.js'
import type { topics } from '../commands/index.js'

type TopicPage = (help: Help, program: Command) => string

function optionsPage(help: Help, program: Command): string {
  const about =
    'Every command takes these options, before or after its name. Each setting is also an environment variable: plants help environment'
  const options = help
    .visibleOptions(program)
    .map((option): Item => [help.optionTerm(option), help.optionDescription(option)])
  return `${paragraph(about, help)}\n${list('Global options', options, help)}`
}

type Item = [term: string, meaning: string]

/** The meaning of a long term begins on the next line. */
function list(title: string, rows: readonly Item[], help: Help): string {
  const width = Math.max(...rows.map(([term]) => term.length).filter((length) => length <= 26))
  const items = rows.map(([term, meaning]) => {
    if (term.length <= width) return help.formatItem(term, width, meaning, help)
    return `  ${term}\n${help.formatItem('', width, meaning, help)}`
  })
  return title === '' ? `${items.join('\n')}\n` : section(title, items, help)
}

function section(title: string, lines: readonly string[], help: Help): string {
  return help.formatItemList(`${title}:`, [...lines], help).join('\n')
}

function paragraph(text: string, help: Help): string {
  return `${help.boxWrap(text, help.helpWidth ?? 80)}\n`
}

const otherVariables = {
  PLANTS_TOKEN:
    'the token for the store of the current command; takes precedence over a token command and a saved token',
  PLANTS_SERVE_TOKEN: 'the token that plants serve accepts, instead of those of the store',
  'PGPASSWORD, PGPASSFILE':
    'the password for the database of the current command; the path of the password file (default: that of libpq)',
  'PGHOST, PGPORT, PGUSER, PGDATABASE': 'defaults for the address of a database, as for psql',
  'PGSSLMODE, PGSSLROOTCERT, PGSSLCERT, PGSSLKEY': 'TLS parameters of a database, if its address does not set them',
  PGAPPNAME: 'the application name for a database',
  PLANTS_DATA_DIR: 'the directory of the store local',
  PLANTS_CONFIG_DIR: 'the directory of the settings file',
  PLANTS_STATE_DIR: 'the directory of import journals',
  'HTTPS_PROXY, HTTP_PROXY, ALL_PROXY': 'the proxy for services with https, with http, with either; also in lower case',
  NO_PROXY: 'hosts without a proxy, such as plants.example.com,.example.org; also in lower case',
  NODE_EXTRA_CA_CERTS: "PEM certificates that are trusted in addition to the system's",
  'NODE_COMPILE_CACHE, NODE_DISABLE_COMPILE_CACHE': "another directory for Node's compile cache; 1 disables it",
  'PLANTS_NO_INPUT, CI': 'never prompt, like --no-input; 0 and false have no effect',
  'NO_COLOR, FORCE_COLOR':
    'disable colours; force colours without a terminal (0 disables them). FORCE_COLOR takes precedence',
}

function environmentPage(help: Help): string {
  const settings = settingNames.map((name): Item => {
    const { meaning, variable, scopes } = settingOf(name)
    const flag = flagOf(name)
    const saved = scopes.map((scope) => (scope === 'user' ? name : `stores.NAME.${name}`))
    const sources = [
      ...(flag === undefined ? [] : [`Flag: ${flag}`]),
      ...(variable === undefined ? [] : [`Variable: ${variable}`]),
      `Saved as: ${saved.join(' or ')}`,
      `Default: ${defaultOf(name)}`,
    ]
    return [name, `${meaning}. ${sources.join('. ')}`]
  })
  const precedence =
    'Precedence, highest first: flag, variable, the value saved for the store, the value saved for all stores, default.'
  return [
    paragraph(precedence, help),
    list('Settings', settings, help),
    list('Other variables', Object.entries(otherVariables), help),
    paragraph('An empty variable counts as unset. See also: plants config list', help),
  ].join('\n')
}

const exitCodeMeanings: Record<ExitCode, string> = {
  0: 'success; also if the reader closed the pipe, and after plants serve drained',
  1: 'the store rejected the request: the id or the idempotency key exists, there is no plant with the id, or a service rejected the request for another reason; a setting is not set; plants doctor found a problem',
  2: 'incorrect usage or invalid input; nothing was sent to a store',
  3: 'no token, or a token that was not accepted or does not have the required right',
  4: 'nothing was stored: the store could not be opened, reached, read or written, or was busy for too long',
  5: 'outcome unknown: the disk failed during a commit, or a service gave no usable response; the plant may be stored',
  6: 'an import rejected some records; the others were created',
  70: 'internal error: a bug in plants',
  74: 'the operation succeeded, but its output could not be written, for example because the disk of stdout or --out is full; or the settings or a backup could not be written',
  130: 'interrupted by Ctrl-C (SIGINT), or a confirmation was declined',
  143: 'terminated (SIGTERM)',
}

function exitCodesPage(help: Help): string {
  const rows = exitCodes().map(([code, errors]): Item => {
    const values = `${errors.join(', ')}${code === 6 ? ', or the error of all rejected records, if it is the same' : ''}`
    return [String(code), `${exitCodeMeanings[code]}${errors.length > 0 ? ` (error ${values})` : ''}`]
  })
  const about = 'The exit codes of plants, and the values of error in JSON. Errors are printed on stderr, with a hint.'
  return `${paragraph(about, help)}\n${list('', rows, help)}\nSee also: plants help formats\n`
}

function formatsPage(help: Help): string {
  const sample = (title: string, lines: string[]) =>
    section(
      title,
      lines.map((line) => `  ${line}`),
      help,
    )
  return [
    sample('As flags of plants create', ['--id 1 --name Fern --tag shade', '--id 9007199254740993 --name Moss']),
    sample('As ndjson', ['{"id":1,"name":"Fern","tag":"shade"}', '{"id":9007199254740993,"name":"Moss"}']),
    sample('As csv', ['id,name,tag', '1,Fern,shade', '9007199254740993,Moss,']),
    list('Values', Object.entries(values), help),
    list('Output', Object.entries(streams), help),
    sample('An error as JSON', [
      '{"error":409,"message":"A plant with id 1 already exists","hint":"Look at it with: plants get 1"}',
    ]),
    list('Durations and sizes', Object.entries(quantities), help),
    'See also: plants help exit-codes\n',
  ].join('\n')
}

const values = {
  id: 'an integer from -9223372036854775808 to 9223372036854775807 in digits. In JSON, 1.0 and 1e3 are integers, too, and "1" and 1.5 are not; a cell 007 or 7.0 of csv and tsv is 7, and no text with an exponent, such as 1E3, is an id. Ids are never rounded here, but programs that use floating-point numbers round ids above 9007199254740992',
  [textFields.map(({ name }) => name).join(', ')]:
    'any Unicode text without U+0000; it can be empty: an empty --name or --tag is stored, with a warning',
  'no tag':
    'in JSON, leave out the field: null is invalid, but not in an import; in csv and tsv, an empty cell means no tag, and "" an empty tag',
  'other fields': 'ignored, with a warning',
}

const streams = {
  stdout:
    'results only: text on a terminal, with a table for a list; otherwise one line of JSON, and NDJSON for a list',
  '--output':
    'text, json or ndjson; for plants also csv and tsv. json is one JSON value, an array for a list; ndjson is one value per line',
  stderr:
    'errors, warnings, prompts, progress and logs. With --output json or ndjson, each error and warning is one line of JSON',
}

const quantities = {
  'a duration':
    '500ms, 30s, 2m, 1h or 90d; a number without a unit means seconds, except for --expires, which requires a unit',
  'a size': '16KiB, 1MiB or 1GiB; a number without a unit means bytes',
}

export const topicPages: Record<keyof typeof topics, TopicPage> = {
  options: optionsPage,
  environment: environmentPage,
  'exit-codes': exitCodesPage,
  formats: formatsPage,
}
