/*
 * Says where a string is not JSON, and why.
 *
 * `JSON.parse` only says whether a string is JSON. Its messages differ between versions of V8, call
 * an extra comma an unexpected end, and quote a part of the string that may begin or end within a
 * word. So this module reads a rejected string again, token by token, up to the first error. The
 * values are not built, and arrays are not entered by recursion, so that a million `[` do no harm.
 */
import { assertDefined } from '../errors.js'
import { shorten } from '../platform/escape.js'

/** The tokens that JSON allows at the current offset. */
type ExpectedToken = 'value' | 'valueOrEnd' | 'key' | 'keyOrEnd' | 'colon' | 'commaOrEnd'

/**
 * Causes that often affect all records of an input, so that a hint says how to remove them:
 *
 * - `otherQuotes`: a key or a string is not in straight double quotes.
 * - `valueComma`: a comma follows a value that is not in a list.
 */
export type SyntaxCause = 'otherQuotes' | 'valueComma'

export const syntaxHints: Readonly<Record<SyntaxCause, string>> = {
  otherQuotes: 'Write keys and strings in straight double quotes',
  valueComma: 'Delete the comma after each object',
}

/**
 * Describes the first error of a source, such as `there is an extra comma before "]" (column 22)`,
 * and finds its cause.
 *
 * @param options.isSequence whether several values may follow each other, as `jq` prints them
 */
export function explainSyntaxError(
  source: string,
  { isSequence = false } = {},
): { description: string; cause: SyntaxCause | undefined } {
  const problem = new JsonReader(source, isSequence).findProblem()
  if (!problem) return { description: 'values are not separated', cause: undefined }
  const { reason, offset, cause } = problem
  return { description: `${reason} (${describePosition(source, offset)})`, cause }
}

/** Says where the first error of a source is, without a word of the source. */
export function locateSyntaxError(source: string): string {
  const problem = new JsonReader(source, false).findProblem()
  return describePosition(source, problem?.offset ?? source.length)
}

/** Counts characters as editors do, from 1 on. The line is left out if it is the first one. */
function describePosition(source: string, offset: number): string {
  let line = 1
  let lineStart = 0
  for (const { index } of source.slice(0, offset).matchAll(/\n/g)) {
    line += 1
    lineStart = index + 1
  }
  // A line may have hundreds of megabytes, so no array of its characters is made.
  let column = 1
  for (let index = lineStart; index < offset; column += 1)
    index += assertDefined(source.codePointAt(index)) > 0xffff ? 2 : 1
  return line === 1 ? `column ${column}` : `line ${line}, column ${column}`
}

interface Problem {
  /** The index in the source, in UTF-16 code units. */
  offset: number
  reason: string
  cause?: SyntaxCause | undefined
}

/** A string, a number or a word that JSON has. */
const scalar =
  /"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\u0000-\u001f]*)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.+-])|(?:true|false|null)(?![\w.+-])/y
const whiteSpace = /[ \t\n\r]*/y
const word = /[\p{L}\p{N}_$.+-]+/uy

class JsonReader {
  /** The brackets without their closing brackets, from the outermost to the innermost one. */
  readonly #openBrackets: string[] = []
  #expectedToken: ExpectedToken = 'value'
  #offset = 0

  constructor(
    private readonly source: string,
    private readonly isSequence: boolean,
  ) {}

  findProblem(): Problem | undefined {
    for (;;) {
      this.#offset += this.#matchHere(whiteSpace).length
      const isValueComplete =
        this.#openBrackets.length === 0 && this.#expectedToken === 'commaOrEnd'
      if (this.#offset >= this.source.length)
        return isValueComplete ? undefined : this.#createProblem('the text ends too early')
      if (isValueComplete && this.#character === ',')
        return this.#createProblem('a comma follows the value', 'valueComma')
      if (isValueComplete && this.isSequence) this.#expectedToken = 'value'
      const problem = this.#readToken()
      if (problem) return problem
    }
  }

  #readToken(): Problem | undefined {
    switch (this.#expectedToken) {
      case 'value':
      case 'valueOrEnd':
        return this.#readValue()
      case 'key':
      case 'keyOrEnd':
        return this.#readKey()
      case 'colon':
        if (this.#character !== ':') return this.#createProblem('there is no colon after a key')
        return this.#advance(1, 'value')
      case 'commaOrEnd':
        return this.#readCommaOrEnd()
    }
  }

  get #character(): string {
    return this.source.charAt(this.#offset)
  }

  #readValue(): Problem | undefined {
    const character = this.#character
    if (character === '[' || character === '{') {
      this.#openBrackets.push(character)
      return this.#advance(1, character === '[' ? 'valueOrEnd' : 'keyOrEnd')
    }
    if (character === ']' && this.#expectedToken === 'valueOrEnd') return this.#closeBracket()
    const { length } = this.#matchHere(scalar)
    if (length === 0) return this.#explainInvalidToken('value')
    return this.#advance(length, 'commaOrEnd')
  }

  #readKey(): Problem | undefined {
    if (this.#character === '}' && this.#expectedToken === 'keyOrEnd') return this.#closeBracket()
    const { length } = this.#character === '"' ? this.#matchHere(scalar) : ''
    if (length === 0) return this.#explainInvalidToken('key')
    return this.#advance(length, 'colon')
  }

  #readCommaOrEnd(): Problem | undefined {
    const bracket = this.#openBrackets.at(-1)
    if (bracket === undefined) return this.#createProblem('more text follows the value')
    const end = bracket === '[' ? ']' : '}'
    if (this.#character === end) return this.#closeBracket()
    if (this.#character !== ',')
      return this.#createProblem(`there is no comma or "${end}" after a value`)
    return this.#advance(1, bracket === '[' ? 'value' : 'key')
  }

  #closeBracket(): undefined {
    this.#openBrackets.pop()
    return this.#advance(1, 'commaOrEnd')
  }

  #advance(length: number, expected: ExpectedToken): undefined {
    this.#offset += length
    this.#expectedToken = expected
  }

  /**
   * Describes the character at the current offset, with which neither a value nor a key can begin.
   */
  #explainInvalidToken(expectedNoun: 'value' | 'key'): Problem {
    const character = String.fromCodePoint(assertDefined(this.source.codePointAt(this.#offset)))
    const before = this.source.slice(0, this.#offset).trimEnd()
    if (before.endsWith(',') && (character === ']' || character === '}'))
      return {
        offset: before.length - 1,
        reason: `there is an extra comma before "${character}"`,
      }
    if (character === '"')
      return this.#createProblem('a string is not closed, or has a character that must be escaped')
    if (expectedNoun === 'key' || /['‘’‚“”„]/.test(character))
      return this.#createProblem(
        `a ${expectedNoun} is not in straight double quotes`,
        'otherQuotes',
      )
    const quotedText = JSON.stringify(shorten(this.#matchHere(word) || character).toWellFormed())
    return this.#createProblem(`${quotedText} is not a value of JSON`)
  }

  #createProblem(reason: string, cause?: SyntaxCause): Problem {
    return { offset: this.#offset, reason, cause }
  }

  /** Returns what a pattern matches at the current offset, or an empty string. */
  #matchHere(pattern: RegExp): string {
    pattern.lastIndex = this.#offset
    return pattern.exec(this.source)?.[0] ?? ''
  }
}
