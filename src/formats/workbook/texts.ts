import { DamageError } from './damage.js'

/**
 * Collects the characters of a shared string or an inline string (ECMA-376 part 1, 18.4.8). A plain
 * string has one element `t`. A string whose parts are formatted differently has several elements
 * `r` (runs) with a `t` each. An element `rPh` has the pronunciation of a Japanese word, which is
 * not a part of the string.
 */
export class StringCollector {
  content = ''
  #isCollecting = false
  #hasPlainString = false
  #runDepth = 0
  #pronunciationDepth = 0

  reset(): void {
    this.content = ''
    this.#isCollecting = false
    this.#hasPlainString = false
    this.#runDepth = 0
    this.#pronunciationDepth = 0
  }

  openElement(name: string): void {
    if (this.#isCollecting) throw new DamageError('a string contains elements')
    if (name === 'rPh') this.#pronunciationDepth += 1
    else if (name === 'r') this.#runDepth += 1
    else if (name === 't' && this.#pronunciationDepth === 0) this.#startCollecting()
  }

  #startCollecting(): void {
    this.#isCollecting = true
    if (this.#runDepth > 0) return
    if (this.#hasPlainString) throw new DamageError('a string has two values')
    this.#hasPlainString = true
  }

  addText(text: string): void {
    if (this.#isCollecting) this.content += text
  }

  closeElement(name: string): void {
    if (name === 't') this.#isCollecting = false
    else if (name === 'rPh') this.#pronunciationDepth -= 1
    else if (name === 'r') this.#runDepth -= 1
  }
}

/**
 * Decodes `_xHHHH_`, the escape of a UTF-16 unit that XML cannot contain (ECMA-376 part 1,
 * 22.4.2.4): `_x0007_` is a bell. With a capital X, spreadsheets do not take it for an escape.
 */
export function unescapeString(text: string): string {
  if (!text.includes('_x')) return text
  return text.replace(/_x([\da-fA-F]{4})_/g, (_, digits: string) =>
    String.fromCharCode(parseInt(digits, 16)),
  )
}
