import type { CellValue } from 'hucre/xlsx'
import { inputError, must, PlantsError, reasonOf } from '../../platform/errors.js'
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
  recordTooLarge,
} from './chunk.js'
import { findHeader, listOf, maxHeaderRows, readerOf } from './header.js'
import { plainCell } from './table.js'

/** Throws `input` for a damaged workbook, and one without the columns. */
export async function openWorkbook(
  { name, blocks, signal }: FormatInput,
  options: InputOptions,
): Promise<FormatReader> {
  const bytes = await readWhole(blocks, name)
  assertUnpackable(bytes, name)
  const { readXlsx, streamXlsxRows } = await import('hucre/xlsx')
  const sheets: string[] = []
  const list = ({ name: sheet }: { name: string }) => sheets.push(sheet) < 0 // reads none
  await readXlsx(bytes, { sheets: list }).catch((error: unknown) => {
    throw damaged(name, error)
  })

  /** @param width of the table */
  async function* rowsOf(sheet: number, width: number, atOnce = rowsAtOnce) {
    let chunk = new Chunk<Cells>()
    let [rows, length] = [0, 0]
    try {
      for await (const { index, values } of streamXlsxRows(bytes, { sheet })) {
        const cells = values.slice(0, width).map(cellOf)
        const text = cells.join('')
        if (isTooLarge(text)) throw brokenRecord(name, index + 1, recordTooLarge)
        if (text !== '') chunk.add(cells, index + 1)
        length += text.length
        rows += 1
        if (rows % atOnce !== 0 && length < maxChunkLength) continue
        await checkSignal(signal)
        yield chunk
        chunk = new Chunk()
        length = 0
      }
    } catch (error) {
      throw damaged(`Sheet ${listOf([must(sheets[sheet])])} of ${name}`, error)
    }
    yield chunk
  }
  const firstRows = async (sheet: number) => {
    for await (const rows of rowsOf(sheet, Infinity, maxHeaderRows))
      if (rows.records.length > 0) return rows
    return new Chunk<Cells>()
  }

  if (sheets.length === 0) throw damaged(name, new Error('it has no sheet'))
  let found = sheetNamed(options.sheet, sheets)
  for (const index of sheets.keys())
    if (found === undefined && findHeader(await firstRows(index), options) !== undefined)
      found = index
  const sheet = found ?? 0 // its header says what is missing
  const rows = await firstRows(sheet)
  return readerOf({ format: 'xlsx' }, rows, (width) => rowsOf(sheet, width), options, name)
}

function sheetNamed(wanted: string | undefined, sheets: readonly string[]): number | undefined {
  if (wanted === undefined) return undefined
  const index = sheets.findIndex((name) => name.toLowerCase() === wanted.toLowerCase())
  const found = index === -1 ? Number(wanted) - 1 : index
  if (sheets[found] !== undefined) return found
  throw inputError(`There is no sheet ${listOf([wanted])}`, `The sheets are ${listOf(sheets)}`)
}

/** A text without white space around it, a number in plain digits, a date in ISO 8601 to the second. */
function cellOf(value: CellValue): Cell {
  if (value === null) return undefined
  if (value instanceof Date) {
    const time = new Date(Math.round(value.getTime() / 1000) * 1000)
    return time.toISOString().replace(/(?:T00:00:00)?\.000Z$/, '')
  }
  if (typeof value === 'number') return numberOf(value)
  return plainCell(typeof value === 'boolean' ? String(value).toUpperCase() : value)
}

function numberOf(value: number): Cell {
  const text = String(value)
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER)
    return { text, reason: 'is a number above 2^53, which has lost digits. Format it as text' }
  if (!text.includes('e')) return text
  return value.toLocaleString('en', { useGrouping: false, maximumSignificantDigits: 17 })
}

async function readWhole(blocks: AsyncIterable<Buffer>, name: string): Promise<Buffer> {
  const parts: Buffer[] = []
  let length = 0
  for await (const block of blocks) {
    length += block.length
    if (length > maxUnpacked) throw tooMuch(name)
    parts.push(block)
  }
  return Buffer.concat(parts)
}

/**
 * Throws `input` where the central directory of the archive (PKWARE's APPNOTE, 4.3.12) announces too much: hucre unpacks
 * no more than that, but takes a part of size 0 for one of any size.
 */
function assertUnpackable(bytes: Buffer, name: string): void {
  const end = bytes.lastIndexOf('PK\x05\x06', undefined, 'latin1')
  const isWhole = end !== -1 && end + endSize <= bytes.length
  let at = isWhole ? bytes.readUInt32LE(end + 16) : bytes.length
  let unpacked = 0
  while (at + entrySize <= bytes.length && bytes.toString('latin1', at, at + 4) === 'PK\x01\x02') {
    const packed = bytes.readUInt32LE(at + 20)
    const size = bytes.readUInt32LE(at + 24)
    const variable = [28, 30, 32].map((offset) => bytes.readUInt16LE(at + offset))
    const part = bytes.toString('latin1', at + entrySize, at + entrySize + must(variable[0]))
    const isTree = !/(?:^|\/)(?:worksheets|media)\/|pivotCacheRecords/.test(part)
    unpacked += size
    if (unpacked > maxUnpacked || (isTree && size > maxTree)) throw tooMuch(name)
    if (size === 0 && packed > emptyDeflated)
      throw damaged(name, new Error(`the archive says that ${part} is empty`))
    at += entrySize + variable.reduce((sum, length) => sum + length, 0)
  }
  if (unpacked === 0) throw damaged(name, new Error('its end is missing'))
}

const endSize = 22
const entrySize = 46
const emptyDeflated = 2
const maxUnpacked = 268_435_456
/** Of a part that hucre keeps as a tree, such as shared strings and styles. */
const maxTree = 50_331_648

function tooMuch(name: string): Error {
  return inputError(`${name} unpacks to too much data`, 'Save the sheet as CSV, and import that')
}

function damaged(what: string, error: unknown): unknown {
  if (error instanceof PlantsError) return error
  return inputError(
    `${what} is damaged: ${reasonOf(error)}`,
    'Save it again as .xlsx, or as CSV',
    error,
  )
}

const rowsAtOnce = 2000
const maxChunkLength = 524_288
