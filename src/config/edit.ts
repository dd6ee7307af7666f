import { readCertificates } from '../platform/certificates.js'
import { PlantsError, shellWord } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { similar } from '../platform/nearest.js'
import { parseAddress } from '../stores/registry.js'
import { type SavedSettings, type SavedStore, savedStore } from './file.js'
import { addressContextOf, isStoreName, unknownStore } from './resolve.js'
import { isFor, type SettingName, settingNames, settingOf, settingsIn, unsupportedReason } from './table.js'

/** A setting as people name it: of the user, or of a store. */
export interface Key {
  /** the name of the store, for a setting of one */
  store: string | undefined
  setting: SettingName | 'address'
}

/** @throws {PlantsError} `malformed` for what is no setting, or not where it was looked for */
export async function parseKey(name: string, saved: SavedSettings): Promise<Key> {
  const [, store, ofStore] = /^stores\.([^.]*)\.?(.*)$/s.exec(name) ?? []
  const setting = ofStore ?? name
  const scope = store === undefined ? 'user' : 'store'
  const allowed = settingsIn(scope)
  const names = store === undefined ? allowed : ['address' as const, ...allowed]
  const found = names.find((candidate) => candidate === setting)
  if (store === 'local')
    throw new PlantsError('malformed', 'The store local has no settings of its own', {
      hint: 'See what holds for it: plants config list',
    })
  if (found === undefined) throw unknownSetting(name, setting, store, names)
  if (store !== undefined && !savedStore(saved, store)) throw await unknownStore(store, saved)
  return { store, setting: found }
}

function unknownSetting(name: string, setting: string, store: string | undefined, names: string[]): PlantsError {
  const isOfStores = store === undefined && settingNames.some((candidate) => candidate === setting)
  if (isOfStores) {
    const hint = `For example: plants config set stores.NAME.${setting} VALUE`
    return new PlantsError('malformed', `${setting} is saved with a store, not for all`, { hint })
  }
  const [guess] = similar(setting, names)
  const place = store === undefined ? '' : `stores.${store}.`
  const others = store === undefined ? ', and for a store: stores.NAME.SETTING' : ''
  const hint = guess ? `Did you mean ${place}${guess}?` : `There are: ${names.map((known) => place + known).join(', ')}${others}`
  return new PlantsError('malformed', `There is no setting ${JSON.stringify(name)}`, { hint })
}

/**
 * The value as it is saved.
 *
 * @param name what people call the setting, for the message of the error
 * @throws {PlantsError} `malformed` for one that the setting cannot have
 */
export async function checkedValue(
  { store, setting }: Key,
  name: string,
  text: string,
  saved: SavedSettings,
  io: Io,
): Promise<string | boolean> {
  if (setting === 'address') return checkNewAddress(store ?? '', name, text, saved, io)
  if (store !== undefined) await checkKind(store, setting, saved, io)
  const value = savedValue(setting, name, text, io)
  return setting === 'store' && !isStoreName(text) ? checkAddress(name, text, io) : value
}

/** The settings of a store that are for its kind alone. */
export function heldForKind(store: SavedStore | undefined): SettingName[] {
  return settingsIn('store').filter((name) => settingOf(name).onlyFor !== undefined && store?.[name] !== undefined)
}

/** A store that becomes one of another kind must not keep what is for the old one alone. */
async function checkNewAddress(store: string, name: string, text: string, saved: SavedSettings, io: Io): Promise<string> {
  const { kind } = await parseAddress(text, name, addressContextOf(io, true))
  const left = heldForKind(savedStore(saved, store)).find((held) => !isFor(held, kind))
  if (left === undefined) return checkAddress(name, text, io)
  const hint = `Forget it first: plants config unset ${shellWord(`stores.${store}.${left}`)}`
  throw new PlantsError('malformed', `${store} has the setting ${left}, which ${unsupportedReason(left, kind, text)}`, { hint })
}

async function checkAddress(name: string, text: string, io: Io): Promise<string> {
  return text === 'local' ? text : (await parseAddress(text, name, addressContextOf(io, true))).name
}

async function checkKind(store: string, setting: SettingName, saved: SavedSettings, io: Io): Promise<void> {
  if (settingOf(setting).onlyFor === undefined) return
  const { kind } = await parseAddress(savedStore(saved, store)?.address ?? '', `stores.${store}.address`, addressContextOf(io, false))
  if (!isFor(setting, kind))
    throw new PlantsError('malformed', `${setting} ${unsupportedReason(setting, kind, store)}`, { hint: 'Set it for another store' })
}

/** The settings with a value, or without it. Nothing else of them changes. */
export function withValue({ store, setting }: Key, value: string | boolean | undefined, saved: SavedSettings): SavedSettings {
  if (store === undefined) return withField(saved, setting, value)
  const old = savedStore(saved, store)
  if (!old) throw new PlantsError('malformed', `There is no store ${store} any more`, { hint: 'See: plants stores list' })
  return { ...saved, stores: { ...saved.stores, [store]: withField(old, setting, value) } }
}

function withField<Fields extends object>(fields: Fields, name: string, value: string | boolean | undefined): Fields {
  const changed = { ...fields, [name]: value }
  if (value === undefined) Reflect.deleteProperty(changed, name)
  return changed
}

/**
 * What is saved of a value: true or false of a switch, the absolute path of a file, else the text as it was given.
 *
 * @param source where it was given, for the message of the error
 * @throws {PlantsError} `malformed` for a value that the setting cannot have
 */
export function savedValue(name: SettingName, source: string, text: string, io: Io): string | boolean {
  const { parse, isSwitch } = settingOf(name)
  const value = parse(source, text)
  if (isSwitch) return value === true
  if (name !== 'ca-cert') return text
  const path = io.resolvePath(text)
  readCertificates(path, source.startsWith('-') ? source : undefined)
  return path
}
