/*
 * Parses the XML of a part while it is unpacked, and never has the whole of it in memory. The
 * parser, saxes, calls a handler for each element, and checks that the XML is well-formed.
 */
import { SaxesParser } from 'saxes'
import { describeReason } from '../../errors.js'
import { maxRecordBytes } from '../limits.js'
import type { Archive } from './archive.js'
import { DamageError } from './damage.js'

export type Attributes = Readonly<Record<string, string>>

/** Receives the elements of a part. */
export interface ElementHandler {
  /** Unless it is set, the names come without their prefix: `row` for `x:row`. */
  readonly keepsPrefixes?: true
  openElement(name: string, attributes: Attributes): void
  addText?(text: string): void
  closeElement?(name: string): void
}

/**
 * Parses a part. It yields after each block, so that the caller can process the elements that the
 * handler has received so far.
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
    parser.write(text)
    yield
  }
  parser.close()
}

/** Parses a part to its end, and returns the handler. */
export async function parseWholePart<Handler extends ElementHandler>(
  archive: Archive,
  path: string,
  handler: Handler,
): Promise<Handler> {
  for await (const _ of parsePart(archive, path, handler));
  return handler
}

class PartParser {
  readonly #path: string
  readonly #handler: ElementHandler
  readonly #parser = new SaxesParser({ position: false })
  /** How many elements are open. */
  #depth = 0
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

  write(text: string): void {
    this.#fedLength += text.length
    this.#parser.write(text)
    // saxes keeps a text, a tag or a comment in memory until it ends.
    if (this.#fedLength - this.#lastEventPosition > 2 * maxRecordBytes)
      throw new DamageError(`${this.#path} has a text or a tag that is larger than 1 MiB`)
  }

  close(): void {
    this.#parser.close()
  }

  #listenForTags(): void {
    const handler = this.#handler
    const toName = (name: string) => (handler.keepsPrefixes ? name : removePrefix(name))
    this.#parser.on('opentag', ({ name, attributes }) => {
      this.#depth += 1
      if (this.#depth > maxDepth) throw new DamageError(`${this.#path} is nested too deeply`)
      handler.openElement(toName(name), attributes)
      this.#lastEventPosition = this.#parser.position
    })
    this.#parser.on('closetag', ({ name }) => {
      this.#depth -= 1
      handler.closeElement?.(toName(name))
      this.#lastEventPosition = this.#parser.position
    })
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
      if (/^utf-?8$/i.test(encoding)) return
      throw new DamageError(`${this.#path} is in ${encoding}, not in UTF-8`)
    })
  }
}

/** The standard also allows UTF-16, which no program writes. */
async function* decodePart(blocks: AsyncIterable<Buffer>, path: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const decode = (bytes?: Buffer) => {
    try {
      return decoder.decode(bytes, { stream: bytes !== undefined })
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      throw new DamageError(`${path} is not in UTF-8`, { cause: error })
    }
  }
  for await (const block of blocks) yield decode(block)
  yield decode()
}

function removePrefix(name: string): string {
  return name.slice(name.indexOf(':') + 1)
}

/** The parts that Excel writes are nested at most ten deep. */
const maxDepth = 100
