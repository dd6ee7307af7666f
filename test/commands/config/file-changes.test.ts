import { lstatSync, mkdirSync, readdirSync, readlinkSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { acquireLock } from '../../../src/platform/file-lock.js'
import { isWindows, readMode, Sandbox, toTextResult } from '../../helpers/sandbox/sandbox.js'
import { buildSqliteOptions } from '../../helpers/sandbox/store.js'
import {
  acceptingResponse,
  startRecorder,
  token,
} from '../../helpers/sandbox/token-command-sandbox.js'

test('settings are read while another process holds the lock, and a change times out', async () => {
  const user = new Sandbox({ timeout: '7s' })
  const release = await acquireLock(`${user.file}.lock`, 0, buildSqliteOptions().runtime)
  expect(await user.run('config get timeout')).toEqual(toTextResult('7s\n'))
  const { code, err } = await user.run('config set output json --timeout 50ms --output json')
  expect([code, JSON.parse(err)]).toMatchObject([4, { error: 503, retryable: true }])
  expect(user.saved).toEqual({ version: 1, timeout: '7s' })
  release()
  expect((await user.run('config set output json')).code).toBe(0)
})

test.skipIf(isWindows)(
  'a settings file that is a link stays one, and its target is changed (needs links)',
  async () => {
    const user = new Sandbox()
    const target = join(user.home, user.write('dotfiles/plants.json', '{"version":1}'))
    mkdirSync(user.config, { mode: 0o700 })
    symlinkSync('step', user.file)
    symlinkSync('../dotfiles/plants.json', join(user.config, 'step'))
    expect(await user.run('config get timeout')).toEqual(toTextResult('30s\n'))
    for (const timeout of ['1m', '2m']) {
      expect((await user.run(`config set timeout ${timeout}`)).code).toBe(0)
      expect(user.saved).toEqual({ version: 1, timeout })
      expect([lstatSync(target).isFile(), readMode(target)]).toEqual([true, '600'])
    }
    expect(readlinkSync(user.file)).toBe('step')
    const files = [user.config, join(user.home, 'dotfiles')].flatMap((path) => readdirSync(path))
    expect(files).toEqual(['settings.json', 'step', 'plants.json', 'plants.json.lock'])
  },
)

test('the next change deletes what a killed one has left, because it may hold a token', async () => {
  const user = new Sandbox({ timeout: '7s' })
  const ownFile = 'settings.json.tmp-of-mine'
  for (const name of [
    'settings.json.new',
    'settings.json.new.tmp-1234567890abcdef',
    'settings.json.tmp-1234567890abcdef',
    ownFile,
  ])
    user.write(join(user.config, name), token)
  expect((await user.run('config set timeout 8s')).code).toBe(0)
  expect(user.saved).toEqual({ version: 1, timeout: '8s' })
  const names = ['settings.json', 'settings.json.lock', ownFile]
  expect(readdirSync(user.config).toSorted()).toEqual(names)
})

test('settings that stay the same are not written', async () => {
  const user = new Sandbox()
  expect((await user.run('config unset timeout')).code).toBe(0)
  expect(readdirSync(user.config)).toEqual(['settings.json.lock'])
})

describe('unknown settings stay saved', () => {
  const own = {
    constructor: [null],
    'a.b': { 'c.d': {} },
    toString: '',
    later: { deep: [{ x: null }, 'é', 1.5, true] },
  }
  const entry = { token, savedAt: '2026-01-02T03:04:05.678Z', ...own }
  const before = {
    ...{ version: 1, output: 'json', store: 'garden', ...own },
    stores: {
      team: { address: 'https://plants.example.com/v1', timeout: '1m', ...own },
      garden: { address: '/srv/garden.db', ...own },
    },
    tokens: { 'https://plants.example.com/v1': entry, 'https://other.example.com': entry },
  }

  test.each<[string, (saved: typeof before) => unknown]>([
    ['config unset output', (saved) => Reflect.deleteProperty(saved, 'output')],
    [
      'stores add oak /oak.db',
      ({ stores }) => Object.assign(stores, { oak: { address: '/oak.db' } }),
    ],
    ['stores remove team', (saved) => Reflect.deleteProperty(saved.stores, 'team')],
  ])('after %s', async (command, change) => {
    const user = new Sandbox(before)
    expect((await user.run(command)).code).toBe(0)
    const after = structuredClone(before)
    change(after)
    expect(user.saved).toEqual(after)
  })

  test('after auth login', async () => {
    const [user, service] = [new Sandbox(before), await startRecorder(acceptingResponse)]
    const login = `auth login --from-stdin --store ${service.url}`
    expect((await user.run(login, { stdin: token })).code).toBe(0)
    const tokens = { ...before.tokens, [service.url]: { token, savedAt: expect.any(String) } }
    expect(user.saved).toEqual({ ...before, tokens })
  })
})
