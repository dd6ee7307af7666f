/**
 * Limits in milliseconds, which only a hang reaches, whatever else the machine has to do. A shorter
 * limit is within a longer one, so that the error says which event did not come.
 */
export const hangLimitsMs = {
  /** A whole test may take this long. */
  test: 600_000,
  /** A test polls for a condition, or waits for the end of a process, no longer than this. */
  wait: 300_000,
  /** One event may take this long, such as a text on a terminal, a response or a server's start. */
  event: 60_000,
}
