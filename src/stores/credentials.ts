import type { SecureContext } from 'node:tls'
import type { PlantsError } from '../errors.js'
import type { PostgresHost } from './address.js'

/** A token is sent to this URL, and saved under this name. */
export interface TokenTarget {
  readonly name: string
  readonly url: URL
}

/** Resolves to undefined if no certificates of the system are found. */
export type CreateSystemContext = () => Promise<SecureContext | undefined>

/** What a client needs to reach a service: the token, and how requests travel. */
export interface ServiceAccess {
  token: string
  /** An error about the token has this hint, which says where the token can be corrected. */
  tokenHint: string
  /** Looks the token up again, because it may have expired. It throws like the first lookup. */
  renew?: (() => Promise<string | undefined>) | undefined
  userAgent: string
  /** These PEM certificates are trusted instead of those of Node.js and of the system. */
  ca: string | undefined
  /**
   * Creates a context that trusts the certificates of the system and those of Node.js. Call it only
   * after a handshake failed for an unknown issuer, because it takes about 50 ms. It is undefined
   * if only `ca` is trusted.
   */
  createSystemContext?: CreateSystemContext | undefined
  proxy: string | undefined
  notify(text: string): Promise<void>
  trace?: ((line: string) => void) | undefined
}

/**
 * A `rejected` token is wrong or revoked. The state is `foreign` if the server is not a Plant
 * Store, and `unknown` if no response settles it.
 */
export type TokenCheck =
  | { state: 'accepted' }
  | { state: 'rejected' | 'foreign' | 'unknown'; error: PlantsError }

/** What a client needs to log in to a database. */
export interface Login {
  findPassword(host: PostgresHost): string | undefined
  passwordHint: string
  /** These PEM certificates are trusted; if undefined, those of Node.js are. */
  ca: string | undefined
  /**
   * Creates the same context as `ServiceAccess.createSystemContext`. It is defined for
   * `sslmode=verify-full` without `ca`.
   */
  createSystemContext?: CreateSystemContext | undefined
  cert: string | undefined
  key: string | undefined
}
