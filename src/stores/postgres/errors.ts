import pg from 'pg'
import { isTimeout, timeIsOver } from '../../platform/clock.js'
import { type Kind, PlantsError, shellWord, systemCode } from '../../platform/errors.js'
import type { PostgresAddress } from '../address.js'
import type { Login } from '../store.js'
import { type Account, LoginError } from './login.js'

/** The SQLSTATE of what a server refused (https://www.postgresql.org/docs/current/errcodes-appendix.html); undefined for any other failure. */
export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof pg.DatabaseError)) return undefined
  const state = error.code ?? ''
  return /^[0-9A-Z]{5}$/.test(state) ? state : internalError
}

/** What stands for a state that is none. */
const internalError = 'XX000'

/** What a division by zero says: that a check of ours, such as `durabilityCheck`, has failed. */
export const divisionByZero = '22012'

/**
 * Whether the server has said no, so that what was asked for has not happened. Else the connection was lost, and nobody knows: a pooler such
 * as PgBouncer reports the loss of its own connection to the server with a state of class 08.
 */
export function isRefusal(error: unknown): boolean {
  const state = sqlState(error)
  return state !== undefined && !state.startsWith('08') && state !== '40003'
}

/** A connection could not be made, or was lost: nobody knows what became of a statement that was under way. */
export class ConnectionError extends Error {
  /** of the system call, or of TLS */
  readonly code: string | undefined
  /** whether a server was there at all */
  readonly isReached: boolean

  constructor(cause: unknown, message = textOf(cause), code = systemCode(cause)) {
    super(message, { cause })
    this.code = code
    this.isReached = !isTimeout(cause) && !(cause instanceof Error && 'syscall' in cause)
  }
}

/** What the driver says, as an error of the server, a `LoginError`, or a `ConnectionError`. */
export function driverError(error: unknown): Error {
  if (error instanceof LoginError || error instanceof ConnectionError || error instanceof PlantsError) return error
  if (error instanceof pg.DatabaseError && error.code) return error
  const message = error instanceof Error ? error.message : ''
  const [, method] = /^Unknown authenticationOk message type (\d+)$/.exec(message) ?? []
  if (method !== undefined) return new LoginError(`it asks for a way to log in that is not supported (${method})`)
  if (message.startsWith('SASL: ')) return new LoginError(message.replace(/^SASL: (SCRAM-SERVER-\w+-MESSAGE: )?/, ''))
  if (message === 'The server does not support SSL connections') return new ConnectionError(error, 'the server has no TLS', 'NO_TLS')
  if (message === 'timeout expired') return new ConnectionError(timeIsOver())
  if (message === 'Connection terminated unexpectedly') return new ConnectionError(error, 'the server closed the connection')
  const isForeign = error instanceof RangeError || error instanceof TypeError || error instanceof pg.DatabaseError || foreign.test(message)
  return isForeign ? new ConnectionError(error, 'the server does not speak the PostgreSQL protocol') : new ConnectionError(error)
}

/** What the driver says of messages that it cannot read, or that may not come. */
const foreign =
  /^(There was an error establishing an SSL connection|received invalid response: |Received unexpected \w+ message from backend)/

/** Whether a server that was reached may let somebody in who comes with TLS, or without: it has another entry in pg_hba.conf for that. */
export function mayEnterOtherwise(error: unknown): boolean {
  const state = sqlState(error)
  if (state !== undefined) return state.startsWith('28')
  return error instanceof ConnectionError && error.isReached
}

/** Whether other servers are not tried: a wrong password would else look like a server that is away. */
export function isFinal(error: unknown): boolean {
  return error instanceof LoginError || /^(28|3D)/.test(sqlState(error) ?? '')
}

/** What PgBouncer says to a startup parameter that it does not know. */
export function isUnknownParameter(error: unknown): boolean {
  return sqlState(error) === '08P01' && error instanceof Error && error.message.includes('statement_timeout')
}

/** Whether the same can succeed in a moment: the server, or another one in its place, is not ready, or has broken it off for the sake of others. */
export function isTransient(error: unknown): boolean {
  if (error instanceof PlantsError) return error.retryable
  const state = sqlState(error)
  if (state !== undefined) return passingClasses.has(state.slice(0, 2)) || passingStates.has(state)
  return error instanceof ConnectionError && !permanentCodes.has(error.code ?? '')
}

/** connection, transaction rollback, resources, operator intervention, system */
const passingClasses = new Set(['08', '40', '53', '57', '58'])

/** read-only, a lock that was not to be had */
const passingStates = new Set(['25006', '55P03'])

/** Whether a connection that got such an answer is of no more use for writing. */
export function isReadOnly(error: unknown): boolean {
  return sqlState(error) === '25006'
}

/** What of the system, or of TLS, stays as it is until somebody changes it. */
const permanentCodes = new Set([
  'ENOTFOUND',
  'EACCES',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'NO_TLS',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/** Rows that were sent, and are not there, though nothing stands in their way: a trigger or a rule of the table has left them out. */
export class LeftOutError extends PlantsError {
  constructor({ name }: PostgresAddress) {
    const hint = 'Look for triggers, rules and policies on plant_store.plants that plants did not create'
    super('unavailable', `${name} did not insert plants that it was sent`, { hint })
  }
}

/** inserts without any effect after which rows count as left out: others may create and delete the ids meanwhile */
export const maxFutile = 3

/** What could not be found out until the time was over. */
export function lostCommit({ name }: PostgresAddress, cause: unknown): PlantsError {
  const message = `The connection to ${name} was lost during a commit: whether it is stored is unknown`
  return new PlantsError('unknownOutcome', message, {
    hint: 'When the database is back, plants get shows whether the plant is there',
    cause,
  })
}

/** Turns what a server, the system or TLS said into a `PlantsError` that says what to do about it; any other error stays as it is. */
export function explainDatabase(error: unknown, { address, login }: Account): unknown {
  if (!(error instanceof pg.DatabaseError || error instanceof ConnectionError || error instanceof LoginError)) return error
  const code = sqlState(error) ?? systemCode(error) ?? ''
  const explain = explanations[code] ?? explanations[code.slice(0, 2)] ?? (isRefusal(error) ? refused : unreached)
  const { message, hint, kind = 'unavailable' } = explain(address, textOf(error), login)
  return new PlantsError(kind, message, { hint, retryable: isTransient(error), cause: error })
}

interface Explanation {
  message: string
  hint: string
  kind?: Kind
}

/** By SQLSTATE, its class, or the code of a system call. */
const explanations: Record<string, (address: PostgresAddress, text: string, login: Login) => Explanation> = {
  '25006': ({ name }) => ({ message: `${name} is read-only now`, hint: 'Try again, or name the server that takes writes' }),
  '28': notLetIn,
  '3D': ({ name, database }) => ({
    message: `${name} names a database that does not exist`,
    hint: `Create it there: CREATE DATABASE ${pg.escapeIdentifier(database)} ENCODING UTF8 TEMPLATE template0`,
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
  LOGIN_EXPOSED: ({ name }, text) => ({
    message: `Could not log in to ${name}: ${text}`,
    hint: 'Add to the address: sslmode=verify-full. Or, where the network is yours alone: require_auth=password, or require_auth=md5',
  }),
  LOGIN_NO_PASSWORD: notLetIn,
  LOGIN_REFUSED: ({ name }, text) => ({ message: `Could not log in to ${name}: ${text}`, hint: impostorHint }),
  LOGIN_SOCKET: ({ name }, text) => ({
    message: `Could not log in to ${name}: ${text}`,
    hint: 'If that is who runs the database, add to the address: requirepeer=USER',
  }),
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  NO_TLS: ({ name, sslmode }) => ({
    message: `${name} has no TLS`,
    hint: `Turn ssl on there. Or, where the network is yours alone, reach it without: sslmode=prefer instead of ${sslmode}`,
  }),
  ENOTFOUND: ({ name, hosts }) => ({ message: `${name} has an unknown host: ${hostsOf(hosts)}`, hint: 'Check the address' }),
}

const impostorHint = 'Is it the right server? Ask who runs it how to log in'

function notLetIn({ name, user }: PostgresAddress, text: string, { passwordHint }: Login): Explanation {
  return { message: `${name} rejected the login of ${user}: ${text}`, hint: passwordHint, kind: 'unauthorized' }
}

function untrusted({ name }: PostgresAddress, text: string): Explanation {
  return { message: `Could not reach ${name}: ${text}`, hint: 'Give the certificate of its authority: sslrootcert=PATH, or --ca-cert PATH' }
}

function refused({ name }: PostgresAddress, text: string): Explanation {
  return { message: `${name} refused it: ${text}`, hint: 'Look at the log of the database' }
}

function unreached({ name }: PostgresAddress, text: string): Explanation {
  return { message: `Could not reach ${name}: ${text}`, hint: 'Is PostgreSQL running there, and is the address right?' }
}

function hostsOf(hosts: PostgresAddress['hosts']): string {
  return hosts.map(({ host }) => host).join(', ')
}

/** What a failure says of itself. Several addresses of one host fail together, in an error without a text of its own. */
function textOf(error: unknown): string {
  if (error instanceof ConnectionError) return error.message
  if (error instanceof AggregateError) return [...new Set(error.errors.map(textOf))].join(', ')
  if (isTimeout(error)) return 'no answer in time'
  const code = isRefusal(error) ? '' : (systemCode(error) ?? '')
  return wordsFor[code] ?? cut(error instanceof Error ? error.message : String(error))
}

/** A server may say as much as it likes, also in a name that it repeats. */
function cut(text: string): string {
  return text.length > maxText ? `${text.slice(0, maxText)}…` : text
}

const maxText = 1000

const lost = 'the connection was lost'
/** Those of OpenSSL are the same in every version of Node. */
const wordsFor: Record<string, string> = {
  CERT_HAS_EXPIRED: 'its certificate has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'self-signed certificate',
  ECONNREFUSED: 'connection refused',
  ECONNRESET: lost,
  EHOSTUNREACH: 'no route to host',
  ENETUNREACH: 'network is unreachable',
  ENOENT: 'no such socket',
  EPIPE: lost,
  SELF_SIGNED_CERT_IN_CHAIN: 'self-signed certificate in certificate chain',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'unable to get local issuer certificate',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'unable to verify the first certificate',
}
