import { mkdirSync, readdirSync } from 'node:fs'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { gardener, onTerminal, stores, team } from '../../helpers/gardener.js'
import type { RunOptions } from '../../helpers/run.js'
import { answer, printed, refusal, World } from '../../helpers/world.js'

describe('config get', () => {
  test.each([
    ['store', 'local'],
    ['timeout', '30s'],
    ['allow-http', 'false'],
  ])('%s is %s by default', async (name, value) => {
    const user = new World()
    expect(await user.run(['config', 'get', name])).toEqual(printed(`${value}\n`))
    expect(await user.run(['config', 'get', name], onTerminal)).toEqual(printed(`${value}\n`))
    const { out } = await user.run(['config', 'get', name, '--output', 'json'])
    expect(JSON.parse(out)).toEqual({ name, value, source: 'default', meaning: expect.stringMatching(/./) })
  })

  test.each([
    ['output', 'The default applies: text on a terminal, else JSON'],
    ['ca-cert', 'The default applies: those of the system'],
    ['token-command', 'The default applies: none'],
  ])('%s ends with 1 without a value', async (name, hint) => {
    const user = new World()
    expect(await user.run(['config', 'get', name])).toEqual(refusal(`${name} is not set`, hint, 1))
    if (name === 'output') return
    expect(await user.run(['config', 'get', name, '--output', 'json'])).toEqual({
      code: 1,
      out: '',
      err: `${JSON.stringify({ error: 404, message: `${name} is not set`, hint })}\n`,
    })
  })

  test('stores.team.ca-cert ends with 1 without a value', async () => {
    expect(await gardener().run('config get stores.team.ca-cert')).toEqual(
      refusal('stores.team.ca-cert is not set', 'For the value of all stores: plants config get ca-cert', 1),
    )
  })

  const sources: [string, string, 'flag' | 'variable' | 'store' | 'saved', string[], RunOptions, object][] = [
    [
      'timeout',
      '1s',
      'flag',
      ['--timeout', '1s'],
      { env: { PLANTS_TIMEOUT: '2s', PLANTS_STORE: 'team' } },
      { timeout: '4s' },
    ],
    ['timeout', '2s', 'variable', [], { env: { PLANTS_TIMEOUT: '2s', PLANTS_STORE: 'team' } }, { timeout: '4s' }],
    ['timeout', '2m', 'store', [], { env: { PLANTS_TIMEOUT: '', PLANTS_STORE: 'team' } }, { timeout: '4s' }],
    ['timeout', '2m', 'store', ['--store', 'team'], {}, { timeout: '4s' }],
    ['timeout', '2m', 'store', [], {}, { timeout: '4s', store: 'team' }],
    ['timeout', '4s', 'saved', ['--store', 'garden'], {}, { timeout: '4s', store: 'team' }],
    ['timeout', '4s', 'saved', ['--store', team], {}, { timeout: '4s', store: 'team' }],
    ['timeout', '4s', 'saved', [], {}, { timeout: '4s' }],
    ['store', 'garden', 'flag', ['--store', 'garden'], { env: { PLANTS_STORE: 'team' } }, { store: 'team' }],
    ['store', 'garden', 'variable', [], { env: { PLANTS_STORE: 'garden' } }, { store: 'team' }],
    ['store', 'team', 'saved', [], { env: { PLANTS_STORE: '' } }, { store: 'team' }],
    ['output', 'json', 'variable', [], { env: { PLANTS_OUTPUT: 'json' } }, { output: 'text' }],
    ['output', 'json', 'saved', [], {}, { output: 'json' }],
    [
      'ca-cert',
      '/a.pem',
      'flag',
      ['--ca-cert', '/a.pem'],
      { env: { PLANTS_CA_CERT: '/b.pem' } },
      { 'ca-cert': '/c.pem' },
    ],
    ['ca-cert', '/b.pem', 'variable', [], { env: { PLANTS_CA_CERT: '/b.pem' } }, { 'ca-cert': '/c.pem' }],
    ['ca-cert', '/c.pem', 'saved', [], {}, { 'ca-cert': '/c.pem' }],
    ['allow-http', 'true', 'flag', ['--allow-http'], { env: { PLANTS_ALLOW_HTTP: 'no' } }, {}],
    ['allow-http', 'no', 'variable', [], { env: { PLANTS_ALLOW_HTTP: 'no' } }, {}],
  ]
  test.each(sources)('%s is %s from %s: %j', async (name, value, source, flags, world, settings) => {
    const user = gardener(settings)
    const json = name === 'output' ? [] : ['--output', 'json']
    const { out } = await user.run(['config', 'get', name, ...flags, ...json], world)
    expect(JSON.parse(out)).toEqual({ name, value, source, meaning: expect.any(String) })
    if (name === 'output') return
    expect(await user.run(['config', 'get', name, ...flags], world)).toEqual(printed(`${value}\n`))
  })

  test('shows on a terminal what could move it, and elsewhere the value as it is', async () => {
    const command = 'say \u001b[31m'
    const user = gardener({ stores: { team: { address: team, 'token-command': command } } })
    expect(await user.run('config get stores.team.token-command', onTerminal)).toEqual(printed('say \\u{1b}[31m\n'))
    expect(await user.run('config get stores.team.token-command')).toEqual(printed(`${command}\n`))
  })
})

describe('config list', () => {
  const meanings = {
    store: 'the store: a saved name, a path, sqlite:PATH, http(s)://…, unix:PATH or postgres://…',
    output: 'the output format: text, json, ndjson and, for plants, csv or tsv',
    timeout: 'how long to wait for a store: 500ms, 30s, 2m',
    'ca-cert': 'a file of trusted PEM certificates',
    'allow-http': 'send the token without TLS, also to other machines',
    'token-command': 'a command that prints the token',
  }
  const line = (name: keyof typeof meanings, value: string | undefined, source: string) => ({
    name,
    value,
    source,
    meaning: meanings[name],
  })

  test('tells every setting, where it came from and what it means', async () => {
    const user = gardener({ timeout: '4s', stores: { team: { ...stores.team, 'allow-http': true } } })
    const world = { env: { PLANTS_STORE: 'team', PLANTS_CA_CERT: '/b.pem' } }
    expect(await user.run('config list --output ndjson', world)).toEqual(
      answer(
        line('store', 'team', 'variable'),
        line('output', 'ndjson', 'flag'),
        line('timeout', '2m', 'store'),
        line('ca-cert', '/b.pem', 'variable'),
        line('allow-http', 'true', 'store'),
        line('token-command', undefined, 'default'),
        { name: 'stores.team.address', value: team, source: 'saved', meaning: 'address of team' },
        { name: 'stores.team.timeout', value: '2m', source: 'saved', meaning: `for team: ${meanings.timeout}` },
        {
          name: 'stores.team.allow-http',
          value: 'true',
          source: 'saved',
          meaning: `for team: ${meanings['allow-http']}`,
        },
      ),
    )
  })

  test('is a table on a terminal', async () => {
    const user = gardener({ timeout: '4s', stores: { garden: stores.garden } })
    const { code, out, err } = await user.run('config list', onTerminal)
    expect({ code, out: stripVTControlCharacters(out), err }).toEqual({
      code: 0,
      out: [
        'NAME                   VALUE           SOURCE   DESCRIPTION',
        'store                  local           default  the store: a saved name, a path, sqlite:PATH, http(s)://…, unix:PATH or…',
        'output                 -               default  the output format: text, json, ndjson and, for plants, csv or tsv',
        'timeout                4s              saved    how long to wait for a store: 500ms, 30s, 2m',
        'ca-cert                -               default  a file of trusted PEM certificates',
        'allow-http             false           default  send the token without TLS, also to other machines',
        'token-command          -               default  a command that prints the token',
        'stores.garden.address  /srv/garden.db  saved    address of garden',
        '',
      ].join('\n'),
      err: '',
    })
  })

  test('fits a terminal of 80 columns', async () => {
    const user = gardener({ timeout: '4s', stores: { garden: stores.garden } })
    const { out } = await user.run('config list', { ...onTerminal, columns: 80 })
    const lines = stripVTControlCharacters(out).split('\n')
    expect(lines.filter((line) => line.length > 80)).toEqual([])
    expect(lines[3]).toBe('timeout                4s              saved    how long to wait for a store: 5…')
  })

  test('tells what is saved and wrong, so that it can be mended', async () => {
    const user = gardener({ store: 'gone', timeout: 'soon' })
    const { code, out } = await user.run('config list')
    expect(code).toBe(0)
    expect(out).toContain('{"name":"store","value":"gone","source":"saved"')
    expect(out).toContain('{"name":"timeout","value":"soon","source":"saved"')
  })

  test('never shows a token', async () => {
    const user = gardener({ tokens: { [team]: { token: 's3cret', savedAt: '2026-01-02T03:04:05.678Z' } } })
    for (const output of ['text', 'json']) {
      const { out, err } = await user.run(`config list --output ${output} --verbose`, {
        env: { PLANTS_TOKEN: 's3cret' },
      })
      expect(out + err).not.toContain('s3cret')
    }
  })
})

describe('config path', () => {
  test('tells where the file is, or would be', async () => {
    const user = new World()
    expect(await user.run('config path')).toEqual(printed(`${user.file}\n`))
    expect(await user.run('config path', onTerminal)).toEqual(printed(`${user.file}\n`))
    expect(await user.run('config path', { env: { PLANTS_CONFIG_DIR: 'here' } })).toEqual(
      printed(`${user.home}/here/settings.json\n`),
    )
    expect(await user.run('config path', { env: { PLANTS_CONFIG_DIR: '' } })).toEqual(
      printed('/nonexistent/config/settings.json\n'),
    )
    expect(readdirSync(user.home)).toEqual([])
  })

  test.each([['{'], [''], ['{"version":2}'], ['{"version":1,"timeout":5}'], ['{"version":1,"output":"xml"}']])(
    'works where the file is broken: %j',
    async (text) => {
      const user = new World()
      user.save(text)
      expect(await user.run('config path')).toEqual(printed(`${user.file}\n`))
    },
  )

  test('works where the file is a folder', async () => {
    const user = new World()
    mkdirSync(user.file, { recursive: true })
    expect(await user.run('config path')).toEqual(printed(`${user.file}\n`))
  })
})

describe('a saved setting holds for other commands:', () => {
  test('output json makes errors and warnings JSON, as the flag does', async () => {
    const user = gardener({ output: 'json' })
    const error = { error: 404, message: expect.any(String), hint: expect.any(String) }
    const { code, err } = await user.run('get 1', onTerminal)
    expect({ code, ...JSON.parse(err) }).toEqual({ code: 1, ...error })
    expect((await user.run('config get nothing')).err).toMatch(/^\{"error":400,/)
    expect((await user.run('nothing')).err).toMatch(/^\{"error":400,/)
    expect((await user.run('get 1 --output text')).err).toMatch(/^plants: /)
    expect((await user.run('get 1', { env: { PLANTS_OUTPUT: 'text' } })).err).toMatch(/^plants: /)
  })

  test('store is where plants go', async () => {
    const user = new World()
    expect((await user.run('config set store ./garden.db')).code).toBe(0)
    expect((await user.run('create --id 1 --name Fern')).code).toBe(0)
    expect(await user.run('get 1 --store ./garden.db')).toMatchObject({ code: 0 })
    expect(await user.run('get 1 --store local')).toMatchObject({ code: 1 })
  })
})
