import { expect, test } from 'vitest'
import type { FieldName } from '../../../src/plant/fields.js'
import { isObject, NumberText } from '../../../src/plant/json.js'
import { isIdempotencyKey, listOtherFields, parsePlant } from '../../../src/plant/plant.js'
import { findFieldProblem, findProblems, schemas } from '../../../src/plant/schema.js'
import { character, check, fc } from '../../helpers/expect/arbitraries.js'

const wrongId =
  'the id must be an integer from -9223372036854775808 to 9223372036854775807, but was'
const noName = 'the name is missing'
const fern = { id: 1n, name: 'Fern' }

test.each<[value: unknown, problems: string[], otherFields?: string[]]>([
  [{ ...fern, nmae: 1, toString: 2 }, [], ['nmae', 'toString']],
  [{ id: 1n, nmae: 'Fern' }, [noName], ['nmae']],
  [JSON.parse('{"__proto__":{"tag":"x"}}'), ['the id is missing', noName], ['__proto__']],
  [null, ['it must be an object, but was null']],
])('each wrong field of a new plant is a problem: %o', (value, problems, otherFields = []) => {
  expect(findProblems(value)).toEqual(problems)
  expect(isObject(value) ? listOtherFields(value) : []).toEqual(otherFields)
})

test.each<[FieldName, unknown, string]>([
  ['id', -(2n ** 63n) - 1n, `${wrongId} -9223372036854775809`],
  ['id', 2n ** 63n, `${wrongId} 9223372036854775808`],
  ['id', new NumberText('1.5'), `${wrongId} 1.5`],
  ['id', new NumberText('9'.repeat(41)), `${wrongId} ${'9'.repeat(39)}…`],
  ['id', '1', `${wrongId} "1"`],
  ['id', '１٢', 'the id must use the digits 0 to 9, but was "１٢"'],
  ['id', {}, `${wrongId} an object`],
  ['id', '🌱'.repeat(41), `${wrongId} "${'🌱'.repeat(39)}…"`],
  ['name', 5, 'the name must be a string, but was a number'],
  [
    'name',
    'a"\n\0',
    'the name must not contain U+0000 or a lone surrogate, but was "a\\"\\n\\u0000"',
  ],
  ['tag', null, 'the tag must be a string, but was null'],
  [
    'tag',
    '\udf31\ud83c',
    'the tag must not contain U+0000 or a lone surrogate, but was "\\udf31\\ud83c"',
  ],
])('the problem of the %s %o: %s', (field, value, problem) => {
  expect(findFieldProblem(field, value)).toBe(problem)
})

test('an idempotency key is 1 to 255 visible ASCII characters', () => {
  expect(['!', '~', 'k'.repeat(255)].filter((key) => !isIdempotencyKey(key))).toEqual([])
  expect(['', 'a b', 'a\n', '\u007f', 'é', 'k'.repeat(256)].filter(isIdempotencyKey)).toEqual([])
})

test.each([
  ['newPlant', parsePlant],
  ['record', (value: unknown) => parsePlant(value, 'record')],
  ['patch', (value: unknown) => parsePlant(value, 'patch')],
] as const)('the schema and the parser of a %s agree', (form, parse) => {
  const odd = fc.constantFrom(
    ...['', '\ud800', 'a\0b', 1, null, undefined, [], {}, new NumberText('1.5')],
  )
  const everything = fc.anything({
    ...{ withBigInt: true, withNullPrototype: true, withDate: true, withMap: true },
  })
  const field = fc.oneof(fc.string({ unit: character() }), odd, everything)
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
