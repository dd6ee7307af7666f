import { PlantsError } from './errors.js'
import type { Io } from './io.js'
import { changeSettings, readSettings } from './settings-file.js'
import type { RemoteAddress } from './stores/store.js'

/** A token for a store, and where it was found. */
export interface Credential {
  token: string
  source: 'PLANTS_TOKEN' | 'saved'
  savedAt?: string
}

/** Finds the token for a store: PLANTS_TOKEN, or the one that was saved for exactly this address. */
export async function findToken({ name }: RemoteAddress, io: Io): Promise<Credential | undefined> {
  const given = io.env['PLANTS_TOKEN']?.trim()
  if (given) return { token: checkToken(given, 'PLANTS_TOKEN'), source: 'PLANTS_TOKEN' }
  const { tokens } = await readSettings(io)
  const saved = Object.hasOwn(tokens, name) ? tokens[name] : undefined
  return saved && { token: checkToken(saved.token, 'The saved token'), source: 'saved', savedAt: saved.savedAt }
}

/** The error where a store needs a token and there is none. */
export function noToken({ name }: RemoteAddress, storeFlag: string): PlantsError {
  const hint = `Set PLANTS_TOKEN, or save one with: plants auth login${storeFlag}`
  return new PlantsError('unauthorized', `There is no token for ${name}`, { hint })
}

/** @returns when it was saved */
export async function saveToken({ name }: RemoteAddress, token: string, io: Io): Promise<string> {
  const savedAt = new Date(io.time()).toISOString()
  await changeSettings(io, (settings) => ({ ...settings, tokens: { ...settings.tokens, [name]: { token, savedAt } } }))
  return savedAt
}

/** @returns false when there was none */
export async function removeToken({ name }: RemoteAddress, io: Io): Promise<boolean> {
  const { tokens } = await readSettings(io)
  if (!Object.hasOwn(tokens, name)) return false
  await changeSettings(io, (settings) => {
    const { [name]: _, ...others } = settings.tokens
    return { ...settings, tokens: others }
  })
  return true
}

/**
 * Gives a token back when it can go into a header: visible ASCII characters, at most 4096.
 *
 * @throws {PlantsError} `malformed`; it does not repeat the token
 */
export function checkToken(token: string, source: string): string {
  if (/^[\x21-\x7e]{1,4096}$/.test(token)) return token
  const why =
    token === ''
      ? 'is empty'
      : token.length > 4096
        ? 'is longer than 4096 characters'
        : 'holds a space, a line break or another character that no token has'
  throw new PlantsError('malformed', `${source} ${why}`, { hint: 'Copy the token again, and nothing else with it' })
}
