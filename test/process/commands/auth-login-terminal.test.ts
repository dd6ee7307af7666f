import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { AuthUser, accepts, refuses, token } from '../../helpers/auth-user.js'
import { type Answer, Hostile } from '../../helpers/hostile.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { terminal } from '../../helpers/terminal.js'

describe('login on a terminal', () => {
  test.each(['http://192.0.2.1', 'open'])('asks nothing where the token would not be sent: %s', async (name) => {
    const user = new AuthUser()
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
