import { existsSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { malformed, type PlantsError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import {
  type AddressContext,
  addressError,
  assertShort,
  type PostgresAddress,
  type PostgresHost,
  sessionAttributes,
  sslModes,
} from '../common/address.js'

interface Parameter {
  variable?: string
  default?: string
  /** whether it says who logs in and where, before the "?" of a complete address */
  isLogin?: true
  isPath?: true
  pattern?: RegExp
  rule?: string
}

/**
 * As in libpq, except for `max`, and the default of `target_session_attrs`: a store must be writable.
 * https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS
 */
const parameters = {
  // PostgreSQL truncates it to 63 bytes, and replaces other characters by "?"
  application_name: {
    variable: 'PGAPPNAME',
    default: 'plants',
    pattern: /^[\x20-\x7e]{1,63}$/,
    rule: '1 to 63 visible ASCII characters',
  },
  connect_timeout: {
    variable: 'PGCONNECT_TIMEOUT',
    default: '5',
    pattern: /^[1-9]\d{0,2}$/,
    rule: 'a whole number of seconds from 1 to 999',
  },
  dbname: { variable: 'PGDATABASE', isLogin: true },
  host: { variable: 'PGHOST', isLogin: true },
  max: { default: '4', pattern: /^(?:[1-9]\d?|100)$/, rule: 'a whole number from 1 to 100' },
  password: { isLogin: true },
  port: { variable: 'PGPORT', default: '5432', isLogin: true },
  sslcert: { variable: 'PGSSLCERT', isPath: true },
  sslkey: { variable: 'PGSSLKEY', isPath: true },
  sslmode: { variable: 'PGSSLMODE', default: 'prefer', ...oneOf(sslModes) },
  sslrootcert: { variable: 'PGSSLROOTCERT', isPath: true },
  target_session_attrs: { variable: 'PGTARGETSESSIONATTRS', default: 'read-write', ...oneOf(sessionAttributes) },
  user: { variable: 'PGUSER', isLogin: true },
} satisfies Record<string, Parameter>

function oneOf(words: readonly string[]) {
  return { pattern: new RegExp(`^(?:${words.join('|')})$`), rule: `one of ${words.join(', ')}` }
}

type ParameterName = keyof typeof parameters

const parameterNames = Object.keys(parameters) as ParameterName[] // as its type says

/** Variables of libpq that ask for a protection which is not supported. */
const unsupported = ['PGREQUIREAUTH', 'PGREQUIREPEER', 'PGCHANNELBINDING']

const example = 'For example: postgres://user@db.example.com:5432/plants?sslmode=verify-full'

/** The texts must not contain what may be a part of a password. */
function invalid(source: string, why: string, hint = example): PlantsError {
  return addressError(source, why, hint)
}

/**
 * Parses an address like libpq: what it lacks comes from libpq's environment variables, then from the defaults. Throws
 * `malformed`; the message never contains what may be a password.
 */
export function parsePostgres(address: string, source: string, place: AddressContext): PostgresAddress {
  const { env } = place
  const given = parseUri(address, source, place)
  const asked = unsupported.find((name) => !['', 'disable', 'prefer'].includes(env[name] ?? ''))
  if (asked !== undefined) {
    const hint = 'Unset it. To verify the server, add to the address: sslmode=verify-full'
    throw malformed(`${asked} is set, but it is not supported`, hint)
  }
  // The values fit their types, since they match their patterns.
  const entries = parameterNames.map((name) => [name, parameterValue(name, given, source, place)])
  const values = Object.fromEntries(entries) as ParameterValues
  if (values.sslrootcert === 'system') {
    // Anybody can get a certificate for some host, so that its name must be verified.
    const sslmode = given.get('sslmode') ?? (env['PGSSLMODE'] || 'verify-full')
    if (sslmode !== 'verify-full')
      throw invalid(source, `combines sslrootcert=system with sslmode=${sslmode}`, 'Use sslmode=verify-full')
    values.sslmode = sslmode
  }
  const user = values.user ?? place.userName()
  if (user === undefined)
    throw invalid(
      source,
      'has no user, and this process has no user name',
      'Write postgres://USER@HOST/DATABASE, or set PGUSER',
    )
  const hosts = hostsFrom((values.host ?? defaultHost()).split(','), values.port.split(','), source)
  const database = values.dbname ?? user
  const login = `postgres://${encodeURIComponent(user)}@${hosts.map(hostText).join()}/${encodeURIComponent(database)}`
  // The parameters that the name must contain to have the same meaning, both in this environment and without any
  // variables.
  const query = parameterNames.flatMap((name) => {
    const { variable, default: preset, isLogin }: Parameter = parameters[name]
    const isPreset = values[name] === preset && ((variable && env[variable]) || preset) === preset
    if (isLogin || isPreset || values[name] === undefined) return []
    return `${name}=${encodeURIComponent(values[name]).replaceAll('%2F', '/')}`
  })
  return {
    scheme: 'postgres',
    name: `${login}${query.length > 0 ? `?${query.join('&')}` : ''}`,
    login,
    hosts,
    user,
    database,
    password: values.password,
    sslmode: values.sslmode,
    sslrootcert: values.sslrootcert,
    sslcert: values.sslcert,
    sslkey: values.sslkey,
    targetSessionAttrs: values.target_session_attrs,
    applicationName: values.application_name,
    connectTimeout: parseInt(values.connect_timeout, 10) * 1000,
    max: parseInt(values.max, 10),
  }
}

type ParameterValues = {
  [Name in ParameterName]: (typeof parameters)[Name] extends { default: string } ? string : string | undefined
} & Pick<PostgresAddress, 'sslmode'> & { target_session_attrs: PostgresAddress['targetSessionAttrs'] }

function parameterValue(
  name: ParameterName,
  given: Map<string, string>,
  source: string,
  place: AddressContext,
): string | undefined {
  const { variable, default: preset, pattern, rule, isPath }: Parameter = parameters[name]
  const own = given.get(name)
  const value = own ?? ((variable && place.env[variable]) || preset)
  if (value === undefined) return undefined
  if (pattern?.test(value) === false) {
    const what = own === undefined ? `${variable}` : `${source} contains the parameter ${name}, which`
    const was = given.has('password') ? '' : `, but was ${JSON.stringify(shorten(value))}`
    throw malformed(`${what} must be ${rule}${was}`, example)
  }
  return isPath && value !== 'system' ? place.resolvePath(value) : value
}

/** A password may contain "?", but not "/". */
const uri =
  /^postgres(?:ql)?:\/\/(?:(?<user>[^:@/]*)(?::(?<password>[^@/]*))?@)?(?<hosts>[^@/?]*)(?:\/(?<dbname>[^@?]*))?(?:\?(?<query>[^@]*))?$/i

/**
 * Like libpq, each part is a parameter, those after the "?" override the others, and `host` and `port` are lists
 * (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS). The package pg-connection-string
 * knows one host only, and reads files.
 */
function parseUri(address: string, source: string, { secrets, isArgument }: AddressContext): Map<string, string> {
  const parts = uri.exec(address)?.groups
  if (!parts) {
    const hint = address.includes('@') ? 'In a user name or a password, write @ as %40, / as %2F and : as %3A' : example
    throw invalid(source, 'is not a valid address of a database', hint)
  }
  const { user = '', password = '', hosts = '', dbname = '', query = '' } = parts
  for (const text of [password, /(?:^|&)password=(?<text>[^&]*)/.exec(query)?.groups?.['text'] ?? '']) {
    if (text === '') continue
    // If the rest of the address contains it, too, a `***` there would reveal which part it is.
    if (!address.replace(text, '').includes(text)) secrets.add(decoded(text, source)).add(text)
    if (!isArgument) continue
    throw invalid(
      source,
      'contains a password, which other users could see in the list of processes',
      'Remove it, and set PGPASSWORD, or save it with: plants auth login',
    )
  }
  const servers = hosts.split(',').map((part) => {
    const server = /^(?<host>\[[^\]]*\]|[^:[\]]*)(?::(?<port>\d*))?$/.exec(part)?.groups
    if (!server)
      throw invalid(source, 'has an invalid host', 'A port is a number, and an IPv6 address is in brackets: [::1]:5432')
    return server
  })
  const given = {
    user: decoded(user, source),
    password: decoded(password, source),
    host: servers.map(({ host = '' }) => decoded(host, source).replace(/^\[(.*)\]$/, '$1')).join(),
    port: servers.map(({ port = '' }) => port).join(),
    dbname: decoded(dbname, source),
  }
  return new Map([...Object.entries(given).filter(([, value]) => value !== ''), ...parseQuery(query, source)])
}

function parseQuery(query: string, source: string): [string, string][] {
  return query.split('&').flatMap((part): [string, string][] => {
    if (part === '') return []
    const { name = part, value = '' } = /^(?<name>[^=]*)=(?<value>.*)$/s.exec(part)?.groups ?? {}
    if (!Object.hasOwn(parameters, name)) {
      const which = /password/i.test(query) ? '' : ` ${JSON.stringify(shorten(name))}` // a password may contain "&"
      const hint = `The parameters are: ${parameterNames.join(', ')}`
      throw invalid(source, `contains a parameter${which} that is not supported`, hint)
    }
    if (value === '') throw invalid(source, `contains the parameter ${name} without a value`)
    return [[name, decoded(value, source)]]
  })
}

function decoded(text: string, source: string): string {
  try {
    const value = decodeURIComponent(text)
    encodeURIComponent(value)
    if (!value.includes('\0')) return value
  } catch (error) {
    if (!(error instanceof URIError)) throw error
  }
  throw invalid(
    source,
    'is not percent-encoded correctly',
    'Write % as %25, and percent-encode other characters as UTF-8',
  )
}

function defaultHost(): string {
  const folder = '/var/run/postgresql'
  return existsSync(folder) ? folder : 'localhost'
}

function hostsFrom(names: string[], ports: string[], source: string): PostgresHost[] {
  if (ports.length !== 1 && ports.length !== names.length)
    throw invalid(
      source,
      `names ${names.length} hosts, but ${ports.length} ports`,
      'Name one port for all hosts, or one for each',
    )
  return names.map((name, index) => {
    const text = (ports.length === 1 ? ports[0] : ports[index]) || parameters.port.default
    const port = /^\d{1,5}$/.test(text) ? parseInt(text, 10) : 0
    if (port < 1 || port > 65_535) throw invalid(source, 'has a port that is not a number from 1 to 65535')
    if (name.startsWith('/')) {
      const folder = name.replace(/(?<=.)\/+$/, '')
      assertShort(socketPath(folder, port), source)
      return { host: folder, port }
    }
    if (!isIPv6(name) && !/^[^\s:/@,%?#[\]\\]{1,255}$/.test(name)) throw invalid(source, 'has an invalid host')
    return { host: name.toLowerCase(), port }
  })
}

export function socketPath(folder: string, port: number): string {
  return `${folder}/.s.PGSQL.${port}`
}

function hostText({ host, port }: PostgresHost): string {
  return `${isIPv6(host) ? `[${host.replace('%', '%25')}]` : encodeURIComponent(host)}:${port}`
}
