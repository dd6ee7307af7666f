import type { IncomingMessage } from 'node:http'
import type { Right } from '../stores/common/token-store.js'
import { type HttpAnswer, HttpError, preflightHeaders } from './answer.js'
import { type Operation, openApi, operations } from './operations.js'

export interface Answer extends HttpAnswer {
  outcome: string
  /** A stream takes the place of `body`. */
  pieces?: AsyncIterable<string>
}

/** What a method does at a path: an operation, or always the same answer. */
export type Route = Operation | { method: string; path: string; hasBody?: false; answer: Answer }

export interface Match {
  /** As in the table, with the base path. */
  path: string
  /** The last segment of the requested path. */
  id: string
  /** The entry of that path in the table. */
  routes: readonly Route[]
}

/** The paths of a service, and what each has. */
export class Routes {
  readonly #basePath: string
  readonly #rights: readonly Right[]
  readonly #cors: readonly string[]
  readonly #byPath = new Map<string, Route[]>()

  /** @param rights those whose operations are offered */
  constructor(basePath: string, rights: readonly Right[], cors: readonly string[]) {
    this.#basePath = basePath
    this.#rights = rights
    this.#cors = cors
    const answer = {
      outcome: 'described',
      status: 200,
      body: Buffer.from(openApi(basePath, rights)),
    }
    // The specification's operation exists in every service: one that does not offer it rejects each create.
    const offered = operations.filter(({ right }) => right === 'create' || rights.includes(right))
    for (const route of [...offered, { method: 'GET', path: '/openapi.json', answer }]) {
      const path = `${basePath}${route.path}`
      this.#byPath.set(path, [...(this.#byPath.get(path) ?? []), route])
    }
  }

  /** Undefined for a path that is not in the table. */
  match(url: string): Match | undefined {
    // A target may have a scheme and a host (RFC 9112, 3.2.2), which do not count.
    const target = this.#byPath.has(url)
      ? url
      : url.replace(/^https?:\/\/[^/?#]*(?=\/)/i, '').replace(/[?#].*/s, '')
    const start = target.lastIndexOf('/') + 1
    const id = target.slice(start)
    const path = this.#byPath.has(target) || id === '' ? target : `${target.slice(0, start)}{id}`
    const routes = this.#byPath.get(path)
    return routes && { path, id, routes }
  }

  /** Throws 404 or 405. */
  routeOf(request: IncomingMessage, match: Match | undefined): Route {
    const { method = '' } = request
    const { path = '', routes = [] } = match ?? {}
    const route = routes.find((each) => each.method === (method === 'HEAD' ? 'GET' : method))
    if (route) return route
    const offered = routes.filter((each) => 'answer' in each || this.#rights.includes(each.right))
    if (offered.length === 0)
      throw new HttpError(
        404,
        `There is nothing at this path. The API is described at ${this.#basePath}/openapi.json`,
      )
    const headers = preflightHeaders(request, this.#cors)
    if (headers)
      return { method, path, answer: { outcome: 'preflight', status: 204, body: '', headers } }
    const allowed = offered
      .map((each) => (each.method === 'GET' ? 'GET, HEAD' : each.method))
      .join(', ')
    throw new HttpError(405, `${path} allows ${allowed}, but not ${method}`, ['Allow', allowed])
  }
}
