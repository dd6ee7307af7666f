import { expect, test } from 'vitest'
import {
  composedLatin,
  contains,
  foldText,
  plain,
  runs,
  soughtText,
} from '../../../src/stores/common/search.js'
import { rangesOf } from '../../../src/stores/postgres/folding.js'
import { check, fc } from '../../helpers/fast-check.js'

test('characters match as in a regular expression with the flags iu, but for the marks of Latin letters', () => {
  const all = Array.from({ length: 0x11_0000 }, (_, code) => String.fromCodePoint(code)).join('')
  const cased = [...new Set(all.match(/\p{Changes_When_Casemapped}|\u0131/gu))].filter(
    (each) => each.length === 1,
  )
  const plain = cased.filter((each) => each.normalize('NFD') === each && !/ß/iu.test(each))
  const text = plain.join('')
  const wrong = plain.filter((character) => {
    const sought = soughtText(character)
    const expected = text.match(new RegExp(character, 'giu')) ?? []
    const others = text.replace(new RegExp(character, 'giu'), '')
    return contains(others, sought) || !expected.every((other) => contains(other, sought))
  })
  expect(wrong).toEqual([])
})

test('plain characters fold as they do in a text that is normalized', () => {
  const isPlain = new RegExp(`[${plain}${composedLatin}\u{1f000}-\u{1f7ff}]`, 'u')
  const wrong = Array.from({ length: 0x11_0000 }, (_, code) => String.fromCodePoint(code)).filter(
    (character) => {
      if (!isPlain.test(character) || /\p{Cn}/u.test(character)) return false
      const isNormal = character.normalize('NFC') === character && !/\p{M}/u.test(character)
      return !isNormal || foldText(`${character}\u{20dd}`) !== `${foldText(character)}\u{20dd}`
    },
  )
  expect(wrong).toEqual([])
})

test('decomposed letters fold as they do in a text that is normalized', () => {
  const letters = 'aAsßÄøſyİий가蕨🌿. \u0301\u0308\u0316\u0345\u034f\u0306'
  return check(2000, [fc.string({ unit: fc.constantFrom(...letters), maxLength: 40 })], (text) => {
    expect({ text, folded: foldText(`${text}\u{20dd}`) }).toEqual({
      text,
      folded: `${foldText(text)}\u{20dd}`,
    })
  })
})

test('a text contains what is sought where its folded text does', () => {
  const letters = 'sSßẞſaÄäA\u0308\u0301\u0316\u0345øǿÅKiıİσςΣµΜйи\u0306ꭰᎠﬅﬆ가각\u11a8🌿蕨\uffff. '
  const texts = fc.string({ unit: fc.constantFrom(...letters), maxLength: 12 })
  return check(2000, [texts, texts], (text, search) => {
    const expected = foldText(text).includes(foldText(search))
    expect({ text, search, found: contains(text, soughtText(search)) }).toEqual({
      text,
      search,
      found: expected,
    })
  })
})

test('the ranges of marks have every character that a normalization reorders, and those that are not assigned', () => {
  const ranges = new RegExp(rangesOf(runs), 'u')
  // U+0334 comes first in the order of marks, U+0345 last.
  const isReordered = (text: string) =>
    [`a\u0345${text}`, `a${text}\u0334`].some((each) => each.normalize('NFD') !== each)
  const wrong = Array.from({ length: 0x11_0000 }, (_, code) => code).filter((code) => {
    const text = String.fromCodePoint(code)
    const [first = ''] = text.normalize('NFD')
    const isMark = ranges.test(text)
    return (
      isMark !== (code < 0x2_0000 && /[\p{M}\p{Cn}]/u.test(text)) || (isReordered(first) && !isMark)
    )
  })
  expect(wrong).toEqual([])
})
