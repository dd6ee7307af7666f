import { wait, within } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import type { RemoteAddress } from '../address.js'
import type { OpenOptions } from '../store.js'
import { classifyFailure, classifyResponse, type Failure } from './classify.js'
import { type HttpClient, NoResponse } from './client.js'
import type { RetryPolicy } from './retry.js'
import type { Access } from './types.js'

/** What it takes to send a service requests. */
export interface Remote {
  address: RemoteAddress
  access: Access
  options: OpenOptions
  client: HttpClient
}

interface LookupOptions {
  signals: AbortSignal[]
  policy: RetryPolicy
  /** is called before another try, with what came of the last */
  onRetry(failure: Failure, tries: number): Promise<void>
}

/**
 * Whether a service says that it supports Idempotency-Key: its `{base_url}/openapi.json` lists it as a header parameter of
 * the create. The token is not sent. Retried with growing pauses until the time is over.
 *
 * @throws {PlantsError} `unavailable` when it cannot be found out, and the reason of a signal
 */
export async function supportsIdempotencyKeys(remote: Remote, { signals, policy, onRetry }: LookupOptions): Promise<boolean> {
  for (let tries = 0; ; tries += 1) {
    for (const signal of signals) signal.throwIfAborted()
    const found = await within(policy.left, signals, (signal) => ask(remote, signal))
    if (typeof found === 'boolean') return found
    for (const signal of signals) signal.throwIfAborted()
    const pause = policy.pauseAfter(found, tries)
    if (pause === undefined) throw found.error
    await onRetry(found, tries)
    await wait(pause, signals)
  }
}

/** @returns what came instead, when that cannot be found out now */
async function ask({ address, access, client }: Remote, signal: AbortSignal): Promise<boolean | Failure> {
  const headers = { accept: 'application/json', 'user-agent': access.userAgent }
  try {
    const response = await client.send({ method: 'GET', path: '/openapi.json', headers }, signal)
    const { status, body, isWhole } = response
    if (status === 200 && isWhole) return listsKey(JSON.parse(body.toString()))
    const result = status >= 500 || status === 429 ? classifyResponse(response, address.name, access.tokenHint) : undefined
    return result !== undefined && result.kind !== 'created' && notFound(result)
  } catch (error) {
    if (error instanceof SyntaxError) return false
    if (!(error instanceof NoResponse)) throw error
    const failure = classifyFailure(error, address, access, 'the question whether it keeps idempotency keys')
    return error.isSent ? notFound(failure) : failure
  }
}

function notFound(failure: Failure): Failure {
  const { message, status, cause } = failure.error
  const hint = 'Nothing was stored. Try again later'
  return { ...failure, error: new PlantsError('unavailable', message, { hint, retryable: true, status, cause }) }
}

function listsKey(document: unknown): boolean {
  const item = resolve(document, at(document, 'paths', '/plants'))
  const parameters = [at(item, 'parameters'), at(item, 'post', 'parameters')].flatMap((list) => (Array.isArray(list) ? list : []))
  return parameters.map((parameter) => resolve(document, parameter)).some(isKey)
}

function isKey(parameter: unknown): boolean {
  const name = at(parameter, 'name')
  return at(parameter, 'in') === 'header' && typeof name === 'string' && name.toLowerCase() === 'idempotency-key'
}

/** Follows a reference inside the document, one step. */
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
