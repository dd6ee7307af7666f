import { resolve } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import type { RunOptions } from '../../helpers/run.js'
import { answer, objectsOf, refusal, World } from '../../helpers/world.js'

// What these commands print is in transcripts/stores.txt and config.txt.

const team = 'https://plants.example.com/v1'
const garden = resolve('/srv/garden.db')
const stores = { team: { address: team, timeout: '2m' }, garden: { address: garden } }
const onTerminal: RunOptions = { terminals: ['stdout', 'stderr'], columns: 120 }

/** A user with two saved stores: a service and a file. */
function gardener(settings: object = {}): World {
  return new World({ stores, ...settings })
}

describe('an address', () => {
  const addresses =
    'Give a path (./plants.db), an address (http://localhost:4010, postgres://HOST/DATABASE) or a saved name (team)'
  const noScheme =
    'The address of a service begins with http:// or https://, such as http://localhost:4010'
  const nul = expect.stringContaining('contains U+0000')

  test.each<[why: unknown, text: string, hint?: unknown]>([
    ['is empty', 'sqlite:'],
    ['does not name a store', 'gardener!secret'],
    ['does not name a store', ':memory:'],
    ['does not name a store', '//server/x.db'],
    ['does not name a store', 'ftp://plants.example.com'],
    ['is a URL of a file', 'sqlite:///tmp/x.db', 'Give it as sqlite:PATH'],
    ['is a URL of a file', 'file:x.db', 'Give it as sqlite:PATH'],
    ['does not name a store', 'localhost:4010', noScheme],
    ['does not name a store', '127.0.0.1:4010/v1', noScheme],
    ['does not name a store', '[::1]:4010', noScheme],
    ['is not a valid URL', 'https:plants.example.com'],
    ['must be a base URL, without "?" and "#"', 'https://plants.example.com/#'],
    [
      'contains a user name or a password, but a service takes a token',
      'HTTPS://me:s3cret@plants.example.com',
      'Put the token into PLANTS_TOKEN, or save it with: plants auth login',
    ],
    [nul, './\0', expect.any(String)],
  ])('that %s is rejected wherever it is given: %j', async (why, text, hint = addresses) => {
    const user = gardener()
    const lines: [source: string, words: string[], env?: Record<string, string>][] = [
      ['--store', ['list', `--store=${text}`], { PLANTS_STORE: 'local' }],
      ['PLANTS_STORE', ['create', '--id', '1', '--name', 'Fern'], { PLANTS_STORE: text }],
      ['The address', ['stores', 'add', 'mine', text]],
      ['store', ['stores', 'use', text]],
      ['store', ['config', 'set', 'store', text]],
    ]
    for (const [source, words, env = {}] of lines) {
      const { code, out, err } = await user.run([...words, '--output', 'json'], {
        env,
        cwd: `${user.home}/a:`,
      })
      const message = typeof why === 'string' ? `${source} ${why}` : why
      expect({ code, out, ...JSON.parse(err) }).toEqual({
        code: 2,
        out: '',
        error: 400,
        message,
        hint,
      })
      expect(err).toContain(`"${source} `)
    }
    expect({ saved: user.saved, hasData: user.has('data') }).toEqual({
      saved: gardener().saved,
      hasData: false,
    })
  })
})

describe('the name of a store', () => {
  test.each(['1-2_b', 'x'.repeat(64), 'constructor'])('may be %s', async (name) => {
    const user = new World()
    expect(await user.run(['stores', 'add', name, '/mine.db'])).toEqual(
      answer({ name, address: resolve('/mine.db') }),
    )
    expect(await user.run(['stores', 'use', name])).toEqual(answer({ name: 'store', value: name }))
    expect(objectsOf((await user.run('stores list')).out)[1]).toEqual({
      name,
      address: resolve('/mine.db'),
      inUse: true,
    })
    expect((await user.run(['stores', 'remove', name])).code).toBe(0)
    expect(user.saved).toEqual({ version: 1, stores: {} })
  })

  test('has only letters, digits, "-" and "_"', async () => {
    const rule = 'letters, digits, "-" and "_", begins with a letter or digit, is up to 64 long'
    const hint = `A name has ${rule}, and is not "local"`
    const user = new World()
    for (const name of ['', '__proto__', '-team', 'x'.repeat(65), 'té', 'a.b', 'a\n'])
      expect(await user.run(['stores', 'add', '--', name, '/mine.db'])).toEqual(
        refusal('A store cannot be called this', hint),
      )
    expect(user.saved).toBeUndefined()
  })
})

test('stores add replaces a store and all that is saved with it, but only with --replace', async () => {
  const user = gardener({ output: 'json' })
  const changed = { address: resolve('/other.db'), timeout: '1m' }
  const line = 'stores add garden /other.db --timeout 1m'
  expect((await user.run(line)).code).toBe(2)
  expect(await user.run(`${line} --replace`)).toEqual(answer({ name: 'garden', ...changed }))
  const { out } = await user.run(`stores add team ${team} --replace --output text`)
  expect(out).toMatch(/^Replaced the store team, /)
  expect(user.saved).toEqual({
    version: 1,
    output: 'json',
    stores: { team: { address: team }, garden: changed },
  })
})

describe('stores list', () => {
  test('is a table on a terminal', async () => {
    const user = gardener({ store: 'team' })
    await user.run([
      'stores',
      'add',
      '10',
      team,
      '--allow-http',
      '--token-command',
      'pass \u001b[31m',
    ])
    const { out } = await user.run('stores list', onTerminal)
    const local = user.store
    const cell = (text: string) => text.padEnd(Math.max(local.length, team.length))
    expect(stripVTControlCharacters(out)).toBe(`\
   NAME    ${cell('ADDRESS')}  SETTINGS
   local   ${local}
   10      ${cell(team)}  allow-http=true, token-command=pass \\u{1b}[31m
   garden  ${garden}
*  team    ${cell(team)}  timeout=2m
`)
    expect((await user.run('stores list --no-color', onTerminal)).out).not.toContain('\u001b')
  })

  test('leaves out a name in the file that none can have, which can be removed', async () => {
    const user = new World()
    const saved = {
      'my store': { address: garden },
      '\u001b[2J': { address: garden },
      local: { address: garden },
    }
    user.save({ stores: { ...saved, team: { address: team, name: 'x', inUse: true } } })
    const local = { name: 'local', address: user.store, inUse: true }
    expect(await user.run('stores list')).toEqual(
      answer(local, { name: 'team', address: team, inUse: false }),
    )
    for (const command of ['stores list', 'config list'])
      expect((await user.run(command, onTerminal)).out).not.toContain('\u001b[2J')
    expect((await user.run(['stores', 'remove', '\u001b[2J'], onTerminal)).out).toMatch(
      /^Removed the store \\u\{1b\}\[2J\. /,
    )
    expect(Object.keys((user.saved as { stores: object }).stores)).toEqual([
      'my store',
      'local',
      'team',
    ])
  })
})

test.runIf(hasOpenssl)('ca-cert is saved as an absolute path (needs openssl)', async () => {
  const user = gardener()
  user.write('ca.pem', certificate({ names: ['DNS:localhost'] }).cert)
  const value = `${user.home}/ca.pem`
  expect(await user.run('config set ca-cert ca.pem')).toEqual(answer({ name: 'ca-cert', value }))
  const saved = { name: 'team', address: team, timeout: '2m', 'ca-cert': value }
  expect(await user.run(`stores add team ${team} --ca-cert ca.pem --timeout 2m --replace`)).toEqual(
    answer(saved),
  )
})

test.each(['colour', '__proto__', 'stores.team'])(
  '%j is no setting for all stores, for each command',
  async (name) => {
    const user = gardener()
    const was = name === 'colour' ? `, but was "${name}"` : '' // nothing but a word is repeated
    const rejected = (rest = '') =>
      refusal(
        `setting must be one of store, output, timeout, ca-cert${rest}${was}`,
        'For one store: plants stores add --replace',
      )
    expect(await user.run(`config get ${name}`)).toEqual(rejected(', allow-http, token-command'))
    for (const line of [`set ${name} 1m`, `unset ${name}`])
      expect(await user.run(`config ${line}`)).toEqual(rejected())
    expect(user.saved).toEqual({ version: 1, stores })
  },
)

test('stores remove keeps the token, and says so', async () => {
  const user = gardener({ tokens: { [team]: { token: 's3cret', savedAt: '' } } })
  const { err } = await user.run('stores remove team')
  expect(err).toBe(
    `plants: Its token is still saved. Remove it: plants auth logout --store ${team}\n`,
  )
  expect(user.saved).toMatchObject({ tokens: { [team]: { token: 's3cret' } } })
})
