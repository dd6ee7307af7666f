import { expect, test } from 'vitest'
import { isObject, NumberText } from '../../../src/plant/exact-json.js'
import {
  type FieldName,
  isIdempotencyKey,
  otherFieldsOf,
  parsePatch,
  parsePlant,
  parseRecord,
} from '../../../src/plant/plant.js'
import { problemOf, problemsOf, schemas } from '../../../src/plant/plant-schema.js'
import { check, fc } from '../../helpers/fast-check.js'

const wrongId = 'id must be an integer, but'
const outOfRange = 'id must be an integer from -9223372036854775808 to 9223372036854775807, but'
const noName = 'name must be a string, but is missing'
const fern = { id: 1n, name: 'Fern' }

test.each<[value: unknown, problems: string[], otherFields?: string[]]>([
  [{ ...fern, nmae: 1, toString: 2 }, [], ['nmae', 'toString']],
  [{ id: 1n, nmae: 'Fern' }, [noName], ['nmae']],
  [JSON.parse('{"__proto__":{"tag":"x"}}'), [`${wrongId} is missing`, noName], ['__proto__']],
  [null, ['it must be an object, but was null']],
  [
    { tag: null, name: '\ud800\0', id: {} },
    [
      `${wrongId} was an object`,
      'name must be well-formed Unicode, but contains a lone surrogate',
      'tag must be a string, but was null',
    ],
  ],
])('each wrong field of a new plant is a problem: %o', (value, problems, otherFields = []) => {
  expect(problemsOf(value)).toEqual(problems)
  expect(isObject(value) ? otherFieldsOf(value) : []).toEqual(otherFields)
})

test.each<[FieldName, unknown, string?]>([
  ['id', -(2n ** 63n) - 1n, `${outOfRange} was -9223372036854775809`],
  ['id', new NumberText('1.5'), `${wrongId} was 1.5`],
  ['id', 2n ** 63n, `${outOfRange} was 9223372036854775808`],
  ['id', new NumberText('9'.repeat(40)), `${outOfRange} was ${'9'.repeat(40)}`],
  ['id', new NumberText('9'.repeat(41)), `${outOfRange} was ${'9'.repeat(39)}…`],
  ['id', '1', 'id must be an integer, not a string, but was "1"'],
  ['id', 'a"\n', 'id must be an integer, in digits only, but was "a\\"\\n"'],
  ['id', '🌱'.repeat(41), `id must be an integer, in digits only, but was "${'🌱'.repeat(39)}…"`],
  ['name', 'a\0', 'name must be text without U+0000, but contains it'],
  ['name', '\udf31\ud83c', 'name must be well-formed Unicode, but contains a lone surrogate'],
])('the problem of the %s %o: %s', (field, value, problem) => {
  expect(problemOf(field, value)).toBe(problem)
})

const text = fc.string({ unit: 'binary' })

test('an idempotency key is 1 to 255 visible ASCII characters', () => {
  expect(['!', '~', 'k'.repeat(255)].filter((key) => !isIdempotencyKey(key))).toEqual([])
  expect(['', 'a b', 'a\n', '\u007f', 'é', 'k'.repeat(256)].filter(isIdempotencyKey)).toEqual([])
})

test.each([
  ['newPlant', parsePlant],
  ['record', parseRecord],
  ['patch', parsePatch],
] as const)('the schema and the parser of a %s agree', (form, parse) => {
  const odd = fc.constantFrom(
    '',
    '\ud800',
    'a\0b',
    1,
    null,
    undefined,
    [],
    {},
    new NumberText('1.5'),
  )
  const everything = fc.anything({
    withBigInt: true,
    withNullPrototype: true,
    withDate: true,
    withMap: true,
  })
  const field = fc.oneof(text, odd, everything)
  const edges = fc.constantFrom(2n ** 63n - 1n, 2n ** 63n, -(2n ** 63n), -(2n ** 63n) - 1n)
  const id = fc.oneof(fc.bigInt({ min: -(2n ** 65n), max: 2n ** 65n }), edges, field)
  const value = fc.record(
    { id, name: field, tag: field, other: fc.boolean() },
    { requiredKeys: [] },
  )
  return check(1000, [fc.oneof(value, field)], (given) => {
    const { data, error } = schemas[form].safeParse(given)
    const defined =
      data && Object.fromEntries(Object.entries(data).filter(([, each]) => each !== undefined))
    expect(parse(given)).toEqual(defined)
    expect(problemsOf(given, form)).toEqual(error?.issues.map(({ message }) => message) ?? [])
  })
})
