import { backoff, type Clock, wait } from '../../platform/clock.js'
import type { Account } from './dial.js'
import { explainDatabase, mayPass } from './failure.js'
import type { Turn } from './pool.js'

/**
 * Does what can be done twice, again for as long as what fails may pass.
 *
 * @throws {PlantsError} what failed last, and what to do about it
 */
export async function untilDone<T>(
  turn: Turn,
  { account, clock }: { account: Account; clock: Clock },
  action: () => Promise<T>,
): Promise<T> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await action()
    } catch (error) {
      turn.signal?.throwIfAborted()
      const isOver = clock.now() >= turn.deadline
      if (isOver || !mayPass(error)) throw explainDatabase(error, account)
      await pause(tries, clock, turn.signal)
    }
  }
}

/** Waits longer from time to time, up to a second, and not as long as others. */
export function pause(tries: number, clock: Clock, signal?: AbortSignal): Promise<void> {
  return wait(backoff(tries, { base: 10, max: 1000, random: clock.random }), signal ? [signal] : [])
}
