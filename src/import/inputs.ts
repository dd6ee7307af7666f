/*
 * Opens the files and pipes that an import reads, unpacks them if they are packed by gzip, and
 * notices that a file is changed in the meantime.
 *
 * Each file is examined before anything is stored: its header and its encoding are checked. Then it
 * is read again, and its records are imported. A pipe can be read only once, so an import of a pipe
 * may find bytes in a wrong encoding after it has stored records.
 *
 * If another program cut or replaced a file between the two times, a part of a list would be stored
 * as if it were the whole list. If it wrote the file again, the row between two blocks would be the
 * beginning of an old row and the end of a new one. So the file is compared with its state at the
 * start after each block that is read, and before each chunk is stored, which may have been read
 * before the change.
 */
import { createReadStream, fstatSync, type Stats, statSync } from 'node:fs'
import { addAbortSignal, pipeline, type Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import {
  createInputError,
  createUsageError,
  getSystemCode,
  ignoreSystemError,
  PlantsError,
} from '../errors.js'
import { createHeaderFinder } from '../fields/header.js'
import { type InputOptions, openRecords, type RecordReader } from '../fields/open.js'
import { assertEncoding, isUtf8Text } from '../formats/detect.js'
import { createEmptyFileError, maxUnpackedBytes } from '../formats/limits.js'
import { listNames } from '../formats/names.js'
import type { FormatInput } from '../formats/reader.js'
import { parseFileEnding } from '../platform/file-names.js'
import { peek, prepend } from '../platform/generators.js'
import type { Io } from '../platform/io.js'
import { checkSignal } from '../platform/runtime.js'
import { explainRead } from '../platform/text-files.js'
import { RecordMatcher } from './match.js'
import { assertSameHeader } from './rejects.js'

export interface ImportInput {
  /** The absolute path, or `-` for stdin. */
  path: string
  /** The name as it was typed, for messages. */
  name: string
  /** The state of the file before it was read; undefined if it need not stay the same. */
  fingerprint?: string | undefined
  /** The blocks of a pipe that are kept, because they are read twice. */
  keptBlocks?: readonly Buffer[] | undefined
}

export interface ImportPlan extends InputOptions {
  inputs: ImportInput[]
  dryRun?: true
  atomic?: true
  /** The plants that no record stands for are deleted at the end. */
  sync?: true
  /** Whether an option says what to do with plants that exist. */
  hasPolicy?: boolean
  /** Whether the last question of the import is answered by yes. */
  yes?: true
  /** The absolute path of the file for rejected records. */
  rejects?: string | undefined
}

interface Closable {
  /** Returns how much of the input is read, from 0 to 1; undefined for stdin. */
  progress(): number | undefined
  /** Ends a pending read, which would keep the process running. */
  close(): void
}

export type InputReader = RecordReader & Closable

/** The bytes of an input before they are unpacked, in pieces of any size. */
interface PackedInput extends Closable {
  pieces: AsyncIterable<Uint8Array>
}

/**
 * Opens an input, and reads its first block, its format and its header.
 *
 * @throws {PlantsError} `input` if the input cannot be imported
 */
export async function openInput(
  input: ImportInput,
  plan: ImportPlan,
  io: Io,
): Promise<InputReader> {
  const content = await openContent(input, io)
  try {
    const records = await openRecords(content, plan)
    return { ...records, progress: content.progress, close: content.close }
  } catch (error) {
    content.close()
    throw error
  }
}

async function openContent(input: ImportInput, io: Io): Promise<FormatInput & Closable> {
  const { name } = input
  const signal = io.getStopSignal()
  const { pieces, ...source } = openSource(input, io)
  async function* readBlocks(): AsyncGenerator<Buffer> {
    // One packed block can unpack to a thousand blocks, so Ctrl-C is looked for after each of them.
    for await (const block of unpack(gatherBlocks(pieces), name)) {
      await checkSignal(signal)
      yield block
    }
  }
  try {
    const { first: head = Buffer.alloc(0), all } = await peek(readBlocks())
    return { ...source, name, head, blocks: all, isReadOnce: !canBeReadTwice(input), signal }
  } catch (error) {
    source.close()
    throw error
  }
}

function openSource(input: ImportInput, io: Io): PackedInput {
  const { path, name, keptBlocks } = input
  if (keptBlocks)
    return { pieces: prepend(keptBlocks, []), progress: () => undefined, close: () => undefined }
  const signal = io.getStopSignal()
  const isStdin = path === '-'
  const size = isStdin ? 0 : readStats({ path, name }).size
  const stream = isStdin
    ? (io.stdin.openStream() as Readable)
    : createReadStream(path, { highWaterMark: blockBytes })
  addAbortSignal(signal, stream)
  let bytesRead = 0
  async function* readPieces(): AsyncGenerator<Uint8Array> {
    try {
      for await (const piece of isStdin
        ? io.stdin.readChunks()
        : (stream as AsyncIterable<Buffer>)) {
        bytesRead += piece.length
        assertUnchanged(input)
        yield piece
      }
    } catch (error) {
      signal.throwIfAborted()
      throw explainRead(name, error, checkNameHint)
    }
    // A file that was cut has no block after the cut.
    assertUnchanged(input)
  }
  return {
    pieces: readPieces(),
    progress: () => (size === 0 ? undefined : Math.min(1, bytesRead / size)),
    close: () => void stream.on('error', () => undefined).destroy(),
  }
}

const checkNameHint =
  'Check the name of the file, put a name with spaces in quotes, or use "-" for stdin'

/**
 * Reads all files before anything is stored, and checks their columns and their encoding. With
 * `--by-name` and `--sync`, all records of all inputs are read.
 *
 * @param firstReader the first input, which the caller has opened, and so has checked its columns
 * @returns the records that are to be matched; undefined without `--by-name` and `--sync`
 */
export async function examineInputs(
  plan: ImportPlan,
  firstReader: InputReader,
  io: Io,
): Promise<RecordMatcher | undefined> {
  const finder = createHeaderFinder(plan)
  const matcher = plan.byName || plan.sync ? new RecordMatcher(plan) : undefined
  for (const [index, input] of plan.inputs.entries()) {
    if (!canBeReadTwice(input)) continue
    if (index > 0) {
      const reader = await openInput(input, plan, io)
      reader.close()
      if (plan.rejects !== undefined) assertSameHeader(reader, firstReader, input.name)
    }
    const read = <T>(use: (content: FormatInput) => Promise<T>) => useContent(input, io, use)
    if (matcher)
      await read(async (content) => {
        const reader = await openRecords(content, plan)
        assertWholeList(reader, input.name, plan)
        for await (const chunk of reader.readChunks()) matcher.addChunk(chunk)
      })
    // This reads a workbook, another encoding, or UTF-8 in which the line of an error is unknown.
    else if (!(await read((content) => isUtf8Text(content, plan))))
      await read((content) => assertEncoding(content, plan, finder))
  }
  return matcher
}

/** Opens an input whose format is not known yet, and closes it after its use. */
export async function useContent<T>(
  input: ImportInput,
  io: Io,
  use: (content: FormatInput) => Promise<T>,
): Promise<T> {
  const content = await openContent(input, io)
  try {
    return await use(content)
  } finally {
    content.close()
  }
}

/**
 * Whether an input is a file, or a pipe whose content is kept. It is read before it is imported.
 * Any other pipe can be read only once.
 */
export function canBeReadTwice(input: ImportInput): boolean {
  return input.keptBlocks !== undefined || (input.path !== '-' && readStats(input).isFile())
}

/**
 * A part of a list cannot be matched with the store, and `--sync` would delete the plants of the
 * rest.
 *
 * @throws {PlantsError} `usage` for a part of a list, or a guess that decides which records it has
 */
function assertWholeList(reader: RecordReader, name: string, { sync }: ImportPlan): void {
  if (reader.isRejects)
    throw createUsageError(
      `${name} has only the rejected records of a list, and not the whole list`,
      'Correct the list itself, and import it again',
    )
  if (!sync || reader.type === 'json') return
  const { header, workbook } = reader
  if (header?.guessedLine !== undefined)
    throw createUsageError(
      `Line ${header.guessedLine} of ${name} may be the header, or a plant: ${listNames(header.names)}`,
      'If it is the header, use these names in --map; if it is a plant, use --columns',
    )
  if (workbook?.otherSheet !== undefined)
    throw createUsageError(
      `${name} has a second sheet with these columns, ${listNames([workbook.otherSheet])}`,
      'Choose the sheet with --sheet',
    )
}

/**
 * Prepares the inputs of an import that reads them twice if they have to be matched. This finds a
 * missing file before the columns of the others are checked.
 *
 * @throws {PlantsError} `usage` for a pipe with `--sync`, because a pipe may end early
 */
export async function prepareInputs(plan: ImportPlan, io: Io): Promise<ImportPlan> {
  const inputs: ImportInput[] = []
  for (const input of plan.inputs) {
    const isPipe = !canBeReadTwice(input)
    if (isPipe && plan.sync)
      throw createUsageError(
        `${input.name} is not a file: it may end early, and then lacks a part of the list`,
        'Save the list to a file, and import the file',
      )
    const preparedInput = { ...input, fingerprint: readFingerprint(input) }
    inputs.push(isPipe && plan.byName ? await keepPipe(preparedInput, io) : preparedInput)
  }
  return { ...plan, inputs }
}

/**
 * Keeps the content of an input that can be read only once, so that it can be matched first.
 *
 * @throws {PlantsError} `input` for more than 256 MiB
 */
async function keepPipe(input: ImportInput, io: Io): Promise<ImportInput> {
  const keptBlocks: Buffer[] = []
  let lengthBytes = 0
  await useContent(input, io, async ({ blocks }) => {
    for await (const block of blocks) {
      lengthBytes += block.length
      if (lengthBytes > maxUnpackedBytes)
        throw createInputError(
          `${input.name} is larger than 256 MiB, the limit of a list without ids in a pipe`,
          'Save it to a file, and import the file',
        )
      keptBlocks.push(block)
    }
  })
  return { ...input, keptBlocks }
}

function readStats({ path, name }: ImportInput): Stats {
  try {
    return statSync(path)
  } catch (error) {
    throw explainRead(name, error, checkNameHint)
  }
}

/** Whether the input is the cause of an error, and not the store or the program. */
export function isInputError(error: unknown): error is PlantsError {
  return error instanceof PlantsError && error.kind === 'input'
}

/** @throws {PlantsError} `input` if the file has changed since `prepareInputs` */
export function assertUnchanged(input: ImportInput): void {
  const { name, fingerprint } = input
  if (fingerprint === undefined || fingerprint === readFingerprint(input)) return
  const hint = 'Run the command again when no other program writes to the file'
  throw createInputError(`${name} was changed while it was read`, hint)
}

/**
 * Returns what a change of a file changes. It is undefined for a pipe, and for a file that cannot
 * be opened: opening it explains why. A program that copies a file may set the time of its contents
 * (`mtime`) to an earlier one, but not the time of its last change (`ctime`).
 */
function readFingerprint({ path }: ImportInput): string | undefined {
  const options = { bigint: true } as const
  const stats = ignoreSystemError(() =>
    path === '-' ? fstatSync(0, options) : statSync(path, options),
  )
  if (!stats?.isFile()) return undefined
  return [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join()
}

const blockBytes = 65_536

/**
 * Joins pieces into blocks. A pipe yields pieces of a few kilobytes, and the work for a block
 * hardly depends on its size.
 */
async function* gatherBlocks(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let gatheredPieces: Uint8Array[] = []
  let gatheredBytes = 0
  for await (const piece of pieces) {
    gatheredPieces.push(piece)
    gatheredBytes += piece.length
    if (gatheredBytes < blockBytes) continue
    yield joinPieces(gatheredPieces)
    gatheredPieces = []
    gatheredBytes = 0
  }
  if (gatheredBytes > 0) yield joinPieces(gatheredPieces)
}

/** Joins pieces into one buffer. A file yields whole blocks, which are not copied. */
function joinPieces(pieces: readonly Uint8Array[]): Buffer {
  const [first] = pieces
  return pieces.length === 1 && first instanceof Buffer ? first : Buffer.concat(pieces)
}

/**
 * Unpacks gzip, whose first two bytes are 1f 8b (RFC 1952). Other bytes are yielded as they are.
 */
async function* unpack(blocks: AsyncGenerator<Buffer>, name: string): AsyncGenerator<Buffer> {
  const { first, all } = await peek(blocks)
  if (!first && parseFileEnding(name).isGzip) throw createEmptyFileError(name, 'compress')
  if (first?.[0] !== 0x1f || first[1] !== 0x8b) return yield* all
  const stream = createGunzip({ chunkSize: blockBytes })
  // The loop below gets the errors from the stream, so nothing is left to do for them here.
  pipeline(all, stream, () => undefined)
  try {
    yield* stream as AsyncIterable<Buffer>
  } catch (error) {
    if (!getSystemCode(error)?.startsWith('Z')) throw error
    throw createInputError(
      `${name} is damaged or incomplete`,
      'Download or compress the file again',
      error,
    )
  }
}
