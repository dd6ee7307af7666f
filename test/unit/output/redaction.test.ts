import { describe, expect, test } from 'vitest'
import { long, malformedTokens, manners, OutputUser, short, when } from '../../helpers/redacting.js'
import { runPlants } from '../../helpers/run.js'

test('the helper of all tests sees a token', async () => {
  const env = { PLANTS_STORE: `./${short}.db` }
  await expect(runPlants(['config', 'get', 'store'], { env })).rejects.toThrow(
    'plants config get store has shown a token: ./s3cret',
  )
  await expect(runPlants(['tokens', 'list', '--store', `./${short}.db`])).rejects.toThrow('has shown a token')
})

describe('PLANTS_TOKEN in the wrong place is not shown', () => {
  const places = [
    ...[
      'list --store T',
      'list --store=T',
      'list --store ./T.db',
      'list --store ./T/x',
      'list --store sqlite:T',
      'list --store postgres://T',
    ],
    ...[
      'list --store https://T@x.example',
      'list --store https://me:T@x.example',
      'list --store https://x.example/?token=T',
    ],
    ...[
      'create --id 1 --name x --store http://x.example/T',
      'create --id 1 --name x --store T.db',
      'create --id 1 --name x --store unix:T',
    ],
    ...[
      'create --id T --name x',
      'create --id=-T --name x',
      'create --file T',
      'create --file ./T',
      'create --tokn T',
      'create --token T',
    ],
    ...[
      'create --token=T',
      'create -tT',
      'create --T',
      'create --id 1 --name x --idempotency-key T!é',
      'create T',
      'create --id --T',
    ],
    ...[
      'T',
      '--T',
      '-T',
      'help T',
      'T --help',
      'list T',
      'get T',
      'delete T',
      'delete T --yes',
      'tokens revoke T',
      'tokens T',
      'auth T',
    ],
    ...[
      'auth login T',
      'auth login --with-token T',
      'auth login --with-token=T',
      'auth status T',
      'auth status --store T',
      'auth logout --store T',
    ],
    ...[
      '--timeout T list',
      '--ca-cert T create --id 1 --name x --store https://127.0.0.1:1',
      'list --limit T',
      'list --after T',
      'list --output T',
    ],
    ...[
      'config get T',
      'config set T 1',
      'config set timeout T',
      'config set output T',
      'config set store T',
      'config set ca-cert T',
      'config unset T',
    ],
    ...[
      'config set stores.T.timeout 1s',
      'config get stores.T.timeout',
      'config get stores.team.T',
      'config set stores.team.address T',
    ],
    ...[
      'stores add x T',
      'stores add x https://T@y.example',
      'stores add T!x https://y.example',
      'stores use T',
      'stores remove T',
      'stores T',
    ],
    ...[
      'stores add x https://y.example --timeout T',
      'stores add x https://y.example --ca-cert T',
      'stores add x ./x.db --token-command T',
    ],
    ...[
      'serve --port T',
      'serve --host T',
      'serve --token-file T',
      'serve --base-path T',
      'serve --tls-cert T --tls-key T',
      'serve --log-level T',
    ],
    ...[
      'doctor --store T',
      'doctor --store ./T/x',
      'doctor --timeout T',
      'doctor --ca-cert T',
      'doctor T',
      'openapi T',
    ],
  ]

  test.each(places)('%s', async (line) => {
    for (const token of [short, long]) {
      const user = new OutputUser()
      await user.run(['stores', 'add', 'team', 'https://127.0.0.1:1', '--timeout', '100ms'])
      const argv = line.split(' ').map((word) => word.replaceAll('T', token))
      await user.someWays(argv, { env: { PLANTS_TOKEN: token, PLANTS_TIMEOUT: '100ms' } })
    }
  })

  test.each([
    'PLANTS_OUTPUT',
    'PLANTS_TIMEOUT',
    'PLANTS_CA_CERT',
    'PLANTS_ALLOW_HTTP',
    'HTTPS_PROXY',
    'HTTP_PROXY',
    'PLANTS_CONFIG_DIR',
  ])('as %s', async (name) => {
    for (const token of [short, long]) {
      for (const line of [
        'create --id 1 --name x --store https://x.invalid',
        'list',
        'doctor --store https://127.0.0.1:1',
      ]) {
        const env = { PLANTS_TOKEN: token, PLANTS_TIMEOUT: '100ms', [name]: token }
        await new OutputUser().someWays(line.split(' '), { env })
      }
    }
  })

  test('as PLANTS_STORE', async () => {
    for (const token of [short, long]) {
      const env = { PLANTS_TOKEN: token, PLANTS_STORE: token }
      for (const line of [
        'list',
        'create --id 1 --name x',
        'auth status',
        'auth login',
        'doctor',
        'stores list',
        'stores use local',
      ]) {
        await new OutputUser().someWays(line.split(' '), { env })
      }
    }
  })

  test.each([
    '{"id":"T","name":"x"}',
    '{"id":1,"name":"x","T":1}',
    '{"id":1,"name":["T"]}',
    '{"id":1,"name":"x","tag":{"T":1}}',
    '{"id":T,"name":"x"}',
    '{"id":1,"name":"x"}T',
    '"T"',
    'T',
    '["T"]',
    '{"T',
  ])('as the plant on stdin: %s', async (text) => {
    for (const token of [short, long]) {
      await new OutputUser().someWays(['create'], { stdin: text.replaceAll('T', token), env: { PLANTS_TOKEN: token } })
    }
  })

  test.each(['plants_Tabcdefghijk-s3cret', 'plants_Sabcdefghijk-s3cret'])(
    'is not confused with the names of variables: %s',
    async (token) => {
      const env = { PLANTS_SERVE_TOKEN: token }
      const { err } = await new OutputUser().run(['list', '--store', 'https://x.example'], { env })
      expect(err).toContain('Set PLANTS_TOKEN, or save one')
      const unknown = await new OutputUser().run(['list'], { env: { ...env, PLANTS_STORE: 'nowhere' } })
      expect(unknown.err).toContain('(from PLANTS_STORE)')
      const said = await new OutputUser().everyWay(['list', '--store', token.toLowerCase()], { env })
      expect(said).not.toContain('abcdefghijk')
    },
  )

  test('beside PLANTS_SERVE_TOKEN that goes on where it ends, and the other way round', async () => {
    const [one, two] = [short, `${short}-and-s3cret`]
    for (const [PLANTS_TOKEN, PLANTS_SERVE_TOKEN] of [
      [one, two],
      [two, one],
    ] as const) {
      for (const token of [one, two]) {
        const said = await new OutputUser().everyWay(['list', '--store', token], {
          env: { PLANTS_TOKEN, PLANTS_SERVE_TOKEN },
        })
        expect(said).toContain('***')
      }
    }
  })
})

describe('a malformed token is not shown', () => {
  test.each(malformedTokens)('in PLANTS_TOKEN: %j', async (token) => {
    const env = { PLANTS_TOKEN: token, PLANTS_STORE: 'https://127.0.0.1:1' }
    for (const line of [
      'create --id 1 --name x',
      'auth status',
      'auth token',
      'auth logout',
      'doctor',
      'config list',
      'stores list',
    ]) {
      const user = new OutputUser()
      for (const [output = '', ...flags] of manners) {
        const { code } = await user.run([...line.split(' '), '--output', output, ...flags], { env })
        const isChecked = /create|status|token/.test(line)
        expect({ line, code }).toEqual({ line, code: isChecked ? 2 : line === 'doctor' ? 1 : 0 })
      }
    }
  })

  test.each(malformedTokens)('in PLANTS_TOKEN, and in a wrong place: %j', async (token) => {
    for (const argv of [
      ['list', '--store', token],
      ['get', token],
      ['create', '--id', token, '--name', 'x'],
      [token],
    ]) {
      await new OutputUser().someWays(argv, { env: { PLANTS_TOKEN: token } })
    }
  })

  test.each(malformedTokens)('in the settings: %j', async (token) => {
    const address = 'https://127.0.0.1:1'
    const user = new OutputUser().write(JSON.stringify({ version: 1, tokens: { [address]: { token, savedAt: when } } }))
    for (const line of ['create --id 1 --name x', 'auth status', 'auth token', 'doctor']) {
      await user.someWays([...line.split(' '), '--store', address])
    }
  })
})
