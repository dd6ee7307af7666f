import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { acquireLock } from '../../../src/platform/file-lock.js'
import { openOptions } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const { runtime } = openOptions()

let path: string

beforeEach(() => {
  path = join(temporaryFolder(), 'lock')
})

test.each([
  ['a directory', 'unable to open database file', () => mkdirSync(path)],
  ['a file of somebody else', 'file is not a database', () => writeFileSync(path, 'notes\n')],
])('a lock is not acquired on %s, which is left alone', async (_, why, make) => {
  make()
  await expect(acquireLock(path, 0, runtime)).rejects.toMatchObject({
    kind: 'unwritable',
    message: expect.stringMatching(`^Could not lock ${path}: .*${why}`),
    hint: 'Choose a directory on a local disk',
  })
  expect(readdirSync(dirname(path))).toEqual([basename(path)])
})

test('a lock is held by one at a time, and its file stays empty', async () => {
  let holders = 0
  const hold = async () => {
    const release = await acquireLock(path, 3_600_000, runtime)
    holders += 1
    await new Promise(setImmediate)
    expect(holders).toBe(1)
    holders -= 1
    release()
  }
  await Promise.all(Array.from({ length: 20 }, hold))
  expect([readdirSync(dirname(path)), readFileSync(path, 'utf8')]).toEqual([['lock'], ''])
})

test('a lock that stays held is unavailable after the timeout', async () => {
  const release = await acquireLock(path, 0, runtime)
  const message = `Another process held ${path} for 0.05 s`
  await expect(acquireLock(path, 50, runtime)).rejects.toMatchObject({
    kind: 'unavailable',
    message,
  })
  release()
  const again = await acquireLock(path, 0, runtime)
  again()
})
