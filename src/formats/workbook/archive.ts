/*
 * The ZIP archive (PKWARE's APPNOTE) that holds the parts of a workbook.
 *
 * A workbook may come from anybody, so its archive may be damaged, or made to unpack to gigabytes.
 * yauzl reads the directory, also in its 64-bit form (ZIP64). This file unpacks the contents
 * itself, because yauzl does not check the CRC-32, and inflates in slow blocks of 16 KiB. A part
 * that unpacks to more bytes than the directory says is an error, and so is a part of two sheets,
 * so the sum of the sizes in the directory limits time and memory.
 */
import { posix } from 'node:path'
import { crc32, createInflateRaw } from 'node:zlib'
import { type Entry, fromBufferPromise, type ZipFile } from 'yauzl'
import { getSystemCode } from '../../errors.js'
import { checkSignal } from '../../platform/runtime.js'
import { maxUnpackedBytes } from '../limits.js'
import { createTooLargeError, DamageError } from './damage.js'

export class Archive {
  private constructor(
    private readonly bytes: Buffer,
    private readonly zip: ZipFile,
    private readonly entries: ReadonlyMap<string, readonly Entry[]>,
    private readonly signal: AbortSignal,
    /** The name of the file, for messages. */
    readonly file: string,
  ) {}

  /**
   * @throws {PlantsError} `input` if the parts would unpack to more than 256 MiB
   * @throws {DamageError} if the directory cannot be read
   */
  static async open(bytes: Buffer, file: string, signal: AbortSignal): Promise<Archive> {
    const { zip, entries } = await readDirectory(bytes, signal)
    const unpackedBytes = entries.reduce((sum, { uncompressedSize }) => sum + uncompressedSize, 0)
    if (unpackedBytes > maxUnpackedBytes || entries.length > maxEntries)
      throw createTooLargeError(file)
    const byPath = new Map<string, Entry[]>()
    for (const entry of entries) {
      // All parts of a workbook have names in ASCII. If another entry has a name in another
      // encoding, a wrong name does no harm, because nothing looks for that entry.
      const path = foldPath(entry.fileNameRaw.toString())
      const entriesOfPath = byPath.get(path)
      if (entriesOfPath) entriesOfPath.push(entry)
      else byPath.set(path, [entry])
    }
    return new Archive(bytes, zip, byPath, signal, file)
  }

  /** The paths of all parts, in lower case and with `/` between folders. */
  get paths(): string[] {
    return [...this.entries.keys()]
  }

  get isEncrypted(): boolean {
    return [...this.entries.values()].flat().some((entry) => entry.isEncrypted())
  }

  has(path: string): boolean {
    return this.entries.has(foldPath(path))
  }

  /**
   * @returns the size of a part after unpacking, in bytes
   * @throws {DamageError} if the part is missing, or there are two
   */
  measure(path: string): number {
    return this.#findEntry(path).uncompressedSize
  }

  /**
   * Yields the unpacked content of a part. After each block, it lets the event loop deliver
   * signals: Ctrl-C would otherwise wait for the end of a large part.
   */
  async *read(path: string): AsyncGenerator<Buffer> {
    const entry = this.#findEntry(path)
    let length = 0
    let checksum = 0
    for await (const block of inflate(await this.#readPacked(entry, path), entry, path)) {
      length += block.length
      // The content may go on for gigabytes. The check below finds that it is too long.
      if (length > entry.uncompressedSize) break
      checksum = crc32(block, checksum)
      yield block
      await checkSignal(this.signal)
    }
    if (length !== entry.uncompressedSize) throw new DamageError(`the size of ${path} is wrong`)
    if (checksum !== entry.crc32) throw new DamageError(`the checksum of ${path} is wrong`)
  }

  /**
   * Rejects a part that is too large to stay in memory, where its content takes several times as
   * much room as the part.
   */
  assertSize(path: string): void {
    if (this.measure(path) > maxKeptBytes) throw createTooLargeError(this.file)
  }

  async readWhole(path: string): Promise<Buffer> {
    const blocks: Buffer[] = []
    for await (const block of this.read(path)) blocks.push(block)
    return Buffer.concat(blocks)
  }

  #findEntry(path: string): Entry {
    const [entry, duplicate] = this.entries.get(foldPath(path)) ?? []
    if (!entry) throw new DamageError(`${path} is missing`)
    if (duplicate) throw new DamageError(`two parts have the name ${path}`)
    return entry
  }

  async #readPacked(entry: Entry, path: string): Promise<Buffer> {
    const { fileDataStart: start } = await this.zip
      .readLocalFileHeaderPromise(entry, { minimal: true })
      .catch((error: unknown) => {
        throw new DamageError(`${path} is not at the position that the directory gives`, {
          cause: error,
        })
      })
    return this.bytes.subarray(start, start + entry.compressedSize)
  }
}

async function readDirectory(
  bytes: Buffer,
  signal: AbortSignal,
): Promise<{ zip: ZipFile; entries: Entry[] }> {
  const entries: Entry[] = []
  try {
    // A name is decoded below: yauzl would reject one that begins with `/`.
    const options = { lazyEntries: true, decodeStrings: false, autoClose: false }
    const zip = await fromBufferPromise(bytes, options)
    for await (const entry of zip.eachEntry()) {
      // An entry may have 16,000 extra fields, and nothing reads them.
      entry.extraFields = []
      entries.push(entry)
      if (entries.length > maxEntries || signal.aborted) break
    }
    signal.throwIfAborted()
    return { zip, entries }
  } catch (error) {
    signal.throwIfAborted()
    throw new DamageError('its list of parts cannot be read', { cause: error })
  }
}

async function* inflate(packedBytes: Buffer, entry: Entry, path: string): AsyncGenerator<Buffer> {
  const { compressionMethod } = entry
  if (compressionMethod === storedMethod) {
    for (let start = 0; start < packedBytes.length; start += blockBytes)
      yield packedBytes.subarray(start, start + blockBytes)
    return
  }
  if (compressionMethod !== deflatedMethod)
    throw new DamageError(`${path} is compressed by an unknown method (${compressionMethod})`)
  const stream = createInflateRaw({ chunkSize: blockBytes })
  stream.end(packedBytes)
  try {
    yield* stream as AsyncIterable<Buffer>
  } catch (error) {
    if (!getSystemCode(error)?.startsWith('Z')) throw error
    throw new DamageError(`${path} cannot be unpacked`, { cause: error })
  }
}

/**
 * Folds the path of a part as spreadsheets do: `XL\Workbook.xml` is `xl/workbook.xml`. They ignore
 * the case of ASCII letters (ECMA-376, part 2), and take `\`, which old programs write, for `/`.
 * `toLowerCase` alone would fold too much: it takes the Kelvin sign for a `k`.
 */
export function foldPath(path: string): string {
  const absolute = posix.normalize(`/${path.replaceAll('\\', '/')}`)
  return absolute.slice(1).replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

/** APPNOTE lists the numbers of the compression methods (4.4.5). */
const storedMethod = 0
const deflatedMethod = 8

export const maxKeptBytes = 50_331_648
const blockBytes = 65_536
/** An entry takes about a kilobyte of memory. An archive without ZIP64 cannot have more of them. */
const maxEntries = 65_535
