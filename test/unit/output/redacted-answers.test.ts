import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Answer, Hostile, http, json } from '../../helpers/hostile.js'
import { OutputUser, when } from '../../helpers/redacting.js'

describe('a token that a service repeats is not shown', () => {
  const token = 's3cret-Of/one+address~s3cret=='
  const error = (status: number, message: string, headers: Record<string, string> = {}) =>
    json(status, { error: status, message }, headers)

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
    [
      'in its headers',
      json(422, { error: 422, message: 'No' }, { 'X-Debug': `Bearer ${token}`, 'Set-Cookie': `token=${token}` }),
    ],
    ['in the headers of a redirect', http(302, '', { Location: `https://example.com/login?token=${token}` })],
    [
      'percent-encoded in a redirect',
      http(307, '', { Location: `https://example.com/?token=${encodeURIComponent(token)}` }),
    ],
    [
      'in a redirect that is cut within it',
      http(301, '', { Location: `https://example.com/${'x'.repeat(270)}${token}` }),
    ],
    ['in its media type', http(200, '{}', { 'Content-Type': `text/${token}` })],
    [
      'in its media type, which is cut within it',
      http(200, '{}', { 'Content-Type': `text/${'x'.repeat(62)}${token}` }),
    ],
    ['in its status line', `HTTP/1.1 400 ${token}\r\nContent-Length: 0\r\n\r\n`],
    ['in no HTTP', (socket) => void socket.end(`${token}\r\n`)],
    ['in half an answer', (socket) => void socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n${token}`)],
    [
      'in an answer that is longer than is read',
      http(200, token.repeat(50_000), { 'Content-Type': 'application/json' }),
    ],
  ]

  const sources: [string, (url: string) => { fields?: object; env?: Record<string, string> }][] = [
    ['PLANTS_TOKEN', () => ({ env: { PLANTS_TOKEN: token } })],
    ['the settings', (url) => ({ fields: { tokens: { [url]: { token, savedAt: when } } } })],
    ['a command', (url) => ({ fields: { stores: { team: { address: url, 'token-command': 'cat token.txt' } } } })],
  ]

  describe.each(sources)('when it is from %s', (source, given) => {
    // what is redacted does not know where it is from
    const sample = answers.filter((_, index) => source === 'PLANTS_TOKEN' || index % 5 === 0)
    test.each(sample)('%s', async (_, answer) => {
      const { url } = await Hostile.listen({ posts: [answer] })
      const { fields = {}, env = {} } = given(url)
      const user = new OutputUser().write(JSON.stringify({ version: 1, ...fields }))
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
    await new OutputUser().someWays(['auth', 'login', '--with-token', '--store', url, '--timeout', '300ms'], {
      stdin: token,
    })
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
      const shown = await new OutputUser().everyWay(argv, { env: { PLANTS_TOKEN: secret } })
      // twice as what was sent, and each time that it was repeated
      expect(shown.match(/\*\*\*/g)?.length).toBeGreaterThan(4)
      expect(shown).not.toContain(text.slice(-14, -3))
    }
  }

  test.each(escapes)('%s, in the address of a redirect, in a message and in a header', async (_, encode) => {
    for (const secret of escaped) await repeats(encode(secret), secret)
  })

  test('as the name of a header', async () => {
    const secret = 's3cret-of-one-address-s3cret'
    const { url } = await Hostile.listen({
      posts: [json(400, { error: 400, message: 'No' }, { [`X-${secret}`]: '1' })],
    })
    const argv = ['create', '--id', '1', '--name', 'Fern', '--store', url]
    const shown = await new OutputUser().everyWay(argv, { env: { PLANTS_TOKEN: secret } })
    expect(shown).toContain('< x-***: 1\n')
    expect(shown).toContain('{"verbose":"< x-***: 1"}\n')
  })

  test('in the warning of a plant that is another one', async () => {
    const { url } = await Hostile.listen({ posts: [json(200, { name: token, tag: token })] })
    const argv = ['create', '--id', '1', '--name', 'Fern', '--store', url]
    const { code, err } = await new OutputUser().run(argv, { env: { PLANTS_TOKEN: token }, mayShowSecrets: true })
    expect({ code, err }).toEqual({
      code: 0,
      err: expect.stringMatching(/The store returned a plant that differs.*\*\*\*/),
    })
    expect(err).not.toContain('s3cret')
  })

  test('in the traces, where *** stands for it', async () => {
    const { url } = await Hostile.listen({ posts: [json(200, { name: 'Fern' }, { 'X-Debug': `<${token}>` })] })
    const user = new OutputUser()
    const said = await user.everyWay(['create', '--id', '1', '--name', 'Fern', '--store', url], {
      env: { PLANTS_TOKEN: token },
    })
    expect(said).toContain('> authorization: Bearer ***\n')
    expect(said).toContain('{"verbose":"> authorization: Bearer ***"}\n')
    expect(said).toContain('< x-debug: <***>\n')
    expect(said).toContain('{"verbose":"< x-debug: <***>"}\n')
  })
})
