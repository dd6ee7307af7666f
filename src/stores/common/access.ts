import type { PlantsError } from '../../platform/errors.js'

export interface Access {
  token: string
  tokenHint: string
  /** Finds a newer token; undefined if there is none, or if the last call was less than a minute ago. Throws like the first lookup. */
  renew?: (() => Promise<string | undefined>) | undefined
  userAgent: string
  /** PEM certificates that are trusted instead of the system's */
  ca: string | undefined
  proxy: string | undefined
  /** Throws if a connection could now send the token to somebody else. */
  beforeConnect?: (() => void) | undefined
  /** Prints a notice that something takes longer. */
  notify(text: string): Promise<void>
  /** Is called often during a wait for the service: with its milliseconds from a second on, and with undefined before that and at its end. */
  onWait?: ((milliseconds: number | undefined) => Promise<void>) | undefined
  observer: Observer | undefined
}

export interface WireRequest {
  method: string
  url: string
  headers: Record<string, string>
  body: string
}

/** Traces the requests to a remote store. The headers include the token. */
export interface Observer {
  connected(steps: Steps): void
  sent(request: { method: string; url: string; headers: Readonly<Record<string, string>>; length: number }): void
  /** The headers of a response have arrived, `firstByte` milliseconds after the request was created. */
  answered(answer: { status: number; headers: Readonly<Record<string, string[] | undefined>> }, firstByte: number): void
  /** The response is complete, with `length` bytes, `whole` milliseconds after the request was created. */
  ended(length: number, whole: number): void
  failed(cause: unknown): void
}

/** the durations of the steps of a connection, in milliseconds; undefined for steps that did not occur */
export interface Steps {
  name?: number
  connect?: number
  tls?: number
  /** the connection to a proxy, CONNECT, and TLS through it */
  tunnel?: number
}

/** Whether a store accepts a token or a password: `refused` when it is wrong or revoked, `unknown` when no response settles it. */
export type CredentialCheck = { state: 'accepted' } | { state: 'refused' | 'unknown'; error: PlantsError }
