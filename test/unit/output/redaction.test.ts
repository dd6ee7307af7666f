import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Answer, Hostile, http, json } from '../../helpers/hostile.js'
import { plants } from '../../helpers/process.js'
import { type Result, runPlants, type World } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'

// Whatever runs here, runPlants itself fails when a token is shown: each holds "s3cret", at its beginning and at its end.

const short = 's3cret-of-env-s3cret'
/** As long as those of `plants tokens create`: too long for a message, which then shows its beginning. */
const long = `plants_s3cret-${'0123456789'.repeat(3)}-s3cret`
const when = '2026-01-02T03:04:05.678Z'
const manners = [['text'], ['json'], ['text', '--verbose'], ['json', '--verbose']]

let isOdd = false

class User {
  readonly folder = temporaryFolder()
  readonly file = join(this.folder, 'settings.json')

  write(text: string): this {
    writeFileSync(this.file, text, { mode: 0o600 })
    return this
  }

  async run(argv: string[], world: World = {}): Promise<Result> {
    const env = { PATH: process.env['PATH'] ?? '', PLANTS_CONFIG_DIR: this.folder, PLANTS_DATA_DIR: join(this.folder, 'data') }
    return runPlants(argv, { cwd: this.folder, ...world, env: { ...env, ...world.env } })
  }

  /** Runs a command line in text and in JSON, one of them with its traces, each time the other one. */
  async someWays(argv: string[], world: World = {}): Promise<void> {
    isOdd = !isOdd
    for (const [output = '', ...flags] of isOdd ? [['text'], ['json', '--verbose']] : [['json'], ['text', '--verbose']]) {
      await this.run([...argv, '--output', output, ...flags], world)
    }
  }

  /** Runs a command line in every manner; all that it has said on stderr. */
  async everyWay(argv: string[], world: World = {}): Promise<string> {
    const said: string[] = []
    for (const [output = '', ...flags] of manners) said.push((await this.run([...argv, '--output', output, ...flags], world)).err)
    return said.join('')
  }
}

test('the helper of all tests sees a token', async () => {
  const env = { PLANTS_STORE: `./${short}.db` }
  await expect(runPlants(['config', 'get', 'store'], { env })).rejects.toThrow('plants config get store has shown a token: ./s3cret')
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
    ...['list --store https://T@x.example', 'list --store https://me:T@x.example', 'list --store https://x.example/?token=T'],
    ...[
      'create --id 1 --name x --store http://x.example/T',
      'create --id 1 --name x --store T.db',
      'create --id 1 --name x --store unix:T',
    ],
    ...['create --id T --name x', 'create --id=-T --name x', 'create --file T', 'create --file ./T', 'create --tokn T', 'create --token T'],
    ...['create --token=T', 'create -tT', 'create --T', 'create --id 1 --name x --idempotency-key T!é', 'create T', 'create --id --T'],
    ...['T', '--T', '-T', 'help T', 'T --help', 'list T', 'get T', 'delete T', 'delete T --yes', 'tokens revoke T', 'tokens T', 'auth T'],
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
    ...['config set stores.T.timeout 1s', 'config get stores.T.timeout', 'config get stores.team.T', 'config set stores.team.address T'],
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
    ...['doctor --store T', 'doctor --store ./T/x', 'doctor --timeout T', 'doctor --ca-cert T', 'doctor T', 'openapi T'],
  ]

  test.each(places)('%s', async (line) => {
    for (const token of [short, long]) {
      const user = new User()
      await user.run(['stores', 'add', 'team', 'https://127.0.0.1:1', '--timeout', '100ms'])
      const argv = line.split(' ').map((word) => word.replaceAll('T', token))
      await user.someWays(argv, { env: { PLANTS_TOKEN: token, PLANTS_TIMEOUT: '100ms' } })
    }
  })

  test.each(['PLANTS_OUTPUT', 'PLANTS_TIMEOUT', 'PLANTS_CA_CERT', 'PLANTS_ALLOW_HTTP', 'HTTPS_PROXY', 'HTTP_PROXY', 'PLANTS_CONFIG_DIR'])(
    'as %s',
    async (name) => {
      for (const token of [short, long]) {
        for (const line of ['create --id 1 --name x --store https://x.invalid', 'list', 'doctor --store https://127.0.0.1:1']) {
          const env = { PLANTS_TOKEN: token, PLANTS_TIMEOUT: '100ms', [name]: token }
          await new User().someWays(line.split(' '), { env })
        }
      }
    },
  )

  test('as PLANTS_STORE', async () => {
    for (const token of [short, long]) {
      const env = { PLANTS_TOKEN: token, PLANTS_STORE: token }
      for (const line of ['list', 'create --id 1 --name x', 'auth status', 'auth login', 'doctor', 'stores list', 'stores use local']) {
        await new User().someWays(line.split(' '), { env })
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
      await new User().someWays(['create'], { stdin: text.replaceAll('T', token), env: { PLANTS_TOKEN: token } })
    }
  })

  test('beside PLANTS_SERVE_TOKEN that goes on where it ends, and the other way round', async () => {
    const [one, two] = [short, `${short}-and-s3cret`]
    for (const [PLANTS_TOKEN, PLANTS_SERVE_TOKEN] of [
      [one, two],
      [two, one],
    ] as const) {
      for (const token of [one, two]) {
        const said = await new User().everyWay(['list', '--store', token], { env: { PLANTS_TOKEN, PLANTS_SERVE_TOKEN } })
        expect(said).toContain('***')
      }
    }
  })
})

describe('a malformed token is not shown', () => {
  const malformed = [
    's3cret s3cret',
    's3cret\ns3cret',
    's3cret\u001b[31ms3cret',
    's3cr\u00e9t-s3cret',
    '"s3cret"',
    's3cret'.padEnd(5000, 's3cret'),
  ]

  test.each(malformed)('in PLANTS_TOKEN: %j', async (token) => {
    const env = { PLANTS_TOKEN: token, PLANTS_STORE: 'https://127.0.0.1:1' }
    for (const line of ['create --id 1 --name x', 'auth status', 'auth token', 'auth logout', 'doctor', 'config list', 'stores list']) {
      const user = new User()
      for (const [output = '', ...flags] of manners) {
        const { code } = await user.run([...line.split(' '), '--output', output, ...flags], { env })
        const isChecked = /create|status|token/.test(line)
        expect({ line, code }).toEqual({ line, code: isChecked ? 2 : line === 'doctor' ? 1 : 0 })
      }
    }
  })

  test.each(malformed)('in PLANTS_TOKEN, and in a wrong place: %j', async (token) => {
    for (const argv of [['list', '--store', token], ['get', token], ['create', '--id', token, '--name', 'x'], [token]]) {
      await new User().someWays(argv, { env: { PLANTS_TOKEN: token } })
    }
  })

  test.each(malformed)('in PLANTS_SERVE_TOKEN or the token file of a service: %j', async (token) => {
    const user = new User()
    const file = join(user.folder, 'tokens.txt')
    writeFileSync(file, `${token}\n`)
    const serve = ['serve', '--port', '0']
    if (!token.includes('\u001b') && !token.includes('\n')) {
      expect((await plants([...serve, '--token-file', file], user.folder)).code).toBe(2)
    }
    expect((await plants(serve, user.folder, { env: { PLANTS_SERVE_TOKEN: token } })).code).toBe(2)
  })

  test.each(malformed)('in the settings: %j', async (token) => {
    const address = 'https://127.0.0.1:1'
    const user = new User().write(JSON.stringify({ version: 1, tokens: { [address]: { token, savedAt: when } } }))
    for (const line of ['create --id 1 --name x', 'auth status', 'auth token', 'doctor']) {
      await user.someWays([...line.split(' '), '--store', address])
    }
  })
})

describe('a token that a service repeats is not shown', () => {
  const token = 's3cret-Of/one+address~s3cret=='
  const error = (status: number, message: string, headers: Record<string, string> = {}) => json(status, { error: status, message }, headers)

  const answers: [string, Answer][] = [
    ['in its message', error(400, `Bad: ${token}`)],
    ['in its message of 401', error(401, `Bearer ${token} is not accepted`)],
    ['in its message of 404', error(404, token)],
    ['in its message of 409', json(400, { error: 409, message: `"${token}" is taken` })],
    ['in its message of 422', json(400, { error: 422, message: token })],
    ['in its message of 500', error(500, token)],
    ['in its message of 503', error(503, token, { 'Retry-After': '60' })],
    ['in its message, which is cut within it', error(400, `${'x'.repeat(990)}${token}`)],
    ['in its message, twice and in another text', error(400, `${token}${token}x${token}`)],
    ['in its message, with lines', error(400, `first\n${token}\r\nthird`)],
    ['in its request id', error(400, 'No', { 'Request-Id': token })],
    ['in another request id', error(401, 'No', { 'X-Request-Id': `id-${token}` })],
    ['in its headers', json(422, { error: 422, message: 'No' }, { 'X-Debug': `Bearer ${token}`, 'Set-Cookie': `token=${token}` })],
    ['in the headers of a redirect', http(302, '', { Location: `https://example.com/login?token=${token}` })],
    ['percent-encoded in a redirect', http(307, '', { Location: `https://example.com/?token=${encodeURIComponent(token)}` })],
    ['in a redirect that is cut within it', http(301, '', { Location: `https://example.com/${'x'.repeat(270)}${token}` })],
    ['in its media type', http(200, '{}', { 'Content-Type': `text/${token}` })],
    ['in its media type, which is cut within it', http(200, '{}', { 'Content-Type': `text/${'x'.repeat(62)}${token}` })],
    ['in its status line', `HTTP/1.1 400 ${token}\r\nContent-Length: 0\r\n\r\n`],
    ['in no HTTP', (socket) => void socket.end(`${token}\r\n`)],
    ['in half an answer', (socket) => void socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n${token}`)],
    ['in an answer that is longer than is read', http(200, token.repeat(50_000), { 'Content-Type': 'application/json' })],
  ]

  const sources: [string, (url: string) => { fields?: object; env?: Record<string, string> }][] = [
    ['PLANTS_TOKEN', () => ({ env: { PLANTS_TOKEN: token } })],
    ['the settings', (url) => ({ fields: { tokens: { [url]: { token, savedAt: when } } } })],
    ['a command', (url) => ({ fields: { stores: { team: { address: url, 'token-command': 'cat token.txt' } } } })],
  ]

  describe.each(sources)('when it is from %s', (source, given) => {
    const sample = answers.filter((_, index) => source === 'PLANTS_TOKEN' || index % 5 === 0) // what is redacted does not know where it is from
    test.each(sample)('%s', async (_, answer) => {
      const { url } = await Hostile.listen({ posts: [answer] })
      const { fields = {}, env = {} } = given(url)
      const user = new User().write(JSON.stringify({ version: 1, ...fields }))
      const file = join(user.folder, 'token.txt')
      writeFileSync(file, token)
      if (source === 'a command') user.write(JSON.stringify({ version: 1, ...fields }).replace('token.txt', file))
      const store = source === 'a command' ? 'team' : url
      for (const argv of [['create', '--id', '1', '--name', 'Fern'], ['doctor'], ['auth', 'status']]) {
        await user.someWays([...argv, '--store', store, '--timeout', '300ms'], { env })
      }
    })
  })

  test.each(answers)('%s, to a login', async (_, answer) => {
    const { url } = await Hostile.listen({ posts: [answer] })
    await new User().someWays(['auth', 'login', '--with-token', '--store', url, '--timeout', '300ms'], { stdin: token })
  })

  /** Tokens whose first characters are escaped, too; the last one is as long as a service's own. */
  const escaped = [token, 'ab/cd+ef-s3cret/s3cret==', `${'x/'.repeat(30)}s3cret`]
  const percent = (text: string) => encodeURIComponent(text).replaceAll('~', '%7E')
  const small = (text: string) => text.replaceAll(/%../g, (code) => code.toLowerCase())
  const escapes: [string, (text: string) => string][] = [
    ['as it is', String],
    ['percent-encoded', percent],
    ['percent-encoded in small letters', (text) => small(percent(text))],
    ['with escapes of JSON', (text) => text.replaceAll('/', '\\/')],
  ]

  /** A service repeats a text where it can; nothing of the end of that text may be shown. */
  async function repeats(text: string, secret: string): Promise<void> {
    for (const said of [
      http(302, '', { Location: `https://example.com/login?token=${text}&next=/` }),
      error(400, `Bad: ${text}`, { 'X-Token': text, 'Request-Id': text }),
      error(400, `Bad: ${text.slice(0, -3)}`),
    ]) {
      const { url } = await Hostile.listen({ posts: [said] })
      const argv = ['create', '--id', '1', '--name', 'Fern', '--store', url]
      const shown = await new User().everyWay(argv, { env: { PLANTS_TOKEN: secret } })
      expect(shown.match(/\*\*\*/g)?.length).toBeGreaterThan(4) // twice as what was sent, and each time that it was repeated
      expect(shown).not.toContain(text.slice(-14, -3))
    }
  }

  test.each(escapes)('%s, in the address of a redirect, in a message and in a header', async (_, encode) => {
    for (const secret of escaped) await repeats(encode(secret), secret)
  })

  test('as the name of a header', async () => {
    const secret = 's3cret-of-one-address-s3cret'
    const { url } = await Hostile.listen({ posts: [json(400, { error: 400, message: 'No' }, { [`X-${secret}`]: '1' })] })
    const argv = ['create', '--id', '1', '--name', 'Fern', '--store', url]
    const shown = await new User().everyWay(argv, { env: { PLANTS_TOKEN: secret } })
    expect(shown).toContain('< x-***: 1\n')
    expect(shown).toContain('"x-***":"1"')
  })

  test('in the warning of a plant that is another one', async () => {
    const { url } = await Hostile.listen({ posts: [json(200, { name: token, tag: token })] })
    const argv = ['create', '--id', '1', '--name', 'Fern', '--store', url]
    const { code, err } = await new User().run(argv, { env: { PLANTS_TOKEN: token }, mayShowSecrets: true })
    expect({ code, err }).toEqual({ code: 0, err: expect.stringMatching(/another plant.*\*\*\*/) })
    expect(err).not.toContain('s3cret')
  })

  test('in the traces, where *** stands for it', async () => {
    const { url } = await Hostile.listen({ posts: [json(200, { name: 'Fern' }, { 'X-Debug': `<${token}>` })] })
    const user = new User()
    const said = await user.everyWay(['create', '--id', '1', '--name', 'Fern', '--store', url], { env: { PLANTS_TOKEN: token } })
    expect(said).toContain('> authorization: Bearer ***\n')
    expect(said).toContain('"authorization":"Bearer ***"')
    expect(said).toContain('< x-debug: <***>\n')
    expect(said).toContain('"x-debug":"<***>"')
  })
})

describe('a password in the address of a store is not shown', () => {
  const addresses = [
    'https://user:s3cret@h.example',
    'https://s3cret@h.example',
    'https://user:s3cret/s3cret@h.example',
    'https://user:s3cret@s3cret@h.example',
    'https://user:s3cret?s3cret#s3cret@h.example',
    'https://user:s3cret s3cret@h.example',
    'https:/user:s3cret@h.example',
    'https:user:s3cret@h.example',
    'https:\\\\user:s3cret@h.example',
    'HTTP:///user:s3cret@h.example/@s3cret@/v1',
  ]

  test.each(addresses)('that is given for a run: %s', async (address) => {
    for (const line of ['stores list', 'config list', 'config get store', 'list', 'create --id 1 --name x', 'auth status', 'doctor']) {
      const argv = line.split(' ')
      await new User().someWays([...argv, '--store', address])
      await new User().someWays(argv, { env: { PLANTS_STORE: address } })
    }
    const user = new User()
    for (const line of ['stores add x ADDRESS', 'stores use ADDRESS', 'stores remove ADDRESS', 'config set store ADDRESS']) {
      await user.someWays(line.split(' ').map((word) => word.replace('ADDRESS', address)))
    }
  })

  test.each(addresses)('that somebody has saved: %s', async (address) => {
    const saved = JSON.stringify({ version: 1, store: address, stores: { team: { address } } })
    const user = new User().write(saved)
    for (const line of [
      'stores list',
      'config list',
      'config get stores.team.address',
      'config get store',
      'auth status',
      'doctor',
      'list',
    ]) {
      await user.someWays(line.split(' '))
      await user.someWays([...line.split(' '), '--store', 'team'])
      await user.run(line.split(' '), { terminals: ['stdout', 'stderr'] })
    }
    for (const line of ['stores add team https://h.example', 'stores use team', 'config set stores.team.timeout 1s']) {
      await user.someWays(line.split(' '))
    }
    for (const output of ['text', 'json']) {
      const removal = await user.write(saved).run(['stores', 'remove', 'team', '--output', output, '--verbose'])
      expect(removal).toMatchObject({ code: 0, out: expect.stringMatching(/https?:.*\*\*\*@h\.example|https?:.*\*\*\*@\/v1/i) })
    }
  })
})

describe('a mistake of ours does not show a token', () => {
  test.each(manners)('in its message and its stack: %s %s', async (output, flag = '--no-color') => {
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
      const { code, out, err } = await runPlants(['list', '--output', output ?? '', flag], { env })
      expect({ code, out, err }).toEqual({ code: 70, out: '', err: expect.stringContaining('***, Bearer *** and ***') })
      expect(/^ +at /m.test(err)).toBe(output === 'text')
    }
  })
})

describe('settings that are broken near a token do not show it', () => {
  const entry = `"https://127.0.0.1:1":{"token":"${short}","savedAt":"${when}"}`
  const broken: [string, string][] = [
    ['cut off in the token', `{"version":1,"tokens":{"https://127.0.0.1:1":{"token":"${short}`],
    ['cut off behind the token', `{"version":1,"tokens":{"https://127.0.0.1:1":{"token":"${short}"`],
    ['a token without quotes', `{"version":1,"tokens":{"https://127.0.0.1:1":{"token":${short},"savedAt":"${when}"}}}`],
    ['a token in single quotes', `{"version":1,"tokens":{"https://127.0.0.1:1":{"token":'${short}'}}}`],
    ['a line break in the token', `{"version":1,"tokens":{"https://127.0.0.1:1":{"token":"${short}\n${short}"}}}`],
    ['an escape in the token', `{"version":1,"tokens":{"https://127.0.0.1:1":{"token":"\\x${short}"}}}`],
    ['a comma too much', `{"version":1,"tokens":{${entry},}}`],
    ['text behind it', `{"version":1,"tokens":{${entry}}} ${short}`],
    ['a token alone', short],
    ['a token in quotes', `"${short}"`],
    ['a token as the version', `{"version":"${short}"}`],
    ['a token in place of its entry', `{"version":1,"tokens":{"https://127.0.0.1:1":"${short}"}}`],
    ['a token without its address', `{"version":1,"tokens":"${short}"}`],
    ['a token in an array', `{"version":1,"tokens":["${short}"]}`],
    ['a token without a time', `{"version":1,"tokens":{"https://127.0.0.1:1":{"token":"${short}"}}}`],
    ['a token in an array of its entry', `{"version":1,"tokens":{"https://127.0.0.1:1":{"token":["${short}"],"savedAt":"${when}"}}}`],
    ['a token and its address the wrong way round', `{"version":1,"tokens":{"${short}":"https://127.0.0.1:1"}}`],
    ['a token in place of a store', `{"version":1,"stores":{"team":"${short}"}}`],
    ['a token in a later version', `{"version":2,"tokens":{${entry}}}`],
  ]

  test.each(broken)('%s', async (_, text) => {
    for (const content of [text, text.replaceAll(short, long)]) {
      const user = new User().write(content)
      for (const line of ['auth status', 'list', 'create --id 1 --name x', 'stores list', 'config list', 'config get timeout', 'doctor']) {
        await user.someWays(line.split(' '))
      }
      expect(readFileSync(user.file, 'utf8')).toBe(content)
    }
  })
})

describe('what is asked of settings and stores shows no token', () => {
  const address = 'https://127.0.0.1:1'
  const fields = {
    store: 'team',
    stores: {
      team: { address },
      command: { address: 'https://127.0.0.1:2', 'token-command': 'cat token.txt', timeout: '1s' },
      bare: { address: 'https://127.0.0.1:3' },
    },
    tokens: {
      [address]: { token: short, savedAt: when, scope: short },
      'https://127.0.0.1:4': { token: long, savedAt: when },
    },
  }

  test.each([
    'auth status',
    'auth status --store team',
    'auth status --store bare',
    'auth logout --store bare',
    'config list',
    'config get store',
    'config get tokens',
    `config get tokens.${address}`,
    `config get tokens.${address}.token`,
    'config get stores.team.token',
    'config path',
    'stores list',
    'stores add new https://127.0.0.1:1',
    'stores use bare',
    'stores remove team',
    'doctor',
    'doctor --store bare',
    'help environment',
    'list',
  ])('%s', async (line) => {
    const user = new User().write(JSON.stringify({ version: 1, ...fields }).replace('token.txt', '/nonexistent/token.txt'))
    await user.someWays([...line.split(' '), '--timeout', '200ms'])
    await user.someWays([...line.split(' '), '--timeout', '200ms'], { env: { PLANTS_TOKEN: 's3cret-of-env' } })
    for (const terminals of [['stdout' as const], ['stdout' as const, 'stderr' as const]]) {
      await user.run([...line.split(' '), '--timeout', '200ms', '--verbose'], { terminals })
    }
  })

  test.each(['stores list', 'config list', 'doctor', 'auth status', 'config get stores.team.token'])(
    'not even one that somebody has put with a store: %s',
    async (line) => {
      const stores = { team: { address, token: short, headers: { authorization: short } } }
      await new User().write(JSON.stringify({ version: 1, stores })).someWays([...line.split(' '), '--timeout', '200ms'])
    },
  )

  test('nor the password of a proxy', async () => {
    const proxy = 'http://me:s3cret-of-proxy@127.0.0.1:1'
    for (const name of ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY']) {
      for (const value of [
        proxy,
        proxy.slice(7),
        proxy.replace('http', 'ftp'),
        proxy.replace('@', '@@'),
        'http://s3cret-of-proxy@127.0.0.1:1',
      ]) {
        const env = { [name]: value, PLANTS_TOKEN: short }
        for (const line of ['doctor', 'create --id 1 --name x']) {
          for (const store of ['https://x.invalid', 'http://x.invalid']) {
            await new User().someWays([...line.split(' '), '--store', store, '--allow-http', '--timeout', '100ms'], { env })
          }
        }
      }
    }
  })
})
