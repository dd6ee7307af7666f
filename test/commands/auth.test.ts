import { readdirSync } from 'node:fs'
import type { Socket } from 'node:net'
import { beforeEach, describe, expect, test } from 'vitest'
import { createCertificate, hasOpenssl } from '../helpers/sandbox/certificates.js'
import { createClock } from '../helpers/sandbox/clock.js'
import type { RunOptions } from '../helpers/sandbox/run.js'
import { Sandbox } from '../helpers/sandbox/sandbox.js'
import { acceptingResponse, buildSavedTokens } from '../helpers/sandbox/token-command-sandbox.js'
import {
  buildJsonResponse,
  buildResponse,
  closedPort,
  type ScriptedResponse,
  ScriptedServer,
} from '../helpers/scripted-server/scripted-server.js'

// What these commands print without a service is in transcripts/auth.txt.

const token = 'plants_s3cret-Token~+/='
const aTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const insufficientScope = { 'WWW-Authenticate': 'Bearer error="insufficient_scope"' }
const otherChallenge = { 'WWW-Authenticate': 'Bearer realm="x"' }
const no = (status: number, error: number, headers = {}) =>
  buildJsonResponse(status, { error, message: 'No' }, headers)
const buildPage = (status: number) =>
  buildResponse(status, '<h1>Hi</h1>', { 'Content-Type': 'text/html', Server: 'Web/1.0' })
let user: Sandbox

beforeEach(() => {
  user = new Sandbox()
})

/** Logs in; what was printed, as objects. */
async function login(
  address: string,
  stdin: string | Uint8Array = token,
  options: Pick<RunOptions, 'now'> = {},
) {
  const line = `auth login --from-stdin --output json --store ${address}`
  const { code, out, err } = await user.run(line, { ...options, stdin })
  const [status, error] = [out, err].map((text) => (text === '' ? undefined : JSON.parse(text)))
  return { code, status, error }
}

describe('login saves a token', () => {
  test('of 4096 characters without surrounding spaces, and checks it at the service', async () => {
    const longest = 's3cret'.padEnd(4096, 'x')
    const service = await ScriptedServer.listen({ posts: [acceptingResponse] })
    const address = `${service.url}/v1`
    const status = { store: address, address, source: 'file', savedAt: aTime, checked: true }
    const stdin = `\ufeff\n  ${longest}\t\r\n\r\n`
    expect(await login(address, stdin)).toEqual({ code: 0, status })
    const tokens = { [address]: { token: longest, savedAt: aTime } }
    expect(user.saved).toEqual({ version: 1, tokens })
    expect(readdirSync(user.config)).toEqual(['settings.json', 'settings.json.lock'])
    const headers = expect.objectContaining({ authorization: `Bearer ${longest}` })
    expect(service.requests).toEqual([{ line: 'POST /v1/plants', headers, body: '{}' }])
  })

  test('for the address of a name, and warns that PLANTS_TOKEN takes precedence', async () => {
    const service = await ScriptedServer.listen({ posts: [acceptingResponse] })
    await user.run(`stores add team ${service.url}/v1/`)
    const options = { stdin: token, env: { PLANTS_TOKEN: 's3cret-of-env' } }
    const { code, err } = await user.run('auth login --from-stdin --store team', options)
    expect([code, err]).toEqual([0, expect.stringContaining('PLANTS_TOKEN is still set')])
    expect(service.posts[0]?.headers).toMatchObject({ authorization: `Bearer ${token}` })
    expect(user.saved).toMatchObject({ tokens: { [`${service.url}/v1`]: { token } } })
  })

  // The specification does not say what values of `error` mean.
  test.each<[string, ScriptedResponse]>([
    ['an error of its own', no(400, 1001)],
    ['a missing right', no(400, 403, insufficientScope)],
    ['a missing right, and the status 403', no(403, 403, insufficientScope)],
  ])('for a service that accepts it, but answers %s', async (_, answer) => {
    const service = await ScriptedServer.listen({ posts: [answer] })
    const { code, status, error } = await login(service.url)
    expect({ code, status, error }).toMatchObject({ code: 0, status: { checked: true } })
    expect(error).toBeUndefined()
  })

  test.each<[string, ScriptedResponse]>([
    ['a web page of a proxy', buildPage(502)],
    ['a Plant', buildJsonResponse(200, { name: 'Fern' })],
    ['nothing', () => undefined],
  ])('with a warning when the service answers %s', async (what, answer) => {
    const service = await ScriptedServer.listen({ posts: [answer] })
    const { now, timeOut } = createClock()
    if (what === 'nothing') service.on('request', () => timeOut())
    const { code, status, error } = await login(service.url, token, { now })
    expect([code, status]).toMatchObject([0, { savedAt: aTime, checked: false }])
    expect(error).toEqual({ warning: expect.stringContaining('was not checked') })
    expect(user.saved).toMatchObject({ tokens: { [service.url]: { token } } })
    expect(service.lines).toEqual(['POST /plants'])
  })
})

test.each<[string, ScriptedResponse, string]>([
  ['is busy', buildResponse(503), 'answered 503 with nothing'],
  ['answers 422', no(422, 422), 'was not checked: No'],
])('login does not say that nothing was stored if the service %s', async (_, answer, problem) => {
  const { url } = await ScriptedServer.listen({ posts: [answer] })
  const { code, error } = await login(url)
  expect(code).toBe(0)
  expect(error.warning).toContain(problem)
  expect(error.warning).not.toContain('Nothing was stored')
})

test('login saves a token for a service that is not running, and says that it was not checked', async () => {
  const address = `http://127.0.0.1:${closedPort}`
  const { code, status, error } = await login(address)
  expect([code, status]).toMatchObject([0, { checked: false }])
  expect(error).toEqual({
    warning: `The token was not checked: Could not reach ${address}: the connection was refused`,
  })
  expect(user.saved).toMatchObject({ tokens: { [address]: { token } } })
})

describe('login saves nothing', () => {
  test.each<[status: number, error: number, headers?: object]>([
    [403, 403],
    [400, 403],
    [400, 401, insufficientScope],
  ])('when the service answers %i with the error %i', async (status, error, headers) => {
    const service = await ScriptedServer.listen({ posts: [no(status, error, headers)] })
    const message = `${service.url} answered ${status}: No`
    const failure = { message, status, error, hint: expect.any(String), kind: 'unauthorized' }
    expect(await login(service.url)).toEqual({ code: 3, error: failure })
    expect(user.has('config')).toBe(false)
    expect(service.lines).toEqual(['POST /plants'])
  })

  test.each([403, 400])('when the service answers %i with another challenge', async (status) => {
    const service = await ScriptedServer.listen({ posts: [no(status, 403, otherChallenge)] })
    expect(await login(service.url)).toMatchObject({ code: 3, error: { error: 403 } })
    expect(user.has('config')).toBe(false)
  })

  test.each([
    { scheme: 'http', answer: 'Client sent an HTTP request to an HTTPS server.' },
    { scheme: 'https', answer: '' },
  ])('when the port does not speak $scheme', async ({ scheme, answer }) => {
    const onConnect = (socket: Socket) => void socket.end(buildResponse(400, answer))
    const service = await ScriptedServer.listen({ onConnect })
    const { code, status, error } = await login(`${scheme}://127.0.0.1:${service.port}`)
    expect({ code, status, error }).toMatchObject({ code: 4, error: { error: 503 } })
    expect(status).toBeUndefined()
    expect(user.has('config')).toBe(false)
  })

  test.runIf(hasOpenssl)(
    'when the issuer of the certificate is unknown, and names the option (needs openssl)',
    async () => {
      const tls = createCertificate({ names: ['IP:127.0.0.1'] })
      const service = await ScriptedServer.listen({ posts: [acceptingResponse], tls })
      const { code, error } = await login(service.url)
      expect({ code, hint: error.hint }).toMatchObject({
        code: 4,
        hint: expect.stringContaining(' --ca-cert '),
      })
      expect(user.has('config')).toBe(false)
      const again = await login(`${service.url} --ca-cert ${tls.path}`)
      expect(again).toMatchObject({ code: 0, status: { checked: true } })
    },
  )

  test.each<[string, ScriptedResponse, string]>([
    ['501 with a web page', buildPage(501), 'answered 501 with a web page'],
    ['200 with a web page', buildPage(200), 'answered 200 with a web page'],
    ['400 with a web page', buildPage(400), 'answered 400 with a web page'],
    ['404', no(404, 404), 'answered 404: No'],
    ['405 with nothing', buildResponse(405), 'answered 405 with nothing'],
    [
      '200 with other JSON',
      buildResponse(200, '{"ok":true}', { 'Content-Type': 'application/json' }),
      'answered 200 with ',
    ],
    ['204', buildResponse(204), 'answered 204 with nothing'],
    [
      '303 to a page to log in',
      buildResponse(303, '', { Location: '/login' }),
      'answered 303, and redirects to ',
    ],
  ])('when the server is not a Plant Store: it answers %s', async (_, answer, problem) => {
    const { url } = await ScriptedServer.listen({ posts: [answer] })
    const { code, status, error } = await login(url)
    const message = expect.stringContaining(`This is not a Plant Store: ${url} ${problem}`)
    const hint = expect.stringContaining('base URL')
    expect({ code, status, error }).toMatchObject({ code: 4, error: { error: 503, message, hint } })
    expect(status).toBeUndefined()
    expect(user.has('config')).toBe(false)
  })

  test('when the service has moved', async () => {
    const Location = 'https://plants.example.com/v2/plants'
    const service = await ScriptedServer.listen({ posts: [no(301, 301, { Location })] })
    const { code, error } = await login(service.url)
    expect(code).toBe(4)
    expect(error.hint).toBe('If the new address is right, use it with --store')
    expect(user.has('config')).toBe(false)
  })

  test.each([
    ['blanks', ' \r\n\t'],
    ['two lines', 's3cret\ns3cret'],
    ['what is no token', 's3=cret'],
    ['more than 4096 characters', 's3cret'.repeat(683)],
    ['more than 1 MiB', 's3cret'.repeat(500_000)],
    ['other bytes than UTF-8', Buffer.from('s3cret\xff\xfe', 'latin1')],
  ])('without asking for %s', async (_, stdin) => {
    const service = await ScriptedServer.listen({ posts: [acceptingResponse] })
    expect(await login(service.url, stdin)).toMatchObject({ code: 2 })
    expect([user.has('config'), service.connections]).toEqual([false, 0])
  })
})

test('logout removes only the token of its address', async () => {
  const [one, other] = ['https://plants.example.com', 'https://other.example.com']
  user.save({ tokens: buildSavedTokens(one), timeout: '1m' })
  for (const [address, removed, tokens] of [
    [other, false, buildSavedTokens(one)],
    [one, true, {}],
  ] as const) {
    const { out } = await user.run(`auth logout --store ${address} --output json`)
    expect(JSON.parse(out)).toMatchObject({ removed })
    expect(user.saved).toEqual({ version: 1, tokens, timeout: '1m' })
  }
})
