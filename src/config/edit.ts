import { malformed } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import type { Address } from '../stores/common/address.js'
import { isStoreName } from './resolve.js'
import { isFor, type SettingName, settingOf, settingsIn, unsupportedReason } from './setting-table.js'
import type { SavedStore } from './settings-file.js'

export function assertStoreName(name: string): void {
  if (isStoreName(name)) return
  if (name === 'local') throw malformed('The store local is built in, and cannot be changed', 'Choose another name')
  const hint = 'A name has letters, digits, "-" and "_", begins with a letter or digit, and is up to 64 long'
  throw malformed('A store cannot be called this', hint) // not repeated: it may be an address with its password
}

/** Throws `malformed` for a setting that has no effect at the address. */
export function assertSettingsFor(address: Address, store: SavedStore): void {
  for (const name of settingsIn('store')) {
    if (store[name] === undefined || isFor(name, address.scheme)) continue
    const isCertificate = name === 'ca-cert' && address.scheme === 'postgres'
    const hint = isCertificate ? `Leave it out, and add to the address: sslrootcert=${store[name]}` : 'Leave it out'
    throw malformed(`--${name} ${unsupportedReason(name, address.scheme, address.name)}`, hint)
  }
}

/** @returns `fields` with the value, or without it */
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
