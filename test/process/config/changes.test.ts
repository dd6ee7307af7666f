import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { acquireLock } from '../../../src/platform/file-lock.js'
import { canTrace } from '../../helpers/sandbox/linux.js'
import { waitForResult } from '../../helpers/sandbox/process.js'
import { findNextPosition, listErrorsToInject, scaleRounds } from '../../helpers/sandbox/rounds.js'
import { Sandbox, toJsonResult } from '../../helpers/sandbox/sandbox.js'
import { buildSqliteOptions } from '../../helpers/sandbox/store.js'

const set = 'config set timeout 8s'
const before = { version: 1, timeout: '7s' }
const after = { version: 1, timeout: '8s' }
const both = ['settings.json', 'settings.json.lock']

test('processes that write settings at the same time lose no change, and readers see whole files', async () => {
  const user = new Sandbox({})
  const names = Array.from({ length: Math.min(scaleRounds(8), 100) }, (_, index) => `s${index}`)
  const env = { PLANTS_TIMEOUT: '5m' }
  const add = (name: string) => user.spawn(`stores add ${name} /${name}.db`, { env })
  let isOver = false
  const adding = Promise.all(names.map(add)).finally(() => {
    isOver = true
  })
  while (!isOver) {
    expect((await user.run('stores list')).code).toBe(0)
    await new Promise(setImmediate)
  }
  expect((await adding).filter(({ code, err }) => code !== 0 || err !== '')).toEqual([])
  const stores = Object.fromEntries(names.map((name) => [name, { address: `/${name}.db` }]))
  expect(user.saved).toEqual({ version: 1, stores })
  expect(readdirSync(user.config)).toEqual(both)
})

test('a change that waits for the lock ends at once on a signal', async () => {
  const user = new Sandbox(before)
  const release = await acquireLock(`${user.file}.lock`, 0, buildSqliteOptions().runtime)
  const waiting = user.start(set)
  await expect.poll(() => isWaiting(waiting.pid), { interval: 5 }).toBe(true)
  waiting.kill('SIGINT')
  expect(await waitForResult(waiting)).toMatchObject({ code: 130, out: '' })
  release()
  expect(user.saved).toEqual(before)
})

/** Whether a process has opened the lock that it waits for. */
function isWaiting(pid: number | undefined): boolean {
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder).some((fd) => linkOf(`${folder}/${fd}`).endsWith('.lock'))
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

/**
 * Changes settings while strace injects a fault into system calls.
 *
 * @param paths only calls on these files count, if there are any
 */
function changeWith(user: Sandbox, inject: string, paths: string[] = []) {
  const trace = ['-e', `trace=${inject.replace(/:.*/, '')}`, '-e', `inject=${inject}`]
  const own = paths.flatMap((path) => ['-P', path])
  return user.spawn(set, {}, 'strace', '-D', '-o', 'log', ...own, ...trace)
}

describe.runIf(canTrace)('settings (needs strace)', () => {
  test('stay as they were when only a part of the new ones is written', async () => {
    const user = new Sandbox(before)
    const text = readFileSync(user.file, 'utf8')
    const { code, err } = await changeWith(user, 'pwrite64:retval=10:when=1+')
    expect([code, err]).toEqual([
      74,
      expect.stringContaining('only a part of them could be written'),
    ])
    expect([readFileSync(user.file, 'utf8'), readdirSync(user.config)]).toEqual([text, both])
  })

  const calls = ['?mkdir,mkdirat', '?rename,renameat,renameat2', 'fsync', 'pwrite64', 'openat']
  const faults = calls.flatMap((call) =>
    ['signal=KILL', ...listErrorsToInject(call).map((error) => `error=${error}`)].map(
      // Directories are made where there were no settings.
      (fault) => [call, fault, !call.includes('mkdir')] as const,
    ),
  )

  test.each(faults)(
    'are the old or the new ones, and can be changed again, after each call of %s with %s; saved before: %s',
    async (call, fault, isSaved) => {
      const saved = isSaved ? before : undefined
      for (let when = 1, isHit = true; isHit; when = findNextPosition(when))
        isHit = await expectOldOrNew(call, `${call}:${fault}:when=${when}`, saved)
    },
  )
})

/** Changes settings once with the fault. Returns whether it was met: it may come too late. */
async function expectOldOrNew(
  call: string,
  inject: string,
  old: typeof before | undefined,
): Promise<boolean> {
  const user = new Sandbox(old)
  // Node itself opens many files: of these calls only those on our own paths count.
  const names = ['', '/settings.json', '/settings.json.new', '/settings.json.lock']
  const own = names.map((name) => user.config + name)
  const paths = call === 'openat' ? own : []
  const { code, out } = await changeWith(user, inject, paths)
  const isHit = code === undefined || user.read('log').includes('INJECTED')
  const { saved } = user
  expect(saved).toBeOneOf(isHit ? [after, old] : [after])
  expect(code).toBeOneOf(isHit ? [undefined, 0, 2, 74] : [0])
  // What was said to be saved is saved.
  if (out !== '' || code === 0) expect(saved).toEqual(after)
  const next = await user.run('config set output json')
  expect(next).toEqual(toJsonResult({ name: 'output', value: 'json' }))
  expect(user.saved).toEqual({ version: 1, ...(saved as object | undefined), output: 'json' })
  expect(readdirSync(user.config)).toEqual(both)
  return isHit
}
