import { type Clock, longestTimer } from '../../platform/clock.js'
import type { Connection } from './connection.js'

/**
 * Has a server break off what it does on a connection when the time is over, and gives the connection up when it does not.
 *
 * @param deadline as the clock has it; never when it is Infinity
 * @returns what is called when it is done
 */
export function endAt(deadline: number, connection: Connection, clock: Clock): () => void {
  const left = Math.max(0, deadline - clock.now())
  if (left > longestTimer) return () => undefined
  let timer = setTimeout(() => {
    connection.cancel().catch(() => undefined) // then it is given up
    timer = setTimeout(() => connection.destroy(), grace)
  }, left)
  return () => clearTimeout(timer)
}

/** milliseconds in which a server that works says that it has broken something off */
const grace = 1000
