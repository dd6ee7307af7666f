import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { dirname, join } from 'node:path'
import {
  assertOwnFile,
  createFile,
  descriptorOf,
  isWrittenInPlace,
  unwritable,
} from '../../platform/atomic-file.js'
import { systemCode, usageError } from '../../platform/errors.js'
import { syncFolder, targetOf } from '../../platform/files.js'
import type { FormatReader } from '../formats/chunk.js'
import type { Position } from './checkpoint.js'
import { type RejectedRecord, rejectsHeader, rejectsRow } from './rejected-records.js'

/** Of a checkpoint: where the rejects file ends, which is longer if a killed run has appended what it did not commit. */
interface SavedRejects {
  id: string
  position: Pick<Position, 'rejects' | 'rejectsTail'>
}

interface Owners {
  /** Undefined if the import cannot be resumed. */
  saved: SavedRejects | undefined
  /** The import that this one replaces. */
  replaced: SavedRejects | undefined
}

function tailOf(bytes: Buffer): NonNullable<Position['rejectsTail']> {
  return { bytes: bytes.length, hash: createHash('sha256').update(bytes).digest('base64url') }
}

/**
 * The file of the rejected records. It is created with the first of them, and never shared by two imports. Until the
 * checkpoint has its length, it has a second name, the draft, which is that of the import: so the file of a killed run
 * is known.
 */
export class Rejects {
  readonly #path: string
  /** What `path` resolves to. */
  readonly #target: string
  readonly #draft: string | undefined
  /** The rejects of the import that is replaced, whose file this is until `removeReplaced`. */
  readonly #oldDraft: string | undefined
  #fd: number | undefined
  /** Neither a pipe nor a device: see `isWrittenInPlace`. */
  readonly #isFile: boolean
  /** Whether the shell has opened it, and closes it. */
  readonly #isGiven: boolean
  /** Its length after the last `append` of this run. Undefined before that, when its end may not be committed. */
  #end: number | undefined

  /** @throws {PlantsError} `usage` for a file of another owner, `unwritable` for one that cannot be created */
  constructor(path: string, { saved, replaced }: Owners) {
    const stats = fs.statSync(path, { throwIfNoEntry: false })
    this.#path = path
    const given = descriptorOf(path, stats)
    this.#isGiven = given !== undefined
    this.#isFile = !isWrittenInPlace(path, stats)
    this.#target = this.#isFile ? targetOf(path) : path
    this.#draft = saved && this.#draftOf(saved)
    this.#oldDraft = replaced && this.#draftOf(replaced)
    if (!this.#isFile) this.#fd = given ?? this.#attempt(() => fs.openSync(path, 'a'))
    else if (stats || (!replaced && saved?.position.rejects))
      this.#fd = this.#openExisting(stats, { saved, replaced })
    else this.#attempt(() => fs.accessSync(dirname(this.#target), fs.constants.W_OK))
  }

  #openExisting(stats: fs.Stats | undefined, { saved, replaced }: Owners): number {
    const { rejects: length = 0, rejectsTail: tail } = (replaced ?? saved)?.position ?? {}
    const exists = usageError(
      `${this.#path} already exists, and would be overwritten`,
      'Choose another file with --rejects, or remove it',
    )
    const isNew = length === 0 && stats?.isFile() === true && !this.#isDraft(stats)
    if (stats?.isFile()) assertOwnFile(this.#path, stats, 'Choose another file with --rejects')
    if (isNew) throw exists
    const isShorter = (stats?.size ?? 0) < length
    const fd = isShorter ? undefined : this.#attempt(() => fs.openSync(this.#target, 'r+'))
    const end = tail && fd !== undefined ? readAt(fd, length - tail.bytes, tail.bytes) : undefined
    if (fd !== undefined && (!tail || (end && tailOf(end).hash === tail.hash))) return fd
    if (fd !== undefined) fs.closeSync(fd)
    if (replaced) throw exists
    const what = isShorter
      ? 'is shorter than it was when the import was interrupted'
      : 'is not the file that the interrupted import has written'
    throw usageError(
      `${this.#path} ${what}`,
      'Restore the file, or add --restart, and --if-exists same for what is stored',
    )
  }

  /** Whether a killed run of this import, or of the one that it replaces, has created the file. */
  #isDraft(stats: fs.Stats): boolean {
    const path = this.#oldDraft ?? this.#draft
    return path !== undefined && isNamed(path, stats)
  }

  #draftOf({ id }: SavedRejects): string {
    return join(dirname(this.#target), `.plants-${id}.tmp`)
  }

  /** Call it when the checkpoint is saved: no other process can then resume the import that is replaced. */
  removeReplaced(): void {
    if (this.#oldDraft === undefined || !this.#isFile) return
    if (this.#fd !== undefined) fs.closeSync(this.#fd)
    this.#fd = undefined
    for (const path of [this.#target, this.#oldDraft])
      this.#attempt(() => fs.rmSync(path, { force: true }))
  }

  get hasFile(): boolean {
    return this.#isFile && this.#fd !== undefined
  }

  /** What `append` writes for these records, and the position after it. */
  prepare(
    position: SavedRejects['position'],
    rejected: readonly RejectedRecord[],
    reader: FormatReader,
  ) {
    const { rejects: length = 0, rejectsTail } = position
    if (rejected.length === 0)
      return { bytes: Buffer.alloc(0), end: { rejects: length, rejectsTail } }
    const isFirst = length === 0 || (!this.#isFile && this.#end === undefined) // a pipe has no header of an earlier run
    const header = isFirst ? rejectsHeader(reader) : ''
    const bytes = Buffer.from(
      header + rejected.map((record) => `${rejectsRow(record, reader)}\n`).join(''),
    )
    return { bytes, end: { rejects: length + bytes.length, rejectsTail: tailOf(bytes) } }
  }

  /**
   * Cuts off what was not committed, and appends. Call it when the checkpoint is saved, and commit afterwards: all is on
   * disk when it returns.
   *
   * @throws {PlantsError} `usage` when another process has created or changed the file
   */
  append(length: number, bytes: Buffer): void {
    if (this.#fd !== undefined) this.#write(this.#fd, length, bytes)
    else if (bytes.length > 0) this.#fd = this.#create(bytes)
    else return
    this.#end = length + bytes.length
  }

  #write(fd: number, length: number, bytes: Buffer): void {
    if (this.#isFile) this.#cut(fd, length)
    if (bytes.length === 0) return
    this.#attempt(() => {
      if (!this.#isFile) return fs.writeFileSync(fd, bytes)
      // At its place: one that is late, when another process has gone on, writes what is there.
      for (let written = 0; written < bytes.length; )
        written += fs.writeSync(fd, bytes, written, bytes.length - written, length + written)
      fs.fdatasyncSync(fd)
    })
  }

  #cut(fd: number, length: number): void {
    const stats = fs.fstatSync(fd)
    const isChanged = stats.size < length || (this.#end !== undefined && stats.size !== this.#end)
    if (isChanged || !isNamed(this.#target, stats))
      throw usageError(
        `Another process has changed ${this.#path}`,
        'Restore the file, and run the same command again',
      )
    if (stats.size > length) this.#attempt(() => fs.ftruncateSync(fd, length))
  }

  /** Gives the file its name when all is on disk: of two imports, one gets it, and nobody reads a part of it. */
  #create(bytes: Buffer): number {
    const path = this.#draft ?? this.#target
    let fd: number | undefined
    try {
      if (this.#draft !== undefined) fs.rmSync(this.#draft, { force: true }) // a killed run may have left it
      fd = fs.openSync(path, 'wx', 0o600)
      fs.writeFileSync(fd, bytes)
      fs.fdatasyncSync(fd)
      if (this.#draft !== undefined) createFile(path, this.#target)
      syncFolder(dirname(this.#target))
      return fd
    } catch (error) {
      const stats = fd === undefined ? undefined : fs.fstatSync(fd)
      if (fd !== undefined) fs.closeSync(fd)
      for (const name of [path, this.#target]) if (stats && isNamed(name, stats)) fs.rmSync(name)
      if (systemCode(error) !== 'EEXIST') throw this.#unwritable(error)
      const hint = 'Wait for its end, move the file away, and run the same command again'
      throw usageError(
        `${this.#path} was created by another process, and would be overwritten`,
        hint,
      )
    }
  }

  /** Removes the file if it is empty, and the draft if the checkpoint has its length. */
  close(length: number): void {
    if (this.#fd === undefined) return
    const stats = fs.fstatSync(this.#fd)
    const isEmpty = this.#isFile && stats.size === 0
    if (!this.#isGiven) fs.closeSync(this.#fd)
    if (isEmpty && isNamed(this.#target, stats)) fs.rmSync(this.#target)
    if (this.#draft !== undefined && (isEmpty || length > 0))
      fs.rmSync(this.#draft, { force: true })
  }

  #attempt<T>(action: () => T): T {
    try {
      return action()
    } catch (error) {
      throw this.#unwritable(error)
    }
  }

  #unwritable(error: unknown): unknown {
    return unwritable(
      `The rejects file ${this.#path}`,
      this.#target,
      error,
      'Choose another file with --rejects, or free some space',
    )
  }
}

function readAt(fd: number, position: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  return bytes.subarray(0, fs.readSync(fd, bytes, 0, length, position))
}

function isNamed(path: string, { ino, dev }: fs.Stats): boolean {
  const stats = fs.statSync(path, { throwIfNoEntry: false })
  return stats?.ino === ino && stats.dev === dev
}
