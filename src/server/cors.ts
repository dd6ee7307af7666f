/**
 * Lets web pages of other origins use the service. A browser asks before some requests (a
 * preflight), and lets the page read the response only if the headers allow it:
 * https://fetch.spec.whatwg.org/#http-cors-protocol
 */
import type { IncomingMessage } from 'node:http'
import type { ServiceResponse } from './respond.js'

const allowedMethods = 'GET, POST, PATCH, DELETE'

/** These are named one by one, because `*` does not cover Authorization. */
const allowedRequestHeaders = 'Authorization, Content-Type, Idempotency-Key, Accept'

const exposedResponseHeaders = 'Link, Retry-After, Request-Id, WWW-Authenticate'

/**
 * If origins are configured, each response has `Vary: Origin`, even the response to a request
 * without an origin. Otherwise a cache could give a response to a page of another origin.
 *
 * @param origins the pages of these may use the service; `*` stands for all
 * @returns names and values, which alternate
 */
export function buildCorsHeaders(request: IncomingMessage, origins: readonly string[]): string[] {
  if (origins.length === 0) return []
  const vary = ['Vary', 'Origin']
  const origin = findAllowedOrigin(request, origins)
  if (!origin) return vary
  return [
    ...vary,
    'Access-Control-Allow-Origin',
    origin,
    'Access-Control-Expose-Headers',
    exposedResponseHeaders,
  ]
}

/** @returns undefined unless the request is a preflight of an allowed origin */
export function buildPreflightResponse(
  request: IncomingMessage,
  origins: readonly string[],
): ServiceResponse | undefined {
  const hasMethod = request.headers['access-control-request-method'] !== undefined
  const isPreflight = request.method === 'OPTIONS' && hasMethod
  if (!isPreflight || !findAllowedOrigin(request, origins)) return undefined
  const headers = [
    'Access-Control-Allow-Methods',
    allowedMethods,
    'Access-Control-Allow-Headers',
    allowedRequestHeaders,
  ]
  return { status: 204, outcome: 'preflight', body: '', headers }
}

function findAllowedOrigin(
  { headers: { origin } }: IncomingMessage,
  origins: readonly string[],
): string | undefined {
  if (!origin) return undefined
  return origins.find((allowedOrigin) => allowedOrigin === '*' || allowedOrigin === origin)
}
