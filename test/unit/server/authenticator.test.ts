import { expect, test } from 'vitest'
import { authenticator, digestOf, freshness, tokensOfStore } from '../../../src/server/authenticator.js'
import type { HttpError } from '../../../src/server/http-error.js'
import { SqliteStore } from '../../../src/stores/sqlite/sqlite-store.js'
import { closedAfterTest, fileAddress, openOptions } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const hour = 3_600_000

test('the use of a token is saved once a day, and not at all when it is not accepted', async () => {
  const { tokens } = closedAfterTest(
    await SqliteStore.open(fileAddress(`${temporaryFolder()}/plants.db`), openOptions()),
  )
  const evening = Date.UTC(2026, 0, 1, 22)
  const added = {
    note: undefined,
    rights: ['create'],
    createdAt: new Date(evening),
    expiresAt: new Date(evening + 30 * hour),
  } as const
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

/** Requests with a token at any time, in milliseconds from the expiry of the token, if it has one. */
async function tokenInUse({ expires }: { expires: boolean }) {
  const file = fileAddress(`${temporaryFolder()}/plants.db`)
  const { tokens } = closedAfterTest(await SqliteStore.open(file, openOptions()))
  const expiry = Date.UTC(2026, 0, 1)
  const added = { note: undefined, rights: ['read'], createdAt: new Date(expiry - hour) } as const
  await tokens.add(digestOf('token'), { ...added, expiresAt: expires ? new Date(expiry) : undefined })
  await tokens.markUsed(1n, new Date(expiry + hour)) // so that no request saves its use
  let passed = 0
  const find = tokensOfStore(tokens, { now: () => passed, time: () => expiry + passed, warn: expect.fail })
  const authenticate = authenticator(find, () => passed)
  const errorAt = async (milliseconds: number, connection: object) => {
    passed = milliseconds
    try {
      await authenticate('Bearer token', connection)
      return undefined
    } catch (error) {
      return (error as HttpError).error
    }
  }
  return { errorAt, revoke: () => tokens.revoke(1n, new Date(expiry)) }
}

test.each([
  [-1, undefined],
  [0, 401],
  [1, 401],
])('%i ms after the expiry of a token, a request gets %s, also when it was just looked up', async (time, error) => {
  const { errorAt } = await tokenInUse({ expires: true })
  expect([await errorAt(time, {}), await errorAt(time, {})]).toEqual([error, error])
  const other = await tokenInUse({ expires: true })
  expect([await other.errorAt(-2, {}), await other.errorAt(time, {})]).toEqual([undefined, error])
})

test('a revoked token is rejected on every connection within a second, and on a new one after half of that', async () => {
  const { errorAt, revoke } = await tokenInUse({ expires: false })
  const [first, second, third] = [{}, {}, {}]
  expect(await errorAt(0, first)).toBe(undefined)
  await revoke()
  expect(await errorAt(freshness - 1, second)).toBe(undefined)
  expect([await errorAt(freshness, third), await errorAt(freshness, first)]).toEqual([401, 401])
  const last = freshness - 1 + freshness / 2
  expect([await errorAt(last - 1, second), await errorAt(last, second), last < 1000]).toEqual([undefined, 401, true])
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
  expect(warnings).toEqual(
    Array.from({ length: 2 }, () => 'The last use of token 7 could not be saved: permission denied'),
  )
})

test('a token is accepted until exactly its expiry, on a connection that has just used it too, and told why not', async () => {
  const { tokens } = closedAfterTest(
    await SqliteStore.open(fileAddress(`${temporaryFolder()}/plants.db`), openOptions()),
  )
  const start = Date.UTC(2026, 0, 1, 23, 59, 59)
  const expiresAt = new Date(start + 1000)
  await tokens.add(digestOf('token'), { note: undefined, rights: ['read'], createdAt: new Date(start), expiresAt })
  let passed = 0
  const find = tokensOfStore(tokens, { now: () => passed, time: () => start + passed, warn: expect.fail })
  const authenticate = authenticator(find, () => passed)
  const connection = {}
  const attempt = async (milliseconds: number, of = connection) => {
    passed = milliseconds
    try {
      return (await authenticate('Bearer token', of)).name
    } catch (error) {
      return (error as HttpError).message
    }
  }
  const expired = 'The token expired on 2026-01-02'
  expect(await attempt(999)).toBe('1')
  expect(await attempt(1000)).toBe(expired)
  expect([await attempt(999, {}), await attempt(1000, {}), await attempt(1001, {})]).toEqual(['1', expired, expired])
  await tokens.revoke(1n, new Date(Date.UTC(2026, 5, 7)))
  expect(await attempt(1001 + freshness)).toBe('The token was revoked on 2026-06-07')
})
