import type { Runtime } from '../../platform/runtime.js'

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
  /** With --verbose, the requests and the responses. */
  trace?: ((line: string) => void) | undefined
}
