/*
 * Which keys of JSON objects have the fields of a plant: the exact one first, and else one that
 * compares equal as the names of a header do, such as `ID` or `Name`.
 */
import { type FieldName, fieldNames } from '../plant/fields.js'
import { foldName } from './columns.js'

export type FieldKeys = Partial<Record<FieldName, string>>

/** How a key may be that of a field. */
interface KeyMatch {
  field: FieldName
  isExact: boolean
}

/** How many keys are remembered: those of objects by name differ in each record. */
const maxRemembered = 1000

export class KeyFinder {
  readonly #map: FieldKeys
  readonly #remembered = new Map<string, readonly KeyMatch[]>()

  /** @param map the keys that `--map` names; an empty one is not read */
  constructor(map: FieldKeys) {
    this.#map = map
  }

  /** @returns the key of each field that the object has, or the field that several may be */
  find(record: object): FieldKeys | { ambiguous: FieldName; candidates: readonly string[] } {
    const found: FieldKeys = {}
    const similar = new Map<FieldName, string[]>()
    for (const key of Object.keys(record))
      for (const { field, isExact } of this.#matchKey(key))
        if (isExact) found[field] = key
        else similar.set(field, [...(similar.get(field) ?? []), key])
    for (const [field, candidates] of similar) {
      if (found[field] !== undefined) continue
      const [key = ''] = candidates
      if (candidates.length > 1) return { ambiguous: field, candidates }
      found[field] = key
    }
    return found
  }

  #matchKey(key: string): readonly KeyMatch[] {
    const known = this.#remembered.get(key)
    if (known) return known
    const folded = foldName(key)
    const matches: KeyMatch[] = []
    for (const field of fieldNames) {
      const wanted = this.#map[field] ?? field
      if (wanted !== '' && foldName(wanted) === folded)
        matches.push({ field, isExact: key === wanted })
    }
    if (this.#remembered.size < maxRemembered) this.#remembered.set(key, matches)
    return matches
  }
}
