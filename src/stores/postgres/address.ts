/**
 * Parses the address of a database as libpq does: missing parts come from the variables of libpq,
 * such as PGHOST, and then from the defaults. The driver's own parser is not used, because it knows
 * neither several hosts nor all of these variables, and its errors may quote the password.
 */
import { existsSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { createUsageError, type PlantsError } from '../../errors.js'
import { isLoopback } from '../../platform/urls.js'
import {
  type AddressContext,
  addPassword,
  createAddressError,
  createPortError,
  isSocket,
  type PostgresAddress,
  type PostgresHost,
  sslModes,
  targetSessionAttrs,
} from '../address.js'
import type { Login } from '../credentials.js'
import type { OpenContext } from '../store-kind.js'

type DatabaseContext = Pick<
  OpenContext,
  'timeoutMs' | 'runtime' | 'retryMs' | 'onUnreachable' | 'onCreated'
>

export interface PostgresOptions extends DatabaseContext {
  login: Login
}

export interface PostgresAccess extends PostgresOptions {
  address: PostgresAddress
}

/** The parts of a URI, which may also be parameters with these names, and their variables. */
const partVariables = { host: 'PGHOST', port: 'PGPORT', user: 'PGUSER', dbname: 'PGDATABASE' }
/** Parameters that are paths. A relative one is relative to the current directory. */
const pathVariables = { sslcert: 'PGSSLCERT', sslkey: 'PGSSLKEY', sslrootcert: 'PGSSLROOTCERT' }
const variables: Record<string, string> = {
  ...partVariables,
  ...pathVariables,
  sslmode: 'PGSSLMODE',
  target_session_attrs: 'PGTARGETSESSIONATTRS',
}
/** These follow the "?" in a complete address, in this order. */
const queryNames = [
  'max',
  'sslcert',
  'sslkey',
  'sslmode',
  'sslrootcert',
  'target_session_attrs',
] as const
type QueryName = (typeof queryNames)[number]
type ParameterName = keyof typeof partVariables | QueryName
const parameterNames: readonly string[] = [...Object.keys(partVariables), ...queryNames]

const addressExample = 'For example: postgres://user@db.example.com:5432/plants?sslmode=verify-full'

/**
 * @param source messages name the address by this, because it may contain a password
 * @throws {PlantsError} `usage`
 */
export function parsePostgres(
  address: string,
  source: string,
  context: AddressContext,
): PostgresAddress {
  const { parameters, password, encodedPassword } = parseUri(address, source, context)
  const readParameter = (name: ParameterName) => {
    const text = parameters.get(name) ?? (context.env[variables[name] ?? ''] || undefined)
    const isPath = name in pathVariables && text !== undefined && text !== 'system'
    return isPath ? context.resolvePath(text) : text
  }
  const findSource = (name: 'host' | 'port') =>
    parameters.has(name) ? source : partVariables[name]
  const user = readParameter('user') ?? context.findUserName()
  if (user === undefined) throw createAddressError(source, 'has no user', addressExample)
  const database = readParameter('dbname') ?? user
  const sslrootcert = readParameter('sslrootcert')
  // The system trusts certificates of any host, so the name in the certificate must be verified.
  const mode = sslrootcert === 'system' ? 'verify-full' : (readParameter('sslmode') ?? 'prefer')
  const sslmode = sslModes.find((candidate) => candidate === mode)
  if (!sslmode)
    throw createUsageError(
      `sslmode must be one of ${sslModes.join(', ')}`,
      'Correct it in the address, or in PGSSLMODE',
    )

  const max = Number(readParameter('max') ?? 4)
  if (!(Number.isInteger(max) && max >= 1))
    throw createUsageError('max must be a whole number from 1 on', 'Correct it in the address')
  const hostList = readParameter('host') ?? (existsSync(socketFolder) ? socketFolder : 'localhost')
  const hosts = parseHosts(hostList, readParameter('port') ?? '', findSource)
  const location = `${hosts.map(formatHost).join()}/${encodeURIComponent(database)}`
  const href = `postgres://${encodeURIComponent(user)}@${location}${formatQuery(readParameter)}`
  addPassword([password, encodedPassword], href, context.secrets)
  return {
    scheme: 'postgres',
    name: `postgres://${location}`,
    href,
    hosts,
    user,
    database,
    password,
    sslmode,
    sslrootcert,
    maxConnections: max,
    sslcert: readParameter('sslcert'),
    sslkey: readParameter('sslkey'),
    targetSessionAttrs: parseTargetSessionAttrs(readParameter('target_session_attrs')),
  }
}

/** The folder in which the server of this machine keeps its socket, on Debian and others. */
const socketFolder = '/var/run/postgresql'

/** Formats the parameters that are set as the end of an address, such as `?max=8`. */
function formatQuery(readParameter: (name: QueryName) => string | undefined): string {
  const pairs = queryNames.flatMap((name) => {
    const value = readParameter(name)
    return value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`]
  })
  // A slash need not be encoded, and paths are easier to read with it.
  return pairs.length === 0 ? '' : `?${pairs.join('&').replaceAll('%2F', '/')}`
}

/** Formats a host as in an address, such as `[::1]:5432`. */
export function formatHost({ host, port }: PostgresHost): string {
  return `${isIPv6(host) ? `[${host}]` : encodeURIComponent(host)}:${port}`
}

function parseTargetSessionAttrs(text = 'read-write'): PostgresAddress['targetSessionAttrs'] {
  const value = targetSessionAttrs.find((candidate) => candidate === text)
  if (value) return value
  const hint = 'Correct it in the address, or in PGTARGETSESSIONATTRS'
  throw createUsageError(`target_session_attrs must be ${targetSessionAttrs.join(' or ')}`, hint)
}

/** A password may contain "?" unescaped, but not "/" or "@". */
const uriPattern =
  /^postgres(?:ql)?:\/\/(?:(?<user>[^:@/]*)(?::(?<password>[^@/]*))?@)?(?<hosts>[^@/?]*)(?:\/(?<dbname>[^@?]*))?(?:\?(?<query>[^@]*))?$/i

/**
 * As in libpq, the parameters after the "?" override the parts before it, and `host` and `port` are
 * lists (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS). The
 * class `URL` cannot parse this, because its URLs have only one host.
 */
function parseUri(address: string, source: string, { isArgument }: AddressContext) {
  const groups = uriPattern.exec(address)?.groups
  if (!groups) throw createInvalidAddressError(source)
  const { user = '', password: encodedPassword = '', hosts = '', dbname = '', query = '' } = groups
  const password = encodedPassword === '' ? undefined : decodePart(encodedPassword, source)
  // The errors of this function do not repeat the password, which therefore is no secret yet: in
  // the error for `password` as a password, `***` would reveal it.
  if (password !== undefined) {
    const problem = 'contains a password, which other users could see in the list of processes'
    if (isArgument) throw createAddressError(source, problem, 'Remove it, and set PGPASSWORD')
  }
  const host = hosts.replace(/:\d*(?=,|$)/g, '')
  const ports = hosts.split(',').map((server) => /:(?<port>\d*)$/.exec(server)?.groups?.['port'])
  const parameters = new Map<string, string>()
  for (const [name, text] of Object.entries({ user, host, port: ports.join(), dbname }))
    if (text !== '') parameters.set(name, decodePart(text, source))
  for (const pair of query.split('&').filter((text) => text !== '')) {
    const [name = '', ...values] = pair.split('=')
    if (!parameterNames.includes(name)) {
      const problem = 'contains a parameter that is not supported'
      throw createAddressError(source, problem, 'See: plants help postgresql')
    }
    parameters.set(name, decodePart(values.join('='), source))
  }
  return { parameters, password, encodedPassword }
}

function createInvalidAddressError(source: string): PlantsError {
  return createAddressError(source, 'is not a valid address of a database', addressExample)
}

function decodePart(text: string, source: string): string {
  try {
    return decodeURIComponent(text)
  } catch (error) {
    if (error instanceof URIError) throw createInvalidAddressError(source)
    throw error
  }
}

function parseHosts(
  hosts: string,
  ports: string,
  findSource: (name: 'host' | 'port') => string,
): PostgresHost[] {
  const names = hosts.split(',')
  const portNumbers = ports.split(',')
  if (portNumbers.length !== 1 && portNumbers.length !== names.length)
    throw createInvalidAddressError(findSource('port'))
  return names.map((name, index) => {
    const host = name.startsWith('/') ? name : name.toLowerCase().replace(/^\[(.*)\]$/, '$1')
    const port = Number(portNumbers[portNumbers.length === 1 ? 0 : index] || 5432)
    const isPort = Number.isInteger(port) && port > 0 && port < 65_536
    const isHost = isIPv6(host) || /^[^\s:]+$/.test(host)
    if (!isHost) throw createInvalidAddressError(findSource('host'))
    if (!isPort) throw createPortError(findSource('port'))
    return { host, port }
  })
}

/** Returns the address of the same database at a server that accepts writes. */
export function toReadWrite(address: PostgresAddress): PostgresAddress {
  return { ...address, targetSessionAttrs: 'read-write' }
}

/**
 * Searches take at most half of the connections, rounded down, but at least one connection. So a
 * service with one connection would let creates wait for searches.
 *
 * @throws {PlantsError} `usage` if the address allows only one connection
 */
export function assertCanServe({ name, maxConnections }: PostgresAddress): void {
  if (maxConnections >= 2) return
  const message = `A service needs at least 2 connections to ${name}, but max is 1`
  throw createUsageError(message, 'Remove max from the address')
}

/**
 * If the server with the store were unreachable, a second store would be created on another one.
 *
 * @throws {PlantsError} `usage` if the address has several servers
 */
export function assertOneServer({ name, hosts }: PostgresAddress): void {
  if (hosts.length === 1) return
  const message = `stores init takes an address with one server, but ${name} has ${hosts.length}`
  throw createUsageError(message, 'Name the server that accepts writes')
}

/**
 * Only `verify-full` makes sure that the server is the host of the address.
 *
 * @returns a warning, or undefined if nobody else can read or change what the connection carries
 */
export function findNetworkRisk({ name, hosts, sslmode }: PostgresAddress): string | undefined {
  const isOnThisMachine = hosts.every((host) => isSocket(host) || isLoopback(host.host))
  if (isOnThisMachine || sslmode === 'verify-full') return undefined
  return `The connection to ${name} is not safe from others on the network. Set sslmode=verify-full in its address`
}
