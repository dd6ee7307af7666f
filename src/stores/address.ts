import { isWindows, PlantsError, usageError } from '../errors.js'

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
  targetSessionAttrs: (typeof targetSessionAttrs)[number]
}

/** An absolute path as the host is the folder of a Unix socket. */
export interface PostgresHost {
  host: string
  port: number
}

export function isSocket({ host }: PostgresHost): boolean {
  return host.startsWith('/')
}

/** https://www.postgresql.org/docs/current/libpq-ssl.html#LIBPQ-SSL-PROTECTION */
export const sslModes = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const

/**
 * Which server is used: the first that accepts writes, or the first that answers. libpq has more
 * (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNECT-TARGET-SESSION-ATTRS).
 */
export const targetSessionAttrs = ['read-write', 'any'] as const

/** A hint with the forms of an address. */
export const addressForms =
  'Give a path (./plants.db), an address (http://localhost:4010, postgres://HOST/DATABASE) or a saved name (team)'

/** Does not repeat the text, which may have a password. */
export function createAddressError(source: string, why: string, hint = addressForms): PlantsError {
  return usageError(`${source} ${why}`, hint)
}

export function createNoStoreError(
  { name }: Address,
  hint = 'Check the address, or create the store and a plant with: plants create',
): PlantsError {
  return new PlantsError('unavailable', `There is no store at ${name}`, { hint })
}

/** Credentials are saved under it, so that it may be shown where a token could be. */
export function isLoginAddress(text: string): boolean {
  return /^(?:https?:\/\/[^/@?#]+(?:\/[^?#]*)?|postgres:\/\/[^:@/?]*@[^@?]*)$/.test(text)
}

/** Has the passwords of libpq (https://www.postgresql.org/docs/current/libpq-pgpass.html). */
export const passwordFile = isWindows ? '%APPDATA%\\postgresql\\pgpass.conf' : '~/.pgpass'
