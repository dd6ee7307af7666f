import { expect, test } from 'vitest'
import {
  NumberLiteral,
  parseInt64,
  parseJson,
  toJson,
  toWireJson,
} from '../../../src/plant/json.js'
import { check, fc, generateCharacter, generateInt64 } from '../../helpers/expect/arbitraries.js'

test('a number with a large exponent is parsed in no time', () => {
  expect(parseInt64('0e999999999')).toBe(0n)
  for (const text of ['1e999999999', `1e${'9'.repeat(400)}`, `-1e${'9'.repeat(400)}`])
    expect(parseInt64(text)).toBe(undefined)
})

test('an int64 is parsed from exactly the numbers of JSON that have its value', () => {
  const almost = fc.string({
    unit: fc.constantFrom(...'0123456789+-.eE _xn\n\u0661'),
    maxLength: 8,
  })
  return check(3000, [fc.oneof(numberText(), almost, fc.string())], (text) => {
    expect(parseInt64(text)).toBe(isNumberOfJson(text) ? exactInt64(text) : undefined)
  })
})

const big = 9007199254740993n

test.each([
  { text: '{"id":1e400}', value: { id: new NumberLiteral('1e400') } },
  { text: '{"id":2,"a":{"id":3},"b":["id",4]}', value: { id: 2n, a: { id: 3 }, b: ['id', 4] } },
  {
    text: `{"a":{"id":1},"name":"\\"id\\":2","id":${big}}`,
    value: { a: { id: 1 }, name: '"id":2', id: big },
  },
  {
    text: '{"id":1.0000000000000000001}',
    value: { id: new NumberLiteral('1.0000000000000000001') },
  },
])('the JSON $text is parsed with its id exact', ({ text, value }) => {
  expect(parseJson(text)).toStrictEqual({ value })
})

test('the value of another id key is parsed exactly, also if the key has a quote', () => {
  const text = `{"":7,"x\\"":${big}}`
  expect(parseJson(text, { idKey: 'x"' })).toStrictEqual({ value: { '': 7, 'x"': big } })
})

test('a string of a million escapes is parsed, with an exact id after it', () => {
  const name = '\n'.repeat(1_000_000)
  const text = `{"name":${JSON.stringify(name)},"id":${big}}`
  expect(parseJson(text)).toStrictEqual({ value: { name, id: big } })
})

test('an object is parsed as by JSON.parse, but with its last id exact, also in a list', () => {
  const pieces = fc.constantFrom(
    ...['\\"', '\\\\', '\\u0069d', '\\"id\\":2', ':1.5', '{', 'id', '\ud800'],
  )
  const string = fc.array(pieces, { maxLength: 4 }).map((some) => `"${some.join('')}"`)
  const value = fc.oneof(
    numberText(),
    string,
    fc.constantFrom('null', '{"id":1.5}', '[1e3,{"id":2}]'),
  )
  const key = fc.oneof(fc.constantFrom('"id"', '"\\u0069d"', '"name"', '"1"'), string)
  const space = fc.constantFrom('', ' ', '\r\n\t')
  const members = fc.array(fc.tuple(key, value, space), { maxLength: 4 })
  return check(1500, [members, fc.boolean()], (some, isList) => {
    const text = `{${some.map(([name, token, gap]) => `${gap}${name}${gap}:${gap}${token}${gap}`).join()}}`
    const expected = JSON.parse(text)
    const id = some.findLast(([name]) => JSON.parse(name) === 'id')?.[1] ?? ''
    if (/^[-\d]/.test(id)) expected.id = exactInt64(id) ?? new NumberLiteral(id)
    const parsed = parseJson(isList ? `[1,${text},[{"id":1}]]` : text, { isList })
    expect(parsed).toStrictEqual({ value: isList ? [1, expected, [{ id: 1 }]] : expected })
  })
})

const odd = fc.string({
  unit: fc.constantFrom(...'a"\\\n\u007f\u009b\u061c\u2028\u202e\u2069\ud83c🌿'),
})
const text = fc.oneof(fc.string({ unit: generateCharacter() }), odd)

test('the JSON that is written has no character that controls a terminal', () => {
  return check(
    700,
    [fc.dictionary(text, fc.oneof(text, fc.jsonValue()), { maxKeys: 5 }), generateInt64()],
    (fields, id) => {
      const line = toJson({ ...fields, missing: undefined })
      expect(JSON.stringify(JSON.parse(line))).toBe(JSON.stringify(fields))
      expect(line).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Cs}]/u)
      expect(parseJson(toJson({ name: line, missing: undefined, id }))).toEqual({
        value: { name: line, id },
      })
    },
  )
})

test('a plant is written as JSON in the same way as any other object', () =>
  check(700, [generateInt64(), text, fc.option(text)], (id, name, tag) => {
    const plant = { id, name, ...(tag !== null && { tag }) }
    for (const write of [toJson, toWireJson]) {
      expect(`${write(plant).slice(0, -1)},"other":1}`).toBe(write({ ...plant, other: 1n }))
      expect(write({ plant })).toBe(`{"plant":${write(plant)}}`)
    }
  }))

/** The value of a JSON number by exact arithmetic, for exponents that are small. */
function exactInt64(text: string): bigint | undefined {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const power = parseInt(exponent, 10) - fraction.length
  const factor = 10n ** BigInt(Math.abs(power))
  const digits = BigInt(whole + fraction)
  if (power < 0 && digits % factor !== 0n) return undefined
  const value = power < 0 ? digits / factor : digits * factor
  return value >= -(2n ** 63n) && value < 2n ** 63n ? value : undefined
}

function isNumberOfJson(text: string): boolean {
  try {
    return typeof JSON.parse(text) === 'number' && !/\s/.test(text)
  } catch {
    return false
  }
}

/** Numbers of JSON, many of them near the limits of an int64 or with their point moved. */
function numberText(): fc.Arbitrary<string> {
  const digits = fc.oneof(
    fc.bigInt({ min: 0n, max: 10n ** 22n }),
    fc.bigInt({ min: 2n ** 63n - 3n, max: 2n ** 63n + 3n }),
    fc.nat({ max: 30 }).map((power) => 10n ** BigInt(power)),
  )
  const zeros = fc.nat({ max: 4 }).map((count) => '0'.repeat(count))
  const e = fc.constantFrom('e', 'E', 'e+', 'E+', 'e-', 'E-')
  const exponent = fc.option(fc.tuple(e, zeros, fc.nat({ max: 40 })))
  const number = fc.tuple(
    ...([fc.constantFrom('', '-'), digits, zeros, fc.nat({ max: 25 }), exponent] as const),
  )
  return number.map(([sign, digits, zeros, places, exponent]) => {
    const padded = String(BigInt(digits + zeros)).padStart(places + 1, '0')
    const point = padded.length - places
    const fraction = places > 0 ? `.${padded.slice(point)}` : ''
    return `${sign}${padded.slice(0, point)}${fraction}${(exponent ?? []).join('')}`
  })
}
