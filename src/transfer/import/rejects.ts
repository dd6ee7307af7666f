import * as fs from 'node:fs'
import { dirname } from 'node:path'
import { tableCell } from '../../plant/records.js'
import { unwritable } from '../../platform/atomic-file.js'
import { errorValue, malformed } from '../../platform/errors.js'
import { descriptorOf, isWrittenInPlace, syncFolder, targetOf } from '../../platform/files.js'
import { assertOwnFile } from '../../platform/trust.js'
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

/**
 * The rejected records, each with its line and the reason, so that an import takes them back once they are corrected: a
 * table, or NDJSON.
 */
export class Rejects {
  readonly path: string
  readonly #file: OpenFile

  /**
   * @param length of the file of an earlier run, which goes on; without it, there must be none
   * @throws {PlantsError} `malformed` for another file; `unwritable`, as the methods
   */
  constructor(path: string, length: number | undefined) {
    this.path = path
    this.#file = this.#attempt(() => openTarget(path))
    try {
      this.#cut(length ?? 0, length === undefined)
    } catch (error) {
      this.#close()
      throw error
    }
  }

  #cut(length: number, isNew: boolean): void {
    if (!this.#file.isFile) return
    const { size } = fs.fstatSync(this.#file.fd)
    if (isNew && size > 0)
      throw malformed(
        `${this.path} already exists, and would be overwritten`,
        'Choose another file with --rejects, or remove it',
      )
    if (size < length)
      throw malformed(
        `${this.path} is shorter than it was when the import was interrupted`,
        'Restore the file, or start again with --restart',
      )
    if (size > length) this.#attempt(() => fs.ftruncateSync(this.#file.fd, length))
  }

  /** Cuts the file to the length of a checkpoint, appends, and returns the new length when all is on disk. */
  append(length: number, rejected: readonly RejectedRecord[], reader: FormatReader): number {
    this.#cut(length, false)
    if (rejected.length === 0) return length
    const head = length === 0 ? headOf(reader) : ''
    const bytes = Buffer.from(head + rejected.map((record) => `${recordOf(record, reader)}\n`).join(''))
    this.#attempt(() => {
      fs.writeFileSync(this.#file.fd, bytes)
      if (this.#file.isFile) fs.fdatasyncSync(this.#file.fd)
    })
    return length + bytes.length
  }

  /** Removes an empty file. */
  close(): void {
    const isEmpty = this.#file.isFile && fs.fstatSync(this.#file.fd).size === 0
    this.#close()
    if (isEmpty) fs.rmSync(this.#file.target, { force: true })
  }

  #close(): void {
    if (!this.#file.isGiven) fs.closeSync(this.#file.fd)
  }

  #attempt<T>(action: () => T): T {
    try {
      return action()
    } catch (error) {
      throw unwritable(`The rejects file ${this.path}`, error, 'Choose another file with --rejects, or free some space')
    }
  }
}

/** What the rejected records of inputs must have in common to be in one file. */
export function rejectsLayout(reader: FormatReader): string {
  return reader.header ? headOf(reader) : 'NDJSON'
}

function headOf({ header, delimiter = ',' }: FormatReader): string {
  if (!header) return ''
  const [line, reason] = rejectNames
  return `\ufeff${rowOf([line, reason, ...header.kept.map((column) => header.names[column] || undefined)], delimiter)}\n`
}

function recordOf({ line, raw, error, message }: RejectedRecord, reader: FormatReader): string {
  if (typeof raw === 'string') return lineOf(line, message, raw, error === errorValue('malformed'))
  const { header, delimiter = ',' } = reader
  const surplus = raw.slice(header?.names.length)
  const kept = header?.kept.filter((column) => column < raw.length).map((column) => raw[column]) ?? []
  return rowOf([String(line), message, ...kept, ...surplus], delimiter)
}

function rowOf(cells: readonly Cell[], delimiter: string): string {
  const texts = cells.map((cell) => (typeof cell === 'object' ? cell.text || undefined : cell))
  return texts.map((text) => (text === undefined ? '' : tableCell(text, delimiter))).join(delimiter)
}

/** The members of the object stay as they are, except those that an earlier import has added. */
function lineOf(line: number, message: string, raw: string, isBroken: boolean): string {
  const start = `{"rejected_line":${line},"rejected_reason":${JSON.stringify(message)}`
  const text = raw.replace(/[\r\n]/g, ' ').trim()
  if (text === '') return `${start}}`
  if (isBroken || !text.startsWith('{')) return `${start},"rejected_text":${JSON.stringify(text)}}`
  const members = text.slice(1, -1).replace(addedMembers, '')
  return members.trim() === '' ? `${start}}` : `${start},${members}}`
}

const addedMembers =
  /^"rejected_line":\d+,"rejected_reason":"(?:[^"\\]|\\.){0,2000}",?(?:"rejected_text":"(?:[^"\\]|\\.){0,2000}",?)?/

interface OpenFile {
  target: string
  fd: number
  /** not `isWrittenInPlace` */
  isFile: boolean
  /** opened by the shell, and not closed here */
  isGiven: boolean
}

function openTarget(path: string): OpenFile {
  const stats = fs.statSync(path, { throwIfNoEntry: false })
  if (isWrittenInPlace(path, stats)) {
    const given = descriptorOf(path, stats)
    const fd = given ?? fs.openSync(path, fs.constants.O_WRONLY | fs.constants.O_APPEND)
    return { target: path, fd, isFile: false, isGiven: given !== undefined }
  }
  const target = targetOf(path)
  const fd = fs.openSync(target, 'a+', 0o600)
  try {
    assertOwnFile(path, fs.fstatSync(fd), 'Choose another file with --rejects')
    if (!stats) syncFolder(dirname(target))
    return { target, fd, isFile: true, isGiven: false }
  } catch (error) {
    fs.closeSync(fd)
    throw error
  }
}
