import { posix } from 'node:path'
import { crc32 } from 'node:zlib'
import { SAXParser, type Tag } from 'sax'
import { type Entry, fromBufferPromise, type ZipFile } from 'yauzl'
import { tableCell } from '../../plant/records.js'
import { checkSignal } from '../../platform/clock.js'
import { malformed, PlantsError, systemCode } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import { maxRecordBytes } from './chunk.js'
import { unsavedFormula } from './csv.js'
import { headSize } from './formats.js'
import type { FieldRules } from './record-mapper.js'
import { findHeader } from './table-header.js'

/**
 * A workbook as Excel, LibreOffice and Google save it: a ZIP archive of XML (ECMA-376, Office Open XML). A small one can
 * unpack to a lot, so there are bounds on what is unpacked and on what is kept.
 */
export class Workbook {
  readonly #source: string
  readonly #signal: AbortSignal
  readonly #zip: ZipFile
  /** by name, in lower case */
  readonly #entries: ReadonlyMap<string, Entry>
  /** without a part for a chart */
  readonly #sheets: { name: string; part: string | undefined }[] = []
  /** which cells share, by index */
  readonly #texts: string[] = []
  /** of the styles of cells, by index */
  readonly #isDate: boolean[] = []
  /** in days since 1899-12-30 */
  #epoch = 0
  /** the saved values of formulas are no results */
  #isUncalculated = false
  /** of the parts that are read before the first sheet */
  #styles: string | undefined
  #shared: string | undefined
  #unpacked = 0

  private constructor(source: string, signal: AbortSignal, zip: ZipFile, entries: ReadonlyMap<string, Entry>) {
    this.#source = source
    this.#signal = signal
    this.#zip = zip
    this.#entries = entries
  }

  /** Throws `malformed` for what is no workbook, for a damaged one, and for one above a bound. */
  static async open(bytes: Buffer, source: string, signal: AbortSignal): Promise<Workbook> {
    try {
      const zip = await fromBufferPromise(bytes, { lazyEntries: true })
      if (zip.entryCount > maxEntries) throw tooLarge(source, `${maxEntries} files`)
      const entries = new Map<string, Entry>()
      for await (const entry of zip.eachEntry()) entries.set(entry.fileName.toLowerCase(), entry)
      const workbook = new Workbook(source, signal, zip, entries)
      await workbook.#readParts()
      return workbook
    } catch (error) {
      throw damaged(source, error)
    }
  }

  get sheets(): string[] {
    return this.#sheets.map(({ name }) => name)
  }

  /**
   * The rows of a sheet as CSV with CRLF, from the first row on, also blank ones. Numbers and dates have all their
   * digits, formulas are their saved values, texts are trimmed.
   *
   * @param sheet a name, or a number from 1
   */
  async *csv(sheet: string): AsyncGenerator<string> {
    const named = (plain: (name: string) => string) => this.#sheets.find(({ name }) => plain(name) === plain(sheet))
    const found = named((name) => name) ?? named((name) => name.trim().toLowerCase()) ?? this.#sheets[Number(sheet) - 1]
    if (!found) throw malformed(`${this.#source} has no sheet ${inQuotes(sheet)}`, `Its sheets are ${this.#list()}`)
    let last = 0
    try {
      await this.#readStyles()
      await this.#readTexts()
      for await (const rows of this.#rows(found.part)) {
        let text = ''
        for (const { number, cells } of rows) {
          const line = Array.from(cells, (cell) => (cell === undefined ? '' : tableCell(cell, ','))).join()
          text += `${'\r\n'.repeat(number - last - 1)}${line}\r\n`
          last = number
          if (text.length < maxRecordBytes) continue
          yield text // cells can share a large text
          text = ''
        }
        yield text
      }
    } catch (error) {
      throw damaged(`Sheet ${inQuotes(found.name)} of ${this.#source}`, error)
    }
  }

  /** The only sheet, or the only one with the columns of plants. */
  async sheetOfPlants(rules: FieldRules): Promise<string> {
    const [first, ...others] = this.#sheets.filter(({ part }) => part !== undefined)
    if (first && others.length === 0) return first.name
    const found: string[] = []
    for (const sheet of this.sheets) if (!rules.columns && (await this.#hasPlants(sheet, rules))) found.push(sheet)
    if (found[0] !== undefined && found.length === 1) return found[0]
    if (found.length === 0 && !rules.columns)
      throw malformed(
        `None of the sheets of ${this.#source} has the columns of plants: ${this.#list()}`,
        'Choose one with --sheet NAME, and its columns with --map',
      )
    const which = found.length > 0 ? `sheets with plants: ${this.#list(found)}` : `sheets: ${this.#list()}`
    throw malformed(`${this.#source} has several ${which}`, 'Choose one with --sheet NAME')
  }

  async #hasPlants(sheet: string, rules: FieldRules): Promise<boolean> {
    let head = ''
    const start = this.#unpacked
    for await (const rows of this.csv(sheet)) {
      head = `${head}${rows}`.replace(/^[\r\n]+/, '') // the first line of a header is not blank
      if (head.length >= headSize || this.#unpacked - start > maxSearched) break
    }
    try {
      return findHeader(Buffer.from(head), { isLast: true, rules, given: ',', lineAt: () => 1 }) !== undefined
    } catch (error) {
      if (error instanceof PlantsError) return false
      throw error
    }
  }

  #list(sheets = this.sheets): string {
    return sheets.slice(0, 20).map(inQuotes).join(', ')
  }

  async #readParts(): Promise<void> {
    const main = (await this.#relationsOf('')).find(({ type }) => type === 'officeDocument')?.part ?? ''
    const parts = await this.#relationsOf(main)
    const partOf = (wanted: string) => parts.find(({ type }) => type === wanted)?.part
    await this.#readPart(main, (name, attributes) => {
      if (name === 'workbookPr' && isTrue(attributes['date1904'])) this.#epoch = daysTo1904
      if (name === 'calcPr' && isTrue(attributes['fullCalcOnLoad'])) this.#isUncalculated = true
      if (name !== 'sheet') return
      const [, id] = Object.entries(attributes).find(([key]) => localName(key) === 'id') ?? []
      const sheet = parts.find((part) => part.id === id && part.type === 'worksheet')
      if (sheet && !this.#entries.has(sheet.part.toLowerCase())) throw new Error(`there is no ${sheet.part}`)
      this.#sheets.push({ name: unescaped(attributes['name'] ?? ''), part: sheet?.part })
      if (this.#sheets.length > maxSheets) throw tooLarge(this.#source, `${maxSheets} sheets`)
    })
    if (this.#sheets.every(({ part }) => part === undefined))
      throw malformed(`${this.#source} is a ZIP archive without a sheet of Excel`, 'Save it as .xlsx, or as CSV')
    this.#styles = partOf('styles')
    this.#shared = partOf('sharedStrings')
  }

  /** @param part empty for those of the workbook as a whole */
  async #relationsOf(part: string): Promise<Relation[]> {
    const folder = posix.dirname(part)
    const relations: Relation[] = []
    await this.#readPart(posix.join(folder, '_rels', `${posix.basename(part)}.rels`), (name, attributes) => {
      const { Id: id = '', Type: type = '', Target: target = '' } = attributes
      if (name === 'Relationship')
        relations.push({ id, type: posix.basename(type), part: posix.resolve('/', folder, target).slice(1) })
      if (relations.length > maxEntries) throw tooLarge(this.#source, `${maxEntries} files`)
    })
    return relations
  }

  async #readStyles(): Promise<void> {
    if (this.#styles === undefined) return
    const custom = new Map<string, boolean>()
    let isOfCells = false
    await this.#readPart(
      this.#styles,
      (name, { numFmtId = '', formatCode = '' }) => {
        if (name === 'cellXfs') isOfCells = true
        if (name === 'numFmt') custom.set(numFmtId, isDateCode(formatCode))
        if (name === 'xf' && isOfCells) this.#isDate.push(custom.get(numFmtId) ?? builtInDate.test(numFmtId))
      },
      (name) => {
        if (name === 'cellXfs') isOfCells = false
      },
    )
    this.#styles = undefined
  }

  async #readTexts(): Promise<void> {
    if (this.#shared === undefined) return
    let text = ''
    await this.#readPart(
      this.#shared,
      (name) => {
        if (name === 'si') text = ''
      },
      (name, content) => {
        if (name === 't' && text.length <= maxRecordBytes) text += content
        if (name === 'si') this.#texts.push(unescaped(text))
        if (this.#texts.length > maxTexts) throw tooLarge(this.#source, `${maxTexts} texts`)
      },
    )
    this.#shared = undefined
  }

  async #readPart(part: string | undefined, onStart: OnStart, onEnd: OnEnd = () => undefined): Promise<void> {
    const pieces = this.#parse(part, maxKept, onStart, onEnd)
    while (!(await pieces.next()).done);
  }

  /** Those of each piece that is unpacked. */
  async *#rows(part: string | undefined): AsyncGenerator<Row[]> {
    let rows: Row[] = []
    let row: Row = { number: 0, cells: [], length: 0 }
    let cell: Cell = { column: -1, type: '', isDate: false, text: '', isFormula: false }
    const onStart: OnStart = (name, { r: place, t: type = 'n', s: style }) => {
      if (name === 'row') {
        row = { number: inOrder(row.number, place, Number, maxRows), cells: [], length: 0 }
        cell.column = -1
      } else if (name === 'c') {
        const column = inOrder(cell.column, place, columnOf, maxColumns - 1)
        cell = { column, type, isDate: this.#isDate[Number(style)] === true, text: '', isFormula: false }
      } else if (name === 'f') cell.isFormula = true
    }
    const onEnd: OnEnd = (name, content) => {
      if ((name === 'v' || name === 't') && cell.text.length <= maxRecordBytes) cell.text += content
      else if (name === 'c') {
        const text = this.#textOf(cell)
        // otherwise the record is too large already, and cells can share a text
        if (text !== '' && row.length <= maxRecordBytes) row.cells[cell.column] = text
        row.length += text.length
      } else if (name === 'row' && rows.at(-1) !== row) rows.push(row)
    }
    for await (const _ of this.#parse(part, maxUnpacked, ...onlyIn('sheetData', onStart, onEnd))) {
      yield rows
      rows = []
    }
  }

  #textOf({ type, isDate, text, isFormula }: Cell): string {
    if (type === 's' && text !== '') return this.#texts[Number(text)] ?? missingText(text)
    if (isFormula && (this.#isUncalculated || (type === 'n' && text === ''))) return unsavedFormula
    if (type === 'b' && text !== '') return isTrue(text) ? 'TRUE' : 'FALSE'
    if (type === 'n' && text !== '') return isDate ? dateOf(Number(text), this.#epoch) : numberOf(text)
    return unescaped(text)
  }

  /** Without a part, or if it is missing, there are no elements. */
  async *#parse(part: string | undefined, limit: number, onStart: OnStart, onEnd: OnEnd): AsyncGenerator<void> {
    const entry = this.#entries.get(part?.toLowerCase() ?? '')
    if (!entry) return
    if (entry.uncompressedSize > limit) throw tooLarge(this.#source, `${limit} bytes of ${part}`)
    const parser = parserOf(onStart, onEnd)
    const decoder = new TextDecoder('utf-8', { fatal: true })
    // The stream ends with an error if it unpacks to another size than the archive says.
    let sum = 0
    for await (const all of await this.#zip.openReadStreamPromise(entry))
      for (let at = 0; at < all.length; at += pieceSize) {
        await checkSignal(this.#signal)
        const piece = all.subarray(at, at + pieceSize)
        sum = crc32(piece, sum)
        this.#unpacked += piece.length
        if (this.#unpacked > maxUnpacked) throw tooLarge(this.#source, `${maxUnpacked} bytes`)
        write(parser, decoder.decode(piece, { stream: true }))
        yield
      }
    parser.close()
    if (sum !== entry.crc32) throw new Error(`${part} has another checksum than the archive says`)
  }
}

/** Skips phonetic guides. */
function parserOf(onStart: OnStart, onEnd: OnEnd): SAXParser {
  const parser = new SAXParser(true)
  let content = ''
  let depth = 0
  let phonetic = 0
  parser.onerror = (error) => {
    throw error
  }
  parser.onattribute = () => {
    if (parser.position - parser.startTagPosition > maxTagLength) throw new Error('too many attributes')
  }
  parser.onopentag = ({ name, attributes }) => {
    depth += 1
    if (depth > maxDepth) throw new Error('elements nested too deeply')
    content = ''
    if (localName(name) === 'rPh') phonetic += 1
    if (phonetic === 0) onStart(localName(name), attributes as Tag['attributes']) // without namespaces
  }
  parser.ontext = (text) => {
    if (content.length <= maxRecordBytes) content += text
  }
  parser.oncdata = parser.ontext
  parser.onclosetag = (name) => {
    depth -= 1
    if (phonetic === 0) onEnd(localName(name), content)
    else if (localName(name) === 'rPh') phonetic -= 1
    content = ''
  }
  return parser
}

/** An attribute called `hasOwnProperty` is a TypeError in sax. */
function write(parser: SAXParser, text: string): void {
  try {
    parser.write(text)
  } catch (error) {
    throw error instanceof TypeError ? new Error(error.message) : error
  }
}

/** Only what is inside of an element: rows of a drawing, too, are called `row`. */
function onlyIn(parent: string, onStart: OnStart, onEnd: OnEnd): [OnStart, OnEnd] {
  let isInside = false
  return [
    (name, attributes) => {
      if (isInside) onStart(name, attributes)
      else isInside = name === parent
    },
    (name, content) => {
      if (name === parent) isInside = false
      if (isInside) onEnd(name, content)
    },
  ]
}

interface Relation {
  id: string
  type: string
  part: string
}

type OnStart = (name: string, attributes: Tag['attributes']) => void
type OnEnd = (name: string, content: string) => void

interface Row {
  /** from 1 */
  number: number
  /** sparse */
  cells: string[]
  /** of the texts, in UTF-16 code units */
  length: number
}

interface Cell {
  /** from 0 */
  column: number
  type: string
  isDate: boolean
  text: string
  isFormula: boolean
}

const maxEntries = 10_000
const maxSheets = 1000
/** in bytes of all parts together, and of each that is kept in memory */
const maxUnpacked = 536_870_912
const maxKept = 50_331_648
const maxTexts = 4_194_304
/** in bytes of a sheet, of which the header is looked for */
const maxSearched = 4_194_304
/** in UTF-16 code units */
const maxTagLength = 65_536
const maxDepth = 100
/** A part that is not compressed is unpacked in one piece. */
const pieceSize = 65_536
const maxRows = 1_048_576
const maxColumns = 16_384

function tooLarge(source: string, what: string): PlantsError {
  return malformed(`${source} unpacks to more than ${what}`, 'Save the sheet as CSV, and import that')
}

/** The errors of yauzl and sax are plain, those of zlib and of TextDecoder have codes. */
function damaged(what: string, error: unknown): unknown {
  if (error instanceof PlantsError || !(error instanceof Error)) return error
  if (error.constructor !== Error && systemCode(error) === undefined) return error
  const [reason] = error.message.split('\n')
  return malformed(`${what} is damaged: ${reason}`, 'Save it again as .xlsx, or as CSV', error)
}

function inQuotes(sheet: string): string {
  return JSON.stringify(shorten(sheet))
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1)
}

/** Rows and cells follow each other, and need not say where they are. */
function inOrder(before: number, place: string | undefined, parse: (place: string) => number, max: number): number {
  const found = place === undefined ? before + 1 : parse(place)
  if (found > before && found <= max) return found
  throw new Error(`${place ?? found} is misplaced`)
}

function missingText(index: string): never {
  throw new Error(`no text ${index}`)
}

function isTrue(text = ''): boolean {
  return /^(1|true)$/.test(text)
}

/** Such as 27 of `AB3`; -1 for no place. */
function columnOf(place: string): number {
  const [, letters = ''] = /^([A-Z]{1,3})\d+$/i.exec(place) ?? []
  return Array.from(letters.toUpperCase()).reduce((sum, letter) => 26 * sum + letter.charCodeAt(0) - 0x40, 0) - 1
}

/** Trimmed, and with characters for words such as `_x000D_`, which XML cannot have. */
function unescaped(text: string): string {
  if (text.length > maxRecordBytes) return text // a record that is too large does not become smaller
  return text
    .replace(/_x(?!0000|D[89A-F])([0-9A-F]{4})_/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)))
    .trim()
}

/** Formats of dates and times (ECMA-376 part 1, 18.8.30). */
const builtInDate = /^(1[4-9]|2[0-2]|2[7-9]|3[0-6]|4[5-7]|5[0-8])$/

/** Whether it has letters of a date outside texts, spaces, colours and conditions. */
function isDateCode(code: string): boolean {
  return /[dmyhs]/i.test(code.replace(/"[^"]*"|[\\_*].|\[(?!(?:h+|m+|s+)\])[^[\]]*\]/gi, ''))
}

/** A number from 2^53 on has an exponent, because it may be rounded, as a spreadsheet has it. */
function numberOf(text: string): string {
  const number = Number(text)
  if (!Number.isFinite(number)) return text
  return Number.isInteger(number) && !Number.isSafeInteger(number) ? number.toExponential() : String(number)
}

/**
 * ISO 8601, without a day or a time that there is not.
 *
 * @param days since the epoch
 */
function dateOf(days: number, epoch: number): string {
  const fromLeapDay = epoch === 0 && days < 60 ? 1 : 0 // Excel counts 1900-02-29
  const seconds = Math.round((days + epoch + fromLeapDay - daysTo1970) * 86_400)
  if (!(seconds >= -2_300_000_000 && seconds < 253_402_300_800)) return String(days)
  const [day, time = ''] = new Date(seconds * 1000).toISOString().slice(0, 19).split('T')
  if (days >= 0 && days < 1) return time
  return time === '00:00:00' ? `${day}` : `${day}T${time}`
}

const daysTo1904 = 1462
const daysTo1970 = 25_569
