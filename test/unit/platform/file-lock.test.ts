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
import { beforeEach, expect, test } from 'vitest'
import { backoff } from '../../../src/platform/clock.js'
import { holdLock } from '../../../src/platform/file-lock.js'
import { heldLock, leaveLock } from '../../helpers/lock.js'
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

async function expectHeld(): Promise<void> {
  const message = expect.stringMatching(/^Another process held .*lock for 0 s$/)
  await expect(tryLock()).rejects.toMatchObject({ type: 'unavailable', message, retryable: true })
}

function replaceHeartbeat(make: (heartbeat: string) => void): void {
  const heartbeat = join(leaveLock(path), 'heartbeat')
  rmSync(heartbeat)
  make(heartbeat)
}

const foreign: [string, () => unknown, why: string][] = [
  ['a link', () => symlinkSync(temporaryFolder(), path), 'it is not a directory'],
  ['a file', () => writeFileSync(path, 'mine'), 'it is not a directory'],
  [
    'a directory with other files',
    () => mkdirSync(join(path, 'notes'), { recursive: true }),
    'it contains other files',
  ],
  [
    'a directory of another user (needs root)',
    () => [mkdirSync(path), chownSync(path, 65_534, 65_534)],
    'it belongs to another user',
  ],
]
const isRoot = process.getuid?.() === 0

test.each(foreign.filter(([what]) => isRoot || !what.endsWith('(needs root)')))(
  'a lock is not acquired on %s',
  async (_, make, why) => {
    make()
    const before = readdirSync(dirname(path), { recursive: true })
    await expect(tryLock()).rejects.toMatchObject({
      type: 'unwritable',
      message: `Could not acquire the lock ${path}: ${why}`,
      hint: 'Remove it when no plants process is running',
    })
    expect(readdirSync(dirname(path), { recursive: true })).toEqual(before)
  },
)

test('a lock is not acquired while another process holds it', async () => {
  const { release } = await heldLock(path)
  await expectHeld()
  await release()
  await tryLock()
})

test('a lock is not acquired while a process of another machine has a heartbeat', async () => {
  leaveLock(path, { age: 5 })
  await expectHeld()
})

test('a heartbeat that is a pipe is not waited for', async () => {
  replaceHeartbeat((heartbeat) => execFileSync('mkfifo', [heartbeat]))
  await expectHeld()
})

/** The name of a process of this machine as a holder. */
async function holderOf(pid: number): Promise<string> {
  return basename(await tryLock()).replace(/-\d+-/, `-${pid}-`)
}

test.each<[string, () => unknown]>([
  ['after 8 s without a heartbeat of another machine', () => leaveLock(path, { age: 8.5 })],
  ['whose heartbeat is in the future', () => leaveLock(path, { age: -3600 })],
  ['without a heartbeat', () => rmSync(join(leaveLock(path), 'heartbeat'))],
  ['with a link as its heartbeat', () => replaceHeartbeat((heartbeat) => symlinkSync(path, heartbeat))],
  ['without a holder', () => mkdirSync(path)],
  [
    'of a process that has ended',
    async () => leaveLock(path, { holder: await holderOf(Number(execFileSync('sh', ['-c', 'echo $$']))) }),
  ],
  [
    'of a process whose id another one has now',
    async () => leaveLock(path, { holder: await holderOf(process.pid), age: 8.5 }),
  ],
])('a lock is taken over at once %s', async (_, leave) => {
  await leave()
  await tryLock()
  expect(readdirSync(dirname(path))).toEqual([])
})

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

test('what was left by killed processes that waited is removed, but not what waits', async () => {
  const [empty = '', ended = '', waiting = ''] = ['a', 'b', 'c'].map((letter) =>
    join(dirname(path), `.lock.plants-${letter.repeat(6)}`),
  )
  mkdirSync(empty)
  leaveLock(ended, { age: 8.5 })
  leaveLock(waiting)
  await tryLock()
  expect(readdirSync(dirname(path))).toEqual([basename(waiting)])
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

test.each([
  [0, 0, 5],
  [0, 0.5, 7.5],
  [3, 0, 40],
  [9, 0, 50],
  [5000, 1, 100],
])('the backoff before attempt %i with the random number %d is %d ms', (attempt, random, milliseconds) => {
  expect(backoff(attempt, { base: 10, max: 100, random: () => random })).toBe(milliseconds)
})
