import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, watch } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { canTrace } from '../../helpers/linux.js'
import { leaveLock } from '../../helpers/lock.js'
import { resultOf, startUnder } from '../../helpers/process.js'
import { rounds } from '../../helpers/rounds.js'
import { canBecome, under } from '../../helpers/stranger.js'
import { World } from '../../helpers/world.js'

test.each([
  ['a folder that they make', ['a/b/c']],
  ['links to one file', ['a', 'b']],
])('processes that change %s at once lose nothing, and it is read whole', async (_, folders) => {
  const user = new World()
  for (const folder of folders.length > 1 ? folders : []) {
    user.write('shared.json', '{"version":1}')
    mkdirSync(join(user.home, folder), { mode: 0o700 })
    symlinkSync('../shared.json', join(user.home, folder, 'settings.json'))
  }
  const places = folders.map((folder) => ({ PLANTS_CONFIG_DIR: join(user.home, folder) }))
  const names = Array.from({ length: Math.min(rounds(12), 50) }, (_, index) => `s${index}`)
  let isOver = false
  const adding = Promise.all(
    names.map((name, at) => user.spawn(`stores add ${name} /${name}.db`, { env: { ...places[at % places.length] } })),
  ).finally(() => {
    isOver = true
  })
  const seen = new Set<number>()
  while (!isOver) {
    seen.add((await user.run('stores list', { env: { ...places[0] } })).code)
    await new Promise(setImmediate)
  }
  expect((await adding).filter(({ code, err }) => code !== 0 || err !== '')).toEqual([])
  expect([...seen]).toEqual([0])
  const stores = Object.fromEntries(names.map((name) => [name, { address: `/${name}.db` }]))
  expect(JSON.parse(user.read(`${folders[0]}/settings.json`))).toEqual({ version: 1, stores })
  for (const folder of folders) expect(readdirSync(join(user.home, folder))).toEqual(['settings.json'])
})

test.each([
  ['SIGINT', 130, 'Interrupted'],
  ['SIGTERM', 143, 'Terminated'],
] as const)('a change that waits for the lock ends at once on %s, with exit code %i', async (signal, code, message) => {
  const user = new World({ timeout: '1m' })
  leaveLock(`${user.file}.lock`) // of another machine
  const names: (string | null)[] = []
  const watcher = watch(user.config, (_, name) => names.push(name))
  const waiting = user.start('config set output json')
  // looks for a heartbeat
  await expect.poll(() => names.some((name) => name?.startsWith('.settings.json.lock.')), { interval: 5 }).toBe(true)
  waiting.kill(signal)
  expect(await resultOf(waiting)).toEqual({ code, out: '', err: expect.stringMatching(`^plants: ${message}`) })
  watcher.close()
  expect(user.saved).toEqual({ version: 1, timeout: '1m' })
})

test.runIf(canBecome)(
  'a process without a heartbeat of its own, as before the first, takes over nothing (needs root and setpriv)',
  async () => {
    const user = new World({ timeout: '7s' })
    const holder = leaveLock(`${user.file}.lock`)
    const args = ['--bounding-set', '-all', '--inh-caps', '-all', 'sh', '-c', 'umask 0400; exec "$0" "$@"']
    const { code, err } = await under(user, 'setpriv', args, 'config set timeout 8s --timeout 100ms')
    expect([code, err]).toEqual([4, expect.stringMatching(/^plants: Another process held .*\.lock for 0\.1 s\n/)])
    expect([existsSync(holder), user.saved]).toEqual([true, { version: 1, timeout: '7s' }])
  },
)

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
