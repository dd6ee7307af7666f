import { expect, test } from 'vitest'
import { contains, soughtText } from '../../../src/stores/common/search.js'

test('characters match as in a regular expression with the flags iu, but for the marks of Latin letters', () => {
  const all = Array.from({ length: 0x11_0000 }, (_, code) => String.fromCodePoint(code)).join('')
  const cased = [...new Set(all.match(/\p{Changes_When_Casemapped}|\u0131/gu))].filter((each) => each.length === 1)
  const plain = cased.filter((each) => each.normalize('NFD') === each)
  const text = plain.join('')
  const wrong = plain.filter((character) => {
    const sought = soughtText(character)
    const expected = new Set(text.match(new RegExp(character, 'giu')))
    return plain.some((other) => contains(other, sought) !== expected.has(other))
  })
  expect(wrong).toEqual([])
})
