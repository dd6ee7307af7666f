/**
 * Looks at what a server challenges with (https://www.rfc-editor.org/rfc/rfc5802#section-5.1), before the driver computes what it wants.
 *
 * @throws for one that is none, or that would stop the process for seconds
 */
export function checkScram(challenge: string): void {
  const [, count] = /^r=[\x21-\x2b\x2d-\x7e]+,s=[A-Za-z0-9+/]+={0,2},i=([1-9]\d{0,9})$/.exec(challenge) ?? []
  if (count === undefined) throw new Error('what answers is no PostgreSQL server')
  if (Number(count) > mostIterations) throw new Error(`it asks for ${count} iterations of SCRAM, and ${mostIterations} are the most here`)
}

/** PostgreSQL asks for 4096 when nothing else was set. These take about a second, in which nothing else happens. */
const mostIterations = 1_000_000
