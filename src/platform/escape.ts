import type { Io } from './io.js'

/**
 * Replaces each invisible character by its escape, such as `\u{7}`, and also each character with
 * which a text could move, color or reorder the output of a terminal.
 */
export function escapeControlChars(text: string): string {
  return text.replace(
    unsafeCharacters,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  )
}

export function escapeControlCharsInLines(text: string): string {
  return text.replace(/[^\n\t]+/g, escapeControlChars)
}

/**
 * Matches the characters of the Unicode classes Cc, Zl, Zp and Bidi_Control, and invisible ones,
 * such as tags. It does not match the joiners that some scripts need. The characters are listed
 * one by one, because V8 takes long to parse `\p{…}`.
 */
const unsafeCharacters =
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

/**
 * Replaces the secrets that the program has read by `***`. It also finds a secret that is escaped
 * for JSON, percent-encoded, or cut after its first ten characters. A short secret of letters is
 * not replaced within a longer word: the password `pass` would be revealed by `the ***word`.
 */
export function redact(text: string, { secrets }: Pick<Io, 'secrets'>, forms = listForms): string {
  let redactedText = text
  // The longest secret is replaced first, because a shorter secret may be the beginning of it.
  for (const secret of [...secrets].toSorted((a, b) => b.length - a.length)) {
    if (secret.length < minSecretLength) continue
    for (const form of forms(secret)) redactedText = replaceSecret(redactedText, form)
    const secretStart = takeCharacters(secret, startLength)
    if (secret === secretStart) continue
    for (const start of forms(secretStart)) {
      // The characters after the beginning belong to the secret, too.
      const cutSecret = RegExp(`${escapeRegExp(start)}(?:[\\w.~+/%=-]|\\\\+/)*`, 'g')
      redactedText = redactedText.replace(cutSecret, '***')
    }
  }
  return redactedText
}

function replaceSecret(text: string, form: string): string {
  if (!/^[a-z]{1,15}$/i.test(form)) return text.replaceAll(form, '***')
  const wholeWord = RegExp(`(?:(?<![a-zA-Z])|(?<=${escapeSequence}))${form}(?![a-zA-Z])`, 'g')
  return text.replace(wholeWord, '***')
}

/** Matches an escape sequence of JSON or of a URL. Its last letter begins no word: `%3Dgarden`. */
const escapeSequence = String.raw`\\[bfnrt]|\\u[\da-fA-F]{4}|%[\da-fA-F]{2}`

/**
 * Redacts lines of JSON so that they stay JSON: a secret that contains a quote would otherwise
 * match the syntax.
 */
export function redactJson(lines: string, io: Pick<Io, 'secrets'>): string {
  return redact(lines, io, (secret) => listForms(secret).map(escapeForJson))
}

/** A shorter secret would match parts of ordinary words. */
const minSecretLength = 4

/** A message may cut a secret, so the first ten characters of a secret are redacted, too. */
const startLength = 10

/** Lists how programs write a secret. Some escape `/` in JSON, or encode in lower case. */
function listForms(secret: string): string[] {
  const json = escapeForJson(secret)
  const percentEncoded = encodeURIComponent(secret.toWellFormed())
  const lowerCase = percentEncoded.replace(/%../g, (encodedByte) => encodedByte.toLowerCase())
  return [...new Set([secret, json, json.replaceAll('/', '\\/'), percentEncoded, lowerCase])]
}

function escapeForJson(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

function escapeRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}

/**
 * Whether a text is a plain word, which an error may repeat. Any other text may be a secret that
 * somebody has typed in the wrong place.
 */
export function isPlainWord(text: string): boolean {
  return /^[a-z-]{1,20}$/i.test(text)
}
