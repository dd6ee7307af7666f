import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { unlessSystemError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { columnNames } from '../formats/table-header.js'
import { Reader } from './reader.js'
import { openSource } from './source.js'

/** Of a workbook, for a shell, which must not wait. Throws `malformed` for what is none. */
export async function sheetsIn(path: string, { signal }: Io): Promise<string[]> {
  const { Workbook } = await import('../formats/workbook.js')
  const bytes = unlessSystemError(() => readFileSync(path))
  return bytes ? (await Workbook.open(bytes, path, signal)).sheets : []
}

/** Of a table, for a shell. */
export async function columnsIn(path: string, sheet: string | undefined, io: Io): Promise<readonly string[]> {
  const options = { format: undefined, sheet, encoding: undefined, rules: { map: {}, idFrom: undefined } }
  const source = await openSource({ path, name: path }, options, io)
  try {
    const { bytes } = await new Reader(source, createHash('sha256')).head()
    return columnNames(bytes)
  } finally {
    source.close()
  }
}

/** A larger one would take too long. */
export function isSmallFile(path: string): boolean {
  const stats = unlessSystemError(() => statSync(path, { throwIfNoEntry: false }))
  return stats?.isFile() === true && stats.size <= 1_048_576
}
