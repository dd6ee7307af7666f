import { PlantsError } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import type { RemoteAddress } from '../stores/common/address.js'
import { checkToken } from './token.js'

export interface CredentialContext {
  /** the saved name of the store, if it was named by it */
  storeName: string | undefined
  /** whether it is the store of this run: PLANTS_TOKEN and PGPASSWORD are for that store only */
  isOfRun: boolean
  tokenCommand: string | undefined
  /** the time limit of a token command, in milliseconds */
  timeout: number
  warn(text: string): Promise<void>
  file: { path: string | undefined; distrust?: { why: string; hint: string } | undefined; saved: SavedTokens }
}

type SavedTokens = { tokens?: Record<string, { token: string; savedAt: string }> }

/** The token that is saved for exactly this address. */
export function savedToken({ tokens = {} }: SavedTokens, address: string): { token: string; savedAt: string } | undefined {
  return Object.hasOwn(tokens, address) ? tokens[address] : undefined
}

export interface Credential {
  token: string
  source: 'variable' | 'command' | 'file'
  place: string
  /** for a token from the settings file; ISO 8601 */
  savedAt?: string | undefined
  /** for a token from a command that prints it; ISO 8601 */
  expires?: string | undefined
}

/**
 * Finds the token of a store: PLANTS_TOKEN, if it is the store of this run; else its token command; else the one saved
 * for its address.
 */
export async function findToken(store: RemoteAddress, context: CredentialContext, io: Io): Promise<Credential | undefined> {
  const found = locateToken(store, context, io)
  if (found?.command === undefined) return found
  const { runTokenCommand } = await import('./token-command.js')
  const { storeName = store.name, timeout } = context
  const printed = await runTokenCommand({ command: found.command, address: store.name, storeName, timeout }, io)
  io.secrets.add(printed.token)
  return { ...printed, source: 'command', place: found.place }
}

/** Finds the token, or the command that prints it, without running it. Throws like `findToken`. */
export function locateToken(
  { name }: RemoteAddress,
  { isOfRun, tokenCommand, storeName, file }: CredentialContext,
  io: Io,
): (Credential & { command?: undefined }) | { source: 'command'; place: string; command: string } | undefined {
  const checked = (text: string, place: string) => {
    const token = checkToken(text, place)
    io.secrets.add(token)
    return token
  }
  const given = isOfRun ? tokenVariable(io) : undefined
  if (given !== undefined) return { token: checked(given, 'PLANTS_TOKEN'), source: 'variable', place: 'PLANTS_TOKEN' }
  if (tokenCommand === undefined) {
    const saved = savedToken(file.saved, name)
    if (saved) assertTrusted(file, `The saved token for ${name} is not sent`)
    return saved && { token: checked(saved.token, 'The saved token'), source: 'file', place: file.path ?? '', savedAt: saved.savedAt }
  }
  assertTrusted(file, `The token command of ${storeName} is not run`)
  return { command: tokenCommand, source: 'command', place: `the token command of ${storeName}` }
}

/**
 * Throws `unauthorized` for settings that somebody else may have written: anybody, or another user, whose settings
 * root reads with `sudo`.
 */
export function assertTrusted({ path, distrust }: CredentialContext['file'], what: string): void {
  if (distrust) throw new PlantsError('unauthorized', `${what}: the settings in ${path} ${distrust.why}`, { hint: distrust.hint })
}

export function tokenVariable({ env }: Io): string | undefined {
  return env['PLANTS_TOKEN']?.trim() || undefined
}

export function noToken({ name }: RemoteAddress, storeFlag: string): PlantsError {
  const hint = `Set PLANTS_TOKEN, or save one with: plants auth login${storeFlag}`
  return new PlantsError('unauthorized', `There is no token for ${name}`, { hint })
}
