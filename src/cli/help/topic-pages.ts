import { defaultOf, flagOf, type SettingName, settingNames, settingOf } from '../../config/table.js'
import { type ExitCode, exitCodes } from '../../platform/errors.js'
import { paragraph, type Row, rowsOf, section } from './page.js'

/** Where values come from, in words; the README has the same. */
const precedence = 'The first that is there counts: flag, variable, what is saved with the store, what is saved for all stores, default.'

/** Variables that are no settings. */
const otherVariables: [name: string, meaning: string][] = [
  ['PLANTS_TOKEN', 'the token for the store of this run; wins over a token command and a saved token'],
  ['PLANTS_SERVE_TOKEN', 'the token that plants serve accepts, instead of those of the store'],
  ['PGPASSWORD, PGPASSFILE', 'the password for the database of this run; another password file than ~/.pgpass'],
  ['PGHOST, PGPORT, PGUSER, PGDATABASE', 'what the address of a database leaves open, as for psql'],
  ['PGSSLMODE, PGSSLROOTCERT, PGSSLCERT, PGSSLKEY', 'how a database is reached by TLS, where its address leaves that open'],
  ['PGREQUIREAUTH, PGREQUIREPEER', 'which logins a database may ask for; to whom its Unix socket must belong'],
  [
    'PGTARGETSESSIONATTRS, PGAPPNAME, PGCONNECT_TIMEOUT',
    'which of several servers, under which name, and the seconds until the next is tried',
  ],
  ['PLANTS_DATA_DIR', 'the folder of the store local'],
  ['PLANTS_CONFIG_DIR', 'the folder of the settings file'],
  ['PLANTS_STATE_DIR', 'the folder of the journals of imports'],
  ['HTTPS_PROXY, HTTP_PROXY, NO_PROXY', 'the way to a remote store; also in lower case'],
  ['NODE_EXTRA_CA_CERTS', 'PEM certificates that are trusted besides the usual ones'],
  ['NODE_COMPILE_CACHE, NODE_DISABLE_COMPILE_CACHE', 'another folder for what Node keeps of the compiled program; 1 for none'],
  ['NO_COLOR, FORCE_COLOR', 'no colours; colours also where there is no terminal (0 for none), which wins'],
]

/** The page `plants help environment`: every setting and every variable. */
function environmentPage(width: number): string {
  const settings = settingNames.map((name) => ({ term: name, meaning: `${settingOf(name).meaning}. ${placesOf(name).join('. ')}` }))
  const variables = otherVariables.map(([term, meaning]) => ({ term, meaning }))
  const lists = [`Settings:\n${rowsOf(settings, width)}`, `Other variables:\n${rowsOf(variables, width)}`]
  return [paragraph(precedence, width), ...lists, paragraph('An empty variable counts as none. See also: plants config list', width)].join(
    '\n',
  )
}

/** Where a setting has its value from, in the order of the README's table. */
function placesOf(name: SettingName): string[] {
  const { variable, scopes } = settingOf(name)
  const flag = flagOf(name)
  const saved = scopes.map((scope) => (scope === 'user' ? name : `stores.NAME.${name}`))
  return [
    ...(flag === undefined ? [] : [`Flag: ${flag}`]),
    ...(variable === undefined ? [] : [`Variable: ${variable}`]),
    `Saved as: ${saved.join(' or ')}`,
    `Default: ${defaultOf(name)}`,
  ]
}

/** When a run ends with each of them; the README has the same words. */
const exitCodeMeanings: Record<ExitCode, string> = {
  0: 'done; also when the reader of a pipe has left, and when serve was stopped',
  1: 'the store refused: the id or the key exists, no plant has this id, or a service had a reason of its own; a setting has no value; doctor found something',
  2: 'wrong usage or invalid input; nothing was sent to a store',
  3: 'no token, or one that is not accepted',
  4: 'nothing was stored: the store could not be opened, reached, read or written, or was in use for too long',
  5: 'whether the plant is stored is not known: the disk failed in the middle of a commit, or a service did not answer as it should',
  6: 'an import that rejected some plants; the others are created',
  70: 'a mistake in this program',
  74: 'the work is done, but the answer could not be written, for example to a full disk behind stdout or --out; or the settings, or a backup, could not be written',
  130: 'interrupted by Ctrl-C (SIGINT), or a question answered with no',
  143: 'terminated (SIGTERM)',
}

/** The page `plants help exit-codes`. */
function exitCodesPage(width: number): string {
  const rows = exitCodes().map(([code, errors]) => ({ term: String(code), meaning: `${exitCodeMeanings[code]}${errorsIn(code, errors)}` }))
  const about = 'What a run ends with, and what an error is then called in JSON. It is printed on stderr, with what to do next.'
  return `${paragraph(about, width)}\n${rowsOf(rows, width)}\nSee also: plants help formats\n`
}

function errorsIn(code: ExitCode, errors: number[]): string {
  if (errors.length === 0) return ''
  return ` (error ${errors.join(', ')}${code === 6 ? ', or what all were rejected with' : ''})`
}

/** The page `plants help formats`. */
function formatsPage(width: number): string {
  return [
    paragraph('A plant has an id, a name and perhaps a tag. These are two plants, of which the second has no tag.', width),
    section('As flags of plants create', ['--id 1 --name Fern --tag shade', '--id 9007199254740993 --name Moss']),
    section('As JSON, with plants create --file', ['{"id":1,"name":"Fern","tag":"shade"}', '{"id":9007199254740993,"name":"Moss"}']),
    section('As ndjson, for many', ['{"id":1,"name":"Fern","tag":"shade"}', '{"id":9007199254740993,"name":"Moss"}']),
    section('As json', ['[', '{"id":1,"name":"Fern","tag":"shade"},', '{"id":9007199254740993,"name":"Moss"}', ']']),
    section('As csv', ['id,name,tag', '1,Fern,shade', '9007199254740993,Moss,']),
    section('As tsv', ['id\tname\ttag', '1\tFern\tshade', '9007199254740993\tMoss\t']),
    `What they hold:\n${rowsOf(values, width)}`,
    `Where it goes:\n${rowsOf(streams, width)}`,
    section('An error as JSON', ['{"error":409,"message":"A plant with id 1 already exists","hint":"Look at it with: plants get 1"}']),
    `In flags and settings:\n${rowsOf(quantities, width)}`,
    'See also: plants help exit-codes\n',
  ].join('\n')
}

const values: Row[] = [
  {
    term: 'id',
    meaning:
      'an integer from -9223372036854775808 to 9223372036854775807 in the grammar of JSON: 1.0 and 1e3 are integers; "1", 1.5, +1 and 007 are not. It is never rounded here; programs that take numbers for floating point round those above 9007199254740992',
  },
  { term: 'name, tag', meaning: 'any Unicode text, also an empty one, without U+0000' },
  {
    term: 'no tag',
    meaning: 'in JSON there is no field, and null is refused; in csv and tsv an empty cell is no tag, and "" the empty text',
  },
  { term: 'other fields', meaning: 'are not stored; a warning names them' },
]

const streams: Row[] = [
  {
    term: 'stdout',
    meaning: 'answers alone: text on a terminal, else JSON; --output json or text says which. Several are one JSON object a line',
  },
  {
    term: 'stderr',
    meaning: 'errors, warnings, questions, progress and logs. Errors and warnings are a line of JSON each when JSON was asked for',
  },
]

const quantities: Row[] = [
  { term: 'a duration', meaning: '500ms, 30s, 2m, 1h or 90d; a number alone is seconds, except for --expires, which wants the unit' },
  { term: 'a size', meaning: '16KiB, 1MiB or 1GiB; a number alone is bytes' },
]

export const topicPages = { environment: environmentPage, 'exit-codes': exitCodesPage, formats: formatsPage }
