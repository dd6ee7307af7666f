import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { Hostile } from '../../helpers/hostile.js'
import { type ProcessResult, plants } from '../../helpers/process.js'
import { ownService, token } from '../../helpers/remote.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { type Terminal, terminal } from '../../helpers/terminal.js'

/** Somebody at a terminal, with a home of their own. */
class Person {
  readonly folder = temporaryFolder()
  readonly config = join(this.folder, 'config')
  readonly file = join(this.config, 'settings.json')

  session(line: string, env: Record<string, string> = {}): Terminal {
    return terminal(line.split(' '), this.folder, { PLANTS_CONFIG_DIR: this.config, ...env })
  }

  /** Runs a command that asks nothing; gives what was on the screen, line by line. */
  async at(line: string, env: Record<string, string> = {}): Promise<{ code: number; lines: string[] }> {
    const { code, screen } = await this.session(line, env).ended
    return { code, lines: linesOf(screen) }
  }

  piped(line: string, input?: string, env: Record<string, string> = {}): Promise<ProcessResult> {
    const options = { env: { PLANTS_CONFIG_DIR: this.config, ...env }, ...(input === undefined ? {} : { input }) }
    return plants(line.split(' '), this.folder, options)
  }

  /** Everything that is in the folder of the settings. */
  get kept(): string {
    const names = existsSync(this.config) ? readdirSync(this.config, { recursive: true, encoding: 'utf8' }) : []
    const files = names.map((name) => join(this.config, name)).filter((path) => statSync(path).isFile())
    return files.map((path) => readFileSync(path, 'latin1')).join('\n')
  }
}

function linesOf(screen: string): string[] {
  return stripVTControlCharacters(screen).trimEnd().split('\r\n')
}

/** Types a token where it is asked for; nothing of it may be seen. */
async function typeToken(session: Terminal, address: string, text: string): Promise<{ code: number; lines: string[] }> {
  await session.see(`token for ${address}`)
  for (const character of text) session.type(character)
  session.type('\r')
  const { code, screen } = await session.ended
  expect(screen).not.toContain(text.slice(0, 5))
  expect(screen).not.toContain('***')
  return { code, lines: linesOf(screen) }
}

function service(): Promise<string> {
  return ownService({ host: '127.0.0.1', port: 0 }, join(temporaryFolder(), 'plants.db'))
}

describe('the life of a token', () => {
  test('on a terminal', async () => {
    const address = await service()
    const person = new Person()
    const how = 'Use it with --store team, or always: plants stores use team'
    expect(await person.at(`stores add team ${address}`)).toEqual({ code: 0, lines: [`Saved team, ${address}. ${how}`] })
    expect(await person.at('stores use team')).toEqual({ code: 0, lines: [`From now on commands use team, ${address}`] })
    const none = [`plants: There is no token for ${address}`, '  Set PLANTS_TOKEN, or save one with: plants auth login']
    expect(await person.at('create --id 1 --name Fern')).toEqual({ code: 3, lines: none })

    const login = await typeToken(person.session('auth login'), address, token)
    expect({ code: login.code, last: login.lines.at(-1) }).toEqual({
      code: 0,
      last: `Saved the token for team (${address}), which accepts it`,
    })
    expect(statSync(person.file).mode & 0o777).toBe(0o600)

    expect(await person.at('create --id 1 --name Fern')).toEqual({ code: 0, lines: ['Planted Fern (id 1)'] })
    const status = await person.at('auth status')
    const saved = new RegExp(`^team \\(${address}\\): saved on \\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\dZ in ${person.file}$`)
    expect(status).toEqual({ code: 0, lines: [expect.stringMatching(saved)] })
    expect(await person.at('auth token')).toEqual({ code: 0, lines: [token] })

    expect(await person.at('auth logout')).toEqual({ code: 0, lines: [`Removed the token for team (${address})`] })
    expect(person.kept).not.toContain(token)
    expect(await person.at('create --id 2 --name Moss')).toEqual({ code: 3, lines: none })
    expect(await person.at('create')).toEqual({ code: 3, lines: none }) // before somebody answers for nothing
    expect(await person.at('auth status')).toEqual({ code: 3, lines: [`team (${address}): no token`, ...none] })
    expect(await person.at('auth logout')).toEqual({ code: 0, lines: [`There was no saved token for team (${address})`] })
    const removed = await person.at('stores remove team')
    const rest = 'Commands use the store local again'
    expect(removed).toEqual({ code: 0, lines: [`Forgot team. Its plants are still where they were, ${address}. ${rest}`] })
  })

  test('in pipes', async () => {
    const address = await service()
    const person = new Person()
    const names = { store: 'team', address }
    const said = async (line: string, input?: string) => {
      const { code, out, err } = await person.piped(line, input)
      return { code, out: out.split('\n').filter(Boolean).map(parsed), err }
    }
    expect(await said(`stores add team ${address}`)).toEqual({ code: 0, out: [{ name: 'team', address }], err: '' })
    expect(await said('stores use team')).toEqual({ code: 0, out: [{ name: 'team', address, inUse: true }], err: '' })
    const none = `plants: There is no token for ${address}\n  Set PLANTS_TOKEN, or save one with: plants auth login\n`
    expect(await said('create --id 1 --name Fern')).toEqual({ code: 3, out: [], err: none })

    const savedAt = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const login = await said('auth login --with-token', `${token}\n`)
    expect(login).toEqual({ code: 0, out: [{ ...names, source: 'file', savedAt, checked: true }], err: '' })
    expect(await said('create', '{"id":1,"name":"Fern"}')).toEqual({ code: 0, out: [{ name: 'Fern' }], err: '' })
    expect(await said('auth status')).toEqual({ code: 0, out: [{ ...names, source: 'file', savedAt }], err: '' })
    expect(await said('auth token')).toEqual({ code: 0, out: [token], err: '' })

    expect(await said('auth logout')).toEqual({ code: 0, out: [{ ...names, removed: true }], err: '' })
    expect(person.kept).not.toContain(token)
    expect(await said('create --id 2 --name Moss')).toEqual({ code: 3, out: [], err: none })
    expect(await said('auth status')).toEqual({ code: 3, out: [{ ...names, source: 'none' }], err: none })
    expect(await said('auth logout')).toEqual({ code: 0, out: [{ ...names, removed: false }], err: '' })
    const removal = { name: 'team', address, removed: true, tokenRemoved: false }
    expect(await said('stores remove team')).toEqual({ code: 0, out: [removal], err: '' })
    expect(await said('stores list')).toMatchObject({ code: 0, out: [{ name: 'local', inUse: true }], err: '' })
  })

  test('ends with its store', async () => {
    const address = await service()
    const person = new Person()
    await person.piped(`stores add team ${address}`)
    await person.piped('auth login --store team --with-token', token)
    const { code, out } = await person.piped('stores remove team')
    expect({ code, ...JSON.parse(out) }).toEqual({ code: 0, name: 'team', address, removed: true, tokenRemoved: true })
    expect(person.kept).not.toContain(token)
  })
})

function parsed(line: string): unknown {
  return line.startsWith('{') ? JSON.parse(line) : line
}

describe('login on a terminal', () => {
  test('refuses a token that the service does not accept, and saves nothing', async () => {
    const address = await service()
    const person = new Person()
    const { code, lines } = await typeToken(person.session(`auth login --store ${address}`), address, 'another-token')
    expect({ code, last: lines.slice(-2) }).toEqual({
      code: 3,
      last: [
        `plants: ${address} does not accept this token: This token is not accepted`,
        '  Nothing was saved. Copy the token again, or ask for a new one where the service is run: plants tokens create',
      ],
    })
    expect(existsSync(person.file)).toBe(false)
  })

  test('keeps the token that was there when the new one is refused', async () => {
    const address = await service()
    const person = new Person()
    await person.piped(`auth login --store ${address} --with-token`, token)
    expect((await typeToken(person.session(`auth login --store ${address}`), address, 'another-token')).code).toBe(3)
    expect((await person.piped(`create --store ${address} --id 1 --name Fern`)).code).toBe(0)
  })

  test('saves what cannot be checked, with a warning', async () => {
    const person = new Person()
    const { code, lines } = await typeToken(person.session('auth login --store http://127.0.0.1:9'), 'http://127.0.0.1:9', token)
    expect({ code, last: lines.slice(-2) }).toEqual({
      code: 0,
      last: [
        'plants: The token is saved, but could not be checked: Could not reach http://127.0.0.1:9: the connection was refused',
        'Saved the token for http://127.0.0.1:9',
      ],
    })
    expect(person.kept).toContain(token)
  })

  test('does not speak of plants when the service does not answer the check', async () => {
    const remote = await Hostile.listen({ posts: [() => undefined] })
    const { code, out, err } = await new Person().piped(`auth login --with-token --timeout 1s --store ${remote.url}`, token)
    expect({ code, checked: JSON.parse(out).checked }).toEqual({ code: 0, checked: false })
    expect(err).toMatch(/^plants: The token is saved, but could not be checked: (?!.*got the plant).*the time is over\n$/)
  })

  test('lets a token be mended that is none', async () => {
    const address = await service()
    const person = new Person()
    const session = person.session(`auth login --store ${address}`)
    await session.see(`token for ${address}`)
    session.type('s3cret token\r')
    await session.see('holds a space')
    session.type('\x15')
    session.type(`${token}\r`)
    const { code, screen } = await session.ended
    expect(code).toBe(0)
    expect(screen).not.toContain('s3cret')
  })

  test.each<[string, (session: Terminal) => void, number]>([
    ['Ctrl-C', (session) => session.type('s3cret\x03'), 130],
    ['Ctrl-D', (session) => session.type('\x04'), 130],
    ['SIGTERM', (session) => session.kill('SIGTERM'), 143],
  ])('%s leaves, and saves nothing', async (_, leave, exitCode) => {
    const address = await service()
    const person = new Person()
    const session = person.session(`auth login --store ${address}`)
    await session.see(`token for ${address}`)
    leave(session)
    const { code, screen } = await session.ended
    expect(code).toBe(exitCode)
    expect(screen).not.toContain('s3cret')
    expect(existsSync(person.file)).toBe(false)
  })

  test('Ctrl-C leaves also while the token is checked, and saves nothing', async () => {
    const remote = await Hostile.listen({ posts: [() => session.type('\x03')] })
    const person = new Person()
    const session = person.session(`auth login --store ${remote.url}`)
    expect((await typeToken(session, remote.url, token)).code).toBe(130)
    expect(existsSync(person.file)).toBe(false)
  })

  test('asks nothing when nothing may be asked, or when the store takes its token from a command', async () => {
    const person = new Person()
    await person.piped('stores add team https://plants.example.com --token-command /bin/false')
    const { code, lines } = await person.at('auth login --store team')
    expect({ code, lines }).toMatchObject({
      code: 2,
      lines: ['plants: team takes its token from a command', expect.stringMatching(/^ {2}Renew/)],
    })
    const quiet = await person.at('auth login --no-input --store https://other.example.com')
    expect({ code: quiet.code, first: quiet.lines[0] }).toEqual({ code: 2, first: 'plants: Nobody can be asked for the token' })
  })

  test('shows nothing of the token with --verbose either', async () => {
    const address = await service()
    const person = new Person()
    const { code, lines } = await typeVerbose(person.session(`auth login --verbose --store ${address}`), address)
    expect(code).toBe(0)
    expect(lines).toContain('> authorization: Bearer ***')
    expect(lines).toContain('< 400')
  })

  test('makes visible what could drive it, in an address or in the path of the settings', async () => {
    const person = new Person()
    const env = { PLANTS_CONFIG_DIR: join(person.folder, 'config\u001b[31m\u202e') }
    const wild = 'https://plants.example.com/tea\u001b[31mm\u001b]0;title\u0007\u202e'
    const socket = 'unix:/nonexistent/\u001b[31mRED\u001b]0;title\u0007\u202e.sock'
    mkdirSync(env.PLANTS_CONFIG_DIR, { mode: 0o700 })
    const stores = { team: { address: socket }, wild: { address: wild } }
    const file = join(env.PLANTS_CONFIG_DIR, 'settings.json')
    writeFileSync(file, JSON.stringify({ version: 1, stores }), { mode: 0o600 })
    const shown = '/nonexistent/\\u{1b}[31mRED\\u{1b}]0;title\\u{7}\\u{202e}.sock'
    const screens: string[] = []

    const login = person.session('auth login --store team --timeout 10ms', env)
    await login.see('token for')
    login.type(`${token}\r`)
    screens.push((await login.ended).screen)
    for (const line of ['auth status', 'auth logout --store team', 'auth logout --store team', 'config path', 'stores list', 'doctor']) {
      screens.push((await person.session(`${line} --timeout 10ms`, env).ended).screen)
    }
    for (const screen of screens.slice(0, 4).filter((_, at) => at !== 1)) expect(unfolded(screen)).toContain(shown)
    for (const screen of screens) expect(screen).not.toMatch(/\u001b\[31mRED|\u001b\]0|\u0007|\u202e|config\u001b/)
  })

  /** What was on a screen, with the lines that were too long for it put together again. */
  function unfolded(screen: string): string {
    return stripVTControlCharacters(screen).replaceAll('\r\n', '')
  }

  async function typeVerbose(session: Terminal, address: string): Promise<{ code: number; lines: string[] }> {
    await session.see(`token for ${address}`)
    session.type(`${token}\r`)
    const { code, screen } = await session.ended
    expect(screen).not.toContain(token)
    return { code, lines: linesOf(screen) }
  }
})

describe('a token command on a terminal', () => {
  test('may talk to the person, who sees it, and Ctrl-C ends it with the program', async () => {
    const person = new Person()
    await person.piped('stores add team http://127.0.0.1:9')
    await takeTokenFrom(person, 'echo "Touch the key" >&2; exec cat < /dev/tty')
    const session = person.session('create --store team --id 1 --name Fern')
    await session.see('Touch the key')
    session.type('\x03')
    expect((await session.ended).code).toBe(130)
  })

  test('is run before anything is asked, and once', async () => {
    const address = await service()
    const person = new Person()
    await person.piped(`stores add team ${address}`)
    await takeTokenFrom(person, `echo ran >&2; echo ${token}`)
    const session = person.session('create --store team')
    await session.see('ran')
    await session.see('id')
    session.type('1\r')
    await session.see('name')
    session.type('Fern\r')
    await session.see('tag')
    session.type('\r')
    const { code, screen } = await session.ended
    expect({ code, count: screen.match(/ran/g)?.length }).toEqual({ code: 0, count: 1 })
    expect(screen).not.toContain(token)
  })

  test('that fails is named, with what it said itself', async () => {
    const person = new Person()
    await person.piped('stores add team https://plants.example.com')
    await takeTokenFrom(person, `echo The vault is locked >&2; echo ${token}; exit 4`)
    const { code, lines } = await person.at('create --store team --id 1 --name Fern')
    expect(code).toBe(3)
    expect(lines).toEqual([
      'The vault is locked',
      'plants: The token command of team (/bin/sh) ended with exit code 4',
      expect.stringMatching(/^ {2}\S/),
    ])
  })
})

/** Lets the store `team` take its token from a script. */
async function takeTokenFrom(person: Person, script: string): Promise<void> {
  const path = join(person.folder, 'token.sh')
  writeFileSync(path, script)
  const argv = ['config', 'set', 'stores.team.token-command', `/bin/sh ${path}`]
  expect((await plants(argv, person.folder, { env: { PLANTS_CONFIG_DIR: person.config } })).code).toBe(0)
}
