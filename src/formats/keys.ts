/*
 * Finds the keys of JSON objects that have the fields of a plant. A key either has exactly the name
 * of the field, or a similar name, such as `ID`. Names are similar if they are equal after folding.
 *
 * Each object may have other keys, so this runs for each record. Most objects have the same keys as
 * the one before them, so the fields of its keys are remembered, and so are folded keys.
 */
import { type FieldName, fieldNames } from '../plant/fields.js'
import type { FieldMap, InputOptions } from './chunk.js'
import { foldName } from './columns.js'

/** The keys that an object has of each field. Only the name may have several. */
export type FieldKeys = Partial<Record<FieldName, readonly string[]>>

/** Several keys may be the same field, such as `ID` and `Id`, and none is exact. */
export interface AmbiguousKeys {
  ambiguousField: FieldName
  /** The keys that may be this field. */
  candidateKeys: readonly string[]
}

/**
 * The number is limited, because each record may have other keys: plants may be the values of an
 * object by name.
 */
const maxRememberedKeys = 1000

export class KeyFinder {
  readonly #map: FieldMap
  readonly #isUpdate: boolean
  readonly #foldedKeys = new Map<string, string>()
  #previousKeys: readonly string[] = []
  #previousResult: FieldKeys | AmbiguousKeys = {}

  constructor({ map, ifExists }: Pick<InputOptions, 'map' | 'ifExists'>) {
    this.#map = map
    this.#isUpdate = ifExists === 'update'
  }

  /** @returns the keys of each field that the object has, or a field with several similar keys */
  find(record: object): FieldKeys | AmbiguousKeys {
    const keys = Object.keys(record)
    if (!areEqual(keys, this.#previousKeys)) {
      this.#previousKeys = keys
      this.#previousResult = this.#findFields(keys)
    }
    return this.#previousResult
  }

  #findFields(keys: readonly string[]): FieldKeys | AmbiguousKeys {
    const fieldKeys: FieldKeys = {}
    for (const field of fieldNames) {
      const wantedKeys = this.#map[field] ?? [field]
      const foundKeys: string[] = []
      for (const wantedKey of wantedKeys) {
        const candidateKeys = this.#findSimilar(wantedKey, keys)
        if (candidateKeys.length > 1) return { ambiguousField: field, candidateKeys }
        foundKeys.push(...candidateKeys)
      }
      // An update must not shorten a name that the record knows only in part.
      const isIncomplete = this.#isUpdate && foundKeys.length < wantedKeys.length
      if (foundKeys.length > 0 && !isIncomplete) fieldKeys[field] = foundKeys
    }
    return fieldKeys
  }

  /** Finds the key itself, or else all keys that are similar. */
  #findSimilar(wantedKey: string, keys: readonly string[]): readonly string[] {
    if (keys.includes(wantedKey)) return [wantedKey]
    const foldedKey = foldName(wantedKey)
    return keys.filter((key) => this.#fold(key) === foldedKey)
  }

  #fold(key: string): string {
    const knownKey = this.#foldedKeys.get(key)
    if (knownKey !== undefined) return knownKey
    const foldedKey = foldName(key)
    if (this.#foldedKeys.size < maxRememberedKeys) this.#foldedKeys.set(key, foldedKey)
    return foldedKey
  }
}

function areEqual(keys: readonly string[], otherKeys: readonly string[]): boolean {
  return keys.length === otherKeys.length && keys.every((key, index) => key === otherKeys[index])
}
