import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { canTrace } from '../../helpers/sandbox/linux.js'
import { findNextPosition, listErrorsToInject } from '../../helpers/sandbox/rounds.js'
import { Sandbox, toJsonResult } from '../../helpers/sandbox/sandbox.js'

const set = 'config set timeout 8s'
const before = { version: 1, timeout: '7s' }
const after = { version: 1, timeout: '8s' }
const both = ['settings.json', 'settings.json.lock']

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
