import pg from 'pg'
import { type ErrorKind, PlantsError, reasonOf, systemCode } from '../../platform/errors.js'
import type { PostgresAddress } from '../common/address.js'
import type { PostgresOptions } from './options.js'

export interface Access {
  address: PostgresAddress
  options: PostgresOptions
}

/**
 * Explains an error of the server (https://www.postgresql.org/docs/current/errcodes-appendix.html), of the driver or of
 * the system. One of ours stays as it is.
 */
export function explained(error: unknown, { address, options }: Access): PlantsError {
  if (error instanceof PlantsError) return error
  const { name, user } = address
  const reason = textOf(error)
  const failure = (kind: ErrorKind, message: string, hint: string) =>
    new PlantsError(kind, message, { hint, cause: error })

  const code = codeOf(error)
  if (isPoolFull(error))
    return failure('unavailable', `All connections to ${name} were in use`, beSlower)
  if (code === '' || code.startsWith('08')) {
    const isPermanent = lacksTls(error) || permanentCauses.test(systemCode(error) ?? reason)
    const kind = isPermanent ? 'inaccessible' : 'unavailable'
    return failure(kind, `Could not reach ${name}: ${reason}`, isItThere)
  }
  // The table may be one that somebody's trigger uses, and only the text names it.
  if (/^(3F000|42P01)$/.test(code) && reason.includes('plant_store'))
    return failure('inaccessible', `There is no store at ${name}`, createStoreHint)
  if (code.startsWith('28')) {
    const hint =
      code === '28P01' ? options.login.passwordHint : 'Correct the user, or pg_hba.conf there'
    return failure('unauthorized', `${name} rejected the login of ${user}: ${reason}`, hint)
  }
  // Another writer was faster, the server is read-only, or it has a crisis that passes.
  const isTemporary = /^(23505|25006|40|53|55|57|58)/.test(code)
  const kind = isTemporary ? 'unavailable' : 'inaccessible'
  return failure(kind, `${name} reported an error: ${reason}`, hints[code] ?? seeLog)
}

/** Certificates, `EACCES` of a socket, and what the driver says of SCRAM. */
const permanentCauses = /CERT|UNABLE_TO|^EACCES$|^ENOTFOUND$|^SASL: /

const isItThere =
  'Is PostgreSQL running there? Are the address, its sslmode and its sslrootcert right?'
const createStoreHint = 'Check the address. A store is created by: plants stores init ADDRESS'
const beSlower = 'Try again, raise --timeout, or allow more connections in its address: ?max=NUMBER'
const seeLog = 'Look at the log of the database'

const hints: Readonly<Record<string, string>> = {
  '3D000': 'Create it there: CREATE DATABASE NAME ENCODING UTF8 TEMPLATE template0',
  '42501': 'The owner of the database can grant it: see Least privilege in docs/databases.md',
  '53300': 'Raise max_connections there, or put PgBouncer in front of it',
  '57014': beSlower,
}

/** The driver has no code for it, nor for a server without TLS. */
export function isPoolFull(error: unknown): boolean {
  return error instanceof Error && error.message === 'timeout exceeded when trying to connect'
}

function lacksTls(error: unknown): boolean {
  return error instanceof Error && error.message === 'The server does not support SSL connections'
}

/** Whether a login may succeed without TLS, perhaps by another entry of pg_hba.conf. */
export function refusesTls(error: unknown): boolean {
  return lacksTls(error) || codeOf(error) === '28000'
}

/** Whether another plant has the id or the idempotency key. */
export function isTaken(error: unknown): boolean {
  const constraint = reportedBy(error)?.constraint ?? ''
  return codeOf(error) === '23505' && /^plants_(pkey|idempotency_key)$/.test(constraint)
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
  return reasonOf(error)
}
