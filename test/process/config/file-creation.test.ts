import { chmodSync, chownSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { becomeStranger, canBecomeStranger, stranger } from '../../helpers/sandbox/linux.js'
import { readMode, Sandbox } from '../../helpers/sandbox/sandbox.js'

test.skipIf(process.platform === 'win32')(
  'the program creates files that only their owner can read, even with the umask 0',
  async () => {
    const user = new Sandbox()
    const env = {
      PLANTS_CONFIG_DIR: join(user.home, 'a/b/plants'),
      PLANTS_DATA_DIR: join(user.home, 'c/d'),
    }
    user.write('in.ndjson', 'no plant\n')
    const umask = ['sh', '-c', 'umask 0; exec "$0" "$@"']
    const rejects = 'import in.ndjson --rejects rejects.ndjson'
    const lines = ['config set timeout 1m', 'create --id 1 --name Fern', 'backup p.bak', rejects]
    for (const line of lines)
      expect((await user.spawn(line, { env }, ...umask)).code).toBe(line === rejects ? 6 : 0)
    const folders = ['a', 'a/b', 'a/b/plants', 'c', 'c/d']
    const settings = ['a/b/plants/settings.json', 'a/b/plants/settings.json.lock']
    const files = [...settings, 'c/d/plants.db', 'p.bak', 'rejects.ndjson']
    const modes = [...folders, ...files].map((path) => [path, readMode(join(user.home, path))])
    const expected = [
      ...folders.map((path) => [path, '700']),
      ...files.map((path) => [path, '600']),
    ]
    expect(modes).toEqual(expected)
  },
)

const token = 's3cret-Token'
const service = 'http://127.0.0.1:9'
const login = `auth login --from-stdin --timeout 10ms --store ${service}`
const set = 'config set timeout 8s'

/** A user, and what runs a command line, without variables that name places. */
function homeless(isStranger: boolean) {
  const user = new Sandbox()
  mkdirSync(user.config, { mode: 0o700 })
  if (isStranger) for (const path of [user.home, user.config]) chownSync(path, stranger, stranger)
  const places = ['XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'PLANTS_DATA_DIR', 'PLANTS_CONFIG_DIR']
  const unset = places.flatMap((name) => ['-u', name])
  const run = (line: string, ...variables: string[]) => {
    const env = ['env', ...unset, ...(isStranger ? ['-u', 'HOME'] : ['HOME=']), ...variables]
    const become = isStranger ? ['setpriv', ...becomeStranger] : []
    return user.spawn(line, { input: line === login ? token : '' }, ...become, ...env)
  }
  return { user, run }
}

describe.each([
  ['with an empty HOME (needs Node as its runtime)', false],
  ['without a HOME and an account (needs root and setpriv)', true],
])('%s', (_, isStranger) => {
  test.runIf(isStranger ? canBecomeStranger : process.env['PLANTS_BIN'] === undefined)(
    'settings are in PLANTS_CONFIG_DIR, or the hint names it',
    async () => {
      const { user, run } = homeless(isStranger)
      for (const line of [set, login, `auth logout --store ${service}`]) {
        const err = expect.stringContaining('PLANTS_CONFIG_DIR')
        expect(await run(line)).toEqual({ code: 2, out: '', err })
        expect((await run(line, `PLANTS_CONFIG_DIR=${user.config}`)).code).toBe(0)
        if (line === login) expect(user.saved).toMatchObject({ tokens: { [service]: { token } } })
      }
      expect(readdirSync(user.home)).toEqual(['config'])
      expect(statSync(user.file).uid).toBe(statSync(user.config).uid)
    },
  )
})

test('settings are in XDG_CONFIG_HOME if it is set', async () => {
  const { user, run } = homeless(false)
  expect((await run(set, `XDG_CONFIG_HOME=${user.home}/xdg`)).code).toBe(0)
  expect(user.has('xdg/plants/settings.json')).toBe(true)
})

test.runIf(canBecomeStranger)(
  'a command rejects settings of a third user, or in a closed directory (needs root and setpriv)',
  async () => {
    const user = new Sandbox({ timeout: '7s' })
    for (const path of [user.home, user.config, user.file]) chmodSync(path, 0o755)
    chownSync(user.file, 4321, 4321)
    const env = { SUDO_UID: '4321' }
    const get = await user.spawn('config get timeout', { env }, 'setpriv', ...becomeStranger)
    expect(get).toEqual({ code: 2, out: '', err: expect.stringContaining('another user') })
    chmodSync(user.config, 0o700)
    const hidden = await user.spawn('config get timeout', {}, 'setpriv', ...becomeStranger)
    expect(hidden).toEqual({ code: 2, out: '', err: expect.stringContaining('permission denied') })
  },
)
