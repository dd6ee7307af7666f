import { existsSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { type PlantsError, usageError } from '../../platform/errors.js'
import {
  type AddressContext,
  addressError,
  assertShort,
  type PostgresAddress,
  type PostgresHost,
  passwordFile,
  sslModes,
} from '../common/address.js'

/** The parameters of an address, and libpq's variables for them; `max` is ours. */
const parameters: Readonly<Record<string, string>> = {
  host: 'PGHOST',
  port: 'PGPORT',
  user: 'PGUSER',
  dbname: 'PGDATABASE',
  sslmode: 'PGSSLMODE',
  sslrootcert: 'PGSSLROOTCERT',
  sslcert: 'PGSSLCERT',
  sslkey: 'PGSSLKEY',
  application_name: 'PGAPPNAME',
  max: '',
}

const example =
  'For example: postgres://user@db.example.com:5432/plants?sslmode=verify-full, with % as %25 and @ as %40'

/** What an address lacks comes from libpq's environment variables, then from the defaults. Throws `usage`. */
export function parsePostgres(
  address: string,
  source: string,
  context: AddressContext,
): PostgresAddress {
  const { given, query, password } = parseUri(address, source, context)
  const textOf = (name: string) =>
    given.get(name) ?? (context.env[`${parameters[name]}`] || undefined)
  const pathOf = (name: string) => {
    const path = textOf(name)
    return path === undefined || path === 'system' ? path : context.resolvePath(path)
  }
  const mustBe = (name: string, rule: string) =>
    usageError(
      `${given.has(name) ? `${name} in ${source}` : parameters[name]} must be ${rule}`,
      example,
    )

  const user = textOf('user') ?? context.userName()
  const database = textOf('dbname') ?? user
  if (user === undefined || database === undefined)
    throw addressError(source, 'has no user', example)
  const mode = textOf('sslmode') ?? 'prefer'
  const sslmode = sslModes.find((each) => each === mode)
  if (!sslmode) throw mustBe('sslmode', `one of ${sslModes.join(', ')}`)
  const max = Number(textOf('max') ?? 4)
  if (!(Number.isInteger(max) && max >= 1 && max <= 100))
    throw mustBe('max', 'a whole number from 1 to 100')
  const sslrootcert = pathOf('sslrootcert')
  // Anybody can get a certificate for some host, so that its name must be verified.
  if (sslrootcert === 'system' && sslmode !== 'verify-full') {
    const why = 'has sslrootcert=system without sslmode=verify-full'
    throw addressError(source, why, 'Add sslmode=verify-full')
  }

  const hosts = hostsFrom(textOf('host') ?? defaultHost(), textOf('port') ?? '', source)
  const place = `${hosts.map(hostText).join()}/${encodeURIComponent(database)}`
  const login = `postgres://${encodeURIComponent(user)}@${place}`
  const options = query.map((name) => {
    const value = name.startsWith('ssl') && name !== 'sslmode' ? pathOf(name) : textOf(name)
    return `${name}=${encodeURIComponent(`${value}`).replaceAll('%2F', '/')}`
  })
  return {
    scheme: 'postgres',
    name: `postgres://${place}`,
    href: options.length === 0 ? login : `${login}?${options.join('&')}`,
    ...{ hosts, user, database, password, sslmode, sslrootcert, max },
    sslcert: pathOf('sslcert'),
    sslkey: pathOf('sslkey'),
    applicationName: textOf('application_name') ?? 'plants',
  }
}

/** A password may contain "?", but not "/". */
const uri =
  /^postgres(?:ql)?:\/\/(?:(?<user>[^:@/]*)(?::(?<password>[^@/]*))?@)?(?<hosts>[^@/?]*)(?:\/(?<dbname>[^@?]*))?(?:\?(?<query>[^@]*))?$/i

/**
 * Like libpq, the parts before the "?" are parameters, which those after it override, and `host` and `port` are lists
 * (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS). A WHATWG URL has one host, and the
 * package pg-connection-string reads files.
 *
 * @returns the values given, and the names of those that are only written after the "?", sorted
 */
function parseUri(address: string, source: string, { secrets, isArgument }: AddressContext) {
  const parts = uri.exec(address)?.groups
  if (!parts) throw invalid(source)
  const { user = '', password: encoded = '', hosts = '', dbname = '', query = '' } = parts
  const password = encoded === '' ? undefined : decoded(encoded, source)
  if (password !== undefined) {
    secrets.add(password).add(encoded)
    const why = 'contains a password, which other users could see in the list of processes'
    const hint = `Remove it, and set PGPASSWORD, or write it to ${passwordFile}`
    if (isArgument) throw addressError(source, why, hint)
  }
  const servers = hosts
    .split(',')
    .map((text) => /^(?<host>\[[^\]]*\]|[^:[\]]*)(?::(?<port>\d*))?$/.exec(text)?.groups)
  if (servers.includes(undefined)) throw invalid(source)
  const host = servers.map((server) => server?.['host']?.replace(/^\[(.*)\]$/, '$1')).join()
  const port = servers.map((server) => server?.['port']).join()
  const before = Object.entries({ user, host, port, dbname }).filter(([, text]) => text !== '')
  const after = query.split('&').flatMap((part) => {
    const [name = '', ...values] = part.split('=')
    return part === '' ? [] : [[name, values.join('=')] as const]
  })
  const names = after.map(([name]) => name)
  if (!names.every((name) => Object.hasOwn(parameters, name))) {
    const hint = `The parameters are: ${Object.keys(parameters).join(', ')}`
    throw addressError(source, 'contains a parameter that is not supported', hint)
  }
  const given = new Map([...before, ...after].map(([name, text]) => [name, decoded(text, source)]))
  const isPart = (name: string) => ['host', 'port', 'user', 'dbname'].includes(name)
  return { given, password, query: [...new Set(names)].filter((name) => !isPart(name)).toSorted() }
}

function invalid(source: string): PlantsError {
  return addressError(source, 'is not a valid address of a database', example)
}

function decoded(text: string, source: string): string {
  try {
    const value = decodeURIComponent(text)
    if (value !== '' && !value.includes('\0')) return value
  } catch (error) {
    if (!(error instanceof URIError)) throw error
  }
  throw invalid(source)
}

function defaultHost(): string {
  const folder = '/var/run/postgresql'
  return existsSync(folder) ? folder : 'localhost'
}

/** One port is for all hosts. */
function hostsFrom(hosts: string, ports: string, source: string): PostgresHost[] {
  const [names, numbers] = [hosts.split(','), ports.split(',')]
  if (![1, names.length].includes(numbers.length)) throw invalid(source)
  return names.map((name, index) => {
    const port = Number((numbers.length === 1 ? ports : numbers[index]) || 5432)
    if (!(Number.isInteger(port) && port > 0 && port < 65_536)) throw invalid(source)
    const host = name.startsWith('/') ? name.replace(/(?<=.)\/+$/, '') : name.toLowerCase()
    if (host.startsWith('/')) assertShort(`${host}/.s.PGSQL.${port}`, source)
    else if (!isIPv6(host) && !/^[^\s:/@,%?#[\]\\]{1,255}$/.test(host)) throw invalid(source)
    return { host, port }
  })
}

function hostText({ host, port }: PostgresHost): string {
  return `${isIPv6(host) ? `[${host.replace('%', '%25')}]` : encodeURIComponent(host)}:${port}`
}
