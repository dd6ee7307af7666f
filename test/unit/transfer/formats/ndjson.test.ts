import { expect, test } from 'vitest'
import { parseJson } from '../../../../src/plant/exact-json.js'
import type { NewPlant } from '../../../../src/plant/plant.js'
import { acceptNewPlant } from '../../../../src/plant/plant.js'
import { Chunk } from '../../../../src/transfer/formats/chunk.js'
import { ndjson } from '../../../../src/transfer/formats/line-reader.js'
import { RecordMapper } from '../../../../src/transfer/formats/record-mapper.js'
import { fc } from '../../../helpers/fast-check.js'
import { rounds } from '../../../helpers/rounds.js'

/** A line as programs write it, and near it: what the scanner takes by itself, and what it must leave to the parser. */
const piece = fc.oneof(
  fc.constantFrom(
    '"',
    '\\',
    '\\"',
    '\\\\',
    '\\/',
    '\\b',
    '\\f',
    '\\n',
    '\\r',
    '\\t',
    '\\u0041',
    '\\u00e9',
    '\\u8568',
    '\\uD83C\\uDF3F',
  ),
  fc.constantFrom(
    '\\u0000',
    '\\ud800',
    '\\uDFFF',
    '\\u12',
    '\\x',
    '\\U0041',
    '\t',
    '\u0001',
    '\u007f',
    '\u2028',
    ' ',
    'Fern',
    '蕨',
    '🌿',
    '{',
    ',',
  ),
)
const text = fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join(''))
const number = fc.oneof(
  fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }).map(String),
  fc.constantFrom('9223372036854775807', '9223372036854775808', '-9223372036854775808', '-9223372036854775809'),
  fc.constantFrom(
    '0',
    '-0',
    '00',
    '-',
    '1.0',
    '1e3',
    '1e19',
    '+1',
    ' 1',
    '""',
    'null',
    '999999999',
    '1000000000',
    '10000000000000000000',
  ),
)
const gap = fc.constantFrom('', ' ', '', '  ')
const line = fc
  .tuple(
    number,
    text,
    fc.option(text),
    fc.constantFrom('', ' ', '\r', ',', '}', ' x'),
    fc.array(gap, { minLength: 6, maxLength: 6 }),
  )
  .map(([id, name, tag, end, [a, b, c, d, e, f]]) => {
    const rest = tag === null ? '' : `,${d}"tag":${e}"${tag}"`
    return `{"id":${a}${id},${b}"name":${c}"${name}"${rest}}${f}${end}`
  })

test('the scanner of the usual line says what the parser and the schema say', () => {
  fc.assert(
    fc.property(fc.array(line, { maxLength: 20 }), fc.boolean(), (lines, isMapped) => {
      const bytes = Buffer.from(`${lines.join('\n')}\n`)
      const chunk = new Chunk(bytes)
      const format = ndjson.read(new RecordMapper({ map: isMapped ? { tag: 'tag' } : {}, idFrom: undefined }))
      expect(format.read(chunk, true)).toBe(bytes.length)
      const plants = Array.from({ length: chunk.rows.length }, (_, row) => chunk.rows.at(row))
      expect(plants).toEqual(bytes.toString().split('\n').flatMap(expected))
    }),
    { numRuns: rounds(3000) },
  )
})

function expected(content: string): NewPlant[] {
  const parsed = parseJson(content)
  return 'value' in parsed ? [acceptNewPlant(parsed.value) ?? []].flat() : []
}
