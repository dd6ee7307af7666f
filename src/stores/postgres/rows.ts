/**
 * Parses the rows of a database, whose cells are strings. The server may be another program than
 * PostgreSQL, or its owner may have changed a table. So each cell is checked, and a value that the
 * schema does not allow is never taken for a part of a plant, a token or a count.
 */

import { PlantsError } from '../../errors.js'
import {
  isStorableString,
  largestId,
  type StringFieldName,
  smallestId,
} from '../../plant/fields.js'
import { buildPlant, type StoredPlant } from '../../plant/plant.js'
import { buildToken, type Token } from '../tokens.js'
import type { Row } from './connection.js'

type Cell = Row[number] | undefined

/** @param server errors name the server by this */
export function toPlants(rows: readonly Row[], server: string): StoredPlant[] {
  return rows.map((row) => parsePlantRow(row, server))
}

export function parsePlantRow([id, name, tag]: Row, server: string): StoredPlant {
  const parsedId = toId(id, server)
  if (!isStorableString(name)) throw createInvalidRowError(server, 'a plant without a valid name')
  if (tag !== null && !isStorableString(tag))
    throw createInvalidRowError(server, 'a plant with an invalid tag')
  return buildPlant(parsedId, name, tag)
}

export function toId(cell: Cell, server: string): bigint {
  const id = parseBigint(cell)
  if (id === undefined) throw createInvalidRowError(server, 'a plant without a valid id')
  return id
}

/** @param row has the columns of `tokenColumns` */
export function toToken(row: Row, server: string): Token {
  const [id, note, rights, createdAt, ...endTimes] = row
  const parsedId = parseBigint(id)
  const isTimeOrNull = (cell: Cell) => cell === null || isTime(cell)
  const areTimes = isTime(createdAt) && endTimes.length === 2 && endTimes.every(isTimeOrNull)
  const areTexts = (note === null || isStorableString(note)) && isStorableString(rights)
  const isComplete = parsedId !== undefined && areTimes && areTexts
  const token = isComplete && buildToken(parsedId, note, rights, [createdAt, ...endTimes])
  if (!token) throw createInvalidRowError(server, 'a token with an invalid value')
  return token
}

export function toFieldValue(
  field: StringFieldName,
  cell: Cell,
  server: string,
): string | undefined {
  if (isStorableString(cell)) return cell
  if (cell === null && field === 'tag') return undefined
  throw createInvalidRowError(server, `an invalid ${field}`)
}

export function toCount(cell: Cell, server: string): bigint {
  const count = parseBigint(cell)
  if (count === undefined || count < 0n) throw createInvalidRowError(server, 'an invalid count')
  return count
}

export function createInvalidRowError(server: string, content: string): PlantsError {
  const hint = 'PostgreSQL stores no such value: check the server, and the proxies in front of it'
  return new PlantsError('accessDenied', `${server} sent ${content}`, { hint })
}

/** Accepts only plain decimal digits, without a "+" or leading zeros, as PostgreSQL writes them. */
function parseBigint(cell: Cell): bigint | undefined {
  if (typeof cell !== 'string' || !/^(?:0|-?[1-9]\d{0,18})$/.test(cell)) return undefined
  const parsedId = BigInt(cell)
  return parsedId >= smallestId && parsedId <= largestId ? parsedId : undefined
}

function isTime(cell: Cell): cell is string {
  return parseBigint(cell) !== undefined
}
