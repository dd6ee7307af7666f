import { inputError, must } from '../errors.js'
import { parseJson } from '../plant/json.js'
import { checkSignal } from '../platform/runtime.js'
import {
  brokenRecord,
  Chunk,
  isTooLarge,
  maxRecordBytes,
  maxUnpacked,
  recordTooLarge,
} from './chunk.js'
import { lineFeedsIn } from './encoding.js'

/** One JSON value per line (https://github.com/ndjson/ndjson-spec). Blank lines are skipped. */
export async function* readNdjson(texts: AsyncIterable<string>): AsyncGenerator<Chunk> {
  let line = 1
  let rest = ''
  let isRestTooLarge = false
  let chunk = new Chunk()
  for await (const text of texts) {
    const lines = (rest + text).split('\n')
    rest = must(lines.pop())
    for (const record of lines) {
      if (isRestTooLarge || isTooLarge(record)) chunk.add(null, line)
      else if (record.trim() !== '') chunk.add(record, line)
      isRestTooLarge = false
      line += 1
    }
    isRestTooLarge ||= isTooLarge(rest)
    if (isRestTooLarge) rest = ''
    chunk.characters += text.length
    if (!chunk.isFull) continue
    yield chunk
    chunk = new Chunk()
  }
  yield chunk
}

/**
 * The elements of an array, or several values. Throws `input`, before the first, with the line of
 * what is broken.
 */
export async function* readDocument(
  texts: AsyncIterable<string>,
  name: string,
  signal: AbortSignal,
): AsyncGenerator<Chunk> {
  let text = ''
  for await (const part of texts) {
    text += part
    if (text.length > maxUnpacked)
      throw inputError(
        `${name} is a JSON text of more than 256 MiB`,
        'Write NDJSON: one plant on each line',
      )
  }
  for (const { records, lines } of valuesIn(text, name)) {
    await checkSignal(signal)
    // Together, up to 2000 are parsed in half the time.
    const all = parseJson(`[${records.join()}]`)
    const isValid = 'value' in all && (all.value as unknown[]).length === records.length
    for (const [index, record] of isValid ? [] : records.entries()) {
      const parsed = parseJson(record)
      if ('reason' in parsed)
        throw brokenRecord(name, must(lines[index]), `Not JSON: ${parsed.reason}`)
    }
  }
  for (const chunk of valuesIn(text, name)) {
    await checkSignal(signal)
    yield chunk
  }
}

/**
 * Finds them by brackets and quotes. Nothing above 1 MiB is parsed: `JSON.parse` takes gigabytes
 * for some million `[`.
 */
function* valuesIn(text: string, name: string): Generator<Chunk<string>> {
  const blank = /\s*/y
  let chunk = new Chunk<string>()
  let at = 0
  let line = 1
  let isInArray = false

  const skip = (part: string) => {
    line += lineFeedsIn(part)
    at += part.length
  }
  const skipBlank = () => {
    blank.lastIndex = at
    skip(blank.exec(text)?.[0] ?? '')
  }

  for (skipBlank(); at < text.length; skipBlank()) {
    if (chunk.isFull || chunk.records.length >= 2000) {
      yield chunk
      chunk = new Chunk()
    }
    if (text[at] === '[' && !isInArray) {
      isInArray = true
      at += 1
      skipBlank()
      if (text[at] !== ']') continue
    } else {
      const value = text.slice(at, endOfValue(text, at, isInArray))
      if (isTooLarge(value)) throw brokenRecord(name, line, recordTooLarge)
      chunk.add(value.trimEnd(), line)
      chunk.characters += value.length
      skip(value)
    }
    if (!isInArray || at === text.length) continue
    isInArray = text[at] !== ']'
    at += 1
  }
  if (isInArray)
    throw brokenRecord(name, chunk.lines.at(-1) ?? line, 'Not JSON: the array is not closed')
  yield chunk
}

/** The index after it, or, in an array, of the comma or bracket after it. */
function endOfValue(text: string, start: number, isInArray: boolean): number {
  const last = Math.min(text.length, start + maxRecordBytes + 1)
  let depth = 0
  let isInString = false
  const isEnd = (one: string) => (isInArray ? one === ',' || one === ']' : one.trim() === '')
  for (let at = start; at < last; at += 1) {
    const one = text.charAt(at)
    if (one === '\\') at += 1
    else if (one === '"') isInString = !isInString
    else if (isInString) continue
    else if (depth === 0 && isEnd(one)) return at
    else if (one === '[' || one === '{') depth += 1
    else if (depth > 0 && (one === ']' || one === '}')) {
      depth -= 1
      if (depth === 0 && !isInArray) return at + 1
    }
  }
  return last
}
