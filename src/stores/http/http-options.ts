import type { Runtime } from '../../platform/runtime.js'
import type { Right } from '../common/token-store.js'

/** What a service is opened with. */
export interface HttpOptions {
  access: Access
  /** Of a call, in milliseconds. */
  timeout: number
  runtime: Runtime
  /** See `patienceOf`. */
  retry?: number | undefined
  /** How many requests there are at once. By default `defaultConcurrency`. */
  concurrency?: number | undefined
  /** The rights of a command that writes, besides the default ones. */
  needs?: readonly Right[] | undefined
}

export const defaultConcurrency = 64

export interface Access {
  token: string
  tokenHint: string
  /** Looks the token up again; calls within a minute share one lookup. Throws like the first lookup. */
  renew?: (() => Promise<string | undefined>) | undefined
  userAgent: string
  /** PEM certificates that are trusted instead of the system's. */
  ca: string | undefined
  proxy: string | undefined
  notify(text: string): Promise<void>
  /** Called often during a wait, with its milliseconds from a second on; undefined before that, and at its end. */
  onWait?: ((milliseconds: number | undefined) => Promise<void>) | undefined
  observer: Observer | undefined
}

/** The headers include the token. */
export interface Observer {
  /** `time` is the milliseconds since the first request of the connection was created. */
  connected(time: number): void
  sent(request: {
    method: string
    url: string
    headers: Record<string, string>
    length: number
  }): void
  /** `firstByte` is the milliseconds since the request was created. */
  answered(
    answer: { status: number; headers: Readonly<Record<string, string[] | undefined>> },
    firstByte: number,
  ): void
  /** `length` is in bytes, `whole` in milliseconds since the request was created. */
  ended(length: number, whole: number): void
  failed(cause: unknown): void
}
