/*
 * Finds the values in a JSON text and in NDJSON. Each value is parsed later, when it is mapped to a
 * plant.
 *
 * NDJSON has one value on each line. A JSON text has an array of plants, or several values one
 * after the other. It is searched for brackets and quotes, because `JSON.parse` would keep all
 * objects in memory, and would not tell in which lines they are. The text is searched twice. The
 * first time, every value is parsed, so that invalid JSON is found before anything is stored. The
 * second time, the values are yielded.
 */
import { assertDefined, createInputError } from '../errors.js'
import { parseJson } from '../plant/json.js'
import { explainSyntaxError, syntaxHints } from '../plant/json-syntax.js'
import { checkSignal } from '../platform/runtime.js'
import { assertKeys, createNoListError } from './assert-keys.js'
import {
  createBrokenRecordError,
  type FormatInput,
  type FormatReader,
  type InputOptions,
  isTooLarge,
  maxRecordBytes,
  maxUnpackedBytes,
  peek,
  RawChunk,
  readFields,
  recordTooLargeReason,
} from './chunk.js'
import { listNames } from './columns.js'
import { countLineEnds } from './encoding.js'
import { JsonFields } from './json-fields.js'
import type { FormatName } from './write.js'

/** Opens NDJSON, and checks the keys of its first records. */
export async function openNdjson(
  texts: AsyncIterable<string>,
  options: InputOptions,
  { name }: JsonInput,
): Promise<FormatReader> {
  return openRecords('ndjson', readNdjson(texts), options, name)
}

/** Opens a JSON text, and checks the keys of its first records. */
export async function openDocument(
  texts: AsyncIterable<string>,
  options: InputOptions,
  input: JsonInput,
): Promise<FormatReader> {
  return openRecords('json', readDocument(texts, options, input), options, input.name)
}

type JsonInput = Pick<FormatInput, 'name' | 'signal'>

async function openRecords(
  format: FormatName,
  chunks: AsyncGenerator<RawChunk<string | null>>,
  options: InputOptions,
  name: string,
): Promise<FormatReader> {
  const { first = new RawChunk(), all } = await peek(chunks)
  const sample = assertKeys(first, options, name)
  const fields = new JsonFields(options)
  return { format, sample, fields, chunks: readFields(all, fields) }
}

/**
 * Yields the lines of NDJSON, one value each (https://github.com/ndjson/ndjson-spec). Blank lines
 * are skipped. A line above 1 MiB is null, and is not kept in memory.
 */
async function* readNdjson(texts: AsyncIterable<string>): AsyncGenerator<RawChunk<string | null>> {
  let chunk = new RawChunk<string | null>()
  let line = 1
  let remainder = ''
  let isRemainderTooLarge = false
  for await (const text of texts) {
    const wholeText = remainder + text
    const end = wholeText.lastIndexOf('\n') + 1
    line += addLines(wholeText.slice(0, end), line, chunk, isRemainderTooLarge)
    chunk.characters += text.length
    remainder = wholeText.slice(end)
    isRemainderTooLarge = (isRemainderTooLarge && end === 0) || isTooLarge(remainder)
    if (isRemainderTooLarge) remainder = ''
    if (!chunk.isFull) continue
    yield chunk
    chunk = new RawChunk()
  }
  yield chunk
}

/**
 * Adds the records of complete lines to a chunk.
 *
 * @param isFirstTooLarge whether the beginning of the first line was above 1 MiB, and is forgotten
 * @returns the number of lines, also of blank ones
 */
function addLines(
  text: string,
  firstLine: number,
  chunk: RawChunk<string | null>,
  isFirstTooLarge = false,
): number {
  const lines = text.split('\n')
  // After the last line feed, there is an empty string.
  lines.pop()
  for (const [index, record] of lines.entries()) {
    if ((index === 0 && isFirstTooLarge) || isTooLarge(record)) chunk.add(null, firstLine + index)
    else if (record.trim() !== '') chunk.add(record, firstLine + index)
  }
  return lines.length
}

/**
 * Yields the elements of an array, or several values.
 *
 * @throws {PlantsError} `input` before the first value, with the line that is not JSON
 */
export async function* readDocument(
  texts: AsyncIterable<string>,
  { key }: Pick<InputOptions, 'key'>,
  { name, signal }: JsonInput,
): AsyncGenerator<RawChunk<string | null>> {
  let text = ''
  for await (const blockText of texts) {
    text += blockText
    if (text.length > maxUnpackedBytes)
      throw createInputError(
        `${name} is larger than 256 MiB, the limit of JSON`,
        'Write NDJSON instead: one plant per line',
      )
  }
  for (const chunk of findValues(text, name, key)) {
    await checkSignal(signal)
    assertValid(chunk, name, text)
  }
  for (const chunk of findValues(text, name, key)) {
    await checkSignal(signal)
    yield chunk
  }
}

/**
 * @param text the whole text, in which the position of an error is counted
 * @throws {PlantsError} `input` with the line of the first value that is not JSON
 */
function assertValid({ records, lines }: RawChunk<string>, name: string, text: string): void {
  // Parsing up to 2000 values as one array takes half the time. The length is compared because an
  // invalid value such as `1,2` would become two elements.
  const parsedArray = parseJson(`[${records.join()}]`)
  if ('value' in parsedArray && (parsedArray.value as unknown[]).length === records.length) return
  for (const [index, record] of records.entries()) {
    const parseResult = parseJson(record)
    if ('isInvalid' in parseResult) {
      const { description, cause } = explainSyntaxError(text, { isSequence: true })
      const hint = cause && `${syntaxHints[cause]}, and run the command again`
      const line = assertDefined(lines[index])
      throw createBrokenRecordError(name, line, `Not JSON: ${description}`, hint)
    }
  }
}

const maxValues = 2000

/**
 * Finds the values by brackets and quotes, without parsing them. A value above 1 MiB is an error,
 * and is never parsed: `JSON.parse` takes gigabytes for some million `[`.
 */
function* findValues(
  text: string,
  name: string,
  key: string | undefined,
): Generator<RawChunk<string>> {
  const cursor = new Cursor(text)
  if (key !== undefined) cursor.moveTo(findListStart(text, key, name))
  let chunk = new RawChunk<string>()
  let chunkStart = 0
  for (cursor.skipBlank(); !cursor.isAtEnd; cursor.skipBlank()) {
    const isBehindList = key !== undefined && !cursor.isInArray && !cursor.isAtArray
    if (isBehindList) break
    // Between two values, there may be a million empty arrays.
    chunk.characters = cursor.index - chunkStart
    if (chunk.isFull || chunk.records.length >= maxValues) {
      yield chunk
      chunk = new RawChunk()
      chunkStart = cursor.index
    }
    if (cursor.isAtArray) cursor.enterArray()
    else {
      addValue(chunk, cursor, name)
      cursor.skipSeparator()
    }
  }
  if (cursor.isInArray)
    throw createBrokenRecordError(
      name,
      chunk.lines.at(-1) ?? cursor.line,
      `Not JSON: ${explainOpenArray(chunk.records.at(-1), text)}`,
    )
  yield chunk
}

/** If a string or an object in the last value is not closed, it takes the bracket of the array. */
function explainOpenArray(lastValue: string | undefined, text: string): string {
  const isBroken = lastValue !== undefined && 'isInvalid' in parseJson(lastValue)
  if (!isBroken) return 'the array is not closed'
  return explainSyntaxError(text, { isSequence: true }).description
}

function addValue(chunk: RawChunk<string>, cursor: Cursor, name: string): void {
  const { line, index, text } = cursor
  const value = cursor.readValue()
  if (isTooLarge(value)) {
    const isOutermost = !cursor.isInArray && index === text.length - text.trimStart().length
    const listKeys = isOutermost && text[index] === '{' ? [...findLists(text).keys()] : []
    if (listKeys.length > 0) throw createNoListError(name, listKeys)
    throw createBrokenRecordError(name, line, recordTooLargeReason)
  }
  chunk.add(value.trimEnd(), line)
}

/** @throws {PlantsError} `input` if the outermost object has no list of objects under the key */
function findListStart(text: string, key: string, name: string): number {
  const lists = findLists(text)
  const start = lists.get(key)
  if (start !== undefined) return start
  const keys = listNames([...lists.keys()])
  throw createInputError(
    `${name} has no list of objects under the key ${JSON.stringify(key)}`,
    'Name a key of the outermost object that holds a list of objects',
    undefined,
    keys === '' ? undefined : [`keys with lists: ${keys}`],
  )
}

/**
 * Finds the lists of objects that the outermost object of a text holds. Nothing is parsed: the
 * object may have millions of values.
 *
 * @returns where the list of each key begins
 */
function findLists(text: string): Map<string, number> {
  const lists = new Map<string, number>()
  const member = /[\s,{]*("(?:[^"\\]|\\.)*")\s*:\s*/y
  const list = /\[\s*(?:\{|\])/y
  let index = text.length - text.trimStart().length
  if (text[index] !== '{') return lists
  for (;;) {
    member.lastIndex = index
    const key = member.exec(text)?.[1]
    if (key === undefined) return lists
    list.lastIndex = member.lastIndex
    const parsedKey = parseJson(key)
    if ('value' in parsedKey && list.test(text))
      lists.set(String(parsedKey.value), member.lastIndex)
    index = skipValue(text, member.lastIndex)
  }
}

/** Returns the index after the value, however long it is. */
function skipValue(text: string, start: number): number {
  if (text[start] === '"') return findEndOfString(text, start, text.length) + 1
  if (text[start] === '[' || text[start] === '{')
    return findEndOfBrackets(text, start, text.length) + 1
  const end = text.slice(start, start + maxRecordBytes).search(/[,}\]\s]/)
  return end === -1 ? text.length : start + end
}

/** The position of the search for values in the text. */
class Cursor {
  readonly text: string
  readonly #blank = /\s*/y
  index = 0
  line = 1
  /** Whether the cursor is in the array that contains the values. */
  isInArray = false

  constructor(text: string) {
    this.text = text
  }

  get isAtEnd(): boolean {
    return this.index >= this.text.length
  }

  /** Whether the array that contains the values begins here. An array within it is a value. */
  get isAtArray(): boolean {
    return !this.isInArray && this.text[this.index] === '['
  }

  moveTo(index: number): void {
    this.#skip(this.text.slice(this.index, index))
  }

  enterArray(): void {
    this.isInArray = true
    this.index += 1
    this.skipBlank()
    const isEmpty = this.text[this.index] === ']'
    if (isEmpty) this.skipSeparator()
  }

  /** Reads a value. In an array, it includes the white space up to the comma or the bracket. */
  readValue(): string {
    const end = findEndOfValue(this.text, this.index, this.isInArray)
    const value = this.text.slice(this.index, end)
    this.#skip(value)
    return value
  }

  /** Skips the comma or the bracket after a value of an array. */
  skipSeparator(): void {
    if (!this.isInArray || this.isAtEnd) return
    this.isInArray = this.text[this.index] !== ']'
    this.index += 1
  }

  skipBlank(): void {
    this.#blank.lastIndex = this.index
    this.#skip(this.#blank.exec(this.text)?.[0] ?? '')
  }

  #skip(skippedText: string): void {
    this.line += countLineEnds(skippedText)
    this.index += skippedText.length
  }
}

/**
 * Returns the index after the value; in an array, that is the index of the comma or the bracket
 * after it. Of a value above 1 MiB, only a little more than this is read.
 */
function findEndOfValue(text: string, start: number, isInArray: boolean): number {
  const limit = Math.min(text.length, start + maxRecordBytes + 1)
  for (let index = start; index < limit; index += 1) {
    const character = text.charAt(index)
    if (isAfterValue(character, isInArray)) return index
    if (character === '\\') index += 1
    else if (character === '"') index = findEndOfString(text, index, limit)
    else if (character === '[' || character === '{') {
      index = findEndOfBrackets(text, index, limit)
      if (!isInArray && index < limit) return index + 1
    }
  }
  return limit
}

function isAfterValue(character: string, isInArray: boolean): boolean {
  return isInArray ? character === ',' || character === ']' : character.trim() === ''
}

/** Returns the index of the bracket that closes the one at `start`, or `limit` if none does. */
function findEndOfBrackets(text: string, start: number, limit: number): number {
  let depth = 0
  for (let index = start; index < limit; index += 1) {
    const character = text.charAt(index)
    if (character === '\\') index += 1
    else if (character === '"') index = findEndOfString(text, index, limit)
    else if (character === '[' || character === '{') depth += 1
    else if (character === ']' || character === '}') depth -= 1
    if (depth === 0) return index
  }
  return limit
}

/** Returns the index of the quote that closes the string, or `limit` if none does. */
function findEndOfString(text: string, start: number, limit: number): number {
  for (let index = start + 1; index < limit; index += 1) {
    const character = text.charAt(index)
    if (character === '"') return index
    if (character === '\\') index += 1
  }
  return limit
}
