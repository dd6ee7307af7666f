import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { version } from '../../../package.json'
import { AuthUser, accepting, aTime, read, refuses, token, when } from '../../helpers/auth-user.js'
import { type Answer, closedPort, Hostile, http, json } from '../../helpers/hostile.js'
import { ownService, token as ownToken, socketPath } from '../../helpers/remote.js'
import { modeOf } from '../../helpers/settings-file.js'
import { temporaryFolder } from '../../helpers/temporary.js'

describe('login --with-token', () => {
  test.each<[string, string]>([
    ['alone', token],
    ['before a line feed', `${token}\n`],
    ['before CR LF', `${token}\r\n`],
    ['between spaces and empty lines', `\n  ${token}\t\r\n\r\n`],
    ['behind a byte order mark', `\ufeff${token}\n`],
  ])('saves a token that stands %s, for its owner alone', async (_, text) => {
    const user = new AuthUser()
    const { url } = await accepting()
    const result = read(await user.login(url, text))
    const [{ savedAt }] = result.out as [{ savedAt: string }]
    expect(result).toEqual({
      code: 0,
      out: [{ store: url, address: url, source: 'file', savedAt: aTime, checked: true }],
      err: [],
    })
    expect(user.saved).toEqual({ version: 1, tokens: { [url]: { token, savedAt } } })
    expect(readdirSync(user.folder).toSorted()).toEqual(['settings.json'])
    expect([join(user.folder, '..'), user.folder, user.file].map(modeOf)).toEqual(['700', '700', '600'])
  })

  test('asks the service once, with an empty object and the token', async () => {
    const remote = await accepting()
    await new AuthUser().login(`${remote.url}/v1`)
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
    const user = new AuthUser()
    const path = join(temporaryFolder(), 'plants.db')
    const url = await ownService({ host: '127.0.0.1', port: 0 }, path, '/v1')
    expect(read(await user.login(url, ownToken))).toMatchObject({
      code: 0,
      out: [{ store: url, checked: true }],
      err: [],
    })
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
    const user = new AuthUser()
    const { url } = await accepting()
    const { code, err } = await user.run(['auth', 'login', '--with-token', '--verbose', '--store', url], {
      stdin: token,
    })
    expect({ code, err }).toEqual({
      code: 0,
      err: expect.stringMatching(/> POST .*\n(> .*\n)*> authorization: Bearer \*\*\*\n/),
    })
    expect(err).not.toContain(`token from ${user.file}`)
  })

  test('tells a person which store it is for', async () => {
    const user = new AuthUser()
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
    [
      '404',
      json(404, { error: 404, message: 'Not here' }),
      'Not here. Is the address right? It is the base URL: the part before /plants',
    ],
    ['405', http(405), 'URL answered 405 with nothing. Is the address right?'],
    ['409', json(400, { error: 409, message: 'Taken' }), 'Taken'],
    ['400', json(400, { error: 400, message: 'Malformed' }), 'Malformed'],
    ['a Plant', json(200, { name: 'Fern' }), 'URL answered 200 to an empty object'],
    ['200 with HTML', http(200, '<h1>Hello</h1>', { 'Content-Type': 'text/html' }), 'URL answered 200 with text/html'],
    ['500', json(500, { error: 500, message: 'Oops' }), 'URL failed: Oops'],
    ['503', json(503, { error: 503, message: 'Not now' }, { 'Retry-After': 60 }), 'Not now'],
    ['429', http(429), 'URL answered 429 with nothing'],
    [
      'a redirect',
      http(302, '', { Location: 'https://example.com/' }),
      'URL answered 302, and redirects to https://example.com/',
    ],
    ['no HTTP', (socket) => void socket.end('SSH-2.0-OpenSSH\r\n'), 'URL did not answer with HTTP/1.1'],
    ['garbage as JSON', json(400, '{"error":4'), 'URL answered 400 with invalid JSON'],
  ])('saves it with a warning when the service answers %s', async (_, posts, why) => {
    const user = new AuthUser()
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

  test.each<[string, string, Answer]>([
    ['hangs', 'the request timed out', () => undefined],
    ['hangs up', 'the connection was closed', (socket) => void socket.destroy()],
  ])('saves it with a warning that speaks of no plant when the service %s', async (_, why, posts) => {
    const user = new AuthUser()
    const remote = await Hostile.listen({ posts: [posts] })
    const result = read(
      await user.auth(`login --with-token --timeout 200ms --store ${remote.url}`, { stdin: token }),
      remote.url,
    )
    const warning = `${notChecked}: URL received the request, but did not answer: ${why}`
    expect(result).toMatchObject({ code: 0, out: [{ checked: false }], err: [{ warning }] })
  })

  test('saves it with a warning when nobody listens there', async () => {
    const user = new AuthUser()
    const url = `http://127.0.0.1:${closedPort}`
    expect(read(await user.login(url), url)).toEqual({
      code: 0,
      out: [{ store: 'URL', address: 'URL', source: 'file', savedAt: aTime, checked: false }],
      err: [{ warning: `${notChecked}: Could not reach URL: the connection was refused` }],
    })
    expect(user.saved).toMatchObject({ tokens: { [url]: { token } } })
    const socket = socketPath()
    expect(read(await user.login(`unix:${socket}`))).toMatchObject({
      code: 0,
      out: [{ store: `unix:${socket}`, checked: false }],
    })
  })

  test.each<[string, Answer, Record<string, unknown>]>([
    ['401', http(401), { message: 'URL does not accept this token: URL answered 401 with nothing', status: 401 }],
    [
      '403',
      json(403, { error: 403, message: 'No' }),
      { error: 403, message: 'URL does not accept this token: No', status: 403 },
    ],
    [
      '400 with the error 401',
      refuses,
      { message: 'URL does not accept this token: This token is not accepted', status: 400 },
    ],
    [
      '401 and repeats it',
      json(401, { error: 401, message: token }),
      { message: 'URL does not accept this token: ***', status: 401 },
    ],
  ])('saves nothing, and keeps the old one, when the service answers %s', async (_, posts, said) => {
    const user = new AuthUser()
    const remote = await Hostile.listen({ posts: [posts] })
    const hint = 'Nothing was saved. Copy it again, or ask for a new one'
    expect(read(await user.login(remote.url), remote.url)).toEqual({
      code: 3,
      out: [],
      err: [{ error: 401, hint, ...said }],
    })
    expect(user.isUntouched).toBe(true)
    const tokens = { [remote.url]: { token: 'old', savedAt: when } }
    user.save({ tokens })
    expect((await user.login(remote.url)).code).toBe(3)
    expect(user.saved).toEqual({ version: 1, tokens })
  })
})
