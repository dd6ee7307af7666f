/*
 * Reads objects of NDJSON that need nothing but to be created, the short way.
 *
 * In most imports, each record has its id, and becomes a create. For these, the general way of
 * `map-record.ts` does too much: it parses an object to look for its keys, adds a generated id, and
 * validates fields that may be missing. An import of objects that are written as exports write them
 * takes a fifth less processor time this way. For rows of tables, it saved only 5 %, so they go the
 * general way. Tests compare both ways with each other.
 */
import { isStorableString } from '../plant/fields.js'
import { isInt64 } from '../plant/json.js'
import type { NewPlant } from '../plant/plant.js'

/** @returns undefined if the object is not just as an export writes it */
export function parsePlainJson(text: string): NewPlant | undefined {
  const [, digits, name, tag] = plainObject.exec(text) ?? []
  if (digits === undefined) return undefined
  const id = BigInt(digits)
  if (!isInt64(id) || !isStorableString(name)) return undefined
  if (tag === undefined) return { id, name }
  return isStorableString(tag) ? { id, name, tag } : undefined
}

/** Matches an object whose strings have no escapes. Its id may be too large for an int64. */
const plainObject = RegExp(
  [
    '^\\{"id": ?(0|-?[1-9]\\d{0,18})',
    ', ?"name": ?"([^"\\\\\\0-\\x1f]*)"',
    '(?:, ?"tag": ?"([^"\\\\\\0-\\x1f]*)")?\\}\\r?$',
  ].join(''),
)
