import { backoff, type Clock, maxTimer, wait } from '../../platform/clock.js'
import type { Connection } from './connection.js'
import type { Account } from './dial.js'
import { explainDatabase, mayPass } from './failure.js'

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

/**
 * Has a server break off what it does on a connection when the time is over, and gives the connection up when it does not.
 *
 * @param deadline as the clock has it; never when it is Infinity
 * @returns what is called when it is done
 */
export function endAt(deadline: number, connection: Connection, clock: Clock): () => void {
  const left = Math.max(0, deadline - clock.now())
  if (left > maxTimer) return () => undefined
  let timer = setTimeout(() => {
    connection.cancel().catch(() => undefined) // then it is given up
    timer = setTimeout(() => connection.destroy(), grace)
  }, left)
  return () => clearTimeout(timer)
}

/** milliseconds in which a server that works says that it has broken something off */
const grace = 1000

/** Until when somebody waits for a connection, and what ends it before. */
export interface Turn {
  /** as the clock has it; for ever when it is Infinity */
  deadline: number
  signal?: AbortSignal | undefined
}
