import { describe, expect, test } from 'vitest'
import { hashToken } from '../../../src/server/authenticate.js'
import { pageRows } from '../../../src/stores/query.js'
import type { DirectStore } from '../../../src/stores/store.js'
import { rights, type Token, type TokenStore } from '../../../src/stores/tokens.js'

const [created, expires, revoked] = [new Date(1.7e12), new Date(1.9e12 + 1), new Date(1.8e12)]

const plain = {
  note: undefined,
  rights: ['create'],
  createdAt: created,
  expiresAt: undefined,
} as const
const some = {
  note: `it's "ours"`,
  rights: ['create', 'update'],
  createdAt: created,
  expiresAt: expires,
} as const

/** What a store must do that a service can be put in front of. `open` gives an empty one. */
export function describeTokens(name: string, open: () => Promise<DirectStore>): void {
  describe(`${name} keeps tokens: it`, () => {
    test('finds one by its digest, with all that it was given', async () => {
      const { tokens } = await open()
      const added = await tokens.add(hashToken('one'), some)
      expect(added).toStrictEqual({ id: added.id, ...some, revokedAt: undefined })
      expect(typeof added.id).toBe('bigint')
      expect(await tokens.find(hashToken('one'))).toStrictEqual(added)
      expect(await tokens.find(hashToken('two'))).toBeUndefined()
    })

    test('revokes one, once, and never gives its number again', async () => {
      const { tokens } = await open()
      const one = await tokens.add(hashToken('one'), plain)
      const gone = { ...one, revokedAt: revoked }
      for (const time of [revoked, expires])
        expect(await tokens.revoke(one.id, time)).toStrictEqual(gone)
      expect(await tokens.revoke(one.id + 1n, revoked)).toBeUndefined()
      expect(await tokens.find(hashToken('one'))).toStrictEqual(gone)
      const others = { ...plain, note: '', rights: ['read', 'delete'] } as const
      const two = await tokens.add(hashToken('two'), others)
      expect(two.id).toBeGreaterThan(one.id)
      expect(await pagesOf(tokens)).toStrictEqual([[gone, two]])
    })

    test('lists them in pages, and none when there is none', async () => {
      const { tokens } = await open()
      expect(await pagesOf(tokens)).toEqual([])
      const digests = Array.from({ length: pageRows }, (_, index) => hashToken(`${index}`))
      for (let at = 0; at < pageRows; at += 100)
        await Promise.all(digests.slice(at, at + 100).map((digest) => tokens.add(digest, plain)))
      const last = await tokens.add(hashToken('last'), plain)
      const [first, ...others] = await pagesOf(tokens)
      expect([first?.length, others]).toStrictEqual([pageRows, [[last]]])
    })

    test('has all rights, and can create plants', async () => {
      const store = await open()
      expect([await store.findRights(), await store.check()]).toEqual([rights, undefined])
    })
  })
}

async function pagesOf(tokens: TokenStore): Promise<Token[][]> {
  const pages: Token[][] = []
  for await (const page of tokens.list()) pages.push(page)
  return pages
}
