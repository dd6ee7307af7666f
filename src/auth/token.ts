import { isWindows, usageError } from '../errors.js'
import type { Io } from '../platform/io.js'

/** An empty one is an error: another token would take its place. */
export function readTokenVariable(variable: 'PLANTS_TOKEN' | 'PLANTS_SERVE_TOKEN', { env }: Io) {
  const given = env[variable]?.trim()
  if (given === '') throw usageError(`${variable} is empty`, 'Set it to a token, or unset it')
  return given && parseToken(given, variable)
}

/** Whoever reaches the service can guess a short one. */
const minServeTokenLength = 16

/** The one token that a service accepts, if it is set. Throws `usage`, without the token. */
export function readServeToken(io: Io): string | undefined {
  const token = readTokenVariable('PLANTS_SERVE_TOKEN', io)
  if (token === undefined || token.length >= minServeTokenLength) return token
  const message = `PLANTS_SERVE_TOKEN is shorter than ${minServeTokenLength} characters`
  const command = isWindows
    ? '$env:PLANTS_SERVE_TOKEN = [guid]::NewGuid()'
    : 'export PLANTS_SERVE_TOKEN="$(openssl rand -hex 16)"'
  throw usageError(message, `Set a random token with: ${command}`)
}

/** Throws `usage`, without the token. */
export function parseToken(token: string, source: string): string {
  const why = findTokenProblem(token)
  if (why === undefined) return token
  throw usageError(`${source} ${why}`, 'Copy the token again, without any other text')
}

export function findTokenProblem(token: string): string | undefined {
  if (token === '') return 'is empty'
  if (token.length > 4096) return 'is longer than 4096 characters'
  if (/^[\w.~+/-]+=*$/.test(token)) return undefined // RFC 6750, 2.1
  return 'contains a space, a line break or another invalid character. A token consists of letters, digits and -._~+/='
}

/**
 * The environment for another program. It keeps the secrets that others need, such as the password
 * of a proxy.
 */
export function withoutSecrets(env: Io['env']): Io['env'] {
  const isSecret = (name: string, text = '') =>
    ['PLANTS_TOKEN', 'PLANTS_SERVE_TOKEN', 'PGPASSWORD'].includes(name) ||
    (name === 'PLANTS_STORE' && /[@=]/.test(text)) // such as a database with its password
  return Object.fromEntries(
    Object.entries(env).filter(([name, text]) => !isSecret(name.toUpperCase(), text)),
  )
}
