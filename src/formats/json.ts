/*
 * Finds the values in a JSON text and in NDJSON. Each value is parsed later, when its fields are
 * read.
 *
 * NDJSON has one value on each line. A JSON text has an array, or several values one
 * after the other. It is searched for brackets and quotes, because `JSON.parse` would keep all
 * objects in memory, and would not tell in which lines they are. The text is searched twice. The
 * first time, every value is parsed, so that invalid JSON is found before anything is stored. The
 * second time, the values are yielded.
 */
import { createInputError } from '../errors.js'
import { parseJson } from '../plant/json.js'
import { explainSyntaxError, syntaxHints } from '../plant/json-syntax.js'
import { peek } from '../platform/generators.js'
import { checkSignal } from '../platform/runtime.js'
import { countLineEnds } from './encoding.js'
import {
  createBrokenRecordError,
  isTooLarge,
  maxRecordBytes,
  maxUnpackedBytes,
  recordTooLargeReason,
} from './limits.js'
import { listNames } from './names.js'
import {
  type FormatInput,
  type FormatOptions,
  type JsonReader,
  type JsonValue,
  maxBatchCharacters,
} from './reader.js'

export function openNdjson(texts: AsyncIterable<string>): Promise<JsonReader> {
  return openValues(readNdjson(texts))
}

export function openDocument(
  texts: AsyncIterable<string>,
  options: FormatOptions,
  input: JsonInput,
): Promise<JsonReader> {
  return openValues(readDocument(texts, options, input))
}

type JsonInput = Pick<FormatInput, 'name' | 'signal'>

async function openValues(batches: AsyncGenerator<readonly JsonValue[]>): Promise<JsonReader> {
  const { first = [], all } = await peek(batches)
  return { type: 'json', head: first, batches: all }
}

/**
 * Yields the lines of NDJSON, one value each (https://github.com/ndjson/ndjson-spec). Blank lines
 * are skipped. A line above 1 MiB is null, and is not kept in memory.
 */
async function* readNdjson(texts: AsyncIterable<string>): AsyncGenerator<readonly JsonValue[]> {
  let line = 1
  let remainder = ''
  let isRemainderTooLarge = false
  for await (const text of texts) {
    const wholeText = remainder + text
    const end = wholeText.lastIndexOf('\n') + 1
    const lines = wholeText.slice(0, end).split('\n')
    // After the last line feed, there is an empty string.
    lines.pop()
    const values = readLines(lines, line, isRemainderTooLarge)
    if (values.length > 0) yield values
    line += lines.length
    remainder = wholeText.slice(end)
    isRemainderTooLarge = (isRemainderTooLarge && end === 0) || isTooLarge(remainder)
    if (isRemainderTooLarge) remainder = ''
  }
}

/** @param isFirstTooLarge whether the beginning of the first line was above 1 MiB, and is forgotten */
function readLines(
  lines: readonly string[],
  firstLine: number,
  isFirstTooLarge: boolean,
): JsonValue[] {
  const values: JsonValue[] = []
  let line = firstLine
  for (const text of lines) {
    const isCut = isFirstTooLarge && line === firstLine
    if (isCut || isTooLarge(text)) values.push({ text: null, line })
    else if (text.trim() !== '') values.push({ text, line })
    line += 1
  }
  return values
}

/**
 * Yields the elements of an array, or several values.
 *
 * @throws {PlantsError} `input` before the first value, with the line that is not JSON
 */
export async function* readDocument(
  texts: AsyncIterable<string>,
  { key }: Pick<FormatOptions, 'key'>,
  { name, signal }: JsonInput,
): AsyncGenerator<readonly JsonValue[]> {
  let text = ''
  for await (const blockText of texts) {
    text += blockText
    if (text.length > maxUnpackedBytes)
      throw createInputError(
        `${name} is larger than 256 MiB, the limit of JSON`,
        'Write NDJSON instead: one plant per line',
      )
  }
  for (const values of findValues(text, name, key)) {
    await checkSignal(signal)
    assertValid(values, name, text)
  }
  for (const values of findValues(text, name, key)) {
    await checkSignal(signal)
    yield values
  }
}

/**
 * @param text the whole text, in which the position of an error is counted
 * @throws {PlantsError} `input` with the line of the first value that is not JSON
 */
function assertValid(values: readonly DocumentValue[], name: string, text: string): void {
  // Parsing up to 2000 values as one array takes half the time. The length is compared because an
  // invalid value such as `1,2` would become two elements.
  const parsedArray = parseJson(`[${values.map((value) => value.text).join()}]`)
  if ('value' in parsedArray && (parsedArray.value as unknown[]).length === values.length) return
  for (const { text: valueText, line } of values) {
    const parseResult = parseJson(valueText)
    if ('isInvalid' in parseResult) {
      const { description, cause } = explainSyntaxError(text, { isSequence: true })
      const hint = cause && `${syntaxHints[cause]}, and run the command again`
      throw createBrokenRecordError(name, line, `Not JSON: ${description}`, hint)
    }
  }
}

const maxValues = 2000

type DocumentValue = JsonValue & { text: string }

/**
 * Finds the values by brackets and quotes, without parsing them. A value above 1 MiB is an error,
 * and is never parsed: `JSON.parse` takes gigabytes for some million `[`.
 */
function* findValues(
  text: string,
  name: string,
  key: string | undefined,
): Generator<DocumentValue[]> {
  const cursor = new Cursor(text)
  if (key !== undefined) cursor.moveTo(findListStart(text, key, name))
  let values: DocumentValue[] = []
  let batchStart = 0
  for (cursor.skipBlank(); !cursor.isAtEnd; cursor.skipBlank()) {
    const isBehindList = key !== undefined && !cursor.isInArray && !cursor.isAtArray
    if (isBehindList) break
    // Between two values, there may be a million empty arrays.
    if (values.length >= maxValues || cursor.index - batchStart >= maxBatchCharacters) {
      yield values
      values = []
      batchStart = cursor.index
    }
    if (cursor.isAtArray) cursor.enterArray()
    else {
      values.push(readValue(cursor, name))
      cursor.skipSeparator()
    }
  }
  if (cursor.isInArray)
    throw createBrokenRecordError(
      name,
      values.at(-1)?.line ?? cursor.line,
      `Not JSON: ${explainSyntaxError(text, { isSequence: true }).description}`,
    )
  yield values
}

function readValue(cursor: Cursor, name: string): DocumentValue {
  const { line, index, text } = cursor
  const value = cursor.readValue()
  if (!isTooLarge(value)) return { text: value.trimEnd(), line }
  const isOutermost = !cursor.isInArray && index === text.length - text.trimStart().length
  const lists = isOutermost ? readFirstRecords(text) : ''
  if (lists === '' || isTooLarge(lists))
    throw createBrokenRecordError(name, line, recordTooLargeReason)
  cursor.moveTo(text.length)
  return { text: `{${lists}}`, line }
}

/**
 * Shortens the lists of the outermost object to their first records. They show where the plants of a
 * large object are, which is no plant itself.
 */
function readFirstRecords(text: string): string {
  const members = [...findLists(text)].map(([key, start]) => {
    const end = findEndOfValue(text, start + 1, endOfElement)
    return `${JSON.stringify(key)}:[${text.slice(start + 1, end)}]`
  })
  return members.join()
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
    index = findEndOfValue(text, member.lastIndex, endOfMember)
  }
}

/** The position of the search for values in the text. */
class Cursor {
  readonly #blank = /\s*/y
  index = 0
  line = 1
  /** Whether the cursor is in the array that contains the values. */
  isInArray = false

  constructor(readonly text: string) {}

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
    // Of a value above 1 MiB, only a little more than this is read.
    const limit = Math.min(this.text.length, this.index + maxRecordBytes + 1)
    const valueEnd = this.isInArray ? endOfElement : endOfText
    const end = findEndOfValue(this.text, this.index, valueEnd, limit)
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

/** What follows a value that is an element of an array, a member of an object, or neither. */
const endOfElement = /[,\]]/
const endOfMember = /[,}]/
const endOfText = /\s/

/**
 * Returns the index after the value; in an array or an object, that is the index of the comma or the
 * bracket after it. `limit` is returned if the value does not end before.
 */
function findEndOfValue(text: string, start: number, end: RegExp, limit = text.length): number {
  for (let index = start; index < limit; index += 1) {
    const character = text.charAt(index)
    if (end.test(character)) return index
    if (character === '\\') index += 1
    else if (character === '"') index = findEndOfString(text, index, limit)
    else if (character === '[' || character === '{') {
      index = findEndOfBrackets(text, index, limit)
      if (end === endOfText && index < limit) return index + 1
    }
  }
  return limit
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
