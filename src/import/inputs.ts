/*
 * The files and pipes that an import reads, packed or not, as blocks of bytes.
 *
 * All files are read before anything is stored, to check their encoding and to take their SHA-256,
 * and then again. A pipe can be read only once.
 */
import { createHash } from 'node:crypto'
import { createReadStream, type Stats, statSync } from 'node:fs'
import { addAbortSignal, pipeline, type Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { inputError, PlantsError, systemCode } from '../errors.js'
import { type FormatInput, type FormatReader, type InputOptions, peek } from '../formats/chunk.js'
import { assertEncoding, isReadAsUtf8, openFormat } from '../formats/detect.js'
import { areUtf8 } from '../formats/encoding.js'
import { smallestId } from '../plant/fields.js'
import type { Io } from '../platform/io.js'
import { checkSignal } from '../platform/runtime.js'
import { explainRead } from '../platform/text-files.js'
import { getTargetId } from '../stores/change.js'
import { isGenerated, Mapper } from './map-record.js'
import type { ImportAnswers } from './parse-checkpoint.js'

export interface ImportPlan extends InputOptions {
  inputs: ImportInput[]
  /** The import ends after the chunk in which so many records were rejected. */
  maxErrors: number
  dryRun?: true
  atomic?: true
  /** The absolute path of the file for rejected records. */
  rejects?: string | undefined
  restart?: true
  /** Those of the options above that a person was asked for. */
  answers?: ImportAnswers
}

export interface ImportInput {
  /** Absolute, or `-` for stdin. */
  path: string
  name: string
}

interface Closable {
  /** How much of the input is read, from 0 to 1. Undefined for a pipe. */
  progress(): number | undefined
  /** A pending read would keep the process running. */
  close(): void
}

export type OpenInput = FormatReader & Closable

interface Source extends Closable {
  parts: AsyncIterable<Uint8Array>
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

/** @param onBlock is called with each unpacked block */
export async function openContent(
  input: ImportInput,
  io: Io,
  onBlock?: (block: Buffer) => void,
): Promise<FormatInput & Closable> {
  const { name } = input
  const signal = io.handleSignals()
  const { parts, ...source } = openSource(input, io)
  async function* readBlocks(): AsyncGenerator<Buffer> {
    // A block of a packed file can be a thousand unpacked ones.
    for await (const block of unpack(gatherBlocks(parts), name)) {
      await checkSignal(signal)
      onBlock?.(block)
      yield block
    }
  }
  try {
    const { first: head = Buffer.alloc(0), all } = await peek(readBlocks())
    return { ...source, name, head, blocks: all, isReadOnce: !isExamined(input), signal }
  } catch (error) {
    source.close()
    throw error
  }
}

function openSource({ path, name }: ImportInput, io: Io): Source {
  const signal = io.handleSignals()
  const isStdin = path === '-'
  const size = isStdin ? 0 : readStats({ path, name }).size
  const stream = isStdin
    ? (io.stdin.stream() as Readable)
    : createReadStream(path, { highWaterMark: blockBytes })
  addAbortSignal(signal, stream)
  let bytesRead = 0
  async function* readParts(): AsyncGenerator<Uint8Array> {
    try {
      for await (const part of isStdin ? io.stdin.chunks() : (stream as AsyncIterable<Buffer>)) {
        bytesRead += part.length
        yield part
      }
    } catch (error) {
      signal.throwIfAborted()
      throw explainRead(name, error, checkName)
    }
  }
  return {
    parts: readParts(),
    progress: () => (size === 0 ? undefined : Math.min(1, bytesRead / size)),
    close: () => void stream.on('error', () => undefined).destroy(),
  }
}

const checkName = 'Check the name of the file, or use "-" for stdin'

const blockBytes = 196_608

/** A pipe gives small parts. */
async function* gatherBlocks(parts: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let gathered: Uint8Array[] = []
  let length = 0
  for await (const part of parts) {
    gathered.push(part)
    length += part.length
    if (length < blockBytes) continue
    yield joinParts(gathered)
    gathered = []
    length = 0
  }
  if (length > 0) yield joinParts(gathered)
}

/** Copies nothing of a file, which is read in whole blocks. */
function joinParts(parts: readonly Uint8Array[]): Buffer {
  const [first] = parts
  return parts.length === 1 && first instanceof Buffer ? first : Buffer.concat(parts)
}

/** Unpacks gzip (RFC 1952), which begins with two bytes of its own. */
async function* unpack(blocks: AsyncGenerator<Buffer>, name: string): AsyncGenerator<Buffer> {
  const { first, all } = await peek(blocks)
  if (first?.[0] !== 0x1f || first[1] !== 0x8b) return yield* all
  const stream = createGunzip({ chunkSize: blockBytes })
  // The stream emits the same errors.
  pipeline(all, stream, () => undefined)
  try {
    yield* stream as AsyncIterable<Buffer>
  } catch (error) {
    if (!systemCode(error)?.startsWith('Z')) throw error
    throw inputError(`${name} is damaged or incomplete`, 'Fetch or compress it again', error)
  }
}

export interface ExaminedInputs {
  /** The SHA-256 of what each input contains, unpacked. */
  hashes: string[]
  /** Of the records that have an id. Undefined if none has one, or no ids are generated. */
  greatestId: bigint | undefined
}

/**
 * Reads all files before anything is stored, and checks their encoding. An import that generates
 * ids could not be resumed with a corrected file, so the syntax of its files is checked as well.
 * Returns undefined if an input can be read only once.
 */
export async function examineInputs(plan: ImportPlan, io: Io): Promise<ExaminedInputs | undefined> {
  const hashes: string[] = []
  let greatestId: bigint | undefined
  const files = plan.inputs.filter(isExamined)
  for (const input of files) {
    const hash = createHash('sha256')
    const content = await openContent(input, io, (block) => hash.update(block))
    try {
      if (plan.idFrom === undefined) await examineEncoding(content, input, plan, io)
      else greatestId = await findGreatestId(await openFormat(content, plan), plan, greatestId)
    } finally {
      content.close()
    }
    hashes.push(hash.digest('hex'))
  }
  return files.length === plan.inputs.length ? { hashes, greatestId } : undefined
}

/**
 * Throws `input` for bytes of another encoding. UTF-8 is only checked: if a file is not, then it is
 * read again, and decoded, which says where that is.
 */
async function examineEncoding(
  content: FormatInput,
  input: ImportInput,
  plan: ImportPlan,
  io: Io,
): Promise<void> {
  if (!(await isReadAsUtf8(content, plan))) return assertEncoding(content, plan)
  if (await areUtf8(content.blocks)) return
  const again = await openContent(input, io)
  try {
    await assertEncoding(again, plan)
  } finally {
    again.close()
  }
  throw inputError(`${input.name} was changed while it was read`, 'Import it again')
}

/** Returns the SHA-256 of what each file contains, unpacked. */
export async function hashInputs(plan: ImportPlan, io: Io): Promise<string[]> {
  const hashes: string[] = []
  for (const input of plan.inputs) {
    const hash = createHash('sha256')
    const content = await openContent(input, io, (block) => hash.update(block))
    try {
      for await (const _ of content.blocks);
    } finally {
      content.close()
    }
    hashes.push(hash.digest('hex'))
  }
  return hashes
}

/** A pipe can be read only once. */
export function isExamined(input: ImportInput): boolean {
  return input.path !== '-' && readStats(input).isFile()
}

/** @param known the greatest id of other inputs */
async function findGreatestId(
  { header, chunks }: FormatReader,
  plan: ImportPlan,
  known: bigint | undefined,
): Promise<bigint | undefined> {
  const mapper = new Mapper(plan, header, { nextId: smallestId })
  let greatest = known
  for await (const { records } of chunks)
    for (const raw of records) {
      const change = mapper.map(raw)
      if ('error' in change || isGenerated(change.idSource)) continue
      const id = getTargetId(change)
      if (greatest === undefined || id > greatest) greatest = id
    }
  return greatest
}

function readStats({ path, name }: ImportInput): Stats {
  try {
    return statSync(path)
  } catch (error) {
    throw explainRead(name, error, checkName)
  }
}

/** Whether the cause lies in the input, and not in the store or in the program. */
export function isInputError(error: unknown): error is PlantsError {
  return error instanceof PlantsError && error.kind === 'input'
}
