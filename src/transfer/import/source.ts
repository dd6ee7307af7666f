import { createHash } from 'node:crypto'
import { closeSync, constants, createReadStream, fstatSync, openSync, readSync } from 'node:fs'
import { pipeline, Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { createGunzip } from 'node:zlib'
import { checkSignal, maxTimer, wait } from '../../platform/clock.js'
import { malformed, type PlantsError, systemCode } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { unreadable } from '../../platform/text-files.js'

export interface ImportInput {
  /** absolute, or `-` for stdin */
  path: string
  name: string
}

/** The bytes of an input that were read. */
export interface Fingerprint {
  /** of the file; undefined for a pipe */
  size: number | undefined
  bytes: number
  /** SHA-256 */
  hash: string
}

export interface Source {
  /** at least 16 bytes, or all */
  head: Buffer
  /** unpacked; from the head on */
  blocks: AsyncIterable<Buffer>
  fingerprint(): Fingerprint
  close(): void
}

/** Throws `malformed` for an unreadable input, and the reason of the signal. */
export async function openSource({ path, name }: ImportInput, io: Pick<Io, 'stdin' | 'signal'>): Promise<Source> {
  const { blocks, size, close } = path === '-' ? openStdin(io) : openPath(path, name, io.signal)
  const hash = createHash('sha256')
  let bytes = 0
  async function* counted(): AsyncGenerator<Buffer> {
    for await (const block of blocks) {
      await checkSignal(io.signal)
      hash.update(block)
      bytes += block.length
      yield block
    }
  }
  const unpacked = unpack(counted(), name)
  let head = Buffer.alloc(0)
  try {
    for (let isDone: boolean | undefined; head.length < headSize && !isDone; ) {
      const { value, done } = await unpacked.next()
      if (value) head = Buffer.concat([head, value])
      isDone = done
    }
  } catch (error) {
    close()
    throw explainInput(name, error)
  }
  async function* all(): AsyncGenerator<Buffer> {
    try {
      if (head.length > 0) yield head
      yield* unpacked
    } catch (error) {
      throw explainInput(name, error)
    }
  }
  const fingerprint = () => ({ size, bytes, hash: hash.copy().digest('base64url') })
  return { head, blocks: all(), fingerprint, close }
}

const headSize = 16
const blockSize = 1_048_576

interface Opened {
  blocks: AsyncIterable<Buffer> | Iterable<Buffer>
  size: number | undefined
  close(): void
}

function openStdin({ stdin, signal }: Pick<Io, 'stdin' | 'signal'>): Opened {
  const gathered = new Gathered(stdin.chunks(), signal)
  const close = () => {
    // a pending read would keep the process running
    if (gathered.isWaiting) Readable.prototype.destroy.call(stdin.stream().on('error', () => undefined))
  }
  return { blocks: gathered, size: undefined, close }
}

function openPath(path: string, name: string, signal: AbortSignal): Opened {
  try {
    // Without O_NONBLOCK, opening a FIFO waits for a writer, and cannot be interrupted.
    const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    const stats = fstatSync(fd)
    if (!stats.isFIFO() && !stats.isCharacterDevice())
      return { blocks: readFile(fd), size: stats.size, close: () => closeSync(fd) }
    const opened = stats.isFIFO() ? pipeOf(fd) : Promise.resolve(createReadStream(path, { fd }))
    async function* pieces(): AsyncGenerator<Buffer> {
      yield* await opened
    }
    const close = () => void opened.then((stream) => stream.on('error', () => undefined).destroy())
    return { blocks: new Gathered(pieces(), signal), size: undefined, close }
  } catch (error) {
    throw explainInput(name, error)
  }
}

function* readFile(fd: number): Generator<Buffer> {
  for (;;) {
    const block = Buffer.allocUnsafeSlow(blockSize)
    const length = readSync(fd, block)
    if (length === 0) return
    yield block.subarray(0, length)
  }
}

/** Does not block a thread, which could not be interrupted. */
async function pipeOf(fd: number): Promise<Readable> {
  // Bun ignores the file descriptor of a Socket, without an error. Bun.file does not exist in Node.
  const { Bun } = globalThis as { Bun?: { file(fd: number): Blob } }
  if (Bun) return Readable.fromWeb(Bun.file(fd).stream() as ReadableStream)
  const { Socket } = await import('node:net')
  return new Socket({ fd, readable: true, writable: false })
}

function explainInput(name: string, error: unknown): unknown {
  const code = systemCode(error)
  return code?.startsWith('E') && !code.startsWith('ERR_') ? unreadableInput(name, error) : error
}

export function unreadableInput(name: string, cause: unknown): PlantsError {
  const isUrl = /^https?:\/\//i.test(name)
  return unreadable(name, cause, isUrl ? 'Download it first' : 'Use files that contain plants, or "-" for stdin')
}

async function* unpack(blocks: AsyncGenerator<Buffer>, name: string): AsyncGenerator<Buffer> {
  const { value: first, done } = await blocks.next()
  if (done) return
  async function* all(): AsyncGenerator<Buffer> {
    yield first
    yield* blocks
  }
  if (first[0] !== 0x1f || first[1] !== 0x8b) return yield* all() // RFC 1952
  const stream = createGunzip({ chunkSize: blockSize })
  pipeline(all(), stream, () => undefined) // the stream emits the same errors
  try {
    yield* stream as AsyncIterable<Buffer> // a stream of bytes consists of buffers
  } catch (error) {
    if (!systemCode(error)?.startsWith('Z')) throw error
    const what = error instanceof Error ? error.message : ''
    throw malformed(`${name} is damaged: gzip reports "${what}"`, 'Compress the original again', error)
  }
}

/** What arrives within a moment becomes one block. Throws the reason of the signal, also while nothing arrives. */
class Gathered implements AsyncIterable<Buffer> {
  readonly #pieces: AsyncIterator<Uint8Array>
  readonly #signal: AbortSignal
  isWaiting = false

  constructor(pieces: AsyncIterable<Uint8Array>, signal: AbortSignal) {
    this.#pieces = pieces[Symbol.asyncIterator]()
    this.#signal = signal
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    let next: Promise<IteratorResult<Uint8Array>> | undefined
    for (;;) {
      const parts: Uint8Array[] = []
      let isEnd = false
      // The first block has at least the two bytes that tell how it is compressed.
      for (let length = 0; length < blockSize && !isEnd; ) {
        next ??= this.#pieces.next()
        this.isWaiting = true
        const result = await this.#arrival(next, length < 2 ? maxTimer : maxDelay)
        if (!result) break
        this.isWaiting = false
        next = undefined
        if (result.done) isEnd = true
        else parts.push(result.value)
        length += result.value?.length ?? 0
      }
      if (parts.length > 0) yield Buffer.concat(parts)
      if (isEnd) return
    }
  }

  /** Undefined if it does not arrive in time. */
  async #arrival<T>(next: Promise<T>, milliseconds: number): Promise<T | undefined> {
    const settled = new AbortController()
    const late = wait(milliseconds, [this.#signal, settled.signal]).then(() => undefined)
    late.catch(() => undefined) // the race throws it, or it does not matter any more
    next.catch(() => undefined) // it is awaited again
    try {
      return await Promise.race([next, late])
    } finally {
      settled.abort()
    }
  }
}

/** how long more is awaited before what has arrived is imported, in milliseconds */
const maxDelay = 100
