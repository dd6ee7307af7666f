import { expect, test } from 'vitest'
import { getSetting, listSettings } from '../../../src/config/setting-table.js'
import { findSettingsProblems } from '../../../src/config/settings-schema.js'

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
  expect(findSettingsProblems(valid)).toEqual([])
})

test.each(['stores', 'tokens'])('the key __proto__ of %s is rejected', (section) => {
  const saved: unknown = JSON.parse(`{"version":1,"${section}":{"__proto__":{}}}`)
  expect(findSettingsProblems(saved)).not.toEqual([])
})
