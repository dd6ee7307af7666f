import { isWindows, type PlantsError, usageError } from '../errors.js'
import { urlOf } from '../platform/urls.js'

export interface AddressContext {
  resolvePath(path: string): string
  /** The directory of the store `local`. */
  dataFolder(): Promise<string>
  /** With libpq's variables. */
  env: Readonly<Record<string, string | undefined>>
  /** Undefined for a user id without an account. */
  userName(): string | undefined
  /** Collects the passwords of addresses. */
  secrets: Set<string>
  /** Other users can see it, so it must not contain a password. */
  isArgument: boolean
}

export type Address = SqliteAddress | PostgresAddress | HttpAddress

/** Of an `OwnStore`. */
export type OwnAddress = SqliteAddress | PostgresAddress

export interface SqliteAddress {
  scheme: 'sqlite'
  name: string
  /** Whether it is `local`, whose directory is created if it is missing. */
  isDefault: boolean
}

export interface HttpAddress {
  scheme: 'http'
  /** Without a trailing slash. Tokens are saved under it. */
  name: string
  /** The specification's base_url, without a trailing slash. */
  url: URL
}

export interface PostgresAddress {
  scheme: 'postgres'
  name: string
  /** The complete address, without the password. */
  href: string
  /** In the order in which they are tried. */
  hosts: PostgresHost[]
  user: string
  database: string
  password: string | undefined
  sslmode: (typeof sslModes)[number]
  /** Absolute, or "system". By default that of libpq. */
  sslrootcert: string | undefined
  /** The absolute paths of the client certificate and its key. */
  sslcert: string | undefined
  sslkey: string | undefined
  max: number
}

export function isDefaultStore(address: Address): boolean {
  return address.scheme === 'sqlite' && address.isDefault
}

/** For an address that ends with "/plants". */
export function wrongAddressHint(address: Address): string | undefined {
  if (address.scheme !== 'http' || !address.url.pathname.endsWith('/plants')) return undefined
  return 'Is the address right? It is the base URL: the part before /plants'
}

/** As it is saved: without the password alone. */
export function completeAddress(address: Address): string {
  return address.scheme === 'postgres' ? address.href : address.name
}

/** An absolute path as the host is the folder of a Unix socket. */
export interface PostgresHost {
  host: string
  port: number
}

/** https://www.postgresql.org/docs/current/libpq-ssl.html#LIBPQ-SSL-PROTECTION */
export const sslModes = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const

export function parseSqlite(
  text: string,
  source: string,
  { resolvePath }: AddressContext,
): SqliteAddress {
  const path = text.replace(/^sqlite:/i, '')
  if (path === '') throw addressError(source, 'is empty')
  if (fileUrl.test(text)) throw addressError(source, 'is a URL of a file', 'Give it as sqlite:PATH')
  const isService = hostWithPort.test(path)
  const isRooted = rooted.test(path) || (isWindows && rootedInWindows.test(path))
  const isMistake = !isRooted && almostUrl.test(path)
  const isWord = path === text && !looksLikeFile.test(path)
  if (isService || isMistake || isWord)
    throw addressError(source, 'does not name a store', isService ? noScheme : addresses)
  return { scheme: 'sqlite', name: resolvePath(path), isDefault: false }
}

const fileUrl = /^(?:file:|sqlite:\/\/)/i

const rooted = /^(?:\.{0,2}\/(?!\/)|~)/
const rootedInWindows = /^(?:\.{0,2}\\|[a-z]:[\\/])/i

const hostWithPort = /^(?:\[[\da-f:.]+\]|[\w.-]+):\d+(?:\/|$)/i

/**
 * `:memory:`, which no other process could open, `https//host`, `user:password@host`, or libpq's
 * `host=… user=…`.
 */
const almostUrl = /^:memory:$|\/\/|:[^/\\]*@|%(3a|2f|40)|=.*\s|\s.*=|^\w+:(?!.*\.(db|sqlite3?)$)/i

/** Other words may be names of saved stores. */
const looksLikeFile = /[/\\]|^[.~]|\.(db|sqlite3?)$/

export function parseHttp(address: string, source: string): HttpAddress {
  const url = /^https?:\/\//i.test(address) ? urlOf(address) : undefined
  if (!url) throw addressError(source, 'is not a valid URL')
  if (url.username || url.password)
    throw addressError(
      source,
      'contains a user name or a password, but a service takes a token',
      'Put the token into PLANTS_TOKEN, or save it with: plants auth login',
    )
  if (url.search || url.hash || /[?#]/.test(address))
    throw addressError(source, 'must be a base URL, without "?" and "#"')
  url.pathname = url.pathname.replace(/\/+$/, '')
  return { scheme: 'http', name: url.href.replace(/\/$/, ''), url }
}

const noScheme =
  'The address of a service begins with http:// or https://, such as http://localhost:4010'

const addresses =
  'Give a path (./plants.db), an address (http://localhost:4010, postgres://HOST/DATABASE) or a saved name (team)'

/** Does not repeat the text, which may have a password. */
export function addressError(source: string, why: string, hint = addresses): PlantsError {
  return usageError(`${source} ${why}`, hint)
}

/** Credentials are saved under it, so that it may be shown where a token could be. */
export function isLoginAddress(text: string): boolean {
  return /^(?:https?:\/\/[^/@?#]+(?:\/[^?#]*)?|postgres:\/\/[^:@/?]*@[^@?]*)$/.test(text)
}

/** Has the passwords of libpq (https://www.postgresql.org/docs/current/libpq-pgpass.html). */
export const passwordFile = isWindows ? '%APPDATA%\\postgresql\\pgpass.conf' : '~/.pgpass'
