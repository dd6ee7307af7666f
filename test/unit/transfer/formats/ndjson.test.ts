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
const escapes = '" \\ \\" \\\\ \\/ \\b \\f \\n \\r \\t \\u0041 \\u00e9 \\u8568 \\uD83C\\uDF3F'.split(' ')
const others = '\\u0000 \\ud800 \\uDFFF \\u12 \\x \\U0041 \t \u0001 \u007f \u2028 Fern 蕨 🌿 { ,'.split(' ')
const piece = fc.oneof(fc.constantFrom(...escapes), fc.constantFrom(' ', ...others))
const text = fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join(''))
const edges = '9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809'.split(' ')
const odd = '0 -0 00 - 1.0 1e3 1e19 +1 "" null 999999999 1000000000 10000000000000000000'.split(' ')
const number = fc.oneof(
  fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }).map(String),
  fc.constantFrom(...edges),
  fc.constantFrom(' 1', ...odd),
)
const ends = fc.constantFrom('', ' ', '\r', ',', '}', ' x')
const gaps = fc.array(fc.constantFrom('', ' ', '', '  '), { minLength: 6, maxLength: 6 })
const line = fc.tuple(number, text, fc.option(text), ends, gaps).map(([id, name, tag, end, [a, b, c, d, e, f]]) => {
  const rest = tag === null ? '' : `,${d}"tag":${e}"${tag}"`
  return `{"id":${a}${id},${b}"name":${c}"${name}"${rest}}${f}${end}`
})

test('the scanner of the usual line says what the parser and the schema say', () => {
  const same = (lines: string[], isMapped: boolean) => {
    const bytes = Buffer.from(`${lines.join('\n')}\n`)
    const chunk = new Chunk(bytes)
    const format = ndjson.read(new RecordMapper({ map: isMapped ? { tag: 'tag' } : {}, idFrom: undefined }))
    expect(format.read(chunk, true)).toBe(bytes.length)
    const plants = Array.from({ length: chunk.rows.length }, (_, row) => chunk.rows.at(row))
    expect(plants).toEqual(bytes.toString().split('\n').flatMap(expected))
  }
  fc.assert(fc.property(fc.array(line, { maxLength: 20 }), fc.boolean(), same), { numRuns: rounds(3000) })
})

function expected(content: string): NewPlant[] {
  const parsed = parseJson(content)
  return 'value' in parsed ? [acceptNewPlant(parsed.value) ?? []].flat() : []
}
