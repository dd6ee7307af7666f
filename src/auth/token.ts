import { usageError } from '../platform/errors.js'

/** Throws `usage`, without the token. */
export function parseToken(token: string, source: string): string {
  const why = failureOf(token)
  if (why === undefined) return token
  throw usageError(`${source} ${why}`, 'Copy the token again, without any other text')
}

export function failureOf(token: string): string | undefined {
  if (token === '') return 'is empty'
  if (token.length > 4096) return 'is longer than 4096 characters'
  if (/^[\w.~+/-]+=*$/.test(token)) return undefined // RFC 6750, 2.1
  return 'contains a space, a line break or another invalid character. A token consists of letters, digits and -._~+/='
}
