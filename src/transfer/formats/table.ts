import { malformed } from '../../platform/errors.js'
import { problem } from '../../stores/common/change.js'
import { type Cells, Chunk, maxRecordBytes, recordTooLarge } from './chunk.js'
import type { Lines } from './text.js'

/** The rows of a table (RFC 4180). A cell in quotes is exact. Others are trimmed, and undefined if they are empty. */
export class TableParser {
  readonly #delimiter: string
  readonly #source: string
  /** of the row that is read */
  #line = 0
  #bytes = 0
  #cells: (string | undefined)[] = []
  /** the lines of a cell in quotes that is not closed yet */
  #open: string[] | undefined
  isBroken = false

  constructor(delimiter: string, source: string) {
    this.#delimiter = delimiter
    this.#source = source
  }

  /** Adds the rows that the lines complete, without blank ones. Throws `malformed` for what is not UTF-8. */
  parse({ first, texts, invalid }: Lines, rows: Chunk<Cells>, maxRows = Infinity): void {
    for (const [index, text] of texts.entries()) {
      const line = first + index
      if (this.isBroken || rows.records.length === maxRows) return
      if (invalid.has(index))
        throw malformed(
          `${this.#source} is not UTF-8 in line ${line}`,
          'If it is of an old spreadsheet, add --encoding windows-1252',
        )
      this.#add(text, line, rows)
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
    const isFirst = this.#open === undefined
    if (isFirst) [this.#line, this.#bytes, this.#cells] = [line, 0, []]
    this.#bytes += Buffer.byteLength(text) + Number(!isFirst)
    const isTooLarge = this.#bytes > maxRecordBytes
    const content = text.endsWith('\r') ? text.slice(0, -1) : text
    let isClear = true
    if (!isFirst || text.includes('"')) isClear = this.#readCells(text, content.length)
    else if (content.includes('\r')) isClear = false
    else if (!isTooLarge) this.#cells = this.#plainCells(content)
    const isOpen = this.#open !== undefined
    this.isBroken = isOpen ? isTooLarge : !isClear && !isFirst
    if (isOpen || this.isBroken) return
    const cells = isClear ? this.#cells : this.#plainCells(content)
    while (cells.length > 0 && cells.at(-1) === undefined) cells.pop()
    if (isTooLarge) rows.add([], this.#line, recordTooLarge)
    else if (cells.length > 0) rows.add(cells, this.#line, isClear ? undefined : notCsv)
  }

  /** @returns false for a quote or a carriage return where none may be */
  #readCells(text: string, end: number): boolean {
    for (let at = 0; ; at += 1) {
      if (this.#open !== undefined || text[at] === '"') {
        const start = this.#open === undefined ? at + 1 : at
        const close = closingQuote(text, start)
        if (close === -1) {
          this.#open ??= []
          this.#open.push(text.slice(start))
          return true
        }
        const last = text.slice(start, close)
        const whole = this.#open === undefined ? last : [...this.#open, last].join('\n')
        this.#cells.push(whole.replaceAll('""', '"'))
        this.#open = undefined
        at = close + 1
      } else {
        const found = text.indexOf(this.#delimiter, at)
        const cell = text.slice(at, found === -1 ? end : found)
        if (/["\r]/.test(cell)) return false
        this.#cells.push(plainCell(cell))
        at += cell.length
      }
      if (at >= end) return true
      if (text[at] !== this.#delimiter) return false
    }
  }

  #plainCells(text: string): (string | undefined)[] {
    return text.split(this.#delimiter).map(plainCell)
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

function closingQuote(text: string, start: number): number {
  let close = text.indexOf('"', start)
  while (close !== -1 && text[close + 1] === '"') close = text.indexOf('"', close + 2)
  return close
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

const notCsv = problem(
  'malformed',
  'Not CSV: a stray quote or a lone carriage return. Write the cell in quotes, and a quote in it as ""',
)
