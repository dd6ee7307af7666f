import type { Io } from './io.js'
import { visible } from './visible.js'

/** Puts `***` for every secret in a text, also where JSON or a URL has escaped it, or only its beginning is shown. */
export function redact(text: string, { secrets }: Pick<Io, 'secrets'>): string {
  const forms = [...secrets].filter(isSecret).flatMap(formsOf)
  if (forms.length === 0) return text
  const heads = RegExp(forms.map((form) => literal(headOf(form))).join('|'), 'g')
  let shown = ''
  let end = 0
  for (let match = heads.exec(text); match !== null; match = heads.exec(text)) {
    const at = match.index
    shown += `${text.slice(end, at)}***`
    end = at + Math.max(...forms.map((form) => commonLength(text, at, form)))
    end += /^[\w.~+/%=;&#-]*/.exec(text.slice(end))?.[0].length ?? 0 // its rest, in whatever way it was escaped
    heads.lastIndex = end
  }
  return shown + text.slice(end)
}

/** A token of a letter or two hides nothing, and would make every text unreadable. */
function isSecret(text: string): boolean {
  return text.length > 3
}

/** The ways in which a text may be shown. */
function formsOf(secret: string): string[] {
  const escaped = (text: string) => JSON.stringify(text).slice(1, -1)
  const inUrl = encodeURIComponent(secret)
  const inLowerCase = inUrl.replace(/%../g, (code) => code.toLowerCase())
  return [...new Set([secret, visible(secret), escaped(secret), escaped(escaped(secret)), inUrl, inLowerCase, encodeURIComponent(inUrl)])]
}

/** What of a secret gives it away. */
function headOf(form: string): string {
  return form.slice(0, 8)
}

function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}

/** How many characters of a text, from a place on, are those that a secret begins with. */
function commonLength(text: string, from: number, secret: string): number {
  let length = 0
  while (length < secret.length && text[from + length] === secret[length]) length += 1
  return length
}

/** Puts `***` for the secrets in every text of a value, also in the keys of its objects. */
export function withoutSecrets(value: unknown, io: Pick<Io, 'secrets'>): unknown {
  if (typeof value === 'string') return redact(value, io)
  if (Array.isArray(value)) return value.map((item) => withoutSecrets(item, io))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [redact(key, io), withoutSecrets(item, io)]))
}
