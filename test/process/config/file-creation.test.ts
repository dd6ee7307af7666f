import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { canTrace } from '../../helpers/linux.js'
import { plants, resultOf, startUnder } from '../../helpers/process.js'
import { modeOf } from '../../helpers/settings-file.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { World } from '../../helpers/world.js'

test.runIf(canTrace)(
  'a change is on the disk, with the name of the file, before it is reported (needs strace)',
  async () => {
    const user = new World()
    mkdirSync(user.config)
    const log = join(user.home, 'trace')
    const strace = ['-f', '-y', '-o', log, '-e', 'trace=rename,renameat,renameat2,fsync,fdatasync,write']
    const { exitCode } = await startUnder('strace', strace, ['config', 'set', 'timeout', '1m'], user.home, {
      env: user.env,
    })
    const calls = readFileSync(log, 'utf8').replaceAll(/^\d+ +/gm, '')
    const at = (pattern: RegExp) => calls.search(pattern)
    const renamed = at(/^rename.*"[^"]*\/settings\.json"(, 0)?\) = 0/m)
    const synced = at(new RegExp(`^fsync\\(\\d+<${user.config}>\\)`, 'm'))
    expect({ exitCode, isInOrder: 0 < renamed && renamed < synced && synced < at(/^write\(1<.*timeout/m) }).toEqual({
      exitCode: 0,
      isInOrder: true,
    })
  },
)

describe('without a place for settings', () => {
  const message =
    /^plants: There is no absolute path for the settings, only .*\n {2}Set HOME and XDG_CONFIG_HOME to absolute paths, or /

  test('whatever needs none works', async () => {
    const folder = temporaryFolder()
    const env = { HOME: '' }
    const fern = ['--store', join(folder, 'garden.db'), '--output', 'json']
    const results = []
    for (const args of [
      ['create', '--id', '1', '--name', 'Fern'],
      ['list'],
      ['config', 'list'],
      ['stores', 'list'],
      ['config', 'get', 'timeout'],
    ]) {
      const { code, err } = await plants([...args, ...fern], folder, { env })
      results.push({ args, code, err })
    }
    const made = `{"warning":"Created store ${join(folder, 'garden.db')}"}\n`
    expect(results).toEqual(results.map(({ args }, index) => ({ args, code: 0, err: index === 0 ? made : '' })))
  })

  test('nothing can be saved, and the message says how', async () => {
    const folder = temporaryFolder()
    const { code, out, err } = await plants(['config', 'set', 'timeout', '1m'], folder, {
      env: { HOME: '' },
      cwd: folder,
    })
    expect({ code, out, err }).toEqual({ code: 2, out: '', err: expect.stringMatching(message) })
    expect(readdirSync(folder)).toEqual([])
  })
})

describe.skipIf(process.platform === 'win32')('what is made', () => {
  test.each([['000'], ['022'], ['077'], ['0177']])('is for its owner alone, under umask %s', async (umask) => {
    const home = temporaryFolder()
    const env = { PLANTS_CONFIG_DIR: join(home, 'a/b/plants') }
    const under = ['-c', `umask ${umask}; exec "$0" "$@"`]
    expect(await resultOf(startUnder('sh', under, ['config', 'set', 'timeout', '1m'], home, { env }))).toMatchObject({
      code: 0,
      err: '',
    })
    const paths = ['a', 'a/b', 'a/b/plants', 'a/b/plants/settings.json']
    expect(paths.map((path) => modeOf(join(home, path)))).toEqual(['700', '700', '700', '600'])
  })

  test.runIf(canTrace)('has its mode at birth, and is made exclusively (needs strace)', async () => {
    const user = new World()
    const log = join(user.home, 'log')
    const tracer = ['-f', '-o', log, '-e', 'trace=openat,mkdir,?mkdirat,creat']
    const sh = ['-c', 'umask 000; exec "$0" "$@"', 'strace', ...tracer]
    const { code } = await resultOf(
      startUnder('sh', sh, ['config', 'set', 'timeout', '1m'], user.home, { env: user.env }),
    )
    const made = readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => line.includes(user.config) && /O_CREAT|mkdir/.test(line) && !line.includes('EEXIST'))
      .map((line) =>
        line
          .replace(/.*"(.*?)", (?:\S+, )?(\d+)\).*/, '$1 $2')
          .replace(`${user.config}/`, '')
          .replace(/tmp-\w+/, '*')
          .replace(/\.plants-\w{6}(\/[\da-f]{16}-\d+-[\da-f]{8})?/, '*'),
      )
    expect(code).toBe(0)
    expect(made.filter((line) => !/ 0[67]00$/.test(line))).toEqual([])
    expect(made[0]).toBe(`${user.config} 0700`)
    expect(made).toContain('.settings.json.lock*/heartbeat 0600')
  })
})
