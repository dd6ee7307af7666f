import { closeSync, constants, createReadStream, fstatSync, openSync, readSync } from 'node:fs'
import { pipeline, Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { maxTimer, wait } from '../../platform/clock.js'
import { malformed, type PlantsError, shellWord, systemCode } from '../../platform/errors.js'
import { compressionOf } from '../../platform/files.js'
import type { Io } from '../../platform/io.js'
import { unreadable } from '../../platform/text-files.js'
import { decoderFor } from '../formats/encoding.js'
import type { EncodingName } from '../formats/format.js'
import { fileArgument } from '../formats/formats.js'

export interface Input {
  /** absolute, or "-" for stdin */
  path: string
  /** what people call it */
  name: string
}

export interface Source {
  name: string
  /** bytes that it has, where that is known */
  size: number | undefined
  /**
   * Puts its next bytes into a buffer, after `from`, as many as are there and fit, and gives how many: none at its end; undefined when none
   * came within `timeout` milliseconds, or before it was stopped.
   */
  read(into: Buffer, from: number, timeout?: number): Promise<number | undefined>
  close(): void
}

/**
 * Opens an input, and decompresses it where it is compressed. Throws `malformed` for what cannot be read.
 *
 * @param given the options of the import, for a command in a hint
 */
export async function openSource({ path, name }: Input, given: string, { stdin, signal }: Pick<Io, 'stdin' | 'signal'>): Promise<Source> {
  const streamOf = (stream: AsyncIterable<Uint8Array>, handle: () => NodeJS.ReadableStream) =>
    streamSource(name, decompressed(stream, name, given), signal, handle)
  if (path === '-') return streamOf(stdin.chunks(), () => stdin.stream())
  const fileStream = (stream: Readable) => streamOf(stream, () => stream)
  try {
    // Without O_NONBLOCK, the call waits for somebody who writes to a FIFO, and hears no signal.
    const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    const stats = fstatSync(fd)
    if (stats.isFIFO()) return fileStream(await readPipe(fd))
    const head = Buffer.alloc(4)
    if (stats.isCharacterDevice() || compressionOf(head.subarray(0, readSync(fd, head, 0, 4, 0))))
      return fileStream(createReadStream(path, { fd, ...(stats.isFile() ? { start: 0 } : {}), highWaterMark: chunkSize }))
    return { name, size: stats.size, read: async (into, from) => readInto(fd, name, into.subarray(from)), close: () => closeSync(fd) }
  } catch (error) {
    throw explained(error, name)
  }
}

function readInto(fd: number, name: string, into: Buffer): number {
  try {
    return readSync(fd, into)
  } catch (error) {
    throw explained(error, name)
  }
}

/** Reads a pipe as it comes, without a thread that would outlive Ctrl-C. */
async function readPipe(fd: number): Promise<Readable> {
  // Bun's Socket takes no file descriptor: it stays silent. What it reads files with waits as a Socket does, and Node has no such thing.
  const { Bun } = globalThis as { Bun?: { file(fd: number): Blob } }
  if (Bun) return Readable.fromWeb(Bun.file(fd).stream() as ReadableStream)
  const { Socket } = await import('node:net')
  return new Socket({ fd, readable: true, writable: false })
}

function explained(error: unknown, name: string): unknown {
  const code = systemCode(error)
  return code?.startsWith('E') && !code.startsWith('ERR_') ? unreadableInput(name, error) : error
}

export function unreadableInput(name: string, cause: unknown): PlantsError {
  const hint = /^https?:\/\//i.test(name)
    ? `Download it first: curl -sSfLO ${shellWord(name)}`
    : 'Give files that hold plants, or "-" for stdin'
  return unreadable(name, cause, hint)
}

/** @param stream what the input comes from, which would keep the process */
function streamSource(name: string, pieces: AsyncGenerator<Uint8Array>, stop: AbortSignal, stream: () => NodeJS.ReadableStream): Source {
  let rest: Uint8Array = new Uint8Array()
  let next: Promise<IteratorResult<Uint8Array>> | undefined
  /** The next piece, if it comes in time; otherwise it is there for the next call. */
  const nextPiece = async (timeout = maxTimer) => {
    next ??= pieces.next()
    next.catch(() => undefined) // the race below reports it, now or in the next call
    const settled = new AbortController()
    const late = wait(timeout, [stop, settled.signal]).catch(() => undefined)
    try {
      const result = await Promise.race([next, late])
      if (result) next = undefined
      return result
    } catch (error) {
      throw explained(error, name)
    } finally {
      settled.abort()
    }
  }
  return {
    name,
    size: undefined,
    read: async (into, from, timeout) => {
      while (rest.length === 0) {
        const result = await nextPiece(timeout)
        if (!result) return undefined
        if (result.done) return 0
        rest = result.value
      }
      const taken = rest.subarray(0, into.length - from)
      into.set(taken, from)
      rest = rest.subarray(taken.length)
      return taken.length
    },
    close: () => {
      if (next !== undefined) Readable.prototype.destroy.call(stream().on('error', () => undefined))
    },
  }
}

/** A source of UTF-8 for one in another encoding, of which the first bytes were read; undefined for UTF-8. */
export function decodedSource(source: Source, encoding: EncodingName, head: Uint8Array): Source | undefined {
  const decode = decoderFor(encoding, source.name)
  if (!decode) return undefined
  const raw = Buffer.alloc(chunkSize)
  let rest = decode(head, false)
  let isAtEnd = false
  return {
    name: source.name,
    size: undefined,
    read: async (into, from, timeout) => {
      while (rest.length === 0 && !isAtEnd) {
        const count = await source.read(raw, 0, timeout)
        if (count === undefined) return undefined
        isAtEnd = count === 0
        rest = decode(raw.subarray(0, count), isAtEnd)
      }
      const count = rest.copy(into, from)
      rest = rest.subarray(count)
      return count
    },
    close: () => source.close(),
  }
}

/** Gives the pieces of an input as they are, or decompressed. */
async function* decompressed(pieces: AsyncIterable<Uint8Array>, name: string, given: string): AsyncGenerator<Uint8Array> {
  const iterator = pieces[Symbol.asyncIterator]()
  let head = Buffer.alloc(0)
  while (head.length < 4) {
    const { value, done } = await iterator.next()
    if (done) break
    head = Buffer.concat([head, value])
  }
  async function* all(): AsyncGenerator<Uint8Array> {
    if (head.length > 0) yield head
    yield* { [Symbol.asyncIterator]: () => iterator }
  }
  const compression = compressionOf(head)
  yield* compression ? decompress(all(), compression, name, given) : all()
}

/** bytes that are read, and decompressed, at once */
const chunkSize = 262_144

async function* decompress(
  pieces: AsyncIterable<Uint8Array>,
  compression: 'gzip' | 'zstd',
  name: string,
  given: string,
): AsyncIterable<Uint8Array> {
  const zlib: Pick<typeof import('node:zlib'), 'createGunzip'> & {
    createZstdDecompress?(options: object): NodeJS.ReadWriteStream // since Node 22.15
  } = await import('node:zlib')
  const stream = compression === 'gzip' ? zlib.createGunzip({ chunkSize }) : zlib.createZstdDecompress?.({ chunkSize })
  if (!stream) {
    const what = `${name} is compressed with ${compression}, which this version of Node cannot decompress`
    throw malformed(what, `Use Node 22.15 or newer, or: ${compression} -dc${fileArgument(name)} | plants import${given}`)
  }
  pipeline(pieces, stream, () => undefined) // whose errors come out of the stream
  try {
    yield* stream as AsyncIterable<Buffer> // of which a stream of bytes consists
  } catch (error) {
    if (!systemCode(error)?.startsWith('Z')) throw error
    const what = error instanceof Error ? error.message : ''
    throw malformed(`${name} is damaged: ${compression} says "${what}"`, 'Compress it again from its source', error)
  }
}
