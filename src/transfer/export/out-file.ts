import { accessSync, closeSync, constants, openSync, type Stats, statSync, writeSync } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { createGzip } from 'node:zlib'
import type { NewPlant } from '../../plant/fields.js'
import { documentIn, type FileFormat, type FormatName, formatNames } from '../../plant/records.js'
import { AtomicFile, unwritable } from '../../platform/atomic-file.js'
import { malformed, PlantsError, systemCode } from '../../platform/errors.js'
import { descriptorOf, isWrittenInPlace, targetOf } from '../../platform/files.js'
import type { Io } from '../../platform/io.js'
import { assertOwnFile } from '../../platform/trust.js'

/**
 * Replaces a file atomically, after all data is on disk. Follows symbolic links. Writes directly to devices and pipes.
 *
 * @returns the number of bytes
 */
export async function writeOut(
  path: string,
  io: Pick<Io, 'signal'>,
  bytes: AsyncIterable<Uint8Array>,
): Promise<number> {
  let isInPlace = false
  try {
    const old = statSync(path, { throwIfNoEntry: false })
    isInPlace = isWrittenInPlace(path, old)
    return await (isInPlace && old ? writeInPlace(path, old, io.signal, bytes) : replace(path, old, io.signal, bytes))
  } catch (error) {
    if (!isInPlace && error === io.signal.reason && error instanceof PlantsError)
      throw new PlantsError(error.type, `${error.message}, ${path} was not changed`, { cause: error })
    if (systemCode(error) === 'EPIPE') throw error
    throw unwritable(path, error, 'Choose another file with --out FILE, or free some space')
  }
}

async function writeInPlace(
  path: string,
  old: Stats,
  signal: AbortSignal,
  bytes: AsyncIterable<Uint8Array>,
): Promise<number> {
  const given = descriptorOf(path, old)
  let fd = given
  while (fd === undefined) {
    try {
      // Without O_NONBLOCK, opening a pipe waits for a reader, and cannot be interrupted.
      fd = openSync(path, constants.O_WRONLY | constants.O_APPEND | (constants.O_NONBLOCK ?? 0))
    } catch (error) {
      if (systemCode(error) !== 'ENXIO' || !statSync(path).isFIFO()) throw error
      await pause(signal)
    }
  }
  try {
    return await writeAll(fd, bytes, signal)
  } finally {
    if (given === undefined) closeSync(fd)
  }
}

async function replace(
  path: string,
  old: Stats | undefined,
  signal: AbortSignal,
  bytes: AsyncIterable<Uint8Array>,
): Promise<number> {
  if (old?.isDirectory()) throw Object.assign(new Error('a directory'), { code: 'EISDIR' })
  if (old) assertOwnFile(path, old, 'Choose another file with --out FILE')
  if (old) accessSync(path, constants.W_OK) // a rename needs no write permission for the file itself
  const file = new AtomicFile(targetOf(path))
  try {
    const length = await writeAll(file.fd, bytes, signal)
    await file.flush()
    signal.throwIfAborted()
    file.commit(old)
    return length
  } finally {
    file.discard()
  }
}

/** Synchronous, with a turn of the event loop after each part, so that signals are handled. */
async function writeAll(fd: number, pieces: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<number> {
  let length = 0
  for await (const bytes of pieces) {
    for (let at = 0; at < bytes.length; ) {
      try {
        at += writeSync(fd, bytes, at)
      } catch (error) {
        if (systemCode(error) !== 'EAGAIN') throw error
        await pause(signal)
      }
    }
    length += bytes.length
    await setImmediate()
    signal.throwIfAborted()
  }
  return length
}

/** For the other end of a pipe. Throws the reason of the signal. */
async function pause(signal: AbortSignal): Promise<void> {
  await setTimeout(1)
  signal.throwIfAborted()
}

export function formatOfName(path: string): FileFormat {
  const [, name = '', compression = ''] = /[^/\\]\.(\w+)(\.gz)?$/i.exec(path) ?? []
  const extension = name.toLowerCase()
  if (extension === 'xlsx' && compression === '') return extension
  const format = formatNames.find((each) => each === extension)
  if (format || /^(|jsonl|gz)$/.test(extension)) return format ?? 'ndjson'
  throw malformed(
    `.${extension}${compression} is not an export format`,
    `Choose a name that ends with .${formatNames.join(', .')} or .xlsx, or a format, such as: --output csv`,
  )
}

type Pages = AsyncIterable<NewPlant[]>

export async function encoderFor(
  path: string,
  format: FileFormat,
): Promise<(pages: Pages) => AsyncIterable<Uint8Array>> {
  if (format === 'xlsx') return (await import('./workbook-file.js')).workbookOf
  const isCompressed = /\.gz$/i.test(path)
  return (pages) => (isCompressed ? compressed(encoded(pages, format)) : encoded(pages, format))
}

async function* encoded(pages: Pages, format: FormatName): AsyncGenerator<Uint8Array> {
  const { add, end } = documentIn(format)
  for await (const page of pages) yield Buffer.from(add(page))
  yield Buffer.from(end())
}

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
