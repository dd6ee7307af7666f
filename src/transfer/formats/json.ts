import { parseJson } from '../../plant/exact-json.js'
import { inputError } from '../../platform/errors.js'
import { checkSignal } from '../../platform/runtime.js'
import { Chunk, isTooLarge, maxRecordBytes, recordTooLarge, untilLast } from './chunk.js'
import { lineFeedsIn } from './text.js'

/**
 * One JSON value per line (https://github.com/ndjson/ndjson-spec). Blank lines are skipped. A line above 1 MiB is a
 * rejected record, and is not kept in memory.
 *
 * @param blocks whole characters of UTF-8: V8 parses a text of its own faster than a part of the text of a block
 */
export async function* readNdjson(blocks: AsyncIterable<Buffer>): AsyncGenerator<Chunk> {
  let line = 1
  let rest: Buffer = Buffer.alloc(0)
  let isRestTooLarge = false
  for await (const { part, isLast } of untilLast(blocks)) {
    const bytes = rest.length > 0 ? Buffer.concat([rest, part]) : part
    const chunk = new Chunk()
    let start = 0
    for (const end of endsOfLines(bytes, isLast)) {
      if (isRestTooLarge || end - start > maxRecordBytes) chunk.add('', line, recordTooLarge)
      else if (!isBlank(bytes, start, end)) chunk.add(bytes.toString('utf8', start, end), line)
      isRestTooLarge = false
      line += 1
      start = end + 1
    }
    yield chunk
    rest = bytes.subarray(start)
    if (rest.length > maxRecordBytes) isRestTooLarge = true
    if (isRestTooLarge) rest = Buffer.alloc(0)
  }
}

const lineFeed = 0x0a
const space = 0x20

/** Where the line feeds are and, of the last bytes, their end. */
function* endsOfLines(bytes: Buffer, isLast: boolean): Generator<number> {
  for (let at = bytes.indexOf(lineFeed); at !== -1; at = bytes.indexOf(lineFeed, at + 1)) yield at
  if (isLast) yield bytes.length
}

function isBlank(bytes: Buffer, start: number, end: number): boolean {
  let at = start
  while (at < end && bytes.readUInt8(at) <= space) at += 1
  return at === end
}

/**
 * A JSON text: the elements of an array, or the values that stand one after the other, as jq prints them. It is in
 * memory as a whole, because nothing is stored of one that is broken.
 *
 * @throws {PlantsError} `input` with the line where what is broken begins
 */
export async function* readDocument(
  texts: AsyncIterable<string>,
  name: string,
  signal: AbortSignal,
): AsyncGenerator<Chunk> {
  let text = ''
  for await (const part of texts) {
    text += part
    if (text.length > maxDocumentLength)
      throw inputError(
        `${name} is a JSON text of more than 256 MiB`,
        'Write NDJSON: one plant on each line',
      )
  }
  for await (const { records, lines } of valuesIn(text, name, signal))
    for (const [index, record] of records.entries()) assertValue(record, lines[index], name)
  yield* valuesIn(text, name, signal)
}

function assertValue(text: string, line: number | undefined, name: string): void {
  const parsed = parseJson(text)
  if ('reason' in parsed) throw notJson(name, line, parsed.reason)
  if (isTooLarge(text)) throw inputError(`${name}:${line}: ${recordTooLarge.message}`, correctIt)
}

function notJson(name: string, line: number | undefined, reason: string): Error {
  return inputError(`${name}:${line}: Not JSON: ${reason}`, correctIt)
}

const correctIt = 'Correct it, and run it again'

/** The same, each time: the first reading finds what is broken, the second one is imported. */
async function* valuesIn(
  text: string,
  name: string,
  signal: AbortSignal,
): AsyncGenerator<Chunk<string>> {
  for (const chunk of new ValueReader(text, name).chunks()) {
    await checkSignal(signal)
    yield chunk
  }
}

/**
 * Finds the elements of the arrays of a text, and its other values, by their brackets and quotes. What is between two
 * commas is a value, and for its parser to refuse. Brackets are counted before anything is parsed, because `JSON.parse`
 * takes gigabytes for some million of them.
 */
class ValueReader {
  readonly #text: string
  readonly #name: string
  #line = 1
  /** Brackets that are open, with that of the array whose elements are read. */
  #depth = 0
  #isInArray = false
  /** Whether a comma says that another element must come. */
  #needsElement = false
  /** The value that has begun. */
  #begun: { at: number; line: number } | undefined
  #chunk = new Chunk<string>()

  constructor(text: string, name: string) {
    this.#text = text
    this.#name = name
  }

  *chunks(): Generator<Chunk<string>> {
    const token = /\s{1,65536}|"|[[\]{},]|[^\s"[\]{},]+/y
    let tokens = 0
    for (let found = token.exec(this.#text); found; found = token.exec(this.#text)) {
      this.#take(found[0], found.index)
      if (found[0] === '"') token.lastIndex = this.#endOfString(found.index)
      tokens += 1
      if (tokens % tokensAtOnce === 0) yield this.#takeChunk()
    }
    if (this.#depth > 0) throw this.#broken('Unexpected end of JSON input', this.#begun?.line)
    this.#end(this.#text.length)
    yield this.#takeChunk()
  }

  #takeChunk(): Chunk<string> {
    const chunk = this.#chunk
    this.#chunk = new Chunk()
    return chunk
  }

  #take(word: string, at: number): void {
    const isOuter = this.#depth === 0
    const isBetweenElements = this.#isInArray && this.#depth === 1
    if (word.trim() === '') {
      if (isOuter) this.#end(at)
      this.#line += lineFeedsIn(word)
    } else if (word === '[' && isOuter && !this.#begun) {
      this.#isInArray = true
      this.#depth = 1
    } else if (word === ',' && isBetweenElements) {
      this.#endElement(at)
      this.#needsElement = true
    } else if (word === ']' && isBetweenElements) {
      if (this.#begun || this.#needsElement) this.#endElement(at)
      this.#isInArray = false
      this.#depth = 0
    } else {
      this.#begun ??= { at, line: this.#line }
      if (word === '[' || word === '{') this.#depth += 1
      if (word === ']' || word === '}') this.#close(word, at)
      if (this.#depth > maxDepth) throw this.#broken(`More than ${maxDepth} brackets are open`)
    }
  }

  #close(bracket: string, at: number): void {
    this.#depth -= 1
    const isWrong = this.#depth < (this.#isInArray ? 1 : 0)
    if (isWrong) throw this.#broken(`Unexpected token '${bracket}'`)
    if (this.#depth === 0) this.#end(at + 1)
  }

  #endElement(at: number): void {
    if (!this.#begun) throw this.#broken('An element is missing')
    this.#end(at)
    this.#needsElement = false
  }

  #end(at: number): void {
    if (this.#begun)
      this.#chunk.add(this.#text.slice(this.#begun.at, at).trimEnd(), this.#begun.line)
    this.#begun = undefined
  }

  /** The index after its closing quote. */
  #endOfString(start: number): number {
    for (let end = this.#text.indexOf('"', start + 1); end >= 0; ) {
      let escapes = end
      while (this.#text[escapes - 1] === '\\') escapes -= 1
      if ((end - escapes) % 2 === 0) return end + 1
      end = this.#text.indexOf('"', end + 1)
    }
    return this.#text.length
  }

  #broken(reason: string, line = this.#line): Error {
    return notJson(this.#name, line, reason)
  }
}

const tokensAtOnce = 16_384
const maxDepth = 100
/** In UTF-16 code units. */
const maxDocumentLength = 268_435_456
