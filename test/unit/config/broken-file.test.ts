import { execFileSync } from 'node:child_process'
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { isLinux } from '../../helpers/linux.js'
import { answer, printed, refusal, World } from '../../helpers/world.js'

const team = 'https://plants.example.com/v1'
const token = 's3cret-Token'
const savedAt = '2026-01-02T03:04:05.678Z'

describe('a settings file that is broken is named, and left as it is:', () => {
  const mend = 'Fix the file, or move it away'
  const newer = 'Update plants, or set PLANTS_CONFIG_DIR to another directory'
  const of = (fields: object) => JSON.stringify({ version: 1, ...fields })

  const broken: [name: string, bytes: string | Uint8Array, why: string, hint?: string][] = [
    ['empty', '', 'are empty', 'Move the file away, or write {"version":1} into it'],
    ['blank', ' \n', 'are not JSON: unexpected end of input at line 2, column 1'],
    ['cut short in a key', '{"version":1,\n "sto', 'are not JSON: unexpected end of input at line 2, column 6'],
    [
      'cut short in a token',
      `{"version":1,"tokens":{"${team}":{"token":"${token}`,
      expect.stringMatching(/^are not JSON: unexpected end of input at line 1, /),
    ],
    ['another format', 'version = 1', 'are not JSON: unexpected "v" at line 1, column 1'],
    ['with a comment', '{"version":1}\n// mine', 'are not JSON: unexpected "/" at line 2, column 1'],
    ['with a comma too much', '{\n  "version": 1,\n}', 'are not JSON: unexpected "}" at line 3, column 1'],
    [
      'with a token that lacks its quotes',
      `{"tokens":{"a":${token}}}`,
      'are not JSON: unexpected "s" at line 1, column 16',
    ],
    ['twice', '{"version":1}{"version":1}', 'are not JSON: more than one JSON value, the second at line 1, column 14'],
    ['not UTF-8', Buffer.from('{"version":1,"a":"\xe9"}', 'latin1'), 'are not UTF-8'],
    ['UTF-16', Buffer.from('\ufeff{"version":1}', 'utf16le'), 'are not UTF-8'],
    ['null', 'null', 'are invalid: the document must be an object'],
    ['an array', '[{"version":1}]', 'are invalid: the document must be an object'],
    ['a text', '"version 1"', 'are invalid: the document must be an object'],
    ['without a version', '{}', 'are invalid: version must be 1'],
    ['of version 0', '{"version":0}', 'are invalid: version must be 1'],
    ['of version "1"', '{"version":"1"}', 'are invalid: version must be 1'],
    ['of version null', '{"version":null}', 'are invalid: version must be 1'],
    ['of version 2', '{"version":2,"stores":[]}', 'were written by a newer plants (version 2)', newer],
    ['of version 1e9', '{"version":1e9}', 'were written by a newer plants (version 1000000000)', newer],
    ['with a store that is null', of({ store: null }), 'are invalid: store must be a string'],
    ['with an output that is true', of({ output: true }), 'are invalid: output must be a string'],
    ['with a timeout that is 30', of({ timeout: 30 }), 'are invalid: timeout must be a string'],
    ['with a ca-cert that is a list', of({ 'ca-cert': ['/ca.pem'] }), 'are invalid: ca-cert must be a string'],
    ['with stores that are a list', of({ stores: [] }), 'are invalid: stores must be an object'],
    ['with stores that are a text', of({ stores: team }), 'are invalid: stores must be an object'],
    ['with a store that is a text', of({ stores: { team } }), 'are invalid: stores.team must be an object'],
    [
      'with a store without an address',
      of({ stores: { team: {} } }),
      'are invalid: stores.team.address must be a string',
    ],
    [
      'with an address that is 1',
      of({ stores: { team: { address: 1 } } }),
      'are invalid: stores.team.address must be a string',
    ],
    [
      'with an allow-http that is "yes"',
      of({ stores: { team: { address: team, 'allow-http': 'yes' } } }),
      'are invalid: stores.team.allow-http must be true or false',
    ],
    [
      'with a token-command that is a list',
      of({ stores: { team: { address: team, 'token-command': ['pass'] } } }),
      'are invalid: stores.team.token-command must be a string',
    ],
    ['with tokens that are null', of({ tokens: null }), 'are invalid: tokens must be an object'],
    ['with a token that is a text', of({ tokens: { [team]: token } }), `are invalid: tokens.${team} must be an object`],
    [
      'with a token that is a number',
      of({ tokens: { a: { token: 1, savedAt } } }),
      'are invalid: tokens.***.token must be a string',
    ],
    ['with a token of no time', of({ tokens: { a: { token } } }), 'are invalid: tokens.***.savedAt must be a string'],
    [
      'with several mistakes',
      of({ store: 1, stores: { a: { address: 1 }, b: [] } }),
      'are invalid: store must be a string; stores.a.address must be a string; stores.b must be an object',
    ],
    ['larger than 1 MiB', `{"version":1}${' '.repeat(1_048_576 - 12)}`, 'are larger than 1 MiB'],
  ]
  test.each(broken.map(([name, bytes, why, hint = mend], index) => ({ name, bytes, why, hint, index })))(
    '$name',
    async ({ bytes, why, hint, index }) => {
      const user = new World()
      user.save(bytes)
      const error = { error: 400, message: expect.stringContaining(`The settings in ${user.file} `), hint }
      const commands = [
        'list',
        'create --id 1 --name Fern',
        'config list',
        'config get timeout',
        'config set timeout 1m',
        'config unset timeout',
        'stores list',
        'stores add garden ./garden.db',
        'stores use local',
        'stores remove team',
        'auth status',
        `auth login --with-token --store ${team}`,
        `auth logout --store ${team}`,
      ]
      // Each file with two commands, and each command with several files.
      for (const command of commands.filter(
        (_, at) => at === index % commands.length || at === (index + 6) % commands.length,
      )) {
        const { code, out, err } = await user.run(`${command} --output json`, { stdin: token })
        expect({ command, code, out, ...JSON.parse(err) }).toEqual({ command, code: 2, out: '', ...error })
        expect(JSON.parse(err).message.replace(`The settings in ${user.file} `, '')).toEqual(why)
        expect(err).not.toContain(token)
      }
      if (index % 8 === 0) {
        expect(await user.run('config path')).toEqual(printed(`${user.file}\n`))
        expect((await user.run('--help')).code).toBe(0)
        const doctor = await user.run('doctor')
        expect(doctor).toMatchObject({ code: 1, out: expect.stringContaining('{"check":"settings","state":"failed"') })
      }
      expect(readFileSync(user.file).equals(Buffer.from(bytes))).toBe(true)
      expect(readdirSync(user.home)).toEqual(['config'])
      expect(readdirSync(user.config)).toEqual(['settings.json'])
    },
  )

  test('a folder', async () => {
    const user = new World()
    mkdirSync(user.file, { recursive: true })
    for (const command of ['config list', 'config set timeout 1m', 'list']) {
      expect(await user.run(command)).toEqual(refusal(`The settings in ${user.file} are a directory`, 'Move it away'))
    }
    expect(readdirSync(user.file)).toEqual([])
  })

  test.runIf(isLinux)('a pipe, which holds nobody up', { timeout: 10_000 }, async () => {
    const user = new World()
    mkdirSync(user.config)
    execFileSync('mkfifo', [user.file])
    for (const command of ['config list', 'config set timeout 1m', 'list']) {
      expect(await user.run(command)).toEqual(
        refusal(`The settings in ${user.file} are not a regular file`, 'Move it away'),
      )
    }
    expect(lstatSync(user.file).isFIFO()).toBe(true)
  })

  test('a link to itself', async () => {
    const user = new World()
    mkdirSync(user.config)
    symlinkSync('settings.json', user.file)
    const message = `The settings in ${user.file} could not be read: too many symbolic links`
    expect(await user.run('config set timeout 1m')).toEqual(refusal(message, 'Fix the link'))
    expect(readlinkSync(user.file)).toBe('settings.json')
  })
})

test('a settings file may begin with a byte order mark, and be 1 MiB large', async () => {
  const user = new World()
  const text = '\ufeff{"version":1,"timeout":"5s"}'
  user.save(text.padEnd(1_048_576 - 2))
  expect(await user.run('config get timeout')).toEqual(printed('5s\n'))
  expect(await user.run('config set timeout 6s')).toEqual(answer({ name: 'timeout', value: '6s' }))
  expect(user.saved).toEqual({ version: 1, timeout: '6s' })
})

test('a change that would make the file larger than what can be read again is refused, and leaves it', async () => {
  const user = new World()
  user.save({ notes: 'x'.repeat(1_048_500) })
  const before = readFileSync(user.file)
  const { code } = await user.run(['stores', 'add', 'team', team])
  expect({ code, isReadable: (await user.run('config list')).code === 0 }).toEqual({
    code: expect.not.closeTo(0),
    isReadable: true,
  })
  expect(readFileSync(user.file).equals(before)).toBe(true)
})

test('a settings file with lists in one another, 200,000 deep, is read, and refused where it would be written', async () => {
  const user = new World()
  const text = `{"version":1,"timeout":"7s","notes":${'['.repeat(200_000)}${']'.repeat(200_000)}}`
  user.save(text)
  expect(await user.run('config get timeout')).toEqual(printed('7s\n'))
  const why = 'The settings are nested too deeply to be written'
  const login = `auth login --with-token --timeout 10ms --store http://127.0.0.1:9`
  for (const command of ['config set timeout 3s', 'stores add team ./team.db', login]) {
    const { code, out, err } = await user.run(command, { stdin: token })
    const last = err.trimEnd().split('\n').slice(-2)
    expect({ command, code, out, last }).toEqual({
      ...{ command, code: 2, out: '' },
      last: [`plants: ${why}`, '  Fix the settings file, or move it away'],
    })
  }
  expect(readFileSync(user.file, 'utf8') === text).toBe(true)
  expect(readdirSync(user.config).filter((name) => !name.includes('lock'))).toEqual(['settings.json'])
})

describe('a saved value that its setting cannot have', () => {
  test.each<[string, object, string, string]>([
    ['timeout', { timeout: 'soon' }, 'timeout', 'must be a duration such as 30s, 500ms or 2m, but was "soon"'],
    ['output', { output: 'xml' }, 'output', 'must be one of text, json, ndjson, csv, tsv, but was "xml"'],
    [
      'stores.team.timeout',
      { store: 'team', stores: { team: { address: '/team.db', timeout: '' } } },
      'stores.team.timeout',
      'must be a duration such as 30s, 500ms or 2m, but was ""',
    ],
  ])('is named where it counts, and can be mended with config: %s', async (name, settings, key, why) => {
    const user = new World()
    user.save({ ...settings })
    expect(await user.run('list')).toMatchObject({
      code: 2,
      err: expect.stringContaining(`plants: ${key} in ${user.file} ${why}\n`),
    })
    expect(await user.run(['config', 'unset', name, '--output', 'json'])).toEqual(answer({ name, removed: true }))
    expect((await user.run('list')).code).not.toBe(2)
  })

  test.each([['nowhere'], [''], ['ftp://x']])(
    'as the address of a store, hinders nobody else, and can be mended: %j',
    async (address) => {
      const user = new World()
      user.save({ stores: { team: { address } } })
      expect((await user.run('list')).code).toBe(0)
      expect((await user.run('stores list')).code).toBe(0)
      expect(await user.run('list --store team')).toMatchObject({
        code: 2,
        err: expect.stringContaining(`plants: stores.team.address in ${user.file} `),
      })
      expect((await user.run('config set stores.team.address ./team.db')).code).toBe(0)
      expect((await user.run('create --id 1 --name Fern --store team')).code).toBe(0)
    },
  )
})
