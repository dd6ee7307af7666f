/*
 * Writes the file of `--rejects`, which gets the rejected records with the reasons. Like its input,
 * the file is a table or NDJSON, so that a person can correct the records and import the file.
 *
 * The records are written under a temporary name next to the file, which gets its name when it is
 * complete. So a file with this name never lacks a record, and an import that was killed leaves
 * none: the same command runs again, and writes all of them.
 */
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import {
  createUsageError,
  describeReason,
  fileInFolderHint,
  getSystemCode,
  PlantsError,
} from '../errors.js'
import type { RecordReader, RowsReader } from '../fields/open.js'
import { isRejectsName, rejectColumns } from '../fields/rejects-names.js'
import { type Cell, UnusableCell } from '../formats/reader.js'
import { findNamedFormat, formatTableCell, spreadsheetError } from '../formats/write.js'
import { parseJson } from '../plant/json.js'
import { AtomicFile, toWriteError } from '../platform/atomic-file.js'
import type { RejectedRecord } from './outcomes.js'

const otherFileHint = 'Choose another file with --rejects'

export class RejectsFile {
  #file: AtomicFile | undefined
  /** Whether the file has its name. */
  isComplete = false

  /**
   * Creates no file yet.
   *
   * @throws {PlantsError} `usage` if the file exists, or `unwritable` if its directory cannot have
   *   it
   */
  constructor(readonly path: string) {
    const stats = this.#explainErrors(() => {
      fs.accessSync(`${dirname(path)}/`, fs.constants.W_OK)
      return fs.lstatSync(path, { throwIfNoEntry: false })
    })
    if (stats?.isDirectory()) throw createUsageError(`${path} is a directory`, fileInFolderHint)
    if (stats)
      throw createUsageError(
        `${path} already exists, and would be overwritten`,
        `${otherFileHint}, or rename this one`,
      )
  }

  /** Appends the rejected records of a chunk. */
  append(rejections: readonly RejectedRecord[], reader: RecordReader): void {
    if (rejections.length === 0) return
    const header = this.#file === undefined ? formatHeader(reader) : ''
    const file = this.#file ?? this.#explainErrors(() => new AtomicFile(this.path))
    this.#file = file
    try {
      fs.writeFileSync(file.fd, header + formatRecords(rejections, reader))
    } catch (error) {
      this.#file = undefined
      throw createUnfinishedError(this.path, file.path, error)
    }
  }

  /**
   * Gives the file its name, if it has a record.
   *
   * @throws {PlantsError} `unwritable`, for example if the name is taken. Then the records stay in
   *   the file with the temporary name, as after an error of `append`.
   */
  finish(): void {
    const file = this.#file
    if (file === undefined) return
    this.#file = undefined
    try {
      file.commitNew()
    } catch (error) {
      throw createUnfinishedError(this.path, file.path, error)
    }
    file.discard()
    this.isComplete = true
  }

  /** Deletes the temporary file. */
  discard(): void {
    this.#file?.discard()
  }

  #explainErrors<T>(action: () => T): T {
    try {
      return action()
    } catch (error) {
      throw toWriteError(`The rejects file ${this.path}`, this.path, error, otherFileHint)
    }
  }
}

function createUnfinishedError(path: string, temporaryPath: string, cause: unknown): PlantsError {
  const message =
    getSystemCode(cause) === 'EEXIST'
      ? `Another program has written ${path} during the import`
      : `The rejects file ${path} could not be written: ${describeReason(cause)}`
  return new PlantsError('unwritable', message, {
    hint: `The rejected records are in ${temporaryPath}: rename it`,
    cause,
  })
}

/** Formats rejected records as rows of a table, or as lines of NDJSON, with their reasons. */
function formatRecords(rejections: readonly RejectedRecord[], reader: RecordReader): string {
  const lines =
    reader.type === 'table' ? formatRows(rejections, reader) : rejections.map(formatJsonLine)
  return lines.join('')
}

function formatRows(rejections: readonly RejectedRecord[], reader: RowsReader): string[] {
  const { delimiter } = reader
  const { names = [], columns } = reader.header ?? {}
  const stringColumns = [...(columns?.get('name') ?? []), ...(columns?.get('tag') ?? [])]
  const areRejectsNames = names.map(isRejectsName)
  return rejections.map(({ line, raw, message }) => {
    const cells = Array.from(reader.readCells(raw), (cell, column) =>
      stringColumns.includes(column) ? markUnusable(cell) : cell,
    ).filter((_, column) => !areRejectsNames[column])
    return formatRow([String(line), message, ...cells], delimiter)
  })
}

/**
 * Replaces the text of a name or a tag that was rejected by an error value, unless it is one. Any
 * other text would be a name when the rejects file is imported, such as the number `1.5E+19`, which
 * has lost digits.
 */
function markUnusable(cell: Cell): Cell {
  const isUnusable = cell instanceof UnusableCell && !spreadsheetError.test(cell.text)
  return isUnusable ? new UnusableCell('#NUM!', cell.reason) : cell
}

/** Formats the header of a table, with a byte order mark for spreadsheets. NDJSON has none. */
function formatHeader(reader: RecordReader): string {
  if (reader.type === 'json' || !reader.header) return ''
  const names = reader.header.names.filter((name) => !isRejectsName(name))
  return `\ufeff${formatRow([...rejectColumns, ...names], reader.delimiter)}`
}

/**
 * A rejects file has one header, so all inputs of an import must have the same one.
 *
 * @param name the name of the input, for the message
 * @throws {PlantsError} `usage` if the headers differ
 */
export function assertSameHeader(
  reader: RecordReader,
  firstReader: RecordReader,
  name: string,
): void {
  const [header, firstHeader] = [reader, firstReader].map(formatHeader)
  if (header === firstHeader) return
  throw createUsageError(
    `${name} has another header, so its rejected records need a file of their own`,
    'Import it with its own command and its own --rejects file',
  )
}

/**
 * A rejects file is of the same kind as its input, and an import of the file trusts its name.
 *
 * @throws {PlantsError} `usage` if the ending of the name means another kind
 */
export function assertRejectsName(path: string, reader: RecordReader): void {
  const isTable = reader.type === 'table'
  const tableFormat = isTable && reader.delimiter === '\t' ? 'tsv' : 'csv'
  const formats = isTable ? [undefined, 'csv', tableFormat] : [undefined, 'json', 'ndjson']
  if (formats.includes(findNamedFormat(path))) return
  throw createUsageError(
    `The rejected records of this input are written as ${isTable ? 'CSV' : 'NDJSON'}`,
    `Give the file a name such as rejected.${isTable ? 'csv' : 'ndjson'}`,
  )
}

/**
 * Formats a row of a table. A cell that was rejected, such as `#N/A`, is written without quotes, so
 * that an import rejects it again until somebody has corrected it. In quotes, it would be a name.
 */
function formatRow(cells: readonly Cell[], delimiter = ','): string {
  const fields = cells.map((cell) =>
    cell instanceof UnusableCell ? cell.text : cell && formatTableCell(cell, delimiter),
  )
  return `${fields.join(delimiter)}\n`
}

/**
 * Formats a line of NDJSON. An object keeps its members as they were written, except the members
 * that an earlier rejects file has added. A line that is no object becomes the string
 * `rejected_text`.
 */
function formatJsonLine({ line, raw, message }: RejectedRecord): string {
  const text = String(raw ?? '')
    .replace(/[\r\n]/g, ' ')
    .trim()
  const isObject = text.startsWith('{') && 'value' in parseJson(text)
  const members = isObject
    ? text.slice(1, -1).replace(membersOfRejectsFile, '').trim()
    : text && `"rejected_text":${JSON.stringify(text)}`
  const reason = JSON.stringify(message)
  return `{"rejected_line":${line},"rejected_reason":${reason}${members && `,${members}`}}\n`
}

const membersOfRejectsFile = /^"rejected_line":\d+,"rejected_reason":"(?:[^"\\]|\\.){0,2000}",?/
