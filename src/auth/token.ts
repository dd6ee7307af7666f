import { isWindows, usageError } from '../errors.js'
import type { Io } from '../platform/io.js'

/**
 * Reads a token from a variable. An empty variable is an error, because it is probably a mistake,
 * and a token from another source would take its place silently.
 */
export function readTokenVariable(variable: 'PLANTS_TOKEN' | 'PLANTS_SERVE_TOKEN', { env }: Io) {
  const given = env[variable]?.trim()
  if (given === '') throw usageError(`${variable} is empty`, 'Set it to a token, or unset it')
  return given && parseToken(given, variable)
}

/** Anybody who reaches the service could guess a shorter token. */
const minServeTokenLength = 16

/**
 * Reads the only token that the service accepts, if it is set.
 *
 * @throws {PlantsError} `usage`, without the token
 */
export function readServeToken(io: Io): string | undefined {
  const token = readTokenVariable('PLANTS_SERVE_TOKEN', io)
  if (token === undefined || token.length >= minServeTokenLength) return token
  const message = `PLANTS_SERVE_TOKEN is shorter than ${minServeTokenLength} characters`
  const command = isWindows
    ? '$env:PLANTS_SERVE_TOKEN = [guid]::NewGuid()'
    : 'export PLANTS_SERVE_TOKEN="$(openssl rand -hex 16)"'
  throw usageError(message, `Set a random token with: ${command}`)
}

/** @throws {PlantsError} `usage`, without the token */
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
 * Copies the environment for another program, without the secrets of this one. Secrets that other
 * programs need, such as the password of a proxy, stay.
 */
export function omitSecrets(env: Io['env']): Io['env'] {
  const isSecret = (name: string, text = '') =>
    ['PLANTS_TOKEN', 'PLANTS_SERVE_TOKEN', 'PGPASSWORD'].includes(name) ||
    (name === 'PLANTS_STORE' && /[@=]/.test(text)) // such as a database with its password
  return Object.fromEntries(
    Object.entries(env).filter(([name, text]) => !isSecret(name.toUpperCase(), text)),
  )
}
