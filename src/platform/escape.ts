/** Escapes, as `\u{…}`, every character that would move, colour or reorder the output of a terminal, or is not seen. */
export function escapeControlChars(text: string): string {
  const escaped = text.replace(unsafe, escapeOf)
  return /[\u200c\u200d]/.test(escaped) ? escaped.replace(strayJoiners(), escapeOf) : escaped
}

function escapeOf(character: string): string {
  return `\\u{${character.charCodeAt(0).toString(16)}}`
}

export function escapeControlCharsInLines(text: string): string {
  return text.replace(/[^\n\t]+/g, escapeControlChars)
}

/** The properties Cc, Zl, Zp and Bidi_Control of Unicode, and what has no width. V8 is slow to parse `\p{…}`. */
const unsafe = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/g

/** Those that are not between letters, which some scripts need, or emoji. */
function strayJoiners(): RegExp {
  const joined = '[\\p{L}\\p{M}\\p{Extended_Pictographic}\\p{Emoji_Modifier}\ufe0f]'
  return new RegExp(`(?<!${joined})[\\u200c\\u200d]|[\\u200c\\u200d](?!${joined})`, 'gu')
}

export function shorten(text: string): string {
  const characters = Array.from(text.slice(0, 82))
  return characters.length > 40 ? `${characters.slice(0, 39).join('')}…` : text
}
