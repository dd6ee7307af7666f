import pg from 'pg'
import { isTimeout } from '../../platform/clock.js'
import { type ErrorType, PlantsError, reasonOf, systemCode } from '../../platform/errors.js'
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

/** Converts an error of the driver to a `pg.DatabaseError` or a `ConnectionError`. */
export function driverError(error: unknown): Error {
  if (error instanceof ConnectionError || error instanceof PlantsError) return error
  if (error instanceof pg.DatabaseError && error.code) return error
  const text = textOf(error)
  if (/^(SASL: |Unknown authenticationOk message type )/.test(text)) return new ConnectionError('LOGIN', text, error)
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

/** Of the class of integrity constraints, also those of the store itself. */
export function isConstraint(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && codeOf(error).startsWith('23')
}

/** Whether a plant violates a constraint that somebody added to the store. */
export function isForeignConstraint(error: unknown): error is pg.DatabaseError {
  const isOwn = (name = 'plants_pkey') => ['plants_pkey', 'plants_idempotency_key', 'imports_pkey'].includes(name)
  return isConstraint(error) && !(error.code === '23505' && isOwn(error.constraint))
}

/** Whether a retry may succeed soon: no server is ready, or it has aborted the statement in favour of others. */
export function isTransient(error: unknown): boolean {
  if (error instanceof PlantsError) return error.retryable
  return codeOf(error) !== '' && !isForeignConstraint(error) && failureOf(error).retryable === true
}

/** Truncated: a server may send any amount. The addresses of one host fail together, in an `AggregateError`. */
export function textOf(error: unknown): string {
  if (error instanceof AggregateError) return [...new Set(error.errors.map(textOf))].join(', ')
  const text = isTimeout(error) ? 'no answer in time' : reasonOf(error)
  return text.length > 1000 ? `${text.slice(0, 1000)}…` : text
}

/** Returns errors of other sources unchanged. */
export function explainDatabase(error: unknown, { address, login }: Account): unknown {
  if (codeOf(error) === '') return error
  const { sentence, hint = login.passwordHint, type = 'unavailable', retryable = false } = failureOf(error)
  return new PlantsError(type, sentence(address, textOf(error)), { hint, retryable, cause: error })
}

function failureOf(error: unknown): Failure {
  const found = failures.find(({ code }) => code.test(codeOf(error)))
  return found ?? (error instanceof ConnectionError ? unreached : refused)
}

interface Failure {
  sentence(address: PostgresAddress, text: string): string
  /** by default where the password comes from */
  hint?: string
  /** by default `unavailable` */
  type?: ErrorType
  retryable?: boolean
}

const unreached: Failure = {
  sentence: ({ name }, text) => `Could not reach ${name}: ${text}`,
  hint: 'Is PostgreSQL running there, and is the address right?',
  retryable: true,
}

const refused: Failure = {
  sentence: ({ name }, text) => `${name} reported an error: ${text}`,
  hint: 'Look at the log of the database',
}

/** by SQLSTATE or its class, or by the code of a `ConnectionError` */
const failures: (Failure & { code: RegExp })[] = [
  {
    code: /^(28|PASSWORD$)/,
    sentence: ({ name, user }, text) => `${name} rejected the login of ${user}: ${text}`,
    type: 'unauthorized',
  },
  {
    code: /^LOGIN$/,
    sentence: ({ name }, text) => `Could not log in to ${name}: ${text}`,
    hint: 'Is it the right server? It should use scram-sha-256; to let it have a password: sslmode=verify-full',
  },
  {
    code: /^3D/,
    sentence: ({ name }) => `${name} names a database that does not exist`,
    hint: 'Create it there: CREATE DATABASE NAME ENCODING UTF8 TEMPLATE template0',
  },
  {
    code: /^42703$/,
    sentence: ({ name }, text) => `${name} has the tables of an older version of plants: ${text}`,
    hint: 'Migrate them with: plants stores init ADDRESS',
  },
  {
    code: /^42501$/,
    sentence: ({ name, user }, text) => `Permission denied for ${user} in ${name}: ${text}`,
    hint: 'Use the address of the owner: to migrate, with plants stores init ADDRESS; to grant, as in databases.md',
  },
  {
    code: /^53300$/,
    sentence: ({ name }) => `${name} has no free connection`,
    hint: 'Try again, raise max_connections there, or put PgBouncer in front of it',
    retryable: true,
  },
  {
    code: /^57014$/,
    sentence: ({ name }) => `${name} did not finish in time`,
    hint: 'Try again, or raise --timeout',
    retryable: true,
  },
  { code: /^(08|40003)/, ...unreached },
  // Another writer was faster, the server is read-only, or it has a crisis that passes.
  { code: /^(23505|25006|40|53|55|57|58)/, ...refused, retryable: true },
  {
    code: /^NO_TLS$/,
    sentence: ({ name }) => `${name} has no TLS`,
    hint: 'Turn on ssl there. Or on a network that only you use, connect without TLS: sslmode=prefer',
  },
  {
    code: /SELF_SIGNED|UNABLE_TO_/,
    ...unreached,
    hint: 'Set the root certificate of its issuer: sslrootcert=PATH',
    retryable: false,
  },
  {
    code: /^(CERT_HAS_EXPIRED|EACCES|ENOTFOUND|ERR_TLS_CERT_ALTNAME_INVALID|TOO_LARGE)$/,
    ...unreached,
    retryable: false,
  },
]
