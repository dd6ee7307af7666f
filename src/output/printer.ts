import { type Column, createRecordWriter, type FormatName } from '../formats/write.js'
import { escapeControlCharsInLines } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import { writeStdout } from './output.js'

export interface Layout<Row> {
  /** The fields that are printed, by default all. */
  fields?: readonly Column[] | undefined
  /** Lays out rows as text. Without it, text is NDJSON. */
  text?: (rows: Row[]) => string
  /** How many rows are laid out together at first, because they set the widths of a table. */
  firstRows?: number
}

/** Prints rows as they come. Its methods throw what `writeStdout` throws. */
export class Printer<Row extends object> {
  readonly #formatText: ((rows: Row[]) => string) | undefined
  readonly #writer: ReturnType<typeof createRecordWriter>
  /** Whether cells may bring control characters to a terminal. JSON and `text` escape them. */
  readonly #isRaw: boolean
  /** How many rows must be there before any is printed; 0 once rows were printed. */
  #neededRows: number
  #waitingRows: Row[] = []

  constructor(
    private readonly io: Io,
    format: 'text' | FormatName,
    { fields, text, firstRows = 0 }: Layout<Row> = {},
  ) {
    this.#formatText = format === 'text' ? text : undefined
    this.#isRaw = io.stdout.isTerminal && (format === 'csv' || format === 'tsv')
    this.#writer = createRecordWriter(format === 'text' ? 'ndjson' : format, fields)
    this.#neededRows = this.#formatText ? firstRows : 0
  }

  async printRows(page: Row[]): Promise<void> {
    const rows = [...this.#waitingRows, ...page]
    const isEnough = rows.length >= this.#neededRows
    this.#waitingRows = isEnough ? [] : rows
    if (isEnough) await this.#print(rows)
  }

  async end(): Promise<void> {
    if (this.#waitingRows.length > 0) await this.#print(this.#waitingRows)
    if (!this.#formatText) await this.#write(this.#writer.end())
  }

  /** Prints all pages, and returns the number of their rows. */
  async printAll(pages: Iterable<Row[]> | AsyncIterable<Row[]>): Promise<number> {
    let count = 0
    for await (const page of pages) {
      await this.printRows(page)
      count += page.length
    }
    await this.end()
    return count
  }

  async #print(rows: Row[]): Promise<void> {
    this.#neededRows = 0
    await this.#write(this.#formatText ? this.#formatText(rows) : this.#writer.add(rows))
  }

  async #write(text: string): Promise<void> {
    if (text !== '')
      await writeStdout(this.io, this.#isRaw ? escapeControlCharsInLines(text) : text)
  }
}
