import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { gardener, stores, team } from '../../helpers/gardener.js'
import { answer, printed, refusal, World } from '../../helpers/world.js'

describe('config set, get and unset', () => {
  test.each([
    ['store', 'local', 'local'],
    ['store', 'team', 'team'],
    ['store', './garden.db', 'HOME/garden.db'],
    ['store', 'sqlite:garden', 'HOME/garden'],
    ['store', 'https://Plants.EXAMPLE.com:443/v1/', team],
    ['store', 'http://127.0.0.1:4010', 'http://127.0.0.1:4010'],
    ['store', 'unix:plants.sock:/v1', 'unix:HOME/plants.sock:/v1'],
    ['output', 'json', 'json'],
    ['output', 'text', 'text'],
    ['output', 'csv', 'csv'],
    ['timeout', '30s', '30s'],
    ['timeout', '500ms', '500ms'],
    ['timeout', '1.5', '1.5'],
    ['timeout', '2m', '2m'],
    ['timeout', '0', '0'],
    ['stores.team.address', 'https://other.example.com/', 'https://other.example.com'],
    ['stores.team.address', './team.db', 'HOME/team.db'],
    ['stores.garden.address', 'local', 'local'],
    ['stores.garden.address', '~/garden.db', '/nonexistent/home/garden.db'],
    ['stores.garden.timeout', '5m', '5m'],
    ['stores.team.timeout', '1h', '1h'],
    ['stores.team.token-command', 'pass show plants\\ token', 'pass show plants\\ token'],
  ])('%s may be %s', async (name, given, expected) => {
    const user = gardener()
    const value = expected.replace('HOME', user.home)
    expect(await user.run(['config', 'set', name, given, '--output', 'json'])).toEqual(answer({ name, value }))
    expect(fieldOf(user, name)).toBe(value)
    if (name !== 'output')
      expect(await user.run(['config', 'get', name, '--output', 'text'])).toEqual(printed(`${value}\n`))
    if (name.endsWith('.address')) return
    expect(await user.run(['config', 'unset', name, '--output', 'json'])).toEqual(answer({ name, removed: true }))
    expect(fieldOf(user, name)).toBe(undefined)
    expect(await user.run(['config', 'unset', name, '--output', 'json'])).toEqual(answer({ name, removed: false }))
    if (!name.startsWith('stores.')) expect(user.saved).toEqual({ version: 1, stores })
  })

  test.each([
    ['true', true],
    ['YES', true],
    ['1', true],
    ['on', true],
    ['false', false],
    ['No', false],
    ['0', false],
    ['off', false],
  ])('allow-http of a store may be %s', async (given, value) => {
    const user = gardener()
    const name = 'stores.team.allow-http'
    expect(await user.run(['config', 'set', name, given])).toEqual(answer({ name, value }))
    expect(fieldOf(user, name)).toBe(value)
    expect(await user.run(['config', 'get', name])).toEqual(printed(`${value}\n`))
    expect(await user.run(['config', 'get', 'allow-http', '--store', 'team', '--output', 'json'])).toEqual(
      answer({
        ...{ name: 'allow-http', value: `${value}`, source: 'store' },
        meaning: 'send the token without TLS, also to other machines',
      }),
    )
  })

  test.runIf(hasOpenssl).each([['ca-cert'], ['stores.team.ca-cert']])(
    '%s is kept as an absolute path (needs openssl)',
    async (name) => {
      const user = gardener()
      writeFileSync(join(user.home, 'ca.pem'), certificate({ names: ['DNS:localhost'] }).cert)
      const value = join(user.home, 'ca.pem')
      for (const path of ['ca.pem', './ca.pem', value]) {
        expect(await user.run(['config', 'set', name, path])).toEqual(answer({ name, value }))
        expect(await user.run(['config', 'get', name])).toEqual(printed(`${value}\n`))
      }
      expect(await user.run(['config', 'unset', name])).toEqual(answer({ name, removed: true }))
    },
  )

  test('say what they do in a sentence', async () => {
    const user = gardener()
    expect(await user.run('config set timeout 1m --output text')).toEqual(printed('Set timeout to 1m\n'))
    expect(await user.run('config unset timeout --output text')).toEqual(printed('Removed the setting timeout\n'))
    expect(await user.run('config unset timeout --output text')).toEqual(printed('The setting timeout was not saved\n'))
    const { out, err } = await user.run('config set timeout 1m --output text', { env: { PLANTS_TIMEOUT: '5s' } })
    expect({ out, err }).toEqual({
      out: 'Set timeout to 1m\n',
      err: 'plants: PLANTS_TIMEOUT is still set, and takes precedence\n',
    })
  })

  test('store says when PLANTS_STORE wins over it', async () => {
    const { code, err } = await gardener().run('config set store garden', { env: { PLANTS_STORE: 'team' } })
    expect({ code, err }).toEqual({ code: 0, err: 'plants: PLANTS_STORE is still set, and takes precedence\n' })
  })

  test('the address of a store warns of what was for the old one', async () => {
    const old = 'http://127.0.0.1:4010'
    const fields = { timeout: '2m', 'allow-http': true, 'token-command': 'pass plants', 'ca-cert': '/etc/ca.pem' }
    const user = gardener({
      stores: { team: { address: old, ...fields } },
      tokens: { [old]: { token: 's3cret', savedAt: '' } },
    })
    const warnings = [
      'team keeps its ca-cert, allow-http, token-command',
      'The saved token is for the old address. Save a new one: plants auth login --store team',
    ]
    const set = (value: string) => user.run(['config', 'set', 'stores.team.address', value, '--output', 'json'])
    expect(await set(team)).toEqual({
      code: 0,
      out: `${JSON.stringify({ name: 'stores.team.address', value: team })}\n`,
      err: warnings.map((warning) => `${JSON.stringify({ warning })}\n`).join(''),
    })
    expect(user.saved).toMatchObject({
      stores: { team: { address: team, ...fields } },
      tokens: { [old]: { token: 's3cret' } },
    })
    for (const name of ['ca-cert', 'allow-http', 'token-command'])
      await user.run(['config', 'unset', `stores.team.${name}`])
    expect(await set('https://other.example.com')).toMatchObject({ code: 0, err: '' })
    expect(await user.run(['config', 'set', 'stores.team.address', old])).toMatchObject({ code: 0, err: '' })
    await user.run(['config', 'set', 'stores.team.address', team])
    const login = ['auth', 'login', '--store', 'http://127.0.0.1:4011', '--from-stdin']
    await user.run(login, { stdin: 's3cret-of-another' })
    expect(await set('http://127.0.0.1:4011')).toMatchObject({ code: 0, err: '' })
  })

  test('unset makes nothing where nothing is', async () => {
    const user = new World()
    expect(await user.run('config unset timeout')).toEqual(answer({ name: 'timeout', removed: false }))
    expect(readdirSync(user.home)).toEqual([])
  })

  test('the last value counts, and the others stay', async () => {
    const user = gardener({ output: 'json' })
    for (const value of ['1s', '2s', '3s']) await user.run(['config', 'set', 'timeout', value])
    expect(user.saved).toEqual({ version: 1, stores, output: 'json', timeout: '3s' })
  })
})

describe('a value that a setting cannot have is refused:', () => {
  const duration = 'must be a duration such as 30s, 500ms or 2m, but was'
  const addresses =
    'A store is a saved name, "local", a path such as ./plants.db, sqlite:PATH, http(s)://…, unix:PATH or postgres://…'

  test.each<[string, string, string, string | RegExp | undefined]>([
    ['timeout', 'soon', `timeout ${duration} "soon"`, 'For example: 30s'],
    ['timeout', '', `timeout ${duration} ""`, 'For example: 30s'],
    ['timeout', '1 m', `timeout ${duration} "1 m"`, 'For example: 30s'],
    ['timeout', '1M', `timeout ${duration} "1M"`, 'For example: 30s'],
    ['stores.garden.timeout', '-', `stores.garden.timeout ${duration} "-"`, 'For example: 30s'],
    ['output', 'xml', 'output must be one of text, json, ndjson, csv, tsv, but was "xml"', 'See: plants help formats'],
    [
      'output',
      'JSON',
      'output must be one of text, json, ndjson, csv, tsv, but was "JSON"',
      'See: plants help formats',
    ],
    ['output', '', 'output must be one of text, json, ndjson, csv, tsv, but was ""', 'See: plants help formats'],
    ['store', '', 'store is empty', addresses],
    ['store', 'tean', 'There is no store named "tean"', 'Did you mean team?'],
    ['store', 'constructor', 'There is no store named "constructor"', 'The saved stores are: team, garden'],
    ['store', '__proto__', 'store does not name a store: "__proto__"', addresses],
    ['store', 'ftp://plants.example.com', 'store does not name a store', addresses],
    ['store', 'https://', 'store is not a valid URL', addresses],
    [
      'store',
      'https://me:s3cret@plants.example.com',
      'store contains a user name or a password, but a service takes a token',
      'Put the token into PLANTS_TOKEN, or save it with: plants auth login',
    ],
    ['ca-cert', '', 'ca-cert is empty', 'Give it a value, or leave it out'],
    ['stores.team.allow-http', 'maybe', 'stores.team.allow-http must be true or false, but was "maybe"', undefined],
    ['stores.team.allow-http', '', 'stores.team.allow-http must be true or false, but was ""', undefined],
    ['stores.team.token-command', '', 'stores.team.token-command is empty', 'Give it a value, or leave it out'],
    ['stores.team.token-command', '  ', 'stores.team.token-command is empty', 'Give it a value, or leave it out'],
    ['stores.team.address', '', 'stores.team.address is empty', addresses],
    ['stores.team.address', 'garden', 'stores.team.address does not name a store: "garden"', addresses],
    ['stores.team.address', 'https://a?b', 'stores.team.address must be a base URL, without "?" and "#"', addresses],
    [
      'stores.garden.allow-http',
      'true',
      'allow-http is for a service, and garden is a file',
      'Set it for another store',
    ],
    [
      'stores.garden.token-command',
      'pass',
      'token-command is for a service, and garden is a file',
      'Set it for another store',
    ],
    ['stores.garden.ca-cert', 'ca.pem', 'ca-cert is for a service, and garden is a file', 'Set it for another store'],
  ])('%s %j', async (name, value, message, hint) => {
    const user = gardener()
    const before = readFileSync(user.file)
    const { code, out, err } = await user.run(['config', 'set', '--output', 'json', '--', name, value])
    const matching = hint instanceof RegExp ? expect.stringMatching(hint) : hint
    expect({ code, out, ...JSON.parse(err) }).toEqual({ code: 2, out: '', error: 400, message, hint: matching })
    expect(err).not.toContain('s3cret')
    expect(readFileSync(user.file)).toEqual(before)
    expect(readdirSync(user.config)).toEqual(['settings.json'])
  })

  test.each<[string, string | undefined, RegExp]>([
    ['is not there', undefined, /^.*ca\.pem could not be read|ca\.pem: there is no such file/],
    ['is empty', '', /ca\.pem contains no PEM certificate$/],
    [
      'is a key',
      '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n',
      /ca\.pem contains no PEM certificate$/,
    ],
    [
      'is broken',
      '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
      /ca\.pem contains an invalid certificate$/,
    ],
  ])('ca-cert, when the file %s', async (_, text, message) => {
    const user = gardener()
    if (text !== undefined) writeFileSync(join(user.home, 'ca.pem'), text)
    for (const name of ['ca-cert', 'stores.team.ca-cert']) {
      const { code, err } = await user.run(['config', 'set', name, 'ca.pem', '--output', 'json'])
      expect({ name, code, ...JSON.parse(err) }).toMatchObject({
        name,
        code: 2,
        message: expect.stringMatching(message),
      })
      expect(JSON.parse(err).hint).not.toContain('came from plants config set')
    }
    expect(user.saved).toEqual({ version: 1, stores })
  })
})

describe('a name that is no setting is refused:', () => {
  const all = 'The settings are: store, output, timeout, ca-cert, and for a store: stores.NAME.SETTING'
  const ofTeam =
    'The settings are: stores.team.address, stores.team.timeout, stores.team.ca-cert, stores.team.allow-http, stores.team.token-command'

  test.each([
    ['timout', 'Did you mean timeout?'],
    ['Timeout', 'Did you mean timeout?'],
    ['ca_cert', 'Did you mean ca-cert?'],
    ['ouput', 'Did you mean output?'],
    ['stroe', 'Did you mean store?'],
    ['colour', all],
    ['', all],
    ['__proto__', all],
    ['constructor', all],
    ['version', all],
    ['tokens', all],
    ['stores', 'Did you mean store?'],
    ['stores.team', ofTeam],
    ['stores.team.', ofTeam],
    ['stores.team.timout', 'Did you mean stores.team.timeout?'],
    ['stores.team.adress', 'Did you mean stores.team.address?'],
    ['stores.team.tokencommand', 'Did you mean stores.team.token-command?'],
    ['stores.team.output', ofTeam],
    ['stores.team.store', ofTeam],
    ['stores.team.timeout.x', expect.stringContaining('stores.team.timeout')],
  ])('%j', async (name, hint) => {
    await expectRefusals(name, `There is no setting ${JSON.stringify(name)}`, hint)
  })

  test.each([
    ['stores.tean.timeout', 'tean', 'Did you mean team?'],
    ['stores.constructor.timeout', 'constructor', expect.stringContaining('team, garden')],
    ['stores.__proto__.timeout', '__proto__', expect.stringContaining('team, garden')],
    ['stores..timeout', '', expect.stringContaining('team, garden')],
  ])('%j, of a store that is not saved', async (name, store, hint) => {
    for (const given of await expectRefusals(name, `There is no store named ${JSON.stringify(store)}`, hint))
      expect(given).not.toContain('Did you mean local?')
  })

  test.each([['allow-http'], ['token-command']])('%s, which only a store has', async (name) => {
    const refused = refusal(
      `${name} is a setting of a store, not of all stores`,
      `For example: plants config set stores.NAME.${name} VALUE`,
    )
    expect(await gardener().run(['config', 'set', name, 'true'])).toEqual(refused)
    expect((await gardener().run(['config', 'unset', name])).code).toBe(2)
  })

  test('the address of a store is not unset', async () => {
    expect(await gardener().run('config unset stores.team.address')).toEqual(
      refusal('A store needs an address', 'To remove the store: plants stores remove team'),
    )
  })

  test.each([
    ['config get', 'config get needs a setting', 'Usage: plants config get <setting>. See: plants config get --help'],
    [
      'config set',
      'config set needs a setting',
      'Usage: plants config set <setting> <value>. See: plants config set --help',
    ],
    [
      'config set timeout',
      'config set needs a value',
      'Usage: plants config set <setting> <value>. See: plants config set --help',
    ],
    [
      'config set timeout 1m 2m',
      'config set takes 2 arguments, but got 3',
      'Usage: plants config set <setting> <value>. See: plants config set --help',
    ],
    [
      'config get timeout store',
      'config get takes one setting, but got 2',
      'Usage: plants config get <setting>. See: plants config get --help',
    ],
    [
      'config list timeout',
      'config list takes no arguments, but got 1',
      'Usage: plants config list. See: plants config list --help',
    ],
    [
      'config path x',
      'config path takes no arguments, but got 1',
      'Usage: plants config path. See: plants config path --help',
    ],
    ['config show', 'config get needs a setting', 'Usage: plants config get <setting>. See: plants config get --help'],
    ['config reset timeout', 'Unknown command reset', 'Did you mean: plants config unset SETTING'],
    ['config onset timeout', 'Unknown command onset', 'See: plants config --help'],
  ])('plants %s', async (command, message, hint) => {
    expect(await gardener().run(command)).toEqual(refusal(message, hint))
  })
})

/** What is saved under the name that `config` has for it. */
function fieldOf(user: World, name: string): unknown {
  const [first = '', store = '', setting = ''] = name.split('.')
  const saved = user.saved as Record<string, Record<string, Record<string, unknown>>>
  return first === 'stores' ? saved[first]?.[store]?.[setting] : saved[first]
}

/** By each command, without a change. Returns the hints. */
async function expectRefusals(name: string, message: string, hint: unknown): Promise<string[]> {
  const user = gardener()
  const hints: string[] = []
  for (const command of [
    ['get', name],
    ['set', name, '1m'],
    ['unset', name],
  ]) {
    const { code, out, err } = await user.run(['config', ...command, '--output', 'json'])
    const answer = JSON.parse(err)
    expect({ command, code, out, ...answer }).toEqual({ ...{ command, code: 2, out: '', error: 400 }, message, hint })
    hints.push(answer.hint)
  }
  expect(user.saved).toEqual({ version: 1, stores })
  return hints
}
