import { PlantsError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import { type Place, type PostgresAddress, sessionAttributes, sslModes } from '../store.js'
import { hostsOf, hostsText } from './hosts.js'
import { parseRequireAuth } from './login-methods.js'
import { type PostgresUri, parseUri, type Refuse } from './uri.js'

/**
 * Reads the address of a database, as libpq does. What it leaves open comes from libpq's variables, then from its defaults; but a
 * store is written to, so that of several servers the one counts that takes writes.
 *
 * @param source where the address was given, such as `--store`
 * @see https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS
 * @throws {PlantsError} `malformed`; it repeats nothing that may be a password
 */
export function parsePostgres(address: string, source: string, place: Place): PostgresAddress {
  const refuse: Refuse = (why, hint = example) => new PlantsError('malformed', `${source} ${why}`, { hint })
  const uri = parseUri(address, refuse, place)
  const user = uri.user ?? (place.env['PGUSER'] || place.userName())
  if (user === undefined) throw refuse('names no user, and the system knows none', 'Write postgres://USER@HOST/DATABASE, or set PGUSER')
  const hosts = hostsOf(uri, place.env, refuse)
  const database = uri.database ?? (place.env['PGDATABASE'] || user)
  const text = textsOf(uri, source, place)
  const login = `postgres://${encodeURIComponent(user)}@${hostsText(hosts)}/${encodeURIComponent(database)}`
  const sslrootcert = fileOf(text('sslrootcert'), place)
  const values = {
    sslmode: modeOf(text('sslmode'), sslrootcert, refuse),
    sslrootcert,
    sslcert: fileOf(text('sslcert'), place),
    sslkey: fileOf(text('sslkey'), place),
    requireAuth: methodsOf(text('require_auth')),
    requirePeer: text('requirepeer')?.text,
    targetSessionAttrs: wordOf(text('target_session_attrs'), sessionAttributes) ?? 'read-write',
    applicationName: nameOf(text('application_name')) ?? 'plants',
    connectTimeout: (countOf(text('connect_timeout'), 'a whole number of seconds from 1 to 3600', 3600) ?? 5) * 1000,
    max: countOf(text('max'), 'a whole number from 1 to 100', 100) ?? 4,
  }
  const parameters = parametersOf(values, place.env)
  return {
    kind: 'postgres',
    name: `${login}${parameters && `?${parameters}`}`,
    login,
    hosts,
    user,
    database,
    password: uri.password,
    ...values,
  }
}

const example = 'For example: postgres://user@db.example.com:5432/plants?sslmode=verify-full'

type Values = Pick<
  PostgresAddress,
  | 'sslmode'
  | 'sslrootcert'
  | 'sslcert'
  | 'sslkey'
  | 'requireAuth'
  | 'requirePeer'
  | 'targetSessionAttrs'
  | 'applicationName'
  | 'connectTimeout'
  | 'max'
>

/** libpq's variable for a parameter, if it has one. */
const variables = {
  application_name: 'PGAPPNAME',
  connect_timeout: 'PGCONNECT_TIMEOUT',
  max: undefined,
  require_auth: 'PGREQUIREAUTH',
  requirepeer: 'PGREQUIREPEER',
  sslcert: 'PGSSLCERT',
  sslkey: 'PGSSLKEY',
  sslmode: 'PGSSLMODE',
  sslrootcert: 'PGSSLROOTCERT',
  target_session_attrs: 'PGTARGETSESSIONATTRS',
} as const

type Parameter = keyof typeof variables

/** What holds when nobody says anything, as it would stand in an address. */
const presets: Partial<Record<Parameter, string>> = {
  application_name: 'plants',
  connect_timeout: '5',
  max: '4',
  sslmode: 'prefer',
  target_session_attrs: 'read-write',
}

/** A value that was given, and how to refuse it. */
interface Given {
  text: string
  mustBe(rule: string): PlantsError
}

function textsOf({ parameters, password }: PostgresUri, source: string, { env }: Place): (name: Parameter) => Given | undefined {
  return (name) => {
    const variable = variables[name]
    const own = parameters.get(name)
    const text = own ?? (variable && env[variable])
    if (!text) return undefined
    const what = own === undefined ? `${variable}` : `${source} holds the parameter ${name}, which`
    const was = password === undefined ? `, but was ${JSON.stringify(shorten(text))}` : ''
    return { text, mustBe: (rule) => new PlantsError('malformed', `${what} must be ${rule}${was}`, { hint: example }) }
  }
}

/** Certificates of the system are trusted only where the name of the server is checked, since anybody has one of them. */
function modeOf(given: Given | undefined, sslrootcert: string | undefined, refuse: Refuse): Values['sslmode'] {
  const mode = wordOf(given, sslModes)
  if (sslrootcert !== 'system') return mode ?? 'prefer'
  if (mode !== undefined && mode !== 'verify-full')
    throw refuse(`takes sslrootcert=system together with sslmode=${mode}`, 'Use sslmode=verify-full')
  return 'verify-full'
}

function wordOf<Word extends string>(given: Given | undefined, words: readonly Word[]): Word | undefined {
  if (given === undefined) return undefined
  const word = words.find((candidate) => candidate === given.text)
  if (word === undefined) throw given.mustBe(`one of ${words.join(', ')}`)
  return word
}

function countOf(given: Given | undefined, rule: string, most: number): number | undefined {
  if (given === undefined) return undefined
  const count = /^\d{1,4}$/.test(given.text) ? parseInt(given.text, 10) : 0
  if (count < 1 || count > most) throw given.mustBe(rule)
  return count
}

/** PostgreSQL keeps 63 bytes of it, and puts "?" for what is not visible ASCII. */
function nameOf(given: Given | undefined): string | undefined {
  if (given !== undefined && !/^[\x20-\x7e]{1,63}$/.test(given.text)) throw given.mustBe('1 to 63 visible ASCII characters')
  return given?.text
}

function methodsOf(given: Given | undefined): string | undefined {
  if (given !== undefined && parseRequireAuth(given.text) === undefined)
    throw given.mustBe('a list of password, md5, gss, sspi, scram-sha-256 and none, or of each after a "!"')
  return given?.text
}

function fileOf(given: Given | undefined, { resolvePath }: Place): string | undefined {
  return given === undefined || given.text === 'system' ? given?.text : resolvePath(given.text)
}

/** Those that are not as they would be without being named, with this environment or without any. */
function parametersOf(values: Values, env: Place['env']): string {
  const texts: Record<Parameter, string | undefined> = {
    application_name: values.applicationName,
    connect_timeout: String(values.connectTimeout / 1000),
    max: String(values.max),
    require_auth: values.requireAuth,
    requirepeer: values.requirePeer,
    sslcert: values.sslcert,
    sslkey: values.sslkey,
    sslmode: values.sslmode,
    sslrootcert: values.sslrootcert,
    target_session_attrs: values.targetSessionAttrs,
  }
  const names = Object.keys(variables) as Parameter[] // as its type says, in their order
  const isTold = (name: Parameter) => {
    const variable = variables[name]
    return texts[name] !== presets[name] || ((variable && env[variable]) || presets[name]) !== presets[name]
  }
  return names.flatMap((name) => (isTold(name) && texts[name] !== undefined ? `${name}=${valueText(texts[name])}` : [])).join('&')
}

function valueText(text: string): string {
  return encodeURIComponent(text).replaceAll('%2F', '/')
}
