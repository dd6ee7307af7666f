/*
 * The shared strings of a workbook. Excel stores each text once, in a separate part, and a cell
 * has the index of its text: so all of them are in memory while the rows are read.
 */
import { isTooLarge } from '../chunk.js'
import type { Archive } from './archive.js'
import { DamageError } from './damage.js'
import { plainText, TextCollector, unescapeText } from './texts.js'
import { type ElementHandler, parseWholePart } from './xml.js'

/** Reads the part with the shared strings (ECMA-376 part 1, 18.4.9). */
export async function readSharedStrings(archive: Archive, path: string): Promise<SharedStrings> {
  const reader = new SharedStringsReader(archive.measure(path))
  await parseWholePart(archive, path, reader)
  return reader.strings
}

/**
 * Holds the texts as UTF-8 in one buffer, because a million JavaScript strings would take several
 * times as much memory. The buffer has room for everything that the part can hold from the
 * beginning. The operating system gives memory to the process only where it is written to, so the
 * room costs nothing; a buffer that grew would be in memory twice whenever it is copied.
 */
export class SharedStrings {
  readonly #bytes: Buffer
  /** The end of each text in the buffer, in bytes. */
  readonly #ends: Uint32Array
  #count = 0
  #lengthBytes = 0
  /** A long text is decoded once, and not again for each cell that has it. */
  readonly #longTexts = new Map<number, string>()

  /** @param partBytes the size of the part with the texts, unpacked */
  constructor(partBytes = 0) {
    // Two bytes of UTF-16 may be three of UTF-8, and the shortest text is `<si/>`.
    this.#bytes = Buffer.allocUnsafeSlow(Math.ceil(partBytes * 1.5))
    this.#ends = new Uint32Array(Math.ceil(partBytes / 5))
  }

  add(text: string): void {
    this.#lengthBytes += this.#bytes.write(text, this.#lengthBytes)
    this.#ends[this.#count] = this.#lengthBytes
    this.#count += 1
  }

  /** @returns undefined if there is no text with the index */
  get(index: number): string | undefined {
    const end = index < this.#count ? this.#ends[index] : undefined
    if (end === undefined) return undefined
    const start = this.#ends[index - 1] ?? 0
    if (end - start > longTextBytes) return this.#getLongText(index, start, end)
    return this.#bytes.toString('utf8', start, end)
  }

  #getLongText(index: number, start: number, end: number): string {
    const text = this.#longTexts.get(index) ?? this.#bytes.toString('utf8', start, end)
    this.#longTexts.set(index, text)
    return text
  }
}

const longTextBytes = 1000

class SharedStringsReader implements ElementHandler {
  readonly strings: SharedStrings
  readonly #collector = new TextCollector()
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
    if (this.#isInItem && name === 'si') throw new DamageError('a shared text has another one')
    if (this.#isInItem) this.#collector.openElement(name)
    else if (name === 'si') {
      this.#isInItem = true
      this.#collector.reset()
    }
  }

  addText(text: string): void {
    if (!this.#isInItem) return
    this.#collector.addText(text)
    if (isTooLarge(this.#collector.text)) throw new DamageError('a shared text is above 1 MiB')
  }

  closeElement(name: string): void {
    if (!this.#isInItem) return
    if (name === 'si') {
      this.#isInItem = false
      this.#addString(this.#collector.text)
    } else this.#collector.closeElement(name)
  }

  #addString(text: string): void {
    this.strings.add(unescapeText(text))
  }
}

/** An item with one text without formatting or markup: `<si><t>Fern</t></si>`. */
const plainItem = RegExp(
  `<si>(?:<t/>|<t(?: xml:space="preserve")?>(${plainText})</t>)</si>[ \\t\\r\\n]*`,
  'y',
)
