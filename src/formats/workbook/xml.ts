/*
 * Parses the XML of a part while it is unpacked, and never has the whole of it in memory.
 *
 * The parser, saxes, calls a handler for each element, and checks that the XML is well-formed. A
 * sheet has rows by the hundred thousand, nearly all of which look alike, and so has the part with
 * the shared strings. Most of these items bypass saxes: the handler reads such an item by a regular
 * expression (`readPlainItem`), which makes the reader three times as fast.
 *
 * To saxes, the list then just has fewer items. That is correct on two conditions. The expression
 * accepts only an item that is complete and well-formed. And saxes must not be within a tag, a
 * comment or an item, but between two items: `#isBetweenItems` says when it is. To get there again
 * after an item that is not plain, saxes is fed to the end of that item only (`#findBoundary`).
 */
import { SaxesParser } from 'saxes'
import { describeReason } from '../../errors.js'
import { maxRecordBytes } from '../chunk.js'
import type { Archive } from './archive.js'
import { DamageError } from './damage.js'

export type Attributes = Readonly<Record<string, string>>

/** Receives the elements of a part. Their names come without a prefix: `row` for `x:row`. */
export interface ElementHandler {
  openElement(name: string, attributes: Attributes): void
  addText?(text: string): void
  closeElement?(name: string): void
  list?: ItemList
  /** Whether the handler has gathered so much that the caller must take it now. */
  isFull?: boolean
}

/** A list of elements, such as rows. There are so many that most of them bypass the parser. */
interface ItemList {
  /** The name of the element around the list, such as `sheetData`. */
  parent: string
  /** The name of the elements, such as `row`. */
  item: string
  /**
   * Reads the item that begins at `start`.
   *
   * @returns the index after the item; undefined, and nothing is read, if the item is not plain or
   * not complete
   */
  readPlainItem(text: string, start: number): number | undefined
}

/**
 * Parses a part. It yields after each block, and within a block when the handler is full, so
 * that the caller can process the elements that the handler has received so far.
 *
 * @throws {DamageError} if the XML is not well-formed, or has what no workbook has
 */
export async function* parsePart(
  archive: Archive,
  path: string,
  handler: ElementHandler,
): AsyncGenerator<void> {
  const parser = new PartParser(path, handler)
  for await (const text of decodePart(archive.read(path), path)) {
    yield* parser.write(text)
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
  /** The beginning of an item whose end is in the next block. */
  #remainder = ''
  /** How many elements are open. */
  #depth = 0
  /** The depth of the list while it is open. */
  #listDepth: number | undefined
  #isBetweenItems = false
  /** How many UTF-16 units were written to saxes. */
  #fedLength = 0
  /** How many UTF-16 units saxes had read when it last called a handler. */
  #lastEventPosition = 0

  constructor(path: string, handler: ElementHandler) {
    this.#path = path
    this.#handler = handler
    this.#listenForTags()
    this.#listenForTexts()
    this.#listenForErrors()
  }

  *write(text: string): Generator<void> {
    const wholeText = this.#remainder + text
    let start = 0
    while (start < wholeText.length) {
      const end = this.#readPlainItem(wholeText, start) ?? this.#readByParser(wholeText, start)
      if (end === undefined) break
      start = end
      if (this.#handler.isFull) yield
    }
    this.#remainder = wholeText.slice(start)
  }

  close(): void {
    this.#feed(this.#remainder)
    this.#parser.close()
  }

  #readPlainItem(text: string, start: number): number | undefined {
    return this.#isBetweenItems ? this.#handler.list?.readPlainItem(text, start) : undefined
  }

  /**
   * Writes the text to saxes, up to the next index where a plain item may begin. If that is far
   * away, only a part is written, because the text may have hundreds of items until then.
   *
   * @returns the index after the part that was written; undefined if nothing was written. Then the
   * end of the item is in the next block, and with that block, the item may turn out to be plain.
   */
  #readByParser(text: string, start: number): number | undefined {
    const end = this.#findBoundary(text, start)
    const mayBePlain = this.#isBetweenItems && text.length - start < maxHeldLength
    if (end === undefined && mayBePlain) return undefined
    const isNear = end !== undefined && end - start < 2 * fedLength
    const fedEnd = isNear ? end : Math.min(text.length, start + fedLength)
    this.#feed(text.slice(start, fedEnd))
    return fedEnd
  }

  /**
   * Finds the next index where a plain item may begin. Before the list, that is the index after the
   * tag that opens the list. Within the list, it is the index after a tag that closes an item. A
   * comment may have the same characters as a tag, so saxes decides whether it is one (`#noteTag`).
   */
  #findBoundary(text: string, start: number): number | undefined {
    const { list } = this.#handler
    if (!list) return undefined
    const tag = this.#listDepth === undefined ? list.parent : `/${list.item}>`
    const tagStart = text.indexOf(tag, start)
    const end = tagStart === -1 ? -1 : text.indexOf('>', tagStart)
    return end === -1 ? undefined : end + 1
  }

  #feed(text: string): void {
    this.#isBetweenItems = false
    this.#fedLength += text.length
    this.#parser.write(text)
    // saxes keeps a text, a tag or a comment in memory until it ends.
    if (this.#fedLength - this.#lastEventPosition > 2 * maxRecordBytes)
      throw new DamageError(`${this.#path} has a text or a tag that is larger than 1 MiB`)
  }

  #listenForTags(): void {
    const handler = this.#handler
    this.#parser.on('opentag', ({ name, attributes }) => {
      this.#depth += 1
      if (this.#depth > maxDepth) throw new DamageError(`${this.#path} is nested too deeply`)
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

  /**
   * Notes after each tag whether a plain item may follow. Two conditions must hold: the tag is the
   * end of the text that was written to saxes, so that saxes is not within another tag, and the tag
   * is on the level of the items.
   */
  #noteTag(): void {
    this.#lastEventPosition = this.#parser.position
    const isEndOfFed = this.#lastEventPosition === this.#fedLength
    this.#isBetweenItems = isEndOfFed && this.#depth === this.#listDepth
  }

  #listenForTexts(): void {
    const addText = (text: string) => {
      this.#lastEventPosition = this.#parser.position
      this.#handler.addText?.(text)
    }
    this.#parser.on('text', addText)
    this.#parser.on('cdata', addText)
    this.#parser.on('comment', () => {
      this.#lastEventPosition = this.#parser.position
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
    // Two bytes are needed to detect the encoding, and the first block may have only one.
    if (decoder) yield decode(block)
    else if (head.length > 1) yield decode(head)
  }
  yield decode()
}

/** Detects UTF-16 by its mark, or by the `<` at the start of XML (XML 1.0, appendix F). */
function detectEncoding(head: Buffer): string {
  const start = head.toString('latin1', 0, 2)
  if (start === '\xff\xfe' || start === '<\0') return 'utf-16le'
  if (start === '\xfe\xff' || start === '\0<') return 'utf-16be'
  return 'utf-8'
}

function removePrefix(name: string): string {
  return name.slice(name.indexOf(':') + 1)
}

/** The parts that Excel writes are nested at most ten deep. */
const maxDepth = 100
/**
 * The length is in UTF-16 units. An item that is longer than this is written to saxes without
 * waiting for its end.
 */
const maxHeldLength = 65_536
/** The length is in UTF-16 units. */
const fedLength = 4096
