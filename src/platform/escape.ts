/** Escapes, as `\u{…}`, every character that would move, colour or reorder the output of a terminal. */
export function escapeControlChars(text: string): string {
  return text.replace(unsafe, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
}

/** The same, but keeps line breaks and tabs. */
export function escapeControlCharsInLines(text: string): string {
  return text.replace(/[^\n\t]+/g, (part) => escapeControlChars(part))
}

const unsafe = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

/** Truncates a text for a message, to 40 characters. */
export function shorten(text: string): string {
  const characters = Array.from(text.slice(0, 82))
  return characters.length > 40 ? `${characters.slice(0, 39).join('')}…` : text
}
