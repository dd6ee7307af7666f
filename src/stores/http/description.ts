import type { Right } from '../common/store.js'
import type { Expected, Failure } from './classify.js'
import { asUnavailable, exchange, type Remote } from './exchange.js'
import type { RetryPolicy } from './retry.js'

/** What a service offers in addition to the operation of the specification. */
export interface Description {
  supportsKeys: boolean
  /** such as "GET /plants/{id}", regardless of how the service names the parameter */
  operations: ReadonlySet<string>
}

/** The operations that read or correct plants. */
export const operationOf = {
  read: 'GET /plants/{id}',
  list: 'GET /plants',
  update: 'PUT /plants/{id}',
  delete: 'DELETE /plants/{id}',
} as const satisfies Partial<Record<Right | 'list', string>>

interface LookupOptions {
  signals: AbortSignal[]
  policy: RetryPolicy
  /** is called before each retry, with the last failure */
  onRetry(failure: Failure, tries: number): Promise<void>
}

/**
 * Reads `{base_url}/openapi.json`, without sending the token. Retries with backoff until the timeout. A service without a description
 * offers only the operation of the specification.
 *
 * @throws {PlantsError} `unavailable` when there is no response, and the reason of a signal
 */
export async function readDescription(remote: Remote, { signals, policy, onRetry }: LookupOptions): Promise<Description> {
  return exchange(remote, {
    request: { method: 'GET', path: '/openapi.json', headers: { accept: 'application/json', 'user-agent': remote.access.userAgent } },
    expected: expectedDescription,
    sends: 'the request for its openapi.json',
    signals,
    policy,
    mayRetry: async (failure, tries) => {
      await onRetry({ ...failure, error: asUnavailable(failure) }, tries)
      return true
    },
    explain: asUnavailable,
  })
}

const none: Description = { supportsKeys: false, operations: new Set() }

const expectedDescription: Expected<Description> = {
  what: 'description',
  otherwise: none,
  read({ body, isWhole }) {
    try {
      return isWhole ? describe(JSON.parse(body.toString())) : none
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      return none
    }
  },
}

function describe(document: unknown): Description {
  const paths = Object.entries(objectOf(at(document, 'paths'))).map(
    ([path, item]) => [path.replace(/\{[^{}/]+\}/g, '{id}'), objectOf(resolve(document, item))] as const,
  )
  const operations = paths.flatMap(([path, item]) => Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`))
  const item = resolve(document, at(document, 'paths', '/plants'))
  const parameters = [at(item, 'parameters'), at(item, 'post', 'parameters')].flatMap((list) => (Array.isArray(list) ? list : []))
  return { supportsKeys: parameters.map((parameter) => resolve(document, parameter)).some(isKey), operations: new Set(operations) }
}

function isKey(parameter: unknown): boolean {
  const name = at(parameter, 'name')
  return at(parameter, 'in') === 'header' && typeof name === 'string' && name.toLowerCase() === 'idempotency-key'
}

/** Resolves a `$ref` within the document, one level deep. */
function resolve(document: unknown, value: unknown): unknown {
  const reference = at(value, '$ref')
  if (typeof reference !== 'string' || !reference.startsWith('#/')) return value
  return at(
    document,
    ...reference
      .slice(2)
      .split('/')
      .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~')),
  )
}

function at(value: unknown, ...path: string[]): unknown {
  return path.reduce<unknown>(
    (object, key) => (typeof object === 'object' && object !== null && Object.hasOwn(object, key) ? Reflect.get(object, key) : undefined),
    value,
  )
}

function objectOf(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {}
}
