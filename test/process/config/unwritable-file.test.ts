import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { canMount, canTrace } from '../../helpers/linux.js'
import { plants, resultOf, startUnder } from '../../helpers/process.js'
import { errorsOf, nextPlace } from '../../helpers/rounds.js'
import { unwritable } from '../../helpers/settings-file.js'
import { answer, printed, World } from '../../helpers/world.js'

describe('where nothing may be written', () => {
  test.runIf(canMount).each([
    ['where settings were changed before', true],
    ['where they were not', false],
  ])('a read-only disk is read from, %s (needs unshare)', async (_, isChanged) => {
    const user = new World()
    user.save({ timeout: '7s' })
    if (isChanged) await user.run('config set timeout 7s')
    const before = readdirSync(user.config)
    expect(await onReadOnlyDisk(user, 'config get timeout')).toEqual(printed('7s\n'))
    expect((await onReadOnlyDisk(user, 'create --id 1 --name Fern --store ./garden.db')).code).toBe(0)
    const refused = { code: 74, out: '', err: unwritable(user, 'the disk is read-only') }
    for (const command of ['config set timeout 8s', 'stores add garden ./garden.db']) {
      expect(await onReadOnlyDisk(user, command)).toEqual(refused)
    }
    expect([user.saved, readdirSync(user.config)]).toEqual([{ version: 1, timeout: '7s' }, before])
  })

  test.runIf(canMount)('a full disk leaves the file as it is (needs unshare)', async () => {
    const user = new World()
    mkdirSync(user.config)
    const script = `
      mount -t tmpfs -o size=64k,mode=700 tmpfs "$PLANTS_CONFIG_DIR" && cd "$PLANTS_CONFIG_DIR" || exit 99
      "$0" config set timeout 7s > /dev/null || exit 98
      cp settings.json "$HOME/before"
      cat /dev/zero > filler 2> /dev/null
      "$0" config set timeout 8s; echo "$?"
      "$0" config get timeout --output text; cmp settings.json "$HOME/before"; ls
      rm filler; "$0" config set timeout 9s; ls`
    const { code, out, err } = await resultOf(
      startUnder('unshare', ['-rm', 'sh', '-c', script], [], user.home, { env: user.env }),
    )
    expect({ code, out, err }).toEqual({
      code: 0,
      out: '74\n7s\nfiller\nsettings.json\n{"name":"timeout","value":"9s"}\nsettings.json\n',
      err: unwritable(user, 'no space left on the disk'),
    })
  })

  test.runIf(canMount)(
    'a disk with room for a part of the file leaves its content as it is (needs unshare)',
    async () => {
      const user = new World()
      const stores = Object.fromEntries(
        Array.from({ length: 300 }, (_, n) => [`s${n}`, { address: `/${'x'.repeat(30)}/number-${n}.db` }]),
      )
      const saved = JSON.stringify({ version: 1, timeout: '7s', stores })
      mkdirSync(user.config)
      const script = `
      mount -t tmpfs -o size=128k,mode=700 tmpfs "$PLANTS_CONFIG_DIR" && cd "$PLANTS_CONFIG_DIR" || exit 99
      umask 077; cat > settings.json; head -c 92000 /dev/zero > filler
      "$0" config set timeout 8s; echo "$?"; ls; cat settings.json`
      const started = startUnder('unshare', ['-rm', 'sh', '-c', script], [], user.home, { env: user.env, input: saved })
      const { code, out, err } = await resultOf(started)
      expect({ code, out, err }).toEqual({
        code: 0,
        out: `74\nfiller\nsettings.json\n${saved}`,
        err: unwritable(user, 'no space left on the disk'),
      })
    },
  )
})

test.runIf(canTrace)(
  'settings that are written only in part, each time, leave the file as it is (needs strace)',
  async () => {
    const user = new World()
    user.save({ timeout: '7s' })
    const before = readFileSync(user.file, 'utf8')
    const inject = [
      '-D',
      '-o',
      join(user.home, 'log'),
      '-e',
      'trace=pwrite64',
      '-e',
      'inject=pwrite64:retval=10:when=1+',
    ]
    const started = startUnder('strace', inject, ['config', 'set', 'timeout', '8s'], user.home, { env: user.env })
    expect(await resultOf(started)).toEqual({ code: 74, out: '', err: unwritable(user, 'no space left on the disk') })
    expect([readFileSync(user.file, 'utf8'), readdirSync(user.config)]).toEqual([before, ['settings.json']])
  },
)

test('in a snap, the file is replaced as elsewhere, so that a kill leaves the old one or the new one', async () => {
  const user = new World()
  user.save({ timeout: '7s' })
  const { ino } = statSync(user.file)
  await plants(['config', 'set', 'timeout', '8s'], user.home, { env: { ...user.env, SNAP: '/snap/code/1' } })
  expect(user.saved).toEqual({ version: 1, timeout: '8s' })
  expect(statSync(user.file).ino).not.toBe(ino)
})

describe('where the file is not to be replaced', () => {
  test.runIf(canMount)('because it is mounted by itself, it is read and not changed (needs unshare)', async () => {
    const user = new World()
    user.save({ timeout: '7s' })
    const script =
      'mount --bind "$PLANTS_CONFIG_DIR/settings.json" "$PLANTS_CONFIG_DIR/settings.json" && exec "$0" "$@"'
    const under = (command: string) =>
      startUnder('unshare', ['-rm', 'sh', '-c', script], command.split(' '), user.home, { env: user.env })
    expect(await resultOf(under('config get timeout'))).toEqual(printed('7s\n'))
    expect(await resultOf(under('config set timeout 8s'))).toEqual({
      code: 74,
      out: '',
      err: unwritable(user, 'it is a mount point'),
    })
    expect(readdirSync(user.config)).toEqual(['settings.json'])
    expect(user.saved).toEqual({ version: 1, timeout: '7s' })
  })

  const calls = [
    '?mkdir,mkdirat',
    'openat',
    'pwrite64',
    'fsync',
    '?chmod,fchmod,fchmodat',
    '?rename,renameat,renameat2',
    '?rmdir,unlinkat',
  ]
  test.runIf(canTrace).each(calls.flatMap((call) => errorsOf(call).map((error) => [call, error] as const)))(
    'because %s fails with %s, it is old or new, as the exit code says (needs strace)',
    async (call, error) => {
      for (let when = 1, isOver = false; !isOver; when = nextPlace(when)) {
        const user = new World()
        user.save({ timeout: '7s' })
        const log = join(user.home, 'log')
        const own = ['', '/settings.json', '/settings.json.lock'].flatMap((name) => ['-P', user.config + name])
        const inject = [
          '-e',
          `trace=${call}`,
          '-e',
          `inject=${call}:error=${error}:when=${when}`,
          ...(call === 'openat' ? own : []),
        ]
        const started = startUnder(
          'strace',
          ['-D', '-o', log, ...inject],
          ['config', 'set', 'timeout', '8s'],
          user.home,
          { env: user.env },
        )
        const { code, err } = await resultOf(started)
        isOver = !readFileSync(log, 'utf8').includes('INJECTED')
        const next = await plants(['config', 'set', 'output', 'json'], user.home, { env: user.env })
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
})

/** Runs a command where the settings folder is mounted read-only. */
async function onReadOnlyDisk(user: World, command: string) {
  const script = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'
  const under = ['-rm', 'sh', '-c', script, 'sh', user.config]
  return resultOf(startUnder('unshare', under, command.split(' '), user.home, { env: user.env, cwd: user.home }))
}
