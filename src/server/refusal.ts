import { toWireJson } from '../plant/json.js'
import { PlantsError } from '../platform/errors.js'

/** What the service answers when it does not create a plant: the specification's Error, the status, and what else HTTP wants. */
export interface Refusal {
  status: number
  error: number
  message: string
  headers: Record<string, string>
}

/** A refusal on its way to the one place that answers. */
export class Refused extends Error {
  readonly refusal: Refusal

  constructor(refusal: Refusal, cause?: unknown) {
    super(refusal.message, { cause })
    this.refusal = refusal
  }
}

/** A refusal of the operation itself: the status is 400, as the specification says, and `error` tells the reason. */
export function refused(error: 400 | 401 | 409 | 413 | 415 | 422, message: string, headers: Record<string, string> = {}): Refused {
  return new Refused({ status: 400, error, message, headers })
}

/** A refusal outside of the operation: the status is the `error`. */
export function refusedWith(status: 404 | 405 | 408 | 431 | 500 | 503, message: string, headers: Record<string, string> = {}): Refused {
  return new Refused({ status, error: status, message, headers })
}

/** What the parser of node:http refuses, or should. */
export const notHttp = 'The request is not HTTP/1.1 as RFC 9112 has it'

/** Refuses what would be more than the service can hold. */
export function busy(): Refused {
  return refusedWith(503, 'The service is busy, and nothing was stored', comeAgain)
}

/** "Come again, nothing was stored": in how many seconds. */
const comeAgain = { 'Retry-After': '1' }

/**
 * What a caller gets to know of a failure. Of the inside it gets no more than the id of the request.
 *
 * @param requestId what the log calls the request
 */
export function refusalOf(error: unknown, requestId: string): Refusal {
  if (error instanceof Refused) return error.refusal
  const kind = error instanceof PlantsError ? error.kind : 'defect'
  const inside = `Ask its operator about the request ${requestId}`
  if (error instanceof PlantsError && kind === 'conflict') return refused(409, error.message).refusal
  if (kind === 'unavailable') return refusedWith(503, `The store is not available, and nothing was stored. ${inside}`, comeAgain).refusal
  const message = kind === 'unknownOutcome' ? 'Whether the plant is stored is not known' : 'The service made a mistake'
  return refusedWith(500, `${message}. ${inside}`).refusal
}

/** The specification's Error. */
export function errorBody({ error, message }: Pick<Refusal, 'error' | 'message'>): string {
  return toWireJson({ error, message })
}
