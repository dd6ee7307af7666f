import { assertDefined, inputError } from '../errors.js'
import { parseJson } from '../plant/json.js'
import { checkSignal } from '../platform/runtime.js'
import { createNoListError } from './assert-keys.js'
import {
  Chunk,
  createBrokenRecord,
  type InputOptions,
  isTooLarge,
  maxRecordBytes,
  maxUnpackedBytes,
  recordTooLarge,
} from './chunk.js'
import { countLineFeeds } from './encoding.js'
import { findListInObject, sampleObject } from './json-shape.js'
import { ChunkGatherer, readsPlainRows } from './plain-chunk.js'
import { createPlainJsonFormat } from './plain-json.js'

/** One JSON value per line (https://github.com/ndjson/ndjson-spec). Blank lines are skipped. */
export async function* readNdjson(
  texts: AsyncIterable<string>,
  rules?: InputOptions,
): AsyncGenerator<Chunk> {
  const isPlain = rules && readsPlainRows(rules) && Object.keys(rules.map).length === 0
  const plainFormat = isPlain ? createPlainJsonFormat(addLines) : undefined
  const gatherer = new ChunkGatherer<string | null>(() => plainFormat)
  let line = 1
  let rest = ''
  let isRestTooLarge = false
  for await (const text of texts) {
    const whole = rest + text
    const end = whole.lastIndexOf('\n') + 1
    const plainCount = isRestTooLarge ? undefined : gatherer.addPlain(whole, end, line)
    if (plainCount === undefined) {
      line += addLines(whole.slice(0, end), line, gatherer.general, isRestTooLarge)
      isRestTooLarge &&= end === 0
      gatherer.general.characters += text.length
    } else line += plainCount
    rest = whole.slice(end)
    isRestTooLarge ||= isTooLarge(rest)
    if (isRestTooLarge) rest = ''
    yield* gatherer.takeChunks(plainCount === undefined ? 'general' : 'plain')
  }
  yield* gatherer.takePlain()
  yield gatherer.general
}

/**
 * Adds the records of complete lines.
 *
 * @returns how many lines there are
 */
function addLines(
  text: string,
  firstLine: number,
  chunk: Chunk<string | null>,
  isFirstTooLarge = false,
): number {
  const lines = text.split('\n')
  lines.pop() // what follows the last line feed
  for (const [index, record] of lines.entries()) {
    if ((index === 0 && isFirstTooLarge) || isTooLarge(record)) chunk.add(null, firstLine + index)
    else if (record.trim() !== '') chunk.add(record, firstLine + index)
  }
  return lines.length
}

/**
 * The elements of an array, or several values. Throws `input`, before the first, with the line of
 * what is broken.
 */
export async function* readDocument(
  texts: AsyncIterable<string>,
  name: string,
  signal: AbortSignal,
  rules?: InputOptions,
): AsyncGenerator<Chunk> {
  let text = ''
  for await (const part of texts) {
    text += part
    if (text.length > maxUnpackedBytes)
      throw inputError(
        `${name} is larger than 256 MiB, the limit of JSON`,
        'Write NDJSON instead: one plant per line',
      )
  }
  for (const chunk of findValues(text, name, rules)) {
    await checkSignal(signal)
    assertValid(chunk, name)
  }
  for (const chunk of findValues(text, name, rules)) {
    await checkSignal(signal)
    yield chunk
  }
}

/** Throws `input` with the line of the first value that is not JSON. */
function assertValid({ records, lines }: Chunk<string>, name: string): void {
  // Together, up to 2000 are parsed in half the time.
  const all = parseJson(`[${records.join()}]`)
  if ('value' in all && (all.value as unknown[]).length === records.length) return
  for (const [index, record] of records.entries()) {
    const parsed = parseJson(record)
    if ('reason' in parsed)
      throw createBrokenRecord(name, assertDefined(lines[index]), `Not JSON: ${parsed.reason}`)
  }
}

const maxValues = 2000

/**
 * Finds them by brackets and quotes. Nothing above 1 MiB is parsed: `JSON.parse` takes gigabytes
 * for some million `[`.
 */
function* findValues(
  text: string,
  name: string,
  rules: InputOptions | undefined,
): Generator<Chunk<string>> {
  const cursor = new Cursor(text)
  let chunk = new Chunk<string>()
  for (cursor.skipBlank(); !cursor.isAtEnd; cursor.skipBlank()) {
    if (chunk.isFull || chunk.records.length >= maxValues) {
      yield chunk
      chunk = new Chunk()
    }
    if (cursor.isAtArray) cursor.enterArray()
    else {
      addValue(chunk, cursor, name, rules)
      cursor.skipSeparator()
    }
  }
  if (cursor.isInArray)
    throw createBrokenRecord(
      name,
      chunk.lines.at(-1) ?? cursor.line,
      'Not JSON: the array is not closed',
    )
  yield chunk
}

function addValue(
  chunk: Chunk<string>,
  cursor: Cursor,
  name: string,
  rules: InputOptions | undefined,
): void {
  const { line, at } = cursor
  const value = cursor.readValue()
  if (isTooLarge(value)) {
    const isObject = !cursor.isInArray && value.startsWith('{')
    const sample = rules && isObject ? sampleObject(cursor.text, at, findEndOfAnyValue) : {}
    const list = rules && findListInObject(sample, rules)
    throw list
      ? createNoListError(sample, list, rules, name)
      : createBrokenRecord(name, line, recordTooLarge)
  }
  chunk.add(value.trimEnd(), line)
  chunk.characters += value.length
}

/** Where the search for values is in the text. */
class Cursor {
  readonly text: string
  readonly #blank = /\s*/y
  at = 0
  line = 1
  /** Whether it is in the array that is around the values. */
  isInArray = false

  constructor(text: string) {
    this.text = text
  }

  get isAtEnd(): boolean {
    return this.at >= this.text.length
  }

  /** Whether an array of values begins here. One within it is a value. */
  get isAtArray(): boolean {
    return !this.isInArray && this.text[this.at] === '['
  }

  enterArray(): void {
    this.isInArray = true
    this.at += 1
    this.skipBlank()
    const isEmpty = this.text[this.at] === ']'
    if (isEmpty) this.skipSeparator()
  }

  /** In an array, white space after a value belongs to it. */
  readValue(): string {
    const end = findEndOfValue(this.text, this.at, this.isInArray)
    const value = this.text.slice(this.at, end)
    this.#skip(value)
    return value
  }

  /** Skips the comma or the bracket after a value of an array. */
  skipSeparator(): void {
    if (!this.isInArray || this.isAtEnd) return
    this.isInArray = this.text[this.at] !== ']'
    this.at += 1
  }

  skipBlank(): void {
    this.#blank.lastIndex = this.at
    this.#skip(this.#blank.exec(this.text)?.[0] ?? '')
  }

  #skip(part: string): void {
    this.line += countLineFeeds(part)
    this.at += part.length
  }
}

/** Returns the index after it, or, in an array, of the comma or bracket after it. */
function findEndOfValue(text: string, start: number, isInArray: boolean): number {
  const last = Math.min(text.length, start + maxRecordBytes + 1)
  for (let at = start; at < last; at += 1) {
    const character = text.charAt(at)
    if (isAfterValue(character, isInArray)) return at
    if (character === '\\') at += 1
    else if (character === '"') at = findEndOfString(text, at, last)
    else if (character === '[' || character === '{') {
      at = findEndOfBrackets(text, at, last)
      if (!isInArray && at < last) return at + 1
    }
  }
  return last
}

function isAfterValue(character: string, isInArray: boolean): boolean {
  return isInArray ? character === ',' || character === ']' : character.trim() === ''
}

/** Returns the index after it, however long it is. */
function findEndOfAnyValue(text: string, start: number): number {
  switch (text[start]) {
    case '"':
      return findEndOfString(text, start, text.length) + 1
    case '[':
    case '{':
      return findEndOfBrackets(text, start, text.length) + 1
    default: {
      const rest = /[^,\]}\s]*/y
      rest.lastIndex = start
      return start + (rest.exec(text)?.[0].length ?? 0)
    }
  }
}

/** Returns the index of the bracket that closes the one at `start`; `last` if none does before. */
function findEndOfBrackets(text: string, start: number, last: number): number {
  let depth = 0
  for (let at = start; at < last; at += 1) {
    const character = text.charAt(at)
    if (character === '\\') at += 1
    else if (character === '"') at = findEndOfString(text, at, last)
    else if (character === '[' || character === '{') depth += 1
    else if (character === ']' || character === '}') depth -= 1
    if (depth === 0) return at
  }
  return last
}

/** Returns the index of the quote that closes the string, or `last` if none does before. */
function findEndOfString(text: string, start: number, last: number): number {
  for (let at = start + 1; at < last; at += 1) {
    const character = text.charAt(at)
    if (character === '"') return at
    if (character === '\\') at += 1
  }
  return last
}
