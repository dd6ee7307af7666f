import { expect, test } from 'vitest'
import { foldString, latinMarksPattern, toSortKey } from '../../../src/plant/folding.js'
import { check, fc } from '../../helpers/expect/arbitraries.js'

test('folding a string gives the same result as normalizing it first', () => {
  const marks = RegExp(latinMarksPattern, 'g')
  const normalized = (text: string) =>
    text
      .toUpperCase()
      .toLowerCase()
      .replaceAll('ß', 'ss')
      .replaceAll('ς', 'σ')
      .normalize('NFD')
      .replace(marks, '')
      .normalize('NFC')
  const characters = Array.from({ length: 0x11000 }, (_, code) => String.fromCodePoint(code))
  const texts = characters.map((one) => `aΣ${one}Σ가`)
  expect(texts.filter((text) => foldString(text) !== normalized(text))).toEqual([])
  const scripts = [
    ...['aßÄøǿİıẚµª', 'ΣςάΐΪ', 'Йжи', '각가\u1100\u11a8', 'がハ\u3099', '蕨豈', 'آي\u0653'],
    ...['🌿🏽\ufe0f\ud83c\udc00', '\u0301\u0316\u0308', '–“ Ａ'],
  ]
  const letters = Array.from(scripts.join(''))
  return check(2000, [fc.string({ unit: fc.constantFrom(...letters), maxLength: 8 })], (text) =>
    expect(foldString(text)).toBe(normalized(text)),
  )
})

test('the sort keys of strings have the order of their code points', () => {
  const letters = [
    '',
    'a',
    'é',
    '\ud7ff',
    '\ue000',
    '蕨',
    '\uffff',
    '\u{10000}',
    '🌿',
    '\u{10ffff}',
  ]
  const text = fc.string({ unit: fc.constantFrom(...letters), maxLength: 4 })
  return check(2000, [text, text], (one, other) => {
    const [key, otherKey] = [toSortKey(one), toSortKey(other)]
    const order = Number(key > otherKey) - Number(key < otherKey)
    expect(order).toBe(Buffer.compare(Buffer.from(one), Buffer.from(other)))
  })
})

test.each(['\u0301\u0316', '\u05b9\u05b0\u05bc', '\u0344', '\u{1d16d}\u{1d165}'])(
  'folding does not normalize a run of more than 30 marks: %j',
  (marks) => {
    const run = Array.from(marks.repeat(31)).slice(0, 31).join('')
    const text = `Ж${run}`
    expect(foldString(text)).toBe(`ж${run}`)
    const shorter = `Ж${Array.from(run).slice(0, 30).join('')}`
    expect(foldString(shorter)).toBe(shorter.toLowerCase().normalize('NFD').normalize('NFC'))
  },
)
