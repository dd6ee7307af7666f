import type { IncomingMessage } from 'node:http'

/** Lets pages of some origins use the service (https://fetch.spec.whatwg.org/#http-cors-protocol). */
export class Cors {
  readonly #origins: ReadonlySet<string>

  /** @param origins such as `https://garden.example.com`, or `*` */
  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins)
  }

  /** Those of every response: alternating names and values. */
  headersFor(request: IncomingMessage): string[] {
    const allowed = this.#allowedOf(request)
    const vary = ['Vary', 'Origin']
    return allowed === undefined ? vary : [...vary, 'Access-Control-Allow-Origin', allowed, ...exposed]
  }

  /** Those of the response to a preflight; undefined for any other request. */
  preflightOf(request: IncomingMessage): string[] | undefined {
    const asks = request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined
    return asks && this.#allowedOf(request) !== undefined ? preflight : undefined
  }

  #allowedOf({ headers: { origin } }: IncomingMessage): string | undefined {
    if (origin === undefined) return undefined
    return this.#origins.has('*') ? '*' : this.#origins.has(origin) ? origin : undefined
  }
}

const exposed = ['Access-Control-Expose-Headers', 'Link, Retry-After, Request-Id, WWW-Authenticate']

/** Headers by name, because `*` does not cover Authorization. */
const preflight = [
  ...['Access-Control-Allow-Methods', 'GET, POST, PATCH, DELETE'],
  ...['Access-Control-Allow-Headers', 'Authorization, Content-Type, Idempotency-Key, Accept'],
  ...['Access-Control-Max-Age', '600'],
]
