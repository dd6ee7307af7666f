/*
 * Which keys of JSON objects have the fields of a plant: the exact one first, and else one that
 * compares equal as the names of a header do, such as `ID` or `Name`.
 */
import { type FieldName, fieldNames } from '../plant/fields.js'
import { foldName } from './columns.js'

export type FieldKeys = Partial<Record<FieldName, string>>

interface AmbiguousKeys {
  ambiguous: FieldName
  /** The keys that may be this field. */
  candidates: readonly string[]
}

/** How a key may be that of a field. */
interface KeyMatch {
  field: FieldName
  isExact: boolean
}

/** How many keys are remembered: those of objects by name differ in each record. */
const maxRememberedKeys = 1000

const none: readonly KeyMatch[] = []

export class KeyFinder {
  readonly #map: FieldKeys
  readonly #remembered = new Map<string, readonly KeyMatch[] | undefined>()

  /** @param map the keys that `--map` names; an empty one is not read */
  constructor(map: FieldKeys) {
    this.#map = map
  }

  /** @returns the key of each field that the object has, or the field that several may be */
  find(record: object): FieldKeys | AmbiguousKeys {
    const found: FieldKeys = {}
    let similar: Partial<Record<FieldName, string[]>> | undefined
    for (const key in record)
      for (const { field, isExact } of this.#matchKey(key) ?? none) {
        if (isExact) found[field] = key
        else {
          similar ??= {}
          similar[field] = [...(similar[field] ?? []), key]
        }
      }
    return similar ? addSimilarKeys(found, similar) : found
  }

  /** @returns undefined for a key of no field, as most keys are */
  #matchKey(key: string): readonly KeyMatch[] | undefined {
    if (this.#remembered.has(key)) return this.#remembered.get(key)
    const folded = foldName(key)
    const matches: KeyMatch[] = []
    for (const field of fieldNames) {
      const wanted = this.#map[field] ?? field
      if (wanted !== '' && foldName(wanted) === folded)
        matches.push({ field, isExact: key === wanted })
    }
    const known = matches.length > 0 ? matches : undefined
    if (this.#remembered.size < maxRememberedKeys) this.#remembered.set(key, known)
    return known
  }
}

function addSimilarKeys(
  found: FieldKeys,
  similar: Partial<Record<FieldName, readonly string[]>>,
): FieldKeys | AmbiguousKeys {
  const keys: FieldKeys = { ...found }
  for (const field of fieldNames) {
    const [key, ...others] = similar[field] ?? []
    if (key === undefined || found[field] !== undefined) continue
    if (others.length > 0) return { ambiguous: field, candidates: [key, ...others] }
    keys[field] = key
  }
  return keys
}
