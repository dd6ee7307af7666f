/** Limits of time, in milliseconds, which only a hang reaches, whatever else the machine has to do. */
export const hang = {
  test: 600_000,
  /** of what a test polls: shorter, so that its failure says what was there instead */
  wait: 300_000,
  /** of one event, such as a text on a terminal, a response or the start of a server */
  event: 60_000,
}
