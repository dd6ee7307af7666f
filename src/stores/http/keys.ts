import { secondsOf, wait, within } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import type { RemoteAddress } from '../address.js'
import type { OpenOptions } from '../store.js'
import { judge } from './answer.js'
import { type Answer, type Connection, NoAnswer } from './exchange.js'
import { unanswered, unreached } from './failure.js'
import type { Access } from './types.js'

/**
 * Whether a service says that it honours Idempotency-Key: its `{base_url}/openapi.json` lists it as a header parameter of
 * the create. The token is not sent.
 *
 * @returns undefined when that cannot be found out now
 */
export async function honoursKeys(connection: Connection, userAgent: string, signal: AbortSignal): Promise<boolean | undefined> {
  const found = await ask(connection, userAgent, signal)
  return typeof found === 'boolean' ? found : undefined
}

/** What it takes to send a service many requests. */
export interface Remote {
  address: RemoteAddress
  access: Access
  options: OpenOptions
  connection: Connection
}

/**
 * Finds out what `honoursKeys` tells, with growing pauses until the time is over.
 *
 * @throws {PlantsError} `unavailable` when it cannot be found out, and the reason of the signal
 */
export async function findKeys({ address, access, options, connection }: Remote, signal: AbortSignal): Promise<boolean> {
  const end = options.clock.now() + options.timeout
  for (let tries = 0; ; tries += 1) {
    signal.throwIfAborted()
    const left = end - options.clock.now()
    const found = await within(left, [signal], (stop) => ask(connection, access.userAgent, stop))
    if (typeof found === 'boolean') return found
    signal.throwIfAborted()
    const pause = Math.min(100 * 2 ** tries, 5000)
    const why = notFound(found, address, access)
    if (options.clock.now() + pause >= end) throw why
    if (tries === 2) await access.notify(`${why.message}. Trying again for up to ${secondsOf(end - options.clock.now())}`)
    await wait(pause, [signal])
  }
}

function notFound(found: Answer | NoAnswer, address: RemoteAddress, access: Access): PlantsError {
  if (found instanceof NoAnswer && !found.isSent) return unreached(address, access, found.cause)
  const verdict =
    found instanceof NoAnswer ? { error: unanswered(address, found.cause, question) } : judge(found, address.name, access.tokenHint)
  if ('plant' in verdict) throw new Error('Only an answer that is none says nothing of keys')
  const { message, status, cause } = verdict.error
  return new PlantsError('unavailable', message, { hint: 'Nothing was stored. Try again later', retryable: true, status, cause })
}

const question = 'the question whether it keeps idempotency keys'

/** @returns what came instead, when that cannot be found out now */
async function ask(connection: Connection, userAgent: string, signal: AbortSignal): Promise<boolean | Answer | NoAnswer> {
  try {
    const answer = await connection.send(
      { method: 'GET', path: '/openapi.json', headers: { accept: 'application/json', 'user-agent': userAgent } },
      signal,
    )
    const { status, body, isWhole } = answer
    if (status >= 500 || status === 429) return answer
    return status === 200 && isWhole && listsKey(JSON.parse(body.toString()))
  } catch (error) {
    if (error instanceof NoAnswer) return error
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
