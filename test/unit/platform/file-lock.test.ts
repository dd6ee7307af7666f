import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { holdLock } from '../../../src/platform/file-lock.js'
import { isLinux } from '../../helpers/linux.js'
import { heldLock, leaveLock, silence } from '../../helpers/lock.js'
import { openOptions } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temporary.js'

let path: string

beforeEach(() => {
  path = join(temporaryFolder(), 'lock')
})

afterEach(() => {
  vi.useRealTimers()
})

/** Acquires the lock, if it is free, and returns what it contained. */
function tryLock(): Promise<string> {
  return holdLock(path, { clock: openOptions().clock, timeoutMs: 0 }, async () => readFileSync(path, 'utf8'))
}

async function expectHeld(): Promise<void> {
  const message = `Another process held ${path} for 0 s`
  await expect(tryLock()).rejects.toMatchObject({ type: 'unavailable', message, retryable: true })
  expect(readdirSync(dirname(path))).toEqual([basename(path)])
}

const foreign: [string, () => unknown][] = [
  ['a link', () => symlinkSync(join(temporaryFolder(), 'target'), path)],
  ['a directory', () => mkdirSync(join(path, 'notes'), { recursive: true })],
]

test.each(foreign.filter(([what]) => isLinux || what === 'a directory'))(
  'a lock is not acquired on %s',
  async (_, make) => {
    make()
    await expect(tryLock()).rejects.toMatchObject({
      type: 'unwritable',
      message: `Could not acquire the lock ${path}: it is not a regular file`,
      hint: 'Remove it when no plants process is running',
    })
    expect(readdirSync(dirname(path))).toEqual([basename(path)])
  },
)

test('a lock is not acquired while another process holds it', async () => {
  const { release } = await heldLock(path)
  await expectHeld()
  await release()
  await tryLock()
})

test('a lock is touched while it is held', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const { release, assertHeld } = await heldLock(path)
  silence(path, 60)
  vi.advanceTimersByTime(2000)
  await expectHeld()
  assertHeld()
  await release()
})

describe.each([
  ['as this machine', 0],
  ['an hour behind this machine', 3600],
  ['an hour before this machine', -3600],
])('on a disk with the same clock %s', (_, offset) => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + offset * 1000 })
  })

  /** `silence` goes by the clock of the machine, and the disk has another one. */
  const leave = (age: number) => leaveLock(path, { age: age + offset })

  test('a lock of another machine is held while it is touched', async () => {
    leave(8)
    await expectHeld()
  })

  test.each([10.5, -3600])('a lock of another machine that was touched %d s ago is taken over', async (age) => {
    leave(age)
    await tryLock()
    expect(readdirSync(dirname(path))).toEqual([])
  })
})

/** The name of a process of this machine as a holder. */
async function holderOf(pid: number): Promise<string> {
  return (await tryLock()).replace(/\n\d+\n/, `\n${pid}\n`)
}

const ended = () => Number(execFileSync('sh', ['-c', 'echo $$']))

test.each<[string, () => unknown]>([
  ['of a process that has ended', async () => leaveLock(path, { holder: await holderOf(ended()) })],
  [
    'of a process whose id another one has now, after 10 s',
    async () => leaveLock(path, { holder: await holderOf(process.pid), age: 10.5 }),
  ],
  ['that names nobody yet, after 2 s', () => leaveLock(path, { holder: '', age: 2.5 })],
])('a lock is taken over at once %s', async (_, leave) => {
  await leave()
  await tryLock()
  expect(readdirSync(dirname(path))).toEqual([])
})

test.each<[string, () => unknown]>([
  ['of a process that exists', async () => leaveLock(path, { holder: await holderOf(process.pid) })],
  [
    'of a process with the id of one that has ended here',
    () => leaveLock(path, { holder: `elsewhere\n${ended()}\nx` }),
  ],
  ['that names nobody yet', () => leaveLock(path, { holder: '' })],
])('a lock is not taken over at once %s', async (_, leave) => {
  await leave()
  await expectHeld()
})

test('who has lost the lock is told, and leaves the lock to the other', async () => {
  const held = await heldLock(path)
  held.assertHeld()
  renameSync(path, join(dirname(path), 'gone'))
  const message = `Another process has taken over ${path}, because this one did not run for 10 s`
  expect(held.assertHeld).toThrow(message)
  leaveLock(path)
  expect(held.assertHeld).toThrow(message)
  await held.release()
  expect(existsSync(path)).toBe(true)
})

test.each([
  ['that is free', () => {}],
  ['that a killed process has left', () => leaveLock(path, { age: 60 })],
])('a lock %s is held by one at a time, and leaves nothing', async (_, leave) => {
  leave()
  const log = `${path}.log`
  const hold = () =>
    holdLock(path, { clock: openOptions().clock, timeoutMs: 3_600_000 }, async ({ assertHeld }) => {
      writeFileSync(log, 'a', { flag: 'a' })
      await new Promise(setImmediate)
      assertHeld()
      writeFileSync(log, 'z', { flag: 'a' })
    })
  await Promise.all(Array.from({ length: 20 }, hold))
  expect(readFileSync(log, 'utf8')).toBe('az'.repeat(20))
  expect(readdirSync(dirname(path))).toEqual([basename(log)])
})

test('a lock that changes hands is waited for longer than the timeout', async () => {
  let time = 0
  const holders = Array.from({ length: 5 }, (_, n) => `elsewhere\n1\n${n}\n`)
  const random = () => {
    const [next] = holders.splice(0, 1)
    if (next === undefined) silence(path, 60)
    else leaveLock(path, { holder: next })
    time += 600
    return 0
  }
  leaveLock(path)
  const clock = { ...openOptions().clock, now: () => time, random }
  await holdLock(path, { clock, timeoutMs: 1000 }, async () => expect(time).toBe(3600))
})
