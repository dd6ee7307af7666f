import { isUtf8 } from 'node:buffer'
import { isNotJson, tryJson } from '../../plant/json.js'
import { type Chunk, maxRecordBytes, notJson, notUtf8, type RecordError, recordTooLarge } from './chunk.js'
import { endOfLine, type Format, type FormatReader, type Head, type ReaderState } from './format.js'
import { readPlantObject, unread } from './plant-object.js'
import type { RecordMapper } from './record-mapper.js'

/** One JSON object a line (https://github.com/ndjson/ndjson-spec); blank lines are skipped. */
export const ndjson: Format = {
  detect: ({ bytes, start }: Head) => {
    if (start === bytes.length || bytes[start] === brace) return true
    // A line that is not JSON, before lines that are.
    const [, second = ''] = bytes
      .toString('utf8', start)
      .split('\n')
      .filter((line) => line.trim() !== '')
    return /^\{\s*"/.test(second)
  },
  read: (mapper) => new NdjsonReader(mapper),
  write: { record: 'json', head: '', between: '\n', foot: '' },
}

class NdjsonReader implements FormatReader {
  readonly #mapper: RecordMapper
  #line = 1
  /** inside a line that is too long to be kept */
  #isSkipping = false

  constructor(mapper: RecordMapper) {
    this.#mapper = mapper
  }

  read(chunk: Chunk, isLast: boolean): number {
    const { bytes } = chunk
    const limit = isLast ? bytes.length : bytes.lastIndexOf(lineFeed) + 1
    const isFast = this.#mapper.isIdentity && isUtf8(bytes.subarray(0, limit))
    let at = this.#isSkipping ? this.#skip(chunk, 0) : 0
    while (at < limit && !chunk.isFull) {
      at = this.#readLine(chunk, at, isFast)
      this.#line += 1
    }
    return at >= limit && bytes.length - at > maxRecordBytes + 1 ? this.#skip(chunk, at, recordTooLarge) : at
  }

  save(): ReaderState {
    return { line: this.#line, isSkipping: this.#isSkipping }
  }

  restore({ line, isSkipping }: ReaderState): void {
    this.#line = Number(line)
    this.#isSkipping = isSkipping === true
  }

  /** Reads a complete line, and gives where the next one begins. */
  #readLine(chunk: Chunk, start: number, isFast: boolean): number {
    const fastEnd = isFast ? readFast(chunk, start, this.#line) : unread
    if (fastEnd !== unread) return fastEnd
    const { bytes } = chunk
    const lineEnd = endOfLine(bytes, start)
    const next = Math.min(lineEnd + 1, bytes.length)
    const range = { start, end: next, line: this.#line }
    const content = bytes.subarray(start, bytes[lineEnd - 1] === carriageReturn && lineEnd > start ? lineEnd - 1 : lineEnd)
    if (content.length > maxRecordBytes) chunk.addInvalid(recordTooLarge, range)
    else if (!isUtf8(content)) chunk.addInvalid(notUtf8, range)
    else {
      const text = content.toString()
      if (/^[ \t\r]*$/.test(text)) return next
      const parsed = tryJson(text, { idKey: this.#mapper.idKey, isSuspect: chunk.isSuspect })
      if (isNotJson(parsed)) chunk.addInvalid(notJson(`${parsed.reason} at column ${parsed.column}`), range)
      else this.#mapper.add(parsed.value, range, chunk)
    }
    return next
  }

  /** Skips a line, or the rest of one, up to its end if that is there. */
  #skip(chunk: Chunk, start: number, error?: RecordError): number {
    const lineEnd = endOfLine(chunk.bytes, start)
    this.#isSkipping = lineEnd === chunk.bytes.length
    const next = this.#isSkipping ? lineEnd : lineEnd + 1
    if (next > start) chunk.addInvalid(error, { start, end: next, line: this.#line })
    if (!this.#isSkipping) this.#line += 1
    return next
  }
}

/** Reads a line that holds one usual object, and gives where the next one begins. */
function readFast(chunk: Chunk, start: number, line: number): number {
  const { bytes } = chunk
  const end = readPlantObject(chunk, start)
  if (end === unread) return unread
  const feed = bytes[end] === carriageReturn ? end + 1 : end
  if (bytes[feed] === lineFeed && feed < start + maxRecordBytes) {
    chunk.setRange(start, feed + 1, line)
    return feed + 1
  }
  chunk.rows.length -= 1
  return unread
}

const [lineFeed, carriageReturn, brace] = [0x0a, 0x0d, 0x7b]
