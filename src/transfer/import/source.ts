import { closeSync, constants, createReadStream, fstatSync, openSync, readSync } from 'node:fs'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
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
 * Opens an input, and decompresses it where it is compressed.
 *
 * @param path absolute, or "-" for stdin
 * @param name what people call it
 * @param stop ends the wait for what does not come
 * @throws {PlantsError} `malformed` for what cannot be read
 */
export async function openSource(path: string, name: string, { io, stop }: { io: Io; stop: AbortSignal }): Promise<Source> {
  if (path === '-') return new StreamSource(name, decompressed(io.stdin.chunks(), name), { stop, end: () => io.stdin.stream() })
  try {
    return await openFile(path, name, stop)
  } catch (error) {
    throw explained(error, name)
  }
}

async function openFile(path: string, name: string, stop: AbortSignal): Promise<Source> {
  // Without O_NONBLOCK, the call waits for somebody who writes to a FIFO, and hears no signal.
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  const stats = fstatSync(fd)
  const head = Buffer.alloc(4)
  if (stats.isFIFO()) return streamOf(await readPipe(fd), name, stop)
  if (stats.isCharacterDevice() || isCompressed(head.subarray(0, readSync(fd, head, 0, 4, 0))))
    return streamOf(createReadStream(path, { fd, ...(stats.isFile() ? { start: 0 } : {}), highWaterMark: 262_144 }), name, stop)
  return new FileSource(name, stats.size, fd)
}

/** Reads a pipe as it comes, without a thread that would outlive Ctrl-C. */
async function readPipe(fd: number): Promise<Readable> {
  // Bun's Socket takes no file descriptor: it stays silent. What it reads files with waits as a Socket does, and Node has no such thing.
  const { Bun } = globalThis as { Bun?: { file(fd: number): Blob } }
  if (Bun) return Readable.fromWeb(Bun.file(fd).stream() as ReadableStream)
  const { Socket } = await import('node:net')
  return new Socket({ fd, readable: true, writable: false })
}

function streamOf(stream: Readable, name: string, stop: AbortSignal): Source {
  return new StreamSource(name, decompressed(stream, name), { stop, end: () => stream })
}

function explained(error: unknown, name: string): unknown {
  const code = systemCode(error)
  return code?.startsWith('E') && !code.startsWith('ERR_') ? unreadableInput(name, error) : error
}

/** The error for an input that the system does not let be read. */
export function unreadableInput(name: string, cause: unknown): PlantsError {
  return unreadable(name, cause, 'Give files that hold plants, or "-" for stdin')
}

/** A file with a size, read with plain system calls. */
class FileSource implements Source {
  readonly name: string
  readonly size: number
  readonly #fd: number

  constructor(name: string, size: number, fd: number) {
    this.name = name
    this.size = size
    this.#fd = fd
  }

  async read(into: Buffer, from: number): Promise<number> {
    try {
      return readSync(this.#fd, into, from, into.length - from, null)
    } catch (error) {
      throw explained(error, this.name)
    }
  }

  close(): void {
    closeSync(this.#fd)
  }
}

interface Ending {
  stop: AbortSignal
  /** the stream that the pieces come from, which would keep the process */
  end(): NodeJS.ReadableStream
}

/** Something that comes in pieces. */
class StreamSource implements Source {
  readonly name: string
  readonly size = undefined
  readonly #pieces: AsyncIterator<Uint8Array>
  readonly #ending: Ending
  #rest: Uint8Array = new Uint8Array()
  #next: Promise<IteratorResult<Uint8Array>> | undefined

  constructor(name: string, pieces: AsyncIterable<Uint8Array>, ending: Ending) {
    this.name = name
    this.#pieces = pieces[Symbol.asyncIterator]()
    this.#ending = ending
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
    if (this.#next !== undefined) this.#ending.end().on('error', () => undefined)
    if (this.#next !== undefined) Readable.prototype.destroy.call(this.#ending.end())
  }

  /** The next piece, if it comes in time; otherwise it is there for the next call. */
  async #piece(patience: number | undefined): Promise<IteratorResult<Uint8Array> | undefined> {
    this.#next ??= this.#pieces.next()
    this.#next.catch(() => undefined) // who waits for it is told
    const result = await inTime(this.#next, this.#ending.stop, patience).catch((error: unknown) => {
      throw explained(error, this.name)
    })
    if (result !== undefined) this.#next = undefined
    return result
  }
}

function inTime<T>(promise: Promise<T>, stop: AbortSignal, milliseconds: number | undefined): Promise<T | undefined> {
  let leave = () => {}
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    leave = () => resolve(undefined)
    if (milliseconds !== undefined) timer = setTimeout(leave, milliseconds)
    stop.addEventListener('abort', leave)
    if (stop.aborted) leave()
  })
  return Promise.race([promise, late]).finally(() => {
    clearTimeout(timer)
    stop.removeEventListener('abort', leave)
  })
}

/** Whether bytes begin like gzip (RFC 1952) or zstd (RFC 8878). */
function isCompressed(head: Uint8Array): boolean {
  return compressions.some((compression) => compression.matches(head))
}

/**
 * Gives the pieces of an input as they are, or decompressed.
 *
 * @throws {PlantsError} `malformed` for what is damaged, or what this runtime cannot decompress
 */
async function* decompressed(pieces: AsyncIterable<Uint8Array>, name: string): AsyncIterable<Uint8Array> {
  const iterator = pieces[Symbol.asyncIterator]()
  let head = Buffer.alloc(0)
  while (head.length < 4) {
    const { value, done } = await iterator.next()
    if (done) break
    head = Buffer.concat([head, value])
  }
  const all = resumed(head, iterator)
  const compression = compressions.find(({ matches }) => matches(head))
  yield* compression ? decompress(all, compression, name) : all
}

async function* resumed(head: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncIterable<Uint8Array> {
  if (head.length > 0) yield head
  yield* { [Symbol.asyncIterator]: () => rest }
}

interface Compression {
  name: string
  matches(head: Uint8Array): boolean
  createDecompress(zlib: typeof import('node:zlib')): NodeJS.ReadWriteStream | undefined
  /** what decompresses it where this runtime cannot */
  program: string
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
    createDecompress: (zlib) => ('createZstdDecompress' in zlib ? (zlib as Zstd).createZstdDecompress({ chunkSize }) : undefined),
  },
]

/** Node has it from 22.15 on. */
interface Zstd {
  createZstdDecompress(options: object): NodeJS.ReadWriteStream
}

async function* decompress(pieces: AsyncIterable<Uint8Array>, compression: Compression, name: string): AsyncIterable<Uint8Array> {
  const stream = compression.createDecompress(await import('node:zlib'))
  if (!stream) {
    const file = name === 'stdin' ? '' : ` ${shellWord(name.startsWith('-') ? `./${name}` : name)}`
    const hint = `Use Node 22.15 or newer, or: ${compression.program}${file} | plants import`
    throw new PlantsError('malformed', `${name} is compressed with ${compression.name}, which this version of Node cannot decompress`, {
      hint,
    })
  }
  const input = Readable.from(pieces)
  input.on('error', (error) => Readable.prototype.destroy.call(stream, error)).pipe(stream)
  try {
    yield* stream as AsyncIterable<Buffer> // of which a stream of bytes consists
  } catch (error) {
    if (!systemCode(error)?.startsWith('Z')) throw error
    const what = error instanceof Error ? error.message : ''
    throw new PlantsError('malformed', `${name} is damaged: ${compression.name} says "${what}"`, {
      hint: 'Compress it again from its source',
      cause: error,
    })
  } finally {
    input.destroy()
  }
}
