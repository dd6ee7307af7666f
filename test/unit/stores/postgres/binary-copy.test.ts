import { expect, test } from 'vitest'
import { largestId, type NewPlant, smallestId } from '../../../../src/plant/plant.js'
import { BinaryRows, binaryRows } from '../../../../src/stores/postgres/binary-copy.js'

const texts = [
  '',
  '\t\n\r\b\f\v\\',
  '\\N',
  '\\.',
  '\u0001\u007f\u2028',
  '蕨 🌿 \u{10ffff} \ufffd',
  'x'.repeat(2 ** 20),
]
const plants = texts.flatMap((text): NewPlant[] => [
  { id: smallestId, name: text, tag: text },
  { id: -1n, name: text },
  { id: largestId, name: text, tag: '' },
])
const bytes = Buffer.concat([
  ...binaryRows(plants.map((plant, index) => ({ plant, key: `${index}` }))),
])

/** The rows that come in pieces of so many bytes. */
function rowsIn(all: Buffer, size: number) {
  const rows = new BinaryRows()
  const found: unknown[] = []
  for (let at = 0; at < all.length; at += size) {
    rows.append(all.subarray(at, at + size))
    while (rows.next()) found.push([rows.int64(), rows.text(), rows.text(), rows.text()])
  }
  return { found, isComplete: rows.isComplete, waiting: rows.waiting }
}

test.each([1, 2, 7, 64, 65_536, bytes.length])(
  'rows are whole when they come in pieces of %i bytes',
  (size) => {
    const found = plants.map(({ id, name, tag }, index) => [id, name, tag, `${index}`])
    expect(rowsIn(bytes, size)).toEqual({ found, isComplete: true, waiting: 2 })
  },
)

test('what ends too early is not complete', () => {
  for (const length of [0, 18, 19, 40, bytes.length - 2, bytes.length - 1])
    expect(rowsIn(bytes.subarray(0, length), 65_536).isComplete).toBe(false)
})

test('what goes on after its end is not complete', () => {
  for (const size of [64, 65_536])
    expect(rowsIn(Buffer.concat([bytes, bytes]), size).isComplete).toBe(false)
})

test('what is no int64 throws', () => {
  const row = Buffer.from([...Buffer.alloc(19), 0, 1, 0, 0, 0, 4, 0, 0, 0, 1])
  expect(() => rowsIn(row, row.length)).toThrow(RangeError)
})
