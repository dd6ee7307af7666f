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
