import { readFileSync } from 'node:fs'
import { unlessSystemError } from '../../platform/errors.js'
import { untrustedReason } from '../../platform/files.js'
import type { PostgresAddress } from '../common/address.js'
import type { Login } from '../common/store.js'

export interface Account {
  address: PostgresAddress
  login: Login
}

/** The server requests a login method that is not allowed, or has not proved its identity. */
export class LoginError extends Error {
  readonly hint: string

  constructor(message: string, hint = 'Is it the right server? Ask the operator of the database how to log in') {
    super(message)
    this.hint = hint
  }
}

export class MissingPassword extends LoginError {}

/**
 * Checks the owner of a connected Unix socket: a user who creates the socket while the server is down would receive the password and the
 * plants. Also trusts PostgreSQL's own account, and a group that can write to the folder, as on Debian.
 *
 * @param trusts whether a user is this one, or root
 * @throws {LoginError} and the system's error if the socket no longer exists
 */
export function checkSocketOwner(path: string, trusts: (uid: number) => boolean): void {
  if (process.platform === 'win32') return
  const reason = untrustedReason(path, { trusts: (uid) => trusts(uid) || isPostgres(uid), writers: 0o002 })
  if (reason !== undefined) throw new LoginError(reason, 'If that user runs the database, connect over TCP: host=localhost')
}

function isPostgres(uid: number): boolean {
  const accounts = unlessSystemError(() => readFileSync('/etc/passwd', 'utf8')) ?? ''
  return new RegExp(`^_?postgres:[^:]*:${uid}:`, 'm').test(accounts)
}
