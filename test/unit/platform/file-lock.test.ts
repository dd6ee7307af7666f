import { execFileSync } from 'node:child_process'
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { backoff } from '../../../src/platform/clock.js'
import { holdLock } from '../../../src/platform/file-lock.js'
import { withLockedTempDir } from '../../../src/platform/locked-temp-dir.js'
import { heldLock, leaveLock } from '../../helpers/lock.js'
import { modeOf } from '../../helpers/settings-file.js'
import { openOptions } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temporary.js'

let path: string

beforeEach(() => {
  path = join(temporaryFolder(), 'lock')
})

/** Acquires the lock, if it is free. */
function tryLock(): Promise<string> {
  const options = { ...openOptions(), timeout: 0, trusts: (uid: number) => uid === process.getuid?.() }
  return holdLock(path, options, async ({ directory }) => directory)
}

const isHeld = {
  type: 'unavailable',
  message: expect.stringMatching(/^Another process held .*lock for 0 s$/),
  retryable: true,
}

describe('a lock is not acquired', () => {
  test.each<[string, string, () => void]>([
    ['on a link', 'it is not a directory', () => symlinkSync(dirname(path), path)],
    ['on a file', 'it is not a directory', () => writeFileSync(path, 'mine')],
    ['on a pipe', 'it is not a directory', () => execFileSync('mkfifo', [path])],
    [
      'on a directory with other files',
      'it contains other files',
      () => mkdirSync(join(path, 'notes'), { recursive: true }),
    ],
  ])('%s', async (_, why, make) => {
    make()
    await expectRejected(why)
  })

  test.runIf(process.getuid?.() === 0)('on a directory of another user (needs root)', async () => {
    mkdirSync(path)
    chownSync(path, 65_534, 65_534)
    await expectRejected('it belongs to another user')
  })

  async function expectRejected(why: string): Promise<void> {
    const before = readdirSync(dirname(path), { recursive: true })
    await expect(tryLock()).rejects.toMatchObject({
      type: 'unwritable',
      message: `Could not acquire the lock ${path}: ${why}`,
      hint: 'Remove it when no plants process is running',
    })
    expect(readdirSync(dirname(path), { recursive: true })).toEqual(before)
  }

  test('while another process holds it, and is acquired after that', async () => {
    const { release } = await heldLock(path)
    await expect(tryLock()).rejects.toMatchObject(isHeld)
    await release()
    await tryLock()
  })

  test('while a process of another machine has a heartbeat', async () => {
    leaveLock(path, { age: 5 })
    await expect(tryLock()).rejects.toMatchObject(isHeld)
  })
})

test('a heartbeat that is a pipe is not waited for', async () => {
  replaceHeartbeat((heartbeat) => execFileSync('mkfifo', [heartbeat]))
  await expect(tryLock()).rejects.toMatchObject(isHeld)
})

describe('a lock is taken over at once', () => {
  test.each<[string, () => unknown]>([
    ['after 8 s without a heartbeat of another machine', () => leaveLock(path, { age: 8.5 })],
    ['whose heartbeat is in the future', () => leaveLock(path, { age: -3600 })],
    ['without a heartbeat', () => rmSync(join(leaveLock(path), 'heartbeat'))],
    ['with a link as its heartbeat', () => replaceHeartbeat((heartbeat) => symlinkSync(path, heartbeat))],
    ['without a holder', () => mkdirSync(path)],
    ['of a process that has ended', async () => leaveLock(path, { holder: await holderOf(ended()) })],
  ])('%s', async (_, leave) => {
    await leave()
    await tryLock()
    expect(readdirSync(dirname(path))).toEqual([])
  })

  test('of a process whose number another one has now', async () => {
    leaveLock(path, { holder: await holderOf(process.pid), age: 8.5 })
    await tryLock()
  })

  /** The name of a process of this machine as a holder. */
  async function holderOf(pid: number): Promise<string> {
    return basename(await tryLock()).replace(/-\d+-/, `-${pid}-`)
  }

  function ended(): number {
    return parseInt(execFileSync('sh', ['-c', 'echo $$'], { encoding: 'utf8' }), 10)
  }
})

function replaceHeartbeat(make: (heartbeat: string) => void): void {
  const heartbeat = join(leaveLock(path), 'heartbeat')
  rmSync(heartbeat)
  make(heartbeat)
}

test('who has lost the lock can replace no file, and leaves the lock to the other', async () => {
  const held = await heldLock(path)
  held.assertHeld()
  const [file, target] = [join(held.directory, 'new'), join(dirname(path), 'target')]
  writeFileSync(file, 'new')
  renameSync(held.directory, join(dirname(path), 'gone'))
  const other = leaveLock(path)
  expect(() => renameSync(file, target)).toThrow('ENOENT')
  expect(held.assertHeld).toThrow(`Another process has taken over ${path}, because this one did not run for 8 s`)
  await held.release()
  expect([existsSync(target), existsSync(other)]).toEqual([false, true])
})

test.each([
  ['that is free', () => {}],
  ['that a killed process has left', () => void leaveLock(path, { age: 60 })],
])('a lock %s is held by one at a time, and leaves nothing', async (_, leave) => {
  leave()
  const log = `${path}.log`
  const hold = () =>
    holdLock(path, { ...openOptions(), trusts: () => true }, async () => {
      writeFileSync(log, 'a', { flag: 'a' })
      await new Promise(setImmediate)
      writeFileSync(log, 'z', { flag: 'a' })
    })
  await Promise.all(Array.from({ length: 20 }, hold))
  expect(readFileSync(log, 'utf8')).toBe('az'.repeat(20))
  expect(readdirSync(dirname(path))).toEqual([basename(log)])
})

test('what processes have left that were killed while they waited is removed, but not what waits', async () => {
  const names = { empty: '.lock.plants-aaaaaa', ended: '.lock.plants-bbbbbb', waiting: '.lock.plants-cccccc' }
  const beside = (name: string) => join(dirname(path), name)
  mkdirSync(beside(names.empty))
  leaveLock(beside(names.ended), { age: 8.5 })
  leaveLock(beside(names.waiting))
  await tryLock()
  expect(readdirSync(dirname(path))).toEqual([names.waiting])
})

test('a lock that changes hands is waited for longer than the timeout', async () => {
  const clock = { ...openOptions().clock, now: () => time }
  let time = 0
  const holders = Array.from({ length: 5 }, (_, n) => `${'0'.repeat(16)}-1-0000000${n}`)
  const random = () => {
    const [next] = holders.splice(0, 1)
    rmSync(path, { recursive: true, force: true })
    if (next !== undefined) leaveLock(path, { holder: next })
    time += 600
    return 0
  }
  leaveLock(path)
  const options = { clock: { ...clock, random }, timeout: 1000, trusts: () => true }
  await holdLock(path, options, async () => expect(time).toBe(3600))
})

test('the lock of a temporary directory is for its owner alone', async () => {
  const mode = await withLockedTempDir(path, 'copy', async (copy) => modeOf(join(dirname(copy), 'lock')))
  expect(mode).toBe('600')
})

test.each([
  [0, 0, 5],
  [0, 0.5, 7.5],
  [3, 0, 40],
  [9, 0, 50],
  [5000, 1, 100],
])(
  'the backoff before attempt %i is between half and all of what it may be at most',
  (attempt, random, milliseconds) => {
    expect(backoff(attempt, { base: 10, max: 100, random: () => random })).toBe(milliseconds)
  },
)
