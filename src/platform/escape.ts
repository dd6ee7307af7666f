import type { Io } from './io.js'

/**
 * Writes as `\u{…}` each character that would move, color or reorder the output of a terminal, or
 * that is invisible.
 */
export function escapeControlChars(text: string): string {
  return text.replace(unsafe, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`)
}

export function escapeControlCharsInLines(text: string): string {
  return text.replace(/[^\n\t]+/g, escapeControlChars)
}

/**
 * Matches Unicode's Cc, Zl, Zp and Bidi_Control, and invisible characters such as tags. The joiners
 * that some scripts need are not among them. The list is written out because V8 is slow to parse
 * `\p{…}`.
 */
const unsafe =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff9-\ufffb]|\u034f|\ud834[\udd73-\udd7a]|\udb40[\udc00-\uddef]/g

/** Cuts a long text to 40 characters. */
export function shorten(text: string): string {
  return truncate(text, 40)
}

/** Cuts a long text between two characters, so that half of a surrogate pair is never shown. */
export function truncate(text: string, maxCharacters: number): string {
  const isWhole = takeCharacters(text, maxCharacters).length === text.length
  return isWhole ? text : `${takeCharacters(text, maxCharacters - 1)}…`
}

/** Returns the first characters of a text, at most `count`. */
export function takeCharacters(text: string, count: number): string {
  // A character has at most two UTF-16 units.
  const characters = Array.from(text.slice(0, 2 * count))
  return characters.slice(0, count).join('')
}

export function toPrintable(text: string, io: Io): string {
  return escapeControlChars(redact(text, io))
}

/** Replaces the secrets that the program has read, also in JSON, percent-encoded, or cut short. */
export function redact(text: string, { secrets }: Pick<Io, 'secrets'>, forms = listForms): string {
  let redacted = text
  // The longest secret comes first, because another one may be its beginning.
  for (const secret of [...secrets].toSorted((a, b) => b.length - a.length)) {
    if (secret.length < minSecretLength) continue
    for (const form of forms(secret)) redacted = redacted.replaceAll(form, '***')
    const beginning = takeCharacters(secret, startLength)
    if (secret === beginning) continue
    for (const start of forms(beginning)) {
      // The characters that follow the beginning belong to the secret, too.
      const cutSecret = RegExp(`${escapeRegExp(start)}[\\w.~+/%=-]*`, 'g')
      redacted = redacted.replace(cutSecret, '***')
    }
  }
  return redacted
}

/**
 * Redacts lines of JSON so that they stay JSON: a secret that contains a quote would otherwise
 * match the syntax.
 */
export function redactJson(lines: string, io: Pick<Io, 'secrets'>): string {
  return redact(lines, io, (secret) => listForms(secret).map(escapeForJson))
}

/** A shorter secret would match parts of ordinary words. */
const minSecretLength = 4

/** Messages may cut a secret, so as many characters of its beginning are redacted, too. */
const startLength = 10

function listForms(secret: string): string[] {
  return [...new Set([secret, escapeForJson(secret), encodeURIComponent(secret.toWellFormed())])]
}

function escapeForJson(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

function escapeRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}

/**
 * Whether a text is a plain word, which an error may repeat. Anything else may be a secret that was
 * typed in the wrong place.
 */
export function isPlainWord(text: string): boolean {
  return /^[a-z-]{1,20}$/i.test(text)
}
