/*
 * Parses the XML of a part while it is unpacked, and never has the whole of it in memory. The
 * parser, saxes, calls a handler for each element, and checks that the XML is well-formed.
 */
import { SaxesParser } from 'saxes'
import { describeReason } from '../../errors.js'
import { createTextDecoder, UndecodableError } from '../encoding.js'
import { maxRecordBytes } from '../limits.js'
import type { Archive } from './archive.js'
import { DamageError } from './damage.js'

export type Attributes = Readonly<Record<string, string>>

/** Receives the elements of a part. */
export interface ElementHandler {
  /** Unless it is set, the names come without the prefix of the root element: `row` for `x:row`. */
  readonly keepsPrefixes?: true
  /** @param parents the names of the open elements around this one, from the root on */
  openElement(name: string, attributes: Attributes, parents: readonly string[]): void
  addText?(text: string, parents: readonly string[]): void
  closeElement?(name: string, parents: readonly string[]): void
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
  readonly #parser = new SaxesParser({ position: false })
  /** The names of the open elements. */
  readonly #openNames: string[] = []
  /** The name of the element that was closed last, if no other one was opened after it. */
  #closedName = ''
  /** The prefix of the root element, with its colon. */
  #prefix: string | undefined
  /** The default namespace of the root element. */
  #namespace: string | undefined
  /** How many UTF-16 units were written to saxes. */
  #fedLength = 0
  /** How many UTF-16 units saxes had read when it last called a handler. */
  #lastEventPosition = 0

  constructor(
    private readonly path: string,
    private readonly handler: ElementHandler,
  ) {
    this.#listenForTags()
    this.#listenForTexts()
    this.#listenForErrors()
  }

  write(text: string): void {
    this.#fedLength += text.length
    this.#parser.write(text)
    // saxes keeps a text, a tag or a comment in memory until it ends.
    if (this.#fedLength - this.#lastEventPosition > 2 * maxRecordBytes)
      throw new DamageError(`${this.path} has a text or a tag that is larger than 1 MiB`)
  }

  close(): void {
    this.#parser.close()
  }

  #listenForTags(): void {
    const handler = this.handler
    this.#parser.on('opentag', ({ name: fullName, attributes }) => {
      const name = this.#removePrefix(fullName)
      this.#checkPlace(name, attributes)
      handler.openElement(name, attributes, this.#openNames)
      this.#openNames.push(name)
      this.#closedName = ''
      if (this.#openNames.length > maxDepth)
        throw new DamageError(`${this.path} is nested too deeply`)
      this.#lastEventPosition = this.#parser.position
    })
    this.#parser.on('closetag', () => {
      this.#closedName = this.#openNames.pop() ?? ''
      handler.closeElement?.(this.#closedName, this.#openNames)
      this.#lastEventPosition = this.#parser.position
    })
  }

  /** Elements with another prefix keep it, because they are not those of the same name. */
  #removePrefix(name: string): string {
    this.#prefix ??= this.handler.keepsPrefixes ? '' : name.slice(0, name.indexOf(':') + 1)
    return name.startsWith(this.#prefix) ? name.slice(this.#prefix.length) : name
  }

  /** Rejects an element that one spreadsheet reads, and another one skips or reads otherwise. */
  #checkPlace(name: string, { xmlns: namespace = this.#namespace ?? '' }: Attributes): void {
    this.#namespace ??= namespace
    const parent = this.#openNames.at(-1) ?? ''
    const names = contents.get(parent)
    const isForeign = names !== undefined && (!names.has(name) || namespace !== this.#namespace)
    if (!isForeign && !(singles.has(name) && name === this.#closedName)) return
    throw new DamageError(`${this.path} has a misplaced element ${name} in ${parent}`)
  }

  #listenForTexts(): void {
    const addText = (text: string) => {
      this.#lastEventPosition = this.#parser.position
      this.handler.addText?.(text, this.#openNames)
    }
    this.#parser.on('text', addText)
    this.#parser.on('cdata', addText)
    this.#parser.on('comment', () => {
      this.#lastEventPosition = this.#parser.position
    })
  }

  #listenForErrors(): void {
    this.#parser.on('error', (error) => {
      throw new DamageError(`${this.path} is not well-formed XML (${describeReason(error)})`)
    })
    this.#parser.on('doctype', () => {
      throw new DamageError(`${this.path} has a document type declaration`)
    })
    this.#parser.on('xmldecl', ({ encoding = 'UTF-8' }) => {
      if (/^utf-?8$/i.test(encoding)) return
      throw new DamageError(`${this.path} is in ${encoding}, not in UTF-8`)
    })
  }
}

/** The standard also allows UTF-16, which no program writes. */
async function* decodePart(blocks: AsyncIterable<Buffer>, path: string): AsyncGenerator<string> {
  const decoder = createTextDecoder('utf-8')
  try {
    for await (const block of blocks) yield decoder.write(block)
    yield decoder.end()
  } catch (error) {
    if (!(error instanceof UndecodableError)) throw error
    throw new DamageError(`${path} is not in UTF-8`, { cause: error })
  }
}

/** What the elements with the content of a workbook contain (ECMA-376 part 1, 18.3, 18.4, 18.8). */
const contents = new Map([
  ['Relationships', new Set(['Relationship'])],
  ['cellXfs', new Set(['xf'])],
  ['xf', new Set(['alignment', 'protection', 'extLst'])],
  ['sheetData', new Set(['row'])],
  ['row', new Set(['c', 'extLst'])],
  ['c', new Set(['f', 'v', 'is', 'extLst'])],
  ['f', new Set()],
  ['v', new Set()],
  ['sst', new Set(['si'])],
  ['si', new Set(['t', 'r', 'rPh', 'phoneticPr'])],
  ['is', new Set(['t', 'r', 'rPh', 'phoneticPr'])],
  ['r', new Set(['rPr', 't'])],
  ['rPh', new Set(['t'])],
  ['t', new Set()],
])

/** Elements that do not occur twice in one place. */
const singles = new Set(['t', 'v', 'is', 'workbookPr'])

/** The parts that Excel writes are nested at most ten deep. */
const maxDepth = 100
