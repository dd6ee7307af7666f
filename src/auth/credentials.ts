/*
 * Finds the token for a service. A token is sent to one address only, and over HTTP without TLS
 * only to this machine, unless a person allows more.
 */
import type { EffectiveSettings } from '../config/resolve.js'
import type { SavedSettings } from '../config/settings-schema.js'
import { createUsageError, PlantsError } from '../errors.js'
import type { Io } from '../platform/io.js'
import { isLoopback } from '../platform/urls.js'
import type { TokenTarget } from '../stores/credentials.js'
import { parseToken, readTokenVariable } from './token.js'

export interface Credential {
  token: string
  source: 'variable' | 'command' | 'file'
  /** Where the token comes from, for people: `PLANTS_TOKEN`, or the path of the settings file. */
  origin: string
  /** The time at which a token from the settings file was saved, in ISO 8601. */
  savedAt?: string | undefined
}

/**
 * Finds the token of a store: PLANTS_TOKEN, or else what the token command of the store prints, or
 * else the token that was saved for exactly this address.
 *
 * @throws {PlantsError} `usage` for a string that cannot be a token, or what `runTokenCommand`
 *   throws
 */
export async function findToken(
  { name }: TokenTarget,
  settings: EffectiveSettings,
  io: Io,
): Promise<Credential | undefined> {
  const { storeName = name, timeoutMs, file } = settings
  const command = settings.getValue('token-command')
  const variableToken = readTokenVariable('PLANTS_TOKEN', io)
  if (variableToken !== undefined)
    return { token: variableToken, source: 'variable', origin: 'PLANTS_TOKEN' }
  if (command !== undefined) {
    const { runTokenCommand } = await import('./token-command.js')
    const token = await runTokenCommand(command, { address: name, storeName, timeoutMs }, io)
    io.secrets.add(token)
    return { token, source: 'command', origin: `the token command of ${storeName}` }
  }
  const { token, savedAt } = findSavedToken(file.savedSettings, name) ?? {}
  if (token === undefined) return undefined
  parseToken(token, 'The saved token', io)
  return { token, source: 'file', origin: file.path, savedAt }
}

/** The own properties are asked, because every object inherits others, such as `constructor`. */
function findSavedToken({ tokens = {} }: SavedSettings, address: string) {
  return Object.hasOwn(tokens, address) ? tokens[address] : undefined
}

export function createNoTokenError({ name }: TokenTarget, storeFlag: string): PlantsError {
  const hint = `Set PLANTS_TOKEN, or save a token: plants auth login${storeFlag}`
  return new PlantsError('unauthorized', `No token is set for ${name}`, { hint })
}

/** @throws {PlantsError} `usage` if others could read the token in transit */
export function assertNotExposed({ name, url }: TokenTarget, settings: EffectiveSettings): void {
  const isSentUnencrypted = url.protocol === 'http:' && !isLoopback(url.hostname)
  if (settings.getValue('allow-http') || !isSentUnencrypted) return
  throw createUsageError(
    `The token was not sent to ${name}: without TLS, others could read it`,
    'Use an https:// address: --allow-http is for a network that only you use',
  )
}
