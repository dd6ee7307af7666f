import pg from 'pg'
import { isTimeout } from '../../platform/clock.js'
import { type Explanation, explainedBy, PlantsError, reasonOf, shellWord, systemCode } from '../../platform/errors.js'
import type { PostgresAddress } from '../common/address.js'
import type { Login } from '../common/store.js'

export interface Account {
  address: PostgresAddress
  login: Login
}

/** The server requests a login method that is not allowed, or has not proved its identity. */
export class LoginError extends Error {
  readonly hint: string

  constructor(message: string, hint = 'Is it the right server? Ask the operator of the database how to log in') {
    super(message)
    this.hint = hint
  }
}

export class MissingPassword extends LoginError {}

/** See https://www.postgresql.org/docs/current/errcodes-appendix.html; undefined for an error of another source. */
export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof pg.DatabaseError)) return undefined
  return /^[0-9A-Z]{5}$/.test(error.code ?? '') ? error.code : 'XX000'
}

/**
 * Whether the server has reported an error, so that the statement had no effect. Otherwise the connection was lost, and
 * the outcome is unknown: a pooler such as PgBouncer reports the loss of its own server connection with a state of
 * class 08.
 */
export function isServerError(error: unknown): boolean {
  const state = sqlState(error)
  return state !== undefined && !state.startsWith('08') && state !== '40003'
}

/** A connection could not be established, or was lost: the outcome of a statement in progress is unknown. */
export class ConnectionError extends Error {
  /** the code of the system call or of TLS, or one of ours in `failures` */
  readonly code: string | undefined

  constructor(cause: unknown, message = textOf(cause), code = systemCode(cause)) {
    super(message, { cause })
    this.code = code
  }
}

export class LostCommit extends Error {
  constructor(cause: unknown) {
    super('The connection was lost during a commit', { cause })
  }
}

/** Converts an error of the driver to a `pg.DatabaseError`, a `LoginError` or a `ConnectionError`. */
export function driverError(error: unknown): Error {
  if (error instanceof LoginError || error instanceof ConnectionError || error instanceof PlantsError) return error
  if (error instanceof pg.DatabaseError && error.code) return error
  const text = error instanceof Error ? error.message : ''
  if (/^(SASL: |Unknown authenticationOk message type )/.test(text)) return new LoginError(text)
  if (text === 'The server does not support SSL connections')
    return new ConnectionError(error, 'the server has no TLS', 'NO_TLS')
  const isParseError = error instanceof RangeError || error instanceof TypeError
  return new ConnectionError(error, isParseError ? 'the server does not speak the PostgreSQL protocol' : undefined)
}

/** Whether the server may accept a connection without TLS: it has none, or another entry of pg_hba.conf applies. */
export function mayRetryWithoutTls(error: unknown): boolean {
  return systemCode(error) === 'NO_TLS' || sqlState(error)?.startsWith('28') === true
}

/** Whether not to try other servers: otherwise a wrong password would look like an unavailable server. */
export function isFinal(error: unknown): boolean {
  return error instanceof LoginError || /^(28|3D)/.test(sqlState(error) ?? '')
}

export function isUnknownParameter(error: unknown): boolean {
  return sqlState(error) === '08P01' && error instanceof Error && error.message.includes('statement_timeout')
}

/**
 * Whether a retry may succeed soon: no server is ready, or the server has aborted the statement in favour of others.
 */
export function isTransient(error: unknown): boolean {
  if (error instanceof PlantsError) return error.retryable
  if (error instanceof LostCommit) return isTransient(error.cause)
  return isExplained(error) && failureOf(error).retryable === true
}

export function isReadOnly(error: unknown): boolean {
  return sqlState(error) === '25006'
}

/** A trigger or a rule of the table suppresses rows that nothing conflicts with. */
export function leftOut({ name }: PostgresAddress, retryable = false): PlantsError {
  const hint = 'Look for triggers, rules and policies on plant_store.plants that plants did not create'
  return new PlantsError('unavailable', `${name} did not insert all plants`, { hint, retryable })
}

export function unknownCommit({ name }: PostgresAddress, cause: unknown): PlantsError {
  const message = `The connection to ${name} was lost during a commit: whether it is stored is unknown`
  const hint = 'When the database is available again, plants get shows whether the plant is stored'
  return new PlantsError('unknownOutcome', message, { hint, cause })
}

/** Returns errors of other sources unchanged. */
export function explainDatabase(error: unknown, { address, login }: Account): unknown {
  return isExplained(error) ? explainedBy(failureOf(error), { ...address, login }, textOf(error), error) : error
}

function isExplained(error: unknown): error is Error {
  return error instanceof pg.DatabaseError || error instanceof ConnectionError || error instanceof LoginError
}

type DatabaseFailure = Explanation<Omit<PostgresAddress, 'login'> & Pick<Account, 'login'>>

function failureOf(error: Error): DatabaseFailure {
  if (error instanceof LoginError) return error instanceof MissingPassword ? passwordMissing : loginFailed(error)
  const state = sqlState(error)
  if (state !== undefined) return failures[state] ?? failures[state.slice(0, 2)] ?? refused
  return failures[systemCode(error) ?? ''] ?? unreached
}

const unreached: DatabaseFailure = {
  sentence: ({ name }, text) => `Could not reach ${name}: ${text}`,
  hint: 'Is PostgreSQL running there, and is the address right?',
  retryable: true,
}

const refused: DatabaseFailure = {
  sentence: ({ name }, text) => `${name} reported an error: ${text}`,
  hint: 'Look at the log of the database',
}

const busy: DatabaseFailure = { ...refused, retryable: true }

const loginFailed = ({ hint }: LoginError): DatabaseFailure => ({
  sentence: ({ name }, text) => `Could not log in to ${name}: ${text}`,
  hint,
})

const loginRejected: DatabaseFailure = {
  sentence: ({ name, user }, text) => `${name} rejected the login of ${user}: ${text}`,
  hint: ({ hosts, login }) =>
    hosts.some((host) => login.password(host) !== undefined)
      ? login.passwordHint
      : 'Check the user in the address, or ask the administrator of the database how to log in',
  type: 'unauthorized',
}

const passwordMissing: DatabaseFailure = { ...loginRejected, hint: ({ login }) => login.passwordHint }

const unreachable: DatabaseFailure = { ...unreached, retryable: false }

const untrusted: DatabaseFailure = {
  ...unreachable,
  hint: 'Set the root certificate of its issuer: sslrootcert=PATH, or --ca-cert PATH',
}

/** by SQLSTATE or its class, or by the code of a system call, of TLS, or of a `ConnectionError` */
const failures: Record<string, DatabaseFailure> = {
  '08': unreached,
  // of `fsyncs` in sql.ts
  '22012': {
    sentence: ({ name }) => `${name} answers before a plant is on disk: fsync is off`,
    hint: 'Turn fsync on in postgresql.conf',
  },
  // another writer has just created the id
  '23505': busy,
  // the server is read-only
  '25006': busy,
  '28': loginRejected,
  '3D': {
    sentence: ({ name }) => `${name} names a database that does not exist`,
    hint: ({ database }) =>
      `Create it there: CREATE DATABASE ${pg.escapeIdentifier(database)} ENCODING UTF8 TEMPLATE template0`,
  },
  // transaction rollback
  '40': busy,
  '40003': unreached,
  '42703': {
    sentence: ({ name }, text) => `${name} has the tables of an older version of plants: ${text}`,
    hint: 'Migrate them with: plants stores init ADDRESS',
  },
  '42501': {
    sentence: ({ name, user }, text) => `Permission denied for ${user} in ${name}: ${text}`,
    hint: ({ user }) =>
      `To create and to read, it needs: plants stores init OWNER-ADDRESS --role ${shellWord(user)}. To update and to delete, add --allow create,read,update,delete. For anything else use the address of the owner`,
  },
  // resources
  '53': busy,
  '53300': {
    sentence: ({ name }) => `${name} has no free connection`,
    hint: 'Try again, raise max_connections there, or put PgBouncer in front of it',
    retryable: true,
  },
  // lock not available
  '55P03': busy,
  // operator intervention
  '57': busy,
  '57014': {
    sentence: ({ name }) => `${name} did not finish in time`,
    hint: 'Try again, or raise --timeout',
    retryable: true,
  },
  // system
  '58': busy,
  CERT_HAS_EXPIRED: unreachable,
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  EACCES: unreachable,
  ENOTFOUND: unreachable,
  ERR_TLS_CERT_ALTNAME_INVALID: unreachable,
  NO_TLS: {
    sentence: ({ name }) => `${name} has no TLS`,
    hint: ({ sslmode }) =>
      `Turn on ssl there. Or on a network that only you use, connect without TLS: sslmode=prefer instead of ${sslmode}`,
  },
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  TOO_LARGE: unreachable,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
}

/** Truncated: a server may send any amount. The addresses of one host fail together, in an `AggregateError`. */
function textOf(error: unknown): string {
  if (error instanceof AggregateError) return [...new Set(error.errors.map(textOf))].join(', ')
  if (isTimeout(error)) return 'no answer in time'
  const text = reasonOf(error)
  return text.length > maxText ? `${text.slice(0, maxText)}…` : text
}

const maxText = 1000
