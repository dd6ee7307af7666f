import {
  closeSync,
  constants,
  existsSync,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { toJson } from '../../plant/json.js'
import { errorValue, PlantsError } from '../../platform/errors.js'
import { targetOf } from '../../platform/files.js'
import type { Io } from '../../platform/io.js'
import { idExistsText, Outcome } from '../../stores/conflict.js'
import type { Chunk, InvalidRecord, RecordRange } from '../formats/chunk.js'
import { unwritable } from '../unwritable.js'

/** bytes of a rejects file, and of its reasons */
type Lengths = Record<'records' | 'reasons', number>

/**
 * The rejected records, exactly as they came, and in a second file the reasons, a line of JSON for each. What was written counts
 * only up to the lengths in a position: a run that resumes cuts off the rest.
 */
export class Rejects {
  readonly #records: Appended
  readonly #reasons: Appended

  /**
   * Opens both files, and makes them where they are not there. Throws `malformed` when they hold something else.
   *
   * @param lengths of a run that resumes
   */
  constructor(path: string, lengths: Lengths | undefined, io: Pick<Io, 'trusts'>) {
    this.#records = new Appended(path, lengths?.records, io)
    try {
      this.#reasons = new Appended(`${path}.reasons`, lengths?.reasons, io)
    } catch (error) {
      this.#records.close()
      throw error
    }
  }

  get lengths(): Lengths {
    return { records: this.#records.length, reasons: this.#reasons.length }
  }

  /** Writes records of a chunk and the reasons. `name` is of the input, and `header` of its table. Throws `unwritable`. */
  add(rejected: RejectedRecord[], { bytes, name, header }: { bytes: Uint8Array; name: string; header: Uint8Array | undefined }): void {
    if (header && this.#records.length === 0) this.#records.add(header)
    let reasons = ''
    for (const { start, end, line, why } of rejected) {
      if (why) this.#records.breakLine()
      this.#records.add(bytes.subarray(start, end))
      if (why) reasons += `${toJson({ file: name, line, error: why.error, message: why.message })}\n`
    }
    this.#reasons.add(Buffer.from(reasons))
    this.#records.write()
    this.#reasons.write()
  }

  /** Brings what was written down to the disk. Throws `unwritable`. */
  flush(): void {
    this.#records.flush()
    this.#reasons.flush()
  }

  /** Removes them when nothing was rejected. */
  close(): void {
    this.#records.close()
    this.#reasons.close()
  }
}

/** A file that is written from a place on. */
class Appended {
  readonly #path: string
  /** what a link leads to, or the path itself */
  readonly #target: string
  readonly #fd: number
  #waiting: Uint8Array[] = []
  #isOnDisk = true
  /** whether nobody else has made it */
  readonly #isOurs: boolean
  #isInLine = false
  /** with what is still to be written */
  length: number

  constructor(path: string, length: number | undefined, io: Pick<Io, 'trusts'>) {
    this.#path = path
    this.#isOurs = length !== undefined || !existsSync(path)
    this.length = length ?? 0
    ;[this.#target, this.#fd] = this.#try(() => openTarget(path, io))
    const { size } = fstatSync(this.#fd)
    const isNew = length === undefined
    if (isNew ? size > 0 : size < length) {
      closeSync(this.#fd)
      const what = isNew ? 'is there already, and would be lost' : 'is shorter than it was when the import stopped'
      const hint = isNew ? 'Choose another file with --rejects, or remove it' : 'Begin again with --restart, or put the file back'
      throw new PlantsError('malformed', `${path} ${what}`, { hint })
    }
    this.#try(() => ftruncateSync(this.#fd, this.length))
    this.#isInLine = this.length > 0 && !endsLine(this.#fd, this.length)
  }

  /** @param bytes to be left alone until they are written */
  add(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    this.#waiting.push(bytes)
    this.length += bytes.length
    this.#isInLine = bytes.at(-1) !== lineFeed
  }

  breakLine(): void {
    if (this.#isInLine) this.add(Buffer.of(lineFeed))
  }

  write(): void {
    if (this.#waiting.length === 0) return
    this.#isOnDisk = false
    const bytes = Buffer.concat(this.#waiting)
    this.#waiting = []
    this.#try(() => {
      for (let at = 0; at < bytes.length; ) at += writeSync(this.#fd, bytes, at)
    })
  }

  flush(): void {
    if (this.#isOnDisk) return
    this.#try(() => fdatasyncSync(this.#fd))
    this.#isOnDisk = true
  }

  #try<T>(action: () => T): T {
    try {
      return action()
    } catch (error) {
      throw unwritable(`The rejects file ${this.#path}`, error, 'Choose another file with --rejects, or make room')
    }
  }

  close(): void {
    closeSync(this.#fd)
    if (this.length === 0 && this.#isOurs) unlinkSync(this.#target)
  }
}

/** Only files can be cut back: what is a device, or a pipe, is not opened, which may wait for somebody to read it. */
function openTarget(path: string, io: Pick<Io, 'trusts'>): [target: string, fd: number] {
  const target = targetOf(path, io)
  const stats = statSync(target, { throwIfNoEntry: false })
  if (stats && !stats.isFile() && !stats.isDirectory())
    throw new PlantsError('malformed', `${path} is no file`, { hint: 'Name a file with --rejects' })
  const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT
  return [target, openSync(target, flags | (constants.O_NOFOLLOW ?? 0), 0o600)] // a link that is there by now is somebody else's
}

function endsLine(fd: number, length: number): boolean {
  const last = Buffer.alloc(1)
  readSync(fd, last, 0, 1, length - 1)
  return last[0] === lineFeed
}

const lineFeed = 0x0a

/** A record that was not created, or whose outcome is unknown. */
export interface RejectedRecord extends RecordRange {
  /** why: the specification's `error` and `message`; nothing for the rest of the one before, which was too long to be kept */
  why: { error: number; message: string } | undefined
  isUnknown: boolean
}

/** The rejected records of a chunk, in their order. An earlier run may have sent the first `sent` rows without idempotency keys. */
export function* rejectedRecords(chunk: Chunk, sent: number): Generator<RejectedRecord> {
  const { invalid, outcomes, rows } = chunk
  let next = 0
  for (let row = 0; row <= rows.length; row += 1) {
    for (let record = invalid[next]; record?.row === row; record = invalid[next]) {
      yield rejectInvalid(record)
      next += 1
    }
    const outcome = outcomes[row] ?? Outcome.pending
    if (outcome >= Outcome.taken) yield rejectRow(chunk, row, outcome, sent)
  }
}

export function rejectInvalid({ start, end, line, error }: InvalidRecord): RejectedRecord {
  return { start, end, line, why: error && { error: errorValue(error.kind), message: error.message }, isUnknown: false }
}

function rejectRow(chunk: Chunk, row: number, outcome: number, sent: number): RejectedRecord {
  const [start, end, line] = [chunk.recordStart[row] ?? 0, chunk.recordEnd[row] ?? 0, chunk.recordLine[row] ?? 0]
  const { error, message } = chunk.rejections.get(row) ?? { error: 409, message: idExistsText(chunk.rows.idAt(row)) }
  const wasSent = outcome === Outcome.taken && row < sent
  const why = wasSent ? `${message}, perhaps this very one: it was on its way when the import stopped` : message
  return { start, end, line, why: { error, message: why }, isUnknown: wasSent || outcome === Outcome.unknown }
}
