import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { Hostile, json } from '../../helpers/hostile.js'
import { World } from '../../helpers/world.js'

const team = 'https://plants.example.com/v1'
const token = 's3cret-Token'
const savedAt = '2026-01-02T03:04:05.678Z'

describe('keys that this version does not know stay', () => {
  const own = {
    constructor: [null],
    'a.b': { 'c.d': {} },
    toString: '',
    later: { deep: [{ x: null }, 'é', 1.5, true] },
  }
  const before = {
    version: 1,
    output: 'json',
    store: 'garden',
    ...own,
    stores: { team: { address: team, timeout: '1m', ...own }, garden: { address: '/srv/garden.db', ...own } },
    tokens: { [team]: { token, savedAt, ...own }, 'https://other.example.com': { token, savedAt, ...own } },
  }

  test.each<[string, (saved: typeof before) => void]>([
    ['config set timeout 3m', (saved) => Object.assign(saved, { timeout: '3m' })],
    ['config set output text', (saved) => Object.assign(saved, { output: 'text' })],
    ['config unset output', (saved) => Reflect.deleteProperty(saved, 'output')],
    ['config set stores.team.timeout 3m', ({ stores }) => Object.assign(stores.team, { timeout: '3m' })],
    ['config unset stores.team.timeout', ({ stores }) => Reflect.deleteProperty(stores.team, 'timeout')],
    [
      'config set stores.garden.address /srv/other.db',
      ({ stores }) => Object.assign(stores.garden, { address: '/srv/other.db' }),
    ],
    ['stores add new /srv/new.db', ({ stores }) => Object.assign(stores, { new: { address: '/srv/new.db' } })],
    ['stores use team', (saved) => Object.assign(saved, { store: 'team' })],
    ['stores use local', (saved) => Object.assign(saved, { store: 'local' })],
    [
      'stores remove garden',
      (saved) => [Reflect.deleteProperty(saved.stores, 'garden'), Reflect.deleteProperty(saved, 'store')],
    ],
    [
      'stores remove team',
      (saved) => [Reflect.deleteProperty(saved.stores, 'team'), Reflect.deleteProperty(saved.tokens, team)],
    ],
    [`auth logout --store ${team}`, ({ tokens }) => Reflect.deleteProperty(tokens, team)],
  ])('with %s', async (command, change) => {
    const user = new World()
    user.save(before)
    expect((await user.run(command)).code).toBe(0)
    const after = structuredClone(before)
    change(after)
    expect(entriesOf(user.saved)).toEqual(entriesOf(after))
  })

  test('with auth login', async () => {
    const user = new World()
    const remote = await Hostile.listen({ posts: [json(422, { error: 422, message: 'id is missing' })] })
    user.save(before)
    expect((await user.run(`auth login --with-token --store ${remote.url}`, { stdin: token })).code).toBe(0)
    const tokens = { ...before.tokens, [remote.url]: { token, savedAt: expect.any(String) } }
    expect(user.saved).toMatchObject({ ...before, tokens })
  })

  test.each([
    ['at the top', '"__proto__":{"a":1}'],
    ['as the name of a store', '"stores":{"__proto__":{"address":"/a.db"}}'],
    ['in a store', '"stores":{"team":{"address":"/a.db","__proto__":{"a":1}}}'],
    ['as an address', '"tokens":{"__proto__":{"token":"a","savedAt":"b"}}'],
    ['with a token', '"tokens":{"https://a":{"token":"a","savedAt":"b","__proto__":{"a":1}}}'],
  ])('also one called __proto__, %s', async (_, text) => {
    const user = new World()
    user.save(`{"version":1,${text}}`)
    expect((await user.run('config set timeout 3m')).code).toBe(0)
    expect(readFileSync(user.file, 'utf8').replaceAll(/\s/g, '')).toContain(text)
  })
})

/** A value as text in which the order of keys does not matter, and in which "__proto__" is a key like others. */
function entriesOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value).map(([key, field]) => [key, entriesOf(field)] as const)
  return entries.toSorted(([a], [b]) => (a < b ? -1 : 1))
}
