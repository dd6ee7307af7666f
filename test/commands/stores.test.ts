import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { createCertificate, hasOpenssl } from '../helpers/sandbox/certificates.js'
import type { RunOptions } from '../helpers/sandbox/run.js'
import { parseObjects, Sandbox, toJsonResult } from '../helpers/sandbox/sandbox.js'

// What these commands print is in transcripts/stores.txt, database.txt and config.txt.

const team = 'https://plants.example.com/v1'
const garden = resolve('/srv/garden.db')
const stores = { team: { address: team, timeout: '2m' }, garden: { address: garden } }
const onTerminal: RunOptions = { terminals: ['stdout', 'stderr'], columns: 120 }

test.each([
  ['does not name a store', 'gardener!secret'],
  ['does not name a store', ':memory:'],
  ['does not name a store', '//server/x.db'],
  ['has a scheme that is not supported', 'sqlite:///tmp/x.db'],
  ['does not name a store', 'localhost:4010'],
  ['does not name a store', 'me@db.example.com:5432/garden'],
  ['is not a valid URL', 'https:plants.example.com'],
  ['must be a base URL', 'https://plants.example.com/#'],
  ['contains a user name or a password', 'HTTPS://me:s3cret@plants.example.com'],
  ['contains U+0000', 'postgres://h1/x?sslrootcert=%00a'],
])('each command rejects an address that %s: %j', async (why, text) => {
  const user = new Sandbox({ stores })
  const before = user.saved
  const lines: [source: string, words: string[], env?: Record<string, string>][] = [
    ['--store', ['list', `--store=${text}`], { PLANTS_STORE: 'local' }],
    ['PLANTS_STORE', ['create', '--id', '1', '--name', 'Fern'], { PLANTS_STORE: text }],
    ['The address', ['stores', 'add', 'mine', text]],
    ['The argument', ['stores', 'use', text]],
    ['The argument', ['config', 'set', 'store', text]],
  ]
  for (const [source, words, env = {}] of lines) {
    const options = { env, cwd: `${user.home}/a:` }
    const { code, out, err } = await user.run([...words, '--output', 'json'], options)
    expect({ code, out, ...JSON.parse(err) }).toEqual({
      ...{ code: 2, out: '', error: 400, hint: expect.any(String), kind: 'usage' },
      message: expect.stringMatching(`^${source} .*${why.replace('+', '.')}`),
    })
  }
  expect({ saved: user.saved, hasData: user.has('data') }).toEqual({
    saved: before,
    hasData: false,
  })
})

test.each(['1-2_b', 'x'.repeat(64), 'constructor'])(
  'a store may have the name %s',
  async (name) => {
    const user = new Sandbox()
    const address = resolve('/mine.db')
    expect(await user.run(['stores', 'add', name, '/mine.db'])).toEqual(
      toJsonResult({ name, address }),
    )
    expect(await user.run(['stores', 'use', name])).toEqual(
      toJsonResult({ name: 'store', value: name }),
    )
    const [, listed] = parseObjects((await user.run('stores list')).out)
    expect(listed).toEqual({ name, address, inUse: true })
    expect((await user.run(['stores', 'remove', name])).code).toBe(2)
    await user.run('config unset store')
    expect((await user.run(['stores', 'remove', name])).code).toBe(0)
    expect(user.saved).toEqual({ version: 1, stores: {} })
  },
)

test('the name of a store has only letters, digits, "-" and "_"', async () => {
  const user = new Sandbox()
  for (const name of ['', '__proto__', '-team', 'x'.repeat(65), 'té', 'a.b', 'a\n'])
    expect((await user.run(['stores', 'add', '--', name, '/mine.db'])).code, name).toBe(2)
  expect(user.saved).toBeUndefined()
})

test('stores add replaces a store and its settings only with --replace', async () => {
  const user = new Sandbox({ stores, output: 'json' })
  const changed = { address: resolve('/other.db'), timeout: '1m' }
  const line = 'stores add garden /other.db --timeout 1m'
  expect((await user.run(line)).code).toBe(2)
  expect(await user.run(`${line} --replace`)).toEqual(toJsonResult({ name: 'garden', ...changed }))
  await user.run(`stores add team ${team} --replace`)
  const saved = { team: { address: team }, garden: changed }
  expect(user.saved).toEqual({ version: 1, output: 'json', stores: saved })
})

test('stores list prints a table on a terminal, and escapes control characters of settings', async () => {
  const more = { address: team, 'allow-http': true, 'token-command': 'pass \u001b[31m' }
  const user = new Sandbox({ store: 'team', stores: { ...stores, 10: more } })
  const cell = (text: string) => text.padEnd(Math.max(user.store.length, team.length))
  expect((await user.run('stores list --no-color', onTerminal)).out).toBe(`\
   NAME    ${cell('ADDRESS')}  SETTINGS
   local   ${user.store}
   10      ${cell(team)}  allow-http=true, token-command=pass \\u{1b}[31m
   garden  ${garden}
*  team    ${cell(team)}  timeout=2m
`)
})

test.runIf(hasOpenssl)('a ca-cert is saved as an absolute path (needs openssl)', async () => {
  const user = new Sandbox({ stores })
  user.write('ca.pem', createCertificate({ names: ['DNS:localhost'] }).cert)
  const value = `${user.home}/ca.pem`
  expect(await user.run('config set ca-cert ca.pem')).toEqual(
    toJsonResult({ name: 'ca-cert', value }),
  )
  await user.run(`stores add team ${team} --ca-cert ca.pem --replace`)
  expect(user.saved).toMatchObject({ stores: { team: { 'ca-cert': value } }, 'ca-cert': value })
})

test.each(['get 1 --store', 'stores add mine', 'stores use', 'stores init', 'config set store'])(
  'a password in the address of a store is rejected as an argument, and not repeated: %s',
  async (line) => {
    const user = new Sandbox({ stores: { db: { address: '/x.db' } } })
    const { saved } = user
    for (const address of ['postgres://ann:s3cret@h1/x', 'postgresql://h1/x?password=s3cret']) {
      const { code, out, err } = await user.run(`${line} ${address}`)
      expect({ code, out }).toEqual({ code: 2, out: '' })
      expect(err).not.toContain('s3cret')
      if (address.includes('@')) expect(err).toContain('PGPASSWORD')
    }
    expect(user.saved).toEqual(saved)
  },
)

test.each([
  { address: 'postgres://h1/x', isWarned: true },
  { address: 'postgres://h1/x?sslmode=verify-full&sslrootcert=system', isWarned: false },
  { address: 'postgres://localhost,127.0.0.1,[::1]/x', isWarned: false },
])(
  'stores add $address warns of an attacker on the network: $isWarned',
  async ({ address, isWarned }) => {
    const user = new Sandbox()
    for (const line of [
      `stores add db ${address}`,
      'stores use db',
      `config set store ${address}`,
    ]) {
      const { code, err } = await user.run(line)
      expect({ line, code, isWarned: err.includes('sslmode=verify-full') }).toEqual({
        ...{ line, code: 0, isWarned },
      })
    }
  },
)
