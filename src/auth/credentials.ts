import { PlantsError, usageError } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { isLoopback } from '../platform/urls.js'
import type { HttpAddress } from '../stores/common/address.js'
import { parseToken } from './token.js'

export interface CredentialContext {
  /** The saved name of the store, if it was named by it. */
  storeName: string | undefined
  /** PLANTS_TOKEN and PGPASSWORD are for the store of this run only */
  isOfRun: boolean
  tokenCommand: string | undefined
  /** Of a token command, in milliseconds. */
  timeout: number
  warn(text: string): Promise<void>
  file: { path: string | undefined; saved: SavedTokens }
}

type SavedTokens = { tokens?: Record<string, { token: string; savedAt: string }> }

export function savedToken({ tokens = {} }: SavedTokens, address: string) {
  return Object.hasOwn(tokens, address) ? tokens[address] : undefined
}

export interface Credential {
  token: string
  source: 'variable' | 'command' | 'file'
  place: string
  /** Set for a token from the settings file. ISO 8601. */
  savedAt?: string | undefined
}

/** Takes PLANTS_TOKEN for the store of this run, else its token command, else the token saved for its exact address. */
export async function findToken(
  store: HttpAddress,
  context: CredentialContext,
  io: Io,
): Promise<Credential | undefined> {
  const found = locateToken(store, context, io)
  if (found?.command === undefined) return found
  const { runTokenCommand } = await import('./token-command.js')
  const { storeName = store.name, timeout } = context
  const token = await runTokenCommand(
    { command: found.command, address: store.name, storeName, timeout },
    io,
  )
  io.secrets.add(token)
  return { token, source: 'command', place: found.place }
}

/** Finds the token, or the command that prints it, without running it. */
export function locateToken(
  { name }: HttpAddress,
  { isOfRun, tokenCommand, storeName, file }: CredentialContext,
  io: Io,
):
  | (Credential & { command?: undefined })
  | { source: 'command'; place: string; command: string }
  | undefined {
  const given = isOfRun ? tokenVariable(io) : undefined
  if (given !== undefined) {
    io.secrets.add(given)
    return { token: parseToken(given, 'PLANTS_TOKEN'), source: 'variable', place: 'PLANTS_TOKEN' }
  }
  if (tokenCommand !== undefined)
    return { command: tokenCommand, source: 'command', place: `the token command of ${storeName}` }
  const saved = savedToken(file.saved, name)
  if (!saved) return undefined
  const token = parseToken(saved.token, 'The saved token')
  io.secrets.add(token)
  return { token, source: 'file', place: file.path ?? '', savedAt: saved.savedAt }
}

export function tokenVariable({ env }: Io): string | undefined {
  return env['PLANTS_TOKEN']?.trim() || undefined
}

export function noToken({ name }: HttpAddress, storeFlag: string): PlantsError {
  const hint = `Set PLANTS_TOKEN, or save one with: plants auth login${storeFlag}`
  return new PlantsError('unauthorized', `There is no token for ${name}`, { hint })
}

/** Throws `usage` when the token could be read in transit. */
export function assertNotExposed(
  address: HttpAddress,
  storeName: string | undefined,
  allowHttp: boolean,
): void {
  if (allowHttp || !isOpenToAll(address)) return
  const always =
    storeName === undefined ? '' : `, or for good: plants stores set ${storeName} --allow-http`
  const hint = `Use https://, or on a network that only you use, add --allow-http${always}`
  throw usageError(
    `The token is not sent to ${address.name}: without TLS others could read it`,
    hint,
  )
}

export function isOpenToAll({ url, socketPath }: HttpAddress): boolean {
  return url.protocol === 'http:' && socketPath === undefined && !isLoopback(url.hostname)
}
