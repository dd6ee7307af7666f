import { malformed, type PlantsError } from '../../platform/errors.js'
import { problem } from '../../stores/common/change.js'
import { type Cells, Chunk, maxRecordBytes, recordTooLarge } from './chunk.js'
import type { Lines } from './lines.js'

/** The rows of a table (RFC 4180). A cell in quotes is exact. Others are trimmed, and undefined if they are empty. */
export class TableParser {
  readonly #delimiter: string
  readonly #source: string
  /** of the row that is read */
  #line = 0
  #bytes = 0
  #cells: (string | undefined)[] = []
  /** the text of a cell in quotes that is not closed yet */
  #open: string | undefined
  /** a quote is not closed */
  isBroken = false

  /** @param delimiter one character */
  constructor(delimiter: string, source: string) {
    this.#delimiter = delimiter
    this.#source = source
  }

  /**
   * Adds the rows that the lines complete, without blank ones.
   *
   * @param lines with their line breaks
   * @throws {PlantsError} `malformed` for what is not UTF-8
   */
  parse({ first, texts, invalid }: Lines, rows: Chunk<Cells>, maxRows = Infinity): void {
    for (const [index, text] of texts.entries()) {
      if (this.isBroken || rows.records.length === maxRows) return
      if (invalid.has(index)) throw notUtf8(this.#source, first + index)
      this.#add(text, first + index, rows)
    }
  }

  get isOpen(): boolean {
    return this.#open !== undefined || this.isBroken
  }

  /** Throws `malformed` if a quote is not closed, at the end or within a row of 1 MiB. */
  end(): void {
    if (!this.isOpen) return
    const what = this.#bytes > maxRecordBytes ? 'is not closed within 1 MiB' : 'is not closed'
    const where = `it is in the row that begins in line ${this.#line}`
    throw malformed(
      `A quote in ${this.#source} ${what}: ${where}`,
      'Write a quote in a cell as "", and the cell in quotes',
    )
  }

  #add(text: string, line: number, rows: Chunk<Cells>): void {
    const end = endOfLine(text)
    if (this.#open === undefined) [this.#line, this.#bytes, this.#cells] = [line, 0, []]
    this.#bytes += Buffer.byteLength(text)
    const isTooLarge = this.#bytes - text.length + end > maxRecordBytes
    let isClear = true
    if (this.#open !== undefined || text.includes('"')) isClear = this.#readCells(text, end)
    else if (!isTooLarge) this.#cells = this.#plainCells(text, end)
    const isOpen = this.#open !== undefined
    if (isOpen ? isTooLarge : !isClear && line > this.#line) this.isBroken = true
    if (isOpen || this.isBroken) return
    const cells = isClear ? this.#cells : this.#plainCells(text, end)
    while (cells.length > 0 && cells.at(-1) === undefined) cells.pop()
    if (isTooLarge) rows.add([], this.#line, recordTooLarge)
    else if (cells.length > 0) rows.add(cells, this.#line, isClear ? undefined : strayQuote)
  }

  /** Returns false for a quote where none may be. */
  #readCells(text: string, end: number): boolean {
    for (let at = 0; ; at += 1) {
      if (this.#open !== undefined || text[at] === '"') {
        const start = this.#open === undefined ? at + 1 : at
        const close = closingQuote(text, start)
        this.#open = (this.#open ?? '') + text.slice(start, close)
        if (close === text.length) return true
        this.#cells.push(this.#open.replaceAll('""', '"'))
        this.#open = undefined
        at = close + 1
      } else {
        const found = text.indexOf(this.#delimiter, at)
        const cell = text.slice(at, found === -1 ? end : found)
        if (cell.includes('"')) return false
        this.#cells.push(plainCell(cell))
        at += cell.length
      }
      if (at >= end) return true
      if (text[at] !== this.#delimiter) return false
    }
  }

  #plainCells(text: string, end: number): (string | undefined)[] {
    return text.slice(0, end).split(this.#delimiter).map(plainCell)
  }
}

export async function* readTable(lines: AsyncIterable<Lines>, parser: TableParser): AsyncGenerator<Chunk> {
  for await (const some of lines) {
    const chunk = new Chunk<Cells>()
    parser.parse(some, chunk)
    if (chunk.records.length > 0) yield chunk
    if (parser.isBroken) break
  }
  parser.end()
}

function endOfLine(text: string): number {
  if (text.endsWith('\r\n')) return text.length - 2
  return text.length - Number(/[\r\n]$/.test(text))
}

/** The length of the text if there is none. */
function closingQuote(text: string, start: number): number {
  let close = text.indexOf('"', start)
  while (close !== -1 && text[close + 1] === '"') close = text.indexOf('"', close + 2)
  return close === -1 ? text.length : close
}

/** White space other than spaces and tabs, such as U+00A0, belongs to the cell. */
function plainCell(cell: string): string | undefined {
  let [start, end] = [0, cell.length]
  while (start < end && isBlank(cell, start)) start += 1
  while (start < end && isBlank(cell, end - 1)) end -= 1
  return start === end ? undefined : end - start === cell.length ? cell : cell.slice(start, end)
}

function isBlank(text: string, at: number): boolean {
  const character = text.charCodeAt(at)
  return character === 0x20 || character === 0x09
}

function notUtf8(source: string, line: number): PlantsError {
  const hint = 'If it is of an old spreadsheet, add --encoding windows-1252'
  return malformed(`${source} is not UTF-8 in line ${line}`, hint)
}

const strayQuote = problem('malformed', 'Not CSV: a stray quote. Write a quote in a cell as "", and the cell in quotes')
