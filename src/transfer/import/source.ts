import { closeSync, constants, createReadStream, fstatSync, openSync, readSync } from 'node:fs'
import { pipeline, Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { maxTimer, wait } from '../../platform/clock.js'
import { PlantsError, shellWord, systemCode } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { unreadable } from '../../platform/text-files.js'

/** An input: a file, or stdin. */
export interface Source {
  /** what people call it */
  name: string
  /** bytes that it has, where that is known */
  size: number | undefined
  /**
   * Puts its next bytes into a buffer, after `from`, as many as are there and fit.
   *
   * @param patience milliseconds to wait for them
   * @returns how many: none at its end; undefined when none came in time, or before it was stopped
   */
  read(into: Buffer, from: number, patience?: number): Promise<number | undefined>
  close(): void
}

/**
 * Opens an input, and decompresses it where it is compressed. Throws `malformed` for what cannot be read.
 *
 * @param path absolute, or "-" for stdin
 * @param name what people call it
 */
export async function openSource(path: string, name: string, io: Pick<Io, 'stdin' | 'signal'>): Promise<Source> {
  if (path === '-') return new StreamSource(name, io.stdin.chunks(), io.signal, () => io.stdin.stream())
  try {
    return await openFile(path, name, io.signal)
  } catch (error) {
    throw explained(error, name)
  }
}

async function openFile(path: string, name: string, stop: AbortSignal): Promise<Source> {
  // Without O_NONBLOCK, the call waits for somebody who writes to a FIFO, and hears no signal.
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  const stats = fstatSync(fd)
  const head = Buffer.alloc(4)
  const streamOf = (stream: Readable) => new StreamSource(name, stream, stop, () => stream)
  if (stats.isFIFO()) return streamOf(await readPipe(fd))
  if (stats.isCharacterDevice() || detectCompression(head.subarray(0, readSync(fd, head, 0, 4, 0))))
    return streamOf(createReadStream(path, { fd, ...(stats.isFile() ? { start: 0 } : {}), highWaterMark: 262_144 }))
  return { name, size: stats.size, read: async (into, from) => readInto(fd, name, into.subarray(from)), close: () => closeSync(fd) }
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

/** The error for an input that the system does not let be read. */
export function unreadableInput(name: string, cause: unknown): PlantsError {
  return unreadable(name, cause, 'Give files that hold plants, or "-" for stdin')
}

/** Something that comes in pieces. */
class StreamSource implements Source {
  readonly name: string
  readonly size = undefined
  readonly #pieces: AsyncIterator<Uint8Array>
  readonly #stop: AbortSignal
  readonly #stream: () => NodeJS.ReadableStream
  #rest: Uint8Array = new Uint8Array()
  #next: Promise<IteratorResult<Uint8Array>> | undefined

  /** @param stream what the pieces come from, which would keep the process */
  constructor(name: string, pieces: AsyncIterable<Uint8Array>, stop: AbortSignal, stream: () => NodeJS.ReadableStream) {
    this.name = name
    this.#pieces = decompressed(pieces, name)
    this.#stop = stop
    this.#stream = stream
  }

  async read(into: Buffer, from: number, patience?: number): Promise<number | undefined> {
    while (this.#rest.length === 0) {
      const result = await this.#piece(patience)
      if (result === undefined) return undefined
      if (result.done) return 0
      this.#rest = result.value
    }
    const taken = this.#rest.subarray(0, into.length - from)
    into.set(taken, from)
    this.#rest = this.#rest.subarray(taken.length)
    return taken.length
  }

  close(): void {
    if (this.#next !== undefined) Readable.prototype.destroy.call(this.#stream().on('error', () => undefined))
  }

  /** The next piece, if it comes in time; otherwise it is there for the next call. */
  async #piece(patience: number | undefined): Promise<IteratorResult<Uint8Array> | undefined> {
    this.#next ??= this.#pieces.next()
    this.#next.catch(() => undefined) // who waits for it is told
    const settled = new AbortController()
    const late = wait(patience ?? maxTimer, [this.#stop, settled.signal]).catch(() => undefined)
    try {
      const result = await Promise.race([this.#next, late])
      if (!result) return undefined
      this.#next = undefined
      return result
    } catch (error) {
      throw explained(error, this.name)
    } finally {
      settled.abort()
    }
  }
}

/** Gives the pieces of an input as they are, or decompressed. */
async function* decompressed(pieces: AsyncIterable<Uint8Array>, name: string): AsyncGenerator<Uint8Array> {
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
  const compression = detectCompression(head)
  yield* compression ? decompress(all(), compression, name) : all()
}

interface Compression {
  name: string
  matches(head: Uint8Array): boolean
  createDecompress(zlib: typeof import('node:zlib') & Zstd): NodeJS.ReadWriteStream | undefined
  /** what decompresses it where this runtime cannot */
  program: string
}

/** How bytes are compressed that begin like this: gzip (RFC 1952) or zstd (RFC 8878). */
function detectCompression(head: Uint8Array): Compression | undefined {
  return compressions.find(({ matches }) => matches(head))
}

const chunkSize = 262_144

const compressions: Compression[] = [
  {
    name: 'gzip',
    program: 'gzip -dc',
    matches: ([first, second]) => first === 0x1f && second === 0x8b,
    createDecompress: (zlib) => zlib.createGunzip({ chunkSize }),
  },
  {
    name: 'zstd',
    program: 'zstd -dc',
    matches: (head) => Buffer.from([0x28, 0xb5, 0x2f, 0xfd]).equals(head.subarray(0, 4)),
    createDecompress: ({ createZstdDecompress }: Zstd) => createZstdDecompress?.({ chunkSize }),
  },
]

/** Node has it from 22.15 on. */
type Zstd = { createZstdDecompress?(options: object): NodeJS.ReadWriteStream }

async function* decompress(pieces: AsyncIterable<Uint8Array>, compression: Compression, name: string): AsyncIterable<Uint8Array> {
  const stream = compression.createDecompress(await import('node:zlib'))
  if (!stream) {
    const file = name === 'stdin' ? '' : ` ${shellWord(name.startsWith('-') ? `./${name}` : name)}`
    const what = `${name} is compressed with ${compression.name}, which this version of Node cannot decompress`
    throw new PlantsError('malformed', what, { hint: `Use Node 22.15 or newer, or: ${compression.program}${file} | plants import` })
  }
  pipeline(pieces, stream, () => undefined) // whose errors come out of the stream
  try {
    yield* stream as AsyncIterable<Buffer> // of which a stream of bytes consists
  } catch (error) {
    if (!systemCode(error)?.startsWith('Z')) throw error
    const what = error instanceof Error ? error.message : ''
    throw new PlantsError('malformed', `${name} is damaged: ${compression.name} says "${what}"`, {
      hint: 'Compress it again from its source',
      cause: error,
    })
  }
}
