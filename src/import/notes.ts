import type { Chunk } from '../fields/chunk.js'
import { formatOptions, nameColumns } from '../fields/column-answers.js'
import { maxUnreadNames } from '../fields/read-objects.js'
import { isRejectsName } from '../fields/rejects-names.js'
import { listNames } from '../formats/names.js'
import { groupDigits } from '../plant/plant.js'
import { shorten } from '../platform/escape.js'
import type { InputReader } from './inputs.js'

/**
 * Gathers notes about the inputs, of which the summary warns: data that is not read, and choices
 * that the reader has made because a file was not clear.
 */
export class InputNotes {
  /** The keys of JSON that are not read. */
  readonly otherFields = new Set<string>()
  /** The names of columns that are not read. */
  readonly otherColumns = new Set<string>()
  /** How many rows without an id, a name and a tag were left out. */
  #emptyRows = 0
  /** How many rows have cells to the right of the header, which are ignored. */
  #rowsWithIgnoredCells = 0
  readonly #sentences: string[] = []
  /** How many records without ids equal an earlier one. */
  readonly #repeatedRecords: number
  /** The last file with a note about a cell that has several lines. */
  #multilineFile: string | undefined

  constructor(repeatedRecords = 0) {
    this.#repeatedRecords = repeatedRecords
  }

  /** Notes the choices that the reader has made when it opened a file. */
  noteChoices(reader: InputReader, file: string): void {
    if (reader.type === 'json') return
    const { workbook, header } = reader
    for (const name of header?.unreadNames ?? []) addName(this.otherColumns, name)
    const { rowsAbove = 0, line } = header ?? {}
    if (rowsAbove > 0)
      this.#sentences.push(
        `The header is in line ${line} of ${file}. Not read above it: ${countRows(rowsAbove)}. ` +
          'If plants are there, move the header to line 1, and run the command again',
      )
    if (header?.guessedLine !== undefined) {
      const { guessedLine, names, columns } = header
      const options = formatOptions(nameColumns(names.length, columns))
      this.#sentences.push(
        `Line ${guessedLine} of ${file} is read as the header: ${listNames(names)}. ` +
          `If it is a plant, use ${options} instead of --map`,
      )
    }
    if (workbook?.otherSheet !== undefined) {
      const sheet = listNames([workbook.otherSheet])
      this.#sentences.push(
        `The sheet ${sheet} of ${file} has the columns, too. To import it, add --sheet ${sheet}`,
      )
    }
  }

  /** Notes the rows of a chunk that are not read as a person may expect. */
  noteRows(chunk: Chunk, reader: InputReader, file: string): void {
    this.#emptyRows += chunk.emptyRows
    this.#rowsWithIgnoredCells += chunk.rowsWithIgnoredCells
    for (const key of chunk.unreadKeys) addName(this.otherFields, key)
    this.#noteMultilineRow(chunk, reader, file)
  }

  /**
   * Notes the first cell of a TSV file that has several lines. Many programs write TSV without
   * quotes. A quote is then an ordinary character, and must not join several rows to one cell. A
   * rejects file always has quotes around a cell with several lines.
   */
  #noteMultilineRow({ multilineRow }: Chunk, reader: InputReader, file: string): void {
    if (multilineRow === undefined || reader.type === 'json' || reader.delimiter !== '\t') return
    if (this.#multilineFile === file || reader.header?.names.some(isRejectsName)) return
    this.#multilineFile = file
    this.#sentences.push(
      `${file}:${multilineRow}: A quoted cell spans several lines. ` +
        'If quotes are ordinary characters in this table, add --no-quotes',
    )
  }

  /** Notes what is known when a file was read to its end. */
  noteEnd(reader: InputReader, file: string): void {
    const range = reader.type === 'table' && reader.workbook?.mergedCells.firstRange
    if (range)
      this.#sentences.push(
        `${file} has merged cells, such as ${range}. Only the first cell of each has a value`,
      )
  }

  /** Lists the notes as sentences, without those about other names. */
  list(): string[] {
    const sentences: string[] = []
    if (this.#emptyRows > 0)
      sentences.push(`Skipped ${countRows(this.#emptyRows)} without an id, a name and a tag`)
    sentences.push(...this.#sentences)
    if (this.#rowsWithIgnoredCells > 0)
      sentences.push(
        `Ignored the cells to the right of the header in ${countRows(this.#rowsWithIgnoredCells)}`,
      )
    const count = groupDigits(this.#repeatedRecords)
    if (this.#repeatedRecords > 0)
      sentences.push(`Records that repeat an earlier one, each a plant of its own: ${count}`)
    return sentences
  }
}

function addName(names: Set<string>, name: string): void {
  if (names.size < maxUnreadNames) names.add(shorten(name))
}

function countRows(count: number): string {
  return `${groupDigits(count)} ${count === 1 ? 'row' : 'rows'}`
}
