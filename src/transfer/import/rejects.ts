import * as fs from 'node:fs'
import { toJson } from '../../plant/json.js'
import { unwritable } from '../../platform/atomic-file.js'
import { malformed } from '../../platform/errors.js'
import { targetOf } from '../../platform/files.js'
import type { Io } from '../../platform/io.js'
import { comparesPlants, type ExistsPolicy, idExistsText, Outcome } from '../../stores/common/conflict.js'
import type { Chunk, InvalidRecord } from '../formats/chunk.js'
import type { Reader } from './reader.js'

type Lengths = Record<'records' | 'reasons', number>

/**
 * The files of the rejected records, unchanged, and of the reasons, one line of JSON each. A resumed run truncates both to the lengths in
 * its position.
 */
export type Rejects = ReturnType<typeof openRejects>

/** Opens both files, at the lengths of the position of a resumed run. Throws `malformed` for other content. The methods throw `unwritable`. */
export function openRejects(path: string, lengths: Lengths | undefined, io: Pick<Io, 'trusts'>) {
  const records = openAppended(path, lengths?.records, io)
  let reasons: ReturnType<typeof openAppended>
  try {
    reasons = openAppended(`${path}.reasons`, lengths?.reasons, io)
  } catch (error) {
    records.close()
    throw error
  }
  return {
    /** in bytes */
    get lengths(): Lengths {
      return { records: records.length, reasons: reasons.length }
    },

    /** Appends rejected records of a chunk and their reasons. */
    add(rejected: RejectedRecord[], bytes: Uint8Array, reader: Pick<Reader, 'name' | 'header' | 'encode' | 'lineBreak'>): void {
      const { lineBreak } = reader
      const parts = records.length === 0 ? [reader.encode(reader.header)] : []
      let before = records.end
      let lines = ''
      for (const { start, end, line, element, why } of rejected) {
        if (why && before && !before.subarray(-lineBreak.length).equals(lineBreak)) parts.push(lineBreak)
        const record = reader.encode(bytes.subarray(start, end))
        if (record.length > 0) before = Buffer.from(record.subarray(-2))
        parts.push(record)
        if (why) lines += `${toJson({ file: reader.name, line, element, error: why.error, message: why.message })}\n`
      }
      records.append(Buffer.concat(parts))
      reasons.append(Buffer.from(lines))
    },

    /** Flushes both files to disk. */
    flush(): void {
      records.flush()
      reasons.flush()
    },

    /** Closes both files, and removes the ones it created if they are empty. */
    close(): void {
      records.close()
      reasons.close()
    },
  }
}

/** Opens a file to append to it, truncated to its known length. */
function openAppended(path: string, known: number | undefined, io: Pick<Io, 'trusts'>) {
  const attempt = <T>(action: () => T): T => {
    try {
      return action()
    } catch (error) {
      throw unwritable(`The rejects file ${path}`, error, 'Choose another file with --rejects, or free some space')
    }
  }
  const isOurs = known !== undefined || !fs.existsSync(path)
  const { target, fd } = attempt(() => openTarget(path, io))
  let length = known ?? 0
  const { size } = fs.fstatSync(fd)
  if (known === undefined ? size > 0 : size < length) {
    fs.closeSync(fd)
    const [what, hint] =
      known === undefined
        ? ['already exists, and would be overwritten', 'Choose another file with --rejects, or remove it']
        : ['is shorter than it was when the import was interrupted', 'Restore the file, or start again with --restart']
    throw malformed(`${path} ${what}`, hint)
  }
  attempt(() => fs.ftruncateSync(fd, length))
  let end = length === 0 ? undefined : Buffer.alloc(Math.min(length, 2))
  if (end) fs.readSync(fd, end, 0, end.length, length - end.length)
  return {
    get length() {
      return length
    },
    /** the last two bytes, unless the file is empty */
    get end() {
      return end
    },
    append: (bytes: Buffer) => {
      attempt(() => fs.writeFileSync(fd, bytes))
      length += bytes.length
      if (bytes.length > 0) end = Buffer.from(bytes.subarray(-2))
    },
    flush: () => attempt(() => fs.fdatasyncSync(fd)),
    close: () => {
      fs.closeSync(fd)
      if (length === 0 && isOurs) fs.unlinkSync(target)
    },
  }
}

/** Opens only regular files: a device or a pipe cannot be truncated, and opening a pipe could wait for a reader. */
function openTarget(path: string, io: Pick<Io, 'trusts'>): { target: string; fd: number } {
  const target = targetOf(path, io)
  const stats = fs.statSync(target, { throwIfNoEntry: false })
  if (stats && !stats.isFile() && !stats.isDirectory()) throw malformed(`${path} is not a regular file`, 'Choose a file with --rejects')
  const flags = fs.constants.O_RDWR | fs.constants.O_APPEND | fs.constants.O_CREAT
  return { target, fd: fs.openSync(target, flags | (fs.constants.O_NOFOLLOW ?? 0), 0o600) } // a link created since the check may be another user's
}

/** A record that was not created, or whose outcome is unknown. */
export interface RejectedRecord extends InvalidRecord {
  isUnknown?: boolean
  /** its index in a JSON array */
  element?: number | undefined
  /** the number of records of the chunk before it */
  index: number
}

/** The rejected records of a chunk, in input order. An earlier run may have sent the first `sent` rows without idempotency keys. */
export function* rejectedRecords(chunk: Chunk, sent: number, policy: ExistsPolicy): Generator<RejectedRecord> {
  const { invalid, outcomes, rows, firstElement } = chunk
  let [next, parts] = [0, 0]
  const place = (index: number) => ({ index, element: firstElement === undefined ? undefined : firstElement + index - parts })
  for (let row = 0; row <= rows.length; row += 1) {
    for (let record = invalid[next]; record?.row === row; record = invalid[next]) {
      yield { ...record, ...place(row + next) }
      if (!record.why) parts += 1
      next += 1
    }
    const outcome = outcomes[row] ?? Outcome.pending
    if (outcome < Outcome.exists) continue
    const { error, message } = chunk.rejections.get(row) ?? { error: 409, message: idExistsText(rows.idAt(row), policy) }
    const wasSent = outcome === Outcome.exists && row < sent && !comparesPlants(policy)
    const why = wasSent ? `${message}, possibly this very plant: it was in flight when the import was interrupted` : message
    const isUnknown = wasSent || outcome === Outcome.unknown
    yield { ...chunk.rangeOf(row), row, why: { error, message: why }, isUnknown, ...place(row + next) }
  }
}
