import { GrowingBuffer } from '../../platform/growing-buffer.js'
import { isTooLarge } from '../chunk.js'
import type { Archive } from './archive.js'
import { DamageError } from './damage.js'
import { plainText, TextCollector, unescapeText } from './texts.js'
import { type ElementHandler, parseWholePart } from './xml.js'

/** Reads the texts that cells name by their index (ECMA-376 part 1, 18.4.9). */
export async function readSharedStrings(archive: Archive, path: string): Promise<SharedStrings> {
  const reader = new SharedStringsReader()
  await parseWholePart(archive, path, reader)
  return reader.strings
}

/** As UTF-8 in one buffer: a million strings would take several times as much memory. */
export class SharedStrings {
  readonly #bytes = new GrowingBuffer()
  /** Where each text ends. */
  readonly #ends: number[] = []
  /** Decoding one again for each cell that names it would take long. */
  readonly #longTexts = new Map<number, string>()

  add(text: string): void {
    this.#bytes.append(Buffer.from(text))
    this.#ends.push(this.#bytes.length)
  }

  /** Returns undefined for an index that no text has. */
  get(index: number): string | undefined {
    const end = this.#ends[index]
    if (end === undefined) return undefined
    const start = this.#ends[index - 1] ?? 0
    if (end - start > longBytes) return this.#getLongText(index, start, end)
    return this.#bytes.bytes.toString('utf8', start, end)
  }

  #getLongText(index: number, start: number, end: number): string {
    const text = this.#longTexts.get(index) ?? this.#bytes.bytes.toString('utf8', start, end)
    this.#longTexts.set(index, text)
    return text
  }
}

const longBytes = 1000

class SharedStringsReader implements ElementHandler {
  readonly strings = new SharedStrings()
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

const plainItem = RegExp(
  `<si>(?:<t/>|<t(?: xml:space="preserve")?>(${plainText})</t>)</si>[ \\t\\r\\n]*`,
  'y',
)
