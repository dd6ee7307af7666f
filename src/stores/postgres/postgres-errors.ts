import pg from 'pg'
import { type ErrorKind, PlantsError, reasonOf, systemCode } from '../../platform/errors.js'
import { isTimeout } from '../../platform/runtime.js'
import type { PostgresAddress } from '../common/address.js'
import type { Login } from './postgres-options.js'

export interface Account {
  address: PostgresAddress
  login: Login
}

/** What a database has reported, or what the connection to it has failed with. */
export class DatabaseFailure extends PlantsError {
  /** SQLSTATE, a code of the system or of TLS, or one of ours in `explanations` */
  readonly code: string
  /** In the words of the server or of the system. */
  readonly reason: string

  constructor(code: string, reason: string, { address, login }: Account, cause?: unknown) {
    const source = cause instanceof pg.DatabaseError ? cause.routine : undefined
    const found = explanations.find(
      (each) => each.code.test(code) && (each.routine ?? source) === source,
    )
    const explanation = found ?? (cause instanceof pg.DatabaseError ? reported : unreached)
    const { text, hint = login.passwordHint, kind = 'inaccessible' } = explanation
    const words: Record<string, string> = { name: address.name, user: address.user, reason }
    super(
      kind,
      text.replace(/\{(\w+)\}/g, (_, word: string) => `${words[word]}`),
      { hint, cause },
    )
    this.code = code
    this.reason = reason
  }
}

/** @param error of the driver */
export function explain(error: unknown, account: Account): PlantsError {
  if (error instanceof PlantsError) return error
  const reason = textOf(error)
  return new DatabaseFailure(codeIn(error, reason), reason, account, error)
}

/** SQLSTATE of a statement that was given up */
export const statementCanceled = '57014'

/** Of a `DatabaseFailure`; empty for any other error. */
export function codeOf(error: unknown): string {
  return error instanceof DatabaseFailure ? error.code : ''
}

function codeIn(error: unknown, reason: string): string {
  if (error instanceof pg.DatabaseError && error.code) {
    const { code, constraint = 'plants_pkey' } = error
    if (code.startsWith('23') && !(code === '23505' && ownConstraints.includes(constraint)))
      return 'CONSTRAINT'
    return /^[0-9A-Z]{5}$/.test(code) ? code : 'XX000'
  }
  if (/^(SASL: |Unknown authenticationOk message type )/.test(reason)) return 'LOGIN'
  if (reason === 'The server does not support SSL connections') return 'NO_TLS'
  if (error instanceof RangeError || error instanceof TypeError) return 'PROTOCOL'
  return systemCode(error) ?? 'LOST'
}

const ownConstraints = ['plants_pkey', 'plants_idempotency_key', 'imports_pkey']

/** Truncated: a server may send any amount. The addresses of one host fail together, in an `AggregateError`. */
function textOf(error: unknown): string {
  if (error instanceof AggregateError) return [...new Set(error.errors.map(textOf))].join(', ')
  const text = isTimeout(error) ? 'no answer in time' : reasonOf(error)
  return text.length > 1000 ? `${text.slice(0, 1000)}…` : text
}

interface Explanation {
  text: string
  /** By default where the password comes from. */
  hint?: string
  /** By default `inaccessible`. */
  kind?: ErrorKind
}

export const otherProtocol = 'the server does not speak the PostgreSQL protocol'

const unreached: Explanation = {
  text: 'Could not reach {name}: {reason}',
  hint: 'Is PostgreSQL running there, and is the address right?',
  kind: 'unavailable',
}

const reported: Explanation = {
  text: '{name} reported an error: {reason}',
  hint: 'Look at the log of the database',
}

const rejectedLogin: Explanation = {
  text: '{name} rejected the login of {user}: {reason}',
  kind: 'unauthorized',
}

/** `routine` is that of the server's source code. */
const explanations: (Explanation & { code: RegExp; routine?: string })[] = [
  {
    code: /^28000$/,
    routine: 'InitializeSessionUserId',
    ...rejectedLogin,
    hint: 'Correct the user of the address, or let there be such a role: CREATE ROLE NAME LOGIN',
  },
  // A rejected password has a code of its own.
  {
    code: /^28000$/,
    ...rejectedLogin,
    hint: 'Correct the user of the address, or let it log in: see its pg_hba.conf',
  },
  { code: /^(28|PASSWORD$)/, ...rejectedLogin },
  {
    code: /^LOGIN$/,
    text: 'Could not log in to {name}: {reason}',
    hint: 'Is it the right server? It should use scram-sha-256; to let it have a password: sslmode=verify-full',
  },
  {
    code: /^3D/,
    text: '{name} names a database that does not exist',
    hint: 'Create it there: CREATE DATABASE NAME ENCODING UTF8 TEMPLATE template0',
  },
  {
    code: /^42501$/,
    text: 'Permission denied for {user} in {name}: {reason}',
    hint: 'Use the address of the owner: for the tables, with plants stores init ADDRESS; to grant, as in databases.md',
  },
  {
    code: /^53300$/,
    text: '{name} has no free connection',
    hint: 'Try again, raise max_connections there, or put PgBouncer in front of it',
    kind: 'unavailable',
  },
  {
    code: /^57014$/,
    text: '{name} did not finish in time',
    hint: 'Try again, raise --timeout, or allow more connections in its address: ?max=NUMBER',
    kind: 'unavailable',
  },
  { code: /^(08|40003)/, ...unreached },
  { code: /^PROTOCOL$/, ...unreached, text: `Could not reach {name}: ${otherProtocol}` },
  { code: /^CONSTRAINT$/, ...reported }, // which somebody added to the store
  // Another writer was faster, the server is read-only, or it has a crisis that passes.
  { code: /^(23505|25006|40|53|55|57|58)/, ...reported, kind: 'unavailable' },
  {
    code: /^NO_TLS$/,
    text: '{name} has no TLS',
    hint: 'Turn on ssl there. Or on a network that only you use, connect without TLS: sslmode=prefer',
  },
  {
    code: /SELF_SIGNED|UNABLE_TO_/,
    ...unreached,
    hint: 'Set the root certificate of its issuer: sslrootcert=PATH',
    kind: 'inaccessible',
  },
  {
    code: /^(CERT_HAS_EXPIRED|EACCES|ENOTFOUND|ERR_TLS_CERT_ALTNAME_INVALID|TOO_LARGE)$/,
    ...unreached,
    kind: 'inaccessible',
  },
]
