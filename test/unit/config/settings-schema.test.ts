import { expect, test } from 'vitest'
import { isSettings, settingsProblems } from '../../../src/config/settings-file.js'
import { check, fc } from '../../helpers/fast-check.js'

const odd = fc.oneof(fc.constantFrom('a', '', true, false, null, 1, [], {}), fc.jsonValue())
const settings = { timeout: odd, 'ca-cert': odd }
const store = fc.record(
  { address: odd, 'allow-http': odd, 'token-command': odd, ...settings },
  { requiredKeys: [] },
)
const token = fc.record({ token: odd, savedAt: odd, later: odd }, { requiredKeys: [] })
const entriesOf = (entry: fc.Arbitrary<unknown>) =>
  fc.oneof(
    { weight: 4, arbitrary: fc.dictionary(fc.constantFrom('a', 'b'), fc.oneof(entry, odd)) },
    odd,
  )
const document = fc.record(
  {
    version: fc.oneof(fc.constant(1), odd),
    store: odd,
    ...settings,
    stores: entriesOf(store),
    tokens: entriesOf(token),
  },
  { requiredKeys: ['version'] },
)

test('what is accepted fast has no problems, and all else has some', async () => {
  await check(500, [fc.oneof({ weight: 9, arbitrary: document }, odd)], async (value) => {
    const read: unknown = JSON.parse(JSON.stringify(value))
    expect({ value, isAccepted: isSettings(read) }).toEqual({
      value,
      isAccepted: (await settingsProblems(read)).length === 0,
    })
  })
})

test('a settings file of today opens', async () => {
  const saved = {
    version: 1,
    store: 'garden',
    output: 'json',
    timeout: '9s',
    'ca-cert': '/etc/ca.pem',
    stores: {
      garden: { address: '/srv/garden.db' },
      team: {
        ...{ address: 'https://plants.example.com/v1', timeout: '1m', 'ca-cert': '/etc/team.pem' },
        ...{ 'allow-http': false, 'token-command': 'pass show plants' },
      },
    },
    tokens: {
      'https://plants.example.com/v1': { token: 's3cret', savedAt: '2026-01-02T03:04:05.678Z' },
      'postgres://ann@db.example.com/garden': {
        token: 'passw0rd',
        savedAt: '2026-01-02T03:04:05.678Z',
      },
    },
    later: { deep: [null] },
  }
  expect([isSettings(saved), await settingsProblems(saved)]).toEqual([true, []])
})
