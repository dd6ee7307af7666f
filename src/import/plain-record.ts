/*
 * Reads records that need nothing but to be created, the short way.
 *
 * In most imports, each record has its id, and becomes a create. For these, the general way of
 * `map-record.ts` does too much: it builds an object of the record to look for a name in it, adds a
 * generated id, and validates fields that may be missing. The functions here read a valid row, or
 * an object as exports write it, directly as a plant. They return undefined for every other record,
 * so that the general way decides what becomes of it. Tests compare both ways with each other.
 */
import { assertDefined } from '../errors.js'
import type { Cells, Header } from '../formats/chunk.js'
import { isText } from '../plant/fields.js'
import { isInt64 } from '../plant/json.js'
import type { NewPlant } from '../plant/plant.js'
import { parseIdCell } from './parse-id-cell.js'

/** @returns undefined if the object is not just as an export writes it */
export function parsePlainJson(text: string): NewPlant | undefined {
  const [, digits, name, tag] = plainObject.exec(text) ?? []
  return digits === undefined ? undefined : createPlainPlant(BigInt(digits), name, tag)
}

/** @returns undefined if a cell is not valid, or there are more cells than in the header */
export function readPlainRow(cells: Cells, header: Header | undefined): NewPlant | undefined {
  const { names, columns } = assertDefined(header)
  const idCell = cells[columns.get('id') ?? -1]
  const name = cells[columns.get('name') ?? -1]
  const tag = cells[columns.get('tag') ?? -1]
  if (cells.length > names.length || typeof idCell !== 'string') return undefined
  return createPlainPlant(parseIdCell(idCell), name, tag)
}

/** Matches an object whose strings have no escapes. Its id may be too large for an int64. */
const plainObject = RegExp(
  [
    '^\\{"id": ?(0|-?[1-9]\\d{0,18})',
    ', ?"name": ?"([^"\\\\\\0-\\x1f]*)"',
    '(?:, ?"tag": ?"([^"\\\\\\0-\\x1f]*)")?\\}\\r?$',
  ].join(''),
)

/** @returns undefined if the values are no valid plant */
function createPlainPlant(id: unknown, name: unknown, tag: unknown): NewPlant | undefined {
  if (!isInt64(id) || !isText(name)) return undefined
  if (tag === undefined) return { id, name }
  return isText(tag) ? { id, name, tag } : undefined
}
