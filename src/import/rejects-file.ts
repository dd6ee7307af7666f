/*
 * Writes the file of `--rejects`, which gets the rejected records with the reasons.
 *
 * The rejected records of a chunk are saved in the checkpoint, and appended to the file after the
 * commit (with `--atomic`, before the commit). So the file never has a record that a resumed import
 * may still create. If a run is killed after the commit, and before it has appended the records,
 * the resumed run appends them. The import never overwrites bytes that it has not written itself.
 *
 * Two imports never share a file, although neither of them holds a lock:
 *
 * - A run creates the file with its first records (O_EXCL). If the file has appeared since the run
 *   began, it belongs to another program, and the checkpoint says so from then on.
 * - A run may be killed after it has created the file, and before its checkpoint says so. So a
 *   resumed run also uses a file that is empty, or begins with the records of this run. But another
 *   import may just have created this file, and not have written to it yet. Therefore the first
 *   records are appended (O_APPEND), so that the system decides which import is first, and then
 *   they are read back. An import whose records are not at the beginning does not use the file.
 * - From then on, the checkpoint has the identity and the length of the file. Two processes with
 *   the same import would write the same records at the same offset.
 */
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import {
  createUsageError,
  fileInFolderHint,
  getSystemCode,
  ignoreSystemError,
  PlantsError,
} from '../errors.js'
import { assertOwnFile, toWriteError } from '../platform/atomic-file.js'
import { isSameFile, syncFolder } from '../platform/files.js'
import type { RejectsFile } from './parse-checkpoint.js'

/**
 * Prepares the rejects file at the start of an import, and appends the records that an interrupted
 * run has left in its checkpoint:
 *
 * - Without `--rejects`, they are appended to the file of the interrupted run, if it had one.
 * - If the file of `--rejects` exists, it must be that of the interrupted run, and they are
 *   appended to it.
 * - If it does not exist, and the interrupted run had no file, or its file was deleted, they are
 *   written to a new file.
 * - If the interrupted run had another file, they are appended to the other file. If that fails,
 *   because the disk is full for example, they are written to the new file.
 *
 * @param path the file of `--rejects`; undefined without that option
 * @param savedFile what the checkpoint says about the file; undefined for a new import
 * @throws {PlantsError} `usage` for a file that this import has not left like this. Even an empty
 * file may be another import's.
 */
export function prepareRejectsFile(
  path: string | undefined,
  savedFile: RejectsFile | undefined,
  header: string,
): RejectsFile | undefined {
  if (path === undefined) {
    if (savedFile) appendPendingRecords(savedFile, header)
    return undefined
  }
  const isSavedPath = savedFile !== undefined && isAtPath(savedFile, path)
  if (existsForWriting(path)) {
    const mayBeWritten = isSavedPath && savedFile.length + savedFile.rows.length > 0
    if (!mayBeWritten) throw createExistingFileError(path)
    return appendPendingRecords(savedFile, header)
  }
  const pendingRows = savedFile?.rows ?? ''
  const hadOtherFile = savedFile !== undefined && !isSavedPath
  const rows = hadOtherFile ? appendToOtherFile(savedFile, header) : pendingRows
  return appendPendingRecords({ path, length: 0, rows }, header)
}

/** Whether a rejects file is at a path, which may be written in another way, such as by a link. */
export function isAtPath({ path }: RejectsFile, otherPath: string): boolean {
  return path === otherPath || isSameFile(path, otherPath)
}

/**
 * Appends the pending records to the file of the interrupted run.
 *
 * @returns the records that could not be written there
 */
function appendToOtherFile(savedFile: RejectsFile, header: string): string {
  if (savedFile.rows === '') return ''
  try {
    return appendPendingRecords(savedFile, header).rows
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    return savedFile.rows
  }
}

/**
 * Appends the records of an interrupted run, which may have created the file, and written a part.
 */
function appendPendingRecords(savedFile: RejectsFile, header: string): RejectsFile {
  return appendRows(savedFile, header, { acceptsUnknownFile: true })
}

function existsForWriting(path: string): boolean {
  return explainWriteErrors(path, () => {
    fs.accessSync(`${dirname(path)}/`, fs.constants.W_OK)
    const stats = fs.lstatSync(path, { throwIfNoEntry: false })
    if (stats?.isDirectory()) throw createUsageError(`${path} is a directory`, fileInFolderHint)
    return stats !== undefined
  })
}

/**
 * Appends the rejected records of a chunk, and waits until they are on disk.
 *
 * @param savedFile what the checkpoint says about the file, with the records to append
 * @param header the header, which precedes the first records
 * @returns what the next checkpoint says about the file
 * @throws {PlantsError} `usage` unless the file is as the import has left it
 */
export function appendRejectedRecords(savedFile: RejectsFile, header: string): RejectsFile {
  return appendRows(savedFile, header, { acceptsUnknownFile: false })
}

/**
 * @param options.acceptsUnknownFile whether the file may exist although the checkpoint does not
 *   know it, because an interrupted run may have created it. Otherwise, it is another program's
 */
function appendRows(
  savedFile: RejectsFile,
  header: string,
  { acceptsUnknownFile }: { acceptsUnknownFile: boolean },
): RejectsFile {
  const { path, length, rows } = savedFile
  const isFirst = length === 0
  const bytes = Buffer.from(isFirst && rows !== '' ? header + rows : rows)
  if (length + bytes.length === 0) return savedFile
  return explainWriteErrors(path, () => {
    const isKnown = savedFile.file !== undefined
    const fd = isKnown ? openFile(path) : createFile(path, acceptsUnknownFile)
    try {
      const { identity, writtenBytes } = checkFile(fd, savedFile, bytes)
      writeRemainder(fd, bytes, writtenBytes, length)
      if (isFirst) {
        assertOwnBeginning(fd, path, bytes)
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
 * @param bytes the records to append, whose beginning an interrupted run may have written
 */
function checkFile(fd: number, savedFile: RejectsFile, bytes: Buffer) {
  const { path, length } = savedFile
  const stats = fs.fstatSync(fd)
  assertOwnFile(path, stats, otherFileHint)
  const { dev, ino, size } = fs.fstatSync(fd, { bigint: true })
  const identity = `${dev}:${ino}`
  const writtenBytes = countWrittenBytes(fd, savedFile, bytes)
  const isAsSaved =
    size === BigInt(length + writtenBytes) && (savedFile.file ?? identity) === identity
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

function createFile(path: string, acceptsUnknownFile: boolean): number {
  const exclusiveFlag = acceptsUnknownFile ? 0 : O_EXCL
  try {
    return fs.openSync(path, O_RDWR | O_NOFOLLOW | O_CREAT | O_APPEND | exclusiveFlag, 0o600)
  } catch (error) {
    if (getSystemCode(error) !== 'EEXIST') throw error
    assertOwnFile(path, fs.lstatSync(path), otherFileHint)
    throw createExistingFileError(path)
  }
}

/**
 * Notes for the next checkpoint that the file belongs to another program. A resumed run then
 * rejects any file at the path.
 */
export function disownFile(savedFile: RejectsFile): RejectsFile {
  return { ...savedFile, file: identityOfNoFile }
}

/** An empty string in the checkpoint. The identity of a file, `device:inode`, is never empty. */
const identityOfNoFile = ''

/**
 * Counts how many of the bytes an interrupted run has written after the saved length.
 *
 * @throws {PlantsError} `usage` if there is anything else
 */
function countWrittenBytes(fd: number, { path, length }: RejectsFile, bytes: Buffer): number {
  const presentBytes = Buffer.alloc(bytes.length)
  const count = fs.readSync(fd, presentBytes, 0, bytes.length, length)
  if (bytes.compare(presentBytes, 0, count, 0, count) !== 0) throw createOverwriteError(path)
  return count
}

/**
 * Writes the bytes that are not in the file yet. If that fails, the file is truncated to its
 * previous length.
 *
 * @param writtenBytes how many of the bytes are in the file
 * @param length the length of the file without any of the bytes
 */
function writeRemainder(fd: number, bytes: Buffer, writtenBytes: number, length: number): void {
  let end = writtenBytes
  try {
    while (end < bytes.length) {
      // A new file was opened with O_APPEND, which a write with a position ignores on some systems.
      const position = length === 0 ? null : length + end
      end += fs.writeSync(fd, bytes, end, bytes.length - end, position)
    }
    fs.fdatasyncSync(fd)
  } catch (error) {
    // An incomplete row would look like a row, so it is removed. If another program has appended to
    // the file in the meantime, nothing is removed.
    const isAtEnd = ignoreSystemError(() => fs.fstatSync(fd).size) === length + end
    if (isAtEnd) ignoreSystemError(() => fs.ftruncateSync(fd, length))
    throw error
  }
}

/** @throws {PlantsError} `usage` if another import has written its first records earlier */
function assertOwnBeginning(fd: number, path: string, bytes: Buffer): void {
  const presentBytes = Buffer.alloc(bytes.length)
  fs.readSync(fd, presentBytes, 0, bytes.length, 0)
  if (!presentBytes.equals(bytes))
    throw createUsageError(`${path} was changed by another program at the same time`, otherFileHint)
}

const otherFileHint = 'Choose another file with --rejects'

function createOverwriteError(path: string): Error {
  const reason = 'has changed since the import wrote it'
  return createUsageError(`${path} ${reason}, and would be overwritten`, otherFileHint)
}

function createExistingFileError(path: string): Error {
  const hint = `${otherFileHint}, or rename this one`
  return createUsageError(`${path} already exists, and would be overwritten`, hint)
}

function explainWriteErrors<T>(path: string, action: () => T): T {
  try {
    return action()
  } catch (error) {
    throw toWriteError(`The rejects file ${path}`, path, error, otherFileHint)
  }
}
