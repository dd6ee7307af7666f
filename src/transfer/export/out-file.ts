import {
  accessSync,
  closeSync,
  constants,
  openSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { setImmediate } from 'node:timers/promises'
import { createGzip } from 'node:zlib'
import { fieldNames, type StoredPlant } from '../../plant/plant.js'
import { documentIn, type FileFormat, type FormatName, formatNames } from '../../plant/records.js'
import {
  AtomicFile,
  assertOwnFile,
  descriptorOf,
  isWrittenInPlace,
  unwritable,
} from '../../platform/atomic-file.js'
import { PlantsError, systemCode, unlessSystemError, usageError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import { targetOf } from '../../platform/files.js'
import { wait } from '../../platform/runtime.js'

export interface OutFile {
  /** Absolute. */
  path: string
  /** A file whose contents would be replaced. */
  exists: boolean
  /** A device or a pipe, which is written to as it is. */
  isInPlace: boolean
}

/** Throws `usage` for a file of another user, and `unwritable` for what cannot be replaced, such as a directory. */
export function outFileAt(path: string): OutFile {
  try {
    const old = oldFileAt(path)
    const isInPlace = isWrittenInPlace(path, old)
    return { path, exists: old !== undefined && !isInPlace, isInPlace }
  } catch (error) {
    throw explained(path, error)
  }
}

function oldFileAt(path: string): Stats | undefined {
  const old = statSync(path, { throwIfNoEntry: false })
  if (old === undefined || isWrittenInPlace(path, old)) return old
  if (old.isDirectory()) throw Object.assign(new Error('a directory'), { code: 'EISDIR' })
  assertOwnFile(path, old, anotherFile)
  accessSync(path, constants.W_OK) // a rename needs no write permission for the file itself
  return old
}

const anotherFile = 'Choose another file'

function explained(path: string, error: unknown): unknown {
  const isFull = ['ENOSPC', 'EDQUOT'].includes(systemCode(error) ?? '')
  const target = unlessSystemError(() => targetOf(path)) ?? path
  return unwritable(
    path,
    target,
    error,
    isFull ? `${anotherFile}, or free some space` : anotherFile,
  )
}

/**
 * Writes a file as a whole or not at all, after all data is on disk. Follows symbolic links. Writes directly to devices
 * and pipes.
 *
 * @returns the number of bytes
 * @throws {PlantsError} as `outFileAt` does, and `usage` if there is a file that may not be replaced
 */
export async function writeOut(
  path: string,
  { mayReplace, signal }: { mayReplace: boolean; signal: AbortSignal },
  bytes: AsyncIterable<Uint8Array>,
): Promise<number> {
  let isInPlace = false
  try {
    const old = oldFileAt(path)
    isInPlace = isWrittenInPlace(path, old)
    if (isInPlace && old) return await writeInPlace(path, old, signal, bytes)
    if (old && !mayReplace) throw appeared(path)
    return await writeWhole(path, old, { mayReplace, signal }, bytes)
  } catch (error) {
    if (!isInPlace && error === signal.reason && error instanceof PlantsError)
      throw new PlantsError(error.kind, `${error.message}, ${path} was not changed`, {
        cause: error,
      })
    if (systemCode(error) === 'EPIPE') throw error
    throw systemCode(error) === 'EEXIST' ? appeared(path) : explained(path, error)
  }
}

/** A file that was not there when it was asked about. */
function appeared(path: string): PlantsError {
  return usageError(
    `${path} was created by another program, and was not replaced`,
    'To replace it, add --yes',
  )
}

/** @param old the file that is replaced; without it, the mode follows the umask */
async function writeWhole(
  path: string,
  old: Stats | undefined,
  { mayReplace, signal }: { mayReplace: boolean; signal: AbortSignal },
  bytes: AsyncIterable<Uint8Array>,
): Promise<number> {
  const file = new AtomicFile(targetOf(path), { followsUmask: old === undefined })
  try {
    const length = await writeAll(file.fd, bytes, signal)
    await file.flush()
    signal.throwIfAborted()
    if (mayReplace) file.commit(old)
    else file.create()
    return length
  } finally {
    file.discard()
  }
}

async function writeInPlace(
  path: string,
  old: Stats,
  signal: AbortSignal,
  bytes: AsyncIterable<Uint8Array>,
): Promise<number> {
  const given = descriptorOf(path, old)
  const fd = given ?? openSync(path, 'a')
  try {
    return await writeAll(fd, bytes, signal)
  } finally {
    if (given === undefined) closeSync(fd)
  }
}

/** Synchronous, with a turn of the event loop after each part, so that signals are handled. */
async function writeAll(
  fd: number,
  pieces: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<number> {
  let length = 0
  for await (const bytes of pieces) {
    for (let at = 0; at < bytes.length; ) {
      try {
        at += writeSync(fd, bytes, at)
      } catch (error) {
        if (systemCode(error) !== 'EAGAIN') throw error
        await wait(1, [signal]) // for the other end of a pipe
      }
    }
    length += bytes.length
    await setImmediate()
    signal.throwIfAborted()
  }
  return length
}

/**
 * The format that the name of a file gives.
 *
 * @param byDefault of a device or a pipe whose name gives none
 * @throws {PlantsError} `usage` for any other name
 */
export function formatOf({ path, isInPlace }: OutFile, byDefault: FormatName): FileFormat {
  const [name = ''] = /[^/\\]*$/.exec(path) ?? []
  const [ending = '', extension = '', compression = ''] = /(?<=.)\.(\w+)(\.gz)?$/i.exec(name) ?? []
  const word = extension.toLowerCase()
  if (word === 'jsonl') return 'ndjson'
  const format = [...formatNames, 'xlsx' as const].find((each) => each === word)
  if (format && (format !== 'xlsx' || compression === '')) return format
  if (isInPlace) return byDefault
  if (ending !== '') throw usageError(`${ending} is not an export format`, chooseFormat)
  throw usageError(
    `The file name ${JSON.stringify(shorten(name))} has no ending that gives its format`,
    formatNames.some((each) => each === name)
      ? `For stdout: --output ${name}. For a file, name it such as: plants.${name}`
      : chooseFormat,
  )
}

type Pages = AsyncIterable<StoredPlant[]>

export function encoderFor(
  path: string,
  format: FileFormat,
): (pages: Pages) => AsyncIterable<Uint8Array> {
  if (format === 'xlsx') return workbookOf
  const isCompressed = /\.gz$/i.test(path)
  return (pages) => (isCompressed ? compressed(encoded(pages, format)) : encoded(pages, format))
}

async function* encoded(pages: Pages, format: FormatName): AsyncGenerator<Uint8Array> {
  const { add, end } = documentIn(format)
  for await (const page of pages) {
    const parts: Buffer[] = []
    for (let from = 0; from < page.length; from += plantsOfText)
      parts.push(Buffer.from(add(page.slice(from, from + plantsOfText))))
    yield Buffer.concat(parts)
  }
  yield Buffer.from(end())
}

/** V8 keeps texts of more than 128 KiB apart from other objects, which takes a third longer. */
const plantsOfText = 250

async function* compressed(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const stream = createGzip()
  const done = pipeline(bytes, stream).catch(() => undefined) // the stream emits the same error
  try {
    yield* stream
  } finally {
    stream.destroy()
    await done
  }
}

/** Texts are texts, also those that begin with `=`, and so are ids of more than 15 digits, which spreadsheets round. */
async function* workbookOf(pages: Pages): AsyncGenerator<Uint8Array> {
  const { writeXlsxStream, XLSX_MAX_ROWS_PER_SHEET } = await import('hucre/xlsx')
  const columns = fieldNames.map((header) => ({ header, width: 24 }))
  yield* writeXlsxStream(rowsOf(pages, XLSX_MAX_ROWS_PER_SHEET), {
    name: 'Plants',
    columns,
    freezePane: { rows: 1 },
    maxRowsPerSheet: Infinity,
  })
}

async function* rowsOf(pages: Pages, maxRows: number) {
  let rows = 1
  for await (const page of pages) {
    for (const plant of page) {
      rows += 1
      if (rows > maxRows)
        throw usageError(
          `A sheet has at most ${maxRows} rows`,
          'Use --limit and --after, or a .csv file',
        )
      yield fieldNames.map((name) => cellOf(plant, name))
    }
  }
}

function cellOf(plant: StoredPlant, name: keyof StoredPlant): string | number | null {
  const value = plant[name]
  if (typeof value === 'bigint')
    return value > -maxNumber && value < maxNumber ? Number(value) : String(value)
  if (value !== undefined && value.length > maxText)
    throw usageError(
      `The ${name} of the plant with id ${plant.id} has ${value.length} characters, but a cell has at most ${maxText}`,
      'Use a .csv file',
    )
  return value === undefined ? null : value.replace(/_(?=x[\dA-F]{4}_)|[\ufffe\uffff]/gi, escaped)
}

/** Such as `_x005F_`, for what would be read as such a word, and for characters that XML cannot have. */
function escaped(character: string): string {
  return `_x${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}_`
}

const maxNumber = 10n ** 15n
/** In UTF-16 code units, as Excel counts. */
const maxText = 32_767

const chooseFormat = `Choose a name that ends with .${formatNames.join(', .')} or .xlsx, or a format, such as: --output csv`
