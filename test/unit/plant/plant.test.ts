import { expect, test } from 'vitest'
import type { FieldName } from '../../../src/plant/fields.js'
import { isObject, NumberLiteral } from '../../../src/plant/json.js'
import {
  isIdempotencyKey,
  isPlantTooLarge,
  listUnknownFields,
  parsePlant,
} from '../../../src/plant/plant.js'
import { findFieldProblem, findProblems, schemas } from '../../../src/plant/schema.js'
import { check, fc, generateCharacter } from '../../helpers/expect/arbitraries.js'

const wrongId =
  'the id must be an integer from -9223372036854775808 to 9223372036854775807, but was'
const noName = 'the name is missing'
const fern = { id: 1n, name: 'Fern' }

test.each<{ value: unknown; problems: string[]; otherFields?: string[] }>([
  { value: { ...fern, nmae: 1, toString: 2 }, problems: [], otherFields: ['nmae', 'toString'] },
  { value: { id: 1n, nmae: 'Fern' }, problems: [noName], otherFields: ['nmae'] },
  {
    value: JSON.parse('{"__proto__":{"tag":"x"}}'),
    problems: ['the id is missing', noName],
    otherFields: ['__proto__'],
  },
  { value: null, problems: ['it must be an object, but was null'] },
])('the new plant $value has the problems $problems', ({ value, problems, otherFields = [] }) => {
  expect(findProblems(value)).toEqual(problems)
  expect(isObject(value) ? listUnknownFields(value) : []).toEqual(otherFields)
})

test.each<{ field: FieldName; value: unknown; problem: string }>([
  { field: 'id', value: -(2n ** 63n) - 1n, problem: `${wrongId} -9223372036854775809` },
  { field: 'id', value: 2n ** 63n, problem: `${wrongId} 9223372036854775808` },
  { field: 'id', value: new NumberLiteral('1.5'), problem: 'the id 1.5 is not a whole number' },
  {
    field: 'id',
    value: new NumberLiteral('9'.repeat(41)),
    problem: `${wrongId} ${'9'.repeat(39)}…`,
  },
  { field: 'id', value: '1', problem: 'the id "1" must be a number without quotes' },
  { field: 'id', value: '１٢', problem: 'the id "１٢" is not a whole number' },
  { field: 'id', value: {}, problem: 'the id must be a whole number, but was an object' },
  {
    field: 'id',
    value: '🌱'.repeat(41),
    problem: `the id "${'🌱'.repeat(39)}…" is not a whole number`,
  },
  { field: 'name', value: 5, problem: 'the name must be a string, but was a number' },
  {
    field: 'name',
    value: 'a"\n\0',
    problem: 'the name must not contain U+0000 or a lone surrogate, but was "a\\"\\n\\u0000"',
  },
  { field: 'tag', value: null, problem: 'the tag must be a string, but was null' },
  {
    field: 'name',
    value: 'a\udc00',
    problem: 'the name must not contain U+0000 or a lone surrogate, but was "a\\udc00"',
  },
  {
    field: 'tag',
    value: '\udf31\ud83c',
    problem: 'the tag must not contain U+0000 or a lone surrogate, but was "\\udf31\\ud83c"',
  },
])('the $field $value has the problem: $problem', ({ field, value, problem }) => {
  expect(findFieldProblem(field, value)).toBe(problem)
})

test('an idempotency key is 1 to 255 visible ASCII characters', () => {
  expect(['!', '~', 'k'.repeat(255)].filter((key) => !isIdempotencyKey(key))).toEqual([])
  expect(['', 'a b', 'a\n', '\u007f', 'é', 'k'.repeat(256)].filter(isIdempotencyKey)).toEqual([])
})

test.each([
  ['newPlant', parsePlant],
  ['patch', (value: unknown) => parsePlant(value, 'patch')],
] as const)('the schema and the parser accept the same values as a %s', (form, parse) => {
  const odd = fc.constantFrom(
    ...['', '\ud800', 'a\0b', 1, null, undefined, [], {}, new NumberLiteral('1.5')],
  )
  const everything = fc.anything({
    ...{ withBigInt: true, withNullPrototype: true, withDate: true, withMap: true },
  })
  const field = fc.oneof(fc.string({ unit: generateCharacter() }), odd, everything)
  const edges = fc.constantFrom(2n ** 63n - 1n, 2n ** 63n, -(2n ** 63n), -(2n ** 63n) - 1n)
  const id = fc.oneof(fc.bigInt({ min: -(2n ** 65n), max: 2n ** 65n }), edges, field)
  const fields = { id, name: field, tag: field, other: fc.boolean() }
  const value = fc.record(fields, { requiredKeys: [] })
  return check(500, [fc.oneof(value, field)], (given) => {
    const { data, error } = schemas[form].safeParse(given)
    const defined = data && Object.entries(data).filter(([, each]) => each !== undefined)
    expect(parse(given)).toEqual(defined && Object.fromEntries(defined))
    expect(findProblems(given, form)).toEqual(error?.issues.map(({ message }) => message) ?? [])
  })
})

test.each([
  { character: 'x', bytes: 1 },
  { character: '蕨', bytes: 3 },
  { character: '\u0001', bytes: 6 },
])('a plant has at most 1 MiB as JSON in UTF-8, of %j', ({ character, bytes }) => {
  const fittingLength = Math.floor((1_048_576 - '{"id":1,"name":""}'.length) / bytes)
  const plants = [fittingLength, fittingLength + 1].map((length) => ({
    id: 1n,
    name: character.repeat(length),
  }))
  expect(plants.map(isPlantTooLarge)).toEqual([false, true])
})
