import pg from 'pg'
import { isTimeout } from '../../platform/clock.js'
import { type Explanation, explainedBy, PlantsError, reasonOf, systemCode } from '../../platform/errors.js'
import type { PostgresAddress } from '../common/address.js'
import type { Login } from '../common/store.js'

export interface Account {
  address: PostgresAddress
  login: Login
}

/** What the server has not reported, with a code of the system or of TLS, or one of ours in `failures`. */
export class ConnectionError extends Error {
  readonly code: string

  constructor(code: string, message: string, cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}

export const otherProtocol = 'the server does not speak the PostgreSQL protocol'

export function loginError(message: string, cause?: unknown): ConnectionError {
  return new ConnectionError('LOGIN', message, cause)
}

export function tooLarge(): ConnectionError {
  return new ConnectionError('TOO_LARGE', 'its response is too large') // no retry makes it smaller
}

/** Converts an error of the driver to a `pg.DatabaseError` or a `ConnectionError`. */
export function driverError(error: unknown): Error {
  if (error instanceof ConnectionError || error instanceof PlantsError) return error
  if (error instanceof pg.DatabaseError && error.code) return error
  const text = textOf(error)
  if (/^(SASL: |Unknown authenticationOk message type )/.test(text)) return loginError(text, error)
  if (text === 'The server does not support SSL connections')
    return new ConnectionError('NO_TLS', 'the server has no TLS', error)
  if (error instanceof RangeError || error instanceof TypeError)
    return new ConnectionError('PROTOCOL', otherProtocol, error)
  return new ConnectionError(systemCode(error) ?? 'LOST', text, error)
}

/** The code of a `ConnectionError`, or the SQLSTATE that the server has reported; empty for any other error. */
export function codeOf(error: unknown): string {
  if (error instanceof ConnectionError) return error.code
  if (!(error instanceof pg.DatabaseError)) return ''
  return /^[0-9A-Z]{5}$/.test(error.code ?? '') ? `${error.code}` : 'XX000'
}

/** Also for a pooler such as PgBouncer, which reports the loss of its own connection to the server with class 08. */
export function isLost(error: unknown): boolean {
  return !(error instanceof pg.DatabaseError) || /^(08|25006|40003|57P)/.test(codeOf(error))
}

/** Of the class of integrity constraints, also those of the store itself. */
export function isConstraint(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && codeOf(error).startsWith('23')
}

/** Whether a plant violates a constraint that somebody added to the store. */
export function isForeignConstraint(error: unknown): error is pg.DatabaseError {
  const isOwn = (name = 'plants_pkey') => ['plants_pkey', 'plants_idempotency_key', 'imports_pkey'].includes(name)
  return isConstraint(error) && !(error.code === '23505' && isOwn(error.constraint))
}

/** Whether the server may accept a connection without TLS: it has none, or another entry of pg_hba.conf applies. */
export function mayRetryWithoutTls(error: unknown): boolean {
  return /^(28|NO_TLS)/.test(codeOf(error))
}

/** Whether not to try other servers: otherwise a wrong password would look like an unavailable server. */
export function isFinal(error: unknown): boolean {
  return /^(28|3D|LOGIN|PASSWORD)/.test(codeOf(error))
}

/** Whether a retry may succeed soon: no server is ready, or it has aborted the statement in favour of others. */
export function isTransient(error: unknown): boolean {
  if (error instanceof PlantsError) return error.retryable
  return codeOf(error) !== '' && !isForeignConstraint(error) && failureOf(error).retryable === true
}

/** Returns errors of other sources unchanged. */
export function explainDatabase(error: unknown, account: Account): unknown {
  return codeOf(error) === '' ? error : explainedBy(failureOf(error), account, textOf(error), error)
}

/** Truncated: a server may send any amount. The addresses of one host fail together, in an `AggregateError`. */
export function textOf(error: unknown): string {
  if (error instanceof AggregateError) return [...new Set(error.errors.map(textOf))].join(', ')
  const text = isTimeout(error) ? 'no answer in time' : reasonOf(error)
  return text.length > 1000 ? `${text.slice(0, 1000)}…` : text
}

function failureOf(error: unknown): Explanation<Account> {
  const code = codeOf(error)
  const found = failures.find(([pattern]) => pattern.test(code))
  return found?.[1] ?? (error instanceof ConnectionError ? unreached : refused)
}

const unreached: Explanation<Account> = {
  sentence: ({ address }, text) => `Could not reach ${address.name}: ${text}`,
  hint: 'Is PostgreSQL running there, and is the address right?',
  retryable: true,
}

const refused: Explanation<Account> = {
  sentence: ({ address }, text) => `${address.name} reported an error: ${text}`,
  hint: 'Look at the log of the database',
}

/** by SQLSTATE or its class, or by the code of a `ConnectionError` */
const failures: [code: RegExp, Explanation<Account>][] = [
  [
    /^(28|PASSWORD$)/,
    {
      sentence: ({ address }, text) => `${address.name} rejected the login of ${address.user}: ${text}`,
      hint: ({ login }) => login.passwordHint,
      type: 'unauthorized',
    },
  ],
  [
    /^LOGIN$/,
    {
      sentence: ({ address }, text) => `Could not log in to ${address.name}: ${text}`,
      hint: 'Is it the right server? It should use scram-sha-256; to let it have a password: sslmode=verify-full',
    },
  ],
  [
    /^3D/,
    {
      sentence: ({ address }) => `${address.name} names a database that does not exist`,
      hint: 'Create it there: CREATE DATABASE NAME ENCODING UTF8 TEMPLATE template0',
    },
  ],
  [
    /^42703$/,
    {
      sentence: ({ address }, text) => `${address.name} has the tables of an older version of plants: ${text}`,
      hint: 'Migrate them with: plants stores init ADDRESS',
    },
  ],
  [
    /^42501$/,
    {
      sentence: ({ address }, text) => `Permission denied for ${address.user} in ${address.name}: ${text}`,
      hint: 'Use the address of the owner: to migrate, with plants stores init ADDRESS; to grant, as in databases.md',
    },
  ],
  [
    /^53300$/,
    {
      sentence: ({ address }) => `${address.name} has no free connection`,
      hint: 'Try again, raise max_connections there, or put PgBouncer in front of it',
      retryable: true,
    },
  ],
  [
    /^57014$/,
    {
      sentence: ({ address }) => `${address.name} did not finish in time`,
      hint: 'Try again, or raise --timeout',
      retryable: true,
    },
  ],
  [/^(08|40003)/, unreached],
  // Another writer was faster, the server is read-only, or it has a crisis that passes.
  [/^(23505|25006|40|53|55|57|58)/, { ...refused, retryable: true }],
  [
    /^NO_TLS$/,
    {
      sentence: ({ address }) => `${address.name} has no TLS`,
      hint: 'Turn on ssl there. Or on a network that only you use, connect without TLS: sslmode=prefer',
    },
  ],
  [
    /SELF_SIGNED|UNABLE_TO_/,
    { ...unreached, hint: 'Set the root certificate of its issuer: sslrootcert=PATH', retryable: false },
  ],
  [/^(CERT_HAS_EXPIRED|EACCES|ENOTFOUND|ERR_TLS_CERT_ALTNAME_INVALID|TOO_LARGE)$/, { ...unreached, retryable: false }],
]

export function fsyncIsOff(name: string): PlantsError {
  const hint = 'Turn fsync on in postgresql.conf'
  return new PlantsError('unavailable', `${name} answers before a plant is on disk: fsync is off`, { hint })
}

/** A trigger or a rule of the table suppresses rows that nothing conflicts with. */
export function leftOut(name: string, retryable = false): PlantsError {
  const hint = 'Look for triggers, rules and policies on plant_store.plants that plants did not create'
  return new PlantsError('unavailable', `${name} did not insert all plants`, { hint, retryable })
}

export function unknownCommit(name: string, cause: unknown): PlantsError {
  const message = `The connection to ${name} was lost during a commit: whether it is stored is unknown`
  const hint = 'When the database is available again, plants get shows whether the plant is stored'
  return new PlantsError('unknownOutcome', message, { hint, cause })
}
