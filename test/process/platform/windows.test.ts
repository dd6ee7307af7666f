import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Options } from 'execa'
import { describe, expect, test } from 'vitest'
import { isLinux } from '../../helpers/linux.js'
import { printed, World } from '../../helpers/world.js'

// Windows itself, its paths and its console are tried only where it is: see docs/platforms.md.
describe.runIf(isLinux && !process.env['PLANTS_BIN'])(
  'on a simulated Windows (needs Node as its runtime)',
  () => {
    const fern = '{"id":1,"name":"Färn"}\n'
    const windowsOf = ({ home }: World) => ({
      NODE_OPTIONS: `--require ${join(import.meta.dirname, '../../helpers/windows.cjs')}`,
      ...{ PLANTS_DATA_DIR: '', PLANTS_CONFIG_DIR: '', PLANTS_STATE_DIR: '' },
      APPDATA: join(home, 'Roaming'),
      LOCALAPPDATA: join(home, 'Local'),
    })
    const plants = (user: World, args: string | string[], { env, ...options }: Options = {}) =>
      user.spawn(args, { ...options, env: { ...windowsOf(user), ...env } })

    async function withFern(): Promise<World> {
      const user = new World()
      expect(await plants(user, 'create --file -', { input: fern })).toMatchObject({
        code: 0,
        err: '',
      })
      return user
    }

    test('the store and the settings are in the folders of APPDATA and LOCALAPPDATA', async () => {
      const user = await withFern()
      expect(await plants(user, 'config set timeout 1m')).toMatchObject({ code: 0, err: '' })
      expect(readdirSync(user.home, { recursive: true }).toSorted()).toEqual([
        ...['Local', 'Local/plants', 'Local/plants/Data', 'Local/plants/Data/plants.db'],
        ...[
          'Roaming',
          'Roaming/plants',
          'Roaming/plants/Config',
          'Roaming/plants/Config/settings.json',
        ],
        'Roaming/plants/Config/settings.json.lock',
      ])
    })

    test.each([{}, { NO_STATUS: '1' }])(
      'stdin and stdout are read and written, with %j for an fstat that fails',
      async (env) => {
        const user = await withFern()
        user.write('moss.json', '\uFEFF{"id":2,\r\n"name":"Moss"}\r\n')
        const create = (options: Options) => plants(user, 'create --file -', { env, ...options })
        expect((await create({ inputFile: join(user.home, 'moss.json') })).code).toBe(0)
        expect((await create({ input: '{"id":3,"name":"Ivy"}' })).code).toBe(0)
        expect(await create({})).toMatchObject({ code: 2, out: '' })
        expect(
          (await plants(user, 'import', { env, input: '{"id":4,"name":"Reed"}\r\n' })).code,
        ).toBe(0)
        const all = `${fern}{"id":2,"name":"Moss"}\n{"id":3,"name":"Ivy"}\n{"id":4,"name":"Reed"}\n`
        expect(await plants(user, 'list', { env })).toEqual(printed(all))
        const stdout = { file: join(user.home, 'out') }
        expect(await plants(user, 'export', { env, stdout })).toMatchObject({ code: 0, err: '' })
        expect(user.read('out')).toBe(all)
      },
    )

    test('what is open is neither renamed, replaced nor removed', async () => {
      const user = await withFern()
      user.write('more.ndjson', '{"id":4,"name":"Reed"}\r\n')
      mkdirSync(join(user.home, 'kept'))
      const twice = [
        'export kept/all.ndjson --yes',
        'config set timeout 1m',
        'config set timeout 2m',
      ]
      for (const command of ['import more.ndjson', 'export kept/all.ndjson --yes', ...twice])
        expect({ command, code: (await plants(user, command)).code }).toEqual({ command, code: 0 })
      expect(readdirSync(join(user.home, 'kept'))).toEqual(['all.ndjson'])
      expect(user.read('kept/all.ndjson')).toBe(`${fern}{"id":4,"name":"Reed"}\n`)
    })

    test('a backup is made, replaced and restored', async () => {
      const user = await withFern()
      mkdirSync(join(user.home, 'kept'))
      for (const command of [
        'backup kept/plants.bak',
        'backup kept/plants.bak',
        'restore kept/plants.bak --yes',
      ])
        expect({ command, code: (await plants(user, command)).code }).toEqual({ command, code: 0 })
      expect([readdirSync(join(user.home, 'kept')), (await plants(user, 'list')).out]).toEqual([
        ['plants.bak'],
        fern,
      ])
    })

    test('a hint names the commands of Windows', async () => {
      const user = new World()
      await plants(user, 'create --id 1 --name Fern')
      const exported = await plants(user, ['export', 'two words/plants.csv'])
      expect(exported.err).toContain(`Make it with: mkdir "${join(user.home, 'two words')}"\n`)
      expect((await plants(user, 'import --rejects -', { input: '' })).err).not.toContain('/dev')
    })

    test.each([
      ['list --store C:\\a@b\\plants.db', 4, 'There is no store at .*C:\\\\a@b\\\\plants\\.db'],
      ['serve --socket plants.sock', 2, '--socket does not work on Windows'],
    ])('%s: exit code %i', async (command, code, message) => {
      expect(await plants(new World(), command)).toEqual({
        code,
        out: '',
        err: expect.stringMatching(message),
      })
    })
  },
)
