import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { AuthUser, accepting, read, store, token, when } from '../../helpers/auth-user.js'
import { plants } from '../../helpers/process.js'
import { modeOf } from '../../helpers/settings-file.js'
import { temporaryFolder } from '../../helpers/temporary.js'

describe('status of all stores', () => {
  test('of 2000 stores needs little memory, and so does doctor', async () => {
    const user = new AuthUser()
    const address = (index: number) => `https://plants-${index}.example.com/v1`
    const indices = Array.from({ length: 2000 }, (_, index) => index)
    const many = Object.fromEntries(indices.map((index) => [`store-${index}`, { address: address(index) }]))
    const entries = Object.fromEntries(indices.map((index) => [address(index + 1000), { token, savedAt: when }]))
    const counts = []
    for (const [command, fields] of [
      ['auth status', { stores: many, tokens: entries }],
      ['doctor', { stores: many }],
    ] as const) {
      user.save(fields)
      const env = { PLANTS_CONFIG_DIR: user.folder, NODE_OPTIONS: '--max-old-space-size=96' }
      const { code, out } = await plants(command.split(' '), temporaryFolder(), { env })
      counts.push([command, code, out.match(/^\{.*\}$/gm)?.length])
    }
    const besides = ['runtime', 'sqlite', 'settings', 'local', 'proxy']
    expect(counts).toEqual([
      ['auth status', 0, 2000],
      ['doctor', 0, 2000 + besides.length],
    ])
  })
})

describe('without a home', () => {
  const env = { HOME: '', PLANTS_TOKEN: '' }

  test('nothing can be saved, and the message says how to give a place; nothing is saved there either', async () => {
    const folder = temporaryFolder()
    const { url } = await accepting()
    const run = async (...args: string[]) => {
      const { code, out, err } = await plants(['auth', ...args, '--store', url, '--output', 'ndjson'], folder, {
        env,
        cwd: folder,
        input: token,
      })
      return read({ code: code ?? -1, out, err }, url)
    }
    expect(await run('login', '--with-token')).toEqual({
      ...{ code: 2, out: [] },
      err: [
        {
          error: 400,
          message: expect.stringMatching(/^There is no absolute path for the settings/),
          hint: 'Set HOME and XDG_CONFIG_HOME to absolute paths, or set PLANTS_CONFIG_DIR',
        },
      ],
    })
    expect(await run('status')).toMatchObject({
      code: 3,
      out: [{ source: 'none' }],
      err: [{ message: 'There is no token for URL' }],
    })
    expect(await run('token')).toMatchObject({ code: 3, err: [{ message: 'There is no token for URL' }] })
    expect(await run('logout')).toEqual({ code: 0, out: [{ store: 'URL', address: 'URL', removed: false }], err: [] })
    expect(readdirSync(folder)).toEqual([])
  })

  test('PLANTS_TOKEN is enough where nothing is to be saved, and so is PLANTS_CONFIG_DIR', async () => {
    const folder = temporaryFolder()
    const args = ['auth', 'status', '--store', store]
    expect((await plants(args, folder, { env: { ...env, PLANTS_TOKEN: token }, cwd: folder })).code).toBe(0)
    expect((await plants(args, folder, { env: { ...env, PLANTS_CONFIG_DIR: folder }, cwd: folder })).code).toBe(3)
    expect(readdirSync(folder)).toEqual([])
  })

  test('settings are in XDG_CONFIG_HOME where that is set, and nowhere else', async () => {
    const folder = temporaryFolder()
    const { url } = await accepting()
    const config = join(folder, 'xdg')
    const options = { env: { ...env, XDG_CONFIG_HOME: config }, input: token }
    expect((await plants(['auth', 'login', '--with-token', '--store', url], folder, options)).code).toBe(0)
    expect(readdirSync(folder)).toEqual(['xdg'])
    expect(['.', 'plants', 'plants/settings.json'].map((path) => modeOf(join(config, path)))).toEqual([
      '700',
      '700',
      '600',
    ])
  })
})
