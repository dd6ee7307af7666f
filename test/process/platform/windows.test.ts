import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Options } from 'execa'
import { describe, expect, test } from 'vitest'
import { isLinux } from '../../helpers/sandbox/linux.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'

// Windows itself, its paths and its console are tried by test/nightly/windows.mjs.
describe.runIf(isLinux && !process.env['PLANTS_BIN'])(
  'on a simulated Windows (needs Node as its runtime)',
  () => {
    const fern = '{"id":1,"name":"Färn"}\n'
    const preload = join(import.meta.dirname, 'windows.cjs')

    function plants(user: Sandbox, line: string, { env, ...options }: Options = {}) {
      const windows = {
        NODE_OPTIONS: `--require ${preload}`,
        ...{ PLANTS_DATA_DIR: '', PLANTS_CONFIG_DIR: '' },
        ...{ APPDATA: join(user.home, 'Roaming'), LOCALAPPDATA: join(user.home, 'Local') },
      }
      return user.spawn(line, { ...options, env: { ...windows, ...env } })
    }

    async function withFern(): Promise<Sandbox> {
      const user = new Sandbox()
      const { code, err } = await plants(user, 'create --file -', { input: fern })
      expect([code, err]).toEqual([0, ''])
      return user
    }

    test('the store and the settings are in the folders of APPDATA and LOCALAPPDATA', async () => {
      const user = await withFern()
      await plants(user, 'config set timeout 1m')
      const paths = readdirSync(user.home, { recursive: true }).map(String)
      expect(paths.filter((path) => /\.\w+$/.test(path)).toSorted()).toEqual([
        'Local/plants/Data/plants.db',
        'Roaming/plants/Config/settings.json',
        'Roaming/plants/Config/settings.json.lock',
      ])
    })

    test('the cache, which may be deleted, is in a folder without the store', async () => {
      const user = await withFern()
      await plants(user, 'count', { env: { NODE_DISABLE_COMPILE_CACHE: undefined } })
      expect(readdirSync(join(user.home, 'Local/plants'))).toEqual(['Cache', 'Data'])
    })

    test('an open file is neither renamed, replaced nor removed', async () => {
      const user = await withFern()
      mkdirSync(join(user.home, 'kept'))
      const twice = [
        'export kept/all.ndjson --yes',
        'backup kept/plants.bak',
        'config set timeout 2m',
      ]
      for (const line of [...twice, ...twice, 'restore kept/plants.bak --yes'])
        expect({ line, code: (await plants(user, line)).code }).toEqual({ line, code: 0 })
      expect(readdirSync(join(user.home, 'kept'))).toEqual(['all.ndjson', 'plants.bak'])
      expect((await plants(user, 'list')).out).toBe(fern)
    })

    test('a store whose path has a drive and an @ is a file', async () => {
      const store = 'C:\\a@b\\plants.db'
      const err = expect.stringContaining(store)
      expect(await plants(new Sandbox(), `list --store ${store}`)).toEqual({
        code: 4,
        out: '',
        err,
      })
    })
  },
)
