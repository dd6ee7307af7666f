import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { isLinux } from '../../helpers/linux.js'
import { answer, printed, refusal, World } from '../../helpers/world.js'

const team = 'https://plants.example.com/v1'
const token = 's3cret-Token'
const savedAt = '2026-01-02T03:04:05.678Z'

const reading = ['list', 'create --id 1 --name Fern', 'config list', 'config get timeout', 'stores list', 'auth status']
const changing = [
  ...['config set timeout 1m', 'config unset timeout', 'stores add garden ./garden.db', 'stores use local'],
  ...['stores remove team', `auth login --with-token --store ${team}`, `auth logout --store ${team}`],
]

describe('a broken settings file is named, and stays as it is:', () => {
  const invalid = 'are invalid: '
  const noString = (name: string) => `${invalid}${name} must be a string`
  const settings = (fields: object) => JSON.stringify({ version: 1, ...fields })
  const store = (fields: object) => settings({ stores: { team: { address: team, ...fields } } })

  const broken: [content: string | Uint8Array, why: string, hint?: string][] = [
    ['', 'are empty', 'Move the file away, or write {"version":1} into it'],
    [' \n', 'are not JSON: unexpected end of input at line 2, column 1'],
    [`{"tokens":{"a":${token}}}`, 'are not JSON: unexpected "s" at line 1, column 16'],
    [`{"tokens":{"a":{"token":"${token}`, 'are not JSON: unexpected end of input at line 1, column 38'],
    [Buffer.from('{"version":1,"a":"\xe9"}', 'latin1'), 'are not UTF-8'],
    ['null', `${invalid}the document must be an object`],
    ['[{"version":1}]', `${invalid}the document must be an object`],
    ['{"version":"1"}', `${invalid}version must be 1`],
    ['{"version":0}', `${invalid}version must be 1`],
    [
      '{"version":2,"stores":[]}',
      'were written by a newer plants (version 2)',
      'Update plants, or set PLANTS_CONFIG_DIR to another directory',
    ],
    ...['store', 'output', 'timeout', 'ca-cert'].map((name): [string, string] => [
      settings({ [name]: 1 }),
      noString(name),
    ]),
    [settings({ stores: [] }), `${invalid}stores must be an object`],
    [settings({ stores: { team } }), `${invalid}stores.team must be an object`],
    ...['address', 'timeout', 'ca-cert', 'token-command'].map((name): [string, string] => [
      store({ [name]: 1 }),
      noString(`stores.team.${name}`),
    ]),
    [store({ 'allow-http': 'yes' }), `${invalid}stores.team.allow-http must be true or false`],
    [settings({ tokens: null }), `${invalid}tokens must be an object`],
    [settings({ tokens: { [team]: token } }), `${invalid}tokens.${team} must be an object`],
    [settings({ tokens: { [token]: { token: 1, savedAt } } }), noString('tokens.***.token')],
    [settings({ tokens: { a: { token } } }), noString('tokens.***.savedAt')],
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
      expect({ command, code, out, ...JSON.parse(err) }).toEqual({ command, code: 2, out: '', ...error })
    }
    expect(readFileSync(user.file).equals(Buffer.from(content as string))).toBe(true)
    expect(readdirSync(user.home, { recursive: true }).toSorted()).toEqual(['config', 'config/settings.json'])
  })

  test('doctor and the help work', async () => {
    const user = new World()
    user.save('{')
    expect((await user.run('--help')).code).toBe(0)
    const failed = expect.stringContaining('{"check":"settings","state":"failed"')
    expect(await user.run('doctor')).toMatchObject({ code: 1, out: failed })
  })

  const others: [string, (file: string) => void, why: string, hint: string][] = [
    ['a directory', (file) => mkdirSync(file), 'are a directory', 'Move it away'],
    [
      'a link to itself',
      (file) => symlinkSync(file, file),
      'could not be read: too many symbolic links',
      'Fix the link',
    ],
    ['a pipe', (file) => execFileSync('mkfifo', [file]), 'are not a regular file', 'Move it away'],
  ]
  test.each(others.filter(([what]) => isLinux || what !== 'a pipe'))(
    '%s',
    { timeout: 10_000 },
    async (_, make, why, hint) => {
      const user = new World()
      mkdirSync(user.config)
      make(user.file)
      for (const command of ['config list', 'config set timeout 1m', 'list'])
        expect(await user.run(command)).toEqual(refusal(`The settings in ${user.file} ${why}`, hint))
      expect(readdirSync(user.config, { recursive: true })).toEqual(['settings.json'])
    },
  )
})

test('a settings file may begin with a byte order mark, and be 1 MiB large', async () => {
  const user = new World()
  user.save('\ufeff{"version":1,"timeout":"5s"}'.padEnd(1_048_576 - 2))
  expect(await user.run('config get timeout')).toEqual(printed('5s\n'))
  expect(await user.run('config set timeout 6s')).toEqual(answer({ name: 'timeout', value: '6s' }))
  expect(user.saved).toEqual({ version: 1, timeout: '6s' })
})

test('a change that would make the file too large to be read again is rejected', async () => {
  const user = new World({ notes: 'x'.repeat(1_048_500) })
  const before = readFileSync(user.file)
  expect((await user.run(['stores', 'add', 'team', team])).code).toBe(2)
  expect(readFileSync(user.file).equals(before)).toBe(true)
})

test('settings with 200,000 nested lists are read, and not changed', async () => {
  const user = new World()
  const text = `{"version":1,"timeout":"7s","notes":${'['.repeat(200_000)}${']'.repeat(200_000)}}`
  user.save(text)
  expect(await user.run('config get timeout')).toEqual(printed('7s\n'))
  const rejected = refusal('The settings are nested too deeply to be written', 'Fix the settings file, or move it away')
  const login = 'auth login --with-token --timeout 10ms --store http://127.0.0.1:9'
  for (const command of ['config set timeout 3s', 'stores add team ./team.db', login]) {
    const { code, out, err } = await user.run(command, { stdin: token })
    expect({ code, out, err: err.split('\n').slice(-3).join('\n') }).toEqual(rejected)
  }
  expect(readFileSync(user.file, 'utf8') === text).toBe(true)
  expect(readdirSync(user.config).filter((name) => !name.includes('lock'))).toEqual(['settings.json'])
})

test.each([
  ['timeout', 'soon', '30s'],
  ['output', 'xml', 'json'],
  ['stores.team.timeout', '', '30s'],
  ['stores.team.address', 'ftp://x', './team.db'],
])('an invalid %s can be corrected and unset', async (name, wrong, right) => {
  const user = new World()
  const [last = '', store] = name.split('.').toReversed()
  const field = { [last]: wrong }
  user.save(store === undefined ? field : { stores: { team: { address: './team.db', ...field } } })
  const list = store === undefined ? 'list' : 'list --store team'
  const { code, err } = await user.run(list)
  expect([code, err]).toEqual([2, expect.stringContaining(`plants: ${name} in ${user.file} `)])
  if (store !== undefined) expect((await user.run('stores list')).code + (await user.run('list')).code).toBe(0)
  if (last !== 'address') {
    expect(await user.run(['config', 'unset', name, '--output', 'json'])).toEqual(answer({ name, removed: true }))
    user.save(store === undefined ? field : { stores: { team: { address: './team.db', ...field } } })
  }
  expect((await user.run(['config', 'set', name, right])).code).toBe(0)
  expect((await user.run(list)).code).not.toBe(2)
})
