import { expect, test } from 'vitest'
import { hashToken } from '../../../src/server/authenticate.js'
import { pageRows } from '../../../src/stores/query.js'
import type { DirectStore } from '../../../src/stores/store.js'
import { rights, type Token, type TokenStore } from '../../../src/stores/tokens.js'

const [created, expires, revoked] = [new Date(1.7e12), new Date(1.9e12 + 1), new Date(1.8e12)]

const tokenWithoutNote = {
  note: undefined,
  rights: ['create'],
  createdAt: created,
  expiresAt: undefined,
} as const
const fullToken = {
  note: `it's "ours"`,
  rights: ['create', 'update'],
  createdAt: created,
  expiresAt: expires,
} as const

/** What a store must do that a service can be put in front of. `open` gives an empty one. */
export function describeTokens(open: () => Promise<DirectStore>): void {
  test('a token is found by its digest, with all its properties', async () => {
    const { tokens } = await open()
    const added = await tokens.add(hashToken('one'), fullToken)
    expect(added).toStrictEqual({ id: added.id, ...fullToken, revokedAt: undefined })
    expect(typeof added.id).toBe('bigint')
    expect(await tokens.find(hashToken('one'))).toStrictEqual(added)
    expect(await tokens.find(hashToken('two'))).toBeUndefined()
  })

  test('a token is revoked once, and its number is never used again', async () => {
    const { tokens } = await open()
    const first = await tokens.add(hashToken('one'), tokenWithoutNote)
    const gone = { ...first, revokedAt: revoked }
    for (const time of [revoked, expires])
      expect(await tokens.revoke(first.id, time)).toStrictEqual(gone)
    expect(await tokens.revoke(first.id + 1n, revoked)).toBeUndefined()
    expect(await tokens.find(hashToken('one'))).toStrictEqual(gone)
    const otherFields = { ...tokenWithoutNote, note: '', rights: ['read', 'delete'] } as const
    const second = await tokens.add(hashToken('two'), otherFields)
    expect(second.id).toBeGreaterThan(first.id)
    expect(await readTokenPages(tokens)).toStrictEqual([[gone, second]])
  })

  test('tokens are listed in pages, none of which is empty', async () => {
    const { tokens } = await open()
    expect(await readTokenPages(tokens)).toEqual([])
    const digests = Array.from({ length: pageRows }, (_, index) => hashToken(`${index}`))
    for (let index = 0; index < pageRows; index += 100)
      await Promise.all(
        digests.slice(index, index + 100).map((digest) => tokens.add(digest, tokenWithoutNote)),
      )
    const last = await tokens.add(hashToken('last'), tokenWithoutNote)
    const [firstPage, ...otherPages] = await readTokenPages(tokens)
    expect([firstPage?.length, otherPages]).toStrictEqual([pageRows, [[last]]])
  })

  test('a direct store has all rights, and can create plants', async () => {
    const store = await open()
    expect([await store.findRights(), await store.check()]).toEqual([rights, undefined])
  })
}

async function readTokenPages(tokens: TokenStore): Promise<Token[][]> {
  const pages: Token[][] = []
  for await (const page of tokens.list()) pages.push(page)
  return pages
}
