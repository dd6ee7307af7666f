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

interface Parameter {
  variable?: string
  default?: string
  rule?: [pattern: RegExp, text: string]
}

/** As in libpq, except for `max`: https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS */
const parameters: Readonly<Record<string, Parameter>> = {
  host: { variable: 'PGHOST' },
  port: { variable: 'PGPORT' },
  user: { variable: 'PGUSER' },
  password: {},
  dbname: { variable: 'PGDATABASE' },
  sslmode: {
    variable: 'PGSSLMODE',
    default: 'prefer',
    rule: [RegExp(`^(?:${sslModes.join('|')})$`), `one of ${sslModes.join(', ')}`],
  },
  sslrootcert: { variable: 'PGSSLROOTCERT' },
  sslcert: { variable: 'PGSSLCERT' },
  sslkey: { variable: 'PGSSLKEY' },
  application_name: { variable: 'PGAPPNAME', default: 'plants' },
  max: { default: '4', rule: [/^(?:[1-9]\d?|100)$/, 'a whole number from 1 to 100'] },
}

/** Parameters of earlier versions, and what to write instead. */
const removed: Readonly<Record<string, string>> = {
  connect_timeout: 'Leave it out. How long the database is waited for is --timeout',
  target_session_attrs: 'Leave it out: the first server that accepts writes is used',
}

const example =
  'For example: postgres://user@db.example.com:5432/plants?sslmode=verify-full, with % as %25 and @ as %40'

/** What an address lacks comes from libpq's environment variables, then from the defaults. Throws `usage`. */
export function parsePostgres(
  address: string,
  source: string,
  context: AddressContext,
): PostgresAddress {
  const { env, resolvePath, userName } = context
  const given = parseUri(address, source, context)
  const values = new Map<string, string>()
  for (const [name, { variable = '', default: preset, rule }] of Object.entries(parameters)) {
    const text = given.get(name) ?? (env[variable] || preset)
    if (text === undefined) continue
    if (rule?.[0].test(text) === false)
      throw usageError(
        `${given.has(name) ? `${name} in ${source}` : variable} must be ${rule[1]}`,
        example,
      )
    const isPath = ['sslrootcert', 'sslcert', 'sslkey'].includes(name) && text !== 'system'
    values.set(name, isPath ? resolvePath(text) : text)
  }
  const {
    host = defaultHost(),
    port = '',
    user = userName(),
    dbname: database = user,
  } = Object.fromEntries(values)
  if (user === undefined || database === undefined)
    throw addressError(source, 'has no user', example)
  const hosts = hostsFrom(host, port, source)
  const place = `${hosts.map(hostText).join()}/${encodeURIComponent(database)}`
  const login = `postgres://${encodeURIComponent(user)}@${place}`
  const isLogin = (name: string) => ['host', 'port', 'user', 'password', 'dbname'].includes(name)
  const query = [...values].filter(([name]) => given.has(name) && !isLogin(name)).toSorted()
  const text = query.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')
  const sslmode = values.get('sslmode') as PostgresAddress['sslmode'] // as its rule says
  const sslrootcert = values.get('sslrootcert')
  // Anybody can get a certificate for some host, so that its name must be verified.
  if (sslrootcert === 'system' && sslmode !== 'verify-full')
    throw addressError(
      source,
      'has sslrootcert=system without sslmode=verify-full',
      'Add sslmode=verify-full',
    )
  return {
    scheme: 'postgres',
    name: `postgres://${place}`,
    href: `${login}${text && '?'}${text.replaceAll('%2F', '/')}`,
    login,
    hosts,
    user,
    database,
    password: values.get('password'),
    sslmode,
    sslrootcert,
    sslcert: values.get('sslcert'),
    sslkey: values.get('sslkey'),
    applicationName: `${values.get('application_name')}`,
    max: Number(values.get('max')),
  }
}

/** A password may contain "?", but not "/". */
const uri =
  /^postgres(?:ql)?:\/\/(?:(?<user>[^:@/]*)(?::(?<password>[^@/]*))?@)?(?<hosts>[^@/?]*)(?:\/(?<dbname>[^@?]*))?(?:\?(?<query>[^@]*))?$/i

/**
 * Like libpq, each part is a parameter, those after the "?" override the others, and `host` and `port` are lists
 * (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS). A WHATWG URL has one host, and
 * the package pg-connection-string reads files.
 */
function parseUri(
  address: string,
  source: string,
  { secrets, isArgument }: AddressContext,
): Map<string, string> {
  const parts = uri.exec(address)?.groups
  if (!parts) throw invalid(source)
  const { user = '', password = '', hosts = '', dbname = '', query = '' } = parts
  const inQuery = Array.from(query.matchAll(/(?:^|&)password=([^&]*)/g), ([, text = '']) => text)
  for (const text of [password, ...inQuery]) {
    if (text === '') continue
    // If the rest of the address contains it, too, a `***` there would reveal which part it is.
    if (!address.replace(text, '').includes(text)) secrets.add(decoded(text, source)).add(text)
    const why = 'contains a password, which other users could see in the list of processes'
    if (isArgument)
      throw addressError(
        source,
        why,
        `Remove it, and set PGPASSWORD, or write it to ${passwordFile}`,
      )
  }
  const servers = hosts
    .split(',')
    .map((part) => /^(\[[^\]]*\]|[^:[\]]*)(?::(\d*))?$/.exec(part)?.slice(1))
  if (servers.includes(undefined)) throw invalid(source)
  const host = servers.map((server) => `${server?.[0]}`.replace(/^\[(.*)\]$/, '$1')).join()
  const port = servers.map((server) => server?.[1]).join()
  const before = Object.entries({ user, password, host, port, dbname }) // the "?"
  const given = new Map(before.filter(([, value]) => value !== ''))
  for (const part of query.split('&').filter((text) => text !== '')) {
    const [name = '', ...values] = part.split('=')
    if (!Object.hasOwn(parameters, name)) {
      const hint = removed[name] ?? `The parameters are: ${Object.keys(parameters).join(', ')}`
      throw addressError(source, 'contains a parameter that is not supported', hint)
    }
    given.set(name, values.join('='))
  }
  return new Map(Array.from(given, ([name, value]) => [name, decoded(value, source)]))
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

function hostsFrom(names: string, ports: string, source: string): PostgresHost[] {
  const hosts = names.split(',')
  const each = ports.split(',')
  return hosts.map((name, index) => {
    const port = Number((each.length === 1 ? each[0] : each[index]) || 5432)
    if (
      ![1, hosts.length].includes(each.length) ||
      !(Number.isInteger(port) && port > 0 && port < 65_536)
    )
      throw invalid(source)
    const host = name.startsWith('/') ? name.replace(/(?<=.)\/+$/, '') : name.toLowerCase()
    if (host.startsWith('/')) assertShort(`${host}/.s.PGSQL.${port}`, source)
    else if (!isIPv6(host) && !/^[^\s:/@,%?#[\]\\]{1,255}$/.test(host)) throw invalid(source)
    return { host, port }
  })
}

/** How the address is shown, and the complete one without its password, with this server alone. */
export function atServer(
  { name, href, hosts }: PostgresAddress,
  server: PostgresHost,
): { name: string; href: string } {
  const all = hosts.map(hostText).join()
  const one = (text: string) => text.replace(all, () => hostText(server))
  return { name: one(name), href: one(href) }
}

function hostText({ host, port }: PostgresHost): string {
  return `${isIPv6(host) ? `[${host.replace('%', '%25')}]` : encodeURIComponent(host)}:${port}`
}
