import { PlantsError } from '../platform/errors.js'
import { shorten } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import { parseAddress } from '../stores/registry.js'
import type { Address, Place } from '../stores/store.js'
import { type SavedSettings, type SavedStore, type SettingsFile, savedStore } from './file.js'
import { type Origin, shownValue } from './origin.js'

/**
 * The store that a setting leads to, and its name, if it was saved under one.
 *
 * @throws {PlantsError} `malformed` for an address that leads nowhere, and for a name that is not known
 */
export async function resolveStore(
  origin: Origin,
  { saved, path }: SettingsFile,
  io: Io,
): Promise<{ store: Address; storeName: string | undefined }> {
  const { value = 'local', place } = origin
  if (!isStoreName(value)) return { store: await parseAddress(value, place, placesOf(io, origin.source === 'flag')), storeName: undefined }
  const known = savedStore(saved, value)
  if (!known) throw await unknownStore(value, saved, origin)
  return { store: await parseAddress(known.address, `stores.${value}.address in ${path}`, placesOf(io, false)), storeName: value }
}

/** The place of a store that was named as an argument, not as a setting. */
const askedFor = 'The store'

/** The origin of such a store. */
export function namedStore(value: string): Origin {
  return { name: 'store', value, source: 'flag', place: askedFor, key: undefined }
}

/**
 * Where addresses lead to that say not all of it.
 *
 * @param isArgument whether the address stands in the command line
 */
export function placesOf({ env, resolvePath, dataFolder, userName, secrets }: Io, isArgument: boolean): Place {
  const ownFolder = async () => (env['PLANTS_DATA_DIR'] ? resolvePath(env['PLANTS_DATA_DIR']) : dataFolder())
  return { resolvePath, dataFolder: ownFolder, env, userName, secrets, isArgument }
}

/** Whether a word can be the name of a store; any other is an address. */
export function isStoreName(word: string): boolean {
  return /^[a-z\d][\w-]{0,63}$/i.test(word) && word !== 'local'
}

/** The kind of store that an address leads to which was saved. */
export function savedKind(address: string): Address['kind'] {
  if (/^postgres(ql)?:/i.test(address)) return 'postgres'
  return /^(https?|unix):/i.test(address) ? 'remote' : 'file'
}

/** The saved stores. What a hand has written under another kind of word is no store: nothing could call it. */
export function namedStores({ stores = {} }: SavedSettings): [name: string, store: SavedStore][] {
  return Object.entries(stores).filter(([name]) => isStoreName(name))
}

/** The error for a name that no store was saved under, and for what has named it, if that is not seen anyway. */
export async function unknownStore(name: string, saved: SavedSettings, origin?: Origin): Promise<PlantsError> {
  const place = origin === undefined || origin.place === askedFor ? '' : `, which ${origin.place} names`
  const message = `There is no store called ${JSON.stringify(shorten(shownValue(name)))}${place}`
  const names = namedStores(saved).map(([known]) => known)
  return new PlantsError('malformed', message, { hint: await hintFor(name, names, origin) })
}

async function hintFor(name: string, names: string[], origin: Origin | undefined): Promise<string> {
  const known = names.length === 0 ? '' : `Saved are: ${names.slice(0, 10).join(', ')}${names.length > 10 ? ', …' : ''}. `
  if (origin?.key !== undefined) return `${known}Choose another: plants stores use ${names[0] ?? 'local'}`
  const { nearest } = await import('../platform/nearest.js')
  const guess = nearest(name, origin === undefined ? names : [...names, 'local'])
  if (guess !== undefined) return `Did you mean ${guess}?`
  if (origin === undefined) return `${known}See: plants stores list`
  return `${known}Save it with: plants stores add ${name} ADDRESS. For a file called so: ./${name}`
}
