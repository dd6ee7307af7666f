import { chmodSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { modeOf } from '../../helpers/settings-file.js'
import { isWindows } from '../../helpers/windows.js'
import { printed, refusal, World } from '../../helpers/world.js'

const team = 'https://plants.example.com/v1'
const token = 's3cret-Token'
const savedAt = '2026-01-02T03:04:05.678Z'

const reading = [
  'list',
  'create --id 1 --name Fern',
  'config list',
  'config get timeout',
  'stores list',
  'auth status',
]
const changing = [
  ...[
    'config set timeout 1m',
    'config unset timeout',
    'stores add garden ./garden.db',
    'stores use local',
  ],
  ...[
    'stores remove team',
    `auth login --with-token --store ${team}`,
    `auth logout --store ${team}`,
  ],
]

describe('a broken settings file is named, and stays as it is:', () => {
  const invalid = 'are invalid: '
  const elsewhere = 'PLANTS_CONFIG_DIR to another directory'
  const noString = (name: string) => `${invalid}${name} must be a string`
  const settings = (fields: object) => JSON.stringify({ version: 1, ...fields })

  const broken: [content: string | Uint8Array, why: string, hint?: string][] = [
    ['', 'are empty', 'Move the file away, or write {"version":1} into it'],
    [`{"tokens":{"a":${token}}}`, 'are not JSON'],
    [Buffer.from('{"version":1,"a":"\xe9"}', 'latin1'), 'are not UTF-8'],
    [
      '{"version":2,"stores":[]}',
      'were written by a newer version of plants (version 2)',
      `Update plants, or set ${elsewhere}`,
    ],
    [
      settings({ stores: { team: { address: team, 'token-command': 1, 'allow-http': 'yes' } } }),
      `${invalid}stores.team.allow-http must be true or false; stores.team.token-command must be a string`,
    ],
    [settings({ tokens: { [token]: { token: 1, savedAt } } }), noString('tokens.***.token')],
    [
      settings({ stores: { 'postgres://ann:s3cret@h/x': { address: 5 } } }),
      noString('stores.***.address'),
    ],
    [
      settings({ store: 1, stores: { a: {}, b: [] } }),
      `${noString('store')}; stores.a.address must be a string; stores.b must be an object`,
    ],
    [`{"version":1}${' '.repeat(1_048_576 - 12)}`, 'are larger than 1 MiB'],
  ]
  test.each(
    broken.map(([content, why, hint = 'Fix the file, or move it away'], at) => [
      ...[String(content).slice(0, 60), why, at, content, hint],
    ]),
  )('%s: %s', async (_, why, at, content, hint) => {
    const user = new World()
    user.save(content as string | Uint8Array)
    const error = { error: 400, message: `The settings in ${user.file} ${why}`, hint }
    for (const commands of [reading, changing]) {
      const command = commands[Number(at) % commands.length] // each with several files
      const { code, out, err } = await user.run(`${command} --output json`, { stdin: token })
      expect({ command, code, out, ...JSON.parse(err) }).toEqual({
        command,
        code: 2,
        out: '',
        ...error,
      })
    }
    expect(readFileSync(user.file).equals(Buffer.from(content as string))).toBe(true)
    expect(readdirSync(user.home, { recursive: true }).toSorted()).toEqual([
      'config',
      join('config', 'settings.json'),
    ])
  })

  test('a directory', async () => {
    const user = new World()
    mkdirSync(user.file, { recursive: true })
    for (const command of ['config list', 'config set timeout 1m', 'list'])
      expect(await user.run(command)).toEqual(
        refusal(`The settings in ${user.file} are a directory`, 'Move it away'),
      )
    expect(readdirSync(user.config, { recursive: true })).toEqual(['settings.json'])
  })
})

test('a change that would make the file too large to be read again is rejected', async () => {
  const user = new World({ notes: 'x'.repeat(1_048_500) })
  const before = readFileSync(user.file)
  expect((await user.run(['stores', 'add', 'team', team])).code).toBe(2)
  expect(readFileSync(user.file).equals(before)).toBe(true)
})

describe.skipIf(process.platform === 'win32')('a settings file', () => {
  test.each([
    [
      '610',
      '700',
      'The settings in FILE are open to others (mode 610). Fix it with: chmod 600 FILE',
    ],
    ['600', '777', ''],
  ])('of mode %s in a directory of mode %s: %s', async (mode = '', folderMode = '', text = '') => {
    const user = new World({ timeout: '7s' })
    chmodSync(user.file, mode)
    chmodSync(user.config, folderMode)
    const warning = text.replaceAll('FILE', user.file)
    expect(await user.run('config get timeout')).toEqual({
      ...printed('7s\n'),
      err: warning && `plants: ${warning}\n`,
    })
  })

  test('that others can write is refused', async () => {
    const user = new World({ timeout: '7s' })
    chmodSync(user.file, 0o602)
    const why = `The settings in ${user.file} are in a file that can be changed by others (mode 602)`
    const rejected = refusal(why, `Check what it contains, then run: chmod 600 ${user.file}`)
    for (const command of [
      'config get timeout',
      'create --id 1 --name Fern',
      'config set timeout 8s',
    ])
      expect(await user.run(command)).toEqual(rejected)
    chmodSync(user.file, 0o600)
    expect(await user.run('config get timeout')).toEqual(printed('7s\n'))
  })

  test('that others can read is for the owner alone after a change', async () => {
    const user = new World({ timeout: '7s' })
    chmodSync(user.file, '644')
    const warning = /^plants: The settings in .* are open to others/
    expect((await user.run('create --id 1 --name Fern')).err).toMatch(warning)
    expect(modeOf(user.file)).toBe('644')
    expect((await user.run('config set timeout 8s')).err).toMatch(warning)
    expect(modeOf(user.file)).toBe('600')
  })
})

test.skipIf(isWindows)('a file of mode 400 is read, and not changed (needs modes)', async () => {
  const user = new World({
    timeout: '7s',
    stores: { team: { address: 'https://plants.example.com' } },
  })
  const before = user.saved
  chmodSync(user.file, 0o400)
  const message = `The settings in ${user.file} could not be changed: the file is read-only`
  const rejected = refusal(message, `Make the file writable: chmod u+w ${user.file}`, 74)
  for (const command of ['config set timeout 8s', 'stores remove team'])
    expect(await user.run(`${command} --output text`)).toEqual(rejected)
  expect([user.saved, modeOf(user.file)]).toEqual([before, '400'])
})

test('settings with 200,000 nested lists are read, and not changed', async () => {
  const user = new World()
  const text = `{"version":1,"timeout":"7s","notes":${'['.repeat(200_000)}${']'.repeat(200_000)}}`
  user.save(text)
  expect(await user.run('config get timeout')).toEqual(printed('7s\n'))
  const rejected = refusal(
    'The settings are nested too deeply to be written',
    'Fix the settings file, or move it away',
  )
  expect(await user.run('config set timeout 3s')).toEqual(rejected)
  expect(readFileSync(user.file, 'utf8') === text).toBe(true)
  expect(readdirSync(user.config).filter((name) => !name.includes('lock'))).toEqual([
    'settings.json',
  ])
})
