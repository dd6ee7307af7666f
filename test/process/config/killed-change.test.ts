import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { canTrace, killAt } from '../../helpers/linux.js'
import { bin, resultOf, startUnder } from '../../helpers/process.js'
import { nextPlace } from '../../helpers/rounds.js'
import { answer, World } from '../../helpers/world.js'

const calls = [
  ...['?mkdir,mkdirat', '?rename,renameat,renameat2', 'fsync', '?unlink,unlinkat', '?rmdir', 'pwrite64'],
  ...['?chmod,fchmod,fchmodat', 'openat'],
]

describe.runIf(canTrace)('a process that is killed before one of its system calls (needs strace)', () => {
  test.each([
    ['creates', {}],
    ['replaces', { version: 1, output: 'json' }],
  ])('and %s settings, leaves them whole, and free for the next', { timeout: 120_000 }, async (_, old) => {
    const results = await Promise.allSettled(calls.map((call) => killAtEach(call, old)))
    for (const result of results) if (result.status === 'rejected') throw result.reason
  })

  /** Kills a change before the first call of a kind, another before a later one, until one comes to its end. */
  async function killAtEach(call: string, old: object): Promise<void> {
    const changed = { ...old, version: 1, timeout: '1m' }
    for (let when = 1, isOver = false; !isOver; when = nextPlace(when)) {
      const user = new World()
      if (Object.keys(old).length > 0) user.save({ ...old })
      const { signal, stdout } = await changeAndKillAt(call, when, user)
      const saved = user.saved ?? {}
      const next = await user.spawn('stores add next /next.db --output json')
      isOver = signal === undefined
      expect({ call, when, signal, saved, next, after: user.saved, names: readdirSync(user.config) }).toEqual({
        ...{ call, when, signal: signal && 'SIGKILL', names: ['settings.json'] },
        saved: stdout === '' ? expect.toBeOneOf([old, changed]) : changed,
        next: answer({ name: 'next', address: '/next.db' }),
        after: { version: 1, ...saved, stores: { next: { address: '/next.db' } } },
      })
    }
  }

  function changeAndKillAt(call: string, when: number, { config, home, env }: World) {
    // node itself opens many files: of these calls only those on our own paths count
    const own = ['', '/settings.json', '/settings.json.lock'].flatMap((name) => ['-P', config + name])
    const trace = [...killAt(call, when), ...(call === 'openat' ? own : [])]
    return execa('strace', [...trace, bin, 'config', 'set', 'timeout', '1m'], {
      ...{ reject: false, stdin: 'ignore', extendEnv: false },
      env: { PATH: process.env['PATH'], HOME: home, ...env },
    })
  }
})

test.runIf(canTrace)(
  'a process that continues without the lock says so, and does not change the file (needs strace)',
  async () => {
    const user = new World({ timeout: '7s' })
    const log = join(user.home, 'log')
    const inject = ['-D', '-o', log, '-e', 'trace=fsync', '-e', 'inject=fsync:signal=STOP:when=1']
    const stopped = startUnder('strace', inject, ['config', 'set', 'timeout', '8s'], user.home, { env: user.env })
    const said = () => (existsSync(log) ? readFileSync(log, 'utf8') : '')
    await expect.poll(said, { timeout: 20_000 }).toContain('stopped by SIGSTOP')
    for (const name of readdirSync(user.config))
      if (name !== 'settings.json') rmSync(join(user.config, name), { recursive: true }) // as the next holder does
    stopped.kill('SIGCONT')
    const { code, out, err } = await resultOf(stopped)
    const why = 'settings.json.lock, because this one did not run for 8 s\n  Run the same command again\n'
    expect({ code, out, err }).toEqual({ code: 4, out: '', err: expect.stringContaining(why) })
    expect(user.saved).toEqual({ version: 1, timeout: '7s' })
  },
)
