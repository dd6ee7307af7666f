/*
 * Scans NDJSON for plain objects. A plain object has an id, a name and at most a tag, in this order
 * and with at most one space between them, as exports write it:
 * `{"id":1,"name":"Fern","tag":"shade"}`.
 *
 * The scanner compares UTF-16 units, because that is faster than a regular expression, and creates
 * no strings. `plain-chunk.ts` says why plain objects are treated differently.
 */

import { isStorableString } from '../plant/fields.js'
import { backslash, closingBrace, comma, lineFeed, quote, space, zero } from '../platform/ascii.js'
import { type FieldOffsets, type PlainFormat, scanId } from './plain-chunk.js'

/** @param parse parses complete lines that are not plain */
export function createPlainJsonFormat(
  parse: PlainFormat<string | null>['parse'],
): PlainFormat<string | null> {
  return { scanRow: scanObject, readField: readString, parse }
}

function scanObject(text: string, start: number, fields: FieldOffsets): number | undefined {
  const idStart = skipKey(text, start, '{"id":')
  if (idStart === undefined) return undefined
  fields.idStart = idStart
  fields.idEnd = findDigitsEnd(text, idStart)
  fields.id = scanId(text, idStart, fields.idEnd)
  if (Number.isNaN(fields.id) || hasLeadingZero(text, idStart, fields.idEnd)) return undefined

  const nameStart = skipKey(text, skipComma(text, fields.idEnd), '"name":')
  const nameEnd = findStringEnd(text, nameStart)
  if (nameStart === undefined || nameEnd === undefined) return undefined
  fields.nameStart = nameStart
  fields.nameEnd = nameEnd
  fields.tagStart = fields.tagEnd
  if (text.charCodeAt(nameEnd) === closingBrace) return skipLineFeed(text, nameEnd + 1)

  const tagStart = skipKey(text, skipComma(text, nameEnd), '"tag":')
  const tagEnd = findStringEnd(text, tagStart)
  if (tagStart === undefined || tagEnd === undefined) return undefined
  fields.tagStart = tagStart
  fields.tagEnd = tagEnd
  return text.charCodeAt(tagEnd) === closingBrace ? skipLineFeed(text, tagEnd + 1) : undefined
}

/** @returns the index of the value of the key; undefined if another key is at `start` */
function skipKey(text: string, start: number | undefined, key: string): number | undefined {
  if (start === undefined) return undefined
  for (let index = 0; index < key.length; index += 1)
    if (text.charCodeAt(start + index) !== key.charCodeAt(index)) return undefined
  return skipSpace(text, start + key.length)
}

function skipSpace(text: string, index: number): number {
  return text.charCodeAt(index) === space ? index + 1 : index
}

function skipComma(text: string, index: number): number | undefined {
  return text.charCodeAt(index) === comma ? skipSpace(text, index + 1) : undefined
}

function skipLineFeed(text: string, index: number): number | undefined {
  return text.charCodeAt(index) === lineFeed ? index + 1 : undefined
}

function findDigitsEnd(text: string, start: number): number {
  let index = start
  while (text.charCodeAt(index) > comma && text.charCodeAt(index) < closingBrace) index += 1
  return index
}

/**
 * Whether digits are not valid as an id: `007` is no number in JSON, and `-0` is not an integer.
 */
function hasLeadingZero(text: string, start: number, end: number): boolean {
  const isNegative = text.charCodeAt(start) < zero
  const firstDigit = isNegative ? start + 1 : start
  return text.charCodeAt(firstDigit) === zero && (isNegative || end - firstDigit > 1)
}

/**
 * Finds the end of a string, whose escapes are validated only when it is read.
 *
 * @returns the index after the closing quote; undefined if there is no string, or it has a control
 * character, such as a line feed, which JSON does not allow
 */
function findStringEnd(text: string, start: number | undefined): number | undefined {
  if (start === undefined || text.charCodeAt(start) !== quote) return undefined
  for (let index = start + 1; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code === quote) return index + 1
    if (code < space) return undefined
    if (code !== backslash) continue
    index += 1
    if (text.charCodeAt(index) < space) return undefined
  }
  return undefined
}

/** @returns undefined if the string has an invalid escape, or is no valid string of a plant */
function readString(text: string, start: number, end: number): string | undefined {
  const content = text.slice(start + 1, end - 1)
  if (!content.includes('\\')) return content
  try {
    const string: unknown = JSON.parse(text.slice(start, end))
    return isStorableString(string) ? string : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
