/** Escapes, as `\u{…}`, every character that would move, colour or reorder the output of a terminal. */
export function escapeControlChars(text: string): string {
  return text.replace(unsafe, (character) => `\\u{${character.charCodeAt(0).toString(16)}}`)
}

export function escapeControlCharsInLines(text: string): string {
  return text.replace(/[^\n\t]+/g, escapeControlChars)
}

/** The properties Cc, Zl, Zp and Bidi_Control of Unicode. V8 is slow to parse `\p{…}`. */
const unsafe = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

export function shorten(text: string): string {
  const characters = Array.from(text.slice(0, 82))
  return characters.length > 40 ? `${characters.slice(0, 39).join('')}…` : text
}
