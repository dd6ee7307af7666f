import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { toJson } from '../../plant/exact-json.js'
import { unwritable } from '../../platform/atomic-file.js'
import { malformed } from '../../platform/errors.js'
import { syncFolder, targetOf } from '../../platform/files.js'
import type { Io } from '../../platform/io.js'
import { type ExistsPolicy, idExistsText, Outcome } from '../../stores/common/conflict.js'
import type { Chunk, Reason, RecordRange } from '../formats/chunk.js'
import type { Reader } from './reader.js'

interface Lengths {
  records: number
  reasons: number
}

const nothing: Lengths = { records: 0, reasons: 0 }

/**
 * The rejected records, unchanged, and the reasons, one line of JSON each. The last line of finished reasons has the
 * SHA-256 of both files, by which a later import recognizes and replaces them.
 */
export class Rejects {
  readonly #records: AppendedFile
  readonly #reasons: AppendedFile

  /**
   * Cuts both files to the lengths of an earlier run. Without these, they must be empty or finished.
   *
   * @throws {PlantsError} `malformed` for other files; `unwritable`, as the methods
   */
  constructor(path: string, start: Lengths | undefined, trusts: Io['trusts']) {
    this.#records = new AppendedFile(path, trusts)
    try {
      this.#reasons = new AppendedFile(`${path}.reasons`, trusts)
    } catch (error) {
      this.#records.close()
      throw error
    }
    try {
      if (start) this.#cut(start)
      else this.#replaceFinished()
    } catch (error) {
      this.close()
      throw error
    }
  }

  #replaceFinished(): void {
    const [records, reasons] = [this.#records, this.#reasons]
    const length = reasons.size - lastLine('').length - digestLength
    const end = length > 0 ? reasons.read(length, lastLine('').length + digestLength) : Buffer.alloc(0)
    const digest = end.toString('latin1', lastLine('').indexOf('"}'), end.length - 3)
    const isFinished = end.length > 0 && end.equals(lastLine(digest))
    if (!isFinished && records.size + reasons.size === 0) return
    if (isFinished && digest === this.#digest(records.size, length)) {
      for (const file of [records, reasons]) file.replace()
      return
    }
    const what = isFinished ? 'was changed since an import wrote it' : 'already exists'
    const { path } = records.size > 0 ? records : reasons
    throw malformed(`${path} ${what}, and would be overwritten`, 'Choose another file with --rejects, or remove it')
  }

  #cut({ records, reasons }: Lengths): void {
    this.#records.cut(records)
    this.#reasons.cut(reasons)
  }

  /** Cuts both files to the lengths of a checkpoint, appends, and returns the new lengths when all is on disk. */
  write(
    start: Lengths = nothing,
    rejected: readonly RejectedRecord[],
    bytes: Uint8Array,
    reader: Pick<Reader, 'name' | 'header' | 'encode' | 'lineBreaks'>,
  ): Lengths {
    this.#cut(start)
    if (rejected.length > 0) {
      const { records } = start
      const { lineBreaks } = reader
      const isEnded = (text: Buffer) =>
        text.length === 0 || lineBreaks.some((one) => text.subarray(-one.length).equals(one))
      const parts = records === 0 ? [reader.encode(reader.header)] : []
      let before = this.#records.read(Math.max(0, records - 2), 2)
      for (const { start, end } of rejected) {
        if (!isEnded(before)) parts.push(...lineBreaks.slice(0, 1))
        const record = reader.encode(bytes.subarray(start, end))
        if (record.length > 0) before = Buffer.from(record.subarray(-2))
        parts.push(record)
      }
      const lines = rejected.map(({ line, element, error, message }) =>
        toJson({ file: reader.name, line, element, error, message }),
      )
      this.#records.append(Buffer.concat(parts))
      this.#reasons.append(Buffer.from(`${lines.join('\n')}\n`))
    }
    return { records: this.#records.size, reasons: this.#reasons.size }
  }

  finish(): void {
    const { size } = this.#reasons
    if (size > 0) this.#reasons.append(lastLine(this.#digest(this.#records.size, size)))
  }

  /** Removes files that it created if they are empty. */
  close(): void {
    this.#records.close()
    this.#reasons.close()
  }

  #digest(records: number, reasons: number): string {
    const hash = createHash('sha256')
    const parts = [
      { file: this.#records, length: records },
      { file: this.#reasons, length: reasons },
    ]
    for (const { file, length } of parts)
      for (let at = 0; at < length; at += readSize) hash.update(file.read(at, Math.min(readSize, length - at)))
    return hash.digest('base64url')
  }
}

function lastLine(sha256: string): Buffer {
  return Buffer.from(`${JSON.stringify({ sha256 })}\n`)
}

const digestLength = 43

const readSize = 1_048_576

class AppendedFile {
  readonly path: string
  readonly #target: string
  readonly #fd: number
  /** so that it is removed when it is empty */
  #isOurs: boolean

  constructor(path: string, trusts: Io['trusts']) {
    this.path = path
    this.#isOurs = !fs.existsSync(path)
    const { target, fd } = this.#attempt(() => openTarget(path, trusts))
    this.#target = target
    this.#fd = fd
  }

  get size(): number {
    return fs.fstatSync(this.#fd).size
  }

  read(start: number, count: number): Buffer {
    const bytes = Buffer.alloc(count)
    return bytes.subarray(0, fs.readSync(this.#fd, bytes, 0, count, start))
  }

  replace(): void {
    this.cut(0)
    this.#isOurs = true
  }

  cut(length: number): void {
    const { size } = this
    if (size < length) {
      const hint = 'Restore the file, or start again with --restart'
      throw malformed(`${this.path} is shorter than it was when the import was interrupted`, hint)
    }
    if (size > length) this.#attempt(() => fs.ftruncateSync(this.#fd, length))
  }

  append(bytes: Uint8Array): void {
    this.#attempt(() => {
      fs.writeFileSync(this.#fd, bytes)
      fs.fdatasyncSync(this.#fd)
    })
  }

  close(): void {
    const isEmpty = this.size === 0
    fs.closeSync(this.#fd)
    if (isEmpty && this.#isOurs) fs.unlinkSync(this.#target)
  }

  #attempt<T>(action: () => T): T {
    try {
      return action()
    } catch (error) {
      throw unwritable(`The rejects file ${this.path}`, error, 'Choose another file with --rejects, or free some space')
    }
  }
}

/**
 * Opens only regular files: a device or a pipe cannot be truncated, and a pipe could wait for a reader. The owner of a
 * file could read and change what is written to it.
 */
function openTarget(path: string, trusts: Io['trusts']): { target: string; fd: number } {
  const target = targetOf(path, { trusts })
  const stats = fs.statSync(target, { throwIfNoEntry: false })
  if (stats && !stats.isFile() && !stats.isDirectory())
    throw malformed(`${path} is not a regular file`, 'Choose a file with --rejects')
  const flags = fs.constants.O_RDWR | fs.constants.O_APPEND | fs.constants.O_CREAT
  // a link created since the check may be another user's
  const fd = fs.openSync(target, flags | (fs.constants.O_NOFOLLOW ?? 0), 0o600)
  const { uid } = fs.fstatSync(fd)
  if (!trusts(uid)) {
    fs.closeSync(fd)
    throw malformed(`${path} belongs to another user (uid ${uid})`, 'Choose another file with --rejects')
  }
  if (!stats) syncFolder(dirname(target))
  return { target, fd }
}

/** Not created, or with an unknown outcome. */
export interface RejectedRecord extends RecordRange, Reason {
  /** index in a JSON array */
  element?: number | undefined
  isUnknown?: boolean
  /** because its id is in the input twice */
  isRepeated?: boolean | undefined
}

/** In the order of the input. */
export function rejectedRecords(chunk: Chunk, policy: ExistsPolicy): RejectedRecord[] {
  const { invalid, outcomes, rejections, rows, firstElement } = chunk
  const rejected: RejectedRecord[] = []
  let creators: Map<bigint, number> | undefined
  const reasonOf = (row: number): Reason & Pick<RejectedRecord, 'isRepeated'> => {
    const rejection = rejections.get(row)
    if (rejection && outcomes[row] !== Outcome.exists) return rejection
    creators ??= creatorsIn(chunk)
    const id = rows.idAt(row)
    const creator = creators.get(id)
    if (creator === undefined) return rejection ?? { error: 409, message: idExistsText(id, policy) }
    const { line } = chunk.rangeOf(creator)
    const isElsewhere = chunk.rangeOf(row).line !== line // the records of a JSON array can share a line
    const message = `The id ${id} is in the input twice${isElsewhere ? `, also in line ${line}` : ''}`
    return { error: 409, message, isRepeated: true }
  }
  let next = 0
  const elementAt = (row: number) => (firstElement === undefined ? undefined : firstElement + row + next)
  for (let row = 0; row <= rows.length; row += 1) {
    for (let record = invalid[next]; record?.row === row; record = invalid[next]) {
      rejected.push({ ...record, element: elementAt(row) })
      next += 1
    }
    const outcome = outcomes[row] ?? Outcome.pending
    if (outcome < Outcome.exists) continue
    const { error, message, isRepeated } = reasonOf(row) // it may be an Error, whose message is not enumerable
    const isUnknown = outcome === Outcome.unknown
    rejected.push({ ...chunk.rangeOf(row), error, message, element: elementAt(row), isUnknown, isRepeated })
  }
  return rejected
}

/** The rows that the import has created, by id. */
function creatorsIn({ rows, outcomes }: Chunk): Map<bigint, number> {
  const creators = new Map<bigint, number>()
  for (const [row, outcome] of outcomes.entries()) if (outcome === Outcome.created) creators.set(rows.idAt(row), row)
  return creators
}
