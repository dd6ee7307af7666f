import stringWidth from 'string-width'
import { expect, test } from 'vitest'
import { displayWidth } from '../../../src/output/text-table.js'
import { randomOf, seed } from '../../helpers/random.js'

const alphabets = [
  'ab Z~',
  'äöüßÄÖÜéçñåøłœ',
  'абвгдЖЯёй',
  'αβγΔΩήώ',
  'e\u0301u\u0308\u0302',
  '“–…€™№→',
  '花園の木バラ桜한국어，。',
  '\u{20000}\u{2a6d6}',
  '🌱🌻🍀🌲⭐⚡✨',
  '👩🏽‍🌾👨‍👩‍👧🇩🇪🏴󠁧󠁢󠁥󠁮󠁧󠁿❤️1️⃣',
  'हिन्दीนก้ำعربي',
  '\u200b\u00ad\u202e\t',
]

test('the width of a character is that of string-width, alone and between others', () => {
  const wrong: string[] = []
  for (let point = 0x20; point < 0x20000; point += 1) {
    if (point === 0xd800)
      point = 0xe000 // surrogates
    else if (point >= 0x3400 && point < 0xd700)
      point += 30 // ideographs and syllables
    else if (point === 0x10000) point = 0x1f000
    const character = String.fromCodePoint(point)
    for (const text of [`é${character}花`, `${character}\u0301${character}`])
      if (displayWidth(text) !== stringWidth(text))
        wrong.push(`U+${point.toString(16)} in ${JSON.stringify(text)}`)
  }
  expect(wrong).toEqual([])
})

test('the width of 2000 lines in the scripts of the world is that of string-width', () => {
  const random = randomOf(seed)
  const below = (count: number) => Math.floor(random() * count)
  for (let line = 0; line < 2000; line += 1) {
    const used = Array.from({ length: 1 + below(3) }, () => [
      ...(alphabets[below(alphabets.length)] ?? ''),
    ])
    const text = Array.from({ length: below(30) }, () => {
      const characters = used[below(used.length)] ?? []
      return characters[below(characters.length)]
    }).join('')
    expect({ text, width: displayWidth(text) }).toEqual({ text, width: stringWidth(text) })
  }
})
