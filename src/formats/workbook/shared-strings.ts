/*
 * The shared strings of a workbook. Excel stores each string once, in a separate part, and a cell
 * has the index of its string. So all shared strings are in memory while the rows are read.
 */
import { isTooLarge, maxRecordBytes } from '../limits.js'
import type { Archive } from './archive.js'
import { DamageError } from './damage.js'
import { StringCollector, unescapeString } from './texts.js'
import { type ElementHandler, parseWholePart } from './xml.js'

/** Reads the part with the shared strings (ECMA-376 part 1, 18.4.9). */
export async function readSharedStrings(archive: Archive, path: string): Promise<string[]> {
  return (await parseWholePart(archive, path, new SharedStringsReader())).strings
}

class SharedStringsReader implements ElementHandler {
  readonly strings: string[] = []
  readonly #collector = new StringCollector()
  #isInItem = false

  openElement(name: string): void {
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
    this.strings.push(unescapeString(escapedString))
  }
}

function createSizeError(): DamageError {
  return new DamageError('a shared string is larger than 1 MiB')
}
