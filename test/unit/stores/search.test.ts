import { expect, test } from 'vitest'
import { contains, markRanges, soughtText } from '../../../src/stores/common/search.js'

test('characters match as in a regular expression with the flags iu, but for the marks of Latin letters', () => {
  const all = Array.from({ length: 0x11_0000 }, (_, code) => String.fromCodePoint(code)).join('')
  const cased = [...new Set(all.match(/\p{Changes_When_Casemapped}|\u0131/gu))].filter((each) => each.length === 1)
  const plain = cased.filter((each) => each.normalize('NFD') === each)
  const text = plain.join('')
  const wrong = plain.filter((character) => {
    const sought = soughtText(character)
    const expected = text.match(new RegExp(character, 'giu')) ?? []
    const others = text.replace(new RegExp(character, 'giu'), '')
    return contains(others, sought) || !expected.every((other) => contains(other, sought))
  })
  expect(wrong).toEqual([])
})

test('the ranges of marks have every character that a normalization reorders, and those that are not assigned', () => {
  const ranges = new RegExp(markRanges(), 'u')
  // U+0334 comes first in the order of marks, U+0345 last.
  const isReordered = (text: string) =>
    [`a\u0345${text}`, `a${text}\u0334`].some((each) => each.normalize('NFD') !== each)
  const wrong = Array.from({ length: 0x11_0000 }, (_, code) => code).filter((code) => {
    const text = String.fromCodePoint(code)
    const [first = ''] = text.normalize('NFD')
    const isMark = ranges.test(text)
    return isMark !== (code < 0x2_0000 && /[\p{M}\p{Cn}]/u.test(text)) || (isReordered(first) && !isMark)
  })
  expect(wrong).toEqual([])
})
