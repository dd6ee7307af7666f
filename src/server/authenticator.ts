import { hash, timingSafeEqual } from 'node:crypto'
import { isValid, type Right, type Token, type TokenStore } from '../stores/tokens.js'
import { HttpError } from './http-error.js'

export interface Caller {
  name: string
  rights: readonly Right[]
}

/** Undefined for a token that is not accepted. */
export type TokenSource = (token: string) => Caller | undefined | Promise<Caller | undefined>

/** A revoked token may still be accepted for so long. */
const freshnessMs = 500

/** Lookups of unknown tokens at a time. */
const maxLookups = 32

/** @throws {HttpError} 401 */
export async function authenticate(authorization = '', findToken: TokenSource): Promise<Caller> {
  const token = /^Bearer +(?<token>.*[^ ]) *$/i.exec(authorization)?.groups?.['token']
  if (token === undefined) {
    const message = 'No bearer token: send one in the header Authorization, as "Bearer TOKEN"'
    throw challenge(401, message)
  }
  const caller = await findToken(token)
  if (!caller) throw challenge(401, 'This token is not accepted', ', error="invalid_token"')
  return caller
}

/** @param parameters as in RFC 6750, 3 */
export function challenge(status: 401 | 403, message: string, parameters = ''): HttpError {
  return new HttpError(status, message, ['WWW-Authenticate', `Bearer realm="plants"${parameters}`])
}

/** All that a store keeps of a token. */
export function digestOf(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

/** By their SHA-256: the timing reveals nothing about a token. `now` and `time` are of `Io`. */
export function tokensOfStore(
  store: TokenStore,
  now: () => number,
  time: () => number,
): TokenSource {
  /** Of tokens that were found. */
  const lookups = new Map<string, { found: Promise<Token | undefined>; until: number }>()
  const lanes: Promise<unknown>[] = []
  let lane = 0
  const findInLane = (digest: Buffer) => {
    lane = (lane + 1) % maxLookups
    const found = Promise.resolve(lanes[lane]).then(() => store.find(digest))
    lanes[lane] = found.catch(() => undefined)
    return found
  }

  return async (text) => {
    const key = hash('sha256', text, 'base64')
    let lookup = lookups.get(key)
    if (!lookup || lookup.until <= now()) {
      const digest = digestOf(text)
      // A token that was found before does not wait for those that nobody knows.
      const found = lookup ? store.find(digest) : findInLane(digest)
      const fresh = { found, until: now() + freshnessMs }
      if (lookup) lookups.set(key, fresh)
      lookup = fresh
    }
    const token = await lookup.found.catch((error: unknown) => {
      lookups.delete(key)
      throw error
    })
    if (token) lookups.set(key, lookup)
    else lookups.delete(key)
    return token && isValid(token, time())
      ? { name: String(token.id), rights: token.rights }
      : undefined
  }
}

/** Accepts one token, which is compared in constant time. */
export function fixedToken(token: string, caller: Caller): TokenSource {
  const expected = digestOf(token)
  return (text) => (timingSafeEqual(expected, digestOf(text)) ? caller : undefined)
}
