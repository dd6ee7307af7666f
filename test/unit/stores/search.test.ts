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

test('characters that match have one case that stands for all, of A to Z the lower one', () => {
  expect(soughtText('ſKςẞİI.$').folded).toBe(soughtText('SKΣßiI.$').folded)
  expect(soughtText('AZſK').folded).toBe('azsk')
})

test('letters of each language that is written in Latin letters match without their marks', () => {
  const pangrams = {
    'Zażółć gęślą jaźń': 'Zazołc gesla jazn',
    'Příliš žluťoučký kůň úpěl': 'Prilis zlutoucky kun upel',
    'Tiếng Việt: Cấy lúa mì': 'Tieng Viet: Cay lua mi',
    'Pijamalı hasta yağız şoföre': 'Pijamalı hasta yagız sofore',
    'Įlinkdama fechtuotojo špaga': 'Ilinkdama fechtuotojo spaga',
    'ǘ Ǟ ȱ ḗ ṩ ẛ': 'u a o e s s',
  }
  for (const [text, plain] of Object.entries(pangrams))
    for (const form of ['NFC', 'NFD']) {
      expect([text, contains(text.normalize(form), soughtText(plain))]).toEqual([text, true])
      expect([text, contains(plain, soughtText(text.normalize(form)))]).toEqual([text, true])
    }
})
