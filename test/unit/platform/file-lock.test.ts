import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { acquireLock } from '../../../src/platform/file-lock.js'
import { isLinux } from '../../helpers/linux.js'
import { openOptions } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const { runtime } = openOptions()
const hint = 'Remove it when no plants process is running'

let path: string

beforeEach(() => {
  path = join(temporaryFolder(), 'lock')
})

const foreign: [string, string, () => unknown][] = [
  [
    'a link',
    'it is not a regular file',
    () => symlinkSync(join(temporaryFolder(), 'target'), path),
  ],
  ['a directory', 'it is not a regular file', () => mkdirSync(path)],
  ['a file of somebody else', 'it is not a lock', () => writeFileSync(path, 'notes\n')],
]

test.each(foreign.filter(([what]) => isLinux || what !== 'a link'))(
  'a lock is not acquired on %s',
  async (_, why, make) => {
    make()
    const error = {
      type: 'unwritable',
      message: `Could not acquire the lock ${path}: ${why}`,
      hint,
    }
    await expect(acquireLock(path, 0, runtime)).rejects.toMatchObject(error)
    expect(readdirSync(dirname(path))).toEqual([basename(path)])
  },
)

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
    type: 'unavailable',
    message,
    retryable: true,
  })
  release()
  const again = await acquireLock(path, 0, runtime)
  again()
})

test('what an earlier version has left in a lock does not hold it', async () => {
  writeFileSync(path, `elsewhere boot pid:[4026531836]\n1\n${crypto.randomUUID()}\n`)
  const release = await acquireLock(path, 0, runtime)
  await expect(acquireLock(path, 0, runtime)).rejects.toMatchObject({ kind: 'unavailable' })
  release()
})
