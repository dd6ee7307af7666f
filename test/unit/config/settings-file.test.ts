import { chmodSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { settingsProblems } from '../../../src/config/settings-file.js'
import { modeOf, printed, refusal, World } from '../../helpers/world.js'

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
    `auth login --from-stdin --store ${team}`,
    `auth logout --store ${team}`,
  ],
]

describe('a broken settings file is named, and stays as it is:', () => {
  const invalid = 'are invalid: '
  const noString = (name: string) => `${invalid}${name} must be a string`
  const settings = (fields: object) => JSON.stringify({ version: 1, ...fields })

  const broken: [content: string | Uint8Array, why: string][] = [
    ['', 'are not JSON, in line 1, column 1'],
    [`{"tokens":{"a":${token}}}`, 'are not JSON, in line 1, column 16'],
    ['{\n  // a comment\n  "version": 1\n}', 'are not JSON, in line 2, column 3'],
    ['{\n  "version": 1,\n}\n', 'are not JSON, in line 3, column 1'],
    ['{\n  "version": 1', 'are not JSON, in line 2, column 15'],
    [Buffer.from('{"version":1,"a":"\xe9"}', 'latin1'), 'are not UTF-8'],
    ['[]', `${invalid}the document must be an object`],
    ['{"version":2,"stores":[]}', `${invalid}version must be 1, but was 2`],
    [`{"version":"${token}"}`, `${invalid}version must be 1`],
    [
      settings({ stores: [], tokens: null }),
      `${invalid}stores must be an object; tokens must be an object`,
    ],
    [
      settings({ stores: { team: { address: team, 'token-command': 1, 'allow-http': 'yes' } } }),
      `${invalid}stores.team.allow-http must be true or false; stores.team.token-command must be a string`,
    ],
    [
      settings({ tokens: { [token]: { token: 1 } } }),
      `${noString('tokens.***.token')}; tokens.***.savedAt must be a string`,
    ],
    [
      settings({ stores: { 'postgres://ann:s3cret@h/x': { address: 5 } } }),
      noString('stores.***.address'),
    ],
    [
      settings({ store: 1, stores: { a: {}, b: [] } }),
      `${noString('store')}; stores.a.address must be a string; stores.b must be an object`,
    ],
  ]
  test.each(
    broken.map(([content, why], at) => [...[String(content).slice(0, 60), why, at, content]]),
  )('%s: %s', async (_, why, at, content) => {
    const hint = 'Fix the file, or move it away'
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
        refusal(
          `The settings in ${user.file} could not be read: illegal operation on a directory`,
          'Change its permissions, or set PLANTS_CONFIG_DIR to another directory',
        ),
      )
    expect(readdirSync(user.config, { recursive: true })).toEqual(['settings.json'])
  })
})

test('every value that can be saved is read', () => {
  const saved = {
    version: 1,
    store: 'garden',
    output: 'json',
    timeout: '9s',
    'ca-cert': '/etc/ca.pem',
    stores: {
      garden: { address: '/srv/garden.db' },
      team: {
        ...{ address: team, timeout: '1m', 'ca-cert': '/etc/team.pem' },
        ...{ 'allow-http': false, 'token-command': 'pass show plants' },
      },
    },
    tokens: { [team]: { token, savedAt } },
    later: { deep: [null] },
  }
  expect(settingsProblems(saved)).toEqual([])
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
