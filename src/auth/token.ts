import { createUsageError } from '../errors.js'
import type { Io } from '../platform/io.js'

/**
 * Reads a token from a variable. An empty variable is an error, because it is probably a mistake,
 * such as an unset secret of a CI job, and another token would be used silently.
 *
 * @throws {PlantsError} `usage`, without the token
 */
export function readTokenVariable(variable: 'PLANTS_TOKEN' | 'PLANTS_SERVE_TOKEN', io: Io) {
  const token = io.env[variable]?.trim()
  if (token === '') throw createUsageError(`${variable} is empty`, 'Set it to a token, or unset it')
  return token && parseToken(token, variable, io)
}

/** A shorter token can be guessed by anybody who reaches the service. */
const minServeTokenLength = 16

/**
 * Reads PLANTS_SERVE_TOKEN. If it is set, it is the only token that the service accepts.
 *
 * @throws {PlantsError} `usage`, without the token
 */
export function readServeToken(io: Io): string | undefined {
  const token = readTokenVariable('PLANTS_SERVE_TOKEN', io)
  if (token === undefined || token.length >= minServeTokenLength) return token
  forgetShortToken(token, io)
  const message = `PLANTS_SERVE_TOKEN is shorter than ${minServeTokenLength} characters`
  throw createUsageError(message, 'Set it to a random token, such as from: openssl rand -hex 16')
}

/**
 * Stops the redaction of a rejected token that may be an ordinary word. The message that rejects
 * the token does not contain it. But the word may stand in that message, where `***` would reveal
 * it: `is ***er than 16 characters`.
 */
function forgetShortToken(token: string, { secrets }: Io): void {
  if (token.length < minServeTokenLength) secrets.delete(token)
}

/** @throws {PlantsError} `usage`, without the token */
export function parseToken(token: string, source: string, io: Io): string {
  const problem = findTokenProblem(token)
  if (problem === undefined) return token
  forgetShortToken(token, io)
  throw createUsageError(`${source} ${problem}`, 'Copy the token again, without any other text')
}

/**
 * Returns why a string is not a token, or undefined for a token. A token has the form `b64token` in
 * https://www.rfc-editor.org/rfc/rfc6750#section-2.1.
 */
export function findTokenProblem(token: string): string | undefined {
  if (token === '') return 'is empty'
  if (token.length > 4096) return 'is longer than 4096 characters'
  if (/^[\w.~+/-]+=*$/.test(token)) return undefined
  return 'contains a space or another invalid character'
}

/**
 * Copies the environment for another program, such as a pager, without the secrets that only this
 * program uses. Secrets that other programs need, such as the password of a proxy, stay.
 */
export function omitSecrets(env: Io['env']): Io['env'] {
  const isSecret = (name: string, text = '') =>
    ['PLANTS_TOKEN', 'PLANTS_SERVE_TOKEN', 'PGPASSWORD'].includes(name) ||
    // A database may have its password in its address: `user:password@host` or `password=…`.
    (name === 'PLANTS_STORE' && /[@=]/.test(text))
  return Object.fromEntries(
    Object.entries(env).filter(([name, text]) => !isSecret(name.toUpperCase(), text)),
  )
}
