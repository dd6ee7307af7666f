/*
 * The shared strings of a workbook. Excel stores each string once, in a separate part, and a cell
 * has the index of its string. So all shared strings are in memory while the rows are read.
 */
import { isTooLarge, maxRecordBytes } from '../chunk.js'
import type { Archive } from './archive.js'
import { DamageError } from './damage.js'
import { plainCharacters, StringCollector, unescapeString } from './texts.js'
import { type ElementHandler, parseWholePart } from './xml.js'

/** Reads the part with the shared strings (ECMA-376 part 1, 18.4.9). */
export async function readSharedStrings(archive: Archive, path: string): Promise<SharedStrings> {
  const reader = new SharedStringsReader(archive.measure(path))
  await parseWholePart(archive, path, reader)
  return reader.strings
}

/**
 * Keeps the strings as UTF-8 in one buffer, because a million JavaScript strings would take several
 * times as much memory. The buffer is allocated once, with room for every string that the part can
 * have. The operating system assigns memory only to pages that are written, so the unused room
 * costs nothing. A buffer that grew would be in memory twice whenever it is copied.
 */
export class SharedStrings {
  readonly #bytes: Buffer
  /** The end of each string in the buffer, in bytes. */
  readonly #ends: Uint32Array
  #count = 0
  #lengthBytes = 0
  /** The long strings that were decoded. Decoding one again for each cell would take long. */
  readonly #longStrings = new Map<number, string>()

  /** @param partBytes the size of the part with the shared strings after unpacking */
  constructor(partBytes = 0) {
    // A part in UTF-16 has two bytes for a character that has three in UTF-8. The shortest string
    // is `<si/>`.
    this.#bytes = Buffer.allocUnsafeSlow(Math.ceil(partBytes * 1.5))
    this.#ends = new Uint32Array(Math.ceil(partBytes / 5))
  }

  add(string: string): void {
    this.#lengthBytes += this.#bytes.write(string, this.#lengthBytes)
    this.#ends[this.#count] = this.#lengthBytes
    this.#count += 1
  }

  /** @returns undefined if no string has the index */
  get(index: number): string | undefined {
    const end = index < this.#count ? this.#ends[index] : undefined
    if (end === undefined) return undefined
    const start = this.#ends[index - 1] ?? 0
    if (end - start > longStringBytes) return this.#getLongString(index, start, end)
    return this.#bytes.toString('utf8', start, end)
  }

  #getLongString(index: number, start: number, end: number): string {
    const string = this.#longStrings.get(index) ?? this.#bytes.toString('utf8', start, end)
    this.#longStrings.set(index, string)
    return string
  }
}

const longStringBytes = 1000

class SharedStringsReader implements ElementHandler {
  readonly strings: SharedStrings
  readonly #collector = new StringCollector()
  #isInItem = false

  readonly list = {
    parent: 'sst',
    item: 'si',
    readPlainItem: (text: string, start: number) => {
      plainItem.lastIndex = start
      const [item, content = ''] = plainItem.exec(text) ?? []
      if (item === undefined) return undefined
      this.#addString(content)
      return start + item.length
    },
  }

  constructor(partBytes: number) {
    this.strings = new SharedStrings(partBytes)
  }

  openElement(name: string): void {
    if (this.#isInItem && name === 'si')
      throw new DamageError('a shared string contains another one')
    if (this.#isInItem) this.#collector.openElement(name)
    else if (name === 'si') {
      this.#isInItem = true
      this.#collector.reset()
    }
  }

  addText(text: string): void {
    if (!this.#isInItem) return
    this.#collector.addText(text)
    // A string may have a million texts, so only their length is compared here.
    if (this.#collector.content.length > maxRecordBytes) throw createSizeError()
  }

  closeElement(name: string): void {
    if (!this.#isInItem) return
    if (name === 'si') {
      this.#isInItem = false
      this.#addString(this.#collector.content)
    } else this.#collector.closeElement(name)
  }

  #addString(escapedString: string): void {
    if (isTooLarge(escapedString)) throw createSizeError()
    this.strings.add(unescapeString(escapedString))
  }
}

function createSizeError(): DamageError {
  return new DamageError('a shared string is larger than 1 MiB')
}

/** Matches an item that has one string without formatting or markup: `<si><t>Fern</t></si>`. */
const plainItem = RegExp(
  `<si>(?:<t/>|<t(?: xml:space="preserve")?>(${plainCharacters})</t>)</si>[ \\t\\r\\n]*`,
  'y',
)
