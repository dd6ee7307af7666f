import type { Io } from './io.js'

/** Puts `***` for every secret in a text, also where URLs, JSON or HTML have escaped it, or only its beginning is shown. */
export function redact(text: string, { secrets }: Pick<Io, 'secrets'>): string {
  const known = [...secrets].filter(isSecret)
  if (known.length === 0) return text
  const heads = RegExp(known.map((secret) => headOf(secret).map(anyFormOf).join('')).join('|'), 'gi')
  let shown = ''
  let end = 0
  for (let match = heads.exec(text); match !== null; match = heads.exec(text)) {
    shown += `${text.slice(end, match.index)}***`
    end = Math.max(...known.map((secret) => endOf(secret, text, match.index)))
    heads.lastIndex = end
  }
  return shown + text.slice(end)
}

/** A token of a letter or two hides nothing, and would make every text unreadable. */
function isSecret(text: string): boolean {
  return text.length > 3
}

/** What of a secret gives it away: a beginning of so many characters. */
function headOf(secret: string): string[] {
  return Array.from(secret).slice(0, 8)
}

/** Where a secret ends that begins here, with whatever is left of it in another form. */
function endOf(secret: string, text: string, start: number): number {
  let end = start
  for (const character of secret) {
    const length = matchAt(anyFormOf(character), text, end)
    if (length === 0) break
    end += length
  }
  return end + matchAt('[\\w.~+/%=;&#\\\\-]*', text, end)
}

function matchAt(pattern: string, text: string, at: number): number {
  const sticky = RegExp(pattern, 'iy')
  sticky.lastIndex = at
  return sticky.exec(text)?.[0].length ?? 0
}

/** A pattern for a character as it is, or as URLs, HTML, JSON and `visible` escape it, perhaps more than once. */
function anyFormOf(character: string): string {
  const code = character.codePointAt(0) ?? 0
  const hex = code.toString(16)
  const inUrl = encodeURIComponent(character).slice(1) || hex
  const percent = code < 128 ? `%(?:25)*${hex.padStart(2, '0')}` : `%(?:25)*${inUrl.replaceAll('%', '%(?:25)*')}`
  const inJson = literal(JSON.stringify(character).slice(1, -1).replace(/^\\/, ''))
  return `(?:${literal(character)}|${percent}|&#x0*${hex};|&#0*${code};|\\\\+u(?:0*${hex}|\\{0*${hex}\\})|\\\\+${inJson})`
}

function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}

/** Puts `***` for the secrets in every text of a value, also in the keys of its objects. */
export function withoutSecrets(value: unknown, io: Pick<Io, 'secrets'>): unknown {
  if (typeof value === 'string') return redact(value, io)
  if (Array.isArray(value)) return value.map((item) => withoutSecrets(item, io))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [redact(key, io), withoutSecrets(item, io)]))
}
