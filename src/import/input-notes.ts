import type { Chunk } from '../formats/chunk.js'
import { isRejectsName, listNames } from '../formats/columns.js'
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
  #surplusRows = 0
  readonly #sentences: string[] = []
  /** The last file with a note about a cell that has several lines. */
  #multilineFile: string | undefined

  /** Notes the choices that the reader has made when it opened a file. */
  noteChoices({ otherSheet, header }: InputReader, file: string): void {
    const { rowsAbove = 0, line } = header ?? {}
    if (rowsAbove > 0)
      this.#sentences.push(
        `The header is in line ${line} of ${file}. Not read above it: ${countRows(rowsAbove)}. ` +
          'If plants are there, move the header to line 1, and run the command again',
      )
    if (header?.guessedLine !== undefined)
      this.#sentences.push(
        `Line ${header.guessedLine} of ${file} is read as the header: ${listNames(header.names)}. ` +
          'If it is a plant, use --columns id,name,tag instead of --map',
      )
    if (otherSheet !== undefined) {
      const sheet = listNames([otherSheet])
      this.#sentences.push(
        `The sheet ${sheet} of ${file} has the columns, too. To import it, add --sheet ${sheet}`,
      )
    }
  }

  /** Notes the rows of a chunk that are not read as a person may expect. */
  noteRows(chunk: Chunk, reader: InputReader, file: string): void {
    this.#emptyRows += chunk.emptyRows
    this.#surplusRows += chunk.surplusRows
    const names = reader.header ? this.otherColumns : this.otherFields
    for (const name of reader.fields.unreadNames) names.add(shorten(name))
    this.#noteMultilineRow(chunk, reader, file)
  }

  /**
   * Notes the first cell of a TSV file that has several lines. Many programs write TSV without
   * quotes. A quote is then an ordinary character, and must not join several rows to one cell. A
   * rejects file always has quotes around a cell with several lines.
   */
  #noteMultilineRow(
    { multilineRow }: Chunk,
    { delimiter, header }: InputReader,
    file: string,
  ): void {
    if (multilineRow === undefined || delimiter !== '\t') return
    if (this.#multilineFile === file || header?.names.some(isRejectsName)) return
    this.#multilineFile = file
    this.#sentences.push(
      `${file}:${multilineRow}: A quoted cell spans several lines. ` +
        'If quotes are ordinary characters in this table, add --no-quotes',
    )
  }

  /** Notes what is known when a file was read to its end. */
  noteEnd({ mergedCells }: InputReader, file: string): void {
    const range = mergedCells?.firstRange
    if (range !== undefined)
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
    if (this.#surplusRows > 0)
      sentences.push(
        `Ignored the cells to the right of the header in ${countRows(this.#surplusRows)}`,
      )
    return sentences
  }
}

function countRows(count: number): string {
  return `${groupDigits(count)} ${count === 1 ? 'row' : 'rows'}`
}
