import { isDeepStrictEqual } from 'node:util'
import { expect, test } from 'vitest'
import { NumberText, parseInt64, parseJson, toJson } from '../../../src/plant/exact-json.js'
import { int64 } from '../../helpers/any-plant.js'
import { check, fc } from '../../helpers/fast-check.js'

test('large exponents cost no time', () => {
  expect(parseInt64('0e999999999')).toBe(0n)
  for (const text of ['1e999999999', `1e${'9'.repeat(400)}`, `-1e${'9'.repeat(400)}`])
    expect(parseInt64(text)).toBe(undefined)
})

test('an int64 is a number of JSON, read as by exact arithmetic', () => {
  const almost = fc.string({ unit: fc.constantFrom(...'0123456789+-.eE _xn\n\u0661'), maxLength: 8 })
  return check(10_000, [fc.oneof(numberText(), almost, fc.string())], (text) => {
    expect(parseInt64(text)).toBe(isNumberOfJson(text) ? exactInt64(text) : undefined)
  })
})

const big = 9007199254740993n

test.each([
  ['{ "id" : -0 }', { id: 0n }],
  ['{"id":1e400}', { id: new NumberText('1e400') }],
  ['{"id":1,"id":"2"}', { id: '2' }],
  ['{"id":2,"a":{"id":3},"b":["id",4]}', { id: 2n, a: { id: 3 }, b: ['id', 4] }],
  ['{"id":1,"\\u0069\\u0064":2}', { id: 2n }],
  ['{"\\\\u0069d":1}', { '\\u0069d': 1 }],
  [`{"a":{"id":1},"name":"\\"id\\":2","id":${big}}`, { a: { id: 1 }, name: '"id":2', id: big }],
  ['[{"id":1}]', [{ id: 1 }]],
  ['{"id":1000000000000000}', { id: 1000000000000000n }],
  [`{"id":${big},"size":1.5e3,"name":"1e3 \\" 2"}`, { id: big, size: 1500, name: '1e3 " 2' }],
  ['{"id":1.0,"size":2}', { id: 1n, size: 2 }],
  ['{"id":-1E3}', { id: -1000n }],
  ['{"id":1.0000000000000000001}', { id: new NumberText('1.0000000000000000001') }],
])('%s is read with its id exact', (text, value) => {
  expect(parseJson(text)).toStrictEqual({ value })
})

test('a string of millions of escapes is read, with an exact id after it', () => {
  const name = '\n'.repeat(4_000_000)
  expect(parseJson(`{"name":${JSON.stringify(name)},"id":${big}}`)).toStrictEqual({ value: { name, id: big } })
})

test('in a list, the ids of all objects are exact', () => {
  const text = `[{"id":${big}},{"a":"\\"1","id":1.5},{"id":"1"},[{"id":1}],1]`
  const value = [{ id: big }, { a: '"1', id: new NumberText('1.5') }, { id: '1' }, [{ id: 1 }], 1]
  expect(parseJson(text, { isList: true })).toStrictEqual({ value })
  expect(parseJson('[[1]]', { idKey: 'length' })).toStrictEqual({ value: [[1]] })
})

test('JSON is what JSON.parse reads, with the same values apart from the id', () => {
  return check(2000, [fc.oneof(jsonText(), mutated(jsonText()), fc.string({ unit: 'binary' }))], (text) => {
    const parsed = parseJson(text)
    expect('value' in parsed).toBe(isJson(text))
    if (!('value' in parsed)) return
    const there = JSON.parse(text)
    expect(isDeepStrictEqual(rounded(parsed.value), there)).toBe(true)
    expect(Object.keys(parsed.value ?? {})).toEqual(Object.keys(there ?? {}))
  })
})

test('what is written is JSON, with nothing that moves a terminal', () => {
  const odd = fc.string({ unit: fc.constantFrom(...'a"\\\n\u007f\u009b\u061c\u2028\u202e\u2069\ud83c') })
  const text = fc.oneof(fc.string({ unit: 'binary' }), odd)
  return check(2000, [fc.dictionary(text, fc.oneof(text, fc.jsonValue()), { maxKeys: 5 })], (fields) => {
    const line = toJson(fields)
    expect(JSON.stringify(JSON.parse(line))).toBe(JSON.stringify(fields))
    expect(line).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Cs}]/u)
  })
})

test('an int64 is written and read exactly, in its place', () =>
  check(2000, [int64(), fc.string()], (id, name) => {
    expect(toJson({ id, name })).toBe(`{"id":${id},"name":${JSON.stringify(name).replaceAll('\u007f', '\\u007f')}}`)
    expect(parseJson(toJson({ name, id }))).toEqual({ value: { name, id } })
  }))

test('a field that is undefined is left out', () => {
  expect(toJson({ a: undefined, b: null, c: undefined, d: 5n })).toBe('{"b":null,"d":5}')
})

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
  return isJson(text) && typeof JSON.parse(text) === 'number' && !/\s/.test(text)
}

/** Numbers of JSON, many of them near the limits of an int64 or with their point moved. */
function numberText(): fc.Arbitrary<string> {
  const digits = fc.oneof(
    fc.bigInt({ min: 0n, max: 10n ** 22n }),
    fc.bigInt({ min: 2n ** 63n - 3n, max: 2n ** 63n + 3n }),
    fc.nat({ max: 30 }).map((power) => 10n ** BigInt(power)),
  )
  const zeros = fc.nat({ max: 4 }).map((count) => '0'.repeat(count))
  const exponent = fc.tuple(fc.constantFrom('e', 'E'), fc.constantFrom('', '+', '-'), zeros, fc.nat({ max: 40 }))
  const number = fc.tuple(fc.constantFrom('', '-'), digits, zeros, fc.nat({ max: 25 }), fc.option(exponent))
  return number.map(([sign, digits, zeros, places, exponent]) => {
    const padded = String(BigInt(digits + zeros)).padStart(places + 1, '0')
    const point = padded.length - places
    return sign + padded.slice(0, point) + (places > 0 ? `.${padded.slice(point)}` : '') + (exponent ?? []).join('')
  })
}

/** JSON in all its spellings: white space, escapes, forms of numbers, repeated keys and ids. */
function jsonText(): fc.Arbitrary<string> {
  return spacedTokens().map((tokens) => tokens.join(''))
}

function spacedTokens(): fc.Arbitrary<string[]> {
  const space = fc.string({ unit: fc.constantFrom(' ', '\n', '\r', '\t'), maxLength: 2 })
  const spaces = fc.array(space, { minLength: 1, maxLength: 7 })
  return fc
    .tuple(tokensOfJson(), spaces)
    .map(([tokens, between]) => tokens.map((token, at) => (between[at % between.length] ?? '') + token))
}

function tokensOfJson(): fc.Arbitrary<string[]> {
  const character = fc.oneof(
    fc
      .string({ unit: 'binary', minLength: 1, maxLength: 1 })
      .filter((text) => text >= ' ' && text !== '"' && text !== '\\'),
    fc.constantFrom('\\"', '\\\\', '\\/', '\\n', '\\u0000', '\\ud800', '\\uDF31', '\\u0069', '\ud800'),
  )
  const text = fc.array(character, { maxLength: 4 }).map((characters) => `"${characters.join('')}"`)
  const key = fc.oneof(fc.constantFrom('"id"', '"\\u0069d"', '"name"', '"__proto__"', '"1"'), text)
  const scalar = fc.oneof(text, numberText(), fc.constantFrom('null', 'true', 'false')).map((token) => [token])
  const { value } = fc.letrec<{ value: string[]; array: string[]; object: string[] }>((tie) => ({
    value: fc.oneof({ depthSize: 'small', withCrossShrink: true }, scalar, tie('array'), tie('object')),
    array: fc.array(tie('value'), { maxLength: 3 }).map((items) => ['[', ...joined(items), ']']),
    object: fc
      .array(fc.tuple(key, tie('value')), { maxLength: 4 })
      .map((members) => ['{', ...joined(members.map(([name, tokens]) => [name, ':', ...tokens])), '}']),
  }))
  return fc.oneof(
    value,
    fc.tuple(key, value).map(([name, tokens]) => ['{', name, ':', ...tokens, ',', '"id"', ':', '1', '}']),
  )
}

function joined(parts: string[][]): string[] {
  return parts.flatMap((part, at) => (at === 0 ? part : [',', ...part]))
}

function mutated(texts: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const inserted = fc.constantFrom(...'{}[],:"\\/ \n0123456789eE+-.truefalsnid\0\u00a0\ufeff\u2028\u{1f331}', '\ud800')
  const change = fc.record({ kind: fc.constantFrom('delete', 'insert', 'swap', 'cut'), at: fc.nat(), inserted })
  return fc.tuple(texts, fc.array(change, { minLength: 1, maxLength: 3 })).map(([text, changes]) =>
    changes.reduce((changed, { kind, at, inserted }) => {
      const [before, after] = [changed.slice(0, at % (changed.length + 1)), changed.slice(at % (changed.length + 1))]
      if (kind === 'delete') return before + after.slice(1)
      if (kind === 'insert') return before + inserted + after
      return kind === 'cut' ? before : before + after.slice(1, 2) + after.slice(0, 1) + after.slice(2)
    }, text),
  )
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** The value with its exact ids as the numbers that `JSON.parse` makes of them. */
function rounded(value: unknown): unknown {
  return Array.isArray(value) ? value.map(roundedObject) : roundedObject(value)
}

function roundedObject(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('id' in value)) return value
  if (value.id instanceof NumberText) return { ...value, id: parseFloat(value.id.text) }
  return typeof value.id === 'bigint' ? { ...value, id: parseFloat(String(value.id)) } : value
}
