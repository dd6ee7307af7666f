import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { heldLock } from '../../helpers/crafted-files.js'
import { Hostile, json } from '../../helpers/hostile.js'
import { modeOf } from '../../helpers/settings-file.js'
import { isWindows } from '../../helpers/windows.js'
import { printed, World } from '../../helpers/world.js'

const team = 'https://plants.example.com/v1'
const token = 's3cret-Token'
const savedAt = '2026-01-02T03:04:05.678Z'

describe('while another process holds the lock', () => {
  test('settings can be read, and a change stops at its time-out', async () => {
    const user = new World({ timeout: '7s' })
    const { release } = await heldLock(`${user.file}.lock`)
    expect(await user.run('config get timeout')).toEqual(printed('7s\n'))
    const { code, err } = await user.run('config set output json --timeout 50ms --output json')
    const message = `Another process held ${user.file}.lock for 0.05 s`
    expect([code, JSON.parse(err)]).toEqual([
      4,
      { error: 503, message, hint: expect.any(String), retryable: true },
    ])
    expect(user.saved).toEqual({ version: 1, timeout: '7s' })
    await release()
    expect((await user.run('config set output json')).code).toBe(0)
  })
})

describe('a settings file that is a link', () => {
  test.skipIf(isWindows)(
    'stays one, also by another link, and its target is changed (needs links)',
    async () => {
      const user = new World()
      for (const folder of [user.config, join(user.home, 'dotfiles')])
        mkdirSync(folder, { mode: 0o700 })
      writeFileSync(join(user.home, 'dotfiles/plants.json'), '{"version":1}', { mode: 0o600 })
      symlinkSync('step', user.file)
      symlinkSync('../dotfiles/plants.json', join(user.config, 'step'))
      expect(await user.run('config get timeout')).toEqual(printed('30s\n'))
      for (const timeout of ['1m', '2m']) {
        expect((await user.run(`config set timeout ${timeout}`)).code).toBe(0)
        expect(user.saved).toEqual({ version: 1, timeout })
        const target = join(user.home, 'dotfiles/plants.json')
        expect([lstatSync(target).isFile(), modeOf(target)]).toEqual([true, '600'])
      }
      expect(readlinkSync(user.file)).toBe('step')
      expect(
        [user.config, join(user.home, 'dotfiles')].flatMap((folder) => readdirSync(folder)),
      ).toEqual([...['settings.json', 'step', 'plants.json', 'plants.json.lock']])
    },
  )

  test.skipIf(isWindows)(
    'to a folder that does not exist stays, and nothing is saved (needs links)',
    async () => {
      const user = new World()
      mkdirSync(user.config)
      symlinkSync('../gone/plants.json', user.file)
      expect(await user.run('config get timeout')).toEqual(printed('30s\n'))
      const { code, err } = await user.run('config set timeout 1m')
      expect([code, err]).toEqual([
        74,
        expect.stringMatching(/could not be written: no such file or directory/),
      ])
      expect(readlinkSync(user.file)).toBe('../gone/plants.json')
    },
  )
})

describe('unknown keys stay', () => {
  const own = {
    constructor: [null],
    'a.b': { 'c.d': {} },
    toString: '',
    later: { deep: [{ x: null }, 'é', 1.5, true] },
  }
  const before = {
    ...{ version: 1, output: 'json', store: 'garden', ...own },
    stores: {
      team: { address: team, timeout: '1m', ...own },
      garden: { address: '/srv/garden.db', ...own },
    },
    tokens: {
      [team]: { token, savedAt, ...own },
      'https://other.example.com': { token, savedAt, ...own },
    },
  }

  test.each<[string, (saved: typeof before) => unknown]>([
    ['config unset output', (saved) => Reflect.deleteProperty(saved, 'output')],
    [
      'stores add oak /oak.db',
      ({ stores }) => Object.assign(stores, { oak: { address: '/oak.db' } }),
    ],
    ['stores remove team', (saved) => Reflect.deleteProperty(saved.stores, 'team')],
  ])('with %s', async (command, change) => {
    const user = new World(before)
    expect((await user.run(command)).code).toBe(0)
    const after = structuredClone(before)
    change(after)
    expect(user.saved).toEqual(after)
  })

  test('with auth login', async () => {
    const user = new World(before)
    const service = await Hostile.listen({
      posts: [json(422, { error: 422, message: 'id is missing' })],
    })
    expect(
      (await user.run(`auth login --from-stdin --store ${service.url}`, { stdin: token })).code,
    ).toBe(0)
    const tokens = { ...before.tokens, [service.url]: { token, savedAt: expect.any(String) } }
    expect(user.saved).toEqual({ ...before, tokens })
  })

  test.each([
    '"__proto__":{"a":1}',
    '"tokens":{"https://a":{"token":"a","savedAt":"b","__proto__":{"a":1}}}',
  ])('also %s', async (text) => {
    const user = new World()
    user.save(`{"version":1,${text}}`)
    expect((await user.run('config set timeout 3m')).code).toBe(0)
    expect(readFileSync(user.file, 'utf8').replaceAll(/\s/g, '')).toContain(text)
  })
})
