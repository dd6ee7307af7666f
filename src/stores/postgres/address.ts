import { existsSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { PlantsError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import {
  type AddressContext,
  maxSocketPathBytes,
  type PostgresAddress,
  type PostgresHost,
  sessionAttributes,
  sslModes,
} from '../address.js'
import { parseRequireAuth } from './login.js'

/**
 * Parses the address of a database like libpq. What it does not specify comes from libpq's environment variables, then from libpq's
 * defaults. `target_session_attrs` defaults to `read-write`, since a store must be writable.
 *
 * @param source the option or setting with the address, such as `--store`
 * @see https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS
 * @throws {PlantsError} `malformed`; the message never contains what may be a password
 */
export function parsePostgres(address: string, source: string, place: AddressContext): PostgresAddress {
  const refuse: Refuse = (why, hint = example) => new PlantsError('malformed', `${source} ${why}`, { hint })
  const uri = parseUri(address, refuse, place)
  const user = uri.user ?? (place.env['PGUSER'] || place.userName())
  if (user === undefined)
    throw refuse('names no user, and this process has no user name', 'Write postgres://USER@HOST/DATABASE, or set PGUSER')
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

/** The environment variable of libpq for each parameter, if any. */
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

/** The defaults, as they would be written in an address. */
const defaults: Partial<Record<Parameter, string>> = {
  application_name: 'plants',
  connect_timeout: '5',
  max: '4',
  sslmode: 'prefer',
  target_session_attrs: 'read-write',
}

/** The value of a parameter, and the error for an invalid one. */
interface Given {
  text: string
  mustBe(rule: string): PlantsError
}

function textsOf({ parameters, password }: PostgresUri, source: string, { env }: AddressContext): (name: Parameter) => Given | undefined {
  return (name) => {
    const variable = variables[name]
    const own = parameters.get(name)
    const text = own ?? (variable && env[variable])
    if (!text) return undefined
    const what = own === undefined ? `${variable}` : `${source} contains the parameter ${name}, which`
    const was = password === undefined ? `, but was ${JSON.stringify(shorten(text))}` : ''
    return { text, mustBe: (rule) => new PlantsError('malformed', `${what} must be ${rule}${was}`, { hint: example }) }
  }
}

/** Allows the certificates of the system only if the host name is verified: anybody can get a certificate for some host. */
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

/** PostgreSQL truncates the name to 63 bytes, and replaces characters other than printable ASCII by "?". */
function nameOf(given: Given | undefined): string | undefined {
  if (given !== undefined && !/^[\x20-\x7e]{1,63}$/.test(given.text)) throw given.mustBe('1 to 63 visible ASCII characters')
  return given?.text
}

function methodsOf(given: Given | undefined): string | undefined {
  if (given !== undefined && parseRequireAuth(given.text) === undefined)
    throw given.mustBe('a list of password, md5, gss, sspi, scram-sha-256 and none, or of these, each after a "!"')
  return given?.text
}

function fileOf(given: Given | undefined, { resolvePath }: AddressContext): string | undefined {
  return given === undefined || given.text === 'system' ? given?.text : resolvePath(given.text)
}

/** The parameters that an address must contain to have the same meaning, both in this environment and without any variables. */
function parametersOf(values: Values, env: AddressContext['env']): string {
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
  const names = Object.keys(variables) as Parameter[]
  const isIncluded = (name: Parameter) => {
    const variable = variables[name]
    return texts[name] !== defaults[name] || ((variable && env[variable]) || defaults[name]) !== defaults[name]
  }
  return names.flatMap((name) => (isIncluded(name) && texts[name] !== undefined ? `${name}=${valueText(texts[name])}` : [])).join('&')
}

function valueText(text: string): string {
  return encodeURIComponent(text).replaceAll('%2F', '/')
}

/** The parts of an address; undefined for those that it does not contain. */
interface PostgresUri {
  user: string | undefined
  password: string | undefined
  /** `[name, port]` of each host */
  hosts: (readonly [host: string, port: string | undefined])[] | undefined
  database: string | undefined
  parameters: ReadonlyMap<string, string>
}

/** Creates the error for an invalid address. The texts must not contain what may be a part of a password. */
type Refuse = (why: string, hint?: string) => PlantsError

/** The names of libpq, except for `max`, which this program adds. */
const parameterNames = [
  ...[
    'application_name',
    'connect_timeout',
    'dbname',
    'host',
    'max',
    'password',
    'port',
    'require_auth',
    'requirepeer',
    'sslcert',
    'sslkey',
    'sslmode',
    'sslrootcert',
  ],
  ...['target_session_attrs', 'user'],
] as const

/**
 * Parses the URI of a database like libpq.
 *
 * @see https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS
 */
function parseUri(address: string, refuse: Refuse, place: AddressContext): PostgresUri {
  const { user, password, authority, path, query } = splitUri(address, refuse)
  const fromQuery = /(?:^|&)password=([^&]*)/.exec(query)?.[1] ?? ''
  for (const text of [password, fromQuery]) if (text !== '') keepSecret(text, address, refuse, place)
  const parameters = parseQuery(query, refuse)
  const decode = (text: string) => decoded(text, refuse) || undefined
  return {
    user: parameters.get('user') ?? decode(user),
    password: parameters.get('password') ?? decode(password),
    hosts: authority === '' ? undefined : authority.split(',').map((part) => parseHost(part, refuse)),
    database: parameters.get('dbname') ?? decode(path),
    parameters,
  }
}

/** Splits a URI without decoding it. A password may contain "?", but not "/". */
function splitUri(address: string, refuse: Refuse) {
  const [, rest] = /^postgres(?:ql)?:\/\/(.*)$/is.exec(address) ?? []
  if (rest === undefined) throw refuse('is not a valid address of a database')
  const [, info = '', tail = ''] = /^(?:([^@/]*)@)?(.*)$/s.exec(rest) ?? []
  if (tail.includes('@')) throw refuse('contains more than one "@"', 'In a user name or a password, write @ as %40, / as %2F and : as %3A')
  const [, user = '', password = ''] = /^([^:]*)(?::(.*))?$/s.exec(info) ?? []
  const [, authority = '', path = '', query = ''] = /^([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/s.exec(tail) ?? []
  return { user, password, authority, path, query }
}

/** Redacts a password, unless the rest of the address contains it, too: a `***` there would reveal which part it is. */
function keepSecret(text: string, address: string, refuse: Refuse, { secrets, isArgument }: AddressContext): void {
  if (!address.replace(text, '').includes(text)) secrets.add(decoded(text, refuse)).add(text)
  if (!isArgument) return
  throw refuse(
    'contains a password, which other users could see in the list of processes',
    'Remove it, and set PGPASSWORD, write it to ~/.pgpass, or save it with: plants auth login',
  )
}

function parseHost(text: string, refuse: Refuse): readonly [string, string | undefined] {
  const [, host, port] = /^(\[[^\]]*\]|[^:[\]]*)(?::(\d*))?$/.exec(text) ?? []
  if (host === undefined) throw refuse('names an invalid host', 'A port is a number, and an IPv6 address is in brackets: [::1]:5432')
  return [decoded(host, refuse).replace(/^\[(.*)\]$/, '$1'), port || undefined]
}

function parseQuery(query: string, refuse: Refuse): Map<string, string> {
  const mayShow = !/password/i.test(query) // a password may contain "&"
  const parameters = new Map<string, string>()
  // These two values of channel_binding do not require it.
  for (const part of query.split('&').filter((each) => each !== '' && !/^channel_binding=(disable|prefer)$/.test(each))) {
    const [, name = '', value] = /^([^=]*)=(.*)$/s.exec(part) ?? []
    if (value === undefined) throw refuse('contains a parameter without "="')
    if (name === 'ssl' && value === 'true')
      parameters.set('sslmode', 'require') // from JDBC, which libpq accepts, too
    else if (!parameterNames.some((known) => known === name)) throw unknown(mayShow ? name : undefined, refuse)
    else if (value === '') throw refuse(`contains the parameter ${name} without a value`)
    else parameters.set(name, decoded(value, refuse))
  }
  return parameters
}

function unknown(name: string | undefined, refuse: Refuse): PlantsError {
  // Database hosting services include it in their addresses.
  if (name === 'channel_binding')
    return refuse('contains channel_binding, which is not supported', 'Remove it: sslmode=verify-full also prevents impersonation')
  const which = name === undefined ? '' : ` ${JSON.stringify(shorten(name))}`
  return refuse(`contains a parameter${which} that is not supported`, `The parameters are: ${parameterNames.join(', ')}`)
}

function decoded(text: string, refuse: Refuse): string {
  try {
    const value = decodeURIComponent(text)
    if (value.includes('\0')) throw refuse('holds U+0000, which no address does')
    encodeURIComponent(value)
    return value
  } catch (error) {
    if (!(error instanceof URIError)) throw error
    throw refuse('is not percent-encoded correctly', 'Write % as %25, and percent-encode other characters as UTF-8')
  }
}

const defaultPort = '5432'
const socketFolder = '/var/run/postgresql'

/** The servers from the parameters of the address, its hosts, or the environment; else the default of libpq. */
function hostsOf({ hosts, parameters }: PostgresUri, env: Readonly<Record<string, string | undefined>>, refuse: Refuse): PostgresHost[] {
  const named = hosts?.some(([host]) => host !== '') || (hosts?.length ?? 0) > 1 ? hosts?.map(([host]) => host) : undefined
  const numbered = hosts?.some(([, port]) => port !== undefined) || (hosts?.length ?? 0) > 1 ? hosts?.map(([, port]) => port) : undefined
  const names = parameters.get('host')?.split(',') ?? named ?? (env['PGHOST'] || defaultHost()).split(',')
  const ports = parameters.get('port')?.split(',') ?? numbered ?? (env['PGPORT'] || defaultPort).split(',')
  if (ports.length !== 1 && ports.length !== names.length)
    throw refuse(
      `names ${names.length} ${names.length === 1 ? 'host' : 'hosts'}, but ${ports.length} ports`,
      'Name one for all, or one for each',
    )
  return names.map((name, index) => hostFrom(name, (ports.length === 1 ? ports[0] : ports[index]) || defaultPort, refuse))
}

function defaultHost(): string {
  return existsSync(socketFolder) ? socketFolder : 'localhost'
}

function hostFrom(name: string, text: string, refuse: Refuse): PostgresHost {
  const port = /^\d{1,5}$/.test(text) ? parseInt(text, 10) : 0
  if (port < 1 || port > 65_535) throw refuse('names a port that is not a number from 1 to 65535')
  if (name.startsWith('/')) return { host: folderFrom(name, port, refuse), port }
  if (isIPv6(name)) return { host: name.toLowerCase(), port }
  if (name === '') throw refuse('names an empty host')
  if (!/^[^\s:/@,%?#[\]\\]{1,255}$/.test(name)) throw refuse('names an invalid host')
  return { host: name.toLowerCase(), port }
}

function folderFrom(name: string, port: number, refuse: Refuse): string {
  const folder = name.replace(/(?<=.)\/+$/, '')
  if (Buffer.byteLength(socketPath(folder, port)) > maxSocketPathBytes)
    throw refuse(`names a socket whose path is longer than ${maxSocketPathBytes} bytes`, 'Sockets need shorter ones')
  return folder
}

/** The Unix socket of a server with this port. */
export function socketPath(folder: string, port: number): string {
  return `${folder}/.s.PGSQL.${port}`
}

/** The hosts as written in an address, each with its port. */
export function hostsText(hosts: PostgresHost[]): string {
  const hostText = (host: string) => (isIPv6(host) ? `[${host.replace('%', '%25')}]` : encodeURIComponent(host))
  return hosts.map(({ host, port }) => `${hostText(host)}:${port}`).join(',')
}
