import { findToken, savedToken } from '../../auth/credentials.js'
import { findPassword } from '../../auth/password.js'
import { namedStores } from '../../config/resolve.js'
import { warn } from '../../output/output.js'
import { PlantsError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { isLoginAddress, type PostgresAddress } from '../../stores/address.js'
import { loginAddress } from '../../stores/registry.js'
import { resolveSettings } from '../context.js'
import type { Found } from '../credential-kind.js'
import type { GlobalFlags } from '../flags.js'
import type { Settings } from '../settings.js'

/** Where the token of a store comes from, or its password. */
export interface TokenStatus {
  store: string
  address: string
  source: Found['source'] | 'none'
  savedAt?: string | undefined
  expires?: string | undefined
}

/** The store of this run, if it takes a token or a password; or why its token command has none, which hides nothing of the other stores. */
export async function ownStatus(settings: Settings, io: Io): Promise<TokenStatus[] | PlantsError> {
  if (settings.store.kind === 'file') return []
  if (settings.store.kind === 'postgres') return [await passwordStatus(settings.store, settings, io)]
  try {
    const { source = 'none' as const, savedAt, expires } = (await findToken(settings.store, settings, io)) ?? {}
    return [{ ...namesOf(settings), source, savedAt, expires }]
  } catch (error) {
    if (error instanceof PlantsError && error.kind === 'unauthorized') return error
    throw error
  }
}

/** The stores with a name, and the addresses that a token or a password was saved for. Their commands are not run: they may ask for something. */
export async function otherStatuses(settings: Settings, flags: GlobalFlags, io: Io): Promise<TokenStatus[]> {
  const { storeName, store, file } = settings
  const { saved } = file
  const names = namedStores(saved).flatMap(([name]) => (name === storeName ? [] : name))
  const resolved = await Promise.all(names.map((name) => resolveOther(name, settings, flags, io)))
  const named = (await Promise.all(resolved.map((other) => (other ? savedStatus(other, io) : [])))).flat()
  const known = new Set([loginAddress(store), ...named.map(({ address }) => address)])
  const nameless = Object.entries(saved.tokens ?? {}).filter(([address]) => !known.has(address) && isLoginAddress(address))
  return [...named, ...nameless.map(([address, { savedAt }]) => ({ store: address, address, source: 'file' as const, savedAt }))]
}

/** A store whose settings are wrong is told of, and hides nothing of the others. */
async function resolveOther(name: string, settings: Settings, flags: GlobalFlags, io: Io): Promise<Settings | undefined> {
  try {
    return await resolveSettings(flags, io, { other: name, file: settings.file })
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    await warn(io, error.message, settings)
    return undefined
  }
}

async function savedStatus(settings: Settings, io: Io): Promise<TokenStatus[]> {
  if (settings.store.kind === 'file') return []
  if (settings.store.kind === 'postgres') return [await passwordStatus(settings.store, settings, io)]
  if (settings.tokenCommand !== undefined) return [{ ...namesOf(settings), source: 'command' }]
  const saved = savedToken(settings.file.saved, settings.store.name)
  return [{ ...namesOf(settings), source: saved ? 'file' : 'none', savedAt: saved?.savedAt }]
}

async function passwordStatus(address: PostgresAddress, settings: Settings, io: Io): Promise<TokenStatus> {
  const found = await findPassword(address, settings, io)
  return { ...namesOf(settings), source: found?.source ?? 'none', savedAt: found?.savedAt }
}

/** A store by its name, or its address where it has none, and by the address that its token or its password is kept under. */
export function namesOf({ store, storeName }: Settings): { store: string; address: string } {
  return { store: storeName ?? loginAddress(store), address: loginAddress(store) }
}
