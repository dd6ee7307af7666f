import { chownSync, linkSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { backoff } from '../../../src/platform/clock.js'
import { holdLock } from '../../../src/platform/file-lock.js'
import { DatabaseSync } from '../../helpers/database.js'
import { openOptions } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temporary.js'

describe('a lock is not taken', () => {
  let folder: string
  let victim: string
  let bytes: Buffer

  beforeEach(() => {
    folder = temporaryFolder()
    victim = join(folder, 'victim.db')
    const db = new DatabaseSync(victim)
    db.exec('PRAGMA journal_mode = WAL; CREATE TABLE songs (id INTEGER) STRICT')
    db.close()
    bytes = readFileSync(victim)
  })

  test.each<[string, string, (lock: string) => void]>([
    ['on a link', 'it is not a regular file', (lock) => symlinkSync(victim, lock)],
    ['on a file with a second name', 'it has more than one hard link', (lock) => linkSync(victim, lock)],
  ])('%s', async (_, why, make) => {
    make(join(folder, 'lock'))
    await expectRefused(why)
  })

  test.runIf(process.getuid?.() === 0)('on a file of another user', async () => {
    writeFileSync(join(folder, 'lock'), bytes)
    chownSync(join(folder, 'lock'), 65_534, 65_534)
    await expectRefused('it belongs to another user')
  })

  async function expectRefused(why: string): Promise<void> {
    const lock = join(folder, 'lock')
    await expect(
      holdLock(lock, { ...openOptions(), trusts: (uid) => uid === process.getuid?.() }, async () => undefined),
    ).rejects.toMatchObject({
      kind: 'unwritable',
      message: `Could not acquire the lock ${lock}: ${why}`,
      hint: 'Remove it when no plants process is running',
    })
    expect(readFileSync(victim).equals(bytes)).toBe(true)
    expect(readFileSync(lock).equals(bytes)).toBe(true)
  }
})

test('a lock whose file is removed afterwards is held by one at a time', async () => {
  const folder = temporaryFolder()
  let holders = 0
  const hold = () =>
    holdLock(join(folder, 'lock'), { ...openOptions(), trusts: () => true, isTemporary: true }, async () => {
      holders += 1
      await new Promise(setImmediate)
      const most = holders
      holders -= 1
      return most
    })
  expect(await Promise.all(Array.from({ length: 20 }, hold))).toEqual(Array(20).fill(1))
  expect(readdirSync(folder)).toEqual([])
})

test.each([
  [0, 0, 5],
  [0, 0.5, 7.5],
  [3, 0, 40],
  [9, 0, 50],
  [5000, 1, 100],
])('the backoff before attempt %i is between half and all of what it may be at most', (attempt, random, milliseconds) => {
  expect(backoff(attempt, { base: 10, max: 100, random: () => random })).toBe(milliseconds)
})
