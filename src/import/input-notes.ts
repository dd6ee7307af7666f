import type { Chunk, Header } from '../formats/chunk.js'
import { isRejectsName } from '../formats/columns.js'
import { shorten } from '../platform/escape.js'
import type { ImportPlan, InputReader } from './inputs.js'

/**
 * Gathers notes about the inputs, of which the summary warns: data that is not read, and choices
 * that the reader has made because a file was not clear.
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
  /** For each workbook, the first other sheet that has the columns, too. */
  readonly otherSheets: { file: string; sheet: string }[] = []
  /** The headers that no name confirms, because `--map` has numbers of columns. */
  readonly guessedHeaders: { file: string; header: Header }[] = []
  /** For each tab-separated file, the first row with a cell that has line ends. */
  readonly multilineRows: { file: string; line: number }[] = []

  /** Notes the choices that the reader has made when it opened a file. */
  noteChoices(reader: InputReader, file: string, plan: ImportPlan): void {
    const { otherSheet: sheet, header } = reader
    const options = listUnusedOptions(reader, plan)
    if (options.length > 0) this.unusedOptions.push({ file, options })
    if (header?.guessedLine !== undefined) this.guessedHeaders.push({ file, header })
    if (sheet !== undefined) this.otherSheets.push({ file, sheet })
  }

  /** Notes the rows of a chunk that are not read as a person may expect. */
  noteRows(chunk: Chunk, reader: InputReader, file: string): void {
    this.emptyRows += chunk.emptyRows
    this.surplusRows += chunk.surplusRows
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
    if (this.multilineRows.at(-1)?.file === file || header?.names.some(isRejectsName)) return
    this.multilineRows.push({ file, line: multilineRow })
  }
}

/**
 * Lists the options that do not apply to the format of an input. A rejects file is imported with
 * the options of its input, which may have had another format, so none is listed for it.
 */
function listUnusedOptions({ format, header, delimiter }: InputReader, plan: ImportPlan): string[] {
  if (header?.names.some(isRejectsName)) return []
  // An empty table has no header.
  const isTable = format === undefined
  const isWorkbook = isTable && delimiter === undefined
  const isTextTable = isTable && !isWorkbook
  const unusedOptions = {
    '--format': plan.format !== undefined && isWorkbook,
    '--sheet': plan.sheet !== undefined && !isWorkbook,
    '--encoding': plan.encoding !== undefined && isWorkbook,
    '--columns': plan.columns !== undefined && !isTable,
    // The cells of a TSV have a tab between them, whatever the option says.
    '--delimiter': plan.delimiter !== undefined && plan.delimiter !== delimiter,
    '--no-quotes': plan.quotes === false && !isTextTable,
  }
  return Object.entries(unusedOptions)
    .filter(([, isUnused]) => isUnused)
    .map(([option]) => option)
}
