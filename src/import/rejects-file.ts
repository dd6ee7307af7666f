/*
 * The file of `--rejects`.
 *
 * The rows of a chunk are saved in its checkpoint, and appended to the file after its commit (with
 * `--atomic`, before it). So the file never has a record that a resumed import may still create. A
 * run that is killed in between leaves the rows in its checkpoint, and the resumed run appends
 * them. What else is in the file stays.
 *
 * Two imports never share a file, although none of them holds a lock:
 *
 * - The first rows of a run create the file (O_EXCL). A file that appeared since the run began is
 *   not its own, which the checkpoint says from then on.
 * - A run may be killed when it has created the file, and before its checkpoint says so. So a
 *   resumed run also takes a file that is empty, or begins like its own rows. Another import may
 *   have created that file a moment ago, and be about to write to it. Therefore the first rows are
 *   appended (O_APPEND), so that the system decides which import is first, and then read back: an
 *   import whose rows are not at the beginning leaves the file to the other one.
 * - From then on, the checkpoint has the identity and the length of the file. Two processes with
 *   the same import would write the same rows to the same place.
 */
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { PlantsError, systemCode, unlessSystemError, usageError } from '../errors.js'
import type { Cell, FormatReader, RawRecord } from '../formats/chunk.js'
import { isRejectsName, rejectColumns } from '../formats/columns.js'
import { tableCell } from '../formats/write.js'
import { assertOwnFile, toWriteError } from '../platform/atomic-file.js'
import { syncFolder } from '../platform/files.js'
import type { Problem } from '../stores/change.js'
import type { RejectsFile } from './parse-checkpoint.js'

export interface RejectedRecord extends Problem {
  line: number
  raw: RawRecord
}

/**
 * Appends the rows that an interrupted run has left in its checkpoint. If they belong to another
 * file than `path`, and cannot be written there, such as on a full disk, they go to the new one.
 *
 * @param left what the checkpoint says of the file; undefined for a new import
 * @throws {PlantsError} `usage` for a file that this import has not left: even an empty one may be
 * that of another import
 */
export function openRejects(
  path: string | undefined,
  left: RejectsFile | undefined,
  header: string,
): RejectsFile | undefined {
  if (path === undefined) {
    if (left) appendRows(left, header, { isResumed: true })
    return undefined
  }
  if (exists(path)) {
    const isOwn = left?.path === path && left.length + left.rows.length > 0
    if (!isOwn) throw createOverwriteError(path, 'already exists')
    return appendRows(left, header, { isResumed: true })
  }
  const rows = left && left.path !== path ? appendToFormerFile(left, header) : left?.rows
  return appendRows({ path, length: 0, rows: rows ?? '' }, header, { isResumed: true })
}

/** Returns the rows that could not be written to the file of the interrupted run. */
function appendToFormerFile(left: RejectsFile, header: string): string {
  if (left.rows === '') return ''
  try {
    return appendRows(left, header, { isResumed: true }).rows
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    return left.rows
  }
}

function exists(path: string): boolean {
  return withWriteErrors(path, () => {
    fs.accessSync(`${dirname(path)}/`, fs.constants.W_OK)
    return fs.lstatSync(path, { throwIfNoEntry: false }) !== undefined
  })
}

/**
 * Writes the rows durably, and returns what the checkpoint is to say of the file from then on.
 *
 * @param options.isResumed whether an interrupted run may have created the file, and written some
 * of the rows
 * @throws {PlantsError} `usage` unless the file is as the import has left it
 */
export function appendRows(
  left: RejectsFile,
  header: string,
  { isResumed }: { isResumed: boolean },
): RejectsFile {
  const { path, length, rows } = left
  const isFirst = length === 0
  const bytes = Buffer.from(isFirst && rows !== '' ? header + rows : rows)
  if (length + bytes.length === 0) return left
  return withWriteErrors(path, () => {
    const isKnown = left.file !== undefined
    const fd = isKnown ? openFile(path) : createFile(path, isResumed)
    try {
      const stats = fs.fstatSync(fd)
      assertOwnFile(path, stats, anotherFile)
      const { dev, ino, size } = fs.fstatSync(fd, { bigint: true })
      const file = `${dev}:${ino}`
      const written = countWritten(fd, left, bytes)
      const isLeft = size === BigInt(length + written) && (left.file ?? file) === file
      if (!isLeft) throw createOverwriteError(path)
      // Others may have been able to read a file that was there.
      if ((stats.mode & 0o077) !== 0) fs.fchmodSync(fd, 0o600)
      writeRest(fd, bytes, written, length)
      if (isFirst) {
        assertFirst(fd, path, bytes)
        syncFolder(dirname(path))
      }
      return { path, file, length: length + bytes.length, rows: '' }
    } finally {
      fs.closeSync(fd)
    }
  })
}

// Windows has no O_NOFOLLOW.
const { O_RDWR, O_CREAT, O_EXCL, O_APPEND, O_NOFOLLOW = 0 } = fs.constants

function openFile(path: string): number {
  return fs.openSync(path, O_RDWR | O_NOFOLLOW)
}

function createFile(path: string, isResumed: boolean): number {
  const isExclusive = isResumed ? 0 : O_EXCL
  try {
    return fs.openSync(path, O_RDWR | O_NOFOLLOW | O_CREAT | O_APPEND | isExclusive, 0o600)
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
    assertOwnFile(path, fs.lstatSync(path), anotherFile)
    throw createOverwriteError(path, 'already exists')
  }
}

/** For the checkpoint of an import that could not write its rows to a file of another program. */
export function disownFile(left: RejectsFile): RejectsFile {
  return { ...left, file: '' }
}

/** Counts the bytes that an interrupted run has written. Throws `usage` for any other content. */
function countWritten(fd: number, { path, length }: RejectsFile, bytes: Buffer): number {
  const present = Buffer.alloc(bytes.length)
  const count = fs.readSync(fd, present, 0, bytes.length, length)
  if (bytes.compare(present, 0, count, 0, count) !== 0) throw createOverwriteError(path)
  return count
}

/** @param length of the file without the bytes, to which it is cut if they cannot be written */
function writeRest(fd: number, bytes: Buffer, written: number, length: number): void {
  let end = written
  try {
    while (end < bytes.length) {
      // Only a write without a position appends on every system.
      const position = length === 0 ? null : length + end
      end += fs.writeSync(fd, bytes, end, bytes.length - end, position)
    }
    fs.fdatasyncSync(fd)
  } catch (error) {
    // A part of a row would look like a row. What another program has appended stays.
    const isAtEnd = unlessSystemError(() => fs.fstatSync(fd).size) === length + end
    if (isAtEnd) unlessSystemError(() => fs.ftruncateSync(fd, length))
    throw error
  }
}

/** Throws `usage` if another import has written its rows before. */
function assertFirst(fd: number, path: string, bytes: Buffer): void {
  const present = Buffer.alloc(bytes.length)
  fs.readSync(fd, present, 0, bytes.length, 0)
  if (!present.equals(bytes))
    throw usageError(`${path} was written to by another program at the same time`, anotherFile)
}

const anotherFile = 'Choose another file with --rejects'

function createOverwriteError(path: string, why = 'is not as the import has left it'): Error {
  return usageError(`${path} ${why}, and would be overwritten`, anotherFile)
}

function withWriteErrors<T>(path: string, action: () => T): T {
  try {
    return action()
  } catch (error) {
    throw toWriteError(`The rejects file ${path}`, path, error, anotherFile)
  }
}

/** Formats the rows of a table, or lines of NDJSON. */
export function formatRejectedRows(
  rejections: readonly RejectedRecord[],
  { header, delimiter }: FormatReader,
): string {
  const names = header?.names ?? []
  const rows = rejections.map((record) => {
    const { line, raw, message } = record
    if (raw === null || typeof raw === 'string') return formatJsonLine(record, raw ?? '')
    const cells = raw.filter((_, column) => !isRejectsName(names[column] ?? ''))
    return formatRow([String(line), message, ...cells], delimiter)
  })
  return rows.join('')
}

/** Formats the header of a table, with a byte order mark for spreadsheets. NDJSON has none. */
export function formatRejectsHeader({ header, delimiter }: FormatReader): string {
  if (!header) return ''
  const names = header.names.filter((name) => !isRejectsName(name))
  return `\ufeff${formatRow([...rejectColumns, ...names], delimiter)}`
}

/** A bad cell has no quotes, so that it is rejected again unless it is corrected. */
function formatRow(cells: readonly Cell[], delimiter = ','): string {
  const fields = cells.map((cell) =>
    typeof cell === 'object' ? cell.text : cell && tableCell(cell, delimiter),
  )
  return `${fields.join(delimiter)}\n`
}

/** The members of the object stay as they are, except those that an earlier import has added. */
function formatJsonLine({ line, kind, message }: RejectedRecord, raw: string): string {
  const text = raw.replace(/[\r\n]/g, ' ').trim()
  const isObject = kind !== 'input' && text.startsWith('{')
  const members = isObject
    ? text.slice(1, -1).replace(addedMembers, '').trim()
    : text && `"rejected_text":${JSON.stringify(text)}`
  const reason = JSON.stringify(message)
  return `{"rejected_line":${line},"rejected_reason":${reason}${members && `,${members}`}}\n`
}

const addedMembers = /^"rejected_line":\d+,"rejected_reason":"(?:[^"\\]|\\.){0,2000}",?/
