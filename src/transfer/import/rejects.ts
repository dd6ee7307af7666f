import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { tableCell } from '../../plant/records.js'
import { unwritable } from '../../platform/atomic-file.js'
import { errorValue, systemCode, usageError } from '../../platform/errors.js'
import { syncFolder } from '../../platform/files.js'
import type { Cell, FormatReader, RawRecord } from '../formats/chunk.js'
import { rejectNames } from '../formats/header.js'
import type { RejectsPosition } from './checkpoint.js'

/** In a rejects file, each has its line and the reason: a table or NDJSON, which an import takes back. */
export interface RejectedRecord {
  line: number
  /** Index in a JSON array. */
  element: number | undefined
  raw: RawRecord
  error: number
  message: string
}

/**
 * The file of the rejected records, which is created with the first of them. Rows are written at the position that the
 * checkpoint gives them: a run that was killed before its commit has written the same ones there. Whatever else is there
 * is somebody's work, such as corrections, and stays.
 */
export class Rejects {
  readonly #path: string
  /** Where an interrupted import has left the file; undefined for a new file. */
  readonly left: RejectsPosition | undefined
  #fd: number | undefined
  /** Why it could not be created. */
  #failure: unknown

  /** Throws `unwritable` if no file can be created in the directory. */
  static assertCreatable(path: string): void {
    attempt(path, () => {
      fs.lstatSync(path, { throwIfNoEntry: false }) // for a name that is too long
      fs.accessSync(`${dirname(path)}/.`, fs.constants.W_OK) // with the dot, for what is no directory
    })
  }

  /** Throws `usage` for a file that exists, and is not as it was left. */
  constructor(path: string, left: RejectsPosition | undefined) {
    this.#path = path
    const stats = attempt(path, () => fs.lstatSync(path, { throwIfNoEntry: false }))
    this.left = stats && left
    if (!stats) return
    if (!left) throw alreadyExists(path)
    if (!stats.isFile()) throw changed(path)
    const fd = attempt(path, () => fs.openSync(path, fs.constants.O_RDWR | noFollow))
    this.#fd = fd
    if (identityOf(fd) === left.file && fs.fstatSync(fd).size >= left.length) return
    this.close()
    throw changed(path)
  }

  /**
   * The position after these bytes, for which a missing file is created. What keeps it from that is thrown by `write`,
   * when the checkpoint has said whether another process goes on with the same file.
   */
  positionAfter(before: RejectsPosition | undefined, bytes: Buffer): RejectsPosition | undefined {
    if (bytes.length === 0) return before
    try {
      this.#fd ??= create(this.#path)
    } catch (error) {
      this.#failure = error
      return before
    }
    return { file: identityOf(this.#fd), length: (before?.length ?? 0) + bytes.length }
  }

  /** All is on disk when it returns. Call it when the checkpoint is saved, and commit afterwards. */
  write(before: RejectsPosition | undefined, bytes: Buffer): void {
    if (this.#failure !== undefined) throw this.#failure
    const fd = this.#fd
    if (fd === undefined || bytes.length === 0) return
    const start = before?.length ?? 0
    attempt(this.#path, () => {
      const there = Buffer.alloc(bytes.length)
      const length = fs.readSync(fd, there, 0, bytes.length, start)
      const isSame = there.subarray(0, length).equals(bytes.subarray(0, length))
      if (!isSame || fs.fstatSync(fd).size < start) throw changed(this.#path)
      for (let at = 0; at < bytes.length; )
        at += fs.writeSync(fd, bytes, at, bytes.length - at, start + at)
      fs.fdatasyncSync(fd)
    })
  }

  close(): void {
    if (this.#fd !== undefined) fs.closeSync(this.#fd)
    this.#fd = undefined
  }
}

function create(path: string): number {
  return attempt(path, () => {
    try {
      const fd = fs.openSync(path, 'wx+', 0o600) // a link is a file that exists
      syncFolder(dirname(path))
      return fd
    } catch (error) {
      throw systemCode(error) === 'EEXIST' ? alreadyExists(path) : error
    }
  })
}

function identityOf(fd: number): string {
  const { dev, ino } = fs.fstatSync(fd, { bigint: true })
  return `${dev}:${ino}`
}

/** Windows has no such flag. */
const noFollow = fs.constants.O_NOFOLLOW ?? 0

const anotherFile = 'Choose another file with --rejects'

function alreadyExists(path: string): Error {
  return usageError(`${path} already exists, and would be overwritten`, anotherFile)
}

function changed(path: string): Error {
  return usageError(
    `${path} is not as the interrupted import has left it, and would be overwritten`,
    anotherFile,
  )
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
