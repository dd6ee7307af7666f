/*
 * The types that all readers of formats share. `openFormat` turns a `FormatInput` into a
 * `FormatReader`, which yields records as they are written: the rows of a table, or JSON values. It
 * knows no field of a plant. Where a field decides, the reader asks a `HeaderFinder`.
 */
import type { FormatName } from './write.js'

export interface FormatOptions {
  /** The format of a text; undefined if it is detected. */
  format?: FormatName | undefined
  /** The key of the outermost JSON object that holds the list. */
  key?: string | undefined
  /** The name or the number of the sheet of a workbook. */
  sheet?: string | undefined
  /** A label of the Encoding Standard, a name of iconv-lite, or the number of a code page. */
  encoding?: string | undefined
  /** The character between the cells of a table; undefined if it is detected. */
  delimiter?: string | undefined
  /** False if a quote is an ordinary character in a table. */
  quotes?: boolean | undefined
  /** The names of the columns of a table without a header. With them, the input is a table. */
  columns?: readonly string[] | undefined
}

/** An input whose format is not known yet. */
export interface FormatInput {
  /** The name of the file, for messages. */
  name: string
  /** The first block. */
  head: Buffer
  /** All blocks, with the first one. */
  blocks: AsyncIterable<Buffer>
  /** Whether the input is a pipe, for example, which is not examined before it is imported. */
  isReadOnce?: boolean
  signal: AbortSignal
}

/** An input whose format is known, and whose records can be read. */
export type FormatReader = TableReader | JsonReader

export interface TableReader {
  type: 'table'
  /** The first rows, at most 20. One of them may be the header. */
  head: readonly Row[]
  /** All rows with a value, in batches. */
  batches: AsyncGenerator<readonly Row[]>
  /** The first rows of each sheet that may have the records; of a text, its first rows. */
  heads: readonly TableHead[]
  /** What a table of text has. */
  delimiter?: string
  /** Parses a row of text again. */
  parseRow?(text: string): Cells
  /** What a workbook has. */
  workbook?: WorkbookFacts
}

export interface WorkbookFacts {
  /** The sheet that is read. */
  sheet: string
  /** All sheets, as a message lists them: in quotes, and whether they are hidden. */
  sheets: readonly string[]
  /** Another sheet that has the columns, too. It is not read. */
  otherSheet: string | undefined
  /** The merged cells, which are known when the rows were read to their end. */
  mergedCells: { readonly firstRange?: string }
}

/** The first rows of a table or a sheet, at most 20. */
export interface TableHead {
  rows: readonly Cells[]
  sheet?: string
}

export interface JsonReader {
  type: 'json'
  /** The first values. */
  head: readonly JsonValue[]
  /** All values, in batches. */
  batches: AsyncGenerator<readonly JsonValue[]>
}

/** Finds the header of a table, because only who knows the needed columns can tell it. */
export interface HeaderFinder {
  /** @returns undefined if no row has the needed columns */
  findHeader(rows: readonly Cells[]): HeaderLocation | undefined
  /** Rates how much the first rows of a sheet look like a list. */
  rateTable(rows: readonly Cells[]): number
}

export interface HeaderLocation {
  /** The index of the header among the rows; -1 if an option names the columns. */
  row: number
  /**
   * What shows where the columns are: the names in the row, the numbers of an option, so that the
   * row is only guessed to be the header, or the names of an option.
   */
  source: 'names' | 'numbers' | 'option'
  /** The number of columns. */
  width: number
  /** The indexes of the columns that are read. */
  readColumns: readonly number[]
}

/** A row of a table. */
export interface Row {
  cells: Cells
  /** The line in which the row begins; in a sheet, the number of the row. */
  line: number
  /** The row as it is written; undefined in a sheet. */
  text: string | undefined
  /** How many lines the row has. */
  lineCount: number
  /** The length of the row, in UTF-16 units. */
  characters: number
  /** Whether the row of a sheet has cells to the right of the header, which are ignored. */
  hasIgnoredCells: boolean
}

/** The cells of a row of a workbook are a sparse array: it lacks those that are not saved. */
export type Cells = readonly Cell[]

/** The string of a cell, or undefined if the cell is empty. */
export type Cell = string | undefined | UnusableCell

/** A cell whose value cannot be used. */
export class UnusableCell {
  constructor(
    /** The string of the cell in the rejects file. */
    readonly text: string,
    /** The end of a sentence, such as "is the error value #N/A". */
    readonly reason: string,
    /** Whether a formula has no value, which a spreadsheet would compute and save. */
    readonly isUnsavedFormula = false,
  ) {}
}

/** A JSON value as it is written. The text is null if it is too large. */
export interface JsonValue {
  text: string | null
  /** The line in which the value begins. */
  line: number
}

/** The header of a table is among its first rows. */
export const maxHeadRows = 20

/** A chunk whose ids ascend, or a batch of values, is full at so many records or UTF-16 units. */
export const maxBatchRecords = 4000
export const maxBatchCharacters = 260_000
