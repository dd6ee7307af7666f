import type { Io } from './io.js'

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
const unsafe =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/g

/** Joiners that are neither between letters, where some scripts need them, nor between emoji. */
function strayJoiners(): RegExp {
  const joined = '[\\p{L}\\p{M}\\p{Extended_Pictographic}\\p{Emoji_Modifier}\ufe0f]'
  return new RegExp(`(?<!${joined})[\\u200c\\u200d]|[\\u200c\\u200d](?!${joined})`, 'gu')
}

export function shorten(text: string): string {
  const characters = Array.from(text.slice(0, 82))
  return characters.length > 40 ? `${characters.slice(0, 39).join('')}…` : text
}

export function printable(text: string, io: Io): string {
  return escapeControlChars(redact(text, io))
}

/**
 * Replaces the secrets that the program has read, as they are, percent-encoded, or as JSON writes them.
 *
 * @param syntax that of the text, which is kept: in JSON, a secret is only as JSON writes it
 */
export function redact(
  text: string,
  { secrets }: Pick<Io, 'secrets'>,
  syntax: 'text' | 'json' = 'text',
): string {
  // Shorter ones would match in every text.
  const long = [...secrets]
    .filter(({ length }) => length > 3)
    .toSorted((a, b) => b.length - a.length)
  let redacted = text
  for (const form of long.flatMap((secret) => formsOf(secret, syntax)))
    redacted = redacted.replaceAll(form, '***')
  // A message may cut a secret after its first characters: those, and all token characters that follow.
  for (const secret of long) {
    const start = syntax === 'json' ? inJson(startOf(secret)) : startOf(secret)
    const rest = syntax === 'json' ? '[\\w.~+/%=-]*' : '[\\w.~+/%=\\\\-]*'
    redacted = redacted.replace(RegExp(escapeRegExp(start) + rest, 'g'), '***')
    redacted = redacted.replace(RegExp(`${anyStartOf(start)}(?=…|\\.\\.\\.)`, 'g'), '***')
  }
  return redacted
}

/** Matches at least 8 characters, which are a secret, and no word, where a message is cut after them. */
function anyStartOf(start: string): string {
  const others = Array.from(start.slice(8), escapeRegExp)
  return (
    escapeRegExp(start.slice(0, 8)) +
    others.map((each) => `(?:${each}`).join('') +
    ')?'.repeat(others.length)
  )
}

/** At least 8 characters: as many as no ordinary word begins with, such as `password1` and not `password`. */
function startOf(secret: string): string {
  const other = secret.search(/[^\p{L}_-]/u)
  return secret.slice(0, other === -1 ? 16 : Math.min(Math.max(other + 1, 8), 16))
}

function formsOf(secret: string, syntax: 'text' | 'json'): string[] {
  const json = inJson(secret)
  const percent = encodeURIComponent(secret.toWellFormed())
  const lowerPercent = percent.replace(/%../g, (code) => code.toLowerCase())
  const forms = [json, json.replaceAll('/', '\\/'), percent, lowerPercent]
  return syntax === 'json' ? forms : [secret, ...forms]
}

function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

function escapeRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}

/** All texts, and the keys of nested objects, which come from outside. */
export function redactFields<Fields extends object>(fields: Fields, io: Io): Fields {
  const redacted = (value: unknown): unknown => {
    if (typeof value === 'string') return redact(value, io)
    if (Array.isArray(value)) return value.map(redacted)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [redact(key, io), redacted(item)]),
    )
  }
  const entries = Object.entries(fields).map(([key, value]: [string, unknown]) => [
    key,
    redacted(value),
  ])
  return Object.fromEntries(entries) as Fields // each value keeps its type
}
