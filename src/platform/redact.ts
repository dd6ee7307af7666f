import { escapeControlChars } from './escape.js'
import type { Io } from './io.js'

export function printable(text: string, io: Io): string {
  return escapeControlChars(redact(text, io))
}

function redact(text: string, { secrets }: Io): string {
  // shorter ones would match in every text
  const forms = [...secrets].filter(({ length }) => length > 3).flatMap(formsOf)
  if (forms.length === 0) return text
  const longestFirst = forms.toSorted((a, b) => b.length - a.length)
  // A message may truncate a secret: match its first characters, and all token characters that follow.
  const patterns = [...longestFirst, ...forms.map((form) => form.slice(0, headLength))].map((form) =>
    form.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'),
  )
  return text.replace(RegExp(`(?:${patterns.join('|')})[\\w.~+/%=\\\\-]*`, 'gi'), (found) =>
    isVariable.test(found) && !forms.some((form) => form.startsWith(found.slice(0, headLength))) ? found : '***',
  )
}

/** PLANTS_TOKEN begins like the token `plants_T…`, but for the case of its letters. */
const isVariable = /^PLANTS_[A-Z_]{1,11}\.?$/

/** the length of the shortest prefix of a secret that is redacted */
const headLength = 8

/** Of a long one its beginning, which a pattern can have; the characters of a token after it are redacted, too. */
function formsOf(whole: string): string[] {
  const secret = whole.slice(0, 4096)
  const wellFormed = secret.toWellFormed()
  const json = JSON.stringify(secret).slice(1, -1)
  return [secret, json, json.replaceAll('/', '\\/'), encodeURI(wellFormed), encodeURIComponent(wellFormed)]
}

/** All texts, and the keys of nested objects, which come from outside. */
export function redactFields<Fields extends object>(fields: Fields, io: Io): Fields {
  const redacted = (value: unknown): unknown => {
    if (typeof value === 'string') return redact(value, io)
    if (Array.isArray(value)) return value.map(redacted)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [redact(key, io), redacted(item)]))
  }
  const entries = Object.entries(fields).map(([key, value]: [string, unknown]) => [key, redacted(value)])
  return Object.fromEntries(entries) as Fields // each value keeps its type
}
