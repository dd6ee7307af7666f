import type { SecureContext } from 'node:tls'
import type { PlantsError } from '../errors.js'
import type { PostgresHost } from './address.js'

/** Where a token is sent. The token is saved under the name. */
export interface TokenTarget {
  readonly name: string
  readonly url: URL
}

/** Resolves to undefined if no certificates of the system are found. */
export type CreateSystemContext = () => Promise<SecureContext | undefined>

/** How to reach a service: the token, and how the request travels. */
export interface ServiceAccess {
  token: string
  tokenHint: string
  /** Looks the token up again. Throws like the first lookup. */
  renew?: (() => Promise<string | undefined>) | undefined
  userAgent: string
  /** PEM certificates that are trusted instead of those of Node.js and of the system. */
  ca: string | undefined
  /**
   * Adds the certificates of the system to those of Node.js. Call it only after a handshake failed
   * for an unknown issuer: it takes about 50 ms. Undefined if only `ca` is trusted.
   */
  createSystemContext?: CreateSystemContext | undefined
  proxy: string | undefined
  notify(text: string): Promise<void>
  trace?: ((line: string) => void) | undefined
}

/** `rejected`: the token is wrong or revoked. `unknown`: no response settles it. */
export type TokenCheck =
  | { state: 'accepted' }
  | { state: 'rejected' | 'unknown'; error: PlantsError }

/** How to log in to a database. */
export interface Login {
  findPassword(host: PostgresHost): string | undefined
  passwordHint: string
  /** PEM; those of Node.js if undefined. */
  ca: string | undefined
  /** As for a service; only for `sslmode=verify-full` without `ca`. */
  createSystemContext?: CreateSystemContext | undefined
  cert: string | undefined
  key: string | undefined
}
