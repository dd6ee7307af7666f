import pg from 'pg'
import { isTimeout } from '../../platform/clock.js'
import { type ErrorType, PlantsError, shellWord, systemCode } from '../../platform/errors.js'
import type { PostgresAddress } from '../common/address.js'
import type { Login } from '../common/store.js'
import { type Account, LoginError, MissingPassword } from './login.js'

/** The SQLSTATE of a server error (https://www.postgresql.org/docs/current/errcodes-appendix.html); undefined for any other error. */
export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof pg.DatabaseError)) return undefined
  const state = error.code ?? ''
  return /^[0-9A-Z]{5}$/.test(state) ? state : internalError
}

/** The replacement for an invalid SQLSTATE. */
const internalError = 'XX000'

/**
 * Whether the server has reported an error, so that the statement had no effect. Otherwise the connection was lost, and the outcome is
 * unknown: a pooler such as PgBouncer reports the loss of its own server connection with a state of class 08.
 */
export function isServerError(error: unknown): boolean {
  const state = sqlState(error)
  return state !== undefined && !state.startsWith('08') && state !== '40003'
}

/** A connection could not be established, or was lost: the outcome of a statement in progress is unknown. */
export class ConnectionError extends Error {
  /** the code of the system call or of TLS */
  readonly code: string | undefined
  readonly isReached: boolean

  constructor(cause: unknown, message = textOf(cause), code = systemCode(cause)) {
    super(message, { cause })
    this.code = code
    this.isReached = !isTimeout(cause) && !(cause instanceof Error && 'syscall' in cause)
  }
}

/** The connection was lost during a statement that commits: whether it has is unknown. */
export class LostCommit extends Error {
  constructor(cause: unknown) {
    super('The connection was lost during a commit', { cause })
  }
}

/** Converts an error of the driver to a `pg.DatabaseError`, a `LoginError` or a `ConnectionError`. */
export function driverError(error: unknown): Error {
  if (error instanceof LoginError || error instanceof ConnectionError || error instanceof PlantsError) return error
  if (error instanceof pg.DatabaseError && error.code) return error
  const message = error instanceof Error ? error.message : ''
  const [, method] = /^Unknown authenticationOk message type (\d+)$/.exec(message) ?? []
  if (method !== undefined) return new LoginError(`it requests a login method that is not supported (${method})`)
  if (message.startsWith('SASL: ')) return new LoginError(message.replace(/^SASL: (SCRAM-SERVER-\w+-MESSAGE: )?/, ''))
  if (message === 'The server does not support SSL connections') return new ConnectionError(error, 'the server has no TLS', 'NO_TLS')
  if (message === 'Connection terminated unexpectedly') return new ConnectionError(error, 'the server closed the connection')
  const isForeign = error instanceof RangeError || error instanceof TypeError || error instanceof pg.DatabaseError || foreign.test(message)
  return isForeign ? new ConnectionError(error, 'the server does not speak the PostgreSQL protocol') : new ConnectionError(error)
}

/** The driver's messages for input that it cannot parse or does not expect. */
const foreign =
  /^(There was an error establishing an SSL connection|received invalid response: |Received unexpected \w+ message from backend)/

/** Whether the other attempt, with or without TLS, may succeed: a different entry of pg_hba.conf applies to it. */
export function mayRetryOtherEndpoint(error: unknown): boolean {
  const state = sqlState(error)
  if (state !== undefined) return state.startsWith('28')
  return error instanceof ConnectionError && error.isReached
}

/** Whether not to try other servers: otherwise a wrong password would look like an unavailable server. */
export function isFinal(error: unknown): boolean {
  return error instanceof LoginError || /^(28|3D)/.test(sqlState(error) ?? '')
}

export function isUnknownParameter(error: unknown): boolean {
  return sqlState(error) === '08P01' && error instanceof Error && error.message.includes('statement_timeout')
}

/** Whether a retry may succeed soon: no server is ready, or the server has aborted the statement in favour of others. */
export function isTransient(error: unknown): boolean {
  if (error instanceof PlantsError) return error.retryable
  if (error instanceof LostCommit) return isTransient(error.cause)
  const state = sqlState(error)
  if (state !== undefined) return transientClasses.has(state.slice(0, 2)) || transientStates.has(state)
  return error instanceof ConnectionError && !systemErrors[error.code ?? '']?.isPermanent
}

/** the SQLSTATE classes connection, transaction rollback, resources, operator intervention, and system */
const transientClasses = new Set(['08', '40', '53', '57', '58'])

/** read-only, and lock not available */
const transientStates = new Set(['25006', '55P03'])

/** Whether the connection can no longer be used for writing. */
export function isReadOnly(error: unknown): boolean {
  return sqlState(error) === '25006'
}

/** Rows were sent, but not inserted, although nothing conflicts with them: a trigger or a rule of the table suppresses them. */
export class LeftOutError extends PlantsError {
  constructor({ name }: PostgresAddress) {
    const hint = 'Look for triggers, rules and policies on plant_store.plants that plants did not create'
    super('unavailable', `${name} did not insert all plants`, { hint })
  }
}

/** inserts without effect after which rows count as suppressed: other writers may create and delete the ids between tries */
export const maxIneffective = 3

export function lostCommit({ name }: PostgresAddress, cause: unknown): PlantsError {
  const message = `The connection to ${name} was lost during a commit: whether it is stored is unknown`
  return new PlantsError('unknownOutcome', message, {
    hint: 'When the database is available again, plants get shows whether the plant is stored',
    cause,
  })
}

/** Turns an error of the server, the system or TLS into a `PlantsError` with a hint; returns any other error unchanged. */
export function explainDatabase(error: unknown, { address, login }: Account): unknown {
  if (!(error instanceof pg.DatabaseError || error instanceof ConnectionError || error instanceof LoginError)) return error
  const { message, hint, type = 'unavailable' } = explanationOf(error)(address, textOf(error), login)
  return new PlantsError(type, message, { hint, retryable: isTransient(error), cause: error })
}

function explanationOf(error: Error): Explain {
  if (error instanceof MissingPassword) return loginRejected
  if (error instanceof LoginError) return ({ name }, text) => ({ message: `Could not log in to ${name}: ${text}`, hint: error.hint })
  const state = sqlState(error)
  if (state === undefined) return systemErrors[systemCode(error) ?? '']?.explain ?? unreached
  return explanations[state] ?? explanations[state.slice(0, 2)] ?? (isServerError(error) ? refused : unreached)
}

type Explain = (address: PostgresAddress, text: string, login: Login) => Explanation

interface Explanation {
  message: string
  hint: string
  type?: ErrorType
}

/** For a database with fsync off. */
export function notDurable({ name }: PostgresAddress): Explanation {
  return { message: `${name} answers before a plant is on disk: fsync is off`, hint: 'Turn fsync on in postgresql.conf' }
}

const explanations: Record<string, Explain> = {
  '22012': notDurable, // of a check in sql.ts
  '25006': ({ name }) => ({ message: `${name} is read-only now`, hint: 'Try again, or use the address of the server that accepts writes' }),
  '28': (address, text, login) => {
    const rejected = loginRejected(address, text, login)
    if (address.hosts.some((host) => login.password(host) !== undefined)) return rejected
    return { ...rejected, hint: 'Check the user in the address, or ask the administrator of the database how to log in' }
  },
  '3D': ({ name, database }) => ({
    message: `${name} names a database that does not exist`,
    hint: `Create it there: CREATE DATABASE ${pg.escapeIdentifier(database)} ENCODING UTF8 TEMPLATE template0`,
  }),
  '42703': ({ name }, text) => ({
    message: `${name} has the tables of an older version of plants: ${text}`,
    hint: 'Migrate them with: plants stores init ADDRESS',
  }),
  '42501': ({ name, user }, text) => ({
    message: `Permission denied for ${user} in ${name}: ${text}`,
    hint: `To create and to read, it needs: plants stores init OWNER-ADDRESS --role ${shellWord(user)}. To update and to delete, add --allow create,read,update,delete. For anything else use the address of the owner`,
  }),
  '53100': ({ name }) => ({ message: `No space left on the disk of ${name}`, hint: 'Free some space there, then try again' }),
  '53300': ({ name }) => ({
    message: `${name} has no free connection`,
    hint: 'Try again, raise max_connections there, or put PgBouncer in front of it',
  }),
  '57014': ({ name }) => ({ message: `${name} did not finish in time`, hint: 'Try again, or raise --timeout' }),
}

function loginRejected({ name, user }: PostgresAddress, text: string, { passwordHint }: Login): Explanation {
  return { message: `${name} rejected the login of ${user}: ${text}`, hint: passwordHint, type: 'unauthorized' }
}

function untrusted({ name }: PostgresAddress, text: string): Explanation {
  return {
    message: `Could not reach ${name}: ${text}`,
    hint: 'Set the root certificate of its issuer: sslrootcert=PATH, or --ca-cert PATH',
  }
}

function refused({ name }: PostgresAddress, text: string): Explanation {
  return { message: `${name} reported an error: ${text}`, hint: 'Look at the log of the database' }
}

function unreached({ name }: PostgresAddress, text: string): Explanation {
  return { message: `Could not reach ${name}: ${text}`, hint: 'Is PostgreSQL running there, and is the address right?' }
}

/** The text of an error. The addresses of one host fail together, in an `AggregateError` without a text. */
function textOf(error: unknown): string {
  if (error instanceof ConnectionError) return error.message
  if (error instanceof AggregateError) return [...new Set(error.errors.map(textOf))].join(', ')
  if (isTimeout(error)) return 'no answer in time'
  const code = isServerError(error) ? '' : (systemCode(error) ?? '')
  return systemErrors[code]?.text ?? cut(error instanceof Error ? error.message : String(error))
}

/** Truncates a text: a server may send any amount, for example in a name that it repeats. */
function cut(text: string): string {
  return text.length > maxText ? `${text.slice(0, maxText)}…` : text
}

const maxText = 1000

const lost = 'the connection was lost'

/** The errors of the system, of TLS and of a server without TLS, by code. */
const systemErrors: Record<string, SystemError> = {
  CERT_HAS_EXPIRED: { text: 'its certificate has expired', isPermanent: true },
  DEPTH_ZERO_SELF_SIGNED_CERT: { text: 'self-signed certificate', isPermanent: true, explain: untrusted },
  EACCES: { isPermanent: true },
  ECONNREFUSED: { text: 'connection refused' },
  ECONNRESET: { text: lost },
  EHOSTUNREACH: { text: 'no route to host' },
  ENETUNREACH: { text: 'network is unreachable' },
  ENOENT: { text: 'no such socket' },
  ENOTFOUND: {
    isPermanent: true,
    explain: ({ name, hosts }) => ({
      message: `${name} has an unknown host: ${hosts.map(({ host }) => host).join(', ')}`,
      hint: 'Check the address',
    }),
  },
  EPIPE: { text: lost },
  ERR_TLS_CERT_ALTNAME_INVALID: { isPermanent: true },
  NO_TLS: {
    isPermanent: true,
    explain: ({ name, sslmode }) => ({
      message: `${name} has no TLS`,
      hint: `Turn on ssl there. Or on a network that only you use, connect without TLS: sslmode=prefer instead of ${sslmode}`,
    }),
  },
  SELF_SIGNED_CERT_IN_CHAIN: { text: 'self-signed certificate in certificate chain', isPermanent: true, explain: untrusted },
  TOO_LARGE: { isPermanent: true },
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: { text: 'unable to get local issuer certificate', isPermanent: true, explain: untrusted },
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: { text: 'unable to verify the first certificate', isPermanent: true, explain: untrusted },
}

interface SystemError {
  /** the same in every version of Node; its own text if undefined */
  text?: string
  /** whether it persists until somebody fixes the cause */
  isPermanent?: true
  explain?: Explain
}
