import { indentAt, isIndent } from './json-scan.js'

/** What it takes to go on with a recovery. */
export interface RecoveryState {
  depth: number
  isInString: boolean
  isEscaped: boolean
  indent: number
}

/**
 * Finds where a broken JSON value most plausibly ends: where its brackets close; before a line that looks like the next record;
 * or before a `{` behind `},` that stands between quotes, as everything does behind a quote that is missing.
 */
export class JsonRecovery {
  /** how many bytes it has looked at */
  length: number
  readonly #column: number
  readonly #isInArray: boolean
  #depth: number
  #isFound = false
  #isInString = false
  #isEscaped = false
  /** how many bytes stand in the line so far, when they are white space and a comma; else -1 */
  #indent = -1

  /**
   * @param length how many bytes of the value stand before the break
   * @param depth how many of its brackets are open there
   * @param column how many bytes stand in the value's line before it
   */
  constructor(length: number, depth: number, column: number, isInArray: boolean) {
    this.length = length
    this.#depth = depth
    this.#column = column
    this.#isInArray = isInArray
  }

  /** Goes on, in a value that begins at `start`, behind what it has looked at; true when it has found the end. */
  scan(bytes: Buffer, start: number, end: number): boolean {
    if (this.#isFound) return true
    let at = start + this.length
    if (this.#indent === -1) this.#indent = indentAt(bytes, at, start, this.#column)
    for (; at < end; at += 1) {
      const step = this.#step(bytes, at, start)
      if (step === undefined) continue
      this.length = step - start
      this.#isFound = true
      return true
    }
    this.length = end - start
    return false
  }

  /** Goes on with what comes behind what it has looked at, which is gone: the next `start` is there. */
  forget(): void {
    this.length = 0
  }

  save(): RecoveryState {
    return { depth: this.#depth, isInString: this.#isInString, isEscaped: this.#isEscaped, indent: this.#indent }
  }

  restore({ depth, isInString, isEscaped, indent }: RecoveryState): void {
    this.#depth = depth
    this.#isInString = isInString
    this.#isEscaped = isEscaped
    this.#indent = indent
  }

  /** Takes the byte at a place; gives where the value ends, once that is known. */
  #step(bytes: Buffer, at: number, start: number): number | undefined {
    const character = String.fromCharCode(bytes[at] ?? 0)
    if (character === '\n') {
      this.#isInString = false
      this.#isEscaped = false
      this.#indent = 0
      return undefined
    }
    const end = this.#isInString ? this.#inString(character, bytes, at, start) : this.#outside(character, at)
    this.#indent = this.#indent >= 0 && isIndent(bytes[at]) ? this.#indent + 1 : -1
    return end
  }

  #inString(character: string, bytes: Buffer, at: number, start: number): number | undefined {
    const isEscaped = this.#isEscaped
    this.#isEscaped = character === '\\' && !isEscaped
    if (character !== '"' || isEscaped) return undefined
    this.#isInString = false
    return braceBehindBrace(bytes, at, start)
  }

  #outside(character: string, at: number): number | undefined {
    const isFirst = this.#depth === 0 || (this.#indent >= 0 && this.#indent <= this.#column)
    if (isFirst && (character === '{' || (character === ']' && this.#isInArray))) return at
    if (this.#depth === 0 && character === ',' && this.#isInArray) return at
    if (character === '"') this.#isInString = true
    if (character === '{' || character === '[') this.#depth += 1
    return character === '}' || character === ']' ? this.#close(at) : undefined
  }

  #close(at: number): number | undefined {
    if (this.#depth === 0) return undefined
    this.#depth -= 1
    return this.#depth === 0 ? at + 1 : undefined
  }
}

/** The place of the `{` before a quote, if before it stands a `}`, with or without a comma. */
function braceBehindBrace(bytes: Buffer, quote: number, start: number): number | undefined {
  const brace = backOverSpace(bytes, quote, start)
  if (bytes[brace] !== 0x7b) return undefined
  const comma = backOverSpace(bytes, brace, start)
  const closing = bytes[comma] === 0x2c ? backOverSpace(bytes, comma, start) : comma
  return closing > start && bytes[closing] === 0x7d ? brace : undefined
}

/** The place before another, past white space. */
function backOverSpace(bytes: Buffer, from: number, start: number): number {
  let at = from - 1
  while (at >= start && (bytes[at] === 0x20 || bytes[at] === 0x09 || bytes[at] === 0x0d)) at -= 1
  return at
}
