import { LoginError } from './login-methods.js'

/**
 * Looks at what a server challenges with (https://www.rfc-editor.org/rfc/rfc5802#section-5.1), before the driver computes what it wants.
 *
 * @param nonce what we have sent, with which the server's begins
 * @throws {LoginError} for one that is none, that would stop the process for seconds, or whose answer would be easy to guess from
 */
export function checkScram(challenge: string, nonce: string | undefined): void {
  const [, serverNonce = '', count] = /^r=([\x21-\x2b\x2d-\x7e]+),s=[A-Za-z0-9+/]+={0,2},i=([1-9]\d{0,9})$/.exec(challenge) ?? []
  if (count === undefined) throw new LoginError('what answers is no PostgreSQL server')
  if (Number(count) > maxIterations)
    throw new LoginError(`it asks for ${count} iterations of SCRAM, and ${maxIterations} are the most here`)
  if (Number(count) < minIterations)
    throw new LoginError(`it asks for ${count} iterations of SCRAM, and ${minIterations} are the fewest here`)
  if (nonce === undefined || !serverNonce.startsWith(nonce) || serverNonce === nonce)
    throw new LoginError('the challenge of the server does not answer ours')
}

/** What PostgreSQL asks for when nothing else was set, and what RFC 7677 demands. */
const minIterations = 4096

/** These take about a second, in which nothing else happens. */
const maxIterations = 1_000_000
