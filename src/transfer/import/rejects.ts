import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { tableCell } from '../../plant/records.js'
import { assertOwnFile, descriptorOf, isWrittenInPlace, openInPlace, unwritable } from '../../platform/atomic-file.js'
import { errorValue, malformed } from '../../platform/errors.js'
import { syncFolder } from '../../platform/files.js'
import type { Cell, FormatReader, RawRecord } from '../formats/chunk.js'
import { rejectNames } from '../formats/header.js'

export interface RejectedRecord {
  line: number
  /** index in a JSON array */
  element: number | undefined
  raw: RawRecord
  error: number
  message: string
}

/** The rejected records, each with its line and the reason: a table or NDJSON, which an import takes back. */
export class Rejects {
  readonly path: string
  readonly #fd: number
  /** not `isWrittenInPlace` */
  readonly #isFile: boolean
  /** opened by the shell, and not closed here */
  readonly #isGiven: boolean
  /** whether this run has written to it: a pipe has no header of an earlier run */
  #isBegun = false

  /** @param length of the file of an earlier run, which goes on; without it, there must be none */
  static async open(path: string, length: number | undefined, signal: AbortSignal): Promise<Rejects> {
    const stats = fs.statSync(path, { throwIfNoEntry: false })
    // Its writes block: it is only opened when a pipe has a reader.
    const pipe = stats?.isFIFO() ? await openInPlace(path, signal) : undefined
    try {
      return new Rejects(path, stats, length)
    } finally {
      if (pipe !== undefined) fs.closeSync(pipe)
    }
  }

  private constructor(path: string, stats: fs.Stats | undefined, length: number | undefined) {
    this.path = path
    const given = descriptorOf(path, stats)
    this.#isGiven = given !== undefined
    this.#isFile = !isWrittenInPlace(path, stats)
    this.#fd = given ?? this.#attempt(() => fs.openSync(path, 'a', 0o600))
    try {
      if (!this.#isFile) return
      const opened = fs.fstatSync(this.#fd)
      assertOwnFile(path, opened, 'Choose another file with --rejects')
      if (length === undefined && opened.size > 0)
        throw malformed(
          `${path} already exists, and would be overwritten`,
          'Choose another file with --rejects, or remove it',
        )
      if (!stats) syncFolder(dirname(fs.realpathSync(path)))
      this.#cut(length ?? 0)
    } catch (error) {
      fs.closeSync(this.#fd)
      throw error
    }
  }

  #cut(length: number): void {
    if (!this.#isFile) return
    const { size } = fs.fstatSync(this.#fd)
    if (size < length)
      throw malformed(
        `${this.path} is shorter than it was when the import was interrupted`,
        'Restore the file, or add --restart, and --if-exists same for what is stored',
      )
    if (size > length) this.#attempt(() => fs.ftruncateSync(this.#fd, length))
  }

  /** Cuts the file to the length of a checkpoint, appends, and returns the new length when all is on disk. */
  append(length: number, rejected: readonly RejectedRecord[], reader: FormatReader): number {
    this.#cut(length)
    if (rejected.length === 0) return length
    const head = length === 0 || (!this.#isFile && !this.#isBegun) ? headOf(reader) : ''
    this.#isBegun = true
    const bytes = Buffer.from(head + rejected.map((record) => `${recordOf(record, reader)}\n`).join(''))
    this.#attempt(() => {
      fs.writeFileSync(this.#fd, bytes)
      if (this.#isFile) fs.fdatasyncSync(this.#fd)
    })
    return length + bytes.length
  }

  /** Removes an empty file. */
  close(): void {
    const isEmpty = this.#isFile && fs.fstatSync(this.#fd).size === 0
    if (!this.#isGiven) fs.closeSync(this.#fd)
    if (isEmpty) fs.rmSync(fs.realpathSync(this.path))
  }

  #attempt<T>(action: () => T): T {
    try {
      return action()
    } catch (error) {
      throw unwritable(`The rejects file ${this.path}`, error, 'Choose another file with --rejects, or free some space')
    }
  }
}

/** The rejected records of inputs are in one file. */
export function assertSameLayout(reader: FormatReader, first: FormatReader, name: string): void {
  if (headOf(reader) === headOf(first)) return
  const what = `The format or the header of ${name} differs, so its rejected records need a file of their own`
  throw malformed(what, 'Import it alone, with another --rejects')
}

function headOf({ header, delimiter = ',' }: FormatReader): string {
  if (!header) return ''
  const names = header.kept.map((column) => header.names[column] || undefined)
  return `\ufeff${rowOf([...rejectNames.slice(0, 2), ...names], delimiter)}\n`
}

function recordOf({ line, raw, error, message }: RejectedRecord, { header, delimiter = ',' }: FormatReader): string {
  if (typeof raw === 'string') return lineOf(line, message, raw, error === errorValue('malformed'))
  const kept = header?.kept.filter((column) => column < raw.length).map((column) => raw[column]) ?? []
  return rowOf([String(line), message, ...kept, ...raw.slice(header?.names.length)], delimiter)
}

function rowOf(cells: readonly Cell[], delimiter: string): string {
  const texts = cells.map((cell) => (typeof cell === 'object' ? cell.text || undefined : cell))
  return texts.map((text) => (text === undefined ? '' : tableCell(text, delimiter))).join(delimiter)
}

/** The members of the object stay as they are, except those that an earlier import has added. */
function lineOf(line: number, message: string, raw: string, isBroken: boolean): string {
  const start = `{"rejected_line":${line},"rejected_reason":${JSON.stringify(message)}`
  const text = raw.replace(/[\r\n]/g, ' ').trim()
  if (isBroken || !text.startsWith('{')) return `${start}${text && `,"rejected_text":${JSON.stringify(text)}`}}`
  const members = text.slice(1, -1).replace(addedMembers, '').trim()
  return `${start}${members && `,${members}`}}`
}

const addedMembers =
  /^"rejected_line":\d+,"rejected_reason":"(?:[^"\\]|\\.){0,2000}",?(?:"rejected_text":"(?:[^"\\]|\\.){0,2000}",?)?/
