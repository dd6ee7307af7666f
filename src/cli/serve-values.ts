/*
 * Parsers of the values that only options of `plants serve` have.
 */
import {
  createDurationParser,
  createNumberParser,
  createValueError,
} from '../config/option-values.js'
import { parseUrl } from '../platform/urls.js'

export const parsePort = createNumberParser('a port', 0, 65_535, '4010')
export const parseLimit = createNumberParser('a whole number', 1, Number.MAX_SAFE_INTEGER, '2000')
export const parseTimer = createDurationParser(
  'a duration from 1ms to 24d',
  1,
  24 * 86_400_000,
  '30s',
)

/**
 * Parses one more value of --cors. An origin must be written as `new URL(…).origin` writes it,
 * because it is compared with the string that browsers send:
 * https://developer.mozilla.org/en-US/docs/Web/HTTP/Headers/Origin.
 */
export function parseOrigin(text: string, previousOrigins: string[] = []): string[] {
  if (text === '*' || parseUrl(text)?.origin === text) return [...previousOrigins, text]
  throw createValueError(
    '--cors',
    'an origin without a path, or *',
    text,
    'https://garden.example.com',
  )
}

const bytesPerUnit: Record<string, number> = { b: 1, kib: 1024, mib: 1_048_576 }
const maxBodyLimitBytes = 4_194_304

export function parseBodyLimit(flag: string, text: string): number {
  const { amount = '', unit = 'b' } =
    /^(?<amount>[1-9]\d{0,11})(?<unit>B|KiB|MiB)?$/i.exec(text)?.groups ?? {}
  const bytes = parseInt(amount, 10) * (bytesPerUnit[unit.toLowerCase()] ?? Number.NaN)
  if (bytes <= maxBodyLimitBytes) return bytes
  throw createValueError(flag, 'a size up to 4MiB, such as 1MiB, 16KiB or 65536', text, '1MiB')
}

/** Returns a path such as `/v1` without a slash at its end; of `/`, nothing remains. */
export function parseBasePath(flag: string, text = ''): string {
  const path = text.replace(/\/+$/, '')
  // Clients resolve `.` and `..` before they send a path, so no request would have this path.
  const hasDotSegment = /\/\.{1,2}(?:\/|$)/.test(path)
  if (/^(?:\/[\w.~-]+)*$/.test(path) && !hasDotSegment) return path
  const rule = 'a path that begins with "/", of letters, digits, ".", "_", "~" and "-"'
  throw createValueError(flag, rule, text, '/v1')
}
