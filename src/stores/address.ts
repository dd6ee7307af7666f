import { createUsageError, PlantsError } from '../errors.js'

export interface AddressContext {
  resolvePath(path: string): string
  /** Returns the directory of the store `local`. */
  findDataFolder(): Promise<string>
  /** The variables of libpq in it, such as PGHOST, complete the address of a database. */
  env: Readonly<Record<string, string | undefined>>
  /** Returns undefined if the user id has no account, as in some containers. */
  findUserName(): string | undefined
  /** The passwords of addresses are added to these, so that no output shows them. */
  secrets: Set<string>
  /** Other users can see the arguments of a process, so one must not contain a password. */
  isArgument: boolean
}

export type Address = SqliteAddress | PostgresAddress | HttpAddress

export interface SqliteAddress {
  scheme: 'sqlite'
  /** This is the path of the file. */
  name: string
  /** This is true for `local`, whose directory is created if it is missing. */
  isDefault: boolean
}

export interface HttpAddress {
  scheme: 'http'
  /** This is the URL without a trailing slash. Tokens are saved under it. */
  name: string
  /** This is the specification's base_url. Its path has no trailing slash, unless it is "/". */
  url: URL
}

export interface PostgresAddress {
  scheme: 'postgres'
  name: string
  /** This is the complete address without the password. */
  href: string
  /** They are tried in this order. */
  hosts: PostgresHost[]
  user: string
  database: string
  password: string | undefined
  sslmode: (typeof sslModes)[number]
  /** This is an absolute path, or "system". If undefined, the default of libpq is used. */
  sslrootcert: string | undefined
  /** These are the absolute paths of the client certificate and its key. */
  sslcert: string | undefined
  sslkey: string | undefined
  /** The largest number of connections that a process opens to a server. */
  maxConnections: number
  targetSessionAttrs: (typeof targetSessionAttrs)[number]
}

/** If the host is an absolute path, it is the folder of a Unix socket, as in libpq. */
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
 * These choose the first server that accepts writes, or the first one that answers. libpq has
 * further values, which this program does not support
 * (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNECT-TARGET-SESSION-ATTRS).
 */
export const targetSessionAttrs = ['read-write', 'any'] as const

/** This hint lists the forms of an address. */
export const addressForms =
  'Give a path (./garden.db), an address (http://localhost:4010) or a name of plants stores list'

/**
 * @param source where the address comes from. Messages say this instead of the address, which may
 *   contain a password.
 */
export function createAddressError(
  source: string,
  problem: string,
  hint = addressForms,
): PlantsError {
  return createUsageError(`${source} ${problem}`, hint)
}

/** The port of a database may come from its address, or from PGPORT. */
export function createPortError(source: string): PlantsError {
  return createAddressError(source, 'has a port that is not from 1 to 65535', 'Correct the port')
}

/** The hint for a default store that does not exist yet. */
export const createDefaultHint = 'Create it with: plants import FILE, or plants create'

/** @param hint by default, what to do about the path of a file */
export function createNoStoreError(
  { name }: Address,
  hint = 'Check the path, or create the store with: plants import FILE --store PATH',
): PlantsError {
  return new PlantsError('accessDenied', `There is no store at ${name}`, { hint })
}

/**
 * Returns true for an address under which credentials are saved: a service, or a database with its
 * user. Such an address contains no secret, so it may be shown where somebody may have typed a
 * token by mistake.
 */
export function isLoginAddress(address: string): boolean {
  return /^(?:https?:\/\/[^/@?#]+(?:\/[^?#]*)?|postgres:\/\/[^:@/?]*@[^@?]*)$/.test(address)
}

export const setPasswordHint = 'Set PGPASSWORD'

/**
 * Adds the forms of a password to the secrets, which are redacted in all output. If the password is
 * also a part of the address, such as the name of the database, `***` in a printed address would
 * reveal which part it is.
 *
 * @param href the address without its password
 */
export function addPassword(
  forms: readonly (string | undefined)[],
  href: string,
  secrets: Set<string>,
): void {
  for (const form of forms) if (form && !href.includes(form)) secrets.add(form)
}
