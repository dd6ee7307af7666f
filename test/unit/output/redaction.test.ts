import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { everyWay, linesOf, long, savedAt, short } from '../../helpers/redacting.js'
import { World } from '../../helpers/world.js'

test('the helper of all tests sees a token', async () => {
  const user = new World()
  const shown = 'has shown a token: ./s3cret'
  await expect(user.run('config get store', { env: { PLANTS_STORE: `./${short}.db` } })).rejects.toThrow(shown)
  await expect(user.run(`tokens list --store ./${short}.db`)).rejects.toThrow('has shown a token')
})

describe.each([
  ['short', short],
  ['long', long],
])('a %s PLANTS_TOKEN in the wrong place is not shown', (_, token) => {
  test.each(
    linesOf(`
      list --store T
      list --store ./T.db
      list --store sqlite:T
      list --store postgres://T
      list --store https://T@x.example
      list --store https://x.example/?token=T
      create --id 1 --name x --store http://x.example/T
      create --id 1 --name x --store unix:T
      create --id T --name x
      create --id=-T --name x
      create --id 1 --name x --idempotency-key T!é
      create --tokn T
      create --T
      T
      --T
      help T
      list T
      list --limit T
      list --output T
      delete T --yes
      tokens revoke T
      auth T
      auth login T
      auth login --with-token=T
      auth status --store T
      --timeout T list
      --ca-cert T create --id 1 --name x --store https://127.0.0.1:1
      config get T
      config set T 1
      config set timeout T
      config set store T
      config set stores.T.timeout 1s
      config get stores.team.T
      config set stores.team.address T
      stores T
      stores add x T
      stores add T!x https://y.example
      stores add x https://y.example --ca-cert T
      stores add x ./x.db --token-command T
      stores use T
      stores remove T
      serve --port T
      serve --host T
      serve --token-file T
      serve --base-path T
      serve --tls-cert T --tls-key T
      serve --log-level T
      doctor T
      doctor --store ./T/x
      openapi T`),
  )('%s', async (line) => {
    const user = new World({ stores: { team: { address: 'https://127.0.0.1:1', timeout: '100ms' } } })
    await everyWay(user, line.replaceAll('T', token), { env: { PLANTS_TOKEN: token, PLANTS_TIMEOUT: '100ms' } })
  })

  const variables = ['STORE', 'OUTPUT', 'TIMEOUT', 'CA_CERT', 'ALLOW_HTTP', 'CONFIG_DIR'].map(
    (name) => `PLANTS_${name}`,
  )

  test.each([...variables, 'HTTPS_PROXY', 'HTTP_PROXY'])('as %s', async (name) => {
    const env = { PLANTS_TOKEN: token, PLANTS_TIMEOUT: '100ms', [name]: token }
    const create = 'create --id 1 --name x'
    const others = ['auth status', 'auth login', 'doctor', 'stores list']
    for (const line of [create, `${create} --store https://x.invalid`, 'list', ...others])
      await everyWay(new World(), line, { env })
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
    await everyWay(new World(), 'create', { stdin: text.replaceAll('T', token), env: { PLANTS_TOKEN: token } })
  })
})

test.each(['plants_Tabcdefghijk-s3cret', 'plants_Sabcdefghijk-s3cret'])(
  'a token is not confused with the names of variables: %s',
  async (token) => {
    const env = { PLANTS_SERVE_TOKEN: token }
    const user = new World()
    expect((await user.run('list --store https://x.example', { env })).err).toContain('Set PLANTS_TOKEN, or save one')
    const unknown = await user.run('list', { env: { ...env, PLANTS_STORE: 'nowhere' } })
    expect(unknown.err).toContain('(from PLANTS_STORE)')
    expect(await everyWay(user, `list --store ${token.toLowerCase()}`, { env })).not.toContain('abcdefghijk')
  },
)

test.each([
  [short, `${short}-and-s3cret`],
  [`${short}-and-s3cret`, short],
])('one of two tokens that begin alike is redacted: %s, %s', async (PLANTS_TOKEN, PLANTS_SERVE_TOKEN) => {
  for (const token of [PLANTS_TOKEN, PLANTS_SERVE_TOKEN])
    expect(
      await everyWay(new World(), `list --store ${token}`, { env: { PLANTS_TOKEN, PLANTS_SERVE_TOKEN } }),
    ).toContain('***')
})

describe.each([
  's3cret s3cret',
  's3cret\ns3cret',
  's3cret\u001b[31ms3cret',
  's3cr\u00e9t-s3cret',
  '"s3cret"',
  's3cret'.padEnd(5000, 's3cret'),
])('a malformed token is not shown: %j', (token) => {
  const address = 'https://127.0.0.1:1'

  test.each([
    ['create --id 1 --name x', 2],
    ['auth status', 2],
    ['auth token', 2],
    ['auth logout', 0],
    ['config list', 0],
    ['stores list', 0],
    ['doctor', 1],
  ])('in PLANTS_TOKEN, by plants %s', async (line, code) => {
    const [user, env] = [new World(), { PLANTS_TOKEN: token, PLANTS_STORE: address }]
    expect((await user.run(line, { env })).code).toBe(code)
    await everyWay(user, line, { env })
  })

  test('in PLANTS_TOKEN and in a wrong place', async () => {
    for (const words of [['list', '--store', token], ['get', token], ['create', '--id', token, '--name', 'x'], [token]])
      await everyWay(new World(), words, { env: { PLANTS_TOKEN: token } })
  })

  test('in the settings', async () => {
    const user = new World({ tokens: { [address]: { token, savedAt } } })
    for (const line of ['create --id 1 --name x', 'auth status', 'auth token', 'doctor'])
      await everyWay(user, `${line} --store ${address}`)
  })

  test('in PLANTS_SERVE_TOKEN, or in a token file', async () => {
    const user = new World()
    expect((await user.run('serve --port 0', { env: { PLANTS_SERVE_TOKEN: token } })).code).toBe(2)
    const file = join(user.home, user.write('tokens.txt', `${token}\n`))
    const isOneLine = !/[\u001b\n]/.test(token)
    if (isOneLine) expect((await user.run(`serve --port 0 --token-file ${file}`)).code).toBe(2)
  })
})
