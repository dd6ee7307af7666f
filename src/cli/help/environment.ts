import { flagOf, presetOf, type SettingName, settingNames, settingOf } from '../../config/table.js'
import { paragraph, rowsOf } from './layout.js'

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
export async function environment(width: number): Promise<string> {
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
    `Default: ${presetOf(name)}`,
  ]
}
