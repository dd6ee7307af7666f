import type { Runtime } from '../../platform/runtime.js'
import type { ServiceAccess } from '../credentials.js'

export interface HttpOptions {
  access: ServiceAccess
  /** A call, with its retries, takes no longer than this. */
  timeoutMs: number
  runtime: Runtime
  retryMs?: number | undefined
  /** The number of requests that are sent at once. */
  concurrency?: number | undefined
}

export const defaultConcurrency = 64
