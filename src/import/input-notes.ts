import type { Chunk, Header } from '../formats/chunk.js'
import { isRejectsName } from '../formats/columns.js'
import type { OpenInput } from './inputs.js'

/**
 * Gathers what an import notices in its inputs, and a person should know: what is not read, and
 * what the reader has chosen where a file is not clear. The summary warns of it.
 */
export class InputNotes {
  /** How many rows without an id, a name and a tag were left out. */
  emptyRows = 0
  /** How many rows have cells to the right of the header, which are ignored. */
  surplusRows = 0
  /** The keys of JSON that are not read. */
  readonly otherFields = new Set<string>()
  /** The names of columns that are not read. */
  readonly otherColumns = new Set<string>()
  /** The options that say how a file is read, but do not apply to its format. */
  readonly unusedOptions: { file: string; options: readonly string[] }[] = []
  /** The sheets that have the columns, too, and are not read. */
  readonly otherSheets: { file: string; sheet: string }[] = []
  /** The headers that no name confirms, because `--map` has numbers of columns. */
  readonly guessedHeaders: { file: string; header: Header }[] = []
  /** For each tab-separated file, the first row with a cell that has line ends. */
  readonly multilineRows: { file: string; line: number }[] = []

  /** Notes what the reader has chosen when it opened a file. */
  noteChoices({ otherSheet, header }: OpenInput, file: string): void {
    if (header?.guessedLine !== undefined) this.guessedHeaders.push({ file, header })
    if (otherSheet !== undefined) this.otherSheets.push({ file, sheet: otherSheet })
  }

  /** Notes the rows of a chunk that are not read as a person may expect. */
  noteRows(chunk: Chunk, reader: OpenInput, file: string): void {
    this.emptyRows += chunk.emptyRows
    this.surplusRows += chunk.surplusRows
    this.#noteMultilineRow(chunk, reader, file)
  }

  /**
   * Many programs write tab-separated values without quotes. A quote is then a character of the
   * text, and must not join rows to one cell. A rejects file always has quotes around such a cell.
   */
  #noteMultilineRow({ multilineRow }: Chunk, { delimiter, header }: OpenInput, file: string): void {
    if (multilineRow === undefined || delimiter !== '\t') return
    if (this.multilineRows.at(-1)?.file === file || header?.names.some(isRejectsName)) return
    this.multilineRows.push({ file, line: multilineRow })
  }
}
