import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { accepts, token as typed } from '../../helpers/auth-user.js'
import { Hostile } from '../../helpers/hostile.js'
import { linesOf, Person, service, typeToken } from '../../helpers/person.js'
import { token } from '../../helpers/remote.js'
import type { Terminal } from '../../helpers/terminal.js'

describe('login on a terminal', () => {
  test.each(['http://192.0.2.1', 'open'])('asks nothing where the token would not be sent: %s', async (name) => {
    const person = new Person()
    await person.piped('stores add open http://192.0.2.1')
    const { code, screen } = await person.session(`auth login --no-color --store ${name}`).ended
    expect({ code, screen }).toEqual({
      code: 2,
      screen: expect.stringMatching(
        /^plants: The token is not sent to http:\/\/192\.0\.2\.1: without TLS others could read it\r\n {2}Use/,
      ),
    })
    expect(screen).not.toContain('token for')
  })

  async function asked() {
    const person = new Person()
    const { url } = await Hostile.listen({ posts: [accepts] })
    const typing = person.session(`auth login --store ${url}`)
    await typing.see(`token for ${url}`)
    return { typing, url, file: person.file }
  }

  test('asks for the token, and shows nothing of it', async () => {
    const { typing, url, file } = await asked()
    typing.type('not a token\r')
    await typing.answer(['contains a space', '\x15'])
    for (const character of typed) typing.type(character)
    typing.type('\r')
    const { code, screen } = await typing.ended
    expect({ code, screen: stripVTControlCharacters(screen) }).toEqual({
      code: 0,
      screen: expect.stringContaining(`Saved the token for ${url}, which accepts it`),
    })
    for (const part of [typed, 's3cret', 'not a token', '***']) expect(screen).not.toContain(part)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ tokens: { [url]: { token: typed } } })
  })

  test.each(['\r', '\n', '\r\n'])(
    'takes the first line of a paste of two, with %j between them, and shows nothing of it',
    async (end) => {
      const { typing, url, file } = await asked()
      typing.type(`${typed}${end}s3cret-second${end}`)
      const { code, screen } = await typing.ended
      expect({ code, screen }).toEqual({ code: 0, screen: expect.stringContaining(`Saved the token for ${url}`) })
      expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ tokens: { [url]: { token: typed } } })
    },
  )

  test.each(['\r\r', '\r\n\r\n', ' \r  \r'])(
    'takes a paste that has only blanks behind its first line: %j',
    async (end) => {
      const { typing, url } = await asked()
      typing.type(`${typed}${end}`)
      const { code, screen } = await typing.ended
      expect({ code, screen }).toEqual({ code: 0, screen: expect.stringContaining(`Saved the token for ${url}`) })
    },
  )

  test('takes a paste as long as a token may be', async () => {
    const { typing, url } = await asked()
    typing.type('s3cretOiJSUzI1NiJ9.'.padEnd(2000, 'x'))
    typing.type('\r')
    await Promise.race([typing.ended, typing.see('longer than')])
    typing.type('\x03')
    const { code, screen } = await typing.ended
    expect({ code, screen }).toEqual({ code: 0, screen: expect.stringContaining(`Saved the token for ${url}`) })
  })

  test('refuses a token that the service does not accept, and saves nothing', async () => {
    const address = await service()
    const person = new Person()
    const { code, lines } = await typeToken(person.session(`auth login --store ${address}`), address, 'another-token')
    expect({ code, last: lines.slice(-2) }).toEqual({
      code: 3,
      last: [
        `plants: ${address} does not accept this token: This token is not accepted`,
        '  Nothing was saved. Copy it again, or ask for a new one',
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
    const { code, lines } = await typeToken(
      person.session('auth login --store http://127.0.0.1:9'),
      'http://127.0.0.1:9',
      token,
    )
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
    const { code, out, err } = await new Person().piped(
      `auth login --with-token --timeout 1s --store ${remote.url}`,
      token,
    )
    expect({ code, checked: JSON.parse(out).checked }).toEqual({ code: 0, checked: false })
    expect(err).toMatch(
      /^plants: The token is saved, but could not be checked: (?!.*received the plant).*the request timed out\n$/,
    )
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

  test('asks nothing when nothing may be asked, or when the store gets its token from a command', async () => {
    const person = new Person()
    await person.piped('stores add team https://plants.example.com --token-command /bin/false')
    const { code, lines } = await person.at('auth login --store team')
    expect({ code, lines }).toMatchObject({
      code: 2,
      lines: ['plants: team gets its token from a command', expect.stringMatching(/^ {2}Renew/)],
    })
    const quiet = await person.at('auth login --no-input --store https://other.example.com')
    expect({ code: quiet.code, first: quiet.lines[0] }).toEqual({
      code: 2,
      first: 'plants: Cannot prompt for the token',
    })
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
    await login.answer(['token for', `${token}\r`])
    screens.push((await login.ended).screen)
    for (const line of [
      'auth status',
      'auth logout --store team',
      'auth logout --store team',
      'config path',
      'stores list',
      'doctor',
    ]) {
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
    await session.answer([`token for ${address}`, `${token}\r`])
    const { code, screen } = await session.ended
    expect(screen).not.toContain(token)
    return { code, lines: linesOf(screen) }
  }
})
