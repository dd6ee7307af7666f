import * as fs from 'node:fs'
import { dirname, join } from 'node:path'
import { tableCell } from '../../plant/records.js'
import { createFile, unwritable } from '../../platform/atomic-file.js'
import { systemCode, usageError } from '../../platform/errors.js'
import { identityOf } from '../../platform/files.js'
import type { Problem } from '../../stores/common/change.js'
import type { Cell, FormatReader, RawRecord } from '../formats/chunk.js'
import { rejectColumns, rejectNames } from '../formats/header.js'
import type { RejectsPosition } from './checkpoint.js'

export interface RejectedRecord extends Problem {
  line: number
  raw: RawRecord
}

/**
 * The file of the rejected records. It is there, and its identity in the checkpoint, before the first of them: until the
 * checkpoint is saved, a new file is a draft, which has the name of the checkpoint. Rows are written at the position that the
 * checkpoint gives them: a run that was killed before its commit has written the same ones there. Whatever else is there
 * is somebody's work, such as corrections, and stays.
 */
export class Rejects {
  readonly #path: string
  readonly #fd: number
  #draft: string | undefined
  /** Where an interrupted import has left it, or its position without rows. */
  readonly start: RejectsPosition

  /** Throws `usage` for a file that this import has not left: even if it is empty, another one may write to it. */
  constructor(path: string, draftName: string, left: RejectsPosition | undefined) {
    this.#path = path
    const isThere = attempt(path, () => fs.lstatSync(path, { throwIfNoEntry: false })) !== undefined
    if (isThere && !left) throw overwritten(path, 'already exists')
    if (!isThere) this.#draft = join(dirname(path), `.plants-${draftName}.tmp`)
    const { O_RDWR, O_CREAT, O_NOFOLLOW = 0 } = fs.constants // Windows has no O_NOFOLLOW
    const flags = O_RDWR | O_NOFOLLOW | (isThere ? 0 : O_CREAT)
    this.#fd = attempt(path, () => fs.openSync(this.#draft ?? path, flags, 0o600))
    const { dev, ino, size } = fs.fstatSync(this.#fd, { bigint: true })
    const file = `${dev}:${ino}`
    const isLeft = left?.file === file && size >= left.length
    this.start = isLeft ? left : { file, length: 0 }
    if (isLeft || !isThere) return
    fs.closeSync(this.#fd)
    throw overwritten(path)
  }

  /** Gives a draft the name of the file. Throws `usage` if there is one by now. */
  publish(): void {
    const draft = this.#draft
    if (draft === undefined) return
    attempt(this.#path, () => {
      try {
        createFile(draft, this.#path)
      } catch (error) {
        // The same import, in another process, may have been faster.
        if (identityOf(this.#path) !== this.start.file)
          throw systemCode(error) === 'EEXIST' ? overwritten(this.#path, 'already exists') : error
      }
      fs.rmSync(draft, { force: true })
    })
    this.#draft = undefined
  }

  write(start: number, bytes: Buffer): void {
    if (bytes.length === 0) return
    const fd = this.#fd
    attempt(this.#path, () => {
      const there = Buffer.alloc(bytes.length)
      const length = fs.readSync(fd, there, 0, bytes.length, start)
      const isSame = there.subarray(0, length).equals(bytes.subarray(0, length))
      if (!isSame || fs.fstatSync(fd).size < start) throw overwritten(this.#path)
      for (let at = 0; at < bytes.length; )
        at += fs.writeSync(fd, bytes, at, bytes.length - at, start + at)
      fs.fdatasyncSync(fd)
    })
  }

  /** Removes an empty file, unless another run may go on with it. */
  close(isShared: boolean): void {
    const isUnused = fs.fstatSync(this.#fd).size === 0
    fs.closeSync(this.#fd)
    const name = isShared ? this.#draft : (this.#draft ?? this.#path)
    if (isUnused && name !== undefined) fs.rmSync(name, { force: true })
  }
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

export function rejectedRows(
  rejections: readonly RejectedRecord[],
  reader: FormatReader,
  areFirst: boolean,
): Buffer {
  const rows = rejections.map((record) => {
    const { line, raw, message } = record
    if (raw === null || typeof raw === 'string') return lineOf(record, raw ?? '')
    const names = reader.header?.names ?? []
    const cells = raw.filter((_, column) => !rejectNames.includes(names[column] ?? ''))
    return joined([String(line), message, ...cells], reader.delimiter)
  })
  const header = areFirst && rows.length > 0 ? headerOf(reader) : ''
  return Buffer.from(header + rows.join(''))
}

/** With a byte order mark, for spreadsheets. */
export function headerOf({ header, delimiter }: FormatReader): string {
  if (!header) return ''
  const names = header.names.filter((name) => !rejectNames.includes(name))
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
