/** Builds the responses to requests that fail: Errors of the specification. */
import { PlantsError } from '../errors.js'
import { toWireJson } from '../plant/json.js'
import type { ServiceResponse } from './respond.js'

export class HttpError extends Error {
  readonly response: ServiceResponse

  /**
   * @param message may quote what a client sent, such as half of a surrogate pair. The body has
   *   U+FFFD instead of that, because UTF-8 cannot encode it.
   * @param headers names and values alternate
   */
  constructor(status: number, message: string, headers: readonly string[] = []) {
    super(message)
    const body = toWireJson({ error: status, message: message.toWellFormed() })
    this.response = { status, body, headers }
  }
}

export function createUnavailableError(
  message = 'The service is busy, and nothing was stored',
): HttpError {
  return new HttpError(503, message, ['Retry-After', '1'])
}

/**
 * @param code the code of an error of Node.js's HTTP parser, such as `HPE_HEADER_OVERFLOW`. Without
 *   a code, the error says that the request is not HTTP/1.1.
 */
export function createInvalidHttpError(code = ''): HttpError {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new HttpError(
      431,
      'The request headers are larger than 16 KiB, or have more than 100 lines',
    )
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new HttpError(408, 'The request did not arrive in time')
  return new HttpError(400, 'The request is not valid HTTP/1.1 (RFC 9112)')
}

/**
 * Clients do not get the details of a failure of the service or its store, which may name its user
 * or its host. The log has the details, under the same id of the request.
 */
export function toHttpError(failure: unknown, requestId: string): HttpError {
  if (failure instanceof HttpError) return failure
  const advice = `Ask the operator of the service about request ${requestId}`
  const storeError = failure instanceof PlantsError ? failure : undefined
  switch (storeError?.kind) {
    case 'conflict':
    case 'constraint':
    case 'notFound':
    case 'tooLarge':
      return new HttpError(storeError.error, storeError.message)
    case 'unavailable':
    case 'accessDenied':
      return createUnavailableError(`The store is not available, and nothing was stored. ${advice}`)
    case 'unknownOutcome':
      return new HttpError(500, `Whether the plant is stored is unknown. ${advice}`)
    default:
      return new HttpError(500, `Internal error. ${advice}`)
  }
}
