import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { canMount, canTrace } from '../../helpers/linux.js'
import { errorsOf, nextPlace } from '../../helpers/rounds.js'
import { unwritable } from '../../helpers/settings-file.js'
import { under } from '../../helpers/stranger.js'
import { answer, printed, World } from '../../helpers/world.js'

const set = 'config set timeout 8s'
const unsaved = (user: World, why: string) => ({ code: 74, out: '', err: unwritable(user, why) })

/** Runs a command after a script that mounts something. */
function mounted(user: World, script: string, command: string, input?: string) {
  const options = input === undefined ? {} : { input }
  return under(user, 'unshare', ['-rm', 'sh', '-c', `cd "$PLANTS_CONFIG_DIR" && ${script}`], command, options)
}

describe.runIf(canMount)('settings (needs unshare)', () => {
  test('on a read-only disk are read', async () => {
    const user = new World({ timeout: '7s' })
    const script = 'mount --bind . . && mount -o remount,ro,bind "$PWD" && cd "$HOME" && exec "$0" "$@"'
    const run = (command: string) => mounted(user, script, command)
    expect(await run('config get timeout')).toEqual(printed('7s\n'))
    expect((await run('create --id 1 --name Fern')).code).toBe(0)
    for (const command of [set, 'stores add garden ./garden.db'])
      expect(await run(command)).toEqual(unsaved(user, 'the disk is read-only'))
    expect([user.saved, readdirSync(user.config)]).toEqual([{ version: 1, timeout: '7s' }, ['settings.json']])
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
      out: '74\n7s\nfiller\nsettings.json\n{"name":"timeout","value":"9s"}\nsettings.json\n',
      err: unwritable(user, 'no space left on the disk'),
    })
  })

  test('on a disk with room for a part of the file stay as they are', async () => {
    const user = new World()
    mkdirSync(user.config)
    const stores = Array.from({ length: 300 }, (_, n) => [`s${n}`, { address: `/${'x'.repeat(30)}/number-${n}.db` }])
    const saved = JSON.stringify({ version: 1, timeout: '7s', stores: Object.fromEntries(stores) })
    const script = `
      mount -t tmpfs -o size=128k,mode=700 tmpfs "$PWD" && cd "$PWD" || exit 99
      umask 077; cat > settings.json; head -c 92000 /dev/zero > filler
      "$0" config set timeout 8s; echo "$?"; ls; cat settings.json`
    expect(await mounted(user, script, '', saved)).toEqual({
      code: 0,
      out: `74\nfiller\nsettings.json\n${saved}`,
      err: unwritable(user, 'no space left on the disk'),
    })
  })

  test('in a file that is mounted by itself are read, and not changed', async () => {
    const user = new World({ timeout: '7s' })
    const script = 'mount --bind settings.json settings.json && exec "$0" "$@"'
    expect(await mounted(user, script, 'config get timeout')).toEqual(printed('7s\n'))
    expect(await mounted(user, script, set)).toEqual(unsaved(user, 'it is a mount point'))
    expect([user.saved, readdirSync(user.config)]).toEqual([{ version: 1, timeout: '7s' }, ['settings.json']])
  })
})

test.runIf(canTrace)('settings of which only a part is written stay as they are (needs strace)', async () => {
  const user = new World({ timeout: '7s' })
  const before = readFileSync(user.file, 'utf8')
  const inject = ['-D', '-o', 'log', '-e', 'trace=pwrite64', '-e', 'inject=pwrite64:retval=10:when=1+']
  expect(await under(user, 'strace', inject, set)).toEqual(unsaved(user, 'no space left on the disk'))
  expect([readFileSync(user.file, 'utf8'), readdirSync(user.config)]).toEqual([before, ['settings.json']])
})

test('in a snap, the file is replaced as elsewhere, so that a kill leaves the old one or the new one', async () => {
  const user = new World({ timeout: '7s' })
  const { ino } = statSync(user.file)
  await user.spawn(set, { env: { SNAP: '/snap/code/1' } })
  expect(user.saved).toEqual({ version: 1, timeout: '8s' })
  expect(statSync(user.file).ino).not.toBe(ino)
})

const calls = [
  ...['?mkdir,mkdirat', 'openat', 'pwrite64', 'fsync', '?chmod,fchmod,fchmodat', '?rename,renameat,renameat2'],
  '?rmdir,unlinkat',
]

test.runIf(canTrace).each(calls.flatMap((call) => errorsOf(call).map((error) => [call, error] as const)))(
  'when %s fails with %s, settings are old or new, as the exit code says (needs strace)',
  async (call, error) => {
    for (let when = 1, isOver = false; !isOver; when = nextPlace(when)) {
      const user = new World({ timeout: '7s' })
      // node itself opens many files
      const own = ['', '/settings.json', '/settings.json.lock'].flatMap((name) => ['-P', user.config + name])
      const inject = ['-e', `trace=${call}`, '-e', `inject=${call}:error=${error}:when=${when}`]
      const strace = ['-D', '-o', 'log', ...inject, ...(call === 'openat' ? own : [])]
      const { code, err } = await under(user, 'strace', strace, set)
      isOver = !user.read('log').includes('INJECTED')
      const next = await user.spawn('config set output json')
      expect({ when, code, err, saved: user.saved, next }).toEqual({
        ...{ when, err: code === 0 ? '' : expect.stringMatching(/^plants: .*settings/) },
        code: isOver ? 0 : expect.toBeOneOf([0, 2, 74]),
        saved: { version: 1, timeout: code === 0 ? '8s' : '7s', output: 'json' },
        next: answer({ name: 'output', value: 'json' }),
      })
      expect(readdirSync(user.config)).toEqual(['settings.json'])
    }
  },
)
