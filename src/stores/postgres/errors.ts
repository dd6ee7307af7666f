import pg from 'pg'
import { describeReason, type ErrorKind, PlantsError, systemCode } from '../../errors.js'
import type { Access } from './address.js'

/**
 * Explains an error of the server (https://www.postgresql.org/docs/current/errcodes-appendix.html),
 * of the driver or of the system. One of ours stays as it is.
 */
export function toPlantsError(error: unknown, access: Access): PlantsError {
  if (error instanceof PlantsError) return error
  const { name } = access.address
  // The addresses of one host fail together.
  const reason = describeReason(error instanceof AggregateError ? error.errors[0] : error)
  const { code = '' } = findDatabaseError(error) ?? {}
  const { kind, message, hint } =
    findConnectionProblem(error, code, reason, name) ??
    findLoginProblem(code, reason, access) ??
    findServerProblem(code, reason, name)
  return new PlantsError(kind, message, { hint, cause: error })
}

interface DatabaseProblem {
  kind: ErrorKind
  message: string
  hint: string
}

/** Codes of class 08, and errors without a code, are those of the connection. */
function findConnectionProblem(
  error: unknown,
  code: string,
  reason: string,
  name: string,
): DatabaseProblem | undefined {
  if (isPoolFull(error))
    return {
      kind: 'unavailable',
      message: `All connections to ${name} are in use`,
      hint: raiseMax,
    }
  if (code !== '' && !code.startsWith('08')) return undefined
  const isPermanent = lacksTls(error) || permanentCauses.test(systemCode(error) ?? reason)
  return {
    kind: isPermanent ? 'accessDenied' : 'unavailable',
    message: `Could not reach ${name}: ${socketReasons[systemCode(error) ?? ''] ?? reason}`,
    hint: 'Check that PostgreSQL is running there, and that the address and its sslmode are right',
  }
}

/** Node.js says "connect ECONNREFUSED" and "getaddrinfo ENOTFOUND". */
const socketReasons: Record<string, string> = {
  ECONNREFUSED: 'the connection was refused',
  ENOTFOUND: 'the host is unknown',
}

function findLoginProblem(
  code: string,
  reason: string,
  { address, login }: Access,
): DatabaseProblem | undefined {
  if (!code.startsWith('28')) return undefined
  const isWrongPassword = code === '28P01'
  return {
    kind: 'unauthorized',
    message: `${address.name} rejected the login of ${address.user}: ${reason}`,
    hint: isWrongPassword
      ? login.passwordHint
      : 'Correct the user in the address, or pg_hba.conf on the server',
  }
}

function findServerProblem(code: string, reason: string, name: string): DatabaseProblem {
  if (code === '3F000' || code === '42P01')
    return { kind: 'accessDenied', message: `There is no store at ${name}`, hint: createStore }
  // Another writer was faster, or the server is read-only or in a crisis.
  const isTemporary = /^(23505|25006|40|53|55|57|58)/.test(code)
  return {
    kind: isTemporary ? 'unavailable' : 'accessDenied',
    message: `${name} reported an error: ${reason}`,
    hint: hints[code] ?? 'See the log of the database server',
  }
}

/**
 * A change was sent to a server that is read-only, because the address allows one. It is not
 * repeated: the server stays read-only until somebody promotes it.
 */
export class ReadOnlyServerError extends PlantsError {
  constructor(server: string) {
    const message = `The server ${server} is read-only`
    super('unavailable', message, { hint: useWritableServer })
  }
}

const useWritableServer =
  'Use target_session_attrs=read-write in an address with the server that accepts writes, or promote this one'

export const raiseMax = 'Try again, or raise max in the address'

const permanentCauses = /CERT|UNABLE_TO|^EACCES$|^ENOTFOUND$|^SASL: /

const createStore = 'Check the address, or create the store with: plants stores init ADDRESS'

const hints: Record<string, string> = {
  '40001': 'Try again. At a standby, hot_standby_feedback = on prevents most conflicts',
  '3D000': 'Create it there: CREATE DATABASE NAME ENCODING UTF8 TEMPLATE template0',
  '42501': 'The owner of the database can grant it: see Least privilege in docs/databases.md',
  '57014': 'Try again, or raise --timeout',
}

/** The driver has no codes for these two. */
export function isPoolFull(error: unknown): boolean {
  return describeReason(error) === 'timeout exceeded when trying to connect'
}

export function lacksTls(error: unknown): boolean {
  return describeReason(error) === 'The server does not support SSL connections'
}

/**
 * Whether an id exists, or what a unique index of the owner has. The name of the index would not
 * tell: a partition or a shard reports the name of its own, such as `plants_p0_pkey`.
 */
export function isUniqueViolation(error: unknown): boolean {
  return findDatabaseError(error)?.code === '23505'
}

/** Whether a statement has waited for a lock as long as it may. */
export function isLockTimeout(error: unknown): boolean {
  return findDatabaseError(error)?.code === '55P03'
}

/**
 * Why a constraint, an index, a policy or a trigger that somebody added refuses a plant. Other
 * errors are those of the server's state, and those of objects of ours (3F, 42), which lack the
 * context of a function, `where`.
 */
export function findConstraintMessage(error: unknown): string | undefined {
  if (error instanceof PlantsError && error.kind === 'constraint') return error.message
  const { code = '', message, where, routine } = findDatabaseError(error) ?? {}
  const isPolicy = routine === 'ExecWithCheckOptions'
  const isOurs = where === undefined && !isPolicy && /^(3F|42)/.test(code)
  return isOurs || /^(08|25|28|40|53|55|57|58|XX)/.test(code) ? undefined : message
}

/**
 * Whether a COMMIT that failed stored nothing. PgBouncer loses the answer to one that was made with
 * class 08, and with 40003 the server does not know it itself.
 */
export function wasRolledBack(error: unknown): boolean {
  return /^(23|40(?!003)|57014)/.test(findDatabaseError(error)?.code ?? '')
}

function findDatabaseError(error: unknown): pg.DatabaseError | undefined {
  const cause = error instanceof PlantsError ? error.cause : error
  return cause instanceof pg.DatabaseError ? cause : undefined
}
