import { isUtf8 } from 'node:buffer'
import { isObject, parseJson } from '../../plant/exact-json.js'
import { fieldNames } from '../../plant/plant.js'
import { inputError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import { shellWord } from '../../platform/shell.js'
import { problem } from '../../stores/common/change.js'
import {
  Chunk,
  type FieldRules,
  isTooLarge,
  type Misencoded,
  maxChunkRecords,
  readWhole,
  recordTooLarge,
} from './chunk.js'
import { readLines } from './text.js'

/** One JSON value per line (https://github.com/ndjson/ndjson-spec). Blank lines are skipped. */
export async function* readNdjson(
  blocks: AsyncIterable<Buffer>,
  encoding: string,
): AsyncGenerator<Chunk> {
  const misencoded = problem('input', `Not ${encoding === 'utf-8' ? 'UTF-8' : encoding}`)
  for await (const { first, texts, invalid } of readLines(blocks)) {
    const chunk = new Chunk()
    let line = first
    for (const text of texts) {
      if (isTooLarge(text)) chunk.add('', line, recordTooLarge)
      else if (invalid.has(line - first)) chunk.add(text, line, misencoded)
      else if (text.charCodeAt(0) > 0x20 || !/^[ \t\r]*$/.test(text))
        chunk.add(text.endsWith('\r') ? text.slice(0, -1) : text, line)
      line += 1
    }
    texts.length = 0
    if (chunk.records.length > 0) yield chunk
  }
}

export interface JsonSource {
  name: string
  misencoded: Misencoded
}

/**
 * The elements of a JSON array, or one object, which is in memory as a whole.
 *
 * @throws {PlantsError} `input` for anything else
 */
export async function* readDocument(
  blocks: AsyncIterable<Buffer>,
  { name, misencoded }: JsonSource,
  rules: FieldRules,
): AsyncGenerator<Chunk> {
  const bytes = await readWhole(blocks, maxDocumentBytes)
  if (!bytes)
    throw inputError(
      `${name} is a JSON text of more than 256 MiB`,
      'Write NDJSON: one plant on each line',
    )
  if (!isUtf8(bytes)) throw misencoded(lineOfInvalid(bytes))
  const text = bytes.toString()
  if (text.trim() === '') return
  const value = parseDocument(text, name)
  if (isObject(value)) assertRecord(value, name, rules)
  let chunk = new Chunk()
  for (const { element, line } of isObject(value) ? [wholeOf(text)] : elementsOf(text)) {
    if (isTooLarge(element)) chunk.add('', line, recordTooLarge)
    else chunk.add(element, line)
    if (chunk.records.length < maxChunkRecords) continue
    yield chunk
    chunk = new Chunk()
  }
  if (chunk.records.length > 0) yield chunk
}

function lineOfInvalid(bytes: Buffer): number {
  let line = 1
  for (let start = 0; ; line += 1) {
    const feed = bytes.indexOf('\n', start)
    if (feed === -1 || !isUtf8(bytes.subarray(start, feed))) return line
    start = feed + 1
  }
}

interface Element {
  element: string
  /** Where it begins. */
  line: number
}

function wholeOf(text: string): Element {
  const [space = ''] = /^\s*/.exec(text) ?? []
  return { element: text.trim(), line: space.split('\n').length }
}

/**
 * Returns an array or an object. Throws `input` for a text that is not JSON, with the line on which the first broken
 * element begins.
 */
function parseDocument(text: string, source: string): unknown {
  const parsed = parseJson(text)
  if ('value' in parsed) {
    if (Array.isArray(parsed.value) || isObject(parsed.value)) return parsed.value
    const hint = 'Write the plants as an array, or as NDJSON: one on each line'
    throw inputError(`${source} is neither a JSON array nor an object`, hint)
  }
  const opening = text.trimStart().charAt(0)
  if (opening === '{') assertOne(text, source)
  let broken = { line: wholeOf(text).line, reason: parsed.reason }
  for (const { element, line } of /[[{]/.test(opening) ? elementsOf(text) : []) {
    const one = parseJson(opening === '{' ? `{${element}}` : element)
    broken = { ...broken, ...one, line }
    if ('reason' in one) break
  }
  throw inputError(
    `${source}:${broken.line}: Not JSON: ${broken.reason}`,
    'Correct it, and run it again',
  )
}

/** Throws `input` for several objects, one after the other, as jq writes them. */
function assertOne(text: string, source: string): void {
  const end = endOfValue(text)
  const between = /^(?<space>\s*)\{/.exec(text.slice(end, end + 10_000))?.groups?.['space']
  if (end === -1 || between === undefined) return
  const first = text.slice(0, end)
  if ('reason' in parseJson(first)) return
  const isLine = !first.trim().includes('\n') && between.includes('\n')
  throw inputError(
    `${source} has several JSON objects, and is no array of them`,
    isLine
      ? 'It is NDJSON: --format ndjson'
      : `For one on each line, with ${exactJq}: ${jq('-c .', source)}`,
  )
}

/** Throws `input` for an object around an array of plants, such as the response of a service. */
export function assertRecord(value: unknown, source: string, { map }: FieldRules): void {
  if (!isObject(value) || fieldNames.some((field) => Object.hasOwn(value, map[field] || field)))
    return
  const path = pathOfArray(value)
  if (!path) return
  const filter = path
    .map((key) => `.${/^[a-z_]\w*$/i.test(key) ? key : JSON.stringify(key)}`)
    .join('')
  const isPlain = /^[\p{L}\p{N} ."_-]{1,100}$/u.test(filter)
  const key = JSON.stringify(shorten(path.join('.')))
  throw inputError(
    `${source} is one object without the fields of a plant: its key ${key} has an array`,
    isPlain
      ? `To import that, with ${exactJq}: ${jq(shellWord(filter), source)}`
      : 'Import that array alone',
  )
}

/** The keys of the first array of objects in an object. */
function pathOfArray(value: Record<string, unknown>, depth = 1): string[] | undefined {
  for (const [key, item] of Object.entries(value))
    if (Array.isArray(item) && item.some(isObject)) return [key]
  for (const [key, item] of depth < maxDepth ? Object.entries(value) : []) {
    const path = isObject(item) ? pathOfArray(item, depth + 1) : undefined
    if (path) return [key, ...path]
  }
  return undefined
}

/** Yields the elements of an array or the members of an object, or what is in their place in a broken one. */
function* elementsOf(text: string): Generator<Element> {
  const closing = text.trimStart().startsWith('{') ? '}' : ']'
  let line = 1
  let depth = 0
  let start = -1
  let startLine = 1
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at)
    if (character === '\n') line += 1
    if (character <= ' ') continue
    const isEnd = depth === 1 && (character === ',' || character === closing)
    if (isEnd && start >= 0) yield { element: text.slice(start, at).trimEnd(), line: startLine }
    if (isEnd) start = -1
    else if (depth === 1 && start < 0) {
      start = at
      startLine = line
    }
    if (character === '"') at = endOfString(text, at)
    else if (character === '[' || character === '{') depth += 1
    else if (character === ']' || character === '}') depth -= 1
  }
  if (start >= 0) yield { element: text.slice(start).trimEnd(), line: startLine }
}

/** Whether the object that begins a line goes on in the next one. */
export function isOpen(line: string): boolean {
  return endOfValue(line) === -1
}

/** The index after the bracket that closes the first one. -1 if there is none. */
function endOfValue(text: string): number {
  let depth = 0
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at)
    if (character === '"') at = endOfString(text, at)
    else if (character === '[' || character === '{') depth += 1
    else if (character === ']' || character === '}') depth -= 1
    if (depth === 0 && character > ' ') return at + 1
  }
  return -1
}

function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let escapes = end
    while (text[escapes - 1] === '\\') escapes -= 1
    if ((end - escapes) % 2 === 0) return end
  }
  return text.length
}

const maxDocumentBytes = 268_435_456

/** The greatest number of objects around an array that is named. */
const maxDepth = 4

/** An older one rounds ids beyond 2^53. */
const exactJq = 'jq 1.7 or newer'

/** jq reads no gzip. */
function jq(filter: string, source: string): string {
  const isFile = source !== 'stdin' && !/\.gz$/i.test(source)
  return isFile ? `jq ${filter} ${shellWord(source)} | plants import -` : `jq ${filter}`
}
