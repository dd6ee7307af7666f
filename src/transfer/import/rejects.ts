import * as fs from 'node:fs'
import { dirname, join } from 'node:path'
import { tableCell } from '../../plant/records.js'
import { assertOwnFile, createFile, unwritable } from '../../platform/atomic-file.js'
import { errorValue, systemCode, usageError } from '../../platform/errors.js'
import type { Cell, FormatReader, RawRecord } from '../formats/chunk.js'
import { rejectNames } from '../formats/header.js'
import type { RejectsPosition } from './checkpoint.js'

export interface RejectedRecord {
  line: number
  /** Index in a JSON array. */
  element: number | undefined
  raw: RawRecord
  error: number
  message: string
}

/**
 * The file of the rejected records. It is there, and its identity in the checkpoint, before the first of them: a new file
 * has the name of a draft, which is that of the import, until the checkpoint is saved. Rows are written at the position
 * that the checkpoint gives them: a run that was killed before its commit has written the same ones there. Whatever else
 * is there is somebody's work, such as corrections, and stays.
 */
export class Rejects {
  readonly #path: string
  readonly #fd: number
  /** Until `publish`, of a new file. */
  #draft: string | undefined
  /** Where an interrupted import has left it, or its beginning. */
  readonly start: RejectsPosition

  /**
   * Throws `usage` for a file that this import has not left: even if it is empty, another one may write to it.
   *
   * @param importId letters, digits, "-" and "_"
   */
  constructor(path: string, importId: string, left: RejectsPosition | undefined) {
    this.#path = path
    const stats = attempt(path, () => fs.lstatSync(path, { throwIfNoEntry: false }))
    if (stats && (!left || !stats.isFile())) throw alreadyExists(path)
    if (stats) assertOwnFile(path, stats, anotherFile)
    else this.#draft = join(dirname(path), `.plants-${importId}.tmp`)
    const { O_RDWR, O_CREAT } = fs.constants
    const flags = O_RDWR | noFollow | (stats ? 0 : O_CREAT)
    this.#fd = attempt(path, () => fs.openSync(this.#draft ?? path, flags, 0o600))
    const file = identityOf(fs.fstatSync(this.#fd, { bigint: true }))
    const isLeft = left?.file === file && (stats?.size ?? 0) >= left.length
    this.start = isLeft ? left : { file, length: 0 }
    if (isLeft || !stats) return
    fs.closeSync(this.#fd)
    throw changed(path)
  }

  /** Gives a new file its name, when the checkpoint is saved. Throws `usage` if another one has it by now. */
  publish(): void {
    const draft = this.#draft
    if (draft === undefined) return
    attempt(this.#path, () => {
      try {
        createFile(draft, this.#path)
      } catch (error) {
        // The same import, in another process, may have been faster.
        const there = fs.lstatSync(this.#path, { bigint: true, throwIfNoEntry: false })
        if (!there || identityOf(there) !== this.start.file)
          throw systemCode(error) === 'EEXIST' ? alreadyExists(this.#path) : error
      }
      fs.rmSync(draft, { force: true })
    })
    this.#draft = undefined
  }

  /** All is on disk when it returns. Call it when the checkpoint is saved, and commit afterwards. */
  write(start: number, bytes: Buffer): void {
    if (bytes.length === 0) return
    const fd = this.#fd
    attempt(this.#path, () => {
      const there = Buffer.alloc(bytes.length)
      const length = fs.readSync(fd, there, 0, bytes.length, start)
      const isSame = there.subarray(0, length).equals(bytes.subarray(0, length))
      const isIntact = isSame && fs.fstatSync(fd).size >= start
      if (!isIntact) throw changed(this.#path)
      for (let at = 0; at < bytes.length; )
        at += fs.writeSync(fd, bytes, at, bytes.length - at, start + at)
      fs.fdatasyncSync(fd)
    })
  }

  get isEmpty(): boolean {
    return fs.fstatSync(this.#fd).size === 0
  }

  /** Removes a file without records. */
  close(): void {
    const { isEmpty } = this
    fs.closeSync(this.#fd)
    if (isEmpty) fs.rmSync(this.#draft ?? this.#path, { force: true })
  }
}

function identityOf({ dev, ino }: fs.BigIntStats): string {
  return `${dev}:${ino}`
}

/** Windows has no such flag. */
const noFollow = fs.constants.O_NOFOLLOW ?? 0

const anotherFile = 'Choose another file with --rejects'

function alreadyExists(path: string): Error {
  return usageError(`${path} already exists, and would be overwritten`, anotherFile)
}

function changed(path: string): Error {
  const what = `${path} is not as the import has left it, and would be overwritten`
  return usageError(what, anotherFile)
}

function attempt<T>(path: string, action: () => T): T {
  try {
    return action()
  } catch (error) {
    throw unwritable(`The rejects file ${path}`, path, error, anotherFile)
  }
}

/** Throws `usage` if the rejected records of both inputs cannot be in one file. */
export function assertSameLayout(reader: FormatReader, first: FormatReader, name: string): void {
  if (rejectsHeader(reader) === rejectsHeader(first)) return
  const what = `The format or the header of ${name} differs, so its rejected records need a file of their own`
  throw usageError(what, 'Import it alone, with another --rejects')
}

/** With a byte order mark, for spreadsheets. */
export function rejectsHeader({ header, delimiter = ',' }: FormatReader): string {
  if (!header) return ''
  const names = header.repeated.map((column) => header.names[column] || undefined)
  return `\ufeff${rowOf([...rejectNames.slice(0, 2), ...names], delimiter)}\n`
}

export function rejectsRow(
  { line, raw, error, message }: RejectedRecord,
  { header, delimiter = ',' }: FormatReader,
): string {
  if (typeof raw === 'string') return lineOf(line, message, raw, error === errorValue('input'))
  const repeated = header?.repeated.filter((column) => column < raw.length) ?? []
  const cells = repeated.map((column) => raw[column])
  const surplus = raw.slice(header?.names.length)
  return `${rowOf([String(line), message, ...cells, ...surplus], delimiter)}\n`
}

/** A bad cell has no quotes, so that it is rejected again unless it is corrected. */
function rowOf(cells: readonly Cell[], delimiter: string): string {
  const texts = cells.map((cell) => {
    if (cell === undefined) return ''
    return typeof cell === 'object' ? cell.text : tableCell(cell, delimiter)
  })
  return texts.join(delimiter)
}

/** The members of the object stay as they are, except those that an earlier import has added. */
function lineOf(line: number, message: string, raw: string, isBroken: boolean): string {
  const start = `{"rejected_line":${line},"rejected_reason":${JSON.stringify(message)}`
  const text = raw.replace(/[\r\n]/g, ' ').trim()
  if (isBroken || !text.startsWith('{'))
    return `${start}${text && `,"rejected_text":${JSON.stringify(text)}`}}\n`
  const members = text.slice(1, -1).replace(addedMembers, '').trim()
  return `${start}${members && `,${members}`}}\n`
}

const addedMembers =
  /^"rejected_line":\d+,"rejected_reason":"(?:[^"\\]|\\.){0,2000}",?(?:"rejected_text":"(?:[^"\\]|\\.){0,2000}",?)?/
