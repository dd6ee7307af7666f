/*
 * The shared strings of a workbook. Excel stores each string once, in a separate part, and a cell
 * has the index of its string. So all shared strings are in memory while the rows are read.
 */
import { isTooLarge, maxRecordBytes } from '../limits.js'
import type { Archive } from './archive.js'
import { DamageError } from './damage.js'
import { isStringText, unescapeString } from './texts.js'
import { type ElementHandler, parseWholePart } from './xml.js'

/** Reads the part with the shared strings (ECMA-376 part 1, 18.4.9). */
export async function readSharedStrings(archive: Archive, path: string): Promise<string[]> {
  return (await parseWholePart(archive, path, new SharedStringsReader())).strings
}

class SharedStringsReader implements ElementHandler {
  readonly strings: string[] = []
  #content = ''

  openElement(name: string): void {
    if (name === 'si') this.#content = ''
  }

  addText(text: string, parents: readonly string[]): void {
    if (!isStringText(parents)) return
    this.#content += text
    // A string may have a million texts, so only their length is compared here.
    if (this.#content.length > maxRecordBytes) throw createSizeError()
  }

  closeElement(name: string): void {
    if (name === 'si') this.#addString(this.#content)
  }

  #addString(escapedString: string): void {
    if (isTooLarge(escapedString)) throw createSizeError()
    this.strings.push(unescapeString(escapedString))
  }
}

function createSizeError(): DamageError {
  return new DamageError('a shared string is larger than 1 MiB')
}
