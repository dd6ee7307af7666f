import stringWidth from 'string-width'

/** In columns of a terminal. Measures slices, because the time of `stringWidth` grows with the square of the length. */
export function widthOf(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length
  let width = 0
  for (let at = 0; at < text.length; at += 1000) width += stringWidth(text.slice(at, at + 1000))
  return width
}
