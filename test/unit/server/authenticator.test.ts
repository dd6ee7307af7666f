import { expect, test } from 'vitest'
import { HttpError } from '../../../src/server/answer.js'
import { authenticate, digestOf, tokensOfStore } from '../../../src/server/authenticator.js'
import { SqliteStore } from '../../../src/stores/sqlite/store.js'
import { closedAfterTest, fileAddress, openOptions } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const hour = 3_600_000
const refused = 'This token is not accepted'

const evening = Date.UTC(2026, 0, 1, 22)

/** A store with these tokens, which expire so many milliseconds after the evening, and a runtime that starts then. */
async function storeWith(tokens: Record<string, number | undefined>) {
  const file = fileAddress(`${temporaryFolder()}/plants.db`)
  const store = closedAfterTest(await SqliteStore.open(file, openOptions())).tokens
  for (const [token, expires] of Object.entries(tokens)) {
    const expiresAt = expires === undefined ? undefined : new Date(evening + expires)
    await store.add(digestOf(token), {
      note: undefined,
      rights: ['read'],
      createdAt: new Date(evening),
      expiresAt,
    })
  }
  const runtime = { passed: 0, now: () => runtime.passed, time: () => evening + runtime.passed }
  return { store, runtime, find: tokensOfStore(store, runtime.now, runtime.time) }
}

/** What requests with a token get at a time: its name, or why it is not accepted. */
async function tokenInUse(expires?: number) {
  const { store, runtime, find } = await storeWith({ token: expires })
  const at = async (milliseconds: number) => {
    runtime.passed = milliseconds
    try {
      return (await authenticate('Bearer token', find)).name
    } catch (error) {
      if (error instanceof HttpError && error.status === 401) return error.message
      throw error
    }
  }
  return { at, revoke: () => store.revoke(1n, new Date(evening)) }
}

test('a token is accepted until exactly its expiry', async () => {
  const { at } = await tokenInUse(2 * hour)
  expect(await at(2 * hour - 1)).toBe('1')
  expect([await at(2 * hour), await at(2 * hour + 1)]).toEqual([refused, refused])
})

test('a revoked token is rejected within half a second', async () => {
  const { at, revoke } = await tokenInUse()
  expect(await at(0)).toBe('1')
  await revoke()
  expect([await at(499), await at(500)]).toEqual(['1', refused])
})
