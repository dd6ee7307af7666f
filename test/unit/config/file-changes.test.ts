import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { heldLock } from '../../helpers/lock.js'
import { answer, printed, World } from '../../helpers/world.js'

const team = 'https://plants.example.com/v1'

describe('what a killed process has left', () => {
  let user: World
  const left = ['settings.json.tmp-51838694635207d8', 'settings.json.tmp-0000000000ffffff']
  beforeEach(() => {
    user = new World()
    user.save({ timeout: '7s' })
    for (const name of left) writeFileSync(join(user.config, name), '{"version":1,"tokens":{"https:', { mode: 0o600 })
  })

  test('is not taken for settings, and is gone after the next change', async () => {
    expect(await user.run('config get timeout')).toEqual(printed('7s\n'))
    expect((await user.run('config set output json')).code).toBe(0)
    expect(user.saved).toEqual({ version: 1, timeout: '7s', output: 'json' })
    expect(readdirSync(user.config)).toEqual(['settings.json'])
  })

  test('is gone beside the target of a link, too', async () => {
    const folder = join(user.home, 'link')
    mkdirSync(folder, { mode: 0o700 })
    symlinkSync('../config/settings.json', join(folder, 'settings.json'))
    expect((await user.run('config set output json', { env: { PLANTS_CONFIG_DIR: folder } })).code).toBe(0)
    expect(readdirSync(user.config).filter((name) => left.includes(name))).toEqual([])
  })

  test('is all that is removed: files of the user stay', async () => {
    const names = [
      'settings.json.backup',
      'settings.json.before',
      'settings.json.old',
      'settings.json~',
      'settings.json.260102',
      'settings.json.tmp',
      'settings.json.tmp-mine',
      'a.backup',
    ]
    for (const name of names) writeFileSync(join(user.config, name), `my ${name}`)
    mkdirSync(join(user.config, 'settings.json.folder'))
    writeFileSync(join(user.config, 'settings.json.folder/notes.txt'), 'mine')
    expect((await user.run('config set output json')).code).toBe(0)
    expect(readdirSync(user.config).filter((name) => !left.includes(name))).toEqual(
      [...names, 'settings.json', 'settings.json.folder'].toSorted(),
    )
  })
})

describe('while another process holds the lock', () => {
  test('settings can be read, and a change ends when its time is over', async () => {
    const user = new World()
    user.save({ timeout: '7s', stores: { team: { address: team } } })
    const { release } = await heldLock(`${user.file}.lock`)
    expect(await user.run('config get timeout')).toEqual(printed('7s\n'))
    expect((await user.run('stores list')).code).toBe(0)
    const { code, err } = await user.run('config set output json --timeout 50ms --output json')
    expect({ code, ...JSON.parse(err) }).toEqual({
      code: 4,
      error: 503,
      message: `Another process held ${user.file}.lock for 0.05 s`,
      hint: expect.any(String),
      retryable: true,
    })
    expect(user.saved).toEqual({ version: 1, timeout: '7s', stores: { team: { address: team } } })
    await release()
    expect((await user.run('config set output json')).code).toBe(0)
  })

  test('a store is added with a short time-out of its own, as nobody waits for that store here', async () => {
    const user = new World()
    user.save({})
    const { release } = await heldLock(`${user.file}.lock`)
    const adding = user.run(['stores', 'add', 'team', team, '--timeout', '1ms'])
    for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate)
    await release()
    expect(await adding).toEqual(answer({ name: 'team', address: team, timeout: '1ms' }))
  })
})
