/*
 * Finds the keys of JSON objects that have the fields of a plant. A key either has exactly the name
 * of the field, or a similar name, such as `ID`. Names are similar if they are equal after folding.
 *
 * Each object may have other keys, so this runs for each record. Folding takes long, and most
 * objects have the same keys as one of the last few, so what was found in these is remembered.
 */

import { foldLabel } from '../formats/names.js'
import { type FieldName, fieldNames } from '../plant/fields.js'
import type { FieldMap, FieldOptions } from './options.js'
import { isRejectsName } from './rejects-names.js'

/** The keys that an object has of each field, of which only the name may have several. */
interface FieldKeys {
  id?: string | undefined
  name?: readonly string[] | undefined
  tag?: string | undefined
  /** The keys that are read as no field, of which a warning tells. */
  unreadKeys: readonly string[]
}

/** Several keys may be the same field, such as `ID` and `Id`, and none is exact. */
export interface AmbiguousKeys {
  ambiguousField: FieldName
  /** The keys that may be this field. */
  candidateKeys: readonly string[]
  /** The key of the id, unless this is the ambiguous field. */
  id: string | undefined
}

interface KnownObject {
  keys: readonly string[]
  result: FieldKeys | AmbiguousKeys
}

/** A list has objects with and without a tag, for example. */
const maxKnownObjects = 8

export class KeyFinder {
  readonly #map: FieldMap
  readonly #isUpdate: boolean
  #knownObjects: KnownObject[] = []

  constructor({ map, ifExists }: Pick<FieldOptions, 'map' | 'ifExists'>) {
    this.#map = map
    this.#isUpdate = ifExists === 'update'
  }

  /** @returns the keys of each field that the object has, or a field with several similar keys */
  find(object: object): FieldKeys | AmbiguousKeys {
    const keys = Object.keys(object)
    for (const knownObject of this.#knownObjects)
      if (areEqual(keys, knownObject.keys)) return knownObject.result
    const result = this.#findFields(keys)
    this.#knownObjects = [{ keys, result }, ...this.#knownObjects.slice(0, maxKnownObjects - 1)]
    return result
  }

  #findFields(keys: readonly string[]): FieldKeys | AmbiguousKeys {
    const ownKeys = keys.filter((key) => !isRejectsName(key))
    const keysByField: Partial<Record<FieldName, readonly string[]>> = {}
    for (const field of fieldNames) {
      const candidates = (this.#map[field] ?? [field]).map((key) => findSimilarKeys(key, ownKeys))
      const ambiguousKeys = candidates.find((candidateKeys) => candidateKeys.length > 1)
      const id = keysByField.id?.[0]
      if (ambiguousKeys) return { ambiguousField: field, candidateKeys: ambiguousKeys, id }
      const foundKeys = candidates.flat()
      // An update must not shorten a name of which the record has only a part.
      const isIncomplete = this.#isUpdate && foundKeys.length < candidates.length
      if (foundKeys.length > 0 && !isIncomplete) keysByField[field] = foundKeys
    }
    const { id, name, tag } = keysByField
    const readKeys = [id, name, tag].flatMap((found) => found ?? [])
    // With `--map name=kind`, a key `name` is not read, but a person has chosen that.
    const unreadKeys = ownKeys.filter(
      (key) => !readKeys.includes(key) && !Object.hasOwn(this.#map, key),
    )
    return { id: id?.[0], name, tag: tag?.[0], unreadKeys }
  }
}

/** Finds the key itself, or else all keys that are similar. */
function findSimilarKeys(wantedKey: string, keys: readonly string[]): readonly string[] {
  if (keys.includes(wantedKey)) return [wantedKey]
  const foldedKey = foldLabel(wantedKey)
  return keys.filter((key) => foldLabel(key) === foldedKey)
}

function areEqual(keys: readonly string[], otherKeys: readonly string[]): boolean {
  if (keys.length !== otherKeys.length) return false
  for (let index = 0; index < keys.length; index += 1)
    if (keys[index] !== otherKeys[index]) return false
  return true
}
