import { PlantsError } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { shownAddress } from '../stores/registry.js'
import { type SettingsFile, savedStore } from './file.js'
import { flagOf, flagValue, type SettingName, settingOf, textOf } from './table.js'

/** A value that a setting has. */
export interface Origin {
  name: SettingName
  /** as it was given, or the default, if there is one */
  value: string | undefined
  source: Source
  /** the source in words, as messages name it: `--timeout`, `PLANTS_TIMEOUT`, `timeout in /home/…/settings.json` */
  place: string
  /** what `plants config` calls it, where it is saved */
  key: string | undefined
}

export type Source = 'flag' | 'variable' | 'store' | 'saved' | 'default'

interface Sources {
  /** as commander gives them */
  flags: object
  io: Io
  file: SettingsFile
  storeName?: string | undefined
  /** the store is another one than that of this run, whose flags and variables say nothing about how far it is trusted */
  isOther?: boolean
}

/** What lets a token go where it would not go otherwise, or a database be used that is less sure. */
const trust: SettingName[] = ['ca-cert', 'allow-http', 'allow-async-commit']

/** The value of a setting from the first place that has one: flag > environment > with the store > for the user > default. */
export function findOrigin(name: SettingName, { flags, io, file: { saved, path }, storeName, isOther = false }: Sources): Origin {
  const { variable, scopes } = settingOf(name)
  const flag = flagOf(name)
  const isAsked = !(isOther && trust.includes(name))
  const given = isAsked ? flagValue(name, flags) : undefined
  if (given !== undefined && flag !== undefined) return { name, value: given, source: 'flag', place: flag, key: undefined }
  const text = isAsked && variable !== undefined ? io.env[variable] : undefined
  const inVariable = name === 'store' ? text?.trim() : text
  if (inVariable && variable !== undefined) return { name, value: inVariable, source: 'variable', place: variable, key: undefined }
  const ofStore = scopes.includes('store') && storeName !== undefined ? textOf(savedStore(saved, storeName)?.[name]) : undefined
  const key = `stores.${storeName}.${name}`
  if (ofStore !== undefined) return { name, value: ofStore, source: 'store', place: `${key} in ${path}`, key }
  const ofUser = scopes.includes('user') ? textOf(saved[name]) : undefined
  if (ofUser !== undefined) return { name, value: ofUser, source: 'saved', place: `${name} in ${path}`, key: name }
  return presetOrigin(name)
}

/** What holds when nobody says anything. */
export function presetOrigin(name: SettingName): Origin {
  const { preset } = settingOf(name)
  return { name, value: typeof preset === 'string' ? preset : undefined, source: 'default', place: 'default', key: undefined }
}

/** Why a value is none that its setting can have, or nothing. */
export function failureOf({ name, value, place }: Origin): PlantsError | undefined {
  try {
    if (value !== undefined) settingOf(name).parse(place, value)
    return undefined
  } catch (error) {
    if (error instanceof PlantsError) return error
    throw error
  }
}

/** A value as it may be shown: an address may hold a password, also one that is refused, but not before it was looked at. */
export function shownValue<Text extends string | undefined>(value: Text): Text | string {
  return value === undefined ? value : shownAddress(value)
}

/**
 * What a setting was given, or its default, if it has one.
 *
 * @throws {PlantsError} `malformed` for a value that it cannot have
 */
export function parsed<Value>(name: SettingName, origins: Origin[], parse: (source: string, text: string) => Value): Value | undefined {
  const origin = origins.find((candidate) => candidate.name === name)
  if (origin?.value === undefined) return undefined
  const { place, value, key } = origin
  try {
    return parse(place, value)
  } catch (error) {
    if (!(error instanceof PlantsError) || key === undefined) throw error
    const hint = `Change it: plants config set ${key} VALUE. Or forget it: plants config unset ${key}`
    throw new PlantsError('malformed', error.message, { hint, cause: error })
  }
}
