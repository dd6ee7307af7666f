import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { isLinux } from '../../helpers/linux.js'
import { modeOf, unwritable } from '../../helpers/settings-file.js'
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
  const elsewhere = 'PLANTS_CONFIG_DIR to another directory'
  const noString = (name: string) => `${invalid}${name} must be a string`
  const settings = (fields: object) => JSON.stringify({ version: 1, ...fields })

  const broken: [content: string | Uint8Array, why: string, hint?: string][] = [
    ['', 'are empty', 'Move the file away, or write {"version":1} into it'],
    [`{"tokens":{"a":${token}}}`, 'are not JSON'],
    [Buffer.from('{"version":1,"a":"\xe9"}', 'latin1'), 'are not UTF-8'],
    ['[{"version":1}]', `${invalid}the document must be an object`],
    ['{"version":"1"}', `${invalid}version must be 1`],
    [
      '{"version":2,"stores":[]}',
      'were written by a newer version of plants (version 2)',
      `Update plants, or set ${elsewhere}`,
    ],
    [
      settings({ stores: { team: { address: team, 'token-command': 1, 'allow-http': 'yes' } } }),
      `${invalid}stores.team.allow-http must be true or false; stores.team.token-command must be a string`,
    ],
    [settings({ tokens: null }), `${invalid}tokens must be an object`],
    [settings({ tokens: { [team]: token } }), `${invalid}tokens.${team} must be an object`],
    [settings({ tokens: { [token]: { token: 1, savedAt } } }), noString('tokens.***.token')],
    [settings({ stores: { 'postgres://ann:s3cret@h/x': { address: 5 } } }), noString('stores.***.address')],
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

  const others: [string, (file: string) => void, why: string, hint?: string][] = [
    ['a directory', (file) => mkdirSync(file), 'are a directory'],
    [
      'a link to itself',
      (file) => symlinkSync(file, file),
      'could not be read: too many symbolic links',
      'Fix the link',
    ],
    ['a pipe', (file) => execFileSync('mkfifo', [file]), 'are not a regular file'],
  ]
  const possible = others.filter(([what]) => isLinux || what !== 'a pipe')
  test.each(possible)('%s', { timeout: 10_000 }, async (_, make, why, hint = 'Move it away') => {
    const user = new World()
    mkdirSync(user.config)
    make(user.file)
    for (const command of ['config list', 'config set timeout 1m', 'list'])
      expect(await user.run(command)).toEqual(refusal(`The settings in ${user.file} ${why}`, hint))
    expect(readdirSync(user.config, { recursive: true })).toEqual(['settings.json'])
  })
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

// Those of all stores are in transcripts/config.txt.
test.each([
  ['timeout', '', '30s'],
  ['address', 'ftp://x', './team.db'],
])('an invalid %s of a store can be corrected, and hinders no other', async (name, wrong, right) => {
  const user = new World({ stores: { team: { address: './team.db', [name]: wrong } } })
  const create = 'create --id 1 --name Fern --store team'
  const err = expect.stringContaining(`plants: stores.team.${name} in ${user.file} `)
  expect(await user.run(create)).toMatchObject({ code: 2, err })
  for (const line of ['stores list', 'list', `stores set team --${name} ${right}`, create])
    expect({ line, ...(await user.run(line)) }).toMatchObject({ line, code: 0 })
})

describe.skipIf(process.platform === 'win32')('a settings file', () => {
  test.each([
    ['610', '700', 'The settings in FILE are open to others (mode 610). Fix it with: chmod 600 FILE'],
    ['601', '700', 'The settings in FILE are open to others (mode 601). Fix it with: chmod 600 FILE'],
    ['600', '777', ''],
    ['400', '700', ''],
  ])('of mode %s in a directory of mode %s: %s', async (mode = '', folderMode = '', text = '') => {
    const user = new World({ timeout: '7s' })
    chmodSync(user.file, mode)
    chmodSync(user.config, folderMode)
    const warning = text.replaceAll('FILE', user.file)
    expect(await user.run('config get timeout')).toEqual({
      ...printed('7s\n'),
      err: warning && `plants: ${warning}\n`,
    })
    expect((await user.run('config get timeout --output json')).err).toBe(warning && `${JSON.stringify({ warning })}\n`)
  })

  test.each(['602', '666'])('of mode %s, which others can write, is refused', async (mode) => {
    const user = new World({ timeout: '7s' })
    chmodSync(user.file, mode)
    const why = `The settings in ${user.file} are in a file that can be changed by others (mode ${mode})`
    const rejected = refusal(why, `Check what it contains, then run: chmod 600 ${user.file}`)
    for (const command of ['config get timeout', 'create --id 1 --name Fern', 'config set timeout 8s'])
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

test('a file of mode 400 is read, and not changed', async () => {
  const user = new World({ timeout: '7s', stores: { team: { address: 'https://plants.example.com' } } })
  const before = user.saved
  chmodSync(user.file, 0o400)
  const message = `The settings in ${user.file} could not be changed: the file is read-only`
  const rejected = refusal(message, `Make the file writable: chmod u+w ${user.file}`, 74)
  for (const command of ['config set timeout 8s', 'config unset timeout', 'stores use team', 'stores remove team'])
    expect(await user.run(`${command} --output text`)).toEqual(rejected)
  expect([user.saved, modeOf(user.file)]).toEqual([before, '400'])
})

test('a file in the place of the folder is named, and stays', async () => {
  const user = new World()
  writeFileSync(user.config, 'mine')
  expect(await user.run('config get timeout')).toEqual(printed('30s\n'))
  const rejected = { code: 74, out: '', err: unwritable(user, 'a part of its path is not a directory') }
  expect(await user.run('config set timeout 8s')).toEqual(rejected)
  expect(user.read('config')).toBe('mine')
})

// What else may be in its place: unit/platform/file-lock.test.ts.
test('a pipe in the place of the lock is named', { timeout: 10_000 }, async () => {
  const user = new World({ timeout: '7s' })
  execFileSync('mkfifo', [`${user.file}.lock`])
  const { code, err } = await user.run('config set timeout 8s')
  expect([code, err]).toEqual([74, expect.stringContaining(`${user.file}.lock: it is not a regular file`)])
  expect(user.saved).toEqual({ version: 1, timeout: '7s' })
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
