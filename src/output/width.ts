import stringWidth from 'string-width'

/** The columns of a text on a terminal. Measures slices, because the time of `stringWidth` grows with the square of the length. */
export function widthOf(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length
  let width = 0
  for (let at = 0; at < text.length; at += 1000) width += stringWidth(text.slice(at, at + 1000))
  return width
}

/** Wraps a text into lines of at most `width` columns. With a width below 20, it stays one line, which the terminal wraps. */
export function wrap(text: string, width: number): string[] {
  if (width < 20) return [text]
  const lines: string[] = []
  let line: string | undefined
  for (const word of text.split(' ')) {
    if (line !== undefined && widthOf(`${line} ${word}`) > width) {
      lines.push(line)
      line = word
    } else line = line === undefined ? word : `${line} ${word}`
  }
  return [...lines, line ?? '']
}
