import { expect, test } from 'vitest'
import type { Cell } from '../../../src/formats/chunk.js'
import { Mapper } from '../../../src/import/map-record.js'
import { fieldNames } from '../../../src/plant/fields.js'
import { check, fc } from '../../helpers/expect/arbitraries.js'

const cell = fc.constantFrom<Cell>(
  undefined,
  '1',
  '-9223372036854775808',
  '9223372036854775808',
  '007',
  ' 2 ',
  '3.0',
  "'4",
  '="5"',
  'a',
  'a\0',
  '\ud83c',
  { text: '#REF!', reason: 'is the error value #REF!' },
)
const columnNames = fc.constantFrom<string[]>(
  ['id', 'name', 'tag'],
  ['tag', 'id', 'note', 'name'],
  ['id', 'name'],
  ['name', 'id'],
)

test('the plain path maps a row of a table as the general path does', () =>
  check(
    1000,
    [columnNames, fc.array(cell, { maxLength: 5 }), fc.constantFrom('same', 'skip'), fc.boolean()],
    (names, cells, ifExists, isSent) => {
      const rules = { map: {}, ifExists }
      const columns = new Map(
        fieldNames
          .filter((name) => names.includes(name))
          .map((name) => [name, names.indexOf(name)] as const),
      )
      const header = { names, columns, unreadNames: [], unnamedColumns: [] }
      const key = isSent ? 'key-1' : undefined
      const plain = new Mapper(rules, header, {}).map(cells, key)
      // Without `idFrom`, the first id keeps none free, but each row takes the general path.
      const general = new Mapper(rules, header, { firstId: 1n }).map(cells, key)
      expect(plain).toStrictEqual(general)
    },
  ))

const token = fc.oneof(
  fc.constantFrom('"id"', '"name"', '"tag"', '"ID"', ':', ': ', ',', ', ', '{', '}', 'null', '\r'),
  fc.constantFrom('0', '-0', '01', '-1', '1.0', '9223372036854775807', '9223372036854775808'),
  fc.constantFrom('"a"', '""', '"\\n"', '"\t"', '"\u007f"', '"\ud83c"', '"\\u0000"', '"ü"'),
)
const plainTokens = [
  '{',
  '"id"',
  ':',
  '7',
  ',',
  '"name"',
  ':',
  '"a"',
  ',',
  '"tag"',
  ':',
  '"b"',
  '}',
]

test('the plain path maps an object as the general path does', () =>
  check(
    2000,
    [
      fc.array(fc.tuple(fc.nat({ max: 12 }), token), { maxLength: 4 }),
      fc.constantFrom(9, 13),
      fc.constantFrom({}, { name: 'tag' }),
    ],
    (replacements, length, map) => {
      const tokens = length === 9 ? [...plainTokens.slice(0, 8), '}'] : [...plainTokens]
      for (const [at, replacement] of replacements) tokens[at] = replacement
      const text = tokens.join('')
      const rules = { map, ifExists: 'same' as const }
      const plain = new Mapper(rules, undefined, {}).map(text)
      expect(plain).toStrictEqual(new Mapper(rules, undefined, { firstId: 1n }).map(text))
    },
  ))
