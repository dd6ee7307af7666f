import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { PlantsError, usageError } from '../errors.js'
import type { Cell, FormatReader, RawRecord } from '../formats/chunk.js'
import { isRejectsName, rejectColumns } from '../formats/header.js'
import { tableCell } from '../formats/write.js'
import { assertOwnFile, unwritable } from '../platform/atomic-file.js'
import { syncFolder } from '../platform/files.js'
import type { Problem } from '../stores/change.js'
import type { RejectsFile } from './checkpoint.js'

/*
 * The rows of a chunk are in its checkpoint, and after its commit (with `--atomic`, before it) they are appended to the
 * rejects file: it never has a record that a resumed import may still create. What else is in it stays.
 */

export interface RejectedRecord extends Problem {
  line: number
  raw: RawRecord
}

/** Throws `usage` for a file that this import has not left: even if it is empty, another one may write to it. */
export function openRejects(
  path: string | undefined,
  left: RejectsFile | undefined,
  header: string,
): RejectsFile | undefined {
  if (path !== undefined && isThere(path)) {
    if (left?.path !== path || left.length + left.rows.length === 0)
      throw overwritten(path, 'already exists')
    return appendRows(left, header)
  }
  let rows = left?.rows ?? ''
  if (left && rows !== '' && left.path !== path) {
    try {
      rows = appendRows(left, header).rows
    } catch (error) {
      // On a full disk, for instance, they go to the new file.
      if (path === undefined || !(error instanceof PlantsError)) throw error
    }
  }
  return path === undefined ? undefined : appendRows({ path, length: 0, rows }, header)
}

function isThere(path: string): boolean {
  return attempt(path, () => {
    fs.accessSync(`${dirname(path)}/`, fs.constants.W_OK)
    return fs.lstatSync(path, { throwIfNoEntry: false }) !== undefined
  })
}

/** A killed run may have made the file, and appended some of the rows. */
export function appendRows(left: RejectsFile, header: string): RejectsFile {
  const { path, length, rows } = left
  const bytes = Buffer.from(length === 0 && rows !== '' ? header + rows : rows)
  if (length + bytes.length === 0) return left
  const { O_RDWR, O_CREAT, O_NOFOLLOW = 0 } = fs.constants // Windows has no O_NOFOLLOW
  const creates = length === 0 ? O_CREAT : 0
  return attempt(path, () => {
    const fd = fs.openSync(path, O_RDWR | O_NOFOLLOW | creates, 0o600)
    try {
      const stats = fs.fstatSync(fd)
      assertOwnFile(path, stats, anotherFile)
      const { dev, ino, size } = fs.fstatSync(fd, { bigint: true })
      const file = `${dev}:${ino}`
      const there = Buffer.alloc(bytes.length)
      const count = fs.readSync(fd, there, 0, bytes.length, length)
      const isSame = bytes.compare(there, 0, count, 0, count) === 0
      const isLeft = size === BigInt(length + count) && (left.file ?? file) === file
      if (!isSame || !isLeft) throw overwritten(path)
      // Others may have been able to read a file that was there.
      if ((stats.mode & 0o077) !== 0) fs.fchmodSync(fd, 0o600)
      try {
        for (let at = count; at < bytes.length; )
          at += fs.writeSync(fd, bytes, at, bytes.length - at, length + at)
        fs.fdatasyncSync(fd)
      } catch (error) {
        fs.ftruncateSync(fd, length) // a part of a row looks like a row
        throw error
      }
      if (length === 0) syncFolder(dirname(path))
      return { path, file, length: length + bytes.length, rows: '' }
    } finally {
      fs.closeSync(fd)
    }
  })
}

const anotherFile = 'Choose another file with --rejects'

function overwritten(path: string, why = 'is not as the import has left it'): Error {
  return usageError(`${path} ${why}, and would be overwritten`, anotherFile)
}

function attempt<T>(path: string, action: () => T): T {
  try {
    return action()
  } catch (error) {
    throw unwritable(`The rejects file ${path}`, path, error, anotherFile)
  }
}

export function rejectedRows(rejections: readonly RejectedRecord[], reader: FormatReader): string {
  const rows = rejections.map((record) => {
    const { line, raw, message } = record
    if (raw === null || typeof raw === 'string') return lineOf(record, raw ?? '')
    const names = reader.header?.names ?? []
    const cells = raw.filter((_, column) => !isRejectsName(names[column] ?? ''))
    return joined([String(line), message, ...cells], reader.delimiter)
  })
  return rows.join('')
}

/** With a byte order mark, for spreadsheets. */
export function headerOf({ header, delimiter }: FormatReader): string {
  if (!header) return ''
  const names = header.names.filter((name) => !isRejectsName(name))
  return `\ufeff${joined([...rejectColumns, ...names], delimiter)}`
}

/** A bad cell has no quotes, so that it is rejected again unless it is corrected. */
function joined(cells: readonly Cell[], delimiter = ','): string {
  const texts = cells.map((cell) =>
    typeof cell === 'object' ? cell.text : cell && tableCell(cell, delimiter),
  )
  return `${texts.join(delimiter)}\n`
}

/** The members of the object stay as they are, except those that an earlier import has added. */
function lineOf({ line, kind, message }: RejectedRecord, raw: string): string {
  const text = raw.replace(/[\r\n]/g, ' ').trim()
  const isObject = kind !== 'input' && text.startsWith('{')
  const members = isObject
    ? text.slice(1, -1).replace(addedMembers, '').trim()
    : text && `"rejected_text":${JSON.stringify(text)}`
  const reason = JSON.stringify(message)
  return `{"rejected_line":${line},"rejected_reason":${reason}${members && `,${members}`}}\n`
}

const addedMembers = /^"rejected_line":\d+,"rejected_reason":"(?:[^"\\]|\\.){0,2000}",?/
