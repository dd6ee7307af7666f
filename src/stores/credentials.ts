import type { PlantsError } from '../errors.js'
import type { PostgresHost } from './address.js'

/** Where a token is sent. The token is saved under the name. */
export interface TokenTarget {
  readonly name: string
  readonly url: URL
}

/** How to reach a service: the token, and how the request travels. */
export interface ServiceAccess {
  token: string
  tokenHint: string
  /** Looks the token up again. Throws like the first lookup. */
  renew?: (() => Promise<string | undefined>) | undefined
  userAgent: string
  /** PEM certificates that are trusted instead of the system's. */
  ca: string | undefined
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
  password(host: PostgresHost): string | undefined
  passwordHint: string
  /** PEM; those of the system if undefined. */
  ca: string | undefined
  cert: string | undefined
  key: string | undefined
}
