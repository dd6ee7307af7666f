import type { IncomingMessage } from 'node:http'

/**
 * Lets pages use the service (https://fetch.spec.whatwg.org/#http-cors-protocol). Headers are alternating names and
 * values.
 */
export class Cors {
  readonly #origins: readonly string[]

  /** @param origins such as `https://garden.example.com`, or `*` */
  constructor(origins: readonly string[]) {
    this.#origins = origins
  }

  /** Those of every response. */
  headersFor(request: IncomingMessage): readonly string[] {
    const allowed = this.#allowedFor(request)
    if (allowed !== undefined) return [...vary, 'Access-Control-Allow-Origin', allowed, ...exposed]
    return this.#origins.length > 0 ? vary : []
  }

  /** Those of a preflight; undefined for another request. */
  preflightFor(request: IncomingMessage): readonly string[] | undefined {
    const asks = request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined
    return asks && this.#allowedFor(request) !== undefined ? preflight : undefined
  }

  #allowedFor({ headers: { origin } }: IncomingMessage): string | undefined {
    return origin && this.#origins.find((each) => each === '*' || each === origin)
  }
}

const vary = ['Vary', 'Origin']
const exposed = ['Access-Control-Expose-Headers', 'Link, Retry-After, Request-Id, WWW-Authenticate']

/** Headers by name, because `*` does not cover Authorization. */
const preflight = [
  ...['Access-Control-Allow-Methods', 'GET, POST, PATCH, DELETE'],
  ...['Access-Control-Allow-Headers', 'Authorization, Content-Type, Idempotency-Key, Accept'],
  ...['Access-Control-Max-Age', '600'],
]
