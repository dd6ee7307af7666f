import { expect, test } from 'vitest'
import { authenticate, hashToken } from '../../../src/server/authenticate.js'
import { HttpError } from '../../../src/server/http-error.js'
import { TokenCache } from '../../../src/server/token-cache.js'
import { closeAfterTest, openFile } from '../../helpers/sandbox/store.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'

const evening = Date.UTC(2026, 0, 1, 22)

/** What requests with a token get, by milliseconds after the evening: its name, or the error. */
async function useToken(expires?: number) {
  const file = `${createTemporaryFolder()}/plants.db`
  const { tokens } = closeAfterTest(await openFile(file))
  await tokens.add(hashToken('token'), {
    note: undefined,
    rights: ['read'],
    createdAt: new Date(evening),
    expiresAt: expires === undefined ? undefined : new Date(evening + expires),
  })
  let passed = 0
  const cache = new TokenCache(tokens, { now: () => passed, getTimeMs: () => evening + passed })
  const at = async (milliseconds: number) => {
    passed = milliseconds
    try {
      return (await authenticate('Bearer token', (token) => cache.findCaller(token))).name
    } catch (error) {
      if (error instanceof HttpError) return error.response.status
      throw error
    }
  }
  const hold = () => cache.findCaller('token')
  return { at, hold, revoke: () => tokens.revoke(1n, new Date(evening)) }
}

test('a token is accepted exactly until it expires', async () => {
  const { at } = await useToken(7_200_000)
  expect([await at(7_199_999), await at(7_200_000), await at(7_200_001)]).toEqual(['1', 401, 401])
})

test('a revoked token is rejected within half a second', async () => {
  const { at, revoke } = await useToken()
  expect(await at(0)).toBe('1')
  await revoke()
  expect([await at(499), await at(500)]).toEqual(['1', 401])
})

test('a connection learns that its token is revoked when it is asked for the second time', async () => {
  const { at, hold, revoke } = await useToken()
  const caller = await hold()
  await revoke()
  await at(0)
  expect(caller?.isAccepted()).toBe(true)
  await at(500)
  expect(caller?.isAccepted()).toBe(false)
})
