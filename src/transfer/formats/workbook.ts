import { type CellValue, readXlsx, type Sheet } from 'hucre/xlsx'
import { checkSignal } from '../../platform/clock.js'
import { malformed, PlantsError, reasonOf } from '../../platform/errors.js'
import { must } from '../../platform/values.js'
import {
  type BadCell,
  type Cell,
  type Cells,
  Chunk,
  type FieldRules,
  type FormatInput,
  type FormatReader,
  type InputOptions,
  isTooLarge,
  readWhole,
  recordTooLarge,
} from './chunk.js'
import { findHeader, headerAt, listOf, maxHeaderRows, rejectNames } from './header.js'
import { refuseArchive } from './signatures.js'

/** Throws `malformed` for a damaged archive, and if the sheet is not clear. */
export async function openWorkbook(input: FormatInput, options: InputOptions): Promise<FormatReader> {
  const { name, signal } = input
  const bytes = await readWhole(input.blocks, maxPacked)
  if (!bytes) throw malformed(`${name} is larger than ${maxPacked} bytes`, 'Save the sheet as CSV')
  try {
    checkArchive(bytes, name)
  } catch (error) {
    throw error instanceof RangeError ? damaged(name, new Error('its directory is cut off')) : error
  }
  const book = { bytes, source: name, sheets: await sheetNames(bytes, name) }
  const only = book.sheets.length === 1 ? await readSheet(book, 0) : undefined
  const isRejects = only?.rows[0]?.[0] === rejectNames[0]
  if (!isRejects) refuseUnused(options, name)
  const rules = isRejects ? { ...options.rules, columns: undefined } : options.rules
  const wanted = isRejects ? undefined : options.sheet
  const index = wanted === undefined ? await sheetOfPlants(book, rules, signal) : namedSheet(book, wanted)
  const sheet = only ?? (await readSheet(book, index))
  const rows = rowsOf(sheet, 0, maxHeaderRows)
  if (rows.records.length === 0) return { format: 'xlsx', chunks: chunksOf(sheet, 0, Infinity) }
  const found = findHeader(rows, rules)
  const { header, skipped } = headerAt(found, rows, rules, name)
  const first = found === -1 ? 0 : must(rows.lines[must(found)])
  return { format: 'xlsx', header, skipped, chunks: chunksOf(sheet, first, header.names.length) }
}

interface Book {
  bytes: Buffer
  source: string
  /** their names */
  sheets: string[]
}

function refuseUnused({ format, encoding, delimiter }: InputOptions, source: string): void {
  const given = { '--format': format, '--encoding': encoding, '--delimiter': delimiter }
  const unused = Object.entries(given).find(([, value]) => value !== undefined)?.[0]
  if (unused !== undefined) throw malformed(`${unused} does not apply to a workbook, as ${source} is`, 'Leave it out')
}

/**
 * What the directory of the archive says (PKWARE's APPNOTE, 4.3.12), because hucre unpacks no more than that, but takes
 * a file without a size for empty, and does not compare a checksum that is 0.
 */
function checkArchive(bytes: Buffer, source: string): void {
  const end = bytes.lastIndexOf('PK\x05\x06', undefined, 'latin1')
  const names: string[] = []
  let [at, unpacked] = [end === -1 ? 0 : bytes.readUInt32LE(end + 16), 0]
  const isEntry = () => bytes.toString('latin1', at, at + 4) === 'PK\x01\x02'
  if (!isEntry()) throw damaged(source, new Error('it has no directory'))
  while (isEntry()) {
    const [crc, packed, size] = [16, 20, 24].map((offset) => bytes.readUInt32LE(at + offset))
    const [nameLength, extra, comment] = [28, 30, 32].map((offset) => bytes.readUInt16LE(at + offset))
    const name = bytes.toString('utf8', at + 46, at + 46 + must(nameLength))
    unpacked += must(size)
    names.push(name)
    if (unpacked > maxUnpacked) throw tooLarge(source, `${maxUnpacked} bytes`)
    if (must(size) > maxKept && name.endsWith('haredStrings.xml')) throw tooLarge(source, `${maxKept} bytes of ${name}`)
    if ((size === 0 && must(packed) > 2) || (crc === 0 && must(size) > 0))
      throw damaged(source, new Error(`${name} has another size or checksum than the archive says`))
    at += 46 + must(nameLength) + must(extra) + must(comment)
  }
  refuseArchive(names, source)
}

async function sheetNames(bytes: Buffer, source: string): Promise<string[]> {
  const names: string[] = []
  const list = ({ name }: { name: string }) => {
    names.push(name)
    return false
  }
  await readXlsx(bytes, { sheets: list }).catch((error: unknown) => {
    throw damaged(source, error)
  })
  if (names.length > 0) return names
  throw malformed(`${source} is a ZIP archive without a sheet of Excel`, 'Save it as .xlsx, or as CSV')
}

function namedSheet({ sheets, source }: Book, wanted: string): number {
  const plain = (name: string) => name.trim().toLowerCase()
  const exact = sheets.indexOf(wanted)
  const found = exact === -1 ? sheets.findIndex((name) => plain(name) === plain(wanted)) : exact
  const index = found === -1 ? Number(wanted) - 1 : found
  if (sheets[index] !== undefined) return index
  throw malformed(`${source} has no sheet ${listOf([wanted])}`, `Its sheets are ${listOf(sheets)}`)
}

/** The only sheet, or the only one with the columns of plants. A chart cannot be read as one. */
async function sheetOfPlants(book: Book, rules: FieldRules, signal: AbortSignal): Promise<number> {
  const { sheets, source } = book
  if (sheets.length === 1) return 0
  const found: number[] = []
  for (const index of sheets.slice(0, maxSearched).keys()) {
    await checkSignal(signal)
    const sheet = await readSheet(book, index, maxHeaderRows).catch(() => undefined)
    if (sheet && findHeader(rowsOf(sheet, 0, maxHeaderRows), rules) !== undefined) found.push(index)
  }
  if (found.length === 1) return must(found[0])
  const which = found.length > 0 ? found.map((index) => must(sheets[index])) : sheets
  throw malformed(
    `${found.length > 0 ? 'Several' : 'None'} of the sheets of ${source} have the columns of plants: ${listOf(which)}`,
    'Choose one with --sheet NAME, and its columns with --map',
  )
}

interface OpenSheet {
  rows: CellValue[][]
  cells: Sheet['cells']
  isFrom1904: boolean
}

/** Without what is in columns above the 256th: a cell far to the right would take a kilobyte for each one before it. */
async function readSheet({ bytes, source, sheets: names }: Book, index: number, maxRows?: number): Promise<OpenSheet> {
  try {
    const limit = maxRows === undefined ? {} : { maxRows }
    const { sheets, dateSystem } = await readXlsx(bytes, { sheets: [index], range: 'A1:IV1048576', ...limit })
    const { rows, cells } = must(sheets[0])
    let length = 0
    for (const row of rows) for (const cell of row) length += typeof cell === 'string' ? cell.length : 0
    if (length > maxText) throw tooLarge(source, '1 GiB of text') // cells share their texts
    return { rows, cells, isFrom1904: dateSystem === '1904' }
  } catch (error) {
    throw damaged(`Sheet ${listOf([must(names[index])])} of ${source}`, error)
  }
}

async function* chunksOf(sheet: OpenSheet, after: number, width: number): AsyncGenerator<Chunk> {
  for (let from = after; from < sheet.rows.length; from += rowsAtOnce) {
    const chunk = rowsOf(sheet, from, from + rowsAtOnce, width)
    if (chunk.records.length > 0) yield chunk
  }
}

/** Leaves out blank rows, and cells beside the table, such as a note. */
function rowsOf({ rows, cells, isFrom1904 }: OpenSheet, from: number, to: number, width = Infinity): Chunk<Cells> {
  const chunk = new Chunk<Cells>()
  for (const [index, values] of rows.slice(from, to).entries()) {
    const row = from + index
    const record = values.slice(0, width).map((value, column): Cell => {
      const isFormula = value === null && cells?.get(`${row},${column}`)?.formula !== undefined
      return isFormula ? unsavedFormula : cellOf(value, isFrom1904)
    })
    while (record.length > 0 && record.at(-1) === undefined) record.pop()
    if (record.length === 0) continue
    const texts = record.map((cell) => (typeof cell === 'object' ? cell.text : cell))
    if (isTooLarge(texts.join(''))) chunk.add([], row + 1, recordTooLarge)
    else chunk.add(record, row + 1)
  }
  return chunk
}

function cellOf(value: CellValue, isFrom1904: boolean): Cell {
  if (value === null) return undefined
  if (value instanceof Date) return dateOf(value, isFrom1904)
  if (typeof value === 'number') return numberOf(value)
  const text = typeof value === 'boolean' ? String(value).toUpperCase() : value.trim()
  return text === '' ? undefined : text
}

function numberOf(value: number): Cell {
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER)
    return { text: String(value), reason: 'a number above 2^53 has lost digits in the workbook. Format it as text' }
  const text = String(value)
  return text.includes('e') ? value.toFixed(20).replace(/\.?0+$/, '') : text
}

/** ISO 8601, without a day or a time that there is not. */
function dateOf(date: Date, isFrom1904: boolean): Cell {
  const time = Math.round(date.getTime() / 1000) * 1000
  if (!(time >= Date.UTC(1800) && time < Date.UTC(10_000)))
    return { text: String(date), reason: 'a date is not in the years 1800 to 9999' }
  const [day = '', clock = ''] = new Date(time).toISOString().slice(0, 19).split('T')
  if (day === (isFrom1904 ? '1904-01-01' : '1899-12-31')) return clock
  return clock === '00:00:00' ? day : `${day}T${clock}`
}

const unsavedFormula: BadCell = {
  text: '',
  reason: 'a formula has no saved value. Open the workbook in a spreadsheet program, and save it',
}

const rowsAtOnce = 2000
/** sheets */
const maxSearched = 100
const maxPacked = 67_108_864
const maxUnpacked = 536_870_912
const maxKept = 50_331_648
const maxText = 1_073_741_824

function tooLarge(source: string, what: string): PlantsError {
  return malformed(`${source} unpacks to more than ${what}`, 'Save the sheet as CSV, and import that')
}

/** What hucre throws is not a defect: the archive comes from others. */
function damaged(what: string, error: unknown): unknown {
  if (error instanceof PlantsError) return error
  return malformed(`${what} is damaged: ${reasonOf(error)}`, 'Save it again as .xlsx, or as CSV', error)
}
