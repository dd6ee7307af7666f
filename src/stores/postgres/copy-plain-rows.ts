/*
 * Inserts rows of an import by COPY, without parsing them to objects. An object for each plant, its
 * key and its change would take two fifths of the processor time of an import.
 */

import type { PlainRows } from '../../plant/plant.js'
import { PlainRowsRejectedError } from '../store.js'
import type { PostgresConnection } from './connection.js'
import { findConstraintMessage, isUniqueViolation } from './errors.js'
import { plantColumns, plantsTable } from './schema.js'
import { formatCell } from './write.js'

/**
 * @param onWait see `WriteOptions`
 * @throws {PlainRowsRejectedError} if not all rows were inserted. The transaction has failed then.
 */
export async function copyPlainRows(
  connection: PostgresConnection,
  rows: PlainRows,
  onWait?: () => void,
): Promise<void> {
  const target = `${plantsTable} (${plantColumns})`
  try {
    const count = await connection.insertByCopy(target, formatPlainRows(rows), onWait)
    if (count !== rows.length) throw new PlainRowsRejectedError()
  } catch (error) {
    const isRejection = isUniqueViolation(error) || findConstraintMessage(error) !== undefined
    throw isRejection ? new PlainRowsRejectedError() : error
  }
}

/**
 * All writers insert in the order of ids, so that no two of them wait for each other. Ids beyond
 * 2^53 are in the order of their rounded values, so two imports of such ids may still wait for each
 * other (a deadlock). The server then ends one of the transactions, which is repeated.
 *
 * @throws {PlainRowsRejectedError} if a name or a tag is a string that no store can keep
 */
export function formatPlainRows(rows: PlainRows): string {
  const order = rows.listIndexesById()
  let text = ''
  for (let index = 0; index < rows.length; index += 1) {
    const row = rows.readFields(order?.[index] ?? index)
    if (!row) throw new PlainRowsRejectedError()
    text += `${row.id}\t${formatCell(row.name)}\t${formatCell(row.tag)}\n`
  }
  return text
}
