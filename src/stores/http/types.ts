import type { PlantsError } from '../../platform/errors.js'

/** What it takes to reach a remote store. */
export interface Access {
  token: string
  /** how to give another token */
  tokenHint: string
  /** Finds a newer token; undefined when there is none, or when that was asked less than a minute ago. Throws as finding the first did. */
  renew?: (() => Promise<string | undefined>) | undefined
  userAgent: string
  /** PEM certificates that are trusted instead of the system's */
  ca: string | undefined
  /** the URL of the proxy that leads there */
  proxy: string | undefined
  /** Throws where a connection would now lead to somebody who must not get the token. */
  beforeConnect?: (() => void) | undefined
  /** tells a person that something takes longer */
  notify(text: string): Promise<void>
  /** is told once a second for how many milliseconds the service is waited for, and with nothing that the wait is over */
  onWait?: ((milliseconds: number | undefined) => void) | undefined
  /** is told what goes over the wire */
  observer: Observer | undefined
}

/** A request to a service, as it goes out. */
export interface WireRequest {
  method: string
  url: string
  headers: Record<string, string>
  body: string
}

/** Looks on while a remote store is asked. The token is in what it sees. */
export interface Observer {
  connected(steps: Steps): void
  sent(request: { method: string; url: string; headers: Readonly<Record<string, string>>; length: number }): void
  /** The head of an answer has come, so many milliseconds after the request was made. */
  answered(answer: { status: number; headers: Readonly<Record<string, string[] | undefined>> }, firstByte: number): void
  /** The answer is whole, with so many bytes, so many milliseconds after the request was made. */
  ended(length: number, whole: number): void
  failed(cause: unknown): void
}

/** milliseconds that the steps of a connection took, those of them that there were */
export interface Steps {
  name?: number
  connect?: number
  tls?: number
  /** through a proxy, with TLS behind it */
  tunnel?: number
}

/** What a service says of a token. */
export type TokenVerdict =
  | { state: 'accepted' }
  /** it does not know it, or not any more */
  | { state: 'refused'; error: PlantsError }
  /** it could not be asked, or answered what settles nothing */
  | { state: 'unknown'; error: PlantsError }
