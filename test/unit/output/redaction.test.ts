import { expect, test } from 'vitest'
import { redact, redactJson } from '../../../src/platform/escape.js'
import { type Answer, Hostile, http, json } from '../../helpers/hostile.js'
import { everyWay, long, savedAt, short } from '../../helpers/redacting.js'
import { type RunOptions, runPlants } from '../../helpers/run.js'
import { World } from '../../helpers/world.js'

const nobody = 'https://127.0.0.1:1'

test('the helper of all tests sees a token', async () => {
  const user = new World()
  const shown = 'has shown a token: ./s3cret'
  await expect(
    user.run('config get store', { env: { PLANTS_STORE: `./${short}.db` } }),
  ).rejects.toThrow(shown)
  await expect(user.run(`tokens list --store ./${short}.db`)).rejects.toThrow('has shown a token')
})

/** Where a token may stand by mistake. */
const wrongPlaces = (token: string): [line: string, world?: RunOptions][] => [
  [`list --store ${token}`],
  [`list --store https://x.example/?token=${token}`],
  [`create --id ${token} --name x`],
  [`create --${token}`],
  [token],
  [`stores add ${token}!x https://y.example`],
  [`serve --tls-cert ${token} --tls-key ${token}`],
  [`doctor --store ./${token}/x`],
  ['list', { env: { PLANTS_STORE: token } }],
  ['list', { env: { PLANTS_TIMEOUT: token } }],
  ['auth status', { env: { PLANTS_CONFIG_DIR: token } }],
  [
    'create --id 1 --name x --store https://x.invalid --timeout 100ms',
    { env: { HTTPS_PROXY: token } },
  ],
  ['create', { stdin: `{"id":"${token}","name":"x"}` }],
  ['create', { stdin: `{"${token}` }],
]

test.each([short, long])('PLANTS_TOKEN in a wrong place is not shown: %s', async (token) => {
  for (const [line, world] of wrongPlaces(token))
    await everyWay(new World(), line, { ...world, env: { PLANTS_TOKEN: token, ...world?.env } })
})

test('a token is not confused with the names of variables', async () => {
  const env = { PLANTS_SERVE_TOKEN: 'plants_Tabcdefghijk-s3cret' }
  const user = new World()
  expect((await user.run('list --store https://x.example', { env })).err).toContain(
    'Set PLANTS_TOKEN, or save one',
  )
  expect(await everyWay(user, 'list --store plants_Tabcdefghijk-s3cret', { env })).not.toContain(
    'abcdefghijk',
  )
})

test.each([
  [short, `${short}-and-s3cret`],
  [`${short}-and-s3cret`, short],
])(
  'one of two tokens that begin alike is redacted: %s, %s',
  async (PLANTS_TOKEN, PLANTS_SERVE_TOKEN) => {
    for (const token of [PLANTS_TOKEN, PLANTS_SERVE_TOKEN])
      expect(
        await everyWay(new World(), `import ${token}`, {
          env: { PLANTS_TOKEN, PLANTS_SERVE_TOKEN },
        }),
      ).toContain('***')
  },
)

test.each(['s3cret\ns3cret', 's3cr\u00e9t-s3cret', 's3cret'.padEnd(5000, 's3cret')])(
  'a malformed token is not shown: %j',
  async (token) => {
    const env = { PLANTS_TOKEN: token, PLANTS_STORE: nobody }
    for (const [line, code] of Object.entries({
      'create --id 1 --name x': 2,
      'config list': 0,
      doctor: 1,
    })) {
      expect({ line, code: (await new World().run(line, { env })).code }).toEqual({ line, code })
      await everyWay(new World(), line, { env })
    }
    const user = new World({ tokens: { [nobody]: { token, savedAt } } })
    for (const line of ['create --id 1 --name x', 'auth status', 'doctor'])
      await everyWay(user, `${line} --store ${nobody}`)
    expect((await user.run(`create --id 1 --name x --store ${nobody}`)).code).toBe(2) // it is not sent
    expect((await user.run('serve --port 0', { env: { PLANTS_SERVE_TOKEN: token } })).code).toBe(2)
  },
)

test.each(['text', 'json', 'text --verbose'])(
  'a defect shows no token, with --output %s',
  async (output) => {
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
      expect({ code, out, err }).toEqual({
        code: 70,
        out: '',
        err: expect.stringContaining('***, Bearer *** and ***'),
      })
      expect(/^ +at /m.test(err)).toBe(output.startsWith('text'))
    }
  },
)

// T stands for the token, URL for its address. What the messages say is in unit/config/settings-file.test.ts.
test.each([
  '{"version":1,"tokens":{"URL":{"token":"T',
  '"T"',
  '{"version":1,"tokens":{"T":"URL"}}',
  '{"version":1,"stores":{"team":"T"}}',
])('settings that are broken near a token do not show it: %s', async (text) => {
  for (const token of [short, long]) {
    const user = new World()
    user.save(text.replaceAll('URL', nobody).replaceAll('T', token))
    for (const line of ['list', 'doctor', 'config get timeout']) await everyWay(user, line)
  }
})

test('a command about settings and stores shows no token', async () => {
  const settings = {
    store: 'team',
    stores: {
      team: { address: nobody },
      bare: { address: 'https://127.0.0.1:3', token: short, headers: { authorization: short } },
    },
    tokens: {
      [nobody]: { token: short, savedAt, scope: short },
      'https://127.0.0.1:4': { token: long, savedAt },
    },
  }
  for (const line of [
    ...[
      'auth status',
      'auth status --store team',
      'config list',
      `config get tokens.${nobody}.token`,
    ],
    ...['config get stores.bare.token', 'stores list', 'stores remove team', 'doctor'],
  ]) {
    const user = new World(settings)
    await everyWay(user, `${line} --timeout 200ms`, { env: { PLANTS_TOKEN: 's3cret-of-env' } })
    await user.run(`${line} --timeout 200ms --verbose`, { terminals: ['stdout', 'stderr'] })
  }
})

const proxy = 'http://me:s3cret-of-proxy@127.0.0.1:1'

test.each([proxy, proxy.slice(7), proxy.replace('@', '@@')])(
  'the password of a proxy is not shown: %s',
  async (value) => {
    const env = { HTTPS_PROXY: value, PLANTS_TOKEN: short }
    for (const line of ['doctor', 'create --id 1 --name x'])
      await everyWay(new World(), `${line} --store https://x.invalid --timeout 100ms`, { env })
  },
)

/** In characters that an answer may encode. */
const odd = 's3cret-Of/one+address~s3cret=='
const create = 'create --id 1 --name Fern'
const error = (status: number, message: string, headers: Record<string, string> = {}) =>
  json(status, { error: status, message }, headers)
const redirect = (location: string) =>
  http(302, '', { Location: `https://example.com/${location}` })

test.each<[string, Answer]>([
  ['in its message of 401', error(401, `Bearer ${odd} is not accepted`)],
  ['in its message, which is cut within it', error(400, `${'x'.repeat(990)}${odd}`)],
  ['in a redirect that is cut within it', redirect(`${'x'.repeat(270)}${odd}`)],
  ['in its status line', `HTTP/1.1 400 ${odd}\r\nContent-Length: 0\r\n\r\n`],
  ['in no HTTP', (socket) => void socket.end(`${odd}\r\n`)],
  ['in an answer that is longer than is read', json(200, odd.repeat(50_000))],
])('a token that a service repeats is not shown: %s', async (_, answer) => {
  const { url } = await Hostile.listen({ posts: [answer] })
  const store = `--store ${url} --timeout 300ms`
  for (const line of [create, 'doctor'])
    await everyWay(new World(), `${line} ${store}`, { env: { PLANTS_TOKEN: odd } })
  await everyWay(new World(), `auth login --from-stdin ${store}`, { stdin: odd })
})

test('nor one from the settings or a command', async () => {
  const { url } = await Hostile.listen({ posts: [error(400, `Bad: ${odd}`, { 'X-Debug': odd })] })
  const user = new World()
  user.write('token.txt', odd)
  const team = { address: url, 'token-command': `cat ${user.home}/token.txt` }
  user.save({ stores: { team }, tokens: { [url]: { token: odd, savedAt } } })
  for (const store of ['team', url])
    for (const line of [create, 'doctor'])
      await everyWay(user, `${line} --timeout 300ms --store ${store}`)
})

test.each(['s3cret/of+env==s3cret', 's3cret"of\\\\env-s3cret', 's3cr\u00e9t of env-s3cret'])(
  'a token that is percent-encoded, or as JSON writes it, is neither in an error nor in a trace: %j',
  async (token) => {
    const percent = encodeURIComponent(token)
    const json = JSON.stringify(token).slice(1, -1)
    for (const form of [token, percent, json]) {
      const env = { PLANTS_TOKEN: token }
      expect(
        await everyWay(new World(), 'create', { env, stdin: `{"id":"${json}","name":"x"}` }),
      ).toContain('***')
      // In JSON again, it is another text.
      if (form !== json || form === token)
        expect(await everyWay(new World(), ['import', form], { env })).toContain('***')
    }
  },
)

test('the log of a service shows no token, however it is encoded', async () => {
  const token = 's3cret+of env=s3cret'
  const env = { PLANTS_TOKEN: token, PLANTS_SERVE_TOKEN: 's3cret-to-serve' }
  for (const form of [token, encodeURIComponent(token)])
    for (const terminals of [[], ['stderr' as const]]) {
      const user = new World()
      const line = ['serve', '--port', '0', '--store', `./${form}.db`]
      const { err } = await user.run(line, { env, signal: AbortSignal.abort(), terminals })
      expect(err).toMatch(/Created store .*\/\*\*\*\.db/)
    }
})

test('a token of any length is not shown, and stops no other command', async () => {
  const token = `s3cret${'q'.repeat(70_000)}s3cret`
  const user = new World()
  for (const line of [
    'list',
    `list --store ${token}`,
    'auth status --store https://plants.example.com',
  ])
    expect(await everyWay(user, line, { env: { PLANTS_TOKEN: token } })).not.toContain('qqqq')
  expect((await user.run('list', { env: { PLANTS_TOKEN: token } })).code).toBe(0)
})

test('a line of JSON stays one, wherever a secret begins and ends in it', () => {
  const secrets = new Set(['plantsapp-1', '"quoted"', 'ends with \\', 'a"b\\c-secret'])
  for (const secret of secrets)
    for (const text of [secret, `role "${secret.slice(0, 9)}" is`, `${secret}"`, `"${secret}\\`]) {
      const line = redactJson(JSON.stringify({ msg: text, 'x"y': [text] }), { secrets })
      expect(JSON.stringify(JSON.parse(line))).not.toContain(JSON.stringify(secret).slice(1, -1))
    }
})

test('ordinary words stay, also those that a secret begins with', () => {
  const secrets = new Set([
    'password1',
    'database-2024',
    `plants_c${'Ab3-_x9'.repeat(6)}`,
    'correcthorsebatterystaple',
  ])
  const text = 'The password of plants_clone, correct, is in the database-server'
  expect(redact(text, { secrets })).toBe(text)
  expect(redact('password1 database-2024 plants_cAb3-_x… correcthorsebatt…', { secrets })).toBe(
    '*** *** ***… ***…',
  )
})

test('the beginning of a secret goes where a message is cut after it', () => {
  const secrets = new Set(['correcthorsebatterystaple', `plants_c${'Ab3-_x9'.repeat(6)}`])
  expect(redact('correcthors… correcthor... "plants_cAb3-…', { secrets })).toBe('***… *** "***…')
})

test('a token of 40 characters is redacted in every form, whole and cut', () => {
  const token = 'Ab3/Cd4+Ef5=Gh6~Ij7.Kl8-Mn9_Op0/Qr1+St2='
  const secrets = new Set([token])
  const forms = [token, encodeURIComponent(token), JSON.stringify(token).slice(1, -1)]
  for (const form of [
    ...forms,
    ...forms.map((each) => `${each.slice(0, 16)}…`),
    token.slice(0, 12),
  ])
    expect(redact(`Bad: ${form}`, { secrets })).toMatch(/^Bad: \*\*\*…?$/)
})
