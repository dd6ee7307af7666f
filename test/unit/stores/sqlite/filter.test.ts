import { expect, test } from 'vitest'
import { foldString } from '../../../../src/plant/folding.js'
import { listFoldingStarts } from '../../../../src/stores/sqlite/filter.js'

test('each character that folds to an ASCII character begins with a start that the filter lists', () => {
  const ascii = Array.from({ length: 0x5e }, (_, code) => String.fromCharCode(0x21 + code))
  const starts = new Map(ascii.map((character) => [character, listFoldingStarts(character)]))
  const missing: string[] = []
  for (let code = 0x80; code < 0x110000; code += code === 0xd7ff ? 0x801 : 1) {
    const text = String.fromCodePoint(code)
    const decomposed = `${foldString(text)}${text.toUpperCase().toLowerCase()}`.normalize('NFD')
    const bytes = Buffer.from(text).toString('hex')
    for (const character of decomposed.match(/[!-~]/g) ?? [])
      if (!starts.get(character)?.some((start) => bytes.startsWith(start))) missing.push(text)
  }
  expect(missing).toEqual([])
  expect(starts.get('z')).toEqual(['c5', 'e1ba'])
  expect(starts.get('7')).toEqual([])
})
