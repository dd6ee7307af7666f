import { mkdirSync } from 'node:fs'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { parseAddress } from '../../../src/stores/registry.js'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { objectsOf } from '../../helpers/json-lines.js'
import type { RunOptions } from '../../helpers/run.js'
import { place } from '../../helpers/store.js'
import { answer, printed, refusal, World } from '../../helpers/world.js'

// What these commands print is in transcripts/stores.txt and config.txt.

const team = 'https://plants.example.com/v1'
const garden = '/srv/garden.db'
const stores = { team: { address: team, timeout: '2m' }, garden: { address: garden } }
const onTerminal: RunOptions = { terminals: ['stdout', 'stderr'], columns: 120 }

/** A user with two saved stores: a service and a file. */
function gardener(settings: object = {}): World {
  return new World({ stores, ...settings })
}

describe('an address', () => {
  const addresses =
    'A store is a saved name, "local", a path such as ./plants.db, sqlite:PATH, http(s)://…, unix:PATH or postgres://…'
  const longer = expect.stringContaining('has a socket path that is longer')
  const nul = expect.stringContaining('contains U+0000')

  test.each<[why: unknown, texts: string[], hint?: unknown]>([
    ['is empty', ['', 'sqlite:']],
    [
      'does not name a store',
      'gardener!secret :memory: sqlite://x.db //server/x.db ftp://plants.example file:user:SECRET@plants.example/db'.split(
        ' ',
      ),
    ],
    ['is not a valid URL', ['https://', 'https:plants.example.com', 'https://plants.example.com:99999']],
    ['must be a base URL, without "?" and "#"', ['https://plants.example.com?a', 'https://plants.example.com/#']],
    [
      'contains a user name or a password, but a service takes a token',
      ['HTTPS://me:s3cret@plants.example.com'],
      'Put the token into PLANTS_TOKEN, or save it with: plants auth login',
    ],
    ['does not name a socket', ['unix:'], 'For example: unix:/run/plants.sock'],
    [
      'has a socket path that contains ":/", where a base path would begin',
      ['unix:./b.sock:/v1', 'unix:sub/b.sock'],
      'Give it another path',
    ],
    [longer, [`unix:/${'x'.repeat(200)}`], 'Sockets need shorter ones'],
    [nul, ['./\0', 'unix:/run/a\0.sock', 'https://plants.example.com/\0'], expect.any(String)],
  ])('that %s is rejected wherever it is given: %j', async (why, texts, hint = addresses) => {
    const user = gardener()
    for (const text of texts) {
      const lines: [source: string, words: string[], env?: Record<string, string>][] = [
        ['--store', ['list', `--store=${text}`], { PLANTS_STORE: 'local' }],
        ['PLANTS_STORE', ['create', '--id', '1', '--name', 'Fern'], { PLANTS_STORE: text || 'sqlite:' }],
        ['The address', ['stores', 'add', 'mine', text]],
        ['store', ['stores', 'use', text]],
        ['store', ['config', 'set', 'store', text]],
        ['--address', ['stores', 'set', 'team', `--address=${text}`]],
      ]
      for (const [source, words, env = {}] of lines) {
        const { code, out, err } = await user.run([...words, '--output', 'json'], { env, cwd: `${user.home}/a:` })
        const message = typeof why === 'string' ? `${source} ${why}` : why
        expect({ code, out, ...JSON.parse(err) }).toEqual({ code: 2, out: '', error: 400, message, hint })
        expect(err).toContain(`"${source} `)
      }
    }
    expect({ saved: user.saved, hasData: user.has('data') }).toEqual({ saved: gardener().saved, hasData: false })
  })

  test('with U+0000 in the file hinders no other store', async () => {
    const user = new World()
    user.save({ stores: { bad: { address: 'unix:/run/a\0.sock' }, garden: { address: `${user.home}/garden.db` } } })
    const message = `stores.bad.address in ${user.file} contains U+0000, which is not allowed in an address`
    for (const line of ['create --id 1 --name Fern', 'auth status'])
      expect(await user.run(`${line} --store bad`)).toMatchObject({ code: 2, err: expect.stringContaining(message) })
    const { code, out } = await user.run('doctor')
    const failed = objectsOf(out).filter(({ state }) => state !== 'ok')
    expect([code, failed]).toMatchObject([1, [{ check: 'store bad', state: 'failed', message }]])
    for (const line of ['create --id 1 --name Fern --store garden', 'stores list', 'stores remove bad'])
      expect((await user.run(line)).code).toBe(0)
  })

  test('outside ASCII is the same as often as it is parsed', async () => {
    const read = new Set<string>()
    for (let count = 0; count < 20_000; count += 1)
      read.add((await parseAddress('https://plänts.example/ü', '--store', place())).name)
    expect([...read]).toEqual(['https://xn--plnts-hra.example/%C3%BC'])
  })
})

describe('the name of a store', () => {
  test.each(['A-b_C', '0', '1-2_3-', 'x'.repeat(64), 'constructor', 'Local', 'list'])('may be %s', async (name) => {
    const user = new World()
    expect(await user.run(['stores', 'add', name, '/mine.db'])).toEqual(answer({ name, address: '/mine.db' }))
    expect(await user.run(['stores', 'use', name])).toEqual(answer({ name: 'store', value: name }))
    expect(objectsOf((await user.run('stores list')).out)[1]).toEqual({ name, address: '/mine.db', inUse: true })
    expect((await user.run(['stores', 'remove', name])).code).toBe(0)
    expect(user.saved).toEqual({ version: 1, stores: {} })
  })

  test('has only letters, digits, "-" and "_"', async () => {
    const hint = 'A name has letters, digits, "-" and "_", begins with a letter or digit, and is up to 64 long'
    const user = new World()
    for (const name of ['', '__proto__', '-team', 'x'.repeat(65), 'té', 'ſtore', 'a b', 'a.b', 'a/b', 'a\n'])
      expect(await user.run(['stores', 'add', '--', name, '/mine.db'])).toEqual(
        refusal('A store cannot be called this', hint),
      )
    expect(user.saved).toBeUndefined()
  })
})

test('stores add and stores set have an option for each setting of a store', async () => {
  const optionsOf = async (line: string) => (await new World().run(line)).out.match(/(?<=^ {2,}(-\w, )?)--[a-z-]+/gm)
  const settings = ['--timeout', '--ca-cert', '--allow-http', '--token-command']
  const without = settings.map((option) => option.replace('--', '--no-'))
  expect(await optionsOf('stores add --help')).toEqual([...settings, '--help'])
  expect(await optionsOf('stores set --help')).toEqual(['--address', ...settings, ...without, '--help'])
})

test('stores set changes and removes what is saved with a store, and nothing else', async () => {
  const user = gardener({ output: 'json' })
  const changed = { address: '/other.db', timeout: '1m' }
  expect(await user.run('stores set garden --address /other.db --timeout 1m')).toEqual(
    answer({ name: 'garden', ...changed }),
  )
  expect(await user.run('stores set team --allow-http --no-timeout')).toEqual(
    answer({ name: 'team', address: team, 'allow-http': true }),
  )
  expect(await user.run('stores set team --no-allow-http --output text')).toEqual(printed('Changed the store team\n'))
  expect(user.saved).toEqual({ version: 1, output: 'json', stores: { team: { address: team }, garden: changed } })
})

describe('stores list', () => {
  test('has local first, then the others by their names', async () => {
    const user = new World()
    for (const name of ['b', '10', 'a', '9', 'B']) await user.run(`stores add ${name} /${name}.db`)
    const names = objectsOf((await user.run('stores list')).out).map(({ name }) => name)
    expect(names).toEqual(['local', '10', '9', 'B', 'a', 'b'])
  })

  test('is a table on a terminal', async () => {
    const user = gardener({ store: 'team' })
    await user.run(['stores', 'add', 'x', team, '--allow-http', '--token-command', 'pass \u001b[31m'])
    const { out } = await user.run('stores list', onTerminal)
    const local = `${user.home}/data/plants.db`
    const cell = (text: string) => text.padEnd(Math.max(local.length, team.length))
    expect(stripVTControlCharacters(out)).toBe(`\
   NAME    ${cell('ADDRESS')}  SETTINGS
   local   ${local}
   garden  ${garden}
*  team    ${cell(team)}  timeout=2m
   x       ${cell(team)}  allow-http=true, token-command=pass \\u{1b}[31m
`)
    expect((await user.run('stores list --no-color', onTerminal)).out).not.toContain('\u001b')
  })

  test('leaves out a name in the file that none can have, which can be removed', async () => {
    const user = new World()
    const saved = { 'my store': { address: garden }, '\u001b[2J': { address: garden }, local: { address: garden } }
    user.save({ stores: { ...saved, team: { address: team, name: 'x', inUse: true } } })
    const local = { name: 'local', address: `${user.home}/data/plants.db`, inUse: true }
    expect(await user.run('stores list')).toEqual(answer(local, { name: 'team', address: team, inUse: false }))
    for (const command of ['stores list', 'config list'])
      expect((await user.run(command, onTerminal)).out).not.toContain('\u001b[2J')
    expect((await user.run(['stores', 'remove', '\u001b[2J'], onTerminal)).out).toMatch(
      /^Removed the store \\u\{1b\}\[2J\. /,
    )
    expect(Object.keys((user.saved as { stores: object }).stores)).toEqual(['my store', 'local', 'team'])
  })
})

test('PLANTS_ALLOW_HTTP is any word for yes or no', async () => {
  const user = gardener()
  for (const [index, given] of ['true', 'YES', '1', 'on', 'false', 'No', '0', 'off'].entries()) {
    const env = { PLANTS_ALLOW_HTTP: given, PLANTS_TOKEN: 's3cret-token' }
    const { err } = await user.run('get 1 --store http://plants.invalid --timeout 10ms', { env })
    expect(err).toContain(index < 4 ? 'Could not reach' : 'The token is not sent to http://plants.invalid')
  }
})

test.runIf(hasOpenssl)('ca-cert is saved as an absolute path (needs openssl)', async () => {
  const user = gardener()
  user.write('ca.pem', certificate({ names: ['DNS:localhost'] }).cert)
  const value = `${user.home}/ca.pem`
  for (const path of ['ca.pem', value]) {
    expect(await user.run(['config', 'set', 'ca-cert', path])).toEqual(answer({ name: 'ca-cert', value }))
    const saved = { name: 'team', address: team, timeout: '2m', 'ca-cert': value }
    expect(await user.run(['stores', 'set', 'team', '--ca-cert', path])).toEqual(answer(saved))
  }
})

const all = 'The settings are: store, output, timeout, ca-cert'

test.each([
  ['colour', all],
  ['timout', all],
  ['__proto__', all],
  ['stores.team', all],
  ['stores.team.timeout', 'For one store: plants stores set NAME --timeout <duration>'],
  ['stores.team.address', 'For one store: plants stores set NAME --address <address>'],
])('%j is no setting for all stores, for each command', async (name, hint) => {
  const user = gardener()
  for (const [verb, ...value] of [['get'], ['set', '1m'], ['unset']] as const) {
    const { code, err } = await user.run(['config', verb, name, ...value, '--output', 'json'])
    const message = `There is no setting "${name}"`
    expect({ code, ...JSON.parse(err) }).toEqual({ code: 2, error: 400, message, hint })
  }
  expect(user.saved).toEqual({ version: 1, stores })
})

test('a token for the new address of a store is not warned of', async () => {
  const user = gardener({ tokens: { [team]: { token: 's3cret', savedAt: '' } } })
  await user.run('auth login --store http://127.0.0.1:4011 --from-stdin', { stdin: 's3cret-of-another' })
  expect(await user.run('stores set team --address http://127.0.0.1:4011')).toMatchObject({ code: 0, err: '' })
})

test('escapes a value on a terminal, and prints it elsewhere as it is', async () => {
  const user = gardener({ timeout: '5 \u001b[31m' })
  expect(await user.run('config get timeout', onTerminal)).toEqual(printed('5 \\u{1b}[31m\n'))
  expect(await user.run('config get timeout')).toEqual(printed('5 \u001b[31m\n'))
})

test.each(['{', '{"version":1,"output":"xml"}', undefined])(
  'config path works where the file is broken: %j',
  async (text) => {
    const user = new World()
    if (text === undefined) mkdirSync(user.file, { recursive: true })
    else user.save(text)
    expect(await user.run('config path', onTerminal)).toEqual(printed(`${user.file}\n`))
  },
)
