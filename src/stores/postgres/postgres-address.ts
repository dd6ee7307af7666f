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
  sslModes,
} from '../common/address.js'

interface Parameter {
  variable?: string
  default?: string
  /** that it is in an address before the "?" */
  isLogin?: true
  isPath?: true
  rule?: [pattern: RegExp, text: string]
}

/** As in libpq, except for `max`: https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS */
const parameters: Readonly<Record<ParameterName, Parameter>> = {
  // PostgreSQL truncates it to 63 bytes, and replaces other characters by "?"
  application_name: {
    variable: 'PGAPPNAME',
    default: 'plants',
    rule: [/^[\x20-\x7e]{1,63}$/, '1 to 63 visible ASCII characters'],
  },
  dbname: { variable: 'PGDATABASE', isLogin: true },
  host: { variable: 'PGHOST', isLogin: true },
  max: { default: '4', rule: [/^(?:[1-9]\d?|100)$/, 'a whole number from 1 to 100'] },
  password: { isLogin: true },
  port: { variable: 'PGPORT', default: '5432', isLogin: true },
  sslcert: { variable: 'PGSSLCERT', isPath: true },
  sslkey: { variable: 'PGSSLKEY', isPath: true },
  sslmode: {
    variable: 'PGSSLMODE',
    default: 'prefer',
    rule: [new RegExp(`^(?:${sslModes.join('|')})$`), `one of ${sslModes.join(', ')}`],
  },
  sslrootcert: { variable: 'PGSSLROOTCERT', isPath: true },
  user: { variable: 'PGUSER', isLogin: true },
}

type Values = Record<'application_name' | 'max' | 'port', string> &
  Record<'dbname' | 'host' | 'password' | 'sslcert' | 'sslkey' | 'sslrootcert' | 'user', string | undefined> &
  Pick<PostgresAddress, 'sslmode'>

type ParameterName = keyof Values

const parameterNames = Object.keys(parameters) as ParameterName[] // as its type says

/** those of earlier versions, and what to write instead */
const removed: Readonly<Record<string, string>> = {
  connect_timeout: 'Leave it out. How long the database is waited for is --timeout',
  target_session_attrs: 'Leave it out: the first server that accepts writes is used',
}

const example = 'For example: postgres://user@db.example.com:5432/plants?sslmode=verify-full'

/** What an address lacks comes from libpq's environment variables, then from the defaults. Throws `malformed`. */
export function parsePostgres(address: string, source: string, context: AddressContext): PostgresAddress {
  const { env } = context
  const given = parseUri(address, source, context)
  const entries = parameterNames.map((name) => [name, parameterValue(name, given.get(name), source, context)])
  const values = Object.fromEntries(entries) as Values // they match their rules
  if (values.sslrootcert === 'system') {
    // Anybody can get a certificate for some host, so that its name must be verified.
    const sslmode = given.get('sslmode') ?? (env['PGSSLMODE'] || 'verify-full')
    if (sslmode !== 'verify-full')
      throw addressError(source, 'combines sslrootcert=system with another sslmode', 'Use sslmode=verify-full')
    values.sslmode = sslmode
  }
  const user = values.user ?? context.userName()
  if (user === undefined) throw addressError(source, 'has no user', example)
  const hosts = hostsFrom((values.host ?? defaultHost()).split(','), values.port.split(','), source)
  const database = values.dbname ?? user
  const place = `${hosts.map(hostText).join()}/${encodeURIComponent(database)}`
  const login = `postgres://${encodeURIComponent(user)}@${place}`
  // what the address must contain to have the same meaning, both in this environment and without any variables
  const query = parameterNames.flatMap((name) => {
    const { variable, default: preset, isLogin } = parameters[name]
    const isPreset = values[name] === preset && ((variable && env[variable]) || preset) === preset
    if (isLogin || isPreset || values[name] === undefined) return []
    return `${name}=${encodeURIComponent(values[name]).replaceAll('%2F', '/')}`
  })
  return {
    scheme: 'postgres',
    name: `postgres://${place}`,
    href: `${login}${query.length > 0 ? `?${query.join('&')}` : ''}`,
    login,
    hosts,
    user,
    database,
    password: values.password,
    sslmode: values.sslmode,
    sslrootcert: values.sslrootcert,
    sslcert: values.sslcert,
    sslkey: values.sslkey,
    applicationName: values.application_name,
    max: parseInt(values.max, 10),
  }
}

function parameterValue(
  name: ParameterName,
  own: string | undefined,
  source: string,
  { env, resolvePath }: AddressContext,
): string | undefined {
  const { variable = '', default: preset, rule, isPath } = parameters[name]
  const value = own ?? (env[variable] || preset)
  if (value === undefined || (isPath && value === 'system')) return value
  if (rule?.[0].test(value) === false) {
    if (own !== undefined) throw addressError(source, `contains ${name}, which must be ${rule[1]}`, example)
    throw malformed(`${variable} must be ${rule[1]}, but was ${JSON.stringify(shorten(value))}`, example)
  }
  return isPath ? resolvePath(value) : value
}

/** A password may contain "?", but not "/". */
const uri =
  /^postgres(?:ql)?:\/\/(?:(?<user>[^:@/]*)(?::(?<password>[^@/]*))?@)?(?<hosts>[^@/?]*)(?:\/(?<dbname>[^@?]*))?(?:\?(?<query>[^@]*))?$/i

/**
 * Like libpq, each part is a parameter, those after the "?" override the others, and `host` and `port` are lists
 * (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS). A WHATWG URL has one host, and
 * the package pg-connection-string reads files.
 */
function parseUri(address: string, source: string, { secrets, isArgument }: AddressContext): Map<string, string> {
  const parts = uri.exec(address)?.groups
  if (!parts) throw invalid(source, 'In a user name or a password, write @ as %40, / as %2F and : as %3A')
  const { user = '', password = '', hosts = '', dbname = '', query = '' } = parts
  for (const text of [password, /(?:^|&)password=(?<text>[^&]*)/.exec(query)?.groups?.['text'] ?? '']) {
    if (text === '') continue
    // If the rest of the address contains it, too, a `***` there would reveal which part it is.
    if (!address.replace(text, '').includes(text)) secrets.add(decoded(text, source)).add(text)
    if (!isArgument) continue
    const hint = 'Remove it, and set PGPASSWORD, or write it to ~/.pgpass'
    throw addressError(source, 'contains a password, which other users could see in the list of processes', hint)
  }
  const servers = hosts.split(',').map((part) => /^(?<host>\[[^\]]*\]|[^:[\]]*)(?::(?<port>\d*))?$/.exec(part)?.groups)
  if (servers.includes(undefined)) throw invalid(source, 'A port is a number, and an IPv6 address is in brackets')
  const given = new Map([
    ['user', user],
    ['password', password],
    ['host', servers.map((server) => `${server?.['host']}`.replace(/^\[(.*)\]$/, '$1')).join()],
    ['port', servers.map((server) => server?.['port'] ?? '').join()],
    ['dbname', dbname],
  ])
  for (const [name, value] of given) if (value === '') given.delete(name)
  for (const part of query.split('&').filter((text) => text !== '')) {
    const [name = '', ...values] = part.split('=')
    if (!Object.hasOwn(parameters, name)) {
      const hint = removed[name] ?? `The parameters are: ${parameterNames.join(', ')}`
      throw addressError(source, 'contains a parameter that is not supported', hint)
    }
    given.set(name, values.join('='))
  }
  return new Map(Array.from(given, ([name, value]) => [name, decoded(value, source)]))
}

function invalid(source: string, hint = example): PlantsError {
  return addressError(source, 'is not a valid address of a database', hint)
}

function decoded(text: string, source: string): string {
  try {
    const value = decodeURIComponent(text)
    encodeURIComponent(value)
    if (value !== '' && !value.includes('\0')) return value
  } catch (error) {
    if (!(error instanceof URIError)) throw error
  }
  throw invalid(source, 'Percent-encode characters as UTF-8, and % as %25, and leave out what has no value')
}

function defaultHost(): string {
  const folder = '/var/run/postgresql'
  return existsSync(folder) ? folder : 'localhost'
}

function hostsFrom(names: string[], ports: string[], source: string): PostgresHost[] {
  if (ports.length !== 1 && ports.length !== names.length)
    throw invalid(source, 'Name one port for all hosts, or one for each')
  return names.map((name, index) => {
    const text = (ports.length === 1 ? ports[0] : ports[index]) || '5432'
    const port = /^\d{1,5}$/.test(text) ? parseInt(text, 10) : 0
    if (port < 1 || port > 65_535) throw invalid(source, 'A port is a number from 1 to 65535')
    const host = name.startsWith('/') ? name.replace(/(?<=.)\/+$/, '') : name.toLowerCase()
    if (host.startsWith('/')) assertShort(`${host}/.s.PGSQL.${port}`, source)
    else if (!isIPv6(host) && !/^[^\s:/@,%?#[\]\\]{1,255}$/.test(host)) throw invalid(source)
    return { host, port }
  })
}

function hostText({ host, port }: PostgresHost): string {
  return `${isIPv6(host) ? `[${host.replace('%', '%25')}]` : encodeURIComponent(host)}:${port}`
}
