import { wait, within } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import type { RemoteAddress } from '../address.js'
import type { OpenOptions } from '../store.js'
import { classifyFailure, classifyResponse, type Result } from './classify.js'
import { type HttpClient, NoResponse } from './client.js'
import { isRetryable, type Retryable, type RetryPolicy } from './retry.js'
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
  onRetry(result: Retryable, tries: number): Promise<void>
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
    if (!isRetryable(found) || pause === undefined) throw notFound(found)
    await onRetry(found, tries)
    await wait(pause, signals)
  }
}

function notFound(result: Result): PlantsError {
  if (result.kind === 'created') throw new Error('Only a response that is none says nothing of keys')
  const { kind, message, hint, status, cause } = result.error
  const isAnswered = kind !== 'unavailable' || status !== undefined
  return new PlantsError('unavailable', message, {
    hint: isAnswered ? 'Nothing was stored. Try again later' : hint,
    retryable: true,
    status,
    cause,
  })
}

/** @returns what came instead, when that cannot be found out now */
async function ask({ address, access, client }: Remote, signal: AbortSignal): Promise<boolean | Result> {
  try {
    const headers = { accept: 'application/json', 'user-agent': access.userAgent }
    const response = await client.send({ method: 'GET', path: '/openapi.json', headers }, signal)
    const { status, body, isWhole } = response
    if (status >= 500 || status === 429) return classifyResponse(response, address.name, access.tokenHint)
    return status === 200 && isWhole && listsKey(JSON.parse(body.toString()))
  } catch (error) {
    if (error instanceof NoResponse) return classifyFailure(error, address, access, 'the question whether it keeps idempotency keys')
    if (error instanceof SyntaxError) return false
    throw error
  }
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
