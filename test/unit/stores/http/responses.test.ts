import { expect, test } from 'vitest'
import { NumberLiteral } from '../../../../src/plant/json.js'
import {
  parseResponseCount,
  parseResponseError,
  parseResponsePlant,
  parseStoredPlant,
} from '../../../../src/stores/http/plant-request.js'
import { responseSchemas } from '../../../../src/stores/http/response-schemas.js'
import { check, fc } from '../../../helpers/expect/arbitraries.js'

const value = fc.oneof(
  fc.constantFrom<unknown>(
    'Fern',
    '',
    '\0',
    '\ud800',
    null,
    true,
    [],
    {},
    new NumberLiteral('1.5'),
    1.5,
    -1,
    2 ** 31,
  ),
  fc.constantFrom(0n, -1n, 2n ** 63n - 1n, 2n ** 63n),
  fc.integer(),
  fc.string(),
)
const names = ['id', 'name', 'tag', 'count', 'error', 'message']
const fields = Object.fromEntries(names.map((name) => [name, value]))
const response = fc.oneof(
  { weight: 20, arbitrary: fc.record(fields, { requiredKeys: [] }) },
  value as fc.Arbitrary<unknown>,
)

test.each<[keyof typeof responseSchemas, (value: unknown) => unknown]>([
  ['plant', parseResponsePlant],
  ['storedPlant', parseStoredPlant],
  ['count', parseResponseCount],
  ['error', parseResponseError],
])('the schema and the parser of a %s in a response accept the same values', (name, parse) =>
  check(1000, [response], (body) => {
    const { success, data } = responseSchemas[name].safeParse(body)
    const parsed = parse(body)
    expect(parsed !== undefined).toBe(success)
    if (data !== undefined) expect(toFields(name, parsed)).toEqual(withoutNull(data))
  }),
)

function toFields(name: string, parsed: unknown): unknown {
  return name === 'count' ? { count: parsed } : parsed
}

/** A plant without a tag may have null in a response. */
function withoutNull(data: object): object {
  return Object.fromEntries(Object.entries(data).filter(([, field]) => field !== null))
}
