/**
 * Explains why a database could not be reached or used. The table below has what each code means: a
 * SQLSTATE or its class, which is its first two characters
 * (https://www.postgresql.org/docs/current/errcodes-appendix.html), or a code of the system or of
 * Node.js.
 */
import pg from 'pg'
import {
  createExplainedError,
  describeReason,
  type Explanation,
  getSystemCode,
  PlantsError,
} from '../../errors.js'
import { describeConnectionFailure, isUnknownIssuer } from '../certificate-errors.js'
import type { PostgresAccess } from './address.js'

/** The driver gives these errors no code, so their messages, which begin so, tell them apart. */
const driverMessages = {
  noTls: 'The server does not support SSL connections',
  connectTimeout: 'Connection terminated due to connection timeout',
  fullPool: 'timeout exceeded when trying to connect',
  failedProof: 'SASL: ',
} as const

const unreached: Explanation = {
  kind: 'unavailable',
  hint: 'Check that PostgreSQL is running there, and that the address and its sslmode are right',
}
const denied: Explanation = { ...unreached, kind: 'accessDenied' }
const noRoute: Explanation = { ...unreached, hint: 'Check the address and the network' }
const timedOut: Explanation = { ...noRoute, reason: 'it timed out' }
const badCertificate: Explanation = {
  kind: 'accessDenied',
  hint: 'Let the operator of the server renew its certificate',
}
const unknownIssuer: Explanation = {
  kind: 'accessDenied',
  hint: 'If you trust its issuer, set sslrootcert in the address to the certificate of the issuer',
}
const login = {
  kind: 'unauthorized',
  message: '{name} rejected the login of {user}: {reason}',
} as const
const permanent: Explanation = {
  kind: 'accessDenied',
  message: '{name} reported an error: {reason}',
  hint: 'See the log of the database server',
}
const temporary: Explanation = { ...permanent, kind: 'unavailable' }
const noStore: Explanation = {
  kind: 'accessDenied',
  message: 'There is no store at {name}',
  hint: 'Create it as the owner of the database: plants stores init ADDRESS',
}

export const raiseMaxHint = 'Raise max in the address'

const explanations: Readonly<Record<string, Explanation>> = {
  '08': unreached,
  ECONNREFUSED: { ...unreached, reason: 'the connection was refused' },
  ENOENT: { ...unreached, reason: 'its socket does not exist' },
  EACCES: denied,
  ENOTFOUND: {
    ...denied,
    reason: 'the host is unknown',
    hint: 'Correct the host in the address, or in PGHOST',
  },
  EHOSTUNREACH: noRoute,
  ENETUNREACH: noRoute,
  ETIMEDOUT: timedOut,
  [driverMessages.connectTimeout]: timedOut,
  [driverMessages.failedProof]: denied,
  [driverMessages.noTls]: { kind: 'accessDenied', hint: 'Turn on ssl in postgresql.conf' },
  [driverMessages.fullPool]: {
    kind: 'unavailable',
    message: 'All connections to {name} are in use',
    hint: raiseMaxHint,
  },
  ERR_TLS_CERT_ALTNAME_INVALID: {
    kind: 'accessDenied',
    hint: 'Use a host in the address that the certificate of the server names',
  },
  '28': { ...login, hint: 'Correct the user in the address, or pg_hba.conf on the server' },
  '28P01': login,
  '3F000': noStore,
  '42P01': noStore,
  '3D000': { ...permanent, hint: 'Correct the database in the address' },
  '42501': {
    ...permanent,
    hint: 'Use the role of the owner, or one with these rights: plants help postgresql',
  },
  '42703': { ...permanent, hint: 'Another program has changed the tables: restore a backup' },
  // Another writer was faster (23505, 40), the server is read-only (25006), lacks resources (53),
  // has an object in another state (55), was stopped or has canceled the statement (57), or its
  // disk failed (58).
  '23505': temporary,
  '25006': temporary,
  '40': { ...temporary, hint: 'Try again' },
  '53': temporary,
  '53300': { ...temporary, hint: 'Close other connections to the server' },
  '55': temporary,
  '55P03': {
    kind: 'unavailable',
    message: 'Another session keeps a table or a row of the store at {name} locked',
    hint: 'End the session that is "idle in transaction" in pg_stat_activity',
  },
  '57': temporary,
  '57014': { ...temporary, hint: 'Wait longer with --timeout 2m' },
  '58': temporary,
}

/**
 * Explains an error of the server, of the driver or of the system. Returns a PlantsError unchanged.
 */
export function toPlantsError(error: unknown, access: PostgresAccess): PlantsError {
  if (error instanceof PlantsError) return error
  const { name, user } = access.address
  // A host may have several addresses. Node.js tries all of them, and they usually fail for the
  // same reason.
  const cause = error instanceof AggregateError ? error.errors[0] : error
  const reason = describeConnectionFailure(cause)
  const message = 'Could not reach {name}: {reason}'
  const explanation = { message, hint: access.login.passwordHint, ...findExplanation(error) }
  return createExplainedError(explanation, { name, user, reason }, error)
}

function findExplanation(error: unknown): Explanation {
  if (isUnknownIssuer(error)) return unknownIssuer
  const code = getSystemCode(error) ?? findDriverMessage(error) ?? ''
  const explanation = explanations[code] ?? explanations[code.slice(0, 2)]
  if (explanation !== undefined) return explanation
  if (error instanceof pg.DatabaseError && code !== '') return permanent
  return /CERT|UNABLE_TO/.test(code) ? badCertificate : unreached
}

function findDriverMessage(error: unknown): string | undefined {
  const reason = describeReason(error)
  return Object.values(driverMessages).find((message) => reason.startsWith(message))
}

/**
 * The error of a change at a read-only server, which an address may allow. The change is not
 * repeated, because the server stays read-only until somebody promotes it.
 */
export class ReadOnlyServerError extends PlantsError {
  constructor(server: string) {
    const hint = 'Use the address of the server that accepts writes'
    super('accessDenied', `The server ${server} is read-only`, { hint })
  }
}

export function isPoolFull(error: unknown): boolean {
  return findDriverMessage(error) === driverMessages.fullPool
}

export function lacksTls(error: unknown): boolean {
  return findDriverMessage(error) === driverMessages.noTls
}

/** Returns true if a statement has waited for a lock as long as `lock_timeout` allows. */
export function isLockTimeout(error: unknown): boolean {
  return findDatabaseError(error)?.code === '55P03'
}

/** Returns true if the server does not accept the value of a setting. */
export function isSettingRejected(error: unknown): boolean {
  return findDatabaseError(error)?.code === '22023'
}

/**
 * Returns why a constraint, an index, a policy or a trigger of the owner rejects a plant, and
 * undefined for any other error.
 */
export function findConstraintMessage(error: unknown): string | undefined {
  if (error instanceof PlantsError && error.kind === 'constraint') return error.message
  const databaseError = findDatabaseError(error)
  if (!isAboutRows(databaseError) || databaseError.code?.startsWith('XX')) return undefined
  return databaseError.message
}

/**
 * Returns true if a COPY failed because of its rows, so that statements may store them, or find out
 * which of them is rejected. The code of an id that exists is usually 23505, but XX000 in Citus 13.
 */
export function isCopyRejected(error: unknown): boolean {
  return isAboutRows(findDatabaseError(error))
}

/**
 * An error about the state of the server, such as a lock, is recognized by its class. An error about
 * the tables of this program, such as a missing table or right, has the class 3F or 42. An error
 * within a trigger or of a policy may have the same class, but the error within a trigger has a
 * context, `where`, and the error of a policy comes from the routine `ExecWithCheckOptions`.
 */
function isAboutRows(error: pg.DatabaseError | undefined): error is pg.DatabaseError {
  if (error === undefined) return false
  const { code = '', where, routine } = error
  const isPolicy = routine === 'ExecWithCheckOptions'
  const isProgramError = where === undefined && !isPolicy && /^(3F|42)/.test(code)
  return !isProgramError && !/^(08|25|28|40|53|55|57|58)/.test(code)
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
