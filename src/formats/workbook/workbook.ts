import type { CellValue } from 'hucre/xlsx'
import { inputError, PlantsError, reasonOf } from '../../errors.js'
import { checkSignal } from '../../platform/runtime.js'
import {
  brokenRecord,
  type Cell,
  type Cells,
  Chunk,
  type FormatInput,
  type FormatReader,
  type InputOptions,
  isTooLarge,
  maxUnpacked,
  recordTooLarge,
} from '../chunk.js'
import { createReader, findHeader, foldName, listOf, maxHeaderRows } from '../header.js'
import { plainCell } from '../table.js'
import { checkParts, tooMuch } from './parts.js'

export async function openWorkbook(
  { name, blocks, signal }: FormatInput,
  options: InputOptions,
): Promise<FormatReader> {
  const parts: Buffer[] = []
  let length = 0
  for await (const block of blocks) {
    length += block.length
    if (length > maxUnpacked) throw tooMuch(name)
    parts.push(block)
  }
  const bytes = Buffer.concat(parts)
  const { streamXlsxRows } = await import('hucre/xlsx')
  const sheets = await checkParts(bytes, name, signal).catch((error: unknown) => {
    throw damaged(name, error)
  })

  async function* rowsOf(sheet: string) {
    let chunk = new Chunk<Cells>()
    try {
      for await (const { index, values } of streamXlsxRows(bytes, { sheet })) {
        const cells = values.map(cellOf)
        const text = cells.join('')
        if (isTooLarge(text)) throw brokenRecord(name, index + 1, recordTooLarge)
        if (text !== '') chunk.add(cells, index + 1)
        chunk.characters += text.length + cells.length
        if (!chunk.isFull) continue
        await checkSignal(signal)
        yield chunk
        chunk = new Chunk()
      }
    } catch (error) {
      throw damaged(`Sheet ${listOf([sheet])} of ${name}`, error)
    }
    yield chunk
  }

  const candidates = options.sheet === undefined ? sheets : [sheetNamed(options.sheet, sheets)]
  let chosen = { sheet: '', rows: new Chunk<Cells>() }
  for (const sheet of candidates) {
    let rows = new Chunk<Cells>()
    for await (const part of rowsOf(sheet)) {
      rows = part.slice(0, maxHeaderRows)
      if (rows.records.length > 0) break
    }
    const hasHeader = findHeader(rows, options) !== undefined
    if (hasHeader || chosen.rows.records.length === 0) chosen = { sheet, rows }
    if (hasHeader) break
  }
  return createReader(chosen.rows, rowsOf(chosen.sheet), options, name)
}

function sheetNamed(wanted: string, sheets: readonly string[]): string {
  const alike = sheets.find((name) => foldName(name) === foldName(wanted))
  const found = alike ?? sheets[Number(wanted) - 1]
  if (found !== undefined) return found
  throw inputError(`There is no sheet ${listOf([wanted])}`, `The sheets are ${listOf(sheets)}`)
}

/** A number has plain digits, and a date is in ISO 8601. */
function cellOf(value: CellValue): Cell {
  if (value === null) return undefined
  if (value instanceof Date) {
    const time = new Date(Math.round(value.getTime() / 1000) * 1000)
    return time.toISOString().replace(/(?:T00:00:00)?\.000Z$/, '')
  }
  if (typeof value === 'boolean') return String(value).toUpperCase()
  if (typeof value === 'string') return plainCell(value)
  const text = String(value)
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER)
    return { text, reason: 'is a number above 2^53, which has lost digits. Format it as text' }
  if (!text.includes('e')) return text
  return value.toLocaleString('en', { useGrouping: false, maximumSignificantDigits: 17 })
}

function damaged(what: string, error: unknown): unknown {
  if (error instanceof PlantsError) return error
  return inputError(
    `${what} is damaged: ${reasonOf(error)}`,
    'Save it again as .xlsx, or as CSV',
    error,
  )
}
