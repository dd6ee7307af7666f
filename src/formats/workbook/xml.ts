/*
 * Reads the XML of a part as it is unpacked, without a tree.
 *
 * saxes checks that it is well-formed. Rows and shared texts come by the hundred thousand, and
 * nearly all of them look alike: an item that its handler can read at once (`readPlainItem`) is not
 * given to saxes, which makes the reader three times as fast. The expression that reads it accepts
 * only what is complete and well-formed, so to saxes the list just has fewer items. That is right
 * only where saxes has read the tag before it to its end, which `#isBetweenItems` says.
 */
import { SaxesParser } from 'saxes'
import { describeReason } from '../../errors.js'
import { maxRecordBytes } from '../chunk.js'
import type { Archive } from './archive.js'
import { DamageError } from './damage.js'

export type Attributes = Readonly<Record<string, string>>

/** What reads the elements of a part. Their names come without a prefix: `row` for `x:row`. */
export interface ElementHandler {
  openElement(name: string, attributes: Attributes): void
  addText?(text: string): void
  closeElement?(name: string): void
  list?: ItemList
}

/** Elements that come by the hundred thousand. */
interface ItemList {
  /** The element that has them all, such as `sheetData`. */
  parent: string
  /** Such as `row`. */
  item: string
  /** Returns the end of an item that begins at `start`; undefined unless it is a plain one. */
  readPlainItem(text: string, start: number): number | undefined
}

/** Yields after each block, so that the caller can take what the handler has read so far. */
export async function* parsePart(
  archive: Archive,
  path: string,
  handler: ElementHandler,
): AsyncGenerator<void> {
  const parser = new PartParser(path, handler)
  for await (const text of decodePart(archive.read(path), path)) {
    parser.write(text)
    yield
  }
  parser.close()
}

export async function parseWholePart(
  archive: Archive,
  path: string,
  handler: ElementHandler,
): Promise<void> {
  for await (const _ of parsePart(archive, path, handler));
}

class PartParser {
  readonly #path: string
  readonly #handler: ElementHandler
  readonly #parser = new SaxesParser({ position: false })
  /** An item that the next text continues. */
  #rest = ''
  #depth = 0
  /** The depth of the list while it is open. */
  #listDepth: number | undefined
  #isBetweenItems = false
  /** How many UTF-16 units saxes has got, and how many it had read when it last found something. */
  #fedLength = 0
  #lastEvent = 0

  constructor(path: string, handler: ElementHandler) {
    this.#path = path
    this.#handler = handler
    this.#listenForTags()
    this.#listenForTexts()
    this.#listenForErrors()
  }

  write(text: string): void {
    const all = this.#rest + text
    let start = 0
    while (start < all.length) {
      const end = this.#readPlainItem(all, start) ?? this.#readByParser(all, start)
      if (end === undefined) break
      start = end
    }
    this.#rest = all.slice(start)
  }

  close(): void {
    this.#feed(this.#rest)
    this.#parser.close()
  }

  #readPlainItem(text: string, start: number): number | undefined {
    return this.#isBetweenItems ? this.#handler.list?.readPlainItem(text, start) : undefined
  }

  /** Returns undefined for an item that does not end in the text. */
  #readByParser(text: string, start: number): number | undefined {
    const end = this.#findBoundary(text, start)
    const mayBePlain = this.#isBetweenItems && text.length - start < maxHeldLength
    if (end === undefined && mayBePlain) return undefined
    this.#feed(text.slice(start, end))
    return end ?? text.length
  }

  /** Finds the end of a tag that opens the list, or closes an item. */
  #findBoundary(text: string, start: number): number | undefined {
    const { list } = this.#handler
    if (!list) return undefined
    const tag = this.#listDepth === undefined ? list.parent : `/${list.item}>`
    const at = text.indexOf(tag, start)
    const end = at === -1 ? -1 : text.indexOf('>', at)
    return end === -1 ? undefined : end + 1
  }

  #feed(text: string): void {
    this.#isBetweenItems = false
    this.#fedLength += text.length
    this.#parser.write(text)
    // saxes keeps a text, a tag or a comment until it ends.
    if (this.#fedLength - this.#lastEvent > 2 * maxRecordBytes)
      throw new DamageError(`${this.#path} has a text or a tag above 1 MiB`)
  }

  #listenForTags(): void {
    const handler = this.#handler
    this.#parser.on('opentag', ({ name, attributes }) => {
      this.#depth += 1
      if (this.#depth > maxDepth) throw new DamageError(`${this.#path} is nested too deep`)
      const localName = removePrefix(name)
      if (localName === handler.list?.parent) this.#listDepth ??= this.#depth
      handler.openElement(localName, attributes)
      this.#noteTag()
    })
    this.#parser.on('closetag', ({ name }) => {
      if (this.#depth === this.#listDepth) this.#listDepth = undefined
      this.#depth -= 1
      handler.closeElement?.(removePrefix(name))
      this.#noteTag()
    })
  }

  #noteTag(): void {
    this.#lastEvent = this.#parser.position
    const isAtEnd = this.#lastEvent === this.#fedLength
    this.#isBetweenItems = isAtEnd && this.#depth === this.#listDepth
  }

  #listenForTexts(): void {
    const addText = (text: string) => {
      this.#lastEvent = this.#parser.position
      this.#handler.addText?.(text)
    }
    this.#parser.on('text', addText)
    this.#parser.on('cdata', addText)
    this.#parser.on('comment', () => {
      this.#lastEvent = this.#parser.position
    })
  }

  #listenForErrors(): void {
    this.#parser.on('error', (error) => {
      throw new DamageError(`${this.#path} is not well-formed XML (${describeReason(error)})`)
    })
    this.#parser.on('doctype', () => {
      throw new DamageError(`${this.#path} has a document type declaration`)
    })
    this.#parser.on('xmldecl', ({ encoding = 'UTF-8' }) => {
      if (/^utf-?(?:8|16)$/i.test(encoding)) return
      throw new DamageError(`${this.#path} is in ${encoding}, not in UTF-8 or UTF-16`)
    })
  }
}

async function* decodePart(blocks: AsyncIterable<Buffer>, path: string): AsyncGenerator<string> {
  let decoder: InstanceType<typeof TextDecoder> | undefined
  let head: Buffer = Buffer.alloc(0)
  const decode = (bytes?: Buffer) => {
    decoder ??= new TextDecoder(detectEncoding(head), { fatal: true })
    try {
      return decoder.decode(bytes, { stream: bytes !== undefined })
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      throw new DamageError(`${path} is not in ${decoder.encoding.toUpperCase()}`, { cause: error })
    }
  }
  for await (const block of blocks) {
    if (!decoder) head = Buffer.concat([head, block])
    // An encoding shows in two bytes, which may come in two blocks.
    if (decoder) yield decode(block)
    else if (head.length > 1) yield decode(head)
  }
  yield decode()
}

/** By the byte order mark, or the `<` at the start of XML (XML 1.0, appendix F). */
function detectEncoding(head: Buffer): string {
  const start = head.toString('latin1', 0, 2)
  if (start === '\xff\xfe' || start === '<\0') return 'utf-16le'
  if (start === '\xfe\xff' || start === '\0<') return 'utf-16be'
  return 'utf-8'
}

function removePrefix(name: string): string {
  return name.slice(name.indexOf(':') + 1)
}

/** The parts of Excel have at most ten. */
const maxDepth = 100
/** UTF-16 units. A longer item is given to saxes. */
const maxHeldLength = 65_536
