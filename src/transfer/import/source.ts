import { closeSync, constants, createReadStream, fstatSync, openSync, readSync } from 'node:fs'
import { pipeline, Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { maxTimer, wait } from '../../platform/clock.js'
import { malformed, type PlantsError, shellWord, systemCode } from '../../platform/errors.js'
import { detectCompression, detectFileCompression } from '../../platform/files.js'
import type { Io } from '../../platform/io.js'
import { unreadable } from '../../platform/text-files.js'
import { type InputOptions, importOutputOf } from '../formats/formats.js'

export interface ImportInput {
  path: string
  name: string
}

export interface Source {
  name: string
  size: number | undefined
  /** of a workbook, as CSV; known after the first bytes */
  isSheet: boolean
  /**
   * Returns 0 at the end, and undefined if no byte arrived within `timeout` milliseconds, or before the import was
   * stopped.
   */
  read(into: Buffer, timeout?: number): Promise<number | undefined>
  close(): void
}

/** Throws `malformed` for an unreadable input. */
export async function openSource(
  { path, name }: ImportInput,
  options: InputOptions,
  { stdin, signal }: Pick<Io, 'stdin' | 'signal'>,
): Promise<Source> {
  if (path === '-') return streamSource(name, stdin.chunks(), options, signal, () => stdin.stream())
  try {
    // Without O_NONBLOCK, opening a FIFO waits for a writer, and cannot be interrupted.
    const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    const stats = fstatSync(fd)
    const isPlain = !stats.isFIFO() && !stats.isCharacterDevice() && !detectFileCompression(path)
    if (!isPlain || options.sheet !== undefined) {
      const stream = stats.isFIFO() ? await readPipe(fd) : createReadStream(path, { fd, highWaterMark: chunkSize })
      return streamSource(name, stream, options, signal, () => stream)
    }
    const read = async (into: Buffer) => {
      try {
        return readSync(fd, into)
      } catch (error) {
        throw inputError(error, name)
      }
    }
    return { name, size: stats.size, isSheet: false, read, close: () => closeSync(fd) }
  } catch (error) {
    throw inputError(error, name)
  }
}

const chunkSize = 262_144

/** Does not block a thread, which could not be interrupted. */
async function readPipe(fd: number): Promise<Readable> {
  // Bun ignores the file descriptor of a Socket, without an error. Bun.file does not exist in Node.
  const { Bun } = globalThis as { Bun?: { file(fd: number): Blob } }
  if (Bun) return Readable.fromWeb(Bun.file(fd).stream() as ReadableStream)
  const { Socket } = await import('node:net')
  return new Socket({ fd, readable: true, writable: false })
}

function inputError(error: unknown, name: string): unknown {
  const code = systemCode(error)
  return code?.startsWith('E') && !code.startsWith('ERR_') ? unreadableInput(name, error) : error
}

export function unreadableInput(name: string, cause: unknown): PlantsError {
  const hint = /^https?:\/\//i.test(name)
    ? `Download it first: curl -sSfLO ${shellWord(name)}`
    : 'Use files that contain plants, or "-" for stdin'
  return unreadable(name, cause, hint)
}

/** @param stream the underlying stream, which would keep the process running */
function streamSource(
  name: string,
  packed: AsyncIterable<Uint8Array>,
  options: InputOptions,
  stop: AbortSignal,
  stream: () => NodeJS.ReadableStream,
): Source {
  const pieces = unpack()
  let rest: Uint8Array = new Uint8Array()
  let next: Promise<IteratorResult<Uint8Array>> | undefined
  const source: Source = {
    name,
    size: undefined,
    isSheet: false,
    read: async (into, timeout = maxTimer) => {
      while (rest.length === 0) {
        // A piece that is late is awaited again by the next call.
        next ??= pieces.next()
        next.catch(() => undefined) // the race throws it, now or in the next call
        const settled = new AbortController()
        const late = wait(timeout, [stop, settled.signal]).catch(() => undefined)
        try {
          const result = await Promise.race([next, late])
          if (!result) return undefined
          next = undefined
          if (result.done) return 0
          rest = result.value
        } catch (error) {
          throw inputError(error, name)
        } finally {
          settled.abort()
        }
      }
      const taken = rest.subarray(0, into.length)
      into.set(taken)
      rest = rest.subarray(taken.length)
      return taken.length
    },
    close: () => {
      if (next !== undefined) Readable.prototype.destroy.call(stream().on('error', () => undefined))
    },
  }
  async function* unpack(): AsyncGenerator<Uint8Array> {
    let { compression, all } = await detectIn(packed)
    if (compression === 'gzip' || compression === 'zstd')
      ({ compression, all } = await detectIn(decompressed(all, compression, name)))
    source.isSheet = compression === 'zip'
    if (source.isSheet) return yield* csvOfSheet(all, name, options, stop)
    if (options.sheet !== undefined) throw malformed(`${name} is no workbook, and has no sheets`, 'Leave out --sheet')
    yield* all
  }
  return source
}

async function detectIn(pieces: AsyncIterable<Uint8Array>) {
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
  return { compression: detectCompression(head), all: all() }
}

async function* csvOfSheet(
  packed: AsyncIterable<Uint8Array>,
  name: string,
  { format, encoding, sheet, rules }: InputOptions,
  stop: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const given = { '--format': format, '--encoding': encoding, '--delimiter': rules.delimiter }
  const [unused] = Object.entries(given).find(([, value]) => value !== undefined) ?? []
  if (unused !== undefined) throw malformed(`${unused} does not apply to a workbook, as ${name} is`, 'Leave it out')
  const { Workbook } = await import('../formats/workbook.js')
  const workbook = await Workbook.open(await readAll(packed, name), name, stop)
  for await (const rows of workbook.csv(sheet ?? (await workbook.sheetOfPlants(rules)))) yield Buffer.from(rows)
}

async function readAll(packed: AsyncIterable<Uint8Array>, name: string): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of packed) {
    length += piece.length
    if (length > maxWorkbook) throw malformed(`${name} is larger than ${maxWorkbook} bytes`, 'Save the sheet as CSV')
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}

const maxWorkbook = 67_108_864

async function* decompressed(
  packed: AsyncIterable<Uint8Array>,
  compression: 'gzip' | 'zstd',
  name: string,
): AsyncGenerator<Uint8Array> {
  const zlib: Pick<typeof import('node:zlib'), 'createGunzip'> & {
    createZstdDecompress?(options: object): NodeJS.ReadWriteStream // since Node 22.15
  } = await import('node:zlib')
  const stream = compression === 'gzip' ? zlib.createGunzip({ chunkSize }) : zlib.createZstdDecompress?.({ chunkSize })
  if (!stream) {
    const what = `${name} is compressed with ${compression}, which this version of Node cannot decompress`
    throw malformed(what, `Use Node 22.15 or newer, or ${importOutputOf(`${compression} -dc`, name)}`)
  }
  pipeline(packed, stream, () => undefined) // the stream emits the same errors
  try {
    yield* stream as AsyncIterable<Buffer> // a stream of bytes consists of buffers
  } catch (error) {
    if (!systemCode(error)?.startsWith('Z')) throw error
    const what = error instanceof Error ? error.message : ''
    throw malformed(`${name} is damaged: ${compression} reports "${what}"`, 'Compress the original again', error)
  }
}
