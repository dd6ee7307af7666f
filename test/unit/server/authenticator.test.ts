import { expect, test } from 'vitest'
import { digestOf, tokensOfStore } from '../../../src/server/authenticator.js'
import { SqliteStore } from '../../../src/stores/sqlite/store.js'
import { closedAfterTest, fileAddress, openOptions } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const hour = 3_600_000

test('the use of a token is saved once a day, and not at all when it is not accepted', async () => {
  const { tokens } = closedAfterTest(await SqliteStore.open(fileAddress(`${temporaryFolder()}/plants.db`), openOptions()))
  const evening = Date.UTC(2026, 0, 1, 22)
  const added = { note: undefined, rights: ['create'], createdAt: new Date(evening), expiresAt: new Date(evening + 30 * hour) } as const
  for (const token of ['used', 'unused']) await tokens.add(digestOf(token), added)
  let passed = 0
  const find = tokensOfStore(tokens, { now: () => passed, time: () => evening + passed, warn: expect.fail })
  const usedAfter = async (hours: number, token: string) => {
    passed = hours * hour
    await find(token)
    for await (const [one, two] of tokens.list()) return [one?.lastUsedAt, two?.lastUsedAt]
    return undefined
  }
  const at = (hours: number) => new Date(evening + hours * hour)
  expect(await usedAfter(0, 'unknown')).toEqual([undefined, undefined])
  await expect.poll(() => usedAfter(0, 'used')).toEqual([at(0), undefined])
  expect(await usedAfter(1, 'used')).toEqual([at(0), undefined])
  await expect.poll(() => usedAfter(3, 'used')).toEqual([at(3), undefined])
  expect(await usedAfter(31, 'unused')).toEqual([at(3), undefined])
})

test('a token whose use cannot be saved is accepted, with a warning a day', async () => {
  const token = {
    id: 7n,
    note: undefined,
    rights: [],
    createdAt: new Date(0),
    expiresAt: undefined,
    revokedAt: undefined,
    lastUsedAt: undefined,
  }
  const unused = () => expect.fail()
  const markUsed = async () => Promise.reject(new Error('permission denied'))
  const warnings: string[] = []
  let now = 0
  const clock = { now: () => now, time: () => now }
  const store = { find: async () => token, add: unused, list: unused, revoke: unused, markUsed }
  const find = tokensOfStore(store, { ...clock, warn: (message) => void warnings.push(message) })
  for (now = 0; now < 30 * hour; now += hour) expect(await find('any')).toEqual({ name: '7', rights: [] })
  expect(warnings).toEqual(Array.from({ length: 2 }, () => 'The last use of token 7 could not be saved: permission denied'))
})
