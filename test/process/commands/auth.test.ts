import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { accepting, read, store, token, when } from '../../helpers/auth-user.js'
import { modeOf } from '../../helpers/settings-file.js'
import { World } from '../../helpers/world.js'

test.each([
  ['auth status', 2000],
  ['doctor', 2005],
])('%s of 2000 stores needs little memory', async (command, lines) => {
  const address = (index: number) => `https://plants-${index}.example.com/v1`
  const indices = Array.from({ length: 2000 }, (_, index) => index)
  const stores = indices.map((index) => [`store-${index}`, { address: address(index) }])
  const tokens = command === 'doctor' ? [] : indices.map((index) => [address(index + 1000), { token, savedAt: when }])
  const world = new World({ stores: Object.fromEntries(stores), tokens: Object.fromEntries(tokens) })
  const { code, out } = await world.spawn(command, { env: { NODE_OPTIONS: '--max-old-space-size=96' } })
  expect([code, out.match(/^\{.*\}$/gm)?.length]).toEqual([0, lines])
})

describe('without a home', () => {
  const env = { HOME: '', PLANTS_TOKEN: '', PLANTS_CONFIG_DIR: '' }

  test('nothing can be saved, and the message says how to give a place; nothing is saved there either', async () => {
    const world = new World()
    const { url } = await accepting()
    const run = async (line: string) => {
      const { code, ...said } = await world.spawn(`${line} --store ${url} --output ndjson`, { env, input: token })
      return read({ code: code ?? -1, ...said }, url)
    }
    const noPlace = {
      error: 400,
      message: expect.stringMatching(/^There is no absolute path for the settings/),
      hint: 'Set HOME and XDG_CONFIG_HOME to absolute paths, or set PLANTS_CONFIG_DIR',
    }
    const noToken = [{ message: 'There is no token for URL' }]
    expect(await run('auth login --with-token')).toEqual({ code: 2, out: [], err: [noPlace] })
    expect(await run('auth status')).toMatchObject({ code: 3, out: [{ source: 'none' }], err: noToken })
    expect(await run('auth token')).toMatchObject({ code: 3, err: noToken })
    const out = [{ store: 'URL', address: 'URL', removed: false }]
    expect(await run('auth logout')).toEqual({ code: 0, out, err: [] })
    expect(readdirSync(world.home)).toEqual([])
  })

  test('PLANTS_TOKEN is enough where nothing is to be saved, and so is PLANTS_CONFIG_DIR', async () => {
    const world = new World()
    const status = ['auth', 'status', '--store', store]
    expect((await world.spawn(status, { env: { ...env, PLANTS_TOKEN: token } })).code).toBe(0)
    expect((await world.spawn(status, { env: { ...env, PLANTS_CONFIG_DIR: world.home } })).code).toBe(3)
    expect(readdirSync(world.home)).toEqual([])
  })

  test('settings are in XDG_CONFIG_HOME where that is set, and nowhere else', async () => {
    const world = new World()
    const { url } = await accepting()
    const config = join(world.home, 'xdg')
    const options = { env: { ...env, XDG_CONFIG_HOME: config }, input: token }
    expect((await world.spawn(`auth login --with-token --store ${url}`, options)).code).toBe(0)
    expect(readdirSync(world.home)).toEqual(['xdg'])
    const modes = ['.', 'plants', 'plants/settings.json'].map((path) => modeOf(join(config, path)))
    expect(modes).toEqual(['700', '700', '600'])
  })
})
