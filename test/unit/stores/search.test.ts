import { expect, test } from 'vitest'
import { soughtTexts } from '../../../src/stores/common/search.js'

test('characters match as in a regular expression with the flags iu', () => {
  const all = Array.from({ length: 0x11_0000 }, (_, code) => String.fromCodePoint(code)).join('')
  const cased = [...new Set(all.match(/\p{Changes_When_Casemapped}|\u0131/gu))].join('')
  const [sought] = soughtTexts(cased)
  const wrong = Array.from(cased).filter((character, index) => {
    const expected = [...new Set(cased.match(new RegExp(character, 'giu')))].toSorted()
    return expected.join() !== sought?.variants[index]?.toSorted().join()
  })
  expect(wrong).toEqual([])
  expect(sought?.folded).toHaveLength(cased.length)
})

test('characters that match have one case that stands for all, of A to Z the lower one', () => {
  expect(soughtTexts('ſKςẞİI.$')).toMatchObject([{ folded: soughtTexts('SKΣßİi.$')[0]?.folded }, {}])
  expect(soughtTexts('AZſK')[0]?.folded).toBe('azsk')
})
