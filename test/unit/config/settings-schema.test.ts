import { expect, test } from 'vitest'
import { getSetting, listSettings } from '../../../src/config/setting-table.js'
import { findSettingsProblems, settingsSchema } from '../../../src/config/settings-schema.js'
import { isSavedSettings } from '../../../src/config/settings-text.js'
import { check, fc } from '../../helpers/expect/arbitraries.js'

const value = fc.oneof(
  fc.constantFrom('text', '', 1, 2, true, false, null),
  fc.array(fc.constant('x'), { maxLength: 1 }),
)

/** An object with some of the fields, each right or wrong, and others. */
function fields(
  names: readonly string[],
  right: Record<string, fc.Arbitrary<unknown>> = {},
): fc.Arbitrary<Record<string, unknown>> {
  const rightOrWrong = (name: string) =>
    fc.oneof(
      { weight: 9, arbitrary: new Map(Object.entries(right)).get(name) ?? fc.constant('text') },
      value,
    )
  const shape = Object.fromEntries(
    [...names, 'unknown', 'constructor'].map((name) => [name, rightOrWrong(name)]),
  )
  return fc.record(shape, {
    requiredKeys: ['version', 'address', 'token'].filter((key) => key in shape),
  })
}

function section(entry: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const keys = fc.constantFrom('team', 'https://a.example', '__proto__', 'constructor', '1')
  const entries = fc.array(fc.tuple(keys, entry), { maxLength: 2 })
  // As JSON.parse makes them, so that __proto__ is a key as any other.
  return entries.map((pairs) =>
    JSON.parse(`{${pairs.map((pair) => pair.map((each) => JSON.stringify(each)).join(':'))}}`),
  )
}

const switches = { 'allow-http': fc.boolean() }
const settings = fields(['version', ...listSettings('user'), 'stores', 'tokens'], {
  version: fc.constant(1),
  stores: section(fields(['address', ...listSettings('store')], switches)),
  tokens: section(fields(['token', 'savedAt'])),
})

test('a start accepts exactly the settings that the schema accepts, and names the problems of others', async () => {
  const results = new Set<boolean>()
  await check(2000, [fc.oneof({ weight: 50, arbitrary: settings }, value)], (saved) => {
    const isAccepted = isSavedSettings(saved)
    results.add(isAccepted)
    expect(isAccepted).toBe(settingsSchema.safeParse(saved).success)
    expect(findSettingsProblems(saved).length > 0).toBe(!isAccepted)
  })
  expect(results.size).toBe(2)
})

const secret = 's3cret-Token'
const team = 'https://plants.example.com'
const valid = {
  version: 1,
  ...Object.fromEntries(listSettings('user').map((name) => [name, 'text'])),
  stores: {
    team: {
      address: team,
      ...Object.fromEntries(
        listSettings('store').map((name) => [name, getSetting(name).isSwitch ? true : 'text']),
      ),
    },
  },
  tokens: { [team]: { token: secret, savedAt: '2026-01-02T03:04:05.678Z' } },
}

/** The paths of all values within a value, its own first. */
function listPaths(of: unknown, path: string[] = []): string[][] {
  const children = typeof of === 'object' && of !== null ? Object.entries(of) : []
  return [path, ...children.flatMap(([key, child]) => listPaths(child, [...path, key]))]
}

function replaceAt(of: unknown, [key, ...rest]: string[], wrong: unknown): unknown {
  if (key === undefined) return wrong
  return { ...(of as object), [key]: replaceAt(Reflect.get(of as object, key), rest, wrong) }
}

const wrongFields = listPaths(valid).flatMap((path) =>
  [
    [secret],
    1234.5,
    null,
    { [`postgres://ann:${secret}@host/x`]: secret },
    ...(path.at(-1) === 'allow-http' ? [secret] : []),
  ].map((wrong) => ({ field: path.join(' ') || 'document', wrong, path })),
)

test.each(wrongFields)(
  'the error for $field as $wrong names the field, and does not show its value',
  ({ path, wrong }) => {
    const saved = replaceAt(valid, path, wrong)
    const isSection = ['stores', 'tokens'].includes(path.join()) || path.length === 0
    const problems = findSettingsProblems(saved)
    expect(problems).not.toEqual([])
    // A wrong key of a section is the place of its wrong entry.
    if (!isSection) expect(problems[0]).toContain(path.join('.'))
    expect(problems.join()).not.toMatch(RegExp(`${secret}|1234`))
  },
)

test('the settings of the example are valid', () => {
  expect([isSavedSettings(valid), findSettingsProblems(valid)]).toEqual([true, []])
})
