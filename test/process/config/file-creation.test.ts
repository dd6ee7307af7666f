import { chmodSync, chownSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { asStranger, becomeStranger, canBecome, stranger, under } from '../../helpers/stranger.js'
import { modeOf, refusal, unwritable, World } from '../../helpers/world.js'

test.skipIf(process.platform === 'win32')(
  'what is created is for its owner alone, under the umask 0',
  async () => {
    const user = new World()
    const env = {
      PLANTS_CONFIG_DIR: join(user.home, 'a/b/plants'),
      PLANTS_DATA_DIR: join(user.home, 'c/d'),
    }
    const umask = ['-c', `umask 0; exec "$0" "$@"`]
    const backup = `backup ${join(user.home, 'plants.bak')}`
    for (const line of ['config set timeout 1m', 'create --id 1 --name Fern', backup])
      expect(await under(user, 'sh', umask, line, { env }), line).toMatchObject({
        code: 0,
        err: '',
      })
    const modes = { a: '700', 'a/b': '700', 'a/b/plants': '700' }
    const ofSettings = { 'a/b/plants/settings.json': '600', 'a/b/plants/settings.json.lock': '600' }
    const ofStore = { c: '700', 'c/d': '700', 'c/d/plants.db': '600', 'plants.bak': '600' }
    for (const [path, mode] of Object.entries({ ...modes, ...ofSettings, ...ofStore }))
      expect([path, modeOf(join(user.home, path))]).toEqual([path, mode])
  },
)

const token = 's3cret-Token'
const service = 'http://127.0.0.1:9'
const login = `auth login --from-stdin --timeout 10ms --store ${service}`

/** A user, and what runs a command line, without variables that name places. */
function homeless(isStranger: boolean) {
  const user = new World()
  mkdirSync(user.config, { mode: 0o700 })
  if (isStranger) for (const path of [user.home, user.config]) chownSync(path, stranger, stranger)
  const places = ['XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'PLANTS_DATA_DIR', 'PLANTS_CONFIG_DIR']
  const unset = places.flatMap((name) => ['-u', name])
  const run = (line: string, ...variables: string[]) => {
    const env = [...unset, ...(isStranger ? ['-u', 'HOME'] : ['HOME=']), ...variables]
    const [program = '', ...args] = [
      ...(isStranger ? ['setpriv', ...becomeStranger] : []),
      'env',
      ...env,
    ]
    return under(user, program, args, line, { input: line === login ? token : '' })
  }
  return { user, run }
}

for (const [what, isStranger] of [
  ['with an empty HOME (needs Node as its runtime)', false],
  ['without a HOME and an account (needs root and setpriv)', true],
] as const)
  describe.runIf(isStranger ? canBecome : process.env['PLANTS_BIN'] === undefined)(what, () => {
    test('settings are in PLANTS_CONFIG_DIR, or the message says how', async () => {
      const { user, run } = homeless(isStranger)
      const err = expect.stringMatching(/^plants: .*\n {2}Set HOME.*PLANTS_CONFIG_DIR.*\n$/)
      for (const command of [
        'config set timeout 1m',
        login,
        `auth logout --store ${service}`,
        'config unset timeout',
      ]) {
        expect(await run(command)).toEqual({ code: 2, out: '', err })
        const { code } = await run(command, `PLANTS_CONFIG_DIR=${user.config}`)
        expect({ command, code }).toEqual({ command, code: 0 })
        if (command === login)
          expect(user.saved).toMatchObject({ tokens: { [service]: { token } } })
      }
      expect(readdirSync(user.home)).toEqual(['config'])
      expect(user.saved).toEqual({ version: 1, tokens: {} })
      expect(statSync(user.file).uid).toBe(statSync(user.config).uid)
    })
  })

const set = 'config set timeout 8s'

test('settings are in XDG_CONFIG_HOME where that is set', async () => {
  const { user, run } = homeless(false)
  expect((await run(set, `XDG_CONFIG_HOME=${user.home}/xdg`)).code).toBe(0)
  expect(user.has('xdg/plants/settings.json')).toBe(true)
})

const unsaved = (user: World, warning = '') => ({
  ...{ code: 74, out: '' },
  err: `${warning}${unwritable(user, 'permission denied')}`,
})

describe.runIf(canBecome)('with the stranger (needs root and setpriv),', () => {
  /** Settings of root, which others can get to. */
  function ofRoot(fileMode: number): World {
    const user = new World({ timeout: '7s' })
    for (const path of [user.home, user.config]) chmodSync(path, 0o755)
    chmodSync(user.file, fileMode)
    return user
  }

  test('settings of root can be used by all who can read them', async () => {
    const user = ofRoot(0o755)
    const why = `The settings in ${user.file} are open to others (mode 755)`
    const warning = `plants: ${why}. Fix it with: chmod 600 ${user.file}\n`
    expect(await asStranger(user, 'config get timeout')).toEqual({
      code: 0,
      out: '7s\n',
      err: warning,
    })
    expect(await asStranger(user, set)).toEqual(unsaved(user, warning))
  })

  test('settings of another user are rejected, whatever SUDO_UID says', async () => {
    const user = ofRoot(0o755)
    chownSync(user.file, 4321, 4321)
    const why = `The settings in ${user.file} are in a file that belongs to another user (uid 4321)`
    const rejected = refusal(why, 'Set PLANTS_CONFIG_DIR to a directory of your own')
    expect(await asStranger(user, 'config get timeout', { SUDO_UID: '4321' })).toEqual(rejected)
  })

  test('settings that cannot be read are named', async () => {
    const user = ofRoot(0o600)
    const hint = 'Change its permissions, or set PLANTS_CONFIG_DIR to another directory'
    const rejected = refusal(
      `The settings in ${user.file} could not be read: permission denied`,
      hint,
    )
    for (const command of ['config get timeout', set])
      expect(await asStranger(user, command)).toEqual(rejected)
  })
})
