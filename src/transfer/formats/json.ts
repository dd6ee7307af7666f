import { isUtf8 } from 'node:buffer'
import { parseJson } from '../../plant/exact-json.js'
import { malformed } from '../../platform/errors.js'
import { problem } from '../../stores/common/change.js'
import { Chunk, isTooLarge, maxChunkRecords, readWhole, recordTooLarge } from './chunk.js'
import { readLines } from './text.js'

/** One JSON value per line (https://github.com/ndjson/ndjson-spec). Blank lines are skipped. */
export async function* readNdjson(blocks: AsyncIterable<Buffer>): AsyncGenerator<Chunk> {
  for await (const { first, texts, invalid } of readLines(blocks)) {
    const chunk = new Chunk()
    for (const [index, text] of texts.entries()) {
      const line = first + index
      if (isTooLarge(text)) chunk.add('', line, recordTooLarge)
      else if (invalid.has(index)) chunk.add(text, line, notUtf8)
      else if (text.charCodeAt(0) > 0x20 || !/^[ \t\r]*$/.test(text))
        chunk.add(text.endsWith('\r') ? text.slice(0, -1) : text, line)
    }
    if (chunk.records.length > 0) yield chunk
  }
}

const notUtf8 = problem('malformed', 'Not UTF-8. If the input has another encoding, name it with --encoding')

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
  let chunk = new Chunk()
  for (const { element, line } of elementsOf(text)) {
    if (isTooLarge(element)) chunk.add('', line, recordTooLarge)
    else chunk.add(element, line)
    if (chunk.records.length < maxChunkRecords) continue
    yield chunk
    chunk = new Chunk()
  }
  if (chunk.records.length > 0) yield chunk
}

/** Throws `malformed` for a text that is not JSON, with the line on which the first broken element begins. */
function assertArray(text: string, source: string): void {
  if (text.trim() === '') return
  const parsed = parseJson(text)
  if ('value' in parsed) {
    if (Array.isArray(parsed.value)) return
    throw malformed(`${source} is not a JSON array`, 'Write the plants as an array, or as NDJSON: one on each line')
  }
  let broken = { line: 1, reason: parsed.reason }
  for (const { element, line } of elementsOf(text)) {
    const one = parseJson(element)
    broken = { ...broken, ...one, line }
    if ('reason' in one) break
  }
  throw malformed(`${source}:${broken.line}: Not JSON: ${broken.reason}`, 'Correct it, and run it again')
}

/** Yields the elements of an array, or what is in their place in a broken one. */
function* elementsOf(text: string): Generator<{ element: string; line: number }> {
  let [line, depth, start, startLine] = [1, 0, -1, 1]
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at)
    if (character === '\n') line += 1
    if (character <= ' ') continue
    const isEnd = depth === 1 && (character === ',' || character === ']')
    if (isEnd && start >= 0) yield { element: text.slice(start, at).trimEnd(), line: startLine }
    if (isEnd) start = -1
    else if (depth === 1 && start < 0) [start, startLine] = [at, line]
    if (character === '"') at = endOfString(text, at)
    else if (character === '[' || character === '{') depth += 1
    else if (character === ']' || character === '}') depth -= 1
  }
  if (start >= 0) yield { element: text.slice(start).trimEnd(), line: startLine }
}

function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let escapes = end
    while (text[escapes - 1] === '\\') escapes -= 1
    if ((end - escapes) % 2 === 0) return end
  }
  return text.length
}

const maxArrayBytes = 268_435_456
