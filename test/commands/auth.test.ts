import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { Hostile, json } from '../helpers/hostile.js'
import { plants } from '../helpers/process.js'
import { type Result, runPlants, type World } from '../helpers/run.js'
import { temporaryFolder } from '../helpers/temporary.js'
import { terminal } from '../helpers/terminal.js'

const store = 'https://plants.example.com'
const token = 'plants_s3cret-Token~+/='
const when = '2026-01-02T03:04:05.678Z'
const isRoot = process.getuid?.() === 0

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

  async login(text: string | Uint8Array = token, address = store): Promise<Result> {
    return this.auth(`login --with-token --store ${address}`, { stdin: text })
  }

  write(text: string | Uint8Array): void {
    mkdirSync(this.folder, { recursive: true })
    writeFileSync(this.file, text)
  }

  get saved(): unknown {
    return existsSync(this.file) ? JSON.parse(readFileSync(this.file, 'utf8')) : undefined
  }
}

function answer(fields: Record<string, unknown>): Result {
  return { code: 0, out: `${JSON.stringify(fields)}\n`, err: '' }
}

function failure(code: number, error: number, message: string, hint: string): Result {
  return { code, out: '', err: `${JSON.stringify({ error, message, hint })}\n` }
}

const saved = { store, source: 'saved', savedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) }
const noToken = failure(3, 401, `There is no token for ${store}`, `Set PLANTS_TOKEN, or save one with: plants auth login --store ${store}`)

describe('login --with-token', () => {
  test.each<[string, string]>([
    ['alone', token],
    ['before a line feed', `${token}\n`],
    ['before CR LF', `${token}\r\n`],
    ['between spaces and empty lines', `\n  ${token}\t\r\n\r\n`],
    ['behind a byte order mark', `\ufeff${token}\n`],
  ])('saves a token that stands %s, for its owner alone', async (_, text) => {
    const user = new User()
    const { code, out, err } = await user.login(text)
    expect({ code, out: JSON.parse(out), err }).toEqual({ code: 0, out: saved, err: '' })
    expect(user.saved).toEqual({ version: 1, tokens: { [store]: { token, savedAt: JSON.parse(out).savedAt } } })
    expect(readdirSync(user.folder)).toEqual(['settings.json'])
    expect([join(user.folder, '..'), user.folder, user.file].map((path) => (statSync(path).mode & 0o777).toString(8))).toEqual([
      '700',
      '700',
      '600',
    ])
  })

  test('saves the longest token', async () => {
    const user = new User()
    expect((await user.login(`${'x'.repeat(4096)}\n`)).code).toBe(0)
    expect(user.saved).toMatchObject({ tokens: { [store]: { token: 'x'.repeat(4096) } } })
  })

  const notOne = 'The token on stdin holds a space, a line break or another character that no token has'

  test.each<[string, string | Uint8Array | undefined, string]>([
    ['nothing', undefined, 'The token on stdin is empty'],
    ['an empty text', '', 'The token on stdin is empty'],
    ['spaces', ' \r\n\t', 'The token on stdin is empty'],
    ['a space in it', 'sec ret', notOne],
    ['a header', 'Bearer secret', notOne],
    ['two lines', 'secret\nsecret', notOne],
    ['U+0000', 'sec\0ret', notOne],
    ['a colour', '\u001b[31msecret', notOne],
    ['letters with accents', 's\u00e9cret', notOne],
    ['too many characters', 'secret'.repeat(683), 'The token on stdin is longer than 4096 characters'],
    ['far too many characters', 'secret'.repeat(500_000), 'What is on stdin is too long for a token'],
    ['bytes that are no text', Buffer.from('secret\xff\xfe', 'latin1'), 'What is on stdin is not UTF-8'],
  ])('refuses %s, and saves nothing', async (_, stdin, message) => {
    const user = new User()
    const result = await user.auth('login --with-token', stdin === undefined ? {} : { stdin })
    expect(result).toEqual(failure(2, 400, message, 'Copy the token again, and nothing else with it'))
    expect(existsSync(user.folder)).toBe(false)
  })

  test('replaces the token of this address, and keeps those of others and what it does not know', async () => {
    const user = new User()
    const other = { token: 'other', savedAt: when, more: 1 }
    user.write(
      JSON.stringify({
        version: 1,
        tokens: { [store]: { token: 'old', savedAt: when }, 'https://other.example.com': other },
        colour: 'green',
      }),
    )
    chmodSync(user.file, 0o644)
    await user.login()
    expect(user.saved).toEqual({
      version: 1,
      tokens: { [store]: { token, savedAt: expect.not.stringMatching(when) }, 'https://other.example.com': other },
      colour: 'green',
    })
    expect((statSync(user.file).mode & 0o777).toString(8)).toBe('600')
  })

  test('keeps what several save, one after the other', async () => {
    const user = new User()
    const addresses = [
      'https://a.example.com',
      'https://a.example.com/v1',
      'http://a.example.com',
      'https://a.example.com:444',
      'unix:/a.sock',
    ]
    for (const address of addresses) expect((await user.login(`token-of-${address}`, address)).code).toBe(0)
    const { tokens } = user.saved as { tokens: Record<string, { token: string }> }
    expect(Object.entries(tokens).map(([address, { token }]) => [address, token])).toEqual(
      addresses.map((address) => [address, `token-of-${address}`]),
    )
  })

  test('writes to where a link leads, and leaves the link', async () => {
    const user = new User()
    const target = join(temporaryFolder(), 'mine.json')
    writeFileSync(target, '{"version":1,"tokens":{}}')
    mkdirSync(user.folder, { recursive: true })
    symlinkSync(target, user.file)
    expect((await user.login()).code).toBe(0)
    expect(lstatSync(user.file).isSymbolicLink()).toBe(true)
    expect(JSON.parse(readFileSync(target, 'utf8'))).toMatchObject({ tokens: { [store]: { token } } })
    expect((statSync(target).mode & 0o777).toString(8)).toBe('600')
  })

  test('says that PLANTS_TOKEN goes on winning', async () => {
    const user = new User()
    const { code, out } = await user.auth('login --with-token --output text', { stdin: token, env: { PLANTS_TOKEN: 'from-env' } })
    expect(user.saved).toMatchObject({ tokens: { [store]: { token } } })
    expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/^Saved the token for .*PLANTS_TOKEN is (still )?set/) })
  })

  test('asks nobody where nobody is', async () => {
    const user = new User()
    for (const world of [{ stdin: token }, { terminals: ['stdin' as const, 'stdout' as const] }]) {
      expect(await user.auth('login', world)).toEqual(
        failure(2, 400, 'Nobody can be asked for the token', 'Read it from stdin: plants auth login --with-token < FILE'),
      )
    }
    const everywhere: World = { terminals: ['stdin', 'stdout', 'stderr'] }
    expect((await user.auth('login --no-input', everywhere)).code).toBe(2)
    expect(existsSync(user.folder)).toBe(false)
  })

  test.each([['login'], ['logout'], ['status']])('%s is for a service, not for a file', async (verb) => {
    const user = new User()
    const { code, err } = await user.auth(`${verb} --store /srv/garden.db`)
    expect({ code, ...JSON.parse(err) }).toEqual({
      code: 2,
      error: 400,
      message: '/srv/garden.db is a file, which takes no token',
      hint: 'Name the service: --store https://plants.example.com',
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
    const { code, out, err } = await user.run(['auth', ...args, '--store', store], { stdin: 'other' })
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).not.toContain(token)
    expect(existsSync(user.folder)).toBe(false)
  })
})

describe('login on a terminal', () => {
  test('asks for the token, and shows nothing of it', async () => {
    const folder = temporaryFolder()
    const session = terminal(['auth', 'login', '--store', store], folder, { PLANTS_CONFIG_DIR: join(folder, 'config') })
    await session.see(`token for ${store}`)
    session.type('not a token\r')
    await session.see('holds a space')
    session.type('\x15')
    for (const character of token) session.type(character)
    session.type('\r')
    const { code, screen } = await session.ended
    expect(code).toBe(0)
    expect(stripVTControlCharacters(screen)).toContain(`Saved the token for ${store}, saved on 20`)
    for (const part of [token, 's3cret', 'not a token', '***', '[hidden]']) expect(screen).not.toContain(part)
    const file = readFileSync(join(folder, 'config/settings.json'), 'utf8')
    expect(JSON.parse(file)).toMatchObject({ tokens: { [store]: { token } } })
  })

  test('takes a paste as long as a token may be', async () => {
    const folder = temporaryFolder()
    const session = terminal(['auth', 'login', '--store', store], folder, { PLANTS_CONFIG_DIR: join(folder, 'config') })
    const long = 'eyJhbGciOiJSUzI1NiJ9.'.padEnd(2000, 'x')
    await session.see('token for')
    session.type(long)
    session.type('\r')
    await Promise.race([session.ended, session.see('longer than')])
    session.type('\x03')
    const { code, screen } = await session.ended
    expect({ code, screen }).toEqual({ code: 0, screen: expect.stringContaining('Saved the token') })
    expect(screen).not.toContain('eyJ')
  })

  test.each([
    ['Ctrl-C behind a token', 'secret\x03'],
    ['Ctrl-D', '\x04'],
  ])('%s leaves with 130, and nothing is saved', async (_, keys) => {
    const folder = temporaryFolder()
    const session = terminal(['auth', 'login', '--store', store], folder, { PLANTS_CONFIG_DIR: join(folder, 'config') })
    await session.see('token for')
    session.type(keys)
    const { code, screen } = await session.ended
    expect(code).toBe(130)
    expect(screen).not.toContain('secret')
    expect(existsSync(join(folder, 'config'))).toBe(false)
  })
})

describe('status', () => {
  test('ends with 3 when there is no token', async () => {
    expect(await new User().auth('status')).toEqual(noToken)
  })

  test('tells when a token was saved, but not which', async () => {
    const user = new User()
    user.write(JSON.stringify({ version: 1, tokens: { [store]: { token, savedAt: when } } }))
    expect(await user.auth('status')).toEqual(answer({ store, source: 'saved', savedAt: when }))
    expect(await user.auth('status --output text')).toEqual({
      code: 0,
      out: `There is a token for ${store}, saved on ${when.slice(0, 16)}Z\n`,
      err: '',
    })
  })

  test('tells that PLANTS_TOKEN wins', async () => {
    const user = new User()
    await user.login()
    const world = { env: { PLANTS_TOKEN: ` ${token}\n` } }
    expect(await user.auth('status', world)).toEqual(answer({ store, source: 'PLANTS_TOKEN' }))
    expect(await user.auth('status --output text', world)).toEqual({
      code: 0,
      out: `There is a token for ${store}, from PLANTS_TOKEN\n`,
      err: '',
    })
    expect(await user.auth('status', { env: { PLANTS_TOKEN: ' ' } })).toMatchObject({ code: 0, out: expect.stringContaining('"saved"') })
  })

  test('refuses a PLANTS_TOKEN that is none, without repeating it', async () => {
    const message = 'PLANTS_TOKEN holds a space, a line break or another character that no token has'
    expect(await new User().auth('status', { env: { PLANTS_TOKEN: 'sec ret' } })).toEqual(
      failure(2, 400, message, 'Copy the token again, and nothing else with it'),
    )
  })
})

describe('logout', () => {
  test('removes the token of this address alone, and says when there was none', async () => {
    const user = new User()
    await user.login()
    await user.login('other', 'https://other.example.com')
    expect(await user.auth('logout')).toEqual(answer({ store, removed: true }))
    expect(await user.auth('status')).toEqual(noToken)
    expect(readFileSync(user.file, 'utf8')).not.toContain(token)
    expect(await user.auth('logout')).toEqual(answer({ store, removed: false }))
    expect((await user.auth('status --store https://other.example.com')).code).toBe(0)
    expect(readdirSync(user.folder)).toEqual(['settings.json'])
  })

  test('makes nothing where nothing was saved, and says when PLANTS_TOKEN is still set', async () => {
    const user = new User()
    const { code, out } = await user.auth('logout --output text', { env: { PLANTS_TOKEN: token } })
    expect({ code, out }).toEqual({ code: 0, out: `There was no saved token for ${store}. PLANTS_TOKEN is still set\n` })
    expect(existsSync(user.folder)).toBe(false)
  })
})

describe('a token is sent', () => {
  const fern = ['create', '--id', '1', '--name', 'Fern', '--store']
  const posts = [json(200, { name: 'Fern' })]

  test('to exactly the address that it was saved for', async () => {
    const user = new User()
    const remote = await Hostile.listen({ posts })
    const other = await Hostile.listen({ posts })
    await user.login(token, `${remote.url.toUpperCase()}/v1/`)
    expect((await user.run([...fern, `${remote.url}/v1`])).code).toBe(0)
    expect((await user.run([...fern, `${remote.url}/v1//`])).code).toBe(0)
    expect(remote.posts.map(({ headers }) => headers['authorization'])).toEqual([`Bearer ${token}`, `Bearer ${token}`])
    const { url, port } = remote
    const others = ['', '/', '/v2', '/v1/x', '/V1'].map((path) => `${url}${path}`)
    for (const address of [...others, `${other.url}/v1`, `https://127.0.0.1:${port}/v1`, `http://localhost:${port}/v1`, 'unix:/v1']) {
      expect({ address, code: (await user.run([...fern, address])).code }).toEqual({ address, code: 3 })
    }
    expect([remote.connections, other.connections]).toEqual([2, 0])
  })

  test('from PLANTS_TOKEN, when it is set, whatever is saved', async () => {
    const user = new User()
    const remote = await Hostile.listen({ posts })
    await user.login(token, remote.url)
    expect((await user.run([...fern, remote.url], { env: { PLANTS_TOKEN: 'from-env' } })).code).toBe(0)
    expect(remote.posts.map(({ headers }) => headers['authorization'])).toEqual(['Bearer from-env'])
  })

  test('only when it can be one: what was saved is held against the rules again', async () => {
    const user = new User()
    const remote = await Hostile.listen({ posts })
    user.write(JSON.stringify({ version: 1, tokens: { [remote.url]: { token: 'a\r\nX: b', savedAt: when } } }))
    const { code, err } = await user.run([...fern, remote.url])
    expect({ code, err, connections: remote.connections }).toEqual({
      code: 2,
      err: expect.stringMatching(/^plants: The saved token holds a space, a line break/),
      connections: 0,
    })
  })
})

describe('a settings file that is broken', () => {
  const notJson = (file: string) => failure(2, 400, `The settings in ${file} are not JSON`, 'Mend the file, or move it away')
  const otherShape = (file: string) =>
    failure(
      2,
      400,
      `The settings in ${file} are not as plants saved them`,
      'Mend the file, move it away, or update plants if a newer version wrote it',
    )

  test.each<[string, string | Uint8Array, (file: string) => Result]>([
    ['empty', '', notJson],
    ['cut off', `{"version":1,"tokens":{"${store}":{"token":"${token}`, notJson],
    ['no text', Buffer.from([0xff, 0xfe, 0]), notJson],
    ['null', 'null', otherShape],
    ['an array', '[]', otherShape],
    ['without a version', '{"tokens":{}}', otherShape],
    ['of a later version', `{"version":2,"tokens":{"${store}":"${token}"}}`, otherShape],
    ['without tokens', '{"version":1}', otherShape],
    ['with a token that is no text', `{"version":1,"tokens":{"${store}":{"token":["${token}"],"savedAt":"${when}"}}}`, otherShape],
  ])('is named, and left as it is: %s', async (_, text, expected) => {
    const user = new User()
    user.write(text)
    for (const command of ['status', 'logout', 'login --with-token']) {
      expect(await user.auth(command, { stdin: 'another' })).toEqual(expected(user.file))
    }
    expect(await user.run(['create', '--id', '1', '--name', 'Fern', '--store', store, '--output', 'json'])).toEqual(expected(user.file))
    expect(readFileSync(user.file)).toEqual(Buffer.from(text))
    expect(readdirSync(user.folder)).toEqual(['settings.json'])
  })

  test('is not read when PLANTS_TOKEN is set', async () => {
    const user = new User()
    user.write('{')
    expect((await user.auth('status', { env: { PLANTS_TOKEN: token } })).code).toBe(0)
  })

  test('that is a folder is named', async () => {
    const user = new User()
    mkdirSync(user.file, { recursive: true })
    const { code, err } = await user.login()
    expect({ code, ...JSON.parse(err) }).toMatchObject({ code: 2, message: `Could not read the settings in ${user.file}: EISDIR` })
  })
})

describe('a folder in which nothing can be saved', () => {
  const hint = 'Use PLANTS_TOKEN instead, or choose another folder with PLANTS_CONFIG_DIR'

  test('because a file is in its place, is named', async () => {
    const user = new User()
    const folder = join(temporaryFolder(), 'file')
    writeFileSync(folder, 'mine')
    const result = await user.auth('login --with-token', { stdin: token, env: { PLANTS_CONFIG_DIR: folder } })
    expect(result).toEqual(failure(74, 500, `The settings could not be saved in ${folder}/settings.json: ENOTDIR`, hint))
    expect(readFileSync(folder, 'utf8')).toBe('mine')
  })

  test.skipIf(isRoot)('because it is read-only, is named (needs a user that is not root)', async () => {
    const user = new User()
    await user.login('old')
    chmodSync(user.folder, 0o500)
    const { code, err } = await user.login()
    chmodSync(user.folder, 0o700)
    expect({ code, ...JSON.parse(err) }).toEqual({ code: 74, error: 500, message: expect.stringContaining(`${user.file}: EACCES`), hint })
    expect(user.saved).toMatchObject({ tokens: { [store]: { token: 'old' } } })
  })

  test('because the system makes none there, is named', async () => {
    const folder = '/dev/null/plants'
    const result = await new User().auth('login --with-token', { stdin: token, env: { PLANTS_CONFIG_DIR: folder } })
    expect(result).toEqual(failure(74, 500, `The settings could not be saved in ${folder}/settings.json: ENOTDIR`, hint))
  })
})

describe('without a home', () => {
  const env = { HOME: '', PLANTS_TOKEN: '' }

  test('there is no place for settings, and the message says how to give one', async () => {
    const folder = temporaryFolder()
    for (const args of [['status'], ['logout'], ['login', '--with-token']]) {
      const { code, out, err } = await plants(['auth', ...args, '--store', store, '--output', 'json'], folder, {
        env,
        cwd: folder,
        input: token,
      })
      expect({ code, out, ...JSON.parse(err) }).toEqual({
        code: 2,
        out: '',
        error: 400,
        message: expect.stringMatching(/^There is no absolute path for the settings/),
        hint: 'Set HOME and XDG_CONFIG_HOME to absolute paths, or set PLANTS_CONFIG_DIR',
      })
    }
    expect(readdirSync(folder)).toEqual([])
  })

  test('PLANTS_TOKEN is enough, and so is PLANTS_CONFIG_DIR', async () => {
    const folder = temporaryFolder()
    const args = ['auth', 'status', '--store', store]
    expect((await plants(args, folder, { env: { ...env, PLANTS_TOKEN: token } })).code).toBe(0)
    expect((await plants(args, folder, { env: { ...env, PLANTS_CONFIG_DIR: folder } })).code).toBe(3)
  })

  test('settings are in XDG_CONFIG_HOME where that is set, and nowhere else', async () => {
    const folder = temporaryFolder()
    const config = join(folder, 'xdg')
    const options = { env: { ...env, XDG_CONFIG_HOME: config }, input: token }
    expect((await plants(['auth', 'login', '--with-token', '--store', store], folder, options)).code).toBe(0)
    expect(readdirSync(folder)).toEqual(['xdg'])
    const mode = (path: string) => (statSync(join(config, path)).mode & 0o777).toString(8)
    expect([mode('.'), mode('plants'), mode('plants/settings.json')]).toEqual(['700', '700', '600'])
  })
})

test('the token is in no output, whatever is asked', async () => {
  const user = new User()
  const outputs: string[] = []
  const keep = ({ out, err }: Result) => outputs.push(out, err)
  const remote = await Hostile.listen({ posts: [json(400, { error: 409, message: 'Another plant has the id 1' })] })
  for (const output of ['json', 'text']) {
    keep(await user.auth(`login --with-token --store ${remote.url} --output ${output}`, { stdin: `${token}\n` }))
    keep(await user.auth(`status --store ${remote.url} --output ${output}`))
    keep(await user.auth(`status --store ${remote.url} --output ${output}`, { env: { PLANTS_TOKEN: token } }))
    keep(await user.run(['create', '--id', '1', '--name', 'Fern', '--store', remote.url, '--output', output]))
    keep(await user.run(['create', '--id', 'x', '--name', 'Fern', '--store', remote.url, '--output', output]))
    keep(await user.auth(`logout --store ${remote.url} --output ${output}`))
  }
  expect(outputs.join('')).toContain('Another plant has the id 1')
  expect(outputs.join('')).not.toContain(token)
})
