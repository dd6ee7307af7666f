import { isUtf8 } from 'node:buffer'
import { parseJson } from '../../plant/exact-json.js'
import { malformed, type PlantsError } from '../../platform/errors.js'
import { Chunk, isTooLarge, maxChunkRecords, maxRecordBytes, readWhole, recordTooLarge } from './chunk.js'

/**
 * The elements of a JSON array, which is in memory as a whole.
 *
 * @throws {PlantsError} `malformed` for anything else
 */
export async function* readArray(blocks: AsyncIterable<Buffer>, source: string): AsyncGenerator<Chunk> {
  const bytes = await readWhole(blocks, maxArrayBytes)
  if (!bytes) throw malformed(`${source} is a JSON array of more than 256 MiB`, 'Write NDJSON: one plant on each line')
  if (!isUtf8(bytes)) throw malformed(`${source} is not UTF-8`, 'Name its encoding, such as --encoding windows-1252')
  const text = bytes.toString()
  assertArray(text, source)
  let [chunk, length] = [new Chunk(), 0]
  for (const { element, line } of elementsOf(text)) {
    length += element.length
    if (isTooLarge(element)) chunk.add('', line, recordTooLarge)
    else chunk.add(element, line)
    if (chunk.records.length < maxChunkRecords && length < maxRecordBytes) continue
    yield chunk
    ;[chunk, length] = [new Chunk(), 0]
  }
  if (chunk.records.length > 0) yield chunk
}

function assertArray(text: string, source: string): void {
  if (text.trim() === '') return
  const parsed = parseJson(text)
  if ('reason' in parsed) throw brokenArray(text, source, parsed.reason)
  if (!Array.isArray(parsed.value))
    throw malformed(`${source} is not a JSON array`, 'Write the plants as an array, or as NDJSON: one on each line')
}

/** Names the line on which the first broken element begins. */
function brokenArray(text: string, source: string, reason: string): PlantsError {
  const hint = 'Correct it, and run it again'
  let last = 1
  for (const { element, line } of elementsOf(text)) {
    last = line
    const parsed = parseJson(element)
    if ('reason' in parsed) return malformed(`${source}:${line}: Not JSON: ${parsed.reason}`, hint)
  }
  return malformed(`${source}:${last}: Not JSON: ${reason}`, hint)
}

/** Of an array; of a broken one, what stands where elements do. */
function* elementsOf(text: string): Generator<{ element: string; line: number }> {
  let [line, depth, start, startLine] = [1, 0, -1, 1]
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charCodeAt(at)
    if (character === lineFeed) line += 1
    if (character <= 0x20) continue
    const isEnd = depth === 1 && (character === comma || character === bracketEnd)
    if (isEnd && start >= 0) yield { element: text.slice(start, at).trimEnd(), line: startLine }
    if (isEnd) start = -1
    else if (depth === 1 && start < 0) [start, startLine] = [at, line]
    if (character === quote) at = endOfString(text, at)
    else if (character === bracket || character === brace) depth += 1
    else if (character === bracketEnd || character === braceEnd) depth -= 1
  }
  if (start >= 0) yield { element: text.slice(start).trimEnd(), line: startLine }
}

function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let escapes = end
    while (text.charCodeAt(escapes - 1) === backslash) escapes -= 1
    if ((end - escapes) % 2 === 0) return end
  }
  return text.length
}

const [lineFeed, quote, comma, backslash] = [0x0a, 0x22, 0x2c, 0x5c]
const [bracket, bracketEnd, brace, braceEnd] = [0x5b, 0x5d, 0x7b, 0x7d]

const maxArrayBytes = 268_435_456
