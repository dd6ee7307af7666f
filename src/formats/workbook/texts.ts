/**
 * Collects the characters of a shared string or an inline string (ECMA-376 part 1, 18.4.8). A plain
 * string has one element `t`. A string whose parts are formatted differently has several elements
 * `r` (runs) with a `t` each. An element `rPh` has the pronunciation of a Japanese word, which is
 * not a part of the string.
 */
export class StringCollector {
  content = ''
  #isCollecting = false
  #isInPronunciation = false

  reset(): void {
    this.content = ''
  }

  openElement(name: string): void {
    if (name === 'rPh') this.#isInPronunciation = true
    else if (name === 't') this.#isCollecting = !this.#isInPronunciation
  }

  addText(text: string): void {
    if (this.#isCollecting) this.content += text
  }

  closeElement(name: string): void {
    if (name === 't') this.#isCollecting = false
    else if (name === 'rPh') this.#isInPronunciation = false
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
