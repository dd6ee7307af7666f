import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { canTrace, killAt } from '../../helpers/linux.js'
import { bin, plants, resultOf, start, startUnder } from '../../helpers/process.js'
import { nextPlace, rounds } from '../../helpers/rounds.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { answer, World } from '../../helpers/world.js'

describe('a process that is killed while it changes settings', () => {
  test('leaves them whole, old or new, and free for the next', { timeout: rounds(60_000) }, async () => {
    const user = new World()
    const answered = new Set<string>()
    const asked = new Set<string>()
    for (let round = 0; round < rounds(3); round += 1) {
      const names = Array.from({ length: 4 }, (_, index) => `r${round}-${index}`)
      for (const name of names) asked.add(name)
      for (const name of await addAndKill(names, user)) answered.add(name)
      const stores = Object.keys(savedStores(user))
      expect({
        round,
        lost: [...answered].filter((name) => !stores.includes(name)),
        strange: stores.filter((name) => !asked.has(name)),
        list: (await user.run('stores list')).code,
        change: await user.run(`config set timeout ${round + 1}s --timeout 1s`),
        names: readdirSync(user.config),
      }).toEqual({
        round,
        lost: [],
        strange: [],
        list: 0,
        change: answer({ name: 'timeout', value: `${round + 1}s` }),
        names: ['settings.json'],
      })
    }
  })

  describe.runIf(canTrace)('before one of its system calls, each in its turn (needs strace)', () => {
    const calls = [
      '?mkdir,mkdirat',
      '?rename,renameat,renameat2',
      'fsync',
      '?unlink,unlinkat',
      '?rmdir',
      'pwrite64',
      '?chmod,fchmod,fchmodat',
      'openat',
    ]

    test.each([
      ['makes the file', false],
      ['replaces the file', true],
    ])('and that %s, leaves it whole, and the next change works at once', { timeout: 120_000 }, async (_, isThere) => {
      const base = temporaryFolder()
      const results = await Promise.allSettled(calls.map((call) => killAtEach(call, isThere, base)))
      for (const { status, ...rest } of results) if (status === 'rejected') throw (rest as PromiseRejectedResult).reason
    })

    /** Kills a change before the first call of a kind, another before a later one, until one comes to its end. */
    async function killAtEach(call: string, isThere: boolean, base: string): Promise<void> {
      const old = isThere ? { version: 1, output: 'json' } : {}
      for (let when = 1, isOver = false; !isOver; when = nextPlace(when)) {
        const folder = join(base, `${call.replace(/\W/g, '')}-${when}`)
        const config = join(folder, 'config')
        const env = { PLANTS_CONFIG_DIR: config }
        const { signal, stdout } = await changeAndKillAt(call, when, folder, old)
        const saved = read(config)
        const next = await plants(['stores', 'add', 'next', '/next.db', '--output', 'json'], folder, { env })
        isOver = signal === undefined
        expect({ call, when, signal, saved, next, after: read(config), names: readdirSync(config) }).toEqual({
          ...{ call, when, signal: signal && 'SIGKILL', names: ['settings.json'] },
          saved: stdout === '' ? expect.toBeOneOf([old, { ...old, ...changed }]) : { ...old, ...changed },
          next: answer({ name: 'next', address: '/next.db' }),
          after: { version: 1, ...saved, stores: { next: { address: '/next.db' } } },
        })
      }
    }

    const changed = { version: 1, timeout: '1m' }

    function read(config: string): object {
      const file = join(config, 'settings.json')
      return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {}
    }

    function changeAndKillAt(call: string, when: number, folder: string, old: object) {
      const config = join(folder, 'config')
      const isThere = Object.keys(old).length > 0
      mkdirSync(isThere ? config : folder, { recursive: true, mode: 0o700 })
      if (isThere) writeFileSync(join(config, 'settings.json'), JSON.stringify(old), { mode: 0o600 })
      // node itself opens many files: of these calls only those on our own paths count
      const paths =
        call === 'openat' ? ['', '/settings.json', '/settings.json.lock'].flatMap((name) => ['-P', config + name]) : []
      const trace = [...killAt(call, when), ...paths]
      return execa('strace', [...trace, bin, 'config', 'set', 'timeout', '1m'], {
        ...{ reject: false, stdin: 'ignore', extendEnv: false },
        env: { PATH: process.env['PATH'], HOME: folder, PLANTS_CONFIG_DIR: config },
      })
    }
  })
})

/**
 * Adds stores at once, and kills those that are still at it when something has happened in the folder as often as
 * chance says.
 */
async function addAndKill(names: string[], user: World): Promise<string[]> {
  mkdirSync(user.config, { recursive: true, mode: 0o700 })
  const answered: string[] = []
  const adds = names.map((name) => start(['stores', 'add', name, `/${name}.db`], user.home, { env: user.env }))
  for (const [index, name] of names.entries()) adds[index]?.stdout?.once('data', () => answered.push(name))
  let left = Math.ceil(Math.random() * 40)
  const watcher = watch(user.config, () => {
    left -= 1
    if (left === 0) for (const add of adds) add.kill('SIGKILL')
  })
  const results = await Promise.all(adds).finally(() => watcher.close())
  expect(results.filter(({ exitCode, signal }) => exitCode !== 0 && signal !== 'SIGKILL')).toEqual([])
  return answered
}

function savedStores(user: World): Record<string, unknown> {
  return existsSync(user.file) ? (JSON.parse(readFileSync(user.file, 'utf8')).stores ?? {}) : {}
}

test.runIf(canTrace)(
  'a process that continues without the lock says so, and does not change the file (needs strace)',
  async () => {
    const user = new World()
    user.save({ timeout: '7s' })
    const log = join(user.home, 'log')
    const inject = ['-D', '-o', log, '-e', 'trace=fsync', '-e', 'inject=fsync:signal=STOP:when=1']
    const stopped = startUnder('strace', inject, ['config', 'set', 'timeout', '8s'], user.home, { env: user.env })
    const said = () => (existsSync(log) ? readFileSync(log, 'utf8') : '')
    await expect.poll(said, { timeout: 20_000 }).toContain('stopped by SIGSTOP')
    for (const name of readdirSync(user.config)) {
      if (name !== 'settings.json') rmSync(join(user.config, name), { recursive: true }) // as the next holder does
    }
    stopped.kill('SIGCONT')
    const { code, out, err } = await resultOf(stopped)
    expect({ code, out, err, saved: user.saved }).toEqual({
      ...{ code: 4, out: '', saved: { version: 1, timeout: '7s' } },
      err: expect.stringContaining(
        'settings.json.lock, because this one did not run for 8 s\n  Run the same command again\n',
      ),
    })
  },
)
