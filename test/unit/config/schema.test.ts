import { expect, test } from 'vitest'
import { isSaved } from '../../../src/config/file.js'
import { problemsOf } from '../../../src/config/schema.js'
import { fc } from '../../helpers/fast-check.js'

const text = fc.oneof({ weight: 9, arbitrary: fc.string() }, { weight: 1, arbitrary: fc.jsonValue() })
const flag = fc.oneof({ weight: 9, arbitrary: fc.boolean() }, { weight: 1, arbitrary: fc.jsonValue() })
const few = { requiredKeys: [] }
const store = fc.record(
  {
    address: text,
    timeout: text,
    'ca-cert': text,
    'allow-http': flag,
    'token-command': text,
    'allow-async-commit': flag,
    other: fc.jsonValue(),
  },
  few,
)
const token = fc.record({ token: text, savedAt: text, other: fc.jsonValue() }, few)
const settings = fc.record(
  {
    version: fc.oneof(fc.constant(1), fc.jsonValue()),
    ...{ store: text, output: text, timeout: text, 'ca-cert': text, other: fc.jsonValue() },
    stores: fc.oneof(fc.dictionary(fc.string(), fc.oneof(store, fc.jsonValue())), fc.jsonValue()),
    tokens: fc.oneof(fc.dictionary(fc.string(), fc.oneof(token, fc.jsonValue())), fc.jsonValue()),
  },
  few,
)

test('what is read at a start is what the schema allows', () => {
  const runs = 2000 * Number(process.env['PLANTS_SOAK'] || 1)
  fc.assert(
    fc.property(fc.oneof(settings, fc.jsonValue()), (value) => {
      expect(isSaved(value)).toBe(problemsOf(value).length === 0)
    }),
    { numRuns: runs },
  )
})
