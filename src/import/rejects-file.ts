/*
 * Writes the file of `--rejects`, which gets the rejected records with the reasons.
 *
 * The rows of a chunk are saved in its checkpoint, and appended to the file after its commit (with
 * `--atomic`, before it). So the file never has a record that a resumed import may still create. A
 * run that is killed between the two leaves the rows in its checkpoint, and the resumed run appends
 * them. The import never overwrites anything that it has not written itself.
 *
 * Two imports never share a file, although neither of them holds a lock:
 *
 * - The first rows of a run create the file (O_EXCL). If the file has appeared since the run began,
 *   it belongs to another program, and the checkpoint says so from then on.
 * - A run may be killed after it has created the file, and before its checkpoint says so. So a
 *   resumed run also takes a file that is empty, or begins like its own rows. Another import may
 *   have created that file a moment ago, and be about to write to it. Therefore the first rows are
 *   appended (O_APPEND), so that the system decides which import is first, and then they are read
 *   back: an import whose rows are not at the beginning leaves the file to the other import.
 * - From then on, the checkpoint has the identity and the length of the file. Two processes with
 *   the same import would write the same rows at the same offset.
 */
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { getSystemCode, PlantsError, unlessSystemError, usageError } from '../errors.js'
import type { Cell, FormatReader, RawRecord } from '../formats/chunk.js'
import { isRejectsName, rejectColumns } from '../formats/columns.js'
import { tableCell } from '../formats/write.js'
import { assertOwnFile, toWriteError } from '../platform/atomic-file.js'
import { syncFolder } from '../platform/files.js'
import type { Problem } from '../stores/change.js'
import type { RejectsFile } from './parse-checkpoint.js'

export interface RejectedRecord extends Problem {
  /** The line of the input in which the record begins. */
  line: number
  raw: RawRecord
}

/** Describes a rejected record for people: `list.csv:4: Invalid plant: the id must be …`. */
export function describeRejected(file: string, line: number, message: string): string {
  return `${file}:${line}: ${message}`
}

/**
 * Prepares the rejects file at the start of an import, and appends the rows that an interrupted run
 * has left in its checkpoint:
 *
 * - Without `--rejects`, to the file of the interrupted run, if it had one.
 * - If the file exists, to it. It must be the file of the interrupted run.
 * - If it does not exist, and the interrupted run had none, or its file was deleted, to a new file.
 * - If another file was named then, to that one. If they cannot be written there, because its disk
 *   is full for example, they go to the new file.
 *
 * @param path the file of `--rejects`; undefined without that option
 * @param saved what the checkpoint says about the file; undefined for a new import
 * @throws {PlantsError} `usage` for a file that this import has not left like this. Even an empty
 * file may be another import's.
 */
export function openRejects(
  path: string | undefined,
  saved: RejectsFile | undefined,
  header: string,
): RejectsFile | undefined {
  if (path === undefined) {
    if (saved) appendRows(saved, header, { isResumed: true })
    return undefined
  }
  if (exists(path)) {
    const hasWrittenFile = saved?.path === path && saved.length + saved.rows.length > 0
    if (!hasWrittenFile) throw createOverwriteError(path, 'already exists')
    return appendRows(saved, header, { isResumed: true })
  }
  const hadOtherFile = saved !== undefined && saved.path !== path
  const rows = hadOtherFile ? appendToOtherFile(saved, header) : (saved?.rows ?? '')
  return appendRows({ path, length: 0, rows }, header, { isResumed: true })
}

/** Returns the rows that could not be written to the file of the interrupted run. */
function appendToOtherFile(saved: RejectsFile, header: string): string {
  if (saved.rows === '') return ''
  try {
    return appendRows(saved, header, { isResumed: true }).rows
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    return saved.rows
  }
}

function exists(path: string): boolean {
  return withWriteErrors(path, () => {
    fs.accessSync(`${dirname(path)}/`, fs.constants.W_OK)
    return fs.lstatSync(path, { throwIfNoEntry: false }) !== undefined
  })
}

/**
 * Appends rows, and waits until they are on disk.
 *
 * @param saved what the checkpoint says about the file, with the rows to append
 * @param header the header, which precedes the first rows
 * @param options.isResumed whether an interrupted run may have created the file, and written some
 * of the rows
 * @returns what the next checkpoint says about the file
 * @throws {PlantsError} `usage` unless the file is as the import has left it
 */
export function appendRows(
  saved: RejectsFile,
  header: string,
  { isResumed }: { isResumed: boolean },
): RejectsFile {
  const { path, length, rows } = saved
  const isFirst = length === 0
  const bytes = Buffer.from(isFirst && rows !== '' ? header + rows : rows)
  if (length + bytes.length === 0) return saved
  return withWriteErrors(path, () => {
    const isKnown = saved.file !== undefined
    const fd = isKnown ? openFile(path) : createFile(path, isResumed)
    try {
      const { identity, writtenBytes } = checkFile(fd, saved, bytes)
      writeRemainder(fd, bytes, writtenBytes, length)
      if (isFirst) {
        assertFirst(fd, path, bytes)
        syncFolder(dirname(path))
      }
      return { path, file: identity, length: length + bytes.length, rows: '' }
    } finally {
      fs.closeSync(fd)
    }
  })
}

/**
 * Makes sure that the file belongs to this user and is as the import has left it, and that nobody
 * else can read it.
 *
 * @param bytes the rows to append, of which an interrupted run may have written the beginning
 */
function checkFile(fd: number, saved: RejectsFile, bytes: Buffer) {
  const { path, length } = saved
  const stats = fs.fstatSync(fd)
  assertOwnFile(path, stats, anotherFile)
  const { dev, ino, size } = fs.fstatSync(fd, { bigint: true })
  const identity = `${dev}:${ino}`
  const writtenBytes = countWrittenBytes(fd, saved, bytes)
  const isAsSaved = size === BigInt(length + writtenBytes) && (saved.file ?? identity) === identity
  if (!isAsSaved) throw createOverwriteError(path)
  // If somebody else has created the file, everybody may be allowed to read it.
  if ((stats.mode & 0o077) !== 0) fs.fchmodSync(fd, 0o600)
  return { identity, writtenBytes }
}

// O_NOFOLLOW keeps a symbolic link from leading to a file of somebody else. Windows has no such
// flag.
const { O_RDWR, O_CREAT, O_EXCL, O_APPEND, O_NOFOLLOW = 0 } = fs.constants

function openFile(path: string): number {
  return fs.openSync(path, O_RDWR | O_NOFOLLOW)
}

function createFile(path: string, isResumed: boolean): number {
  const isExclusive = isResumed ? 0 : O_EXCL
  try {
    return fs.openSync(path, O_RDWR | O_NOFOLLOW | O_CREAT | O_APPEND | isExclusive, 0o600)
  } catch (error) {
    if (getSystemCode(error) !== 'EEXIST') throw error
    assertOwnFile(path, fs.lstatSync(path), anotherFile)
    throw createOverwriteError(path, 'already exists')
  }
}

/**
 * Notes for the next checkpoint that the file turned out to belong to another program. A resumed
 * run then rejects whatever it finds at the path.
 */
export function disownFile(saved: RejectsFile): RejectsFile {
  return { ...saved, file: identityOfNoFile }
}

/** A stored member, so it stays a string. The identity of a file is `device:inode`, never empty. */
const identityOfNoFile = ''

/**
 * Counts how many of the bytes an interrupted run has written after the saved length.
 *
 * @throws {PlantsError} `usage` if there is anything else
 */
function countWrittenBytes(fd: number, { path, length }: RejectsFile, bytes: Buffer): number {
  const present = Buffer.alloc(bytes.length)
  const count = fs.readSync(fd, present, 0, bytes.length, length)
  if (bytes.compare(present, 0, count, 0, count) !== 0) throw createOverwriteError(path)
  return count
}

/**
 * Writes the bytes that are not in the file yet. If that fails, the file is cut to what it was.
 *
 * @param writtenBytes how many of the bytes are in the file
 * @param length the length of the file without any of the bytes
 */
function writeRemainder(fd: number, bytes: Buffer, writtenBytes: number, length: number): void {
  let end = writtenBytes
  try {
    while (end < bytes.length) {
      // A new file was opened to append. On some systems, a write with a position ignores that.
      const position = length === 0 ? null : length + end
      end += fs.writeSync(fd, bytes, end, bytes.length - end, position)
    }
    fs.fdatasyncSync(fd)
  } catch (error) {
    // A part of a row would look like a row. The file is not cut if another program has appended to
    // it in the meantime.
    const isAtEnd = unlessSystemError(() => fs.fstatSync(fd).size) === length + end
    if (isAtEnd) unlessSystemError(() => fs.ftruncateSync(fd, length))
    throw error
  }
}

/** @throws {PlantsError} `usage` if another import has written its first rows earlier */
function assertFirst(fd: number, path: string, bytes: Buffer): void {
  const present = Buffer.alloc(bytes.length)
  fs.readSync(fd, present, 0, bytes.length, 0)
  if (!present.equals(bytes))
    throw usageError(`${path} was changed by another program at the same time`, anotherFile)
}

const anotherFile = 'Choose another file with --rejects'

function createOverwriteError(path: string, why = 'has changed since the import wrote it'): Error {
  return usageError(`${path} ${why}, and would be overwritten`, anotherFile)
}

function withWriteErrors<T>(path: string, action: () => T): T {
  try {
    return action()
  } catch (error) {
    throw toWriteError(`The rejects file ${path}`, path, error, anotherFile)
  }
}

/** Formats rejected records as rows of a table, or as lines of NDJSON, with their reasons. */
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

/**
 * A rejects file has one header, so all inputs of an import must have the same one.
 *
 * @param name the name of the input, for the message
 * @throws {PlantsError} `usage` if the headers differ
 */
export function assertSameHeader(reader: FormatReader, first: FormatReader, name: string): void {
  if (formatRejectsHeader(reader) === formatRejectsHeader(first)) return
  throw usageError(
    `${name} has another header, so its rejected records need a file of their own`,
    'Import it with its own command and its own --rejects file',
  )
}

/**
 * Formats a row of a table. A cell that was rejected, such as `#N/A`, is written without quotes. So
 * it is rejected again until somebody has corrected it; in quotes, it would be a name.
 */
function formatRow(cells: readonly Cell[], delimiter = ','): string {
  const fields = cells.map((cell) =>
    typeof cell === 'object' ? cell.text : cell && tableCell(cell, delimiter),
  )
  return `${fields.join(delimiter)}\n`
}

/**
 * Formats a line of NDJSON. An object keeps its members as they were written, except those that the
 * rejects file of an earlier import has added. Anything else becomes the string `rejected_text`.
 */
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
