import { chownSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { modeOf } from '../../helpers/settings-file.js'
import { becomeStranger, canBecome, stranger, under } from '../../helpers/stranger.js'
import { World } from '../../helpers/world.js'

test.skipIf(process.platform === 'win32').each(['000', '022', '0177'])(
  'what is created is for its owner alone, under umask %s',
  async (mask) => {
    const user = new World()
    const env = { PLANTS_CONFIG_DIR: join(user.home, 'a/b/plants') }
    const umask = ['-c', `umask ${mask}; exec "$0" "$@"`]
    expect(await under(user, 'sh', umask, 'config set timeout 1m', { env })).toMatchObject({ code: 0, err: '' })
    const paths = ['a', 'a/b', 'a/b/plants', 'a/b/plants/settings.json']
    expect(paths.map((path) => modeOf(join(user.home, path)))).toEqual(['700', '700', '700', '600'])
  },
)

const token = 's3cret-Token'
const service = 'http://127.0.0.1:9'
const login = `auth login --with-token --timeout 10ms --store ${service}`

/** A user, and what runs a command line, without variables that name places. */
function homeless(isStranger: boolean) {
  const user = new World()
  mkdirSync(user.config, { mode: 0o700 })
  if (isStranger) for (const path of [user.home, user.config]) chownSync(path, stranger, stranger)
  const unset = ['XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'PLANTS_DATA_DIR', 'PLANTS_CONFIG_DIR'].flatMap((name) => [
    '-u',
    name,
  ])
  const run = (line: string, ...variables: string[]) => {
    const env = [...unset, ...(isStranger ? ['-u', 'HOME'] : ['HOME=']), ...variables]
    const [program = '', ...args] = [...(isStranger ? ['setpriv', ...becomeStranger] : []), 'env', ...env]
    return under(user, program, args, line, { input: line === login ? token : '' })
  }
  return { user, run }
}

for (const [what, isStranger] of [
  ['with an empty HOME', false],
  ['without a HOME and an account (needs root and setpriv)', true],
] as const)
  describe.runIf(canBecome || !isStranger)(what, () => {
    test('whatever saves no settings works', async () => {
      const { user, run } = homeless(isStranger)
      const store = join(user.home, 'garden.db')
      for (const line of ['create --id 1 --name Fern', 'list'])
        expect(await run(`${line} --store ${store}`)).toMatchObject({ code: 0, out: expect.stringContaining('Fern') })
      expect((await run('doctor', `PLANTS_DATA_DIR=${user.data}`)).code).toBe(0)
      for (const line of ['config list', 'config get timeout'])
        expect(await run(line)).toMatchObject({ code: 0, err: '' })
      const err = expect.stringContaining(`There is no token for ${service}`)
      for (const line of ['auth status', 'auth token'])
        expect(await run(`${line} --store ${service}`)).toMatchObject({ code: 3, err })
      expect((await run(`auth status --store ${service}`, `PLANTS_TOKEN=${token}`)).code).toBe(0)
      const out = expect.stringContaining('"removed":false')
      expect(await run(`auth logout --store ${service}`)).toMatchObject({ code: 0, out, err: '' })
      expect(readdirSync(user.home).toSorted()).toEqual(['config', 'garden.db'])
    })

    test('settings are saved in PLANTS_CONFIG_DIR, and otherwise the message says how', async () => {
      const { user, run } = homeless(isStranger)
      const err = expect.stringMatching(/^plants: .*\n {2}Set HOME.*PLANTS_CONFIG_DIR.*\n$/)
      for (const [command, isNew] of [
        ['config set timeout 1m', true],
        ['stores add team https://plants.example.com', true],
        ['stores use team', false],
        [login, true],
        [`auth logout --store ${service}`, false],
        ['config unset timeout', false],
        ['stores remove team', false],
      ] as const) {
        if (isNew) expect(await run(command)).toEqual({ code: 2, out: '', err })
        const { code } = await run(command, `PLANTS_CONFIG_DIR=${user.config}`)
        expect({ command, code }).toEqual({ command, code: 0 })
        if (command === login) expect(user.saved).toMatchObject({ tokens: { [service]: { token } } })
      }
      expect(readdirSync(user.home)).toEqual(['config'])
      expect(user.saved).toEqual({ version: 1, stores: {}, tokens: {} })
      expect(statSync(user.file).uid).toBe(statSync(user.config).uid)
    })
  })

test('settings are in XDG_CONFIG_HOME where that is set, and nowhere else', async () => {
  const { user, run } = homeless(false)
  expect((await run(login, `XDG_CONFIG_HOME=${user.home}/xdg`)).code).toBe(0)
  const paths = ['xdg', 'xdg/plants', 'xdg/plants/settings.json']
  expect(paths.map((path) => modeOf(join(user.home, path)))).toEqual(['700', '700', '600'])
  expect(readdirSync(user.home).toSorted()).toEqual(['config', 'xdg'])
  expect(readdirSync(user.config)).toEqual([])
})
