import { malformed, shellWord } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import type { Address } from '../stores/common/address.js'
import { completeAddress } from '../stores/registry.js'
import { isStoreName, knownStore, resolveAddress } from './resolve.js'
import { isFor, type SettingName, settingNames, settingOf, settingsIn, unsupportedReason } from './setting-table.js'
import { type SavedSettings, type SavedStore, savedStore } from './settings-file.js'

type Key = { store: string | undefined; setting: SettingName | 'address' }

export async function parseKey(name: string, saved: SavedSettings): Promise<Key> {
  const [, store, ofStore] = /^stores\.([^.]*)\.?(.*)$/s.exec(name) ?? []
  if (store === 'local')
    throw malformed('The store local has no settings of its own', 'See the settings in effect: plants config list')
  const setting = ofStore ?? name
  const names = store === undefined ? settingsIn('user') : ['address' as const, ...settingsIn('store')]
  const found = names.find((candidate) => candidate === setting)
  if (found !== undefined) {
    if (store !== undefined) await knownStore(store, saved)
    return { store, setting: found }
  }
  if (store === undefined && settingNames.some((candidate) => candidate === setting)) {
    const hint = `For example: plants config set stores.NAME.${setting} VALUE`
    throw malformed(`${setting} is a setting of a store, not of all stores`, hint)
  }
  const { similar } = await import('../platform/nearest.js')
  const [guess] = similar(setting, names)
  const place = store === undefined ? '' : `stores.${store}.`
  const others = store === undefined ? ', and for a store: stores.NAME.SETTING' : ''
  const hint = guess
    ? `Did you mean ${place}${guess}?`
    : `The settings are: ${names.map((known) => place + known).join(', ')}${others}`
  throw malformed(`There is no setting ${JSON.stringify(name)}`, hint)
}

/** The value as it is saved, and the address of the store that it names, if any. Throws `malformed`. */
export async function checkedValue(
  { store: storeName = '', setting }: Key,
  name: string,
  text: string,
  saved: SavedSettings,
  io: Io,
): Promise<{ value: string | boolean; address?: Address | undefined }> {
  const store = savedStore(saved, storeName)
  if (setting === 'store' && isStoreName(text)) {
    const { address } = await knownStore(text, saved)
    return { value: text, address: await resolveAddress(address, `stores.${text}.address`, io) }
  }
  if (setting === 'address' || setting === 'store') {
    const address = await resolveAddress(text, name, io, { isArgument: true })
    const left = settingsOfServices(store).find((held) => !isFor(held, address.scheme))
    if (left === undefined) return { value: text === 'local' ? text : completeAddress(address), address }
    const hint = `Unset it first: plants config unset ${shellWord(`stores.${storeName}.${left}`)}`
    throw malformed(
      `${storeName} has the setting ${left}, which ${unsupportedReason(left, address.scheme, address.name)}`,
      hint,
    )
  }
  const { scheme } = store ? await resolveAddress(store.address, `stores.${storeName}.address`, io) : {}
  if (scheme && !isFor(setting, scheme))
    throw malformed(`${setting} ${unsupportedReason(setting, scheme, storeName)}`, 'Set it for another store')
  return { value: await savedValue(setting, name, text, io) }
}

export function settingsOfServices(store: SavedStore | undefined): SettingName[] {
  return settingsIn('store').filter((name) => settingOf(name).onlyFor !== undefined && store?.[name] !== undefined)
}

export function assertStoreName(name: string): void {
  if (isStoreName(name)) return
  if (name === 'local') throw malformed('The store local is built in, and cannot be changed', 'Choose another name')
  const hint = 'A name has letters, digits, "-" and "_", begins with a letter or digit, and is up to 64 long'
  throw malformed(`A store cannot be called ${JSON.stringify(name)}`, hint)
}

export function withValue(
  { store, setting }: Key,
  value: string | boolean | undefined,
  saved: SavedSettings,
): SavedSettings {
  const old = store === undefined ? undefined : savedStore(saved, store)
  if (store === undefined || !old) return withField(saved, setting, value)
  return { ...saved, stores: { ...saved.stores, [store]: withField(old, setting, value) } }
}

export function withField<Fields extends object>(
  fields: Fields,
  name: string,
  value: string | boolean | undefined,
): Fields {
  const changed = { ...fields, [name]: value }
  if (value === undefined) Reflect.deleteProperty(changed, name)
  return changed
}

/** True or false, the absolute path of a file, otherwise the text unchanged. Throws `malformed`. */
export async function savedValue(name: SettingName, source: string, text: string, io: Io): Promise<string | boolean> {
  const { parse, isSwitch } = settingOf(name)
  const value = parse(source, text)
  if (isSwitch) return value === true
  if (name !== 'ca-cert') return text
  const path = io.resolvePath(text)
  const { readCertificates } = await import('../platform/certificates.js')
  readCertificates(path, source.startsWith('-') ? source : undefined)
  return path
}
