import { existsSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { type PlantsError, usageError } from '../../platform/errors.js'
import {
  type AddressContext,
  addressError,
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
  application_name: 'PGAPPNAME',
  max: '',
  sslcert: 'PGSSLCERT',
  sslkey: 'PGSSLKEY',
  sslmode: 'PGSSLMODE',
  sslrootcert: 'PGSSLROOTCERT',
}

/** What is written before the "?" of a complete address. */
const parts = ['host', 'port', 'user', 'dbname']
const paths = ['sslcert', 'sslkey', 'sslrootcert']

const example =
  'For example: postgres://user@db.example.com:5432/plants?sslmode=verify-full, with % as %25 and @ as %40'

/** What an address lacks comes from libpq's environment variables, then from the defaults. Throws `usage`. */
export function parsePostgres(
  address: string,
  source: string,
  context: AddressContext,
): PostgresAddress {
  const { given, password } = parseUri(address, source, context)
  const textOf = (name: string) => {
    const text = given.get(name) ?? (context.env[`${parameters[name]}`] || undefined)
    const isPath = paths.includes(name) && text !== undefined && text !== 'system'
    return isPath ? context.resolvePath(text) : text
  }
  const mustBe = (name: string, rule: string) =>
    usageError(`${given.has(name) ? name : parameters[name]} must be ${rule}`, example)

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
  const sslrootcert = textOf('sslrootcert')
  // Anybody can get a certificate for some host, so that its name must be verified.
  if (sslrootcert === 'system' && sslmode !== 'verify-full') {
    const why = 'has sslrootcert=system without sslmode=verify-full'
    throw addressError(source, why, 'Add sslmode=verify-full')
  }

  const hosts = hostsFrom(textOf('host') ?? defaultHost(), textOf('port') ?? '', source)
  const place = `${hosts.map(hostText).join()}/${encodeURIComponent(database)}`
  const login = `postgres://${encodeURIComponent(user)}@${place}`
  const query = Object.keys(parameters)
    .filter((name) => !parts.includes(name) && textOf(name) !== undefined)
    .map((name) => `${name}=${encodeURIComponent(`${textOf(name)}`).replaceAll('%2F', '/')}`)
  return {
    scheme: 'postgres',
    name: `postgres://${place}`,
    href: query.length === 0 ? login : `${login}?${query.join('&')}`,
    ...{ hosts, user, database, password, sslmode, sslrootcert, max },
    sslcert: textOf('sslcert'),
    sslkey: textOf('sslkey'),
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
 */
function parseUri(address: string, source: string, { secrets, isArgument }: AddressContext) {
  const groups = uri.exec(address)?.groups
  if (!groups) throw invalid(source)
  const { user = '', password: encoded = '', hosts = '', dbname = '', query = '' } = groups
  const password = encoded === '' ? undefined : decoded(encoded, source)
  if (password !== undefined) {
    secrets.add(password).add(encoded)
    const why = 'contains a password, which other users could see in the list of processes'
    const hint = `Remove it, and set PGPASSWORD, or write it to ${passwordFile}`
    if (isArgument) throw addressError(source, why, hint)
  }
  const host = hosts.replace(/:\d*(?=,|$)/g, '')
  const ports = hosts.split(',').map((server) => /:(?<port>\d*)$/.exec(server)?.groups?.['port'])
  const given = new Map<string, string>()
  for (const [name, text] of Object.entries({ user, host, port: ports.join(), dbname }))
    if (text !== '') given.set(name, decoded(text, source))
  for (const part of query.split('&').filter((text) => text !== '')) {
    const [name = '', ...values] = part.split('=')
    if (!Object.hasOwn(parameters, name)) {
      const hint = `The parameters are: ${Object.keys(parameters).join(', ')}`
      throw addressError(source, 'contains a parameter that is not supported', hint)
    }
    given.set(name, decoded(values.join('='), source))
  }
  return { given, password }
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
  const names = hosts.split(',')
  const numbers = ports.split(',')
  if (numbers.length !== 1 && numbers.length !== names.length) throw invalid(source)
  return names.map((name, index) => {
    const host = name.startsWith('/') ? name : name.toLowerCase().replace(/^\[(.*)\]$/, '$1')
    const port = Number(numbers[numbers.length === 1 ? 0 : index] || 5432)
    const isPort = Number.isInteger(port) && port > 0 && port < 65_536
    const isHost = host.startsWith('/') || isIPv6(host) || /^[^\s:/@,%?#[\]\\]{1,255}$/.test(host)
    if (!isPort || !isHost) throw invalid(source)
    return { host, port }
  })
}

function hostText({ host, port }: PostgresHost): string {
  return `${isIPv6(host) ? `[${host.replace('%', '%25')}]` : encodeURIComponent(host)}:${port}`
}
