import { createHash } from 'node:crypto'
import { createReadStream, type Stats, statSync } from 'node:fs'
import { addAbortSignal, pipeline, type Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { inputError, systemCode } from '../errors.js'
import { type FormatReader, type InputOptions, peek } from '../formats/chunk.js'
import { assertEncoding, openFormat } from '../formats/detect.js'
import { smallestId } from '../plant/plant.js'
import type { Io } from '../platform/io.js'
import { checkSignal } from '../platform/runtime.js'
import { explainRead } from '../platform/text-files.js'
import { idOf } from '../stores/change.js'
import { Mapper } from './map-record.js'

export interface ImportPlan extends InputOptions {
  inputs: ImportInput[]
  /** The import ends after the chunk in which so many records were rejected. */
  maxErrors: number
  dryRun?: true
  atomic?: true
  rejects?: string | undefined
  restart?: true
}

interface ImportInput {
  /** Absolute, or `-` for stdin. */
  path: string
  name: string
}

export interface OpenInput extends FormatReader {
  /** What is read of it, from 0 to 1. Undefined for a pipe. */
  progress(): number | undefined
  close(): void
}

export async function openInput(input: ImportInput, plan: ImportPlan, io: Io): Promise<OpenInput> {
  const content = await openContent(input, io)
  try {
    return { ...content, ...(await openFormat(content, plan)) }
  } catch (error) {
    content.close()
    throw error
  }
}

async function openContent({ path, name }: ImportInput, io: Io, onBlock?: (block: Buffer) => void) {
  const signal = io.handleSignals()
  const isStdin = path === '-'
  const size = isStdin ? 0 : statsOf({ path, name }).size
  const stream = isStdin
    ? (io.stdin.stream() as Readable)
    : createReadStream(path, { highWaterMark: blockBytes })
  addAbortSignal(signal, stream)
  let bytesRead = 0
  async function* pieces(): AsyncGenerator<Uint8Array> {
    try {
      for await (const piece of isStdin ? io.stdin.chunks() : (stream as AsyncIterable<Buffer>)) {
        bytesRead += piece.length
        yield piece
      }
    } catch (error) {
      signal.throwIfAborted()
      throw explainRead(name, error, useFiles)
    }
  }
  async function* blocks(): AsyncGenerator<Buffer> {
    // A block of a packed file can be a thousand unpacked ones.
    for await (const block of gunzipped(gathered(pieces()), name)) {
      await checkSignal(signal)
      onBlock?.(block)
      yield block
    }
  }
  const progress = () => (size === 0 ? undefined : Math.min(1, bytesRead / size))
  // A pending read would keep the process running.
  const close = () => void stream.on('error', () => undefined).destroy()
  try {
    const { first: head = Buffer.alloc(0), all } = await peek(blocks())
    return { name, head, blocks: all, signal, progress, close }
  } catch (error) {
    close()
    throw error
  }
}

const useFiles = 'Use files that contain plants, or "-" for stdin'

const blockBytes = 196_608

async function* gathered(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let parts: Uint8Array[] = []
  let length = 0
  for await (const piece of pieces) {
    parts.push(piece)
    length += piece.length
    if (length < blockBytes) continue
    yield Buffer.concat(parts)
    parts = []
    length = 0
  }
  if (length > 0) yield Buffer.concat(parts)
}

async function* gunzipped(blocks: AsyncGenerator<Buffer>, name: string): AsyncGenerator<Buffer> {
  const { first, all } = await peek(blocks)
  if (first?.[0] !== 0x1f || first[1] !== 0x8b) return yield* all // RFC 1952
  const stream = createGunzip({ chunkSize: blockBytes })
  pipeline(all, stream, () => undefined) // it emits the same errors
  try {
    yield* stream as AsyncIterable<Buffer>
  } catch (error) {
    if (!systemCode(error)?.startsWith('Z')) throw error
    throw inputError(`${name} is damaged or incomplete`, 'Fetch or compress it again', error)
  }
}

export interface ExaminedInputs {
  hashes: string[]
  greatestId: bigint | undefined
}

/**
 * Reads all before anything is stored, and checks its encoding. A numbered import could not go on with a corrected input,
 * so its syntax is, too. Undefined if an input can be read only once.
 */
export async function examineInputs(plan: ImportPlan, io: Io): Promise<ExaminedInputs | undefined> {
  const hashes: string[] = []
  let greatestId: bigint | undefined
  const files = plan.inputs.filter((input) => input.path !== '-' && statsOf(input).isFile())
  for (const input of files) {
    const hash = createHash('sha256')
    const content = await openContent(input, io, (block) => hash.update(block))
    try {
      if (plan.idFrom === undefined) await assertEncoding(content, plan)
      else greatestId = await greatestIdIn(await openFormat(content, plan), plan, greatestId)
    } finally {
      content.close()
    }
    hashes.push(hash.digest('hex'))
  }
  return files.length === plan.inputs.length ? { hashes, greatestId } : undefined
}

/** @param known in other inputs */
async function greatestIdIn(
  { header, chunks }: FormatReader,
  plan: ImportPlan,
  known: bigint | undefined,
): Promise<bigint | undefined> {
  const mapper = new Mapper(plan, header, { nextId: smallestId })
  let greatest = known
  for await (const { records } of chunks)
    for (const raw of records) {
      const change = mapper.map(raw)
      if ('error' in change || change.isNumbered) continue
      const id = idOf(change)
      if (greatest === undefined || id > greatest) greatest = id
    }
  return greatest
}

function statsOf({ path, name }: ImportInput): Stats {
  try {
    return statSync(path)
  } catch (error) {
    throw explainRead(name, error, useFiles)
  }
}
