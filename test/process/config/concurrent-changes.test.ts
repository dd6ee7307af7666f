import { mkdirSync, readdirSync, readFileSync, symlinkSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { leaveLock } from '../../helpers/lock.js'
import { PlantService } from '../../helpers/plant-service.js'
import { plants, resultOf, start } from '../../helpers/process.js'
import { rounds } from '../../helpers/rounds.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { World } from '../../helpers/world.js'

const team = 'https://plants.example.com/v1'

describe('a settings file that is a link', () => {
  test('is changed by all who link to it, one after the other', { timeout: 30_000 }, async () => {
    const home = temporaryFolder()
    writeFileSync(join(home, 'shared.json'), '{"version":1}', { mode: 0o600 })
    const folders = ['a', 'b'].map((name) => join(home, name))
    for (const folder of folders) {
      mkdirSync(folder, { mode: 0o700 })
      symlinkSync('../shared.json', join(folder, 'settings.json'))
    }
    const names = Array.from({ length: 12 }, (_, index) => `s${index}`)
    const results = await Promise.all(
      names.map((name, index) =>
        plants(['stores', 'add', name, `/${name}.db`], home, { env: { PLANTS_CONFIG_DIR: folders[index % 2] ?? '' } }),
      ),
    )
    expect(results.filter(({ code }) => code !== 0)).toEqual([])
    expect(Object.keys(JSON.parse(readFileSync(join(home, 'shared.json'), 'utf8')).stores).toSorted()).toEqual(
      names.toSorted(),
    )
  })
})

describe('processes that change settings at once', () => {
  test('lose nothing: many of them', { timeout: 60_000 }, async () => {
    const user = new World()
    const numbers = Array.from({ length: Math.min(rounds(10), 50) }, (_, index) => index)
    user.save({
      later: 1,
      stores: Object.fromEntries(numbers.map((n) => [`old${n}`, { address: `/old${n}.db`, later: n }])),
    })
    const commands = numbers.flatMap((n) => [
      `stores add new${n} /new${n}.db`,
      `config set stores.old${n}.timeout ${n + 1}s`,
    ])
    const results = await Promise.all(
      commands.map((command) => plants(command.split(' '), user.home, { env: user.env })),
    )
    expect(results.filter(({ code, err }) => code !== 0 || err !== '')).toEqual([])
    const olds = numbers.map((n) => [`old${n}`, { address: `/old${n}.db`, timeout: `${n + 1}s`, later: n }])
    const news = numbers.map((n) => [`new${n}`, { address: `/new${n}.db` }])
    expect(user.saved).toEqual({ version: 1, later: 1, stores: Object.fromEntries([...olds, ...news]) })
    expect(readdirSync(user.config)).toEqual(['settings.json'])
  })

  test('make the folder together', async () => {
    const user = new World()
    const names = Array.from({ length: 12 }, (_, index) => `s${index}`)
    const env = { ...user.env, PLANTS_CONFIG_DIR: join(user.config, 'a/b/c') }
    const results = await Promise.all(
      names.map((name) => plants(['stores', 'add', name, `/${name}.db`], user.home, { env })),
    )
    expect(results.filter(({ code, err }) => code !== 0 || err !== '')).toEqual([])
    const { stores } = JSON.parse(readFileSync(join(user.config, 'a/b/c/settings.json'), 'utf8'))
    expect(Object.keys(stores).toSorted()).toEqual(names.toSorted())
  })

  test('let one alone take a name', async () => {
    const user = new World()
    const numbers = Array.from({ length: 10 }, (_, index) => index)
    const results = await Promise.all(
      numbers.map((n) => plants(['stores', 'add', 'team', `/${n}.db`], user.home, { env: user.env })),
    )
    expect(results.map(({ code }) => code).toSorted()).toEqual([0, ...numbers.slice(1).map(() => 2)])
    const winner = results.findIndex(({ code }) => code === 0)
    expect(user.saved).toEqual({ version: 1, stores: { team: { address: `/${winner}.db` } } })
  })

  test('are read whole all the while', async () => {
    const user = new World()
    user.save({ stores: { team: { address: team } } })
    let isOver = false
    const writers = Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        plants(['config', 'set', 'timeout', `${n + 1}s`], user.home, { env: user.env }),
      ),
    ).finally(() => {
      isOver = true
    })
    const seen = new Set<number>()
    while (!isOver) {
      seen.add((await user.run('list')).code)
      await new Promise(setImmediate)
    }
    expect([...seen]).toEqual([0])
    expect((await writers).map(({ code }) => code)).toEqual(Array.from({ length: 10 }, () => 0))
  })
})

describe('while a process on another machine holds the lock', () => {
  test.each([
    ['SIGINT', 130, 'Interrupted'],
    ['SIGTERM', 143, 'Terminated'],
  ] as const)('a change ends at once on %s with %s, and nothing is changed', async (signal, code, message) => {
    const user = new World()
    user.save({ timeout: '1m' })
    leaveLock(`${user.file}.lock`)
    const names: (string | null)[] = []
    const watcher = watch(user.config, (_, name) => names.push(name))
    const waiting = start(['config', 'set', 'output', 'json'], user.home, { env: user.env })
    // looks for a heartbeat
    await expect.poll(() => names.some((name) => name?.startsWith('.settings.json.lock.')), { interval: 5 }).toBe(true)
    waiting.kill(signal)
    expect(await resultOf(waiting)).toEqual({ code, out: '', err: expect.stringMatching(`^plants: ${message}`) })
    watcher.close()
    expect(user.saved).toEqual({ version: 1, timeout: '1m' })
  })
})

describe.each([
  ['with the driver of SQLite', {}],
  ['without it', { NODE_OPTIONS: '--no-addons' }],
])('%s', (_, options) => {
  test('settings, stores and tokens are saved, and a service is imported into', async () => {
    const user = new World()
    const service = await PlantService.listen()
    writeFileSync(join(user.home, 'plants.csv'), 'id,name\n1,Fern\n')
    const env = { ...user.env, ...options }
    const codes = []
    for (const [command, input] of [
      ['config set timeout 3s', ''],
      [`stores add team ${service.url}`, ''],
      ['auth login --with-token --store team', 's3cret-Token'],
      ['import plants.csv --store team', ''],
    ] as const) {
      const { code, err } = await plants(command.split(' '), user.home, { env, input, cwd: user.home })
      codes.push({ command, code, err: code === 0 ? '' : err })
    }
    expect(codes).toEqual(codes.map(({ command }) => ({ command, code: 0, err: '' })))
    expect(user.saved).toMatchObject({
      timeout: '3s',
      stores: { team: { address: service.url } },
      tokens: { [service.url]: {} },
    })
    expect(service.made.get('1')).toBe(1)
    expect(readdirSync(user.config)).toEqual(['settings.json'])
  })
})
