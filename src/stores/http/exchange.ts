import { isTimeout, wait, within } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import type { Access } from '../common/access.js'
import type { RemoteAddress } from '../common/address.js'
import type { OpenOptions } from '../common/store.js'
import { classifyFailure, classifyResponse, type Expected, type Failure } from './classify.js'
import { type HttpClient, type HttpRequest, NoResponse } from './client.js'
import { RetryPolicy, reportWait } from './retry.js'

/** A service, and the client that sends requests to it. */
export interface Remote {
  address: RemoteAddress
  access: Access
  options: OpenOptions
  client: HttpClient
}

/** A request that is retried until it is settled, and its expected response. */
interface Exchange<T> {
  request: HttpRequest
  expected: Expected<T>
  /** the name of what the request sends, for messages */
  sends: string
  policy: RetryPolicy
  /** each aborts the exchange, with its reason */
  signals: AbortSignal[]
  /** Is called when the service may have processed the request, but sent no usable response. */
  onUnknown?(error: PlantsError): void
  /** Is called before each retry; false ends the retries. */
  mayRetry(failure: Failure, tries: number): boolean | Promise<boolean>
  /** The error to throw when there is no further retry. */
  explain(failure: Failure): PlantsError
}

/**
 * Sends a request, and retries it with backoff until it is settled or the timeout is over.
 *
 * @throws {PlantsError} what `explain` returns; the reason of a signal
 */
export async function exchange<T>(remote: Remote, task: Exchange<T>): Promise<T> {
  let last: Failure | undefined
  for (let tries = 0; ; tries += 1) {
    for (const signal of task.signals) signal.throwIfAborted()
    const result = await attempt(remote, task, last)
    if (result.kind === 'done') return result.value
    if (result.kind === 'unknown') task.onUnknown?.(result.error)
    last = result
    const pause = task.policy.pauseAfter(result, tries)
    if (pause === undefined || !(await task.mayRetry(result, tries))) throw task.explain(result)
    await wait(pause, task.signals)
  }
}

async function attempt<T>({ address, access, client }: Remote, task: Exchange<T>, last: Failure | undefined) {
  const { request, expected, sends, policy, signals } = task
  try {
    const response = await within(policy.left, signals, (signal) => client.send(request, signal))
    return classifyResponse(response, expected, { name: address.name, tokenHint: access.tokenHint })
  } catch (error) {
    if (!(error instanceof NoResponse)) throw error
    const result = classifyFailure(error, address, access, sends)
    if (signals.some(({ aborted }) => aborted)) {
      if (result.kind === 'unknown') task.onUnknown?.(result.error)
      throw error.cause
    }
    // The last try may have had too little time, so that the error of the one before says more.
    const isLess = isTimeout(error.cause) && (result.kind === 'retry' || result.kind === last?.kind)
    return isLess && last ? last : result
  }
}

/** Sends a request that changes nothing, and retries it until there is a response or the timeout is over. */
export function ask<T>(remote: Remote, request: HttpRequest, expected: Expected<T>): Promise<T> {
  const { access, options } = remote
  const policy = new RetryPolicy(options)
  let hasWarned = false
  const asked = exchange(remote, {
    request,
    expected,
    policy,
    sends: 'the request',
    signals: [options.clock.signal],
    mayRetry: async (failure) => {
      if (!hasWarned) await access.notify(policy.explain(failure))
      hasWarned = true
      return true
    },
    explain: asUnavailable,
  })
  return reportWait(access, options.clock, asked)
}

/** The error for a failed request that changes nothing: its outcome is known, even without a response. */
export function asUnavailable({ kind, error }: Failure): PlantsError {
  if (kind !== 'unknown') return error
  const { message, status, requestId, cause } = error
  return new PlantsError('unavailable', message, { hint: 'Nothing was stored. Try again later', retryable: true, status, requestId, cause })
}
