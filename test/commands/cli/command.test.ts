import { expect, test } from 'vitest'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'

// What is said about wrong command lines is in transcripts/usage.txt.

test('a switch may be repeated, and an option with a value may stand anywhere', async () => {
  const user = new Sandbox()
  expect((await user.run('--verbose list --verbose')).code).toBe(0)
  for (const [line, message] of [
    ['stores --timeout 5s list --timeout=5s', '--timeout was given twice'],
    ['import --if-exists skip --if-exists skip', '--if-exists was given twice'],
    ['delete 1 --tag a -t a', '--tag was given twice'],
    ['list --tag a --no-tag', '--no-tag cannot be used with --tag'],
    ['update 1 --no-tag --tag a', '--tag cannot be used with --no-tag'],
  ] as const)
    expect(await user.run(line)).toEqual({
      ...{ code: 2, out: '', err: `plants: ${message}\n  Leave one of them out\n` },
    })
  expect((await user.run('--quiet list --search=--quiet')).code).toBe(0)
})

test.each(['tokens create --note --allow=read', 'create --id 1 --name --help'])(
  'an option is not taken for the value of the option before it: plants %s',
  async (line) => {
    const user = new Sandbox()
    expect(await user.run(line)).toMatchObject({ code: 2, out: '' })
    expect(user.has('data')).toBe(false)
  },
)

test.each([
  ['create -store=a.db --id 5 --name X', '--store'],
  ['create --id 5 -name X', '--name'],
  ['create -id 5 --name X', '--id'],
  ['list -store a.db', '--store'],
  ['list -limit 5', '--limit'],
  ['list -no-tag', '--no-tag'],
  ['-output json list', '--output'],
  ['delete 1 -yes', '--yes'],
  ['list -help', '--help'],
  ['-version', '--version'],
])('the error of plants %s says to write %s with two hyphens', async (line, option) => {
  const user = new Sandbox()
  expect(await user.run(line)).toEqual({
    code: 2,
    out: '',
    err: `plants: The option ${option} has only one hyphen\n  Write each long option with two hyphens: ${option}\n`,
  })
  expect([user.has('data'), user.has('tore=a.db')]).toEqual([false, false])
})

test('a single hyphen begins short options, ids below zero and arguments after --', async () => {
  const user = new Sandbox()
  for (const [line, code] of [
    ['create -i -7 -nid', 0],
    ['get -7', 0],
    ['get -- -id', 2],
    ['delete -qy -- -7', 0],
  ] as const) {
    const { code: actualCode, err } = await user.run(line)
    expect([line, actualCode, err.includes('hyphen')]).toEqual([line, code, false])
  }
})

test.each([
  ['create -xSECRET', 'option -x'],
  ["create --n'ame=SECRET", 'option'],
  ['--bad=SECRET list', 'option --bad'],
  ['list --quiet=SECRET', '--quiet takes no value'],
  ['list --SECRET_123', 'option'],
  ['plants_SECRET', 'command'],
  [`${'x'.repeat(15)}SECRET`, 'command'], // 21 letters
  ['auth login SECRET_1', 'does not take argument number 1'],
  ["list --x'\n(Did you mean SECRET?)", 'option'],
])('the error of plants %s repeats no more of the command line than %j', async (line, what) => {
  const { code, out, err } = await new Sandbox().run(line)
  const [message] = err.split('\n')
  expect([code, out, message?.endsWith(what)]).toEqual([2, '', true])
  expect(err).not.toContain('SECRET')
})

test('options of a store may stand before the command that saves them', async () => {
  const user = new Sandbox()
  const add = '--timeout 5s --allow-http stores add team https://plants.example.com'
  expect((await user.run(add)).code).toBe(0)
  const team = { address: 'https://plants.example.com', timeout: '5s', 'allow-http': true }
  expect(user.saved).toMatchObject({ stores: { team } })
})

test.each<[line: string, code: number]>([
  ['tokens create --expires 90d', 0],
  ['tokens create --expires 90', 2], // a unit is needed: people mean days
  ['list --timeout 1w', 2],
  ['list --timeout 24d', 0],
  // The largest value of each option, and one above it. Without a store, a service does not start.
  ['tokens create --expires 36525d', 0],
  ['tokens create --expires 36526d', 2],
  ['create --id 1 --name Fern --retry 1h', 0],
  ['create --id 1 --name Fern --retry 3601s', 2],
  ['serve --request-timeout 24d', 4],
  ['serve --request-timeout 25d', 2],
  ['serve --drain-timeout 25d', 2],
  ['serve --port 65535', 4],
  ['serve --port 65536', 2],
  ...['', '\u007f', 'é', 'k'.repeat(256)].map(
    (key) => [`create --id 1 --name Fern --idempotency-key=${key}`, 2] as [string, number],
  ),
  ...['', '0', '1.5', '01', '9007199254740992'].map(
    (text) => [`list --limit=${text}`, 2] as [string, number],
  ),
  ...['', '-1', '1.2345', '25d'].map((text) => [`list --timeout=${text}`, 2] as [string, number]),
])('plants %s exits with %i', async (line, code) => {
  expect((await new Sandbox().run(line)).code).toBe(code)
})

test.each([
  ...['9223372036854775808', '-9223372036854775809', '1.5', '1E3', '007', '-00', '7.0', '+1'],
  ...['', '1\n', '\u0661', 'a\u001b[2J'],
])('the value %j of an option is not accepted as an id', async (text) => {
  const user = new Sandbox()
  const err = expect.stringMatching(
    /is not (?:a whole number|in plain digits)|must be an (?:integer from|id)/,
  )
  for (const words of [
    ['create', `--id=${text}`, '--name', 'Fern'],
    ['list', `--after=${text}`],
  ])
    expect(await user.run(words)).toEqual({ code: 2, out: '', err })
  expect(user.has('data')).toBe(false)
})

test.each([
  ['list --sort size', 'id, name, tag'],
  ['list --output xlsx', 'text, json, ndjson, csv, tsv'],
  ['count --by size', 'name, tag'],
  ['import a.csv --format txt', 'ndjson, json, csv, tsv'],
  ['import a.csv --if-exists merge', 'same, skip, update'],
  ['serve --log-level loud', 'info, warn, error, silent'],
  ['tokens create --allow fly', 'create, read, update, delete'],
  ['completion tcsh', 'bash, zsh, fish, powershell'],
  ['config set size 1', 'store, output, timeout, ca-cert'],
])('the error of plants %s names the wrong value and the possible ones', async (line, choices) => {
  const { code, err } = await new Sandbox().run(line)
  const [message = ''] = err.split('\n')
  const [wrong] = line.replace(' 1', '').split(' ').slice(-1)
  expect(code).toBe(2)
  expect(message).toContain(choices)
  expect(message).toContain(`but was "${wrong}"`)
})

test('the usage of a command lists all of its aliases', async () => {
  const user = new Sandbox()
  expect((await user.run('add --help')).out).toMatch(
    /^Usage: plants create\|new\|add \[options\] /m,
  )
  expect((await user.run('delete --help')).out).toMatch(/^Usage: plants delete\|rm \[options\] /m)
})
