import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { dirname, join } from 'node:path'
import { tableCell } from '../../plant/records.js'
import {
  assertOwnFile,
  createFile,
  descriptorOf,
  isWrittenInPlace,
  openInPlace,
  targetOf,
  unwritable,
} from '../../platform/atomic-file.js'
import { errorValue, malformed, systemCode } from '../../platform/errors.js'
import { syncFolder } from '../../platform/files.js'
import type { Cell, FormatReader, RawRecord } from '../formats/chunk.js'
import { rejectNames } from '../formats/header.js'

export interface RejectedRecord {
  line: number
  /** index in a JSON array */
  element: number | undefined
  raw: RawRecord
  error: number
  message: string
}

/** Where the rejected records of an import are, by its checkpoint. */
export interface RejectsPosition {
  /** of the import */
  id: string
  /** of the file, which may be longer: a killed run has appended what it did not commit; 0 before the first record */
  length: number
  /** of the last bytes up to there, by which the file is known */
  tail: RejectsTail | undefined
}

export interface RejectsTail {
  bytes: number
  /** their SHA-256 */
  hash: string
}

export function tailOf(bytes: Buffer): RejectsTail {
  return { bytes: bytes.length, hash: createHash('sha256').update(bytes).digest('base64url') }
}

/**
 * The rejected records, each with its line and the reason: a table or NDJSON, which an import takes back. A file is
 * created at the first record, with it, and only by one import: that of a killed run is known by a draft beside it,
 * which is the same file under a name of the import, until the checkpoint has its length.
 */
export class Rejects {
  readonly path: string
  /** through links */
  readonly #target: string
  readonly #draft: string | undefined
  /** that of an import that is begun again, whose file this is until `renew` */
  readonly #oldDraft: string | undefined
  #fd: number | undefined
  /** not `isWrittenInPlace` */
  readonly #isFile: boolean
  /** opened by the shell, and not closed here */
  readonly #isGiven: boolean
  /** where this run has ended it; before that, an earlier run may have appended what it did not commit */
  #end: number | undefined

  /**
   * @param position undefined for an import that cannot be resumed
   * @param replaced that of the import that is begun again
   * @throws {PlantsError} `malformed` for a file that is not that of this import, `unwritable` for one that cannot be made
   */
  static async open(
    path: string,
    position: RejectsPosition | undefined,
    replaced: RejectsPosition | undefined,
    signal: AbortSignal,
  ): Promise<Rejects> {
    const stats = fs.statSync(path, { throwIfNoEntry: false })
    // Its writes block: it is only opened when a pipe has a reader.
    const pipe = stats?.isFIFO() ? await openInPlace(path, signal) : undefined
    try {
      return new Rejects(path, stats, position, replaced)
    } finally {
      if (pipe !== undefined) fs.closeSync(pipe)
    }
  }

  private constructor(
    path: string,
    stats: fs.Stats | undefined,
    position: RejectsPosition | undefined,
    replaced: RejectsPosition | undefined,
  ) {
    this.path = path
    const given = descriptorOf(path, stats)
    this.#isGiven = given !== undefined
    this.#isFile = !isWrittenInPlace(path, stats)
    this.#target = this.#isFile ? targetOf(path) : path
    this.#draft = position && this.#draftOf(position)
    this.#oldDraft = replaced && this.#draftOf(replaced)
    const { length = 0, tail } = replaced ?? position ?? {}
    if (!this.#isFile) this.#fd = given ?? this.#attempt(() => fs.openSync(path, 'a'))
    else if (stats || length > 0) this.#fd = this.#openOwn(stats, length, tail)
    else this.#attempt(() => fs.accessSync(dirname(this.#target), fs.constants.W_OK))
  }

  #openOwn(stats: fs.Stats | undefined, length: number, tail: RejectsTail | undefined): number {
    if (stats?.isFile()) assertOwnFile(this.path, stats, 'Choose another file with --rejects')
    if (stats?.isFile() && length === 0 && !this.#isDraft(stats))
      throw malformed(
        `${this.path} already exists, and would be overwritten`,
        'Choose another file with --rejects, or remove it',
      )
    const restore = 'Restore the file, or add --restart, and --if-exists same for what is stored'
    if ((stats?.size ?? 0) < length)
      throw malformed(`${this.path} is shorter than it was when the import was interrupted`, restore)
    const fd = this.#attempt(() => fs.openSync(this.#target, 'a+'))
    if (tail === undefined || tailOf(readAt(fd, length - tail.bytes, tail.bytes)).hash === tail.hash) return fd
    fs.closeSync(fd)
    throw malformed(`${this.path} is not the file that the interrupted import has written`, restore)
  }

  /** Whether a killed run of this import has made the file, and did not commit what is in it. */
  #isDraft(stats: fs.Stats): boolean {
    const path = this.#oldDraft ?? this.#draft
    const draft = path === undefined ? undefined : fs.statSync(path, { throwIfNoEntry: false })
    return draft !== undefined && isSameFile(draft, stats)
  }

  #draftOf({ id }: RejectsPosition): string {
    return join(dirname(this.#target), `.plants-${id}.tmp`)
  }

  /** Removes the file of the import that is begun again. Call it when no other process can go on with that. */
  renew(): void {
    if (this.#oldDraft === undefined || !this.#isFile) return
    if (this.#fd !== undefined) fs.closeSync(this.#fd)
    this.#fd = undefined
    for (const path of [this.#target, this.#oldDraft]) this.#attempt(() => fs.rmSync(path, { force: true }))
  }

  get hasFile(): boolean {
    return this.#isFile && this.#fd !== undefined
  }

  /** What `append` writes after this length. */
  bytesOf(length: number, rejected: readonly RejectedRecord[], reader: FormatReader): Buffer {
    if (rejected.length === 0) return Buffer.alloc(0)
    const isFirst = length === 0 || (!this.#isFile && this.#end === undefined) // a pipe has no header of an earlier run
    const head = isFirst ? headOf(reader) : ''
    return Buffer.from(head + rejected.map((record) => `${recordOf(record, reader)}\n`).join(''))
  }

  /**
   * Cuts off what was appended and not committed, and returns when all is on disk. Call it only when no other process
   * can go on with the import.
   *
   * @throws {PlantsError} `malformed` when another process has made or changed the file
   */
  append(length: number, bytes: Buffer): void {
    if (this.#fd === undefined) {
      if (bytes.length > 0) this.#fd = this.#create(bytes)
    } else {
      if (this.#isFile) this.#cut(this.#fd, length)
      const fd = this.#fd
      this.#attempt(() => {
        if (bytes.length > 0) fs.writeFileSync(fd, bytes)
        if (bytes.length > 0 && this.#isFile) fs.fdatasyncSync(fd)
      })
    }
    if (this.#fd !== undefined) this.#end = length + bytes.length
  }

  #cut(fd: number, length: number): void {
    const stats = fs.fstatSync(fd)
    const named = fs.statSync(this.#target, { throwIfNoEntry: false })
    const isChanged = stats.size < length || (this.#end !== undefined && stats.size !== this.#end)
    if (isChanged || !named || !isSameFile(named, stats))
      throw malformed(`Another process has changed ${this.path}`, 'Restore the file, and run the same command again')
    if (stats.size > length) this.#attempt(() => fs.ftruncateSync(fd, length))
  }

  /** Gives the file its name when it is on disk: of two imports, one gets it, and no part of a file is ever seen. */
  #create(bytes: Buffer): number {
    const path = this.#draft ?? this.#target
    let fd: number | undefined
    try {
      fd = fs.openSync(path, this.#draft === undefined ? 'ax' : 'a', 0o600) // a killed run may have left a draft
      fs.ftruncateSync(fd, 0)
      fs.writeFileSync(fd, bytes)
      fs.fdatasyncSync(fd)
      if (this.#draft !== undefined) createFile(path, this.#target)
      syncFolder(dirname(this.#target))
      return fd
    } catch (error) {
      if (fd !== undefined) fs.closeSync(fd)
      if (fd !== undefined && this.#draft !== undefined) fs.rmSync(path, { force: true })
      if (systemCode(error) !== 'EEXIST') return this.#attempt(() => raise(error))
      const hint = 'Move it away, and run the same command again'
      throw malformed(`${this.path} was created by another process, and would be overwritten`, hint)
    }
  }

  /** Removes an empty file, and the name of a draft that is committed. */
  close(length: number): void {
    if (this.#fd === undefined) return
    const isEmpty = this.#isFile && fs.fstatSync(this.#fd).size === 0
    if (!this.#isGiven) fs.closeSync(this.#fd)
    if (isEmpty) fs.rmSync(this.#target, { force: true })
    if (this.#draft !== undefined && (isEmpty || length > 0)) fs.rmSync(this.#draft, { force: true })
  }

  #attempt<T>(action: () => T): T {
    try {
      return action()
    } catch (error) {
      throw unwritable(`The rejects file ${this.path}`, error, 'Choose another file with --rejects, or free some space')
    }
  }
}

function readAt(fd: number, position: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  return bytes.subarray(0, fs.readSync(fd, bytes, 0, length, position))
}

function raise(error: unknown): never {
  throw error
}

function isSameFile(one: fs.Stats, other: fs.Stats): boolean {
  return one.ino === other.ino && one.dev === other.dev
}

/** The rejected records of inputs are in one file. */
export function assertSameLayout(reader: FormatReader, first: FormatReader, name: string): void {
  if (headOf(reader) === headOf(first)) return
  const what = `The format or the header of ${name} differs, so its rejected records need a file of their own`
  throw malformed(what, 'Import it alone, with another --rejects')
}

function headOf({ header, delimiter = ',' }: FormatReader): string {
  if (!header) return ''
  const names = header.kept.map((column) => header.names[column] || undefined)
  return `\ufeff${rowOf([...rejectNames.slice(0, 2), ...names], delimiter)}\n`
}

function recordOf({ line, raw, error, message }: RejectedRecord, { header, delimiter = ',' }: FormatReader): string {
  if (typeof raw === 'string') return lineOf(line, message, raw, error === errorValue('malformed'))
  const kept = header?.kept.filter((column) => column < raw.length).map((column) => raw[column]) ?? []
  return rowOf([String(line), message, ...kept, ...raw.slice(header?.names.length)], delimiter)
}

function rowOf(cells: readonly Cell[], delimiter: string): string {
  const texts = cells.map((cell) => (typeof cell === 'object' ? cell.text || undefined : cell))
  return texts.map((text) => (text === undefined ? '' : tableCell(text, delimiter))).join(delimiter)
}

/** The members of the object stay as they are, except those that an earlier import has added. */
function lineOf(line: number, message: string, raw: string, isBroken: boolean): string {
  const start = `{"rejected_line":${line},"rejected_reason":${JSON.stringify(message)}`
  const text = raw.replace(/[\r\n]/g, ' ').trim()
  if (isBroken || !text.startsWith('{')) return `${start}${text && `,"rejected_text":${JSON.stringify(text)}`}}`
  const members = text.slice(1, -1).replace(addedMembers, '').trim()
  return `${start}${members && `,${members}`}}`
}

const addedMembers =
  /^"rejected_line":\d+,"rejected_reason":"(?:[^"\\]|\\.){0,2000}",?(?:"rejected_text":"(?:[^"\\]|\\.){0,2000}",?)?/
