import { describe, expect, test } from 'vitest'
import { digestOf } from '../../src/service/tokens.js'
import type { ServedStore } from '../../src/stores/store.js'

const [created, expires, revoked] = [new Date(1_700_000_000_000), new Date(1_900_000_000_001), new Date(1_800_000_000_000)]

/** What a store must do that a service can be put in front of. `open` gives an empty one. */
export function describeServedStore(name: string, open: () => Promise<ServedStore>): void {
  describe(`${name} keeps tokens: it`, () => {
    test('finds one by its digest, with all that it was given', async () => {
      const { tokens } = await open()
      const added = await tokens.add(digestOf('one'), { note: `it's "ours"`, createdAt: created, expiresAt: expires })
      expect(added).toStrictEqual({ id: added.id, note: `it's "ours"`, createdAt: created, expiresAt: expires, revokedAt: undefined })
      expect(typeof added.id).toBe('bigint')
      expect(await tokens.find(digestOf('one'))).toStrictEqual(added)
      expect(await tokens.find(digestOf('two'))).toBeUndefined()
    })

    test('lists them in the order in which they were made, and never gives a number twice', async () => {
      const { tokens } = await open()
      const one = await tokens.add(digestOf('one'), { note: undefined, createdAt: created, expiresAt: undefined })
      await tokens.revoke(one.id, revoked)
      const two = await tokens.add(digestOf('two'), { note: '', createdAt: created, expiresAt: undefined })
      expect(two.id).toBeGreaterThan(one.id)
      expect(await tokens.list()).toStrictEqual([{ ...one, revokedAt: revoked }, two])
    })

    test('revokes one, once, and tells when there is none', async () => {
      const { tokens } = await open()
      const { id } = await tokens.add(digestOf('one'), { note: undefined, createdAt: created, expiresAt: undefined })
      expect(await tokens.revoke(id, revoked)).toMatchObject({ id, revokedAt: revoked })
      expect(await tokens.revoke(id, expires)).toMatchObject({ id, revokedAt: revoked })
      expect(await tokens.revoke(id + 1n, revoked)).toBeUndefined()
      expect((await tokens.find(digestOf('one')))?.revokedAt).toEqual(revoked)
    })

    test('says that plants can be created', async () => {
      await expect((await open()).check()).resolves.toBeUndefined()
    })
  })
}
