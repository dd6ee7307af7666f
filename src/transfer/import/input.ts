import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  accessSync,
  constants,
  createReadStream,
  fstatSync,
  lstatSync,
  openSync,
  statSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { pipeline, Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { createGunzip } from 'node:zlib'
import { smallestId } from '../../plant/plant.js'
import { unwritable } from '../../platform/atomic-file.js'
import {
  inputError,
  isWindows,
  must,
  PlantsError,
  systemCode,
  usageError,
} from '../../platform/errors.js'
import { isSameFile } from '../../platform/files.js'
import type { Io } from '../../platform/io.js'
import { checkSignal, maxTimer, within } from '../../platform/runtime.js'
import { explainRead } from '../../platform/text-files.js'
import { type ExistsPolicy, idOf } from '../../stores/common/change.js'
import type { Store } from '../../stores/common/store.js'
import {
  type FormatInput,
  type FormatReader,
  type InputOptions,
  incomplete,
  prepend,
} from '../formats/chunk.js'
import { assertEncoding, isMisencoded, openFormat } from '../formats/formats.js'
import type { Position } from './checkpoint.js'
import { Mapper } from './map.js'
import { PlantNames } from './names.js'
import { assertSameLayout } from './rejected-records.js'

export interface ImportPlan extends InputOptions {
  inputs: ImportInput[]
  ifExists: ExistsPolicy
  /** The import stops after so many rejected records. */
  maxErrors: number
  /** Records that are written at once. */
  maxRecords: number
  /** Whether the next ones are read and mapped meanwhile: while SQLite writes, nothing else runs. */
  readsAhead: boolean
}

export interface ImportInput {
  /** Absolute, or `-` for stdin. */
  path: string
  name: string
}

export interface OpenInput extends FormatReader {
  /** The hash of the bytes that were read. */
  fingerprint(): Position['files'][number]
  close(): void
}

/** Throws `input` for an unreadable input, or one that is the rejects file. */
export function assertReadable({ inputs }: ImportPlan, rejects: string | undefined): void {
  const target = rejects !== undefined && isThere(rejects) ? rejects : undefined
  for (const { path, name } of inputs) {
    if (path === '-') continue
    try {
      if (isWindows)
        statSync(path) // its access knows no permissions, and not NUL
      else accessSync(path, constants.R_OK)
    } catch (error) {
      throw explainInput(name, error)
    }
    if (target !== undefined && isSameFile(path, target))
      throw usageError(
        `The rejects file is the input ${name}`,
        'Choose another file with --rejects',
      )
  }
}

function isThere(rejects: string): boolean {
  try {
    lstatSync(rejects, { throwIfNoEntry: false }) // from Node 22 on, statSync ignores ENOTDIR
    const stats = statSync(rejects, { throwIfNoEntry: false })
    // Windows opens a directory, and is content with a file as one.
    if (stats?.isDirectory()) throw Object.assign(new Error('is a directory'), { code: 'EISDIR' })
    if (stats === undefined) accessSync(dirname(rejects), constants.W_OK)
    return stats !== undefined
  } catch (error) {
    throw unwritable(
      `The rejects file ${rejects}`,
      rejects,
      error,
      'Choose another file with --rejects',
    )
  }
}

/** Throws `input` for an unreadable input and an unusable header. */
export async function openInput(input: ImportInput, plan: ImportPlan, io: Io): Promise<OpenInput> {
  const hash = createHash('sha256')
  let bytes = 0
  const onBlock = (block: Buffer) => {
    hash.update(block)
    bytes += block.length
  }
  const { result, size, close } = await openWith(
    input,
    io,
    (content) => openFormat(content, plan),
    onBlock,
  )
  const fingerprint = () => ({ size, bytes, hash: hash.copy().digest('base64url') })
  const closeAll = () => {
    result.close?.()
    close()
  }
  return { ...result, fingerprint, close: closeAll }
}

async function openWith<Result>(
  { path, name }: ImportInput,
  io: Io,
  open: (content: FormatInput) => Promise<Result>,
  onBlock: (block: Buffer) => void = () => undefined,
): Promise<{ result: Result; size: number | undefined; close(): void }> {
  const { blocks, size, close } = await openBlocks({ path, name }, io)
  async function* counted(): AsyncGenerator<Buffer> {
    try {
      for await (const block of blocks) {
        await checkSignal(io.handleSignals())
        onBlock(block)
        yield block
      }
    } catch (error) {
      throw explainInput(name, error)
    }
  }
  try {
    const unpacked = unpack(counted(), name, io.handleSignals())
    let head = Buffer.alloc(0)
    while (head.length < headSize) {
      const { value, done } = await unpacked.next()
      if (done) break
      head = Buffer.concat([head, value])
    }
    const all = prepend(head.length > 0 ? [head] : [], unpacked)
    const result = await open({ head, blocks: all, name, signal: io.handleSignals() })
    return { result, size, close }
  } catch (error) {
    close()
    throw error
  }
}

const headSize = 16
const blockSize = 524_288
/** For a pipe: its pieces and the block are in memory at once. */
const gatheredSize = 262_144

interface Opened {
  blocks: AsyncIterable<Buffer>
  /** Undefined for a pipe. */
  size?: number
  close(): void
}

async function openBlocks({ path, name }: ImportInput, io: Io): Promise<Opened> {
  const { stdin } = io
  const signal = io.handleSignals()
  if (path === '-') {
    let isOver = false
    async function* pieces(): AsyncGenerator<Uint8Array> {
      yield* stdin.chunks()
      isOver = true
    }
    const close = () => {
      // A pending read would keep the process running.
      if (!isOver) Readable.prototype.destroy.call(stdin.stream().on('error', () => undefined))
    }
    return { blocks: gather(pieces(), signal), close }
  }
  try {
    // Without O_NONBLOCK, opening a FIFO waits for a writer, and cannot be interrupted.
    const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    const stats = fstatSync(fd)
    const stream = stats.isFIFO()
      ? await pipeOf(fd)
      : createReadStream(path, { fd, highWaterMark: blockSize })
    const close = () => void stream.on('error', () => undefined).destroy()
    return stats.isFile()
      ? { blocks: stream, size: stats.size, close }
      : { blocks: gather(stream, signal), close }
  } catch (error) {
    throw explainInput(name, error)
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

export function explainInput(name: string, error: unknown): unknown {
  const isUrl = /^https?:\/\//i.test(name)
  const hint =
    inputHints[systemCode(error) ?? ''] ?? 'Use files that contain plants, or "-" for stdin'
  return explainRead(name, error, isUrl ? 'Download it first' : hint)
}

const inputHints: Readonly<Record<string, string>> = {
  ENOENT: 'Check its name, and the directory that this command is run in',
  EACCES: 'Let this user read it, or choose another file',
}

/** What arrives within a moment becomes one block. Throws the reason of the signal, also while nothing arrives. */
async function* gather(
  pieces: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const iterator = pieces[Symbol.asyncIterator]()
  const read = () => {
    const next = iterator.next()
    next.catch(() => undefined) // it is awaited later
    return next
  }
  let next = read()
  let parts: Uint8Array[] = []
  let length = 0
  for (;;) {
    signal.throwIfAborted()
    const arrived = await within(length < 2 ? maxTimer : maxDelay, [signal], (over) =>
      Promise.race([next, once(over, 'abort').then(() => undefined)]),
    )
    signal.throwIfAborted()
    if (arrived?.done === false) {
      parts.push(arrived.value)
      length += arrived.value.length
      next = read()
      if (length < gatheredSize) continue
    }
    if (length > 0) yield Buffer.concat(parts)
    if (arrived?.done) return
    parts = []
    length = 0
  }
}

/** In milliseconds. Two bytes, which show how all is compressed, are awaited for longer. */
const maxDelay = 100

async function* unpack(
  blocks: AsyncGenerator<Buffer>,
  name: string,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const { value: first, done } = await blocks.next()
  if (done) return
  const all = prepend([first], blocks)
  if (first[0] !== 0x1f || first[1] !== 0x8b) return yield* all // RFC 1952
  const stream = createGunzip({ chunkSize: blockSize })
  pipeline(all, stream, () => undefined) // the stream emits the same errors
  try {
    // A stream of bytes consists of buffers. One packed block can be a thousand unpacked ones.
    for await (const block of stream as AsyncIterable<Buffer>) {
      await checkSignal(signal)
      yield block
    }
  } catch (error) {
    const code = systemCode(error)
    if (!code?.startsWith('Z')) throw error
    if (code === 'Z_BUF_ERROR') throw incomplete(name, 'compress the original again', error)
    const what = error instanceof Error ? error.message : ''
    throw inputError(
      `${name} is damaged: gzip reports "${what}"`,
      'Compress the original again',
      error,
    )
  }
}

/** Before anything is stored. Pipes can be read only once. */
export async function assertSameLayouts(first: OpenInput, plan: ImportPlan, io: Io): Promise<void> {
  for (const input of plan.inputs.slice(1).filter(isFile)) {
    const reader = await openInput(input, plan, io)
    reader.close()
    assertSameLayout(reader, first, input.name)
  }
}

/** Reads tables and JSON documents that can be read twice, before anything is stored. */
export async function assertEncodings(plan: ImportPlan, io: Io): Promise<void> {
  for (const input of plan.inputs.filter(isFile)) {
    const read = async <Result>(
      check: (content: FormatInput, plan: ImportPlan) => Promise<Result>,
    ) => {
      const { result, close } = await openWith(input, io, (content) => check(content, plan))
      close()
      return result
    }
    if (await read(isMisencoded)) await read(assertEncoding)
  }
}

/** To match records by their names. Of inputs that can be read twice, only the names of records without ids are kept. */
export async function readNames(
  plan: ImportPlan,
  store: Pick<Store, 'read'> | undefined,
  io: Io,
): Promise<PlantNames> {
  const names = new PlantNames(plan.inputs.every(isFile))
  names.greatestId = await greatestIdIn(plan, io, names)
  try {
    await names.read(store?.read({ signal: io.handleSignals() }) ?? [])
  } catch (error) {
    if (!(error instanceof PlantsError) || error.status === undefined) throw error
    const message = `The names of all plants could not be read: ${error.message}`
    throw new PlantsError(error.kind, message, { ...error, cause: error })
  }
  return names
}

/**
 * The greatest id of the records that have one. Undefined if an input cannot be read twice.
 *
 * @param names looks up those of the records that have no id
 */
export async function greatestIdIn(
  plan: ImportPlan,
  io: Io,
  names?: PlantNames,
): Promise<bigint | undefined> {
  let greatest: bigint | undefined
  for (const input of plan.inputs.every(isFile) ? plan.inputs : []) {
    const reader = await openInput(input, plan, io)
    const mapper = new Mapper(plan, reader.header, { nextId: smallestId, names }, new Map())
    try {
      for await (const { records } of reader.chunks) {
        for (const raw of records) {
          const { nextId } = mapper
          const change = mapper.map(raw)
          if ('error' in change || mapper.nextId !== nextId) continue // it has no id of its own
          if (greatest === undefined || idOf(change) > greatest) greatest = idOf(change)
        }
        await checkSignal(io.handleSignals())
      }
    } finally {
      reader.close()
    }
  }
  return greatest
}

function isFile({ path }: ImportInput): boolean {
  return path !== '-' && statSync(path).isFile()
}

/** The first input that is not what an earlier run has read. */
export async function changedInput(
  { inputs }: ImportPlan,
  { files }: Position,
  io: Io,
): Promise<ImportInput | undefined> {
  const signal = io.handleSignals()
  for (const [index, { size, bytes, hash }] of files.entries()) {
    const input = must(inputs[index])
    const stats = statSync(input.path)
    const isSame = stats.isFile() && (size === undefined || size === stats.size)
    if (!isSame || (await hashOf(input.path, bytes, signal)) !== hash) return input
  }
  return undefined
}

async function hashOf(path: string, bytes: number, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256')
  for await (const block of bytes > 0
    ? createReadStream(path, { end: bytes - 1, highWaterMark: blockSize })
    : []) {
    hash.update(block)
    signal.throwIfAborted()
  }
  return hash.digest('base64url')
}
