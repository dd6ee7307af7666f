import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { toJson } from '../../plant/json.js'
import { orderById } from '../../plant/sort.js'
import { unwritable } from '../../platform/atomic-file.js'
import { malformed } from '../../platform/errors.js'
import { syncFolder, targetOf } from '../../platform/files.js'
import type { Io } from '../../platform/io.js'
import { comparesPlants, type ExistsPolicy, idExistsText, Outcome } from '../../stores/common/conflict.js'
import type { Chunk, InvalidRecord, Reason } from '../formats/chunk.js'
import type { Reader } from './reader.js'

type Lengths = Record<'records' | 'reasons', number>

/**
 * The files of the rejected records, unchanged, and of the reasons, one line of JSON each. A resumed run truncates both to the lengths in
 * its position. The last line of a finished file of reasons has the SHA-256 of both, by which a later import recognizes and replaces them.
 */
export type Rejects = ReturnType<typeof openRejects>

/** Opens both files, at the lengths of a resumed run. Throws `malformed` for other content. The methods throw `unwritable`. */
export function openRejects(path: string, lengths: Lengths | undefined, trusts: Io['trusts']) {
  const records = openAppended(path, trusts)
  let reasons: AppendedFile | undefined
  try {
    reasons = openAppended(`${path}.reasons`, trusts)
    const start = lengths ?? (isFinished(records, reasons) ? { records: 0, reasons: 0 } : undefined)
    records.start(start?.records)
    reasons.start(start?.reasons)
    return rejectsIn(records, reasons)
  } catch (error) {
    records.close()
    reasons?.close()
    throw error
  }
}

function rejectsIn(records: AppendedFile, reasons: AppendedFile) {
  return {
    get lengths(): Lengths {
      return { records: records.length, reasons: reasons.length }
    },

    add(rejected: RejectedRecord[], bytes: Uint8Array, reader: Pick<Reader, 'name' | 'header' | 'encode' | 'lineBreaks'>): void {
      const { lineBreaks } = reader
      const isEnded = (text: Buffer) => lineBreaks.some((one) => text.subarray(-one.length).equals(one))
      const parts = records.length === 0 ? [reader.encode(reader.header)] : []
      let before = records.read(Math.max(0, records.length - 2), 2)
      let lines = ''
      for (const { start, end, line, element, why } of rejected) {
        if (why && before.length > 0 && !isEnded(before)) parts.push(...lineBreaks.slice(0, 1))
        const record = reader.encode(bytes.subarray(start, end))
        if (record.length > 0) before = Buffer.from(record.subarray(-2))
        parts.push(record)
        if (why) lines += `${toJson({ file: reader.name, line, element, error: why.error, message: why.message })}\n`
      }
      records.append(Buffer.concat(parts))
      reasons.append(Buffer.from(lines))
    },

    flush(): void {
      records.flush()
      reasons.flush()
    },

    finish(): void {
      if (reasons.length === 0) return
      reasons.append(lastLine(digestOf([records, records.length], [reasons, reasons.length])))
      reasons.flush()
    },

    /** Removes the files it created if they are empty. */
    close(): void {
      records.close()
      reasons.close()
    },
  }
}

/** Whether both files are as an import wrote them. Throws `malformed` if they were changed since. */
function isFinished(records: AppendedFile, reasons: AppendedFile): boolean {
  const length = reasons.size() - lastLine('').length - digestLength
  if (records.size() === 0 || length <= 0) return false
  const end = reasons.read(length, lastLine('').length + digestLength)
  const digest = end.toString('latin1', lastLine('').indexOf('"}'), end.length - 3)
  if (!end.equals(lastLine(digest))) return false
  if (digest === digestOf([records, records.size()], [reasons, length])) return true
  const hint = 'Choose another file with --rejects, or remove it'
  throw malformed(`${records.path} was changed since an import wrote it, and would be overwritten`, hint)
}

function lastLine(sha256: string): Buffer {
  return Buffer.from(`${JSON.stringify({ sha256 })}\n`)
}

const digestLength = 43

function digestOf(...parts: [AppendedFile, number][]): string {
  const hash = createHash('sha256')
  for (const [file, length] of parts)
    for (let at = 0; at < length; at += readSize) hash.update(file.read(at, Math.min(readSize, length - at)))
  return hash.digest('base64url')
}

const readSize = 1_048_576

type AppendedFile = ReturnType<typeof openAppended>

function openAppended(path: string, trusts: Io['trusts']) {
  const attempt = <T>(action: () => T): T => {
    try {
      return action()
    } catch (error) {
      throw unwritable(`The rejects file ${path}`, error, 'Choose another file with --rejects, or free some space')
    }
  }
  let isOurs = !fs.existsSync(path)
  const { target, fd } = attempt(() => openTarget(path, trusts))
  let length = 0
  const size = () => fs.fstatSync(fd).size
  const read = (start: number, count: number) => {
    const bytes = Buffer.alloc(count)
    return bytes.subarray(0, fs.readSync(fd, bytes, 0, count, start))
  }
  return {
    path,
    size,
    read,
    /** Truncates the file to its known length. Without one, it must be empty. */
    start(known: number | undefined): void {
      if (known === undefined ? size() > 0 : size() < known) {
        const [what, hint] =
          known === undefined
            ? ['already exists, and would be overwritten', 'Choose another file with --rejects, or remove it']
            : ['is shorter than it was when the import was interrupted', 'Restore the file, or start again with --restart']
        throw malformed(`${path} ${what}`, hint)
      }
      isOurs ||= known !== undefined
      length = known ?? 0
      attempt(() => fs.ftruncateSync(fd, length))
    },
    get length() {
      return length
    },
    append: (bytes: Buffer) => {
      attempt(() => fs.writeFileSync(fd, bytes))
      length += bytes.length
    },
    flush: () => attempt(() => fs.fdatasyncSync(fd)),
    close: () => {
      const isEmpty = size() === 0
      fs.closeSync(fd)
      if (isEmpty && isOurs) fs.unlinkSync(target)
    },
  }
}

/**
 * Opens only regular files: a device or a pipe cannot be truncated, and opening a pipe could wait for a reader. The owner of a file could
 * read and change what is written to it.
 */
function openTarget(path: string, trusts: Io['trusts']): { target: string; fd: number } {
  const target = targetOf(path, { trusts })
  const stats = fs.statSync(target, { throwIfNoEntry: false })
  if (stats && !stats.isFile() && !stats.isDirectory()) throw malformed(`${path} is not a regular file`, 'Choose a file with --rejects')
  const flags = fs.constants.O_RDWR | fs.constants.O_APPEND | fs.constants.O_CREAT
  const fd = fs.openSync(target, flags | (fs.constants.O_NOFOLLOW ?? 0), 0o600) // a link created since the check may be another user's
  const { uid } = fs.fstatSync(fd)
  if (!trusts(uid)) {
    fs.closeSync(fd)
    throw malformed(`${path} belongs to another user (uid ${uid})`, 'Choose another file with --rejects')
  }
  if (!stats) syncFolder(dirname(target))
  return { target, fd }
}

export type Conflict = 'repeated' | 'assigned' | 'existing'

/** A record that was not created, or whose outcome is unknown. */
export interface RejectedRecord extends InvalidRecord {
  isUnknown?: boolean
  /** where its id comes from that exists: another record of the input has it, the import has assigned it, or neither */
  conflict?: Conflict | undefined
  element?: number | undefined
  index: number
}

/** The rejected records of a chunk, in input order. An earlier run may have sent the first `sent` rows without idempotency keys. */
export function* rejectedRecords(chunk: Chunk, sent: number, policy: ExistsPolicy): Generator<RejectedRecord> {
  const { invalid, outcomes, rows, firstElement } = chunk
  let [next, parts] = [0, 0]
  const rejectionOf = rejectionsIn(chunk, policy)
  const place = (index: number) => ({ index, element: firstElement === undefined ? undefined : firstElement + index - parts })
  for (let row = 0; row <= rows.length; row += 1) {
    for (let record = invalid[next]; record?.row === row; record = invalid[next]) {
      yield { ...record, ...place(row + next) }
      if (!record.why) parts += 1
      next += 1
    }
    const outcome = outcomes[row] ?? Outcome.pending
    if (outcome < Outcome.exists) continue
    const { error, message, conflict } = rejectionOf(row)
    const wasSent = outcome === Outcome.exists && row < sent && !comparesPlants(policy)
    const why = wasSent ? `${message}, possibly this very plant: it was in flight when the import was interrupted` : message
    const isUnknown = wasSent || outcome === Outcome.unknown
    yield { ...chunk.rangeOf(row), row, why: { error, message: why }, isUnknown, conflict, ...place(row + next) }
  }
}

function rejectionsIn(chunk: Chunk, policy: ExistsPolicy): (row: number) => Rejection {
  const { rows, outcomes, rejections } = chunk
  let creators: Map<number, number> | undefined
  return (row) => {
    const { error, message } = rejections.get(row) ?? { error: 409, message: idExistsText(rows.idAt(row), policy) }
    if (outcomes[row] !== Outcome.exists) return { error, message }
    creators ??= creatorsIn(chunk)
    const creator = creators.get(row)
    if (creator === undefined) return { error, message, conflict: chunk.assigned.has(row) ? 'assigned' : 'existing' }
    return conflictOf(row, creator, chunk)
  }
}

type Rejection = Reason & Pick<RejectedRecord, 'conflict'>

function conflictOf(row: number, creator: number, chunk: Chunk): Rejection {
  const { assigned } = chunk
  const [line, id] = [chunk.rangeOf(creator).line, chunk.rows.idAt(row)]
  const isElsewhere = chunk.rangeOf(row).line !== line // the records of a JSON array can share a line
  if (assigned.has(row) || assigned.has(creator))
    return { error: 409, message: `${idExistsText(id)}${isElsewhere ? `, from line ${line}` : ''}`, conflict: 'assigned' }
  return { error: 409, message: `The id ${id} is in the input twice${isElsewhere ? `, also in line ${line}` : ''}`, conflict: 'repeated' }
}

/** by row: another row of the chunk that the import has created with its id */
function creatorsIn({ rows, outcomes }: Chunk): Map<number, number> {
  const order = orderById(rows)
  const rowAt = (rank: number) => order?.[rank] ?? rank
  const creators = new Map<number, number>()
  for (let start = 0, end = 0; start < rows.length; start = end) {
    let creator: number | undefined
    for (end = start; end < rows.length && rows.hasSameId(rowAt(end), rowAt(start)); end += 1)
      if (outcomes[rowAt(end)] === Outcome.created) creator = rowAt(end)
    if (creator === undefined || end === start + 1) continue
    for (let rank = start; rank < end; rank += 1) creators.set(rowAt(rank), creator)
  }
  return creators
}
