/** Makes every character visible that would move, colour or reorder what a terminal shows. */
export function escapeControlChars(text: string): string {
  return text.replace(unsafe, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
}

/** Does the same for a text of several lines, and of columns between tabs. */
export function escapeControlCharsInLines(text: string): string {
  return text.replace(/[^\n\t]+/g, (part) => escapeControlChars(part))
}

const unsafe = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

/** A text for a message: at most 40 characters of it. */
export function shorten(text: string): string {
  const characters = Array.from(text.slice(0, 82))
  return characters.length > 40 ? `${characters.slice(0, 39).join('')}…` : text
}
