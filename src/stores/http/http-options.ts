import type { Runtime } from '../../platform/runtime.js'

export interface HttpOptions {
  access: Access
  /** Of a call, in milliseconds. */
  timeout: number
  runtime: Runtime
  retry?: number | undefined
  /** Requests at once. */
  concurrency?: number | undefined
}

export const defaultConcurrency = 64

export interface Access {
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
