import { expect, test } from 'vitest'
import { escapeControlChars, escapeControlCharsInLines } from '../../../src/platform/escape.js'

test('every character that moves, colours or reorders a terminal is escaped, and no other', () => {
  const points = Array.from({ length: 0x110000 }, (_, point) => point)
  const wrong = points.filter((point) => {
    const text = String.fromCodePoint(point)
    const escaped = `\\u{${point.toString(16)}}`
    return escapeControlChars(text) !== (/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u.test(text) ? escaped : text)
  })
  expect(wrong).toEqual([])
})

test('a text of several lines keeps its line breaks and tabs', () => {
  expect(escapeControlCharsInLines('a\u001b\n\tb\r\u2028')).toBe('a\\u{1b}\n\tb\\u{d}\\u{2028}')
})
