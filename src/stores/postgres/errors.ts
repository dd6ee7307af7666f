import pg from 'pg'
import { describeReason, type ErrorKind, getSystemCode, PlantsError } from '../../errors.js'
import { describeConnectionFailure, isUnknownIssuer } from '../certificate-errors.js'
import type { PostgresAccess } from './address.js'

/**
 * Explains an error of the server (https://www.postgresql.org/docs/current/errcodes-appendix.html),
 * of the driver or of the system. Returns a PlantsError unchanged.
 */
export function toPlantsError(error: unknown, access: PostgresAccess): PlantsError {
  if (error instanceof PlantsError) return error
  const { name } = access.address
  // A host may have several addresses. Node.js tries all of them, and they usually fail for the
  // same reason.
  const cause = error instanceof AggregateError ? error.errors[0] : error
  const reason = describeConnectionFailure(cause)
  const { code = '' } = findDatabaseError(error) ?? {}
  const { kind, message, hint } =
    explainConnectionError(error, code, reason, name) ??
    explainLoginError(code, reason, access) ??
    explainServerError(code, reason, access)
  return new PlantsError(kind, message, { hint, cause: error })
}

interface Explanation {
  kind: ErrorKind
  message: string
  hint: string
}

/** An error of the connection has a code of class 08, or none. */
function explainConnectionError(
  error: unknown,
  code: string,
  reason: string,
  name: string,
): Explanation | undefined {
  if (isPoolFull(error))
    return {
      kind: 'unavailable',
      message: `All connections to ${name} are in use`,
      hint: raiseMaxHint,
    }
  if (code !== '' && !code.startsWith('08')) return undefined
  const cause = getSystemCode(error) ?? reason
  const isPermanent = lacksTls(error) || permanentCausePattern.test(cause)
  const { text = reason, hint = connectionHint } = connectionReasons[cause] ?? {}
  return {
    kind: isPermanent ? 'accessDenied' : 'unavailable',
    message: `Could not reach ${name}: ${text}`,
    hint: isUnknownIssuer(error) ? unknownIssuerHint : hint,
  }
}

const connectionHint =
  'Check that PostgreSQL is running there, and that the address and its sslmode are right'
const networkHint = 'Check the address and the network, or wait longer with --timeout 2m'
const hostAddressHint = 'with a host in the address: postgres://HOST/DATABASE'
const unknownIssuerHint =
  'If you trust its issuer, set sslrootcert in the address to a file with the certificate of the issuer'
const noTlsMessage = 'The server does not support SSL connections'

/**
 * The key is a code of the system or of Node.js, or a message of the driver, which gives no codes.
 * Node.js says "connect ENOENT /run/…" and "getaddrinfo ENOTFOUND".
 */
const connectionReasons: Readonly<Record<string, { text?: string; hint?: string }>> = {
  ECONNREFUSED: {
    text: 'the connection was refused',
    hint: 'Check that PostgreSQL is running there, and that the host and the port are right',
  },
  ENOTFOUND: { text: 'the host is unknown', hint: 'Correct the host in the address, or in PGHOST' },
  ENOENT: {
    text: 'its socket does not exist',
    hint: `Start PostgreSQL on this machine, or choose another server ${hostAddressHint}`,
  },
  EACCES: {
    text: 'this user may not use its socket',
    hint: `Use another user, or connect over TCP ${hostAddressHint}`,
  },
  'timeout expired': { text: 'it timed out', hint: networkHint },
  'Connection terminated due to connection timeout': { text: 'it timed out', hint: networkHint },
  EHOSTUNREACH: { hint: networkHint },
  ENETUNREACH: { hint: networkHint },
  ETIMEDOUT: { text: 'it timed out', hint: networkHint },
  CERT_HAS_EXPIRED: {
    hint: 'Let the operator of the server renew its certificate',
  },
  ERR_TLS_CERT_ALTNAME_INVALID: {
    hint: 'Use a host in the address that the certificate of the server names',
  },
  [noTlsMessage]: {
    hint: 'Turn on ssl in postgresql.conf. On a network that only you use, set sslmode=disable in the address',
  },
}

function explainLoginError(
  code: string,
  reason: string,
  { address, login }: PostgresAccess,
): Explanation | undefined {
  if (!code.startsWith('28')) return undefined
  const isWrongPassword = code === '28P01'
  const tlsAdvice = address.sslmode === 'disable' ? requiredTlsAdvice : ''
  return {
    kind: 'unauthorized',
    message: `${address.name} rejected the login of ${address.user}: ${reason}`,
    hint: isWrongPassword ? login.passwordHint : `${tlsAdvice}${rejectedLoginHint}`,
  }
}

const rejectedLoginHint =
  'Correct the user in the address, let the role log in (ALTER ROLE NAME LOGIN), or correct pg_hba.conf on the server'
const requiredTlsAdvice =
  'If the server requires TLS, set sslmode=verify-full in the address. Otherwise: '

function explainServerError(
  code: string,
  reason: string,
  { address: { name } }: PostgresAccess,
): Explanation {
  if (code === '3F000' || code === '42P01')
    return { kind: 'accessDenied', message: `There is no store at ${name}`, hint: createStoreHint }
  if (code === lockNotAvailable) {
    const message = `Another session keeps a table or a row of the store at ${name} locked`
    return { kind: 'unavailable', message, hint: lockHint }
  }
  // The classes of transient errors: another writer was faster (23505, 40), the server is read-only
  // (25006), lacks resources (53), has an object in another state (55), was stopped or has canceled
  // the statement (57), or its disk failed (58).
  const isTemporary = /^(23505|25006|40|53|55|57|58)/.test(code)
  return {
    kind: isTemporary ? 'unavailable' : 'accessDenied',
    message: `${name} reported an error: ${reason}`,
    hint: hintsByCode[code] ?? logHint,
  }
}

/**
 * The error of a change at a read-only server, which an address may allow. The change is not
 * repeated, because the server stays read-only until somebody promotes it.
 */
export class ReadOnlyServerError extends PlantsError {
  constructor(server: string) {
    const message = `The server ${server} is read-only`
    super('accessDenied', message, { hint: useWritableServerHint })
  }
}

const useWritableServerHint =
  'Use target_session_attrs=read-write in an address with the server that accepts writes, or promote this one'

export const raiseMaxHint = 'Try again, or raise max in the address'

const permanentCausePattern = /CERT|UNABLE_TO|^EACCES$|^ENOTFOUND$|^SASL: /

const createStoreHint = 'Check the address, or create the store with: plants stores init ADDRESS'

export const createDatabaseHint =
  'Create another database with: CREATE DATABASE NAME OWNER ROLE ENCODING UTF8 TEMPLATE template0'

const insufficientPrivilege = '42501'

const hintsByCode: Record<string, string> = {
  [insufficientPrivilege]:
    'Let the owner of the store grant what the role lacks: docs/databases.md, "Least privilege"',
  '40001': 'Try again. At a standby, hot_standby_feedback = on prevents most conflicts',
  '3D000':
    'Correct the database in the address, or create it in psql: CREATE DATABASE NAME OWNER ROLE ENCODING UTF8 TEMPLATE template0. Then create the store: plants stores init ADDRESS',
  '42703': 'Somebody has changed the tables of the store: restore them from a backup',
  '53300':
    'Close other connections, or raise the limit: CONNECTION LIMIT of the role, or max_connections of the server',
  '57014':
    'Try again, or raise --timeout. If that does not help, look in pg_stat_activity for a session that locks the table',
}

const logHint = 'See the log of the database server'

/** Explains the error of a change of tokens, which only the owner of the store may make. */
export function explainTokenError(error: unknown): unknown {
  if (!(error instanceof PlantsError) || !isPrivilegeMissing(error)) return error
  return new PlantsError(error.kind, error.message, { hint: tokenOwnerHint, cause: error.cause })
}

const tokenOwnerHint =
  'Use the role of the owner, who alone may create and revoke tokens: --store postgres://OWNER@HOST/DATABASE'

const lockNotAvailable = '55P03'
const lockHint =
  'Try again. If it stays locked, end the session that is "idle in transaction" in pg_stat_activity'

/**
 * The driver gives neither this error nor the one of `lacksTls` a code, so both are recognized by
 * their messages.
 */
export function isPoolFull(error: unknown): boolean {
  return describeReason(error) === 'timeout exceeded when trying to connect'
}

export function lacksTls(error: unknown): boolean {
  return describeReason(error) === noTlsMessage
}

/**
 * Returns true if an id exists already, or if a unique index of the owner has the value already.
 * The name of the index does not tell which of the two it is: a partition or a shard reports the
 * name of its own index, such as `plants_p0_pkey`.
 */
export function isUniqueViolation(error: unknown): boolean {
  return findDatabaseError(error)?.code === '23505'
}

/** Returns true if a statement has waited for a lock as long as `lock_timeout` allows. */
export function isLockTimeout(error: unknown): boolean {
  return findDatabaseError(error)?.code === lockNotAvailable
}

/** Returns true if the server does not accept the value of a setting. */
export function isSettingRejected(error: unknown): boolean {
  return findDatabaseError(error)?.code === '22023'
}

/** Returns true if the role lacks a privilege. */
export function isPrivilegeMissing(error: unknown): boolean {
  return findDatabaseError(error)?.code === insufficientPrivilege
}

/**
 * Returns why a constraint, an index, a policy or a trigger of the owner rejects a plant, and
 * undefined for any other error. An error about the state of the server is recognized by its class.
 * An error about the tables of this program, such as a missing table, has the class 3F or 42. An
 * error within a trigger or of a policy may have the same class, but the error within a trigger has
 * a context, `where`, and the error of a policy comes from the routine `ExecWithCheckOptions`.
 */
export function findConstraintMessage(error: unknown): string | undefined {
  if (error instanceof PlantsError && error.kind === 'constraint') return error.message
  const { code = '', message, where, routine } = findDatabaseError(error) ?? {}
  const isPolicy = routine === 'ExecWithCheckOptions'
  const isProgramError = where === undefined && !isPolicy && /^(3F|42)/.test(code)
  return isProgramError || /^(08|25|28|40|53|55|57|58|XX)/.test(code) ? undefined : message
}

/**
 * Returns true if a COMMIT that failed has certainly stored nothing. This is not certain for the
 * class 08, with which PgBouncer reports that it has lost the server during the commit. It is not
 * certain for the code 40003 either: with it, the server reports that it does not know the outcome.
 */
export function wasRolledBack(error: unknown): boolean {
  return /^(23|40(?!003)|55P03|57014)/.test(findDatabaseError(error)?.code ?? '')
}

function findDatabaseError(error: unknown): pg.DatabaseError | undefined {
  const cause = error instanceof PlantsError ? error.cause : error
  return cause instanceof pg.DatabaseError ? cause : undefined
}
