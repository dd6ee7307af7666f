import type { Runtime } from '../../platform/runtime.js'
import type { ServiceAccess } from '../credentials.js'

export interface HttpOptions {
  access: ServiceAccess
  /** Limits a call with its retries. */
  timeoutMs: number
  runtime: Runtime
  retry?: number | undefined
  /** Requests at once. */
  concurrency?: number | undefined
}

export const defaultConcurrency = 64
