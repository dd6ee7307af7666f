/*
 * Finds the keys of JSON objects that have the fields of a plant. A key either has exactly the name
 * of the field, or a similar name, such as `ID`. Names are similar if they are equal after folding.
 *
 * Each object may have other keys, so this runs for each record. Folding a key takes long, and most
 * objects have the same keys, so the fields of each key are remembered.
 */
import { type FieldName, fieldNames } from '../plant/fields.js'
import { foldName } from './columns.js'

export type FieldKeys = Partial<Record<FieldName, string>>

/** Several keys may be the same field, such as `ID` and `Id`, and none is exact. */
export interface AmbiguousKeys {
  ambiguousField: FieldName
  /** The keys that may be this field. */
  candidateKeys: readonly string[]
}

/** A field that a key may be, and whether the key has exactly the name of the field. */
interface KeyMatch {
  field: FieldName
  isExact: boolean
}

/**
 * The number is limited, because each record may have other keys: plants may be the values of an
 * object by name.
 */
const maxRememberedKeys = 1000

const noMatches: readonly KeyMatch[] = []

export class KeyFinder {
  readonly #map: FieldKeys
  readonly #rememberedMatches = new Map<string, readonly KeyMatch[] | undefined>()

  /** @param map the keys that `--map` names; a field with an empty key is not read */
  constructor(map: FieldKeys) {
    this.#map = map
  }

  /** @returns the key of each field that the object has, or a field with several similar keys */
  find(record: object): FieldKeys | AmbiguousKeys {
    const exactKeys: FieldKeys = {}
    let similarKeys: Partial<Record<FieldName, string[]>> | undefined
    for (const key in record)
      for (const { field, isExact } of this.#matchKey(key) ?? noMatches) {
        if (isExact) exactKeys[field] = key
        else {
          similarKeys ??= {}
          similarKeys[field] ??= []
          similarKeys[field].push(key)
        }
      }
    return similarKeys ? addSimilarKeys(exactKeys, similarKeys) : exactKeys
  }

  /** @returns undefined, as for most keys, if the key is none of the fields */
  #matchKey(key: string): readonly KeyMatch[] | undefined {
    if (this.#rememberedMatches.has(key)) return this.#rememberedMatches.get(key)
    const foldedKey = foldName(key)
    const matches: KeyMatch[] = []
    for (const field of fieldNames) {
      const wantedKey = this.#map[field] ?? field
      if (wantedKey !== '' && foldName(wantedKey) === foldedKey)
        matches.push({ field, isExact: key === wantedKey })
    }
    const matchesOrNone = matches.length > 0 ? matches : undefined
    if (this.#rememberedMatches.size < maxRememberedKeys)
      this.#rememberedMatches.set(key, matchesOrNone)
    return matchesOrNone
  }
}

/** Adds similar keys for the fields that have no exact key. */
function addSimilarKeys(
  exactKeys: FieldKeys,
  similarKeys: Partial<Record<FieldName, readonly string[]>>,
): FieldKeys | AmbiguousKeys {
  const keys: FieldKeys = { ...exactKeys }
  for (const field of fieldNames) {
    const [key, ...otherKeys] = similarKeys[field] ?? []
    if (key === undefined || exactKeys[field] !== undefined) continue
    if (otherKeys.length > 0) return { ambiguousField: field, candidateKeys: [key, ...otherKeys] }
    keys[field] = key
  }
  return keys
}
