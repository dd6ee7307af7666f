import { DamageError } from './damage.js'

/**
 * Collects the text of a shared or an inline string (ECMA-376 part 1, 18.4.8). It is in one element
 * `t`, or, if its parts are formatted differently, in several elements `r` with a `t` each. An
 * element `rPh` has the pronunciation of Japanese, which is not a part of the text.
 */
export class TextCollector {
  text = ''
  #isCollecting = false
  #hasPlainText = false
  #runs = 0
  #readings = 0

  reset(): void {
    this.text = ''
    this.#isCollecting = false
    this.#hasPlainText = false
    this.#runs = 0
    this.#readings = 0
  }

  openElement(name: string): void {
    if (this.#isCollecting) throw new DamageError('a text has elements')
    if (name === 'rPh') this.#readings += 1
    else if (name === 'r') this.#runs += 1
    else if (name === 't' && this.#readings === 0) this.#startText()
  }

  #startText(): void {
    this.#isCollecting = true
    if (this.#runs > 0) return
    if (this.#hasPlainText) throw new DamageError('a string has two texts')
    this.#hasPlainText = true
  }

  addText(text: string): void {
    if (this.#isCollecting) this.text += text
  }

  closeElement(name: string): void {
    if (name === 't') this.#isCollecting = false
    else if (name === 'rPh') this.#readings -= 1
    else if (name === 'r') this.#runs -= 1
  }
}

/**
 * Decodes `_xHHHH_`, which stands for a UTF-16 unit that XML cannot contain: `_x0007_` is a bell
 * (ECMA-376 part 1, 22.4.2.4). With a capital X, spreadsheets take it for plain text.
 */
export function unescapeText(text: string): string {
  if (!text.includes('_x')) return text
  return text.replace(/_x([\da-fA-F]{4})_/g, (_, digits: string) =>
    String.fromCharCode(parseInt(digits, 16)),
  )
}

/**
 * Matches text that is the same in XML and outside of it. It excludes characters that XML cannot
 * contain, CR, which a parser would replace, and `&`, `<` and `>`, which may be markup.
 */
export const plainText = "[\\t\\n -%'-;=?-\\ufffd]*"
