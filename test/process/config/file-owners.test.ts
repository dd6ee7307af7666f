import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { plants, resultOf, startUnder } from '../../helpers/process.js'
import { unwritable } from '../../helpers/settings-file.js'
import { asStranger, becomeStranger, canBecome, stranger } from '../../helpers/stranger.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { answer, printed, refusal, World } from '../../helpers/world.js'

const token = 's3cret-Token'

describe.skipIf(process.platform === 'win32')('a settings file', () => {
  test.runIf(canBecome)('of root is good for everybody who can read it (needs root and setpriv)', async () => {
    const user = new World()
    user.save({ timeout: '7s' })
    for (const path of [user.home, user.config, user.file]) chmodSync(path, 0o755)
    const complaint = `The settings in ${user.file} are open to others (mode 755). Fix it with: chmod 600 ${user.file}`
    expect(await asStranger(user, 'config get timeout')).toEqual({
      code: 0,
      out: '7s\n',
      err: `plants: ${complaint}\n`,
    })
    expect(await asStranger(user, 'config set timeout 8s')).toEqual({
      code: 74,
      out: '',
      err: `plants: ${complaint}\n${unwritable(user, 'permission denied')}`,
    })
  })

  test.runIf(canBecome)(
    'of another user is refused whatever SUDO_UID says, by whoever is not root (needs root and setpriv)',
    async () => {
      const user = new World()
      user.save({ timeout: '7s' })
      for (const path of [user.home, user.config, user.file]) chmodSync(path, 0o755)
      chownSync(user.file, 4321, 4321)
      const why = `The settings in ${user.file} belong to another user (uid 4321)`
      const { code, err } = await asStranger(user, 'config get timeout', { SUDO_UID: '4321' })
      expect({ code, err }).toEqual({ code: 2, err: `plants: ${why}\n  Change its owner, or set PLANTS_CONFIG_DIR\n` })
    },
  )

  test.runIf(canBecome)('that is not to be read is named (needs root and setpriv)', async () => {
    const user = new World()
    user.save({ timeout: '7s' })
    for (const path of [user.home, user.config]) chmodSync(path, 0o755)
    const refused = refusal(
      `The settings in ${user.file} could not be read: permission denied`,
      'Change its permissions, or set PLANTS_CONFIG_DIR to another directory',
    )
    expect(await asStranger(user, 'config get timeout')).toEqual(refused)
    expect(await asStranger(user, 'config set timeout 8s')).toEqual(refused)
  })

  test.runIf(canBecome)(
    'that root changes for the user of sudo, stays that user’s (needs root and setpriv)',
    async () => {
      const user = new World()
      for (const path of [user.home, user.config]) {
        mkdirSync(path, { recursive: true })
        chownSync(path, stranger, stranger)
      }
      const env = { ...user.env, SUDO_UID: `${stranger}` }
      expect(await plants(['config', 'set', 'timeout', '1m'], user.home, { env })).toEqual(
        answer({ name: 'timeout', value: '1m' }),
      )
      expect(await plants(['config', 'set', 'output', 'json'], user.home, { env })).toEqual(
        answer({ name: 'output', value: 'json' }),
      )
      expect(readdirSync(user.config).map((name) => [name, statSync(join(user.config, name)).uid])).toEqual([
        ['settings.json', stranger],
      ])
      expect(await asStranger(user, 'config get timeout --output text')).toEqual(printed('1m\n'))
      expect(await asStranger(user, 'config set timeout 2m')).toMatchObject({ code: 0, err: '' })
    },
  )
})

describe('where nothing may be written', () => {
  test.runIf(canBecome)('a folder of mode 0500 is read from (needs root and setpriv)', async () => {
    const user = new World()
    chownSync(user.home, stranger, stranger)
    expect((await asStranger(user, 'config set timeout 7s')).code).toBe(0)
    const before = readdirSync(user.config)
    chmodSync(user.config, 0o500)
    expect(await asStranger(user, 'config get timeout')).toEqual(printed('7s\n'))
    expect(await asStranger(user, 'config set timeout 8s')).toEqual({
      code: 74,
      out: '',
      err: unwritable(user, 'permission denied'),
    })
    expect([user.saved, readdirSync(user.config)]).toEqual([{ version: 1, timeout: '7s' }, before])
  })
})

describe('where the file is not to be replaced', () => {
  test.runIf(canBecome)('because the lock is another user’s, the lock is named (needs root and setpriv)', async () => {
    const user = new World()
    chownSync(user.home, stranger, stranger)
    expect((await asStranger(user, 'config set timeout 7s')).code).toBe(0)
    mkdirSync(`${user.file}.lock`, { mode: 0o700 })
    const { code, err } = await asStranger(user, 'config set timeout 8s')
    expect({ code, err }).toEqual({ code: 74, err: expect.stringContaining(`${user.file}.lock`) })
    expect(await asStranger(user, 'config get timeout')).toEqual(printed('7s\n'))
  })
})

describe('without a place for settings', () => {
  test.runIf(canBecome)('a user without an account and a HOME can use a store (needs root and setpriv)', async () => {
    const user = new World()
    chownSync(user.home, stranger, stranger)
    const args = ['create', '--id', '1', '--name', 'Fern', '--store', join(user.home, 'garden.db')]
    const env = ['-u', 'HOME', '-u', 'PLANTS_CONFIG_DIR', '-u', 'PLANTS_DATA_DIR']
    const started = startUnder('setpriv', [...becomeStranger, 'env', ...env], args, user.home, { cwd: user.home })
    const err = `plants: Created store ${join(user.home, 'garden.db')}\n`
    expect(await resultOf(started)).toEqual({ ...printed('{"name":"Fern"}\n'), err })
  })

  describe.runIf(canBecome)('a user without an account and a HOME (needs root and setpriv)', () => {
    const homeless = ['-u', 'HOME', '-u', 'XDG_CONFIG_HOME', '-u', 'XDG_DATA_HOME', '-u', 'PLANTS_DATA_DIR']
    const changes: [string, string?][] = [
      ['config set timeout 1m'],
      ['stores add team https://plants.example.com'],
      ['stores use team'],
      ['auth login --with-token --timeout 10ms --store http://127.0.0.1:9', token],
      ['auth logout --store http://127.0.0.1:9'],
      ['config unset timeout'],
      ['stores remove team'],
    ]

    function asHomeless(user: World, variables: string[], command: string, input = '') {
      const tracer = [...becomeStranger, 'env', ...homeless, ...variables]
      return resultOf(startUnder('setpriv', tracer, command.split(' '), user.home, { cwd: user.home, input }))
    }

    test('saves in PLANTS_CONFIG_DIR, and PLANTS_DATA_DIR is not needed for that', async () => {
      const user = new World()
      chownSync(user.home, stranger, stranger)
      const variables = [`PLANTS_CONFIG_DIR=${user.config}`]
      for (const [command, input] of changes) {
        expect({ command, ...(await asHomeless(user, variables, command, input)) }).toMatchObject({ command, code: 0 })
        if (command.startsWith('auth login')) expect(readFileSync(user.file, 'utf8')).toContain(token)
      }
      expect(user.saved).toEqual({ version: 1, stores: {}, tokens: {} })
      expect(statSync(user.file).uid).toBe(stranger)
    })

    test('is told what to set where there is no place', async () => {
      const user = new World()
      chownSync(user.home, stranger, stranger)
      const needing = changes.filter(([command]) => /set timeout|add|login/.test(command))
      for (const [command, input] of needing.filter(([name]) => !name.includes('unset'))) {
        expect({ command, ...(await asHomeless(user, ['-u', 'PLANTS_CONFIG_DIR'], command, input)) }).toEqual({
          ...{ command, code: 2, out: '' },
          err: expect.stringMatching(/^plants: .*\n {2}Set HOME.*PLANTS_CONFIG_DIR.*\n$/),
        })
      }
      expect(readdirSync(user.home)).toEqual([])
    })
  })
})

test.runIf(canBecome)(
  'root changes settings of the user of sudo with the rights of that user alone (needs root and setpriv)',
  async () => {
    const user = new World()
    const roots = join(temporaryFolder(), 'root')
    mkdirSync(roots, { mode: 0o755 })
    for (const path of [user.home, user.config]) {
      mkdirSync(path, { recursive: true })
      chownSync(path, stranger, stranger)
    }
    symlinkSync(roots, `${user.file}.lock`) // what a user would put in the place of what root makes
    const env = { ...user.env, SUDO_UID: `${stranger}` }
    expect((await plants(['config', 'set', 'timeout', '1m'], user.home, { env })).code).toBe(74)
    rmSync(`${user.file}.lock`)
    symlinkSync(join(roots, 'settings.json'), user.file)
    expect(await plants(['config', 'set', 'timeout', '1m'], user.home, { env })).toMatchObject({ code: 74, out: '' })
    expect(readdirSync(roots)).toEqual([])
  },
)
