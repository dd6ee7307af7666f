import { once } from 'node:events'
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { version } from '../../../package.json'
import { type Answer, closedPort, Hostile, http, json } from '../../helpers/hostile.js'
import { plants } from '../../helpers/process.js'
import { ownService, token as ownToken, socketPath } from '../../helpers/remote.js'
import { type Result, runPlants, type World } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { terminal } from '../../helpers/terminal.js'

const store = 'https://plants.example.com'
const token = 'plants_s3cret-Token~+/='
const when = '2026-01-02T03:04:05.678Z'
const isRoot = process.getuid?.() === 0

/** What a service says to an empty object when it accepts the token, and when it does not. */
const accepts = json(400, { error: 422, message: 'id must be an integer, but is missing' })
const refuses = json(400, { error: 401, message: 'This token is not accepted' })
const accepting = () => Hostile.listen({ posts: [accepts] })

/** A user, whose settings are in a folder that is not there yet. */
class User {
  readonly folder = join(temporaryFolder(), 'config', 'plants')
  readonly file = join(this.folder, 'settings.json')

  async auth(args: string, world: World = {}): Promise<Result> {
    return this.run(['--output', 'json', '--store', store, 'auth', ...args.split(' ')], world)
  }

  async run(argv: string[], world: World = {}): Promise<Result> {
    return runPlants(argv, { ...world, env: { PLANTS_CONFIG_DIR: this.folder, ...world.env } })
  }

  async login(address: string, text: string | Uint8Array = token): Promise<Result> {
    return this.auth(`login --with-token --store ${address}`, { stdin: text })
  }

  write(text: string | Uint8Array): void {
    mkdirSync(this.folder, { recursive: true, mode: 0o700 })
    writeFileSync(this.file, text, { mode: 0o600 })
  }

  /** What is saved to begin with. */
  save(fields: Record<string, unknown>): void {
    this.write(JSON.stringify({ version: 1, ...fields }))
  }

  get saved(): unknown {
    return existsSync(this.file) ? JSON.parse(readFileSync(this.file, 'utf8')) : undefined
  }

  get isUntouched(): boolean {
    return !existsSync(this.folder)
  }
}

function lines(...fields: Record<string, unknown>[]): string {
  return fields.map((line) => `${JSON.stringify(line)}\n`).join('')
}

function answer(...fields: Record<string, unknown>[]): Result {
  return { code: 0, out: lines(...fields), err: '' }
}

function failure(code: number, error: number, message: string, hint: string): Result {
  return { code, out: '', err: lines({ error, message, hint }) }
}

/** A result, with what it says as values; the address of a service is URL in it. */
function read({ code, out, err }: Result, url = 'no url') {
  const parse = (text: string) =>
    text.split('\n').flatMap((line): unknown[] => (line === '' ? [] : [JSON.parse(line.replaceAll(url, 'URL'))]))
  return { code, out: parse(out), err: parse(err) }
}

const aTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const noToken = failure(3, 401, `There is no token for ${store}`, `Set PLANTS_TOKEN, or save one with: plants auth login --store ${store}`)
const status = (name: string, source: string, more: Record<string, unknown> = {}) => ({ store: name, address: name, source, ...more })

describe('login --with-token', () => {
  test.each<[string, string]>([
    ['alone', token],
    ['before a line feed', `${token}\n`],
    ['before CR LF', `${token}\r\n`],
    ['between spaces and empty lines', `\n  ${token}\t\r\n\r\n`],
    ['behind a byte order mark', `\ufeff${token}\n`],
  ])('saves a token that stands %s, for its owner alone', async (_, text) => {
    const user = new User()
    const { url } = await accepting()
    const result = read(await user.login(url, text))
    const [{ savedAt }] = result.out as [{ savedAt: string }]
    expect(result).toEqual({ code: 0, out: [{ store: url, address: url, source: 'file', savedAt: aTime, checked: true }], err: [] })
    expect(user.saved).toEqual({ version: 1, tokens: { [url]: { token, savedAt } } })
    expect(readdirSync(user.folder).toSorted()).toEqual(['settings.json', 'settings.json.lock'])
    expect([join(user.folder, '..'), user.folder, user.file, join(user.folder, 'settings.json.lock')].map(modeOf)).toEqual([
      '700',
      '700',
      '600',
      '600',
    ])
  })

  test('asks the service once, with an empty object and the token', async () => {
    const remote = await accepting()
    await new User().login(`${remote.url}/v1`)
    expect(remote.requests).toEqual([
      {
        line: 'POST /v1/plants',
        headers: {
          accept: 'application/json',
          authorization: `Bearer ${token}`,
          connection: 'keep-alive',
          'content-length': '2',
          'content-type': 'application/json',
          host: `127.0.0.1:${remote.port}`,
          'user-agent': `plants/${version}`,
        },
        body: '{}',
      },
    ])
  })

  test("is accepted or refused by the program's own service, in which no plant is made", async () => {
    const user = new User()
    const path = join(temporaryFolder(), 'plants.db')
    const url = await ownService({ host: '127.0.0.1', port: 0 }, path, '/v1')
    expect(read(await user.login(url, ownToken))).toMatchObject({ code: 0, out: [{ store: url, checked: true }], err: [] })
    expect(read(await user.login(url, 's3cret-other'))).toMatchObject({
      code: 3,
      out: [],
      err: [{ error: 401, message: `${url} does not accept this token: This token is not accepted`, status: 400 }],
    })
    expect(user.saved).toMatchObject({ tokens: { [url]: { token: ownToken } } })
    expect((await user.run(['list', '--store', path])).out).toBe('')
    expect(await user.run(['create', '--id', '1', '--name', 'Fern', '--store', url])).toEqual({
      code: 0,
      out: '{"name":"Fern"}\n',
      err: '',
    })
  })

  test('tells with --verbose where the token comes from, and not where it will be', async () => {
    const user = new User()
    const { url } = await accepting()
    const { code, err } = await user.run(['auth', 'login', '--with-token', '--verbose', '--store', url], { stdin: token })
    expect({ code, err }).toEqual({ code: 0, err: expect.stringMatching(/> POST .*\n(> .*\n)*> authorization: Bearer \*\*\*\n/) })
    expect(err).not.toContain(`token from ${user.file}`)
  })

  test('tells a person which store it is for', async () => {
    const user = new User()
    const { url } = await accepting()
    const text = await user.auth(`login --with-token --output text --store ${url}`, { stdin: token })
    expect(text).toEqual({ code: 0, out: `Saved the token for ${url}, which accepts it\n`, err: '' })
    await user.run(['stores', 'add', 'team', `${url}/v1`])
    expect(await user.auth('login --with-token --output text --store team', { stdin: token })).toEqual({
      code: 0,
      out: `Saved the token for team (${url}/v1), which accepts it\n`,
      err: '',
    })
  })

  const notChecked = 'The token is saved, but could not be checked'

  test.each<[string, Answer, string]>([
    ['404', json(404, { error: 404, message: 'Not here' }), 'Not here'],
    ['405', http(405), 'URL answered 405 with nothing'],
    ['409', json(400, { error: 409, message: 'Taken' }), 'Taken'],
    ['400', json(400, { error: 400, message: 'Malformed' }), 'Malformed'],
    ['a Plant', json(200, { name: 'Fern' }), 'URL answered 200 to an empty object'],
    ['200 with HTML', http(200, '<h1>Hello</h1>', { 'Content-Type': 'text/html' }), 'URL answered 200 with text/html'],
    ['500', json(500, { error: 500, message: 'Oops' }), 'URL failed: Oops'],
    ['503', json(503, { error: 503, message: 'Not now' }, { 'Retry-After': 60 }), 'Not now'],
    ['429', http(429), 'URL answered 429 with nothing'],
    ['a redirect', http(302, '', { Location: 'https://example.com/' }), 'URL answered 302, and points to https://example.com/'],
    ['no HTTP', (socket) => void socket.end('SSH-2.0-OpenSSH\r\n'), 'URL answered what is not HTTP/1.1'],
    ['garbage as JSON', json(400, '{"error":4'), 'URL answered 400 with broken JSON'],
  ])('saves it with a warning when the service answers %s', async (_, posts, why) => {
    const user = new User()
    const remote = await Hostile.listen({ posts: [posts] })
    const result = read(await user.login(remote.url), remote.url)
    expect(result).toEqual({
      code: 0,
      out: [{ store: 'URL', address: 'URL', source: 'file', savedAt: aTime, checked: false }],
      err: [{ warning: expect.stringContaining(`${notChecked}: ${why}`) }],
    })
    expect(user.saved).toMatchObject({ tokens: { [remote.url]: { token } } })
    expect(remote.lines).toEqual(['POST /plants'])
  })

  test.each<[string, Answer]>([
    ['hangs', () => undefined],
    ['hangs up', (socket) => void socket.destroy()],
  ])('saves it with a warning that speaks of no plant when the service %s', async (_, posts) => {
    const user = new User()
    const remote = await Hostile.listen({ posts: [posts] })
    const result = read(await user.auth(`login --with-token --timeout 200ms --store ${remote.url}`, { stdin: token }), remote.url)
    expect(result).toMatchObject({ code: 0, out: [{ checked: false }], err: [{ warning: expect.stringContaining(notChecked) }] })
    expect(result.err).toEqual([{ warning: expect.not.stringContaining('plant,') }])
  })

  test('saves it with a warning when nobody listens there', async () => {
    const user = new User()
    const url = `http://127.0.0.1:${closedPort}`
    expect(read(await user.login(url), url)).toEqual({
      code: 0,
      out: [{ store: 'URL', address: 'URL', source: 'file', savedAt: aTime, checked: false }],
      err: [{ warning: `${notChecked}: Could not reach URL: the connection was refused` }],
    })
    expect(user.saved).toMatchObject({ tokens: { [url]: { token } } })
    const socket = socketPath()
    expect(read(await user.login(`unix:${socket}`))).toMatchObject({ code: 0, out: [{ store: `unix:${socket}`, checked: false }] })
  })

  test.each<[string, Answer, Record<string, unknown>]>([
    ['401', http(401), { message: 'URL does not accept this token: URL answered 401 with nothing', status: 401 }],
    ['403', json(403, { error: 403, message: 'No' }), { error: 403, message: 'URL does not accept this token: No', status: 403 }],
    ['400 with the error 401', refuses, { message: 'URL does not accept this token: This token is not accepted', status: 400 }],
    ['401 and repeats it', json(401, { error: 401, message: token }), { message: 'URL does not accept this token: ***', status: 401 }],
  ])('saves nothing, and keeps the old one, when the service answers %s', async (_, posts, said) => {
    const user = new User()
    const remote = await Hostile.listen({ posts: [posts] })
    const hint = 'Nothing was saved. Copy the token again, or ask for a new one where the service is run: plants tokens create'
    expect(read(await user.login(remote.url), remote.url)).toEqual({ code: 3, out: [], err: [{ error: 401, hint, ...said }] })
    expect(user.isUntouched).toBe(true)
    const tokens = { [remote.url]: { token: 'old', savedAt: when } }
    user.save({ tokens })
    expect((await user.login(remote.url)).code).toBe(3)
    expect(user.saved).toEqual({ version: 1, tokens })
  })

  test('sends nothing, and saves nothing, where others could read it on its way', async () => {
    const user = new User()
    const message = 'The token is not sent to http://192.0.2.1: without TLS others could read it'
    const hint = 'Use https://, or, where the network is yours alone, add --allow-http'
    expect(await user.login('http://192.0.2.1')).toEqual(failure(2, 400, message, hint))
    expect(user.isUntouched).toBe(true)
    await user.run(['stores', 'add', 'team', 'http://192.0.2.1'])
    const named = failure(2, 400, message, `${hint}, or for good: plants config set stores.team.allow-http true`)
    expect(await user.login('team')).toEqual(named)
    expect(user.saved).toEqual({ version: 1, stores: { team: { address: 'http://192.0.2.1' } } })
  })

  test('is refused for a store that takes its token from a command, which is not run', async () => {
    const user = new User()
    const remote = await accepting()
    user.save({ stores: { team: { address: remote.url, 'token-command': `touch ${user.folder}/ran` } } })
    const hint = 'Renew the token where the command takes it from, or forget the command: plants config unset stores.team.token-command'
    expect(await user.login('team')).toEqual(failure(2, 400, 'team takes its token from a command', hint))
    expect({ connections: remote.connections, files: readdirSync(user.folder) }).toEqual({ connections: 0, files: ['settings.json'] })
    expect((await user.login(remote.url)).code).toBe(0)
  })

  test('of a name is for its address', async () => {
    const user = new User()
    const { url } = await accepting()
    await user.run(['stores', 'add', 'team', `${url}/v1/`])
    expect(read(await user.login('team'))).toMatchObject({ out: [{ store: 'team', address: `${url}/v1`, checked: true }] })
    expect(user.saved).toMatchObject({ tokens: { [`${url}/v1`]: { token } } })
  })

  test('saves the longest token', async () => {
    const user = new User()
    const { url } = await accepting()
    const longest = 's3cret'.padEnd(4096, 'x')
    expect((await user.login(url, `${longest}\n`)).code).toBe(0)
    expect(user.saved).toMatchObject({ tokens: { [url]: { token: longest } } })
  })

  const notOne =
    'The token on stdin holds a space, a line break or another character that no token has: they have letters, digits and -._~+/='

  test.each<[string, string | Uint8Array | undefined, string]>([
    ['nothing', undefined, 'The token on stdin is empty'],
    ['an empty text', '', 'The token on stdin is empty'],
    ['spaces', ' \r\n\t', 'The token on stdin is empty'],
    ['a space in it', 's3c ret', notOne],
    ['a header', 'Bearer s3cret', notOne],
    ['two lines', 's3cret\ns3cret', notOne],
    ['U+0000', 's3cret\0', notOne],
    ['a colour', '\u001b[31ms3cret', notOne],
    ['letters with accents', 's3cr\u00e9t', notOne],
    ['a colon', 's3cret:x', notOne],
    ['an equals sign within', 's3=cret', notOne],
    ['equals signs alone', '==', notOne],
    ['JSON', '{"token":"s3cret"}', notOne],
    ['too many characters', 's3cret'.repeat(683), 'The token on stdin is longer than 4096 characters'],
    ['far too many characters', 's3cret'.repeat(500_000), 'What is on stdin is too long for a token'],
    ['bytes that are no text', Buffer.from('s3cret\xff\xfe', 'latin1'), 'What is on stdin is not UTF-8'],
  ])('refuses %s, and asks and saves nothing', async (_, stdin, message) => {
    const user = new User()
    const remote = await accepting()
    const result = await user.auth(`login --with-token --store ${remote.url}`, stdin === undefined ? {} : { stdin })
    expect(result).toEqual(failure(2, 400, message, 'Copy the token again, and nothing else with it'))
    expect({ isUntouched: user.isUntouched, connections: remote.connections }).toEqual({ isUntouched: true, connections: 0 })
  })

  test('replaces the token of this address, and keeps those of others and what it does not know', async () => {
    const user = new User()
    const { url } = await accepting()
    const other = { token: 'other', savedAt: when, more: 1 }
    const stores = { team: { address: url, colour: 'blue' } }
    user.save({ tokens: { [url]: { token: 'old', savedAt: when }, 'https://other.example.com': other }, colour: 'green', stores })
    await user.login(url)
    expect(user.saved).toEqual({
      version: 1,
      tokens: { [url]: { token, savedAt: expect.not.stringMatching(when) }, 'https://other.example.com': other },
      ...{ colour: 'green', stores },
    })
  })

  test('makes a file that others could read its owner\u2019s alone, after a warning', async () => {
    const user = new User()
    const { url } = await accepting()
    user.save({})
    chmodSync(user.file, 0o644)
    const { code, err } = read(await user.login(url))
    const warning = `The settings in ${user.file} are open to others (mode 644). Fix it with: chmod 600 ${user.file}`
    expect({ code, err, mode: modeOf(user.file) }).toEqual({ code: 0, err: [{ warning }], mode: '600' })
  })

  test('keeps what several save, one after the other', async () => {
    const user = new User()
    const { url, port } = await accepting()
    const addresses = [url, `${url}/v1`, `${url}/V1`, `http://localhost:${port}`, `unix:${socketPath()}`]
    for (const [index, address] of addresses.entries()) expect((await user.login(address, `s3cret-${index}`)).code).toBe(0)
    const { tokens } = user.saved as { tokens: Record<string, { token: string }> }
    expect(Object.entries(tokens).map(([address, { token }]) => [address, token])).toEqual(
      addresses.map((address, index) => [address, `s3cret-${index}`]),
    )
  })

  test('writes to where a link leads, and leaves the link', async () => {
    const user = new User()
    const { url } = await accepting()
    const target = join(temporaryFolder(), 'mine.json')
    writeFileSync(target, '{"version":1,"tokens":{}}', { mode: 0o600 })
    mkdirSync(user.folder, { recursive: true, mode: 0o700 })
    symlinkSync(target, user.file)
    expect((await user.login(url)).code).toBe(0)
    expect(lstatSync(user.file).isSymbolicLink()).toBe(true)
    expect(JSON.parse(readFileSync(target, 'utf8'))).toMatchObject({ tokens: { [url]: { token } } })
    expect(modeOf(target)).toBe('600')
  })

  test('says that PLANTS_TOKEN goes on winning, and sends the token that is to be saved', async () => {
    const user = new User()
    const remote = await accepting()
    const env = { PLANTS_TOKEN: 's3cret-of-env' }
    const { code, out, err } = await user.auth(`login --with-token --output text --store ${remote.url}`, { stdin: token, env })
    expect(user.saved).toMatchObject({ tokens: { [remote.url]: { token } } })
    expect({ code, out, err }).toEqual({
      code: 0,
      out: `Saved the token for ${remote.url}, which accepts it\n`,
      err: 'plants: PLANTS_TOKEN is still set, and wins over it\n',
    })
    expect(remote.posts.map(({ headers }) => headers['authorization'])).toEqual([`Bearer ${token}`])
  })

  test('does not say so of a PLANTS_TOKEN that is empty', async () => {
    const { url } = await accepting()
    const result = await new User().auth(`login --with-token --output text --store ${url}`, { stdin: token, env: { PLANTS_TOKEN: ' ' } })
    expect(result.err).toBe('')
  })

  test('asks nobody where nobody is', async () => {
    const user = new User()
    for (const world of [{ stdin: token }, { terminals: ['stdin' as const, 'stdout' as const] }]) {
      expect(await user.auth('login', world)).toEqual(
        failure(2, 400, 'Nobody can be asked for the token', `Read it from stdin: plants auth login --store ${store} --with-token < FILE`),
      )
    }
    const everywhere: World = { terminals: ['stdin', 'stdout', 'stderr'] }
    expect((await user.auth('login --no-input', everywhere)).code).toBe(2)
    expect(user.isUntouched).toBe(true)
  })

  test.each([['login'], ['login --with-token'], ['logout'], ['status'], ['token']])('%s is for a service, not for a file', async (verb) => {
    const user = new User()
    const { code, out, err } = read(await user.auth(`${verb} --store /srv/garden.db`, { stdin: token }))
    expect({ code, out, err }).toEqual({
      code: 2,
      out: [],
      err: [
        {
          error: 400,
          message: '/srv/garden.db is a file, which takes no token',
          hint: 'Name the service: --store https://plants.example.com',
        },
      ],
    })
  })

  test.each([
    ['login', '--token', token],
    ['login', `--token=${token}`],
    ['login', token],
    ['login', `--with-token=${token}`],
    ['login', '--with-token', token],
    ['login', `-t${token}`],
  ])('a token on the command line is refused, and not repeated: %s', async (...args) => {
    const user = new User()
    const { code, out } = await user.run(['auth', ...args, '--store', store], { stdin: 'other' })
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(user.isUntouched).toBe(true)
  })
})

describe('login on a terminal', () => {
  test.each(['http://192.0.2.1', 'open'])('asks nothing where the token would not be sent: %s', async (name) => {
    const user = new User()
    user.save({ stores: { open: { address: 'http://192.0.2.1' } } })
    const typing = terminal(['auth', 'login', '--no-color', '--store', name], temporaryFolder(), { PLANTS_CONFIG_DIR: user.folder })
    const { code, screen } = await typing.ended
    expect({ code, screen }).toEqual({
      code: 2,
      screen: expect.stringMatching(/^plants: The token is not sent to http:\/\/192\.0\.2\.1: without TLS others could read it\r\n {2}Use/),
    })
    expect(screen).not.toContain('token for')
  })

  async function session(posts: Answer = accepts) {
    const folder = temporaryFolder()
    const { url } = await Hostile.listen({ posts: [posts] })
    const typing = terminal(['auth', 'login', '--store', url], folder, { PLANTS_CONFIG_DIR: join(folder, 'config') })
    await typing.see(`token for ${url}`)
    return { typing, url, file: join(folder, 'config/settings.json') }
  }

  test('asks for the token, and shows nothing of it', async () => {
    const { typing, url, file } = await session()
    typing.type('not a token\r')
    await typing.see('holds a space')
    typing.type('\x15')
    for (const character of token) typing.type(character)
    typing.type('\r')
    const { code, screen } = await typing.ended
    expect({ code, screen: stripVTControlCharacters(screen) }).toEqual({
      code: 0,
      screen: expect.stringContaining(`Saved the token for ${url}, which accepts it`),
    })
    for (const part of [token, 's3cret', 'not a token', '***', '[hidden]']) expect(screen).not.toContain(part)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ tokens: { [url]: { token } } })
  })

  test('says that the service does not accept it, and saves nothing', async () => {
    const { typing, url, file } = await session(refuses)
    typing.type(`${token}\r`)
    const { code, screen } = await typing.ended
    expect({ code, screen: stripVTControlCharacters(screen) }).toEqual({
      code: 3,
      screen: expect.stringContaining(`plants: ${url} does not accept this token: This token is not accepted`),
    })
    expect(existsSync(file)).toBe(false)
  })

  test.each(['\r', '\n', '\r\n'])('takes the first line of a paste of two, with %j between them, and shows nothing of it', async (end) => {
    const { typing, url, file } = await session()
    typing.type(`${token}${end}s3cret-second${end}`)
    const { code, screen } = await typing.ended
    expect({ code, screen }).toEqual({ code: 0, screen: expect.stringContaining(`Saved the token for ${url}`) })
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ tokens: { [url]: { token } } })
  })

  test.each(['\r\r', '\r\n\r\n', ' \r  \r'])('takes a paste that has only blanks behind its first line: %j', async (end) => {
    const { typing, url } = await session()
    typing.type(`${token}${end}`)
    const { code, screen } = await typing.ended
    expect({ code, screen }).toEqual({ code: 0, screen: expect.stringContaining(`Saved the token for ${url}`) })
  })

  test('takes a paste as long as a token may be', async () => {
    const { typing, url } = await session()
    typing.type('s3cretOiJSUzI1NiJ9.'.padEnd(2000, 'x'))
    typing.type('\r')
    await Promise.race([typing.ended, typing.see('longer than')])
    typing.type('\x03')
    const { code, screen } = await typing.ended
    expect({ code, screen }).toEqual({ code: 0, screen: expect.stringContaining(`Saved the token for ${url}`) })
  })

  test.each([
    ['Ctrl-C behind a token', 's3cret\x03'],
    ['Ctrl-D', '\x04'],
  ])('%s leaves with 130, and nothing is saved', async (_, keys) => {
    const { typing, file } = await session()
    typing.type(keys)
    expect((await typing.ended).code).toBe(130)
    expect(existsSync(file)).toBe(false)
  })

  test('Ctrl-C while the service does not answer leaves with 130, and nothing is saved', async () => {
    const folder = temporaryFolder()
    const remote = await Hostile.listen({ posts: [() => undefined] })
    const typing = terminal(['auth', 'login', '--store', remote.url], folder, { PLANTS_CONFIG_DIR: join(folder, 'config') })
    await typing.see('token for')
    const asked = once(remote, 'request')
    typing.type(`${token}\r`)
    await asked
    typing.type('\x03')
    expect((await typing.ended).code).toBe(130)
    expect(existsSync(join(folder, 'config'))).toBe(false)
  })
})

describe('status of the store that is named', () => {
  test('ends with 3 when there is no token', async () => {
    expect(await new User().auth('status')).toEqual({ ...noToken, out: lines(status(store, 'none')) })
    expect(await new User().auth('status --output text')).toEqual({
      code: 3,
      out: `${store}: no token\n`,
      err: `plants: There is no token for ${store}\n  Set PLANTS_TOKEN, or save one with: plants auth login --store ${store}\n`,
    })
  })

  test('tells when a token was saved, but not which', async () => {
    const user = new User()
    user.save({ tokens: { [store]: { token, savedAt: when } } })
    expect(await user.auth('status')).toEqual(answer(status(store, 'file', { savedAt: when })))
    expect(await user.auth('status --output text')).toEqual({
      code: 0,
      out: `${store}: saved on ${when.slice(0, 16)}Z in ${user.file}\n`,
      err: '',
    })
  })

  test('tells that PLANTS_TOKEN wins', async () => {
    const user = new User()
    user.save({ tokens: { [store]: { token, savedAt: when } } })
    const world = { env: { PLANTS_TOKEN: ` ${token}\n` } }
    expect(await user.auth('status', world)).toEqual(answer(status(store, 'variable')))
    expect(await user.auth('status --output text', world)).toEqual({ code: 0, out: `${store}: from PLANTS_TOKEN\n`, err: '' })
    expect(await user.auth('status', { env: { PLANTS_TOKEN: ' ' } })).toEqual(answer(status(store, 'file', { savedAt: when })))
  })

  test('refuses a PLANTS_TOKEN that is none, without repeating it', async () => {
    const message = 'PLANTS_TOKEN holds a space, a line break or another character that no token has: they have letters, digits and -._~+/='
    expect(await new User().auth('status', { env: { PLANTS_TOKEN: 's3cret s3cret' } })).toEqual(
      failure(2, 400, message, 'Copy the token again, and nothing else with it'),
    )
  })

  test('tells until when a token of a command is valid', async () => {
    const user = new User()
    const expires = '2999-01-02T03:04:05.000Z'
    const command = `echo {"token":"${token}","expires":"${expires}"}`
    user.save({ stores: { team: { address: `${store}/v1`, 'token-command': command } } })
    const env = { PATH: process.env['PATH'] ?? '' }
    expect(await user.auth('status --store team', { env })).toEqual(
      answer({ store: 'team', address: `${store}/v1`, source: 'command', expires }),
    )
    expect(await user.auth('status --store team --output text', { env })).toEqual({
      code: 0,
      out: `team (${store}/v1): from its token command, valid until ${expires}\n`,
      err: '',
    })
    expect(await user.auth(`status --store ${store}/v1`, { env })).toMatchObject({ code: 3, out: lines(status(`${store}/v1`, 'none')) })
  })
})

describe('status of all stores', () => {
  const stores = {
    garden: { address: '/srv/garden.db' },
    team: { address: 'https://team.example.com/v1' },
    work: { address: 'https://work.example.com', 'token-command': 'false' },
    same: { address: 'HTTPS://TEAM.example.com:443/v1/' },
    bare: { address: 'https://bare.example.com' },
  }
  const tokens = {
    'https://team.example.com/v1': { token, savedAt: when },
    'https://gone.example.com': { token, savedAt: when },
  }
  const team = { store: 'team', address: 'https://team.example.com/v1', source: 'file', savedAt: when }
  const others = [
    { store: 'work', address: 'https://work.example.com', source: 'command' },
    { ...team, store: 'same' },
    { store: 'bare', address: 'https://bare.example.com', source: 'none' },
    { store: 'https://gone.example.com', address: 'https://gone.example.com', source: 'file', savedAt: when },
  ]
  const byName = (a: { store: string }, b: { store: string }) => (a.store < b.store ? -1 : 1)
  const run = async (user: User, env: Record<string, string> = {}, ...args: string[]) => {
    const { code, out, err } = read(await user.run(['auth', 'status', '--output', 'json', ...args], { env }))
    return { code, out: (out as { store: string }[]).toSorted(byName), err }
  }

  test('is of those with a name, of the addresses with a token, and runs no command', async () => {
    const user = new User()
    user.save({ stores, tokens })
    expect(await run(user)).toEqual({ code: 0, out: [team, ...others].toSorted(byName), err: [] })
  })

  test('is also of the store of this run, and PLANTS_TOKEN counts for no other', async () => {
    const user = new User()
    user.save({ stores, tokens })
    const env = { PLANTS_TOKEN: token }
    const named = { PLANTS_STORE: 'team', ...env }
    expect(await run(user, named)).toEqual({
      code: 0,
      out: [{ store: 'team', address: team.address, source: 'variable' }, ...others].toSorted(byName),
      err: [],
    })
    const nameless = { PLANTS_STORE: 'https://new.example.com', ...env }
    expect(await run(user, nameless)).toEqual({
      code: 0,
      out: [status('https://new.example.com', 'variable'), team, ...others].toSorted(byName),
      err: [],
    })
    expect(await run(user, env)).toEqual({ code: 0, out: [team, ...others].toSorted(byName), err: [] })
  })

  test('ends with 3 when the store of this run is remote and has none, whatever others have', async () => {
    const user = new User()
    user.save({ stores, tokens, store: 'bare' })
    expect(await run(user)).toEqual({
      code: 3,
      out: [team, ...others].toSorted(byName),
      err: [
        {
          error: 401,
          message: 'There is no token for https://bare.example.com',
          hint: 'Set PLANTS_TOKEN, or save one with: plants auth login',
        },
      ],
    })
    user.save({ stores, tokens, store: 'team' })
    expect((await run(user)).code).toBe(0)
  })

  test('shows the others also when the command of the store of this run fails, and ends with 3', async () => {
    const user = new User()
    user.save({ stores, tokens, store: 'work' })
    const { code, out } = await run(user, { PATH: process.env['PATH'] ?? '' })
    expect({ code, stores: out.map((line) => line.store) }).toEqual({ code: 3, stores: expect.arrayContaining(['team', 'bare']) })
  })

  test.each([
    ['nothing is saved', {}, 'https://plants.example.com'],
    ['no store has a token', { stores: { bare: stores.bare, garden: stores.garden } }, 'bare'],
  ])('ends with 3 when the store of this run is a file and %s', async (_, fields, store) => {
    const user = new User()
    user.save(fields)
    const { code, err } = await run(user)
    const hint = `Save one with: plants auth login --store ${store}`
    expect({ code, err }).toEqual({ code: 3, err: [{ error: 401, message: 'No store has a token', hint }] })
  })

  test('ends with 3 for PLANTS_TOKEN alone, which is for no file', async () => {
    const user = new User()
    expect((await run(user, { PLANTS_TOKEN: token })).code).toBe(3)
  })

  test('tells of a store whose settings are wrong, and shows all others', async () => {
    const user = new User()
    const wrong = {
      password: { address: 'https://me:hunter2@x.example' },
      nowhere: { address: 'nowhere' },
      later: { address: 'ftp://x.example' },
      slow: { address: 'https://slow.example.com', timeout: 'soon' },
      quoted: { address: 'https://quoted.example.com', 'token-command': "sh -c 'echo s3cret'" },
    }
    user.save({ stores: { ...wrong, ...stores }, tokens })
    const { code, out, err } = await run(user)
    expect({ code, out }).toEqual({ code: 0, out: [team, ...others].toSorted(byName) })
    const told = Object.keys(wrong).map((name) => ({ warning: expect.stringMatching(RegExp(`^stores\\.${name}\\.[\\w-]+ in `)) }))
    expect(err).toEqual(told)
    expect(JSON.stringify(err)).not.toMatch(/hunter2|s3cret/)
    const text = await user.run(['auth', 'status', '--output', 'text'])
    expect({ code: text.code, lines: text.out.trimEnd().split('\n').length }).toEqual({ code: 0, lines: 5 })
    expect(text.err.match(/^plants: stores\./gm)).toHaveLength(5)
  })

  test('shows no token that stands where an address should, and counts it for none', async () => {
    const user = new User()
    const misplaced = { 's3cret-as-a-key': { token: 'https://x.example', savedAt: when }, 's3cret/key': { token: 'x', savedAt: when } }
    user.save({ tokens: misplaced })
    for (const output of ['text', 'json']) {
      const { code, out, err } = await user.run(['auth', 'status', '--output', output])
      expect({ code, out, err }).toEqual({ code: 3, out: '', err: expect.stringContaining('No store has a token') })
    }
    user.save({ tokens: { ...misplaced, ...tokens } })
    expect((await user.run(['auth', 'status'], { terminals: ['stdout', 'stderr'] })).out.trimEnd().split('\n')).toHaveLength(2)
  })

  test('shows no token that stands in an address that a token was saved for', async () => {
    const user = new User()
    const entry = { token, savedAt: when }
    user.save({ tokens: { ...tokens, 'https://me:s3cret@x.example': entry, 'https:s3cret': entry } })
    for (const output of ['text', 'json']) expect((await user.run(['auth', 'status', '--output', output])).code).toBe(0)
  })

  test('of 2000 stores that are broken needs little memory', async () => {
    const user = new User()
    const many = Array.from({ length: 2000 }, (_, index) => [`store-${index}`, { address: `ftp://plants-${index}.example.com` }])
    user.save({ stores: Object.fromEntries(many), tokens })
    const env = { PLANTS_CONFIG_DIR: user.folder, NODE_OPTIONS: '--max-old-space-size=96' }
    const { code, out, err } = await plants(['auth', 'status'], temporaryFolder(), { env })
    expect({ code, lines: out.trimEnd().split('\n').length, told: err.match(/^plants: stores\./gm)?.length }).toEqual({
      ...{ code: 0, lines: 2, told: 2000 },
    })
  })

  test('of 2000 stores needs little memory, and so does doctor', async () => {
    const user = new User()
    const address = (index: number) => `https://plants-${index}.example.com/v1`
    const indices = Array.from({ length: 2000 }, (_, index) => index)
    const many = Object.fromEntries(indices.map((index) => [`store-${index}`, { address: address(index) }]))
    const entries = Object.fromEntries(indices.map((index) => [address(index + 1000), { token, savedAt: when }]))
    const counts = []
    for (const [command, fields] of [
      ['auth status', { stores: many, tokens: entries }],
      ['doctor', { stores: many }],
    ] as const) {
      user.save(fields)
      const env = { PLANTS_CONFIG_DIR: user.folder, NODE_OPTIONS: '--max-old-space-size=96' }
      const { code, out } = await plants(command.split(' '), temporaryFolder(), { env })
      counts.push([command, code, out.match(/^\{.*\}$/gm)?.length])
    }
    const besides = ['runtime', 'sqlite', 'settings', 'local', 'proxy', 'terminal']
    expect(counts).toEqual([
      ['auth status', 0, 3000],
      ['doctor', 0, 2000 + besides.length],
    ])
  })

  test('is of one store when that is named', async () => {
    const user = new User()
    user.save({ stores, tokens })
    expect(await run(user, {}, '--store', 'team')).toEqual({ code: 0, out: [team], err: [] })
    expect(await run(user, {}, '--store', 'same')).toEqual({ code: 0, out: [{ ...team, store: 'same' }], err: [] })
  })

  test('is a sentence a store for people', async () => {
    const user = new User()
    user.save({ stores: { team: stores.team, bare: stores.bare }, tokens })
    const { code, out, err } = await user.run(['auth', 'status', '--output', 'text'])
    expect({ code, out: out.split('\n').toSorted(), err }).toEqual({
      code: 0,
      out: [
        '',
        'bare (https://bare.example.com): no token',
        `https://gone.example.com: saved on 2026-01-02T03:04Z in ${user.file}`,
        `team (https://team.example.com/v1): saved on 2026-01-02T03:04Z in ${user.file}`,
      ],
      err: '',
    })
  })
})

describe('token', () => {
  test('is printed for other programs, from wherever it is', async () => {
    const user = new User()
    user.save({ tokens: { [store]: { token, savedAt: when } }, stores: { team: { address: store, 'token-command': 'echo s3cret-made' } } })
    expect(await user.run(['auth', 'token', '--store', store])).toEqual({ code: 0, out: `${token}\n`, err: '' })
    expect(await user.auth('token')).toEqual(answer({ token, source: 'file', savedAt: when }))
    const env = { PLANTS_TOKEN: 's3cret-of-env' }
    expect(await user.run(['auth', 'token', '--store', store], { env })).toEqual({ code: 0, out: 's3cret-of-env\n', err: '' })
    expect(await user.auth('token', { env })).toEqual(answer({ token: 's3cret-of-env', source: 'variable' }))
    const path = { PATH: process.env['PATH'] ?? '' }
    expect(await user.auth('token --store team', { env: path })).toEqual(answer({ token: 's3cret-made', source: 'command' }))
    expect(await user.auth('token --store team', { env })).toEqual(answer({ token: 's3cret-of-env', source: 'variable' }))
  })

  test('ends with 3 when there is none', async () => {
    expect(await new User().auth('token')).toEqual(noToken)
  })
})

describe('logout', () => {
  test('removes the token of this address alone, and says when there was none', async () => {
    const user = new User()
    const other = { 'https://other.example.com': { token: 'other', savedAt: when } }
    user.save({ tokens: { [store]: { token, savedAt: when }, ...other }, colour: 'green' })
    expect(await user.auth('logout')).toEqual(answer({ store, address: store, removed: true }))
    expect(user.saved).toEqual({ version: 1, tokens: other, colour: 'green' })
    expect((await user.auth('status')).code).toBe(3)
    expect(await user.auth('logout')).toEqual(answer({ store, address: store, removed: false }))
    expect((await user.auth('status --store https://other.example.com')).code).toBe(0)
    expect(readdirSync(user.folder).toSorted()).toEqual(['settings.json', 'settings.json.lock'])
  })

  test('of a name removes that of its address', async () => {
    const user = new User()
    user.save({ tokens: { [store]: { token, savedAt: when } }, stores: { team: { address: `${store}/` } } })
    expect(await user.auth('logout --store team')).toEqual(answer({ store: 'team', address: store, removed: true }))
    expect(await user.auth('logout --store team --output text')).toEqual({
      code: 0,
      out: `There was no saved token for team (${store})\n`,
      err: '',
    })
  })

  test('makes nothing where nothing was saved, and says where a token still comes from', async () => {
    const user = new User()
    expect(await user.auth('logout --output text', { env: { PLANTS_TOKEN: token } })).toEqual({
      code: 0,
      out: `There was no saved token for ${store}\n`,
      err: 'plants: PLANTS_TOKEN is still set\n',
    })
    expect(user.isUntouched).toBe(true)
    user.save({ stores: { team: { address: store, 'token-command': 'false' } } })
    expect((await user.auth('logout --output text --store team')).err).toBe('plants: team still has its token command\n')
  })
})

describe('a token is sent', () => {
  const fern = ['create', '--id', '1', '--name', 'Fern', '--store']

  test('from PLANTS_TOKEN, when it is set, whatever is saved', async () => {
    const user = new User()
    const remote = await Hostile.listen({ posts: [json(200, { name: 'Fern' })] })
    user.save({ tokens: { [remote.url]: { token, savedAt: when } } })
    expect((await user.run([...fern, remote.url], { env: { PLANTS_TOKEN: 's3cret-of-env' } })).code).toBe(0)
    expect(remote.posts.map(({ headers }) => headers['authorization'])).toEqual(['Bearer s3cret-of-env'])
  })

  test('only when it can be one: what was saved is held against the rules again', async () => {
    const user = new User()
    const remote = await Hostile.listen({ posts: [json(200, { name: 'Fern' })] })
    user.save({ tokens: { [remote.url]: { token: 's3cret\r\nX: b', savedAt: when } } })
    const { code, err } = await user.run([...fern, remote.url])
    expect({ code, err, connections: remote.connections }).toEqual({
      code: 2,
      err: expect.stringMatching(/^plants: The saved token holds a space, a line break/),
      connections: 0,
    })
  })
})

function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8)
}

describe('a settings file that is broken', () => {
  test.each<[string, string | Uint8Array, RegExp]>([
    ['empty', '', /are empty$/],
    ['cut off', `{"version":1,"tokens":{"${store}":{"token":"${token}`, /are not JSON: .*line 1/],
    ['no text', Buffer.from([0xff, 0xfe, 0]), /are not UTF-8$/],
    ['null', 'null', /the whole must be an object$/],
    ['an array', '[]', /the whole must be an object$/],
    ['without a version', '{"tokens":{}}', /version must be 1$/],
    ['of a later version', `{"version":2,"tokens":{"${store}":"${token}"}}`, /written by a newer plants \(version 2\)$/],
    ['with a token alone', `{"version":1,"tokens":{"${store}":"${token}"}}`, /tokens\.https:\/\/plants\.example\.com must be an object$/],
    ['with tokens in an array', `{"version":1,"tokens":["${token}"]}`, /tokens must be an object$/],
    [
      'with a token that is no text',
      `{"version":1,"tokens":{"${store}":{"token":["${token}"],"savedAt":"${when}"}}}`,
      /tokens\.https:\/\/plants\.example\.com\.token must be a text$/,
    ],
  ])('is named, and left as it is: %s', async (_, text, why) => {
    const user = new User()
    user.write(text)
    for (const command of ['status', 'logout', 'token', 'login --with-token', 'status --verbose']) {
      const { code, out, err } = read(await user.auth(command, { stdin: 's3cret-another' }))
      expect({ command, code, out, err }).toEqual({
        ...{ command, code: 2, out: [] },
        err: [{ error: 400, message: expect.stringMatching(why), hint: expect.any(String) }],
      })
      expect(err).toEqual([expect.objectContaining({ message: expect.stringContaining(`The settings in ${user.file} `) })])
    }
    expect((await user.run(['create', '--id', '1', '--name', 'Fern', '--store', store])).code).toBe(2)
    expect(readFileSync(user.file)).toEqual(Buffer.from(text))
    expect(readdirSync(user.folder)).toEqual(['settings.json'])
  })

  test('is refused also when PLANTS_TOKEN is set', async () => {
    const user = new User()
    user.write('{')
    expect((await user.auth('status', { env: { PLANTS_TOKEN: token } })).code).toBe(2)
  })

  test('that is a folder is named', async () => {
    const user = new User()
    mkdirSync(user.file, { recursive: true })
    expect(read(await user.auth('status'))).toMatchObject({ code: 2, err: [{ message: `The settings in ${user.file} are a folder` }] })
  })
})

describe('a folder in which nothing can be saved', () => {
  const hint = 'Choose another folder with PLANTS_CONFIG_DIR, or use flags and variables instead'
  const message = (folder: string, why: string) => `The settings in ${folder}/settings.json could not be changed: ${why}`

  test('because a file is in its place, is named', async () => {
    const { url } = await accepting()
    const folder = join(temporaryFolder(), 'file')
    writeFileSync(folder, 'mine')
    for (const place of [folder, '/dev/null/plants']) {
      const result = await new User().auth(`login --with-token --store ${url}`, { stdin: token, env: { PLANTS_CONFIG_DIR: place } })
      expect(result).toEqual(failure(74, 500, message(place, 'what should be their folder is none'), hint))
    }
    expect(readFileSync(folder, 'utf8')).toBe('mine')
  })

  test.skipIf(isRoot)('because it is read-only, is named (needs a user that is not root)', async () => {
    const user = new User()
    const { url } = await accepting()
    user.save({})
    chmodSync(user.folder, 0o500)
    const result = await user.login(url)
    chmodSync(user.folder, 0o700)
    expect(result).toEqual(failure(74, 500, message(user.folder, 'permission denied'), hint))
    expect(user.saved).toEqual({ version: 1 })
  })

  test('because the file is read-only, is named', async () => {
    const user = new User()
    const { url } = await accepting()
    user.save({})
    chmodSync(user.file, 0o400)
    const mend = `Make the file writable: chmod u+w ${user.file}`
    expect(await user.login(url)).toEqual(failure(74, 500, message(user.folder, 'the file is read-only'), mend))
  })
})

describe('without a home', () => {
  const env = { HOME: '', PLANTS_TOKEN: '' }

  test('nothing can be saved, and the message says how to give a place; nothing is saved there either', async () => {
    const folder = temporaryFolder()
    const { url } = await accepting()
    const run = async (...args: string[]) => {
      const { code, out, err } = await plants(['auth', ...args, '--store', url, '--output', 'json'], folder, {
        env,
        cwd: folder,
        input: token,
      })
      return read({ code: code ?? -1, out, err }, url)
    }
    expect(await run('login', '--with-token')).toEqual({
      ...{ code: 2, out: [] },
      err: [
        {
          error: 400,
          message: expect.stringMatching(/^There is no absolute path for the settings/),
          hint: 'Set HOME and XDG_CONFIG_HOME to absolute paths, or set PLANTS_CONFIG_DIR',
        },
      ],
    })
    expect(await run('status')).toMatchObject({ code: 3, out: [{ source: 'none' }], err: [{ message: 'There is no token for URL' }] })
    expect(await run('token')).toMatchObject({ code: 3, err: [{ message: 'There is no token for URL' }] })
    expect(await run('logout')).toEqual({ code: 0, out: [{ store: 'URL', address: 'URL', removed: false }], err: [] })
    expect(readdirSync(folder)).toEqual([])
  })

  test('PLANTS_TOKEN is enough where nothing is to be saved, and so is PLANTS_CONFIG_DIR', async () => {
    const folder = temporaryFolder()
    const args = ['auth', 'status', '--store', store]
    expect((await plants(args, folder, { env: { ...env, PLANTS_TOKEN: token }, cwd: folder })).code).toBe(0)
    expect((await plants(args, folder, { env: { ...env, PLANTS_CONFIG_DIR: folder }, cwd: folder })).code).toBe(3)
    expect(readdirSync(folder)).toEqual([])
  })

  test('settings are in XDG_CONFIG_HOME where that is set, and nowhere else', async () => {
    const folder = temporaryFolder()
    const { url } = await accepting()
    const config = join(folder, 'xdg')
    const options = { env: { ...env, XDG_CONFIG_HOME: config }, input: token }
    expect((await plants(['auth', 'login', '--with-token', '--store', url], folder, options)).code).toBe(0)
    expect(readdirSync(folder)).toEqual(['xdg'])
    expect(['.', 'plants', 'plants/settings.json'].map((path) => modeOf(join(config, path)))).toEqual(['700', '700', '600'])
  })
})
