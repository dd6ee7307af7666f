import { inputError } from '../../platform/errors.js'
import { type Problem, problem } from '../../stores/common/change.js'
import {
  type Cells,
  Chunk,
  type Misencoded,
  maxRecordBytes,
  prepend,
  recordTooLarge,
} from './chunk.js'
import { type Lines, trimWhiteSpace } from './text.js'

export interface TableSource {
  name: string
  misencoded: Misencoded
}

/**
 * The rows of a table. A cell that begins with a quote is exact (RFC 4180). Others are trimmed, and a quote in them is a
 * character. An empty cell is undefined, in quotes or not.
 */
export class TableParser {
  readonly #delimiter: string
  readonly #source: TableSource
  /** Whether rows keep the empty cells at their ends. */
  readonly #isWide: boolean
  /** The line of the row that is read. */
  #line = 0
  #bytes = 0
  #cells: (string | undefined)[] = []
  /** The lines of a cell in quotes that is not closed yet. */
  #open: string[] | undefined
  isBroken = false

  constructor(delimiter: string, source: TableSource, { isWide = false } = {}) {
    this.#delimiter = delimiter
    this.#source = source
    this.#isWide = isWide
  }

  /** Adds the rows that the lines complete, without blank ones. Throws `input` for what is not of the encoding. */
  parse({ first, texts, ends, invalid }: Lines, rows: Chunk<Cells>, maxRows = Infinity): void {
    let line = first
    for (const text of texts) {
      if (this.isBroken || rows.records.length === maxRows) return
      if (invalid.has(line - first)) throw this.#source.misencoded(line)
      this.#add(text, ends?.[line - first] ?? '\n', line, rows)
      line += 1
    }
  }

  get isOpen(): boolean {
    return this.#open !== undefined || this.isBroken
  }

  /** Throws `input` if a quote is not closed, at the end or within a row of 1 MiB. */
  end(): void {
    if (!this.isOpen) return
    const what = this.#bytes > maxRecordBytes ? 'is not closed within 1 MiB' : 'is not closed'
    const where = `it is in the row that begins in line ${this.#line}`
    throw inputError(
      `A quote in ${this.#source.name} ${what}: ${where}`,
      'Write a quote in a cell as "", and the cell in quotes',
    )
  }

  #add(text: string, lineEnd: string, line: number, rows: Chunk<Cells>): void {
    const isFirst = this.#open === undefined
    if (isFirst) {
      this.#line = line
      this.#bytes = 0
      this.#cells = []
    }
    this.#bytes += Buffer.byteLength(text) + Number(!isFirst)
    const isTooLarge = this.#bytes > maxRecordBytes
    const content = text.endsWith('\r') ? text.slice(0, -1) : text
    let why: Problem | undefined
    if (!isFirst || text.includes('"') || content.includes('\r'))
      why = this.#readCells(text, content.length, lineEnd)
    else if (!isTooLarge) this.#cells = this.#plainCells(content)
    const isOpen = this.#open !== undefined
    this.isBroken = isOpen ? isTooLarge : why !== undefined && !isFirst
    if (isOpen || this.isBroken) return
    const cells = why ? this.#plainCells(content) : this.#cells
    const width = widthOf(cells)
    if (isTooLarge) rows.add([], this.#line, recordTooLarge)
    // A copy has no room for more cells, which would take as much memory as the row.
    else if (width > 0)
      rows.add(cells.slice(0, this.#isWide ? cells.length : width), this.#line, why)
  }

  /** @returns why they cannot be read */
  #readCells(text: string, end: number, lineEnd: string): Problem | undefined {
    for (let at = 0; ; at += 1) {
      if (this.#open !== undefined || text[at] === '"') {
        at = this.#readQuoted(text, this.#open === undefined ? at + 1 : at, lineEnd)
        if (at < end && text[at] !== this.#delimiter) return afterQuote
      } else {
        const found = text.indexOf(this.#delimiter, at)
        const next = found === -1 ? end : found
        const cell = plainCell(text.slice(at, next))
        if (cell?.includes('\r')) return carriageReturn
        this.#cells.push(cell)
        at = next
      }
      if (at >= end) return undefined
    }
  }

  /** @returns after its closing quote, or if the cell goes on in the next line, after the text */
  #readQuoted(text: string, start: number, lineEnd: string): number {
    const close = closingQuote(text, start)
    if (close === -1) {
      this.#open ??= []
      this.#open.push(text.slice(start), lineEnd)
      return text.length
    }
    const last = text.slice(start, close)
    const whole = this.#open === undefined ? last : [...this.#open, last].join('')
    // Most cells have no quote, and `includes` finds that faster than `replaceAll`.
    this.#cells.push(whole.includes('"') ? whole.replaceAll('""', '"') : whole || undefined)
    this.#open = undefined
    return close + 1
  }

  #plainCells(text: string): (string | undefined)[] {
    return text.split(this.#delimiter).map(plainCell)
  }
}

export async function* readTable(
  lines: AsyncIterable<Lines>,
  parser: TableParser,
): AsyncGenerator<Chunk> {
  for await (const some of lines) {
    const chunk = new Chunk<Cells>()
    parser.parse(some, chunk)
    some.texts.length = 0
    if (chunk.records.length > 0) yield chunk
    if (parser.isBroken) break
  }
  parser.end()
}

/**
 * Whether CR alone ends rows, because the first line end outside of quotes is one, and all blocks. A quote counts at the
 * beginning of a cell.
 */
export async function findLineEnd(
  blocks: AsyncIterable<Buffer>,
  delimiters: readonly string[],
): Promise<{ hasCr: boolean; blocks: AsyncIterable<Buffer> }> {
  const iterator = blocks[Symbol.asyncIterator]()
  const read: Buffer[] = []
  for (let length = 0; ; ) {
    const { value, done } = await iterator.next()
    if (!done) read.push(value)
    length += value?.length ?? 0
    const hasCr = isCrFirst(Buffer.concat(read), delimiters, done === true)
    if (!done && hasCr === undefined && length < maxRecordBytes) continue
    return {
      hasCr: hasCr === true,
      blocks: prepend(read, { [Symbol.asyncIterator]: () => iterator }),
    }
  }
}

/** Undefined if there is none, or if it may go on. */
function isCrFirst(
  bytes: Buffer,
  delimiters: readonly string[],
  isAll: boolean,
): boolean | undefined {
  let isStart = true // of a cell
  let isQuoted = false
  let isOpen = false
  for (let at = 0; at < bytes.length; at += 1) {
    const character = String.fromCharCode(bytes.readUInt8(at))
    if (character === '"' && (isStart || isQuoted)) {
      isStart = false
      isQuoted = true
      isOpen = !isOpen
    }
    if (isOpen) continue
    if (character === '\n') return false
    if (character === '\r')
      return at + 1 < bytes.length || isAll ? bytes[at + 1] !== 0x0a : undefined
    isStart = delimiters.includes(character)
    if (isStart) isQuoted = false
  }
  return undefined
}

function closingQuote(text: string, start: number): number {
  let close = text.indexOf('"', start)
  while (close !== -1 && text[close + 1] === '"') close = text.indexOf('"', close + 2)
  return close
}

/** The number of cells, less the empty ones at the end. */
export function widthOf(row: Cells): number {
  let width = row.length
  while (width > 0 && row[width - 1] === undefined) width -= 1
  return width
}

function plainCell(cell: string): string | undefined {
  return trimWhiteSpace(cell) || undefined
}

const afterQuote = problem(
  'input',
  'A cell begins with a quote, and goes on after the closing one. Write a quote in such a cell as ""',
)

const carriageReturn = problem(
  'input',
  'A carriage return is in a cell without quotes. Write the cell in quotes',
)
