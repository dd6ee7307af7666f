import pg from 'pg'
import { type ErrorKind, PlantsError, reasonOf, systemCode } from '../../platform/errors.js'
import { isTimeout } from '../../platform/runtime.js'
import type { PostgresAddress } from '../common/address.js'
import type { Login } from './options.js'

export interface Account {
  address: PostgresAddress
  login: Login
}

/**
 * Explains an error of the server (https://www.postgresql.org/docs/current/errcodes-appendix.html), of the driver or of
 * the system. One of ours stays as it is.
 */
export function explained(error: unknown, { address, login }: Account): PlantsError {
  if (error instanceof PlantsError) return error
  const { name, user } = address
  const reason = textOf(error)
  const failure = (kind: ErrorKind) => (message: string, hint: string) =>
    new PlantsError(kind, message, { hint, cause: error })
  const [temporary, permanent] = [failure('unavailable'), failure('inaccessible')]
  const rejected = (hint: string) =>
    failure('unauthorized')(`${name} rejected the login of ${user}: ${reason}`, hint)

  const unreached = `Could not reach ${name}: ${reason}`
  const isItThere = 'Is PostgreSQL running there, and is the address right?'
  if (!(error instanceof pg.DatabaseError)) {
    const code = systemCode(error) ?? ''
    if (isPoolFull(error)) return temporary(`All connections to ${name} were in use`, beSlower)
    if (lacksTls(error)) return permanent(`${name} has no TLS`, 'Turn on ssl there')
    if (reason.startsWith('SASL: '))
      return permanent(`Could not log in to ${name}: ${reason}`, 'Is it the right server?')
    if (/SELF_SIGNED|UNABLE_TO_/.test(code))
      return permanent(unreached, 'Set the root certificate of its issuer: sslrootcert=PATH')
    if (/^(CERT_|ERR_TLS_CERT_|EACCES$|ENOTFOUND$)/.test(code))
      return permanent(unreached, isItThere)
    return temporary(unreached, isItThere)
  }

  const { code = '' } = error
  const reported = `${name} reported an error: ${reason}`
  const seeLog = 'Look at the log of the database'
  // The table may be one that somebody's trigger uses, and only the text names it.
  if (/^(3F000|42P01)$/.test(code) && reason.includes('plant_store'))
    return permanent(`There is no store at ${name}`, createStoreHint)
  if (code === '28P01') return rejected(login.passwordHint)
  if (code.startsWith('28')) return rejected('Correct the user, or let it log in: see pg_hba.conf')
  if (code.startsWith('3D'))
    return permanent(
      `${name} names a database that does not exist`,
      'Create it there: CREATE DATABASE NAME ENCODING UTF8 TEMPLATE template0',
    )
  if (code === '42501')
    return permanent(
      `Permission denied for ${user} in ${name}: ${reason}`,
      'Use the address of the owner, or grant the rights: see Least privilege in docs/databases.md',
    )
  if (code === '53300') return temporary(`${name} has no free connection`, fewerConnections)
  if (code === '57014') return temporary(`${name} did not finish in time`, beSlower)
  if (code.startsWith('08')) return temporary(unreached, isItThere)
  // Another writer was faster, the server is read-only, or it has a crisis that passes.
  if (/^(23505|25006|40|53|55|57|58)/.test(code)) return temporary(reported, seeLog)
  return permanent(reported, seeLog)
}

const createStoreHint = 'Check the address. A store is created by: plants stores init ADDRESS'
const fewerConnections = 'Raise max_connections there, or put PgBouncer in front of it'
const beSlower = 'Try again, raise --timeout, or allow more connections in its address: ?max=NUMBER'

/** All connections of a pool were in use for `connectionTimeoutMillis`. The driver has no code for it. */
export function isPoolFull(error: unknown): boolean {
  return error instanceof Error && error.message === 'timeout exceeded when trying to connect'
}

/** The driver has no code for it. */
function lacksTls(error: unknown): boolean {
  return error instanceof Error && error.message === 'The server does not support SSL connections'
}

/** Whether a login may succeed without TLS, perhaps by another entry of pg_hba.conf. */
export function refusesTls(error: unknown): boolean {
  return lacksTls(error) || codeOf(error) === '28000'
}

/** Whether another plant has the id or the idempotency key. */
export function isTaken(error: unknown): boolean {
  const { code, constraint } = reportedBy(error) ?? {}
  return code === '23505' && /^plants_(pkey|idempotency_key)$/.test(`${constraint}`)
}

/**
 * Why the server refuses a plant, because of a constraint, an index or a trigger that somebody added: by its data (22),
 * its integrity (23), a limit such as the size of an index row (54), or RAISE (P0). Undefined for other errors.
 */
export function refusalIn(error: unknown): string | undefined {
  const isRefusal = /^(22|23|54|P0)/.test(codeOf(error)) && !isTaken(error)
  return isRefusal ? reportedBy(error)?.message : undefined
}

/**
 * Whether nothing was stored by a COMMIT that failed. Behind PgBouncer, the answer to one that was made is lost as an
 * error of class 08, and with 40003 the server does not know it itself.
 */
export function wasRolledBack(error: unknown): boolean {
  return /^(23|40(?!003)|57014)/.test(codeOf(error))
}

/** Whether a connection is not used again: there was no answer, or it leads to a server that is read-only. */
export function closesConnection(error: unknown): boolean {
  return reportedBy(error) === undefined || /^(08|57P|25006)/.test(codeOf(error))
}

/** SQLSTATE; empty for what is no error of the server. */
function codeOf(error: unknown): string {
  return reportedBy(error)?.code ?? ''
}

function reportedBy(error: unknown): pg.DatabaseError | undefined {
  const cause = error instanceof PlantsError ? error.cause : error
  return cause instanceof pg.DatabaseError ? cause : undefined
}

/** The addresses of one host fail together, in an `AggregateError`. */
function textOf(error: unknown): string {
  if (error instanceof AggregateError) return [...new Set(error.errors.map(textOf))].join(', ')
  return isTimeout(error) ? 'no answer in time' : reasonOf(error)
}
