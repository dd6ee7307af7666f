import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { largestId, smallestId } from '../../../../src/plant/fields.js'
import type { NewPlant } from '../../../../src/plant/plant.js'
import { toRow } from '../../../../src/stores/plan.js'
import { formatCopyRow } from '../../../../src/stores/postgres/apply.js'
import { parseCopyRows } from '../../../../src/stores/postgres/copy-text.js'
import { gather } from '../../../helpers/sandbox/store.js'

const texts = [
  '',
  '\t\n\r\b\f\v\\',
  '\\N',
  '\\.',
  '\\n',
  '\u0001\u007f\u2028',
  '蕨 🌿 \u{10ffff} \ufffd',
]
const plants = [...texts, 'x'.repeat(1000)].flatMap((text): NewPlant[] => [
  { id: smallestId, name: text, tag: text },
  { id: -1n, name: text },
  { id: largestId, name: text, tag: '' },
])
const bytes = Buffer.from(
  plants.map((plant, index) => formatCopyRow(toRow({ plant, key: `${index}` }))).join(''),
)

test.each([1, 2, 7, 64, bytes.length])(
  'rows that are written for COPY are read again unchanged, in chunks of %i bytes',
  async (size) => {
    const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
      bytes.subarray(index * size, (index + 1) * size),
    )
    const input = Readable.from(pieces)
    expect(await gather(parseCopyRows(input, 'h1'))).toEqual(
      plants.map(({ id, name, tag = null }, index) => [`${id}`, name, tag, `${index}`]),
    )
  },
)

test('a carriage return is escaped, as COPY requires', () => {
  expect(bytes.includes('\r')).toBe(false)
})
