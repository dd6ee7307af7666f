import { PlantsError } from '../../errors.js'
import { wait } from '../../platform/runtime.js'
import { nextPause, patienceOf, tryingAgain } from '../store.js'
import { resultOf } from './failures.js'
import type { HttpClient, HttpRequest } from './http-client.js'
import { requestToDescribe } from './plant-request.js'

/** Pauses between tries, in milliseconds. */
const policy = { base: 100, max: 2000 }

interface SendOptions {
  /** Ends the retries, and unless `finishesSent` also a request in flight. */
  signal?: AbortSignal
  finishesSent?: boolean
  /** Of the timeout. */
  start?: number
}

/**
 * Repeats a request while it may succeed.
 *
 * @throws {PlantsError} that of a try which may have been processed, if no later one has settled
 * that; otherwise the last one, or the reason of the signal
 */
export async function send<T>(
  client: HttpClient,
  request: HttpRequest<T>,
  options: SendOptions = {},
): Promise<T> {
  const { runtime, timeout } = client.options
  const { signal = runtime.handleSignals(), start = runtime.now(), finishesSent } = options
  // Until connected, --retry counts; then --timeout.
  const elapsed = () => runtime.now() - Math.max(start, client.connectedAt ?? start)
  const left = () => timeout - (client.connectedAt === undefined ? 0 : elapsed())
  let lost: PlantsError | undefined
  try {
    for (let tries = 1; ; tries += 1) {
      signal.throwIfAborted()
      const { token } = client.access
      const response = await client.send(request, left(), finishesSent ? [] : [signal])
      const result = resultOf(client, request, response)
      if ('value' in result) return result.value
      const { error, isOpen } = result
      // A token may have expired, and a 401 changes nothing.
      if (error.kind === 'unauthorized' && (await client.renewToken(token))) continue
      if (isOpen) lost = error
      else if (!error.isRetryable) throw error
      signal.throwIfAborted()
      const patience = patienceOf(client.options, client.connectedAt !== undefined)
      const state = { tries, elapsed: elapsed(), patience, retryAfter: error.retryAfterMs }
      const pauseMs = nextPause(policy, state, runtime)
      if (pauseMs === undefined) throw error
      if (lost && !(await mayRepeat(client, request, { signal, start }))) throw error
      if (!client.hasWarned) {
        client.hasWarned = true
        await client.access.notify(tryingAgain(lost ?? error, patience - elapsed()))
      }
      await wait(pauseMs, [signal])
    }
  } catch (error) {
    // A create has its own key: its conflict is with another plant, so it was not made.
    const isConflict =
      request.method === 'POST' && error instanceof PlantsError && error.kind === 'conflict'
    throw lost && !isConflict ? lost : error
  }
}

/**
 * A create that may have been processed is repeated only where its key prevents a second plant. The
 * service is asked once, even if that fails.
 */
async function mayRepeat(
  client: HttpClient,
  { method }: HttpRequest,
  options: SendOptions,
): Promise<boolean> {
  if (method !== 'POST') return true
  client.keepsKeys ??= send(client, requestToDescribe, options).catch((error: unknown) => {
    if (!(error instanceof PlantsError)) throw error
    return false
  })
  return client.keepsKeys
}
