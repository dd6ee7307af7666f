import { readCertificates } from '../platform/certificates.js'
import type { Io } from '../platform/io.js'
import { type SettingName, settingOf } from './table.js'

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
