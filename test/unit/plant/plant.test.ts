import { expect, test } from 'vitest'
import { isObject, NumberText } from '../../../src/plant/exact-json.js'
import {
  acceptNewPlant,
  type FieldName,
  type Form,
  isIdempotencyKey,
  otherFieldsOf,
  plantOf,
} from '../../../src/plant/plant.js'
import { problemOf, problemsOf, schemas } from '../../../src/plant/plant-schema.js'
import { shorten } from '../../../src/platform/escape.js'
import { fc } from '../../helpers/fast-check.js'
import { rounds } from '../../helpers/rounds.js'

const wrongId = 'id must be an integer, but'
const outOfRange = 'id must be an integer from -9223372036854775808 to 9223372036854775807, but'
const fern = { id: 1n, name: 'Fern' }

test.each([
  ['a tag', { id: 1n, name: 'Fern', tag: 'shade' }, { plant: { id: 1n, name: 'Fern', tag: 'shade' }, otherFields: [] }],
  ['no tag', fern, { plant: fern, otherFields: [] }],
  ['a tag that is undefined', { ...fern, tag: undefined }, { plant: fern, otherFields: [] }],
  ['empty texts', { id: 0n, name: '', tag: '' }, { plant: { id: 0n, name: '', tag: '' }, otherFields: [] }],
  ['other fields', { ...fern, nmae: 1, toString: 2 }, { plant: fern, otherFields: ['nmae', 'toString'] }],
  [
    'a field named __proto__',
    JSON.parse('{"__proto__":{"tag":"x"}}'),
    { problems: [`${wrongId} is missing`, 'name must be a string, but is missing'], otherFields: ['__proto__'] },
  ],
  [
    'a typing error',
    { id: 1n, nmae: 'Fern' },
    { problems: ['name must be a string, but is missing'], otherFields: ['nmae'] },
  ],
  ['nothing', undefined, { problems: ['it must be an object, but is missing'], otherFields: [] }],
  ['null', null, { problems: ['it must be an object, but was null'], otherFields: [] }],
  ['an array', [fern], { problems: ['it must be an object, but was an array'], otherFields: [] }],
  ['a text', 'Fern', { problems: ['it must be an object, but was "Fern"'], otherFields: [] }],
  ['a number', 1, { problems: ['it must be an object, but was a number'], otherFields: [] }],
  ['a boolean', false, { problems: ['it must be an object, but was false'], otherFields: [] }],
  [
    'an id as a text',
    { id: '1', name: 'Fern' },
    { problems: ['id must be an integer, not a string, but was "1"'], otherFields: [] },
  ],
  ['an id as a number', { id: 1, name: 'Fern' }, { problems: [`${wrongId} was a number`], otherFields: [] }],
  [
    'an id with a fraction',
    { id: new NumberText('1.5'), name: 'Fern' },
    { problems: [`${wrongId} was 1.5`], otherFields: [] },
  ],
  [
    'an id above',
    { id: 2n ** 63n, name: 'Fern' },
    { problems: [`${outOfRange} was 9223372036854775808`], otherFields: [] },
  ],
  [
    'an id below',
    { id: -(2n ** 63n) - 1n, name: 'Fern' },
    { problems: [`${outOfRange} was -9223372036854775809`], otherFields: [] },
  ],
  [
    'three wrong fields',
    { tag: null, name: '\ud800', id: {} },
    {
      problems: [
        `${wrongId} was an object`,
        'name must be well-formed Unicode, but contains a lone surrogate',
        'tag must be a string, but was null',
      ],
      otherFields: [],
    },
  ],
])('%s: is a NewPlant, or is told what is wrong', (_, value: unknown, checked) => {
  expect(check(value)).toStrictEqual(checked)
})

const rightFields: [field: FieldName, value: unknown][] = [
  ['id', -(2n ** 63n)],
  ['id', 2n ** 63n - 1n],
  ['name', ''],
  ['name', '\u{1f331}\uffff\u0001'],
  ['tag', 'shade'],
]
const wrongFields: [field: FieldName, value: unknown, problem: string][] = [
  ['id', undefined, `${wrongId} is missing`],
  ['id', true, `${wrongId} was true`],
  ['id', [], `${wrongId} was an array`],
  ['id', new NumberText('9'.repeat(40)), `${outOfRange} was ${'9'.repeat(40)}`],
  ['id', new NumberText('9'.repeat(41)), `${outOfRange} was ${'9'.repeat(39)}…`],
  ['id', 'a"\n', 'id must be an integer, in digits only, but was "a\\"\\n"'],
  ['name', 5n, 'name must be a string, but was 5'],
  ['name', 'a\0', 'name must be text without U+0000, but contains it'],
  ['name', '\udf31\ud83c', 'name must be well-formed Unicode, but contains a lone surrogate'],
  ['tag', undefined, 'tag must be a string, but is missing'],
  ['tag', {}, 'tag must be a string, but was an object'],
]

test('says nothing about a field that is right', () => {
  expect(rightFields.map(([field, value]) => problemOf(field, value))).toEqual(rightFields.map(() => undefined))
})

test('says of a wrong field what it must be and what it was', () => {
  expect(wrongFields.map(([field, value]) => problemOf(field, value))).toEqual(
    wrongFields.map(([, , problem]) => problem),
  )
})

test.each([
  ['', ''],
  ['x'.repeat(40), 'x'.repeat(40)],
  ['x'.repeat(41), `${'x'.repeat(39)}…`],
  ['\u{1f331}'.repeat(21), '\u{1f331}'.repeat(21)],
  ['\u{1f331}'.repeat(41), `${'\u{1f331}'.repeat(39)}…`],
  [`${'x'.repeat(38)}${'\u{1f331}'.repeat(3)}`, `${'x'.repeat(38)}\u{1f331}…`],
])('a message shows of %j at most 40 characters, each whole', (text, shown) => {
  expect(shorten(text)).toBe(shown)
})

test('a Plant has the name and the tag, in that order, and no id', () => {
  expect(JSON.stringify(plantOf({ tag: 'shade', name: 'Fern' }))).toBe('{"name":"Fern","tag":"shade"}')
  expect(JSON.stringify(plantOf({ tag: '', name: '' }))).toBe('{"name":"","tag":""}')
  expect(JSON.stringify(plantOf(fern))).toBe('{"name":"Fern"}')
})

test('any value at all is a NewPlant as it is, or has a problem for each field that is wrong', {
  timeout: rounds(60_000),
}, () => {
  const fields = {
    id: fc.oneof(int64(), anything()),
    name: fc.oneof(text(), anything()),
    tag: fc.oneof(text(), anything()),
    other: anything(),
  }
  fc.assert(
    fc.property(fc.record(fields, { requiredKeys: [] }), (value) => {
      const wrong = [
        isInt64(value.id) ? [] : 'id',
        isText(value.name) ? [] : 'name',
        value.tag === undefined || isText(value.tag) ? [] : 'tag',
      ].flat()
      const otherFields = 'other' in value ? ['other'] : []
      const { other: _, ...plant } = value.tag === undefined ? { id: value.id, name: value.name } : value
      const checked = check(value)
      if (checked.problems) {
        const problems = checked.problems.map((problem) => problem.split(' ')[0])
        expect({ ...checked, problems }).toEqual({ problems: wrong, otherFields })
      } else expect({ ...checked, wrong }).toEqual({ plant, otherFields, wrong: [] })
    }),
    { numRuns: rounds(5000) },
  )
})

test('a value that is no object has one problem', { timeout: rounds(60_000) }, () => {
  const values = anything().filter((value) => typeof value !== 'object' || value === null || Array.isArray(value))
  fc.assert(
    fc.property(values, (value) => {
      const problems = [expect.stringMatching(/^it must be an object, but (is missing|was .+)$/s)]
      expect(check(value)).toEqual({ problems, otherFields: [] })
    }),
    { numRuns: rounds(2000) },
  )
})

test('an idempotency key is 1 to 255 visible ASCII characters', { timeout: rounds(60_000) }, () => {
  const almost = fc.string({
    unit: fc.constantFrom('!', '~', 'k', ' ', '\n', '\u007f', '\u0080', '\u00e9'),
    maxLength: 4,
  })
  const long = fc.nat({ max: 300 }).map((length) => 'k'.repeat(length))
  fc.assert(
    fc.property(fc.oneof(almost, long, fc.string({ unit: 'binary' })), (key) => {
      const codes = Array.from(key, (character) => character.codePointAt(0) ?? 0)
      expect(isIdempotencyKey(key)).toBe(
        codes.length >= 1 && codes.length <= 255 && codes.every((code) => code > 0x20 && code < 0x7f),
      )
    }),
    { numRuns: rounds(2000) },
  )
})

function anything(): fc.Arbitrary<unknown> {
  const nearly = fc.oneof(fc.bigInt(), fc.string({ unit: fc.constantFrom('a', '\0', '\ud83c', '\udf31', '\ud800') }))
  return fc.oneof(nearly, fc.anything({ withBigInt: true, withNullPrototype: true, withDate: true, withMap: true }))
}

function int64(): fc.Arbitrary<bigint> {
  return fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
}

function text(): fc.Arbitrary<string> {
  return fc.string({ unit: 'binary' })
}

function isInt64(value: unknown): boolean {
  return typeof value === 'bigint' && value >= -(2n ** 63n) && value < 2n ** 63n
}

function isText(value: unknown): boolean {
  return (
    typeof value === 'string' &&
    Array.from(value, (character) => character.codePointAt(0) ?? 0).every(
      (code) => code > 0 && (code < 0xd800 || code > 0xdfff),
    )
  )
}

test.each(['newPlant', 'record', 'patch'] satisfies Form[])(
  'the schema of a %s and the acceptor beside it decide the same',
  (form) => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('', '\ud800', 'a\0b', 1, null, undefined, [], {}, new NumberText('1.5')),
    )
    const edges = fc.constantFrom(2n ** 63n - 1n, 2n ** 63n, -(2n ** 63n), -(2n ** 63n) - 1n)
    const id = fc.oneof(fc.bigInt({ min: -(2n ** 65n), max: 2n ** 65n }), edges, text)
    const value = fc.record({ id, name: text, tag: text, other: fc.boolean() }, { requiredKeys: [] })
    const same = (given: unknown) => {
      const { data, error } = schemas[form].safeParse(given)
      const defined = data && Object.fromEntries(Object.entries(data).filter(([, field]) => field !== undefined))
      expect(acceptNewPlant(given, form)).toEqual(defined)
      expect(problemsOf(given, form)).toEqual(error?.issues.map(({ message }) => message) ?? [])
    }
    fc.assert(fc.property(fc.oneof(value, text), same), { numRuns: rounds(500) })
  },
)

/** The plant, or a problem for each wrong field; and the names of the unknown fields. */
function check(value: unknown): { plant?: unknown; problems?: string[]; otherFields: string[] } {
  const otherFields = isObject(value) ? otherFieldsOf(value) : []
  const plant = acceptNewPlant(value)
  return plant ? { plant, otherFields } : { problems: problemsOf(value), otherFields }
}
