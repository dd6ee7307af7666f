import type { IncomingMessage } from 'node:http'

/** Lets pages of some origins use the service (https://fetch.spec.whatwg.org/#http-cors-protocol). */
export class Cors {
  readonly #origins: ReadonlySet<string>

  /** @param origins such as `https://garden.example.com`, or `*` */
  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins)
  }

  /** Those of every response: alternating names and values. */
  headersFor(request: IncomingMessage): readonly string[] {
    if (this.#origins.size === 0) return []
    const allowed = this.#allowedOf(request)
    return allowed === undefined ? vary : [...vary, 'Access-Control-Allow-Origin', allowed, ...exposed]
  }

  /** Whether it is the preflight of an allowed origin. */
  isPreflight(request: IncomingMessage): boolean {
    const asks = request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined
    return asks && this.#allowedOf(request) !== undefined
  }

  #allowedOf({ headers: { origin } }: IncomingMessage): string | undefined {
    if (origin !== undefined && this.#origins.has('*')) return '*'
    return origin !== undefined && this.#origins.has(origin) ? origin : undefined
  }
}

const vary = ['Vary', 'Origin']
const exposed = ['Access-Control-Expose-Headers', 'Link, Retry-After, Request-Id, WWW-Authenticate']

/** Headers by name, because `*` does not cover Authorization. */
export const preflightHeaders = [
  ...['Access-Control-Allow-Methods', 'GET, POST, PATCH, DELETE'],
  ...['Access-Control-Allow-Headers', 'Authorization, Content-Type, Idempotency-Key, Accept'],
  ...['Access-Control-Max-Age', '600'],
]
