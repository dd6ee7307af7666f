import { isDeepStrictEqual } from 'node:util'
import { expect, test } from 'vitest'
import { NumberText, parseInt64, parseJson, toJson } from '../../../src/plant/exact-json.js'
import { fc } from '../../helpers/fast-check.js'
import { rounds } from '../../helpers/rounds.js'

test.each([
  ['0', 0n],
  ['-0', 0n],
  ['-0.00e-7', 0n],
  ['0e999999999', 0n],
  ['7', 7n],
  ['-7', -7n],
  ['1.0', 1n],
  ['1e3', 1000n],
  ['1E+3', 1000n],
  ['1200e-2', 12n],
  ['0.012e3', 12n],
  ['9007199254740993', 9007199254740993n],
  ['9223372036854775807', 9223372036854775807n],
  ['-9223372036854775808', -9223372036854775808n],
  ['922337203685477580.7e1', 9223372036854775807n],
  ['1e18', 1000000000000000000n],
])('%s is the int64 %s', (text, value) => {
  expect(parseInt64(text)).toBe(value)
})

test.each([
  '9223372036854775808',
  '-9223372036854775809',
  '1e19',
  '1.5',
  '1e-1',
  '1.0000000000000000001',
  '1e999999999',
  `1e${'9'.repeat(400)}`,
  `1e-${'9'.repeat(400)}`,
  '',
  '-',
  '+1',
  '007',
  '-01',
  '.5',
  '5.',
  '1e',
  '1e1.0',
  '0x10',
  '1_000',
  '1n',
  ' 1',
  '1\n',
  '\u0661',
  'NaN',
  'Infinity',
])('%j is no int64', (text) => {
  expect(parseInt64(text)).toBeUndefined()
})

test('an int64 is read as exact arithmetic reads it, from any number of JSON', { timeout: rounds(60_000) }, () => {
  fc.assert(
    fc.property(numberText(), (text) => {
      expect(parseInt64(text)).toBe(exactInt64(text))
    }),
    { numRuns: rounds(5000) },
  )
})

test('an int64 is a number of JSON, from any text', { timeout: rounds(60_000) }, () => {
  const almost = fc.string({ unit: fc.constantFrom(...'0123456789+-.eE _xn\n\u0661'), maxLength: 8 })
  fc.assert(
    fc.property(fc.oneof(almost, fc.string()), (text) => {
      expect(parseInt64(text)).toBe(isNumberOfJson(text) ? exactInt64(text) : undefined)
    }),
    { numRuns: rounds(5000) },
  )
})

test.each([
  ['{"id":9007199254740993}', { id: 9007199254740993n }],
  ['{"id":1.0}', { id: 1n }],
  ['{ "id" : -0 }', { id: 0n }],
  ['{"id":1.5}', { id: new NumberText('1.5') }],
  ['{"id":1e400}', { id: new NumberText('1e400') }],
  ['{"id":"1"}', { id: '1' }],
  ['{"id":null}', { id: null }],
  ['{"id":[1]}', { id: [1] }],
  ['{"id":1,"id":2}', { id: 2n }],
  ['{"id":1,"id":"2"}', { id: '2' }],
  ['{"id":"1","id":2}', { id: 2n }],
  ['{"id":{"id":1},"id":2}', { id: 2n }],
  ['{"id":2,"a":{"id":3},"b":["id",4]}', { id: 2n, a: { id: 3 }, b: ['id', 4] }],
  ['{"i\\u0064":9007199254740993}', { id: 9007199254740993n }],
  ['{"id":1,"\\u0069\\u0064":2}', { id: 2n }],
  ['{"\\\\u0069d":1}', { '\\u0069d': 1 }],
  ['{"id ":1}', { 'id ': 1 }],
  [
    '{"a":{"id":1},"name":"\\"id\\":2","id":9007199254740993,"b":[{"id":3}]}',
    { a: { id: 1 }, name: '"id":2', id: 9007199254740993n, b: [{ id: 3 }] },
  ],
  ['[{"id":1}]', [{ id: 1 }]],
  ['["id",1]', ['id', 1]],
  ['1e400', Infinity],
  ['"id"', 'id'],
  [' null\n', null],
])('%s is read with its id exact', (text, value) => {
  expect(parseJson(text)).toStrictEqual({ value })
})

test.each([
  ['', 'unexpected end of input at line 1, column 1'],
  [' \n', 'unexpected end of input at line 2, column 1'],
  ['\ufeff{}', 'unexpected U+FEFF at line 1, column 1'],
  ['{\n\t"id": 1\n\t"name": ""\n}', 'unexpected "\\"" at line 3, column 2'],
  ['"a\u001fb"', 'unexpected U+001F at line 1, column 3'],
  ['"\ud800" \ud800', 'unexpected U+D800 at line 1, column 5'],
  ['[\u00a0]', 'unexpected U+00A0 at line 1, column 2'],
  ['\u{e0001}', 'unexpected U+E0001 at line 1, column 1'],
  ['\u{1f331}', 'unexpected "\u{1f331}" at line 1, column 1'],
  ['"a\\x"', 'invalid escape at line 1, column 3'],
  ['"\\u12"', 'invalid escape at line 1, column 2'],
  ['{} true', 'more than one JSON value, the second at line 1, column 4'],
  ['{} tag', 'unexpected "t" at line 1, column 4'],
  ['{} -', 'unexpected "-" at line 1, column 4'],
  ['{}"', 'unexpected "\\"" at line 1, column 3'],
  ['5"a"', 'unexpected "\\"" at line 1, column 2'],
  ['1 2', 'more than one JSON value, the second at line 1, column 3'],
])('%j is refused where it stops being JSON', (text, message) => {
  expect(parseJson(text)).toMatchObject({ message, isSeveral: message.startsWith('more') })
})

test('a string of millions of escapes is read, with an exact id behind it', () => {
  const name = '\n'.repeat(4_000_000)
  expect(parseJson(`{"name":${JSON.stringify(name)},"id":9007199254740993}`)).toStrictEqual({
    value: { name, id: 9007199254740993n },
  })
})

test('in a list, the ids of all objects are exact', () => {
  const text = '[{"id":9007199254740993},{"a":"\\"1","id":1.5},{"id":"1"},[{"id":1}],1]'
  const value = [{ id: 9007199254740993n }, { a: '"1', id: new NumberText('1.5') }, { id: '1' }, [{ id: 1 }], 1]
  expect(parseJson(text, { isList: true })).toStrictEqual({ value })
})

test('no array is taken for an object with a numeric id', () => {
  expect(parseJson('[[1]]', { idKey: 'length' })).toStrictEqual({ value: [[1]] })
})

test('a text is JSON here when it is for JSON.parse, and is the same value apart from the id', {
  timeout: rounds(60_000),
}, () => {
  fc.assert(
    fc.property(fc.oneof(jsonText(), mutated(jsonText()), fc.string({ unit: 'binary' })), (text) => {
      const parsed = parseJson(text)
      expect('value' in parsed).toBe(isJson(text))
      if (!('value' in parsed)) return
      const there = JSON.parse(text)
      expect(isDeepStrictEqual(rounded(parsed.value), there)).toBe(true)
      expect(Object.keys(parsed.value ?? {})).toEqual(Object.keys(there ?? {}))
    }),
    { numRuns: rounds(2000) },
  )
})

test('an error points at the character that cannot be there', { timeout: rounds(60_000) }, () => {
  fc.assert(
    fc.property(spacedTokens(), fc.nat(), (tokens, at) => {
      const before = tokens.slice(0, at % (tokens.length + 1)).join('')
      const after = tokens.slice(at % (tokens.length + 1)).join('')
      const lines = before.split('\n')
      const message = `unexpected U+0001 at line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}`
      expect(parseJson(`${before}\u0001${after}`)).toMatchObject({ message })
    }),
    { numRuns: rounds(2000) },
  )
})

test('an error points into the text, behind a beginning that could still become JSON', {
  timeout: rounds(60_000),
}, () => {
  fc.assert(
    fc.property(mutated(jsonText()), (text) => {
      const error = parseJson(text)
      fc.pre('message' in error)
      const { what, before, after } = placeOf('message' in error ? error.message : '', text)
      if (what === 'unexpected end of input') expect(after).toBe('')
      else if (what === 'more than one JSON value') {
        expect(isJson(before)).toBe(true)
        expect(after).toMatch(/^([[{]|true|false|null|-?\d|"([^"\\\0-\x1f]|\\(["\\/bfnrt]|u[\da-fA-F]{4}))*")/)
      } else expect(what).toBe(nameOf(after, before))
      const own = parseJson(before)
      expect('value' in own || placeOf(own.message, before)).toSatisfy(
        (place) => place === true || place.what === 'unexpected end of input',
      )
    }),
    { numRuns: rounds(2000) },
  )
})

test('what is written is the same line of JSON for every reader, and nothing in it moves a terminal', {
  timeout: rounds(60_000),
}, () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom(...'a"\\\n\u007f\u009b\u061c\u2028\u202e\u2069\ud83c') }),
  )
  fc.assert(
    fc.property(fc.dictionary(text, fc.oneof(text, fc.jsonValue()), { maxKeys: 5 }), (fields) => {
      const line = toJson(fields)
      expect(JSON.stringify(JSON.parse(line))).toBe(JSON.stringify(fields))
      expect(line).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Cs}]/u)
    }),
    { numRuns: rounds(2000) },
  )
})

test('an int64 is written and read exactly, in its place', { timeout: rounds(60_000) }, () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.string(), (id, name) => {
      expect(toJson({ id, name })).toBe(`{"id":${id},"name":${JSON.stringify(name).replaceAll('\u007f', '\\u007f')}}`)
      expect(parseJson(toJson({ name, id }))).toEqual({ value: { name, id } })
    }),
    { numRuns: rounds(2000) },
  )
})

test('a field that is undefined is left out', () => {
  expect(toJson({ a: undefined, b: null, c: undefined, d: 5n })).toBe('{"b":null,"d":5}')
  expect(toJson({})).toBe('{}')
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
  const shape = fc.record({
    sign: fc.constantFrom('', '-'),
    digits,
    zeros,
    point: fc.nat({ max: 25 }),
    exponent: fc.option(exponent),
  })
  return shape.map(
    (number) =>
      number.sign +
      pointed(String(BigInt(number.digits + number.zeros)), number.point) +
      (number.exponent ?? []).join(''),
  )
}

/** Puts a point before the last `places` digits. */
function pointed(digits: string, places: number): string {
  if (places === 0) return digits
  const padded = digits.padStart(places + 1, '0')
  return `${padded.slice(0, -places)}.${padded.slice(-places)}`
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

/** Texts with up to three characters deleted, inserted or swapped with their neighbour. */
function mutated(texts: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const inserted = fc.constantFrom(
    ...'{}[],:"\\/ \n0123456789eE+-.truefalsnid',
    '\u0000',
    '\u00a0',
    '\ufeff',
    '\u2028',
    '\u{1f331}',
    '\ud800',
  )
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

/** What a message calls the character that a text begins with. */
function nameOf(text: string, before: string): string {
  const [character = ''] = text
  const isInString = before.replace(/\\./gs, '').split('"').length % 2 === 0
  if (character === '\\' && isInString) return 'invalid escape'
  const isInvisible = /[\p{C}\p{Z}]/u.test(character)
  const digits = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
  return `unexpected ${isInvisible ? `U+${digits}` : JSON.stringify(character)}`
}

/** What a message says, and the text before and behind the place that it names. Throws when that is not in the text. */
function placeOf(message: string, text: string): { what: string; before: string; after: string } {
  const [, what = '', line = '', column = ''] =
    /^(.+?)(?:, the second)? at line (\d+), column (\d+)$/s.exec(message) ?? []
  const lines = text.split('\n')
  const at =
    lines.slice(0, parseInt(line, 10) - 1).join('\n').length + (line === '1' ? 0 : 1) + parseInt(column, 10) - 1
  const width = lines[parseInt(line, 10) - 1]?.length ?? -1
  expect(parseInt(column, 10)).toBeGreaterThanOrEqual(1)
  expect(parseInt(column, 10)).toBeLessThanOrEqual(width + 1)
  return { what, before: text.slice(0, at), after: text.slice(at) }
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
