/*
 * Says what is wrong in a text that is not JSON, and where.
 *
 * `JSON.parse` only says whether a text is JSON. Its messages differ between versions of V8, call
 * an extra comma an unexpected end, and quote a part of the text that may begin or end within a
 * word. So a text that it has rejected is read again here, token by token, up to the first error.
 * The values are not built, and arrays are not entered by recursion, so that a million `[` do no
 * harm.
 */
import { assertDefined } from '../errors.js'
import { shorten } from '../platform/escape.js'

/** What may come next in the text. */
type Expected = 'value' | 'valueOrEnd' | 'key' | 'keyOrEnd' | 'colon' | 'commaOrEnd'

/**
 * Describes the first error of a text: `there is an extra comma before "]" (column 22)`.
 *
 * @param options.isSequence whether several values may follow each other, as `jq` prints them
 */
export function describeSyntaxError(text: string, { isSequence = false } = {}): string {
  const problem = new JsonReader(text, isSequence).findProblem()
  if (!problem) return 'values are not separated'
  return `${problem.reason} (${describePosition(text, problem.at)})`
}

/** Counts characters as editors do, from 1 on. The line is left out if it is the first one. */
function describePosition(text: string, at: number): string {
  let line = 1
  let lineStart = 0
  for (let end = text.indexOf('\n'); end !== -1 && end < at; end = text.indexOf('\n', end + 1)) {
    line += 1
    lineStart = end + 1
  }
  // A line may have hundreds of megabytes, so no array of its characters is made.
  let column = 1
  for (let index = lineStart; index < at; column += 1)
    index += assertDefined(text.codePointAt(index)) > 0xffff ? 2 : 1
  return line === 1 ? `column ${column}` : `line ${line}, column ${column}`
}

interface Problem {
  /** The index in the text. */
  at: number
  reason: string
}

/** A string, a number or a word that JSON has. */
const scalar =
  /"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\u0000-\u001f]*)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.+-])|(?:true|false|null)(?![\w.+-])/y
const startOfString =
  /"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\u0000-\u001f]*)*/y
const blank = /[ \t\n\r]*/y
const word = /[\p{L}\p{N}_$.+-]+/uy

class JsonReader {
  readonly #text: string
  readonly #isSequence: boolean
  /** The brackets that are open. */
  readonly #open: string[] = []
  #expected: Expected = 'value'
  #at = 0
  /** The index of the last comma, if nothing but white space has followed it. */
  #comma: number | undefined

  constructor(text: string, isSequence: boolean) {
    this.#text = text
    this.#isSequence = isSequence
  }

  findProblem(): Problem | undefined {
    for (;;) {
      this.#at += this.#match(blank).length
      const isDone = this.#open.length === 0 && this.#expected === 'commaOrEnd'
      if (this.#at >= this.#text.length)
        return isDone ? undefined : this.#describe('the text ends too early')
      if (isDone && this.#isSequence) this.#expected = 'value'
      const problem = this.#readToken()
      if (problem) return problem
    }
  }

  #readToken(): Problem | undefined {
    switch (this.#expected) {
      case 'value':
      case 'valueOrEnd':
        return this.#readValue()
      case 'key':
      case 'keyOrEnd':
        return this.#readKey()
      case 'colon':
        if (this.#character !== ':') return this.#describe('there is no colon after a key')
        return this.#advance(1, 'value')
      case 'commaOrEnd':
        return this.#readCommaOrEnd()
    }
  }

  get #character(): string {
    return this.#text.charAt(this.#at)
  }

  #readValue(): Problem | undefined {
    const character = this.#character
    if (character === '[' || character === '{') {
      this.#open.push(character)
      return this.#advance(1, character === '[' ? 'valueOrEnd' : 'keyOrEnd')
    }
    if (character === ']' && this.#expected === 'valueOrEnd') return this.#close()
    const { length } = this.#match(scalar)
    if (length === 0) return this.#explain('value')
    return this.#advance(length, 'commaOrEnd')
  }

  #readKey(): Problem | undefined {
    if (this.#character === '}' && this.#expected === 'keyOrEnd') return this.#close()
    const { length } = this.#character === '"' ? this.#match(scalar) : ''
    if (length === 0) return this.#explain('key')
    return this.#advance(length, 'colon')
  }

  #readCommaOrEnd(): Problem | undefined {
    const bracket = this.#open.at(-1)
    if (bracket === undefined) return this.#describe('more text follows the value')
    const end = bracket === '[' ? ']' : '}'
    if (this.#character === end) return this.#close()
    if (this.#character !== ',')
      return this.#describe(`there is no comma or "${end}" after a value`)
    this.#advance(1, bracket === '[' ? 'value' : 'key')
    this.#comma = this.#at - 1
    return undefined
  }

  #close(): undefined {
    this.#open.pop()
    return this.#advance(1, 'commaOrEnd')
  }

  #advance(length: number, expected: Expected): undefined {
    this.#at += length
    this.#expected = expected
    this.#comma = undefined
  }

  /** Explains a character with which no value or key begins. */
  #explain(what: 'value' | 'key'): Problem {
    const character = String.fromCodePoint(assertDefined(this.#text.codePointAt(this.#at)))
    if (this.#comma !== undefined && (character === ']' || character === '}'))
      return { at: this.#comma, reason: `there is an extra comma before "${character}"` }
    if (character === ',') return this.#describe(`there is no ${what} before a comma`)
    if (character === '"') return this.#explainString()
    if (/['‘’‚“”„]/.test(character))
      return this.#describe(`a ${what} is in other quotes than straight double ones`)
    if (what === 'key') return this.#describe('a key is not in double quotes')
    const quotedText = JSON.stringify(shorten(this.#match(word) || character).toWellFormed())
    return this.#describe(`${quotedText} is not a value of JSON`)
  }

  #explainString(): Problem {
    const end = this.#at + this.#match(startOfString).length
    const character = this.#text.charAt(end)
    if (character === '') return this.#describe('a string is not closed')
    if (character === '\\') return { at: end, reason: 'a string has an invalid escape' }
    const isLineEnd = character === '\n' || character === '\r'
    const what = isLineEnd ? 'a line break' : 'a control character'
    return { at: end, reason: `a string has ${what} that is not escaped` }
  }

  #describe(reason: string): Problem {
    return { at: this.#at, reason }
  }

  /** Returns what a pattern matches where the reader is, or an empty text. */
  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    return pattern.exec(this.#text)?.[0] ?? ''
  }
}
