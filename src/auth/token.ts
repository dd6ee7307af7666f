import { malformed } from '../platform/errors.js'

/**
 * Gives a token back when it is one as RFC 6750 (2.1) has them, of at most 4096 characters: nothing else can become part of a header.
 * Throws `malformed`, without the token.
 */
export function checkToken(token: string, source: string): string {
  const why = failureOf(token)
  if (why === undefined) return token
  throw malformed(`${source} ${why}`, 'Copy the token again, and nothing else with it')
}

export function failureOf(token: string): string | undefined {
  if (token === '') return 'is empty'
  if (token.length > 4096) return 'is longer than 4096 characters'
  if (/^[\w.~+/-]+=*$/.test(token)) return undefined
  return 'holds a space, a line break or another character that no token has: they have letters, digits and -._~+/='
}
