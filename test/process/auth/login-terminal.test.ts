import { mkdirSync } from 'node:fs'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { Hostile } from '../../helpers/hostile.js'
import type { Terminal } from '../../helpers/terminal.js'
import { accepts } from '../../helpers/users.js'
import { World } from '../../helpers/world.js'

const typed = 'plants_s3cret-Token~+/='

/** The lines on a screen, without colours. */
function linesOf(screen: string): string[] {
  return stripVTControlCharacters(screen).trimEnd().split('\r\n')
}

describe('login on a terminal', () => {
  async function asked() {
    const user = new World()
    const { url } = await Hostile.listen({ posts: [accepts] })
    const typing = user.terminal(`auth login --store ${url}`)
    await typing.see(`token for ${url}`)
    const accepted = { code: 0, screen: expect.stringContaining(`Saved the token for ${url}`) }
    return { typing, url, user, accepted, saved: { tokens: { [url]: { token: typed } } } }
  }

  test('asks for the token, and shows nothing of it', async () => {
    const { typing, url, user, saved } = await asked()
    typing.type('not a token\r')
    await typing.answer(['contains a space', '\x15'])
    for (const character of typed) typing.type(character)
    typing.type('\r')
    const { code, screen } = await typing.ended
    expect([code, linesOf(screen).at(-1)]).toEqual([
      0,
      `Saved the token for ${url}, which accepts it`,
    ])
    for (const part of [typed, typed.slice(0, 5), 's3cret', 'not a token', '***'])
      expect(screen).not.toContain(part)
    expect(user.saved).toMatchObject(saved)
  })

  test('takes the first line of a paste', async () => {
    const { typing, user, saved, accepted } = await asked()
    typing.type(`${typed} \r\ns3cret-2\r\n`)
    expect(await typing.ended).toEqual(accepted)
    expect(user.saved).toMatchObject(saved)
  })

  test('takes a paste as long as a token may be', async () => {
    const { typing, accepted } = await asked()
    typing.type('s3cretOiJSUzI1NiJ9.'.padEnd(2000, 'x'))
    typing.type('\r')
    await Promise.race([typing.ended, typing.see('longer than')])
    typing.type('\x03')
    expect(await typing.ended).toEqual(accepted)
  })

  test.each<[string, (typing: Terminal) => void, number]>([
    ['Ctrl-C', (typing) => typing.type('s3cret\x03'), 130],
    ['SIGTERM', (typing) => typing.kill('SIGTERM'), 143],
  ])('ends at %s, and saves nothing', async (_, leave, exitCode) => {
    const { typing, user } = await asked()
    leave(typing)
    expect(await typing.ended).toEqual({
      code: exitCode,
      screen: expect.not.stringContaining('s3cret'),
    })
    expect(user.saved).toBeUndefined()
  })

  test.each([
    [
      'auth login --store open',
      2,
      'The token is not sent to http://192.0.2.1: without TLS others could read it',
    ],
    ['auth login --store bare --no-input', 2, 'Cannot prompt for the token'],
  ])('asks nothing in vain: plants %s', async (line, code, message) => {
    const stores = {
      open: { address: 'http://192.0.2.1' },
      bare: { address: 'https://plants.example.com' },
    }
    const user = new World({ stores })
    const { code: found, screen } = await user.terminal(line).ended
    const text = linesOf(screen).join(' ').replaceAll(/ +/g, ' ') // it wraps
    expect([found, text]).toEqual([
      code,
      expect.stringMatching(RegExp(`^plants: ${message}.* \\S`)),
    ])
  })
})

test('a terminal is not driven by an address, or by the path of the settings', async () => {
  const user = new World()
  const config = `${user.home}/config\u001b[31m\u202e`
  const env = { PLANTS_CONFIG_DIR: config }
  mkdirSync(config, { mode: 0o700 })
  const stores = {
    team: { address: 'https://plants.example.com/\u001b[31mRED\u001b]0;title\u0007\u202e' },
  }
  user.write('config\u001b[31m\u202e/settings.json', JSON.stringify({ version: 1, stores }))
  const typing = user.terminal('auth login --store team --timeout 10ms', env)
  await typing.answer(['token for', `${typed}\r`])
  const { screen } = await typing.ended
  const screens = [screen]
  for (const line of [
    'auth logout --store team',
    'auth status --store team',
    'stores list',
    'doctor',
  ]) {
    const { out, err } = await user.run(line, { env, terminals: ['stdout', 'stderr'] })
    screens.push(out + err)
  }
  for (const text of screens)
    expect(text).not.toMatch(/\u001b\[31mRED|\u001b\]0|\u0007|\u202e|config\u001b/)
})
