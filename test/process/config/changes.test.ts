import { mkdirSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { heldLock } from '../../helpers/crafted-files.js'
import { canMount, canTrace } from '../../helpers/linux.js'
import { resultOf } from '../../helpers/process.js'
import { errorsOf, nextPlace, rounds } from '../../helpers/rounds.js'
import { unwritable } from '../../helpers/settings-file.js'
import { under } from '../../helpers/stranger.js'
import { answer, printed, World } from '../../helpers/world.js'

test('processes that change settings at once lose nothing, and they are read whole', async () => {
  const user = new World({})
  const names = Array.from({ length: Math.min(rounds(12), 100) }, (_, index) => `s${index}`)
  let isOver = false
  const adding = Promise.all(
    names.map((name) =>
      user.spawn(`stores add ${name} /${name}.db`, { env: { PLANTS_TIMEOUT: '5m' } }),
    ),
  ).finally(() => {
    isOver = true
  })
  const seen = new Set<number>()
  while (!isOver) {
    seen.add((await user.run('stores list')).code)
    await new Promise(setImmediate)
  }
  expect((await adding).filter(({ code, err }) => code !== 0 || err !== '')).toEqual([])
  expect([...seen]).toEqual([0])
  const stores = Object.fromEntries(names.map((name) => [name, { address: `/${name}.db` }]))
  expect(user.saved).toEqual({ version: 1, stores })
  expect(readdirSync(user.config)).toEqual(['settings.json', 'settings.json.lock'])
})

test('a change that waits for the lock ends at once on a signal', async () => {
  const user = new World({ timeout: '1m' })
  const { release } = await heldLock(`${user.file}.lock`)
  const waiting = user.start('config set output json')
  const isWaiting = () =>
    readdirSync(`/proc/${waiting.pid}/fd`).some((fd) => linkOf(waiting.pid, fd).endsWith('.lock'))
  await expect.poll(isWaiting, { interval: 5 }).toBe(true)
  waiting.kill('SIGINT')
  expect(await resultOf(waiting)).toEqual({
    code: 130,
    out: '',
    err: expect.stringMatching('^plants: Interrupted'),
  })
  release()
  expect(user.saved).toEqual({ version: 1, timeout: '1m' })
})

function linkOf(pid: number | undefined, fd: string): string {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`)
  } catch {
    return ''
  }
}

const set = 'config set timeout 8s'

const unsaved = (user: World, why: string) => ({ code: 74, out: '', err: unwritable(user, why) })

describe.runIf(canMount)('settings (needs unshare)', () => {
  /** Runs a command after a script that mounts something. */
  function mounted(user: World, script: string, command: string) {
    return under(
      user,
      'unshare',
      ['-rm', 'sh', '-c', `cd "$PLANTS_CONFIG_DIR" && ${script}`],
      command,
    )
  }

  test.each([
    [
      'on a read-only disk',
      'mount --bind . . && mount -o remount,ro,bind "$PWD"',
      'read-only file system',
    ],
    [
      'in a file that is mounted by itself',
      'mount --bind settings.json settings.json',
      'resource busy or locked',
    ],
  ])('%s are read, and not changed', async (_, script, why) => {
    const user = new World({ timeout: '7s' })
    const run = (command: string) =>
      mounted(user, `${script} && cd "$HOME" && exec "$0" "$@"`, command)
    expect(await run('config get timeout')).toEqual(printed('7s\n'))
    expect((await run('create --id 1 --name Fern')).code).toBe(0)
    expect(await run(set)).toEqual(unsaved(user, why))
    expect([user.saved, readdirSync(user.config)[0]]).toEqual([
      { version: 1, timeout: '7s' },
      'settings.json',
    ])
  })

  test('on a full disk stay as they are', async () => {
    const user = new World()
    mkdirSync(user.config)
    const script = `
      mount -t tmpfs -o size=64k,mode=700 tmpfs "$PWD" && cd "$PWD" || exit 99
      "$0" config set timeout 7s > /dev/null || exit 98
      cp settings.json "$HOME/before"
      cat /dev/zero > filler 2> /dev/null
      "$0" config set timeout 8s; echo "$?"
      "$0" config get timeout --output text; cmp settings.json "$HOME/before"; ls
      rm filler; "$0" config set timeout 9s; ls`
    expect(await mounted(user, script, '')).toEqual({
      code: 0,
      out: '74\n7s\nfiller\nsettings.json\nsettings.json.lock\n{"name":"timeout","value":"9s"}\nsettings.json\nsettings.json.lock\n',
      err: unwritable(user, 'no space left on device'),
    })
  })
})

test.runIf(canTrace)(
  'settings of which only a part is written stay as they are (needs strace)',
  async () => {
    const user = new World({ timeout: '7s' })
    const before = readFileSync(user.file, 'utf8')
    const inject = [
      '-D',
      '-o',
      'log',
      '-e',
      'trace=pwrite64',
      '-e',
      'inject=pwrite64:retval=10:when=1+',
    ]
    expect(await under(user, 'strace', inject, set)).toEqual(
      unsaved(user, 'no space left on device'),
    )
    expect([readFileSync(user.file, 'utf8'), readdirSync(user.config)]).toEqual([
      before,
      ['settings.json', 'settings.json.lock'],
    ])
  },
)

const calls = [
  ...[
    '?mkdir,mkdirat',
    '?rename,renameat,renameat2',
    'fsync',
    '?unlink,unlinkat',
    '?rmdir',
    'pwrite64',
  ],
  ...['?chmod,fchmod,fchmodat', 'openat'],
]
const old = { timeout: '7s' }

const done = { ...answer({ name: 'timeout', value: '8s' }), saved: { version: 1, timeout: '8s' } }

/** How a change of such settings may end with a fault, besides well. */
function endsOf(fault: string, before: object | undefined): object[] {
  const saved = before && { version: 1, ...before }
  const failed = { out: '', err: expect.stringMatching(/^plants: .*settings/), saved }
  if (fault !== 'signal=KILL')
    return [
      done,
      ...[2, 74].map((code) => ({ ...failed, code })),
      { ...failed, code: 74, saved: done.saved }, // whose name is not synced
    ]
  const killed = { ...done, code: undefined }
  return [killed, { ...killed, out: '' }, { ...killed, out: '', saved }]
}

test.runIf(canTrace)(
  'settings whose name is not synced are new, but not called saved (needs strace)',
  async () => {
    const user = new World({ timeout: '7s' })
    // the first is for the directory of the new file
    const inject = [
      '-D',
      '-o',
      'log',
      '-P',
      user.config,
      '-e',
      'trace=fsync',
      '-e',
      'inject=fsync:error=EIO:when=2',
    ]
    expect(await under(user, 'strace', inject, set)).toEqual(unsaved(user, 'i/o error'))
    expect(user.saved).toEqual(done.saved)
  },
)

describe.runIf(canTrace)(
  'settings are old or new, and free for the next change (needs strace):',
  () => {
    test.each(
      calls.flatMap((call) => [
        [call, 'signal=KILL', old] as const,
        [call, 'signal=KILL', undefined] as const,
        ...errorsOf(call).map((error) => [call, `error=${error}`, old] as const),
      ]),
    )('each %s in its turn with %s, on %j', async (call, fault, before) => {
      for (let when = 1, isHit = true; isHit; when = nextPlace(when)) {
        const user = new World(before)
        // node itself opens many files: of these calls only those on our own paths count
        const own = ['', '/settings.json', '/settings.json.lock'].flatMap((name) => [
          '-P',
          user.config + name,
        ])
        const inject = ['-e', `trace=${call}`, '-e', `inject=${call}:${fault}:when=${when}`]
        const result = await under(
          user,
          'strace',
          ['-D', '-o', 'log', ...inject, ...(call === 'openat' ? own : [])],
          set,
        )
        isHit = result.code === undefined || user.read('log').includes('INJECTED')
        const { saved } = user
        if (isHit) expect(endsOf(fault, before)).toContainEqual({ ...result, saved })
        else expect({ ...result, saved }).toEqual(done)
        expect(await user.spawn('config set output json')).toEqual(
          answer({ name: 'output', value: 'json' }),
        )
        expect(user.saved).toEqual({ version: 1, ...(saved as object | undefined), output: 'json' })
        expect(readdirSync(user.config)).toEqual(['settings.json', 'settings.json.lock'])
      }
    })
  },
)
