import { describe, expect, test } from 'vitest'
import { type Answer, Hostile, http, json } from '../../helpers/hostile.js'
import { everyWay, linesOf, long, savedAt, short } from '../../helpers/redacting.js'
import { runPlants } from '../../helpers/run.js'
import { World } from '../../helpers/world.js'

const nobody = 'https://127.0.0.1:1'

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
      list --store postgres://T
      list --store https://T@x.example
      list --store https://x.example/?token=T
      create --id 1 --name x --store http://x.example/T
      create --id 1 --name x --store unix:T
      create --id T --name x
      create --id 1 --name x --idempotency-key T!é
      create --T
      T
      --T
      help T
      list --limit T
      tokens revoke T
      --timeout T list
      --ca-cert T create --id 1 --name x --store https://127.0.0.1:1
      config get T
      stores set T --timeout 1s
      stores add x T
      stores add T!x https://y.example
      serve --port T
      serve --host T
      serve --tls-cert T --tls-key T
      doctor --store ./T/x`),
  )('%s', async (line) => {
    const user = new World({ stores: { team: { address: 'https://127.0.0.1:1', timeout: '100ms' } } })
    await everyWay(user, line.replaceAll('T', token), { env: { PLANTS_TOKEN: token, PLANTS_TIMEOUT: '100ms' } })
  })

  const variables = 'PLANTS_STORE PLANTS_OUTPUT PLANTS_TIMEOUT PLANTS_CA_CERT PLANTS_ALLOW_HTTP PLANTS_CONFIG_DIR'

  test.each([...variables.split(' '), 'HTTPS_PROXY', 'HTTP_PROXY'])('as %s', async (name) => {
    const env = { PLANTS_TOKEN: token, PLANTS_TIMEOUT: '100ms', [name]: token }
    const create = 'create --id 1 --name x'
    const others = ['auth status', 'auth login', 'doctor', 'stores list']
    for (const line of [create, `${create} --store https://x.invalid`, 'list', ...others])
      await everyWay(new World(), line, { env })
  })

  test.each([
    '{"id":"T","name":"x"}',
    '{"id":1,"name":"x","T":1}',
    '{"id":T,"name":"x"}',
    '{"id":1,"name":"x"}T',
    'T',
    '{"T',
  ])('as the plant on stdin: %s', async (text) => {
    await everyWay(new World(), 'create', { stdin: text.replaceAll('T', token), env: { PLANTS_TOKEN: token } })
  })
})

test('a saved token in a wrong place is not shown', async () => {
  const user = new World({ tokens: { [nobody]: { token: short, savedAt } } })
  for (const line of [`list --store ${short}`, `stores use ${short}`, `config get ${short}`, `tokens revoke ${short}`])
    await everyWay(user, line)
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
  test.each([
    ['create --id 1 --name x', 2],
    ['auth status', 2],
    ['auth token', 2],
    ['auth logout', 0],
    ['config list', 0],
    ['stores list', 0],
    ['doctor', 1],
  ])('in PLANTS_TOKEN, by plants %s', async (line, code) => {
    const [user, env] = [new World(), { PLANTS_TOKEN: token, PLANTS_STORE: nobody }]
    expect((await user.run(line, { env })).code).toBe(code)
    await everyWay(user, line, { env })
  })

  test('in PLANTS_TOKEN and in a wrong place', async () => {
    for (const words of [['list', '--store', token], ['get', token], ['create', '--id', token, '--name', 'x'], [token]])
      await everyWay(new World(), words, { env: { PLANTS_TOKEN: token } })
  })

  test('in the settings', async () => {
    const user = new World({ tokens: { [nobody]: { token, savedAt } } })
    for (const line of ['create --id 1 --name x', 'auth status', 'auth token', 'doctor'])
      await everyWay(user, `${line} --store ${nobody}`)
  })

  test('in PLANTS_SERVE_TOKEN', async () => {
    const user = new World()
    expect((await user.run('serve --port 0', { env: { PLANTS_SERVE_TOKEN: token } })).code).toBe(2)
  })
})

test.each(['text', 'json', 'text --verbose'])('a defect shows no token, with --output %s', async (output) => {
  for (const token of [short, long]) {
    const env = {
      PLANTS_TOKEN: token,
      PLANTS_SERVE_TOKEN: 's3cret-to-serve',
      get PLANTS_TIMEOUT(): string {
        const error = new TypeError(`${token}, Bearer ${token} and s3cret-to-serve`)
        error.stack = `${error.stack}\n    at ${token} (/home/${token}/x.js:1:1)`
        throw error
      },
    }
    // World.run would read the variable itself
    const { code, out, err } = await runPlants(`list --output ${output}`.split(' '), { env })
    expect({ code, out, err }).toEqual({ code: 70, out: '', err: expect.stringContaining('***, Bearer *** and ***') })
    expect(/^ +at /m.test(err)).toBe(output.startsWith('text'))
  }
})

describe('settings that are broken near a token', () => {
  const entry = `"URL":{"token":"T","savedAt":"${savedAt}"}`

  // T stands for the token, URL for its address. What the messages say is in unit/config/settings-file.test.ts.
  test.each([
    '{"version":1,"tokens":{"URL":{"token":"T',
    '{"version":1,"tokens":{"URL":{"token":"T\nT"}}}',
    '{"version":1,"tokens":{"URL":{"token":"\\xT"}}}',
    `{"version":1,"tokens":{${entry}}} T`,
    '"T"',
    '{"version":1,"tokens":{"URL":{"token":"T"}}}',
    '{"version":1,"tokens":{"T":"URL"}}',
    '{"version":1,"stores":{"team":"T"}}',
    `{"version":2,"tokens":{${entry}}}`,
  ])('%j', async (text) => {
    for (const token of [short, long]) {
      const user = new World()
      user.save(text.replaceAll('URL', nobody).replaceAll(/T(?!\d)/g, token))
      for (const line of ['list', 'doctor', 'auth status', 'create --id 1 --name x', 'config get timeout'])
        await everyWay(user, line)
    }
  })
})

describe('a command about settings and stores shows no token', () => {
  const settings = {
    store: 'team',
    stores: {
      team: { address: nobody },
      command: { address: 'https://127.0.0.1:2', 'token-command': 'cat /nonexistent/token.txt', timeout: '1s' },
      bare: { address: 'https://127.0.0.1:3', token: short, headers: { authorization: short } },
    },
    tokens: {
      [nobody]: { token: short, savedAt, scope: short },
      'https://127.0.0.1:4': { token: long, savedAt },
    },
  }

  test.each(
    linesOf(`
      auth status
      auth status --store team
      auth status --store bare
      auth logout --store bare
      config list
      config get store
      config get tokens.${nobody}.token
      config get stores.bare.token
      config path
      stores list
      stores add new https://127.0.0.1:1
      stores use bare
      stores remove team
      doctor
      doctor --store bare
      help options
      list`),
  )('%s', async (line) => {
    const user = new World(settings)
    await everyWay(user, `${line} --timeout 200ms`)
    await everyWay(user, `${line} --timeout 200ms`, { env: { PLANTS_TOKEN: 's3cret-of-env' } })
    await user.run(`${line} --timeout 200ms --verbose`, { terminals: ['stdout'] })
    await user.run(`${line} --timeout 200ms --verbose`, { terminals: ['stdout', 'stderr'] })
  })

  const proxy = 'http://me:s3cret-of-proxy@127.0.0.1:1'

  test.each([proxy, proxy.slice(7), proxy.replace('http', 'ftp'), proxy.replace('@', '@@'), proxy.replace('me:', '')])(
    'nor the password of the proxy %s',
    async (value) => {
      for (const name of ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY']) {
        const store = `--store ${name === 'HTTP_PROXY' ? 'http' : 'https'}://x.invalid --allow-http --timeout 100ms`
        for (const line of ['doctor', 'create --id 1 --name x'])
          await everyWay(new World(), `${line} ${store}`, { env: { [name]: value, PLANTS_TOKEN: short } })
      }
    },
  )
})

/** In characters that an answer may encode. */
const odd = 's3cret-Of/one+address~s3cret=='
const create = 'create --id 1 --name Fern'
const error = (status: number, message: string, headers: Record<string, string> = {}) =>
  json(status, { error: status, message }, headers)
const redirect = (location: string) => http(302, '', { Location: `https://example.com/${location}` })
const typed = (type: string, body = '{}') => http(200, body, { 'Content-Type': type })

test.each<[string, Answer]>([
  ['in its message of 401', error(401, `Bearer ${odd} is not accepted`)],
  ['in its message of 503', error(503, odd, { 'Retry-After': '60' })],
  ['in its message, which is cut within it', error(400, `${'x'.repeat(990)}${odd}`)],
  ['in its message, with lines', error(400, `first\n${odd}\r\nthird`)],
  ['in a redirect that is cut within it', redirect(`${'x'.repeat(270)}${odd}`)],
  ['in its media type, which is cut within it', typed(`text/${'x'.repeat(62)}${odd}`)],
  ['in its status line', `HTTP/1.1 400 ${odd}\r\nContent-Length: 0\r\n\r\n`],
  ['in no HTTP', (socket) => void socket.end(`${odd}\r\n`)],
  ['in half an answer', (socket) => void socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n${odd}`)],
  ['in an answer that is longer than is read', typed('application/json', odd.repeat(50_000))],
])('a token that a service repeats is not shown: %s', async (_, answer) => {
  const { url } = await Hostile.listen({ posts: [answer] })
  const store = `--store ${url} --timeout 300ms`
  for (const line of [create, 'doctor']) await everyWay(new World(), `${line} ${store}`, { env: { PLANTS_TOKEN: odd } })
  await everyWay(new World(), `auth login --with-token ${store}`, { stdin: odd })
})

test('nor one from the settings or a command', async () => {
  const { url } = await Hostile.listen({ posts: [error(400, `Bad: ${odd}`, { 'X-Debug': odd })] })
  const user = new World()
  user.write('token.txt', odd)
  const team = { address: url, 'token-command': `cat ${user.home}/token.txt` }
  user.save({ stores: { team }, tokens: { [url]: { token: odd, savedAt } } })
  for (const store of ['team', url])
    for (const line of [create, 'doctor']) await everyWay(user, `${line} --timeout 300ms --store ${store}`)
})

const percent = (text: string) => encodeURIComponent(text).replaceAll('~', '%7E')

test.each<[string, (text: string) => string]>([
  ['as it is', String],
  ['percent-encoded', percent],
  ['percent-encoded in small letters', (text) => percent(text).replaceAll(/%../g, (code) => code.toLowerCase())],
  ['with escapes of JSON', (text) => text.replaceAll('/', '\\/')],
])('nor one %s, in a redirect, a message and a header', async (_, encode) => {
  // The first characters are escaped, too; the last one is as long as a token of this program.
  for (const secret of [odd, 'ab/cd+ef-s3cret/s3cret==', `${'x/'.repeat(30)}s3cret`]) {
    const text = encode(secret)
    for (const answer of [
      redirect(`login?token=${text}&next=/`),
      error(400, `Bad: ${text}`, { 'X-Token': text, 'Request-Id': text }),
      error(400, `Bad: ${text.slice(0, -3)}`),
    ]) {
      const { url } = await Hostile.listen({ posts: [answer] })
      const shown = await everyWay(new World(), `${create} --store ${url}`, { env: { PLANTS_TOKEN: secret } })
      // twice as what was sent, and each time that it was repeated
      expect(shown.match(/\*\*\*/g)?.length).toBeGreaterThanOrEqual(4)
      expect(shown).not.toContain(text.slice(-14, -3))
    }
  }
})

test('*** replaces a token in traces, also in names of headers', async () => {
  const fields = { 'X-Debug': `<${short}>`, [`X-${short}`]: '1' }
  const { url } = await Hostile.listen({ posts: [json(200, { name: 'Fern' }, fields)] })
  const shown = await everyWay(new World(), `${create} --store ${url}`, { env: { PLANTS_TOKEN: short } })
  for (const line of ['> authorization: Bearer ***', '< x-debug: <***>', '< x-***: 1'])
    expect(shown.split('\n')).toEqual(expect.arrayContaining([line, JSON.stringify({ verbose: line })]))
})

test('*** replaces a token in the warning of a plant that differs', async () => {
  const { url } = await Hostile.listen({ posts: [json(200, { name: odd, tag: odd })] })
  const options = { env: { PLANTS_TOKEN: odd }, mayShowSecrets: true }
  const { code, err } = await new World().run(`${create} --store ${url}`, options)
  expect([code, err]).toEqual([0, expect.stringMatching(/The store returned a plant that differs.*\*\*\*/)])
  expect(err).not.toContain('s3cret')
})

test('a token of any length is not shown, and stops no other command', async () => {
  const token = `s3cret${'q'.repeat(70_000)}s3cret`
  const user = new World()
  for (const line of ['list', `list --store ${token}`, 'auth status --store https://plants.example.com'])
    expect(await everyWay(user, line, { env: { PLANTS_TOKEN: token } })).not.toContain('qqqq')
  expect((await user.run('list', { env: { PLANTS_TOKEN: token } })).code).toBe(0)
})

test('an address of any length is answered at once', async () => {
  const start = performance.now()
  for (const text of [' '.repeat(100_000), 'a='.repeat(50_000)])
    expect((await new World().run(['list', `--store=${text}x`])).err).toBe(
      'plants: --store is longer than 4096 characters\n  A store is a saved name, "local", a path such as ./plants.db, sqlite:PATH, http(s)://…, unix:PATH or postgres://…\n',
    )
  expect(performance.now() - start).toBeLessThan(5000)
})
