import { PlantsError } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import type { RemoteAddress } from '../stores/address.js'
import { checkToken } from './token.js'

/** What finding a token or a password goes by: what is known of a store, and what is saved. */
export interface CredentialContext {
  /** the name that the store was saved under, where it was called by it */
  storeName: string | undefined
  /** whether it is the store of this run, for which PLANTS_TOKEN and PGPASSWORD are */
  isOfRun: boolean
  tokenCommand: string | undefined
  /** milliseconds that a token command may take */
  timeout: number
  /** the settings file, and what is saved in it */
  file: { path: string | undefined; foreignOwner?: number; saved: SavedTokens }
}

interface SavedTokens {
  /** by the address that each is for */
  tokens?: Record<string, { token: string; savedAt: string }>
}

/** The token that was saved for exactly this address. */
export function savedToken({ tokens = {} }: SavedTokens, address: string): { token: string; savedAt: string } | undefined {
  return Object.hasOwn(tokens, address) ? tokens[address] : undefined
}

/** A token for a store, and where it was found. */
export interface Credential {
  token: string
  source: 'variable' | 'command' | 'file'
  /** of one from the settings file, in ISO 8601 */
  savedAt?: string | undefined
  /** of one from a command that says so, in ISO 8601 */
  expires?: string | undefined
}

/**
 * Finds the token for a store: PLANTS_TOKEN if it is the store of this run, or what its token command prints, or the one
 * that was saved for exactly this address.
 *
 * @throws {PlantsError} `malformed` for a token that is none, `unauthorized` when the command gave none
 */
export async function findToken(store: RemoteAddress, context: CredentialContext, io: Io): Promise<Credential | undefined> {
  const found = await search(store, context, io)
  if (found) io.secrets.add(found.token)
  return found
}

/** Where `findToken` would find the token. No command is started for that. Throws `malformed` for a token that is none. */
export function findTokenSource(store: RemoteAddress, context: CredentialContext, io: Io): Credential['source'] | undefined {
  const known = searchHere(store, context, io)
  if (known?.token !== undefined) io.secrets.add(known.token)
  return known?.source
}

async function search(store: RemoteAddress, context: CredentialContext, io: Io): Promise<Credential | undefined> {
  const known = searchHere(store, context, io)
  if (known?.source !== 'command') return known
  const { runTokenCommand } = await import('./token-command.js')
  return { ...(await runTokenCommand(known.command, store, context, io)), source: 'command' }
}

/** The token, or the command that has to be asked for it. */
function searchHere({ name }: RemoteAddress, context: CredentialContext, io: Io): TokenLookup | undefined {
  const given = context.isOfRun ? tokenVariable(io) : undefined
  if (given) return { token: checkToken(given, 'PLANTS_TOKEN'), source: 'variable' }
  if (context.tokenCommand !== undefined) return { command: checkedCommand(context.tokenCommand, context), source: 'command' }
  const saved = savedToken(context.file.saved, name)
  return saved && { token: checkToken(saved.token, 'The saved token'), source: 'file', savedAt: saved.savedAt }
}

/** Under sudo, the settings of another user are read; a command from them would run as root. */
function checkedCommand(command: string, { storeName, file: { path, foreignOwner } }: CredentialContext): string {
  if (foreignOwner === undefined) return command
  const message = `The token command of ${storeName} is not run: the settings in ${path} belong to another user (uid ${foreignOwner})`
  throw new PlantsError('unauthorized', message, { hint: 'Run plants as that user, without sudo, or give the token in PLANTS_TOKEN' })
}

type TokenLookup = (Credential & { source: 'variable' | 'file' }) | { source: 'command'; command: string; token?: undefined }

/** What PLANTS_TOKEN holds; a blank one counts as none. */
export function tokenVariable({ env }: Io): string | undefined {
  return env['PLANTS_TOKEN']?.trim() || undefined
}

/** The error where a store needs a token and there is none. */
export function noToken({ name }: RemoteAddress, storeFlag: string): PlantsError {
  const hint = `Set PLANTS_TOKEN, or save one with: plants auth login${storeFlag}`
  return new PlantsError('unauthorized', `There is no token for ${name}`, { hint })
}
