import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { canTrace } from '../../helpers/linux.js'
import { modeOf } from '../../helpers/settings-file.js'
import { under } from '../../helpers/stranger.js'
import { World } from '../../helpers/world.js'

const set = 'config set timeout 1m'
const umask = (mask: string) => ['-c', `umask ${mask}; exec "$0" "$@"`]

test.runIf(canTrace)(
  'a change is on the disk, with the name of the file, before it is reported (needs strace)',
  async () => {
    const user = new World()
    mkdirSync(user.config)
    const strace = ['-f', '-y', '-o', 'trace', '-e', 'trace=rename,renameat,renameat2,fsync,fdatasync,write']
    const { code } = await under(user, 'strace', strace, set)
    const calls = user.read('trace').replaceAll(/^\d+ +/gm, '')
    const at = (pattern: RegExp) => calls.search(pattern)
    const renamed = at(/^rename.*"[^"]*\/settings\.json"(, 0)?\) = 0/m)
    const synced = at(new RegExp(`^fsync\\(\\d+<${user.config}>\\)`, 'm'))
    const isInOrder = 0 < renamed && renamed < synced && synced < at(/^write\(1<.*timeout/m)
    expect({ code, isInOrder }).toEqual({ code: 0, isInOrder: true })
  },
)

describe('without a place for settings', () => {
  const env = { HOME: '', PLANTS_CONFIG_DIR: '' }

  test('whatever needs none works', async () => {
    const user = new World()
    for (const command of ['create --id 1 --name Fern', 'list', 'config list', 'config get timeout'])
      expect(await user.spawn(command, { env })).toMatchObject({ code: 0, err: '' })
  })

  test('nothing can be saved, and the message says how', async () => {
    const user = new World()
    const message = /^plants: There is no absolute path for the settings, only .*\n {2}Set HOME and XDG_CONFIG_HOME to /
    expect(await user.spawn(set, { env })).toEqual({ code: 2, out: '', err: expect.stringMatching(message) })
    expect(readdirSync(user.home)).toEqual([])
  })
})

describe.skipIf(process.platform === 'win32')('what is created', () => {
  test.each(['000', '022', '0177'])('is for its owner alone, under umask %s', async (mask) => {
    const user = new World()
    const env = { PLANTS_CONFIG_DIR: join(user.home, 'a/b/plants') }
    expect(await under(user, 'sh', umask(mask), set, { env })).toMatchObject({ code: 0, err: '' })
    const paths = ['a', 'a/b', 'a/b/plants', 'a/b/plants/settings.json']
    expect(paths.map((path) => modeOf(join(user.home, path)))).toEqual(['700', '700', '700', '600'])
  })

  test.runIf(canTrace)('has its mode from the beginning, and is created exclusively (needs strace)', async () => {
    const user = new World()
    const tracer = ['strace', '-f', '-o', 'log', '-e', 'trace=openat,mkdir,?mkdirat,creat']
    expect((await under(user, 'sh', [...umask('000'), ...tracer], set)).code).toBe(0)
    const made = user
      .read('log')
      .split('\n')
      .filter((line) => line.includes(user.config) && /O_CREAT|mkdir/.test(line) && !line.includes('EEXIST'))
      .map((line) => line.replace(/.*"(.*?)", (?:\S+, )?(\d+)\).*/, '$1 $2').replace(`${user.config}/`, ''))
    expect(made.filter((line) => !/ 0[67]00$/.test(line))).toEqual([])
    expect(made[0]).toBe(`${user.config} 0700`)
    expect(made).toContainEqual(expect.stringMatching(/^\.settings\.json\.lock.*\/heartbeat 0600$/))
  })
})
