import { lookup } from 'node:dns/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { closedPort, Hostile, json } from '../../../helpers/hostile.js'
import { hasIpv6 } from '../../../helpers/own-addresses.js'
import { createAt, ownService, socketPath, token } from '../../../helpers/remote.js'
import { runPlants, withUsual } from '../../../helpers/run.js'
import { temporaryFolder } from '../../../helpers/temporary.js'

const posts = [json(200, { name: 'Fern' })]
const created = { code: 0, out: '{"name":"Fern"}\n', said: [], requests: ['POST /plants'] }
const fern = ['create', '--id', '1', '--name', 'Fern', '--output', 'json', '--store']
const atStore = (...words: string[]) => withUsual({ '--timeout': '5s' }, [...fern, ...words])
const env = { PLANTS_TOKEN: token }
const loopbacks = await lookup('localhost', { all: true })

describe('a base url', () => {
  test.each([
    ['', 'POST /plants'],
    ['/', 'POST /plants'],
    ['//', 'POST /plants'],
    ['/v1', 'POST /v1/plants'],
    ['/v1/', 'POST /v1/plants'],
    ['/a/b/c', 'POST /a/b/c/plants'],
    ['/a/../b/.', 'POST /b/plants'],
    ['/caf\u00e9 1', 'POST /caf%C3%A9%201/plants'],
    ['/a%2Fb', 'POST /a%2Fb/plants'],
    ['/plants', 'POST /plants/plants'],
  ])('with the path %j', async (path, line) => {
    const remote = await Hostile.listen({ posts })
    expect(await createAt(remote, ['--store', `${remote.url}${path}`])).toEqual({ ...created, requests: [line] })
  })

  test.each([
    ['localhost', '127.0.0.1'],
    ['LOCALHOST', '127.0.0.1'],
    ['127.1', '127.0.0.1'],
    ['127.0.0.1', '0.0.0.0'],
  ])('with the host %s', async (host, listening) => {
    const remote = await Hostile.listen({ posts, place: { host: listening, port: 0 } })
    expect(await createAt(remote, ['--store', `HTTP://${host}:${remote.port}`])).toEqual(created)
    const { host: sent } = remote.posts[0]?.headers ?? {}
    expect(sent).toBe(`${host === '127.1' ? '127.0.0.1' : host.toLowerCase()}:${remote.port}`)
  })

  test.runIf(hasIpv6)('with the host [::1] (needs IPv6)', async () => {
    const remote = await Hostile.listen({ posts, place: { host: '::1', port: 0 } })
    expect(await createAt(remote, ['--store', `http://[0:0:0:0:0:0:0:1]:${remote.port}/v1`])).toEqual({
      ...created,
      requests: ['POST /v1/plants'],
    })
    expect(remote.posts[0]?.headers['host']).toBe(`[::1]:${remote.port}`)
  })

  test.runIf(loopbacks.length > 1).each(['127.0.0.1', '::1'])(
    'with localhost, which is both, and a service at %s (needs both in the hosts file)',
    async (host) => {
      const remote = await Hostile.listen({ posts, place: { host, port: 0 } })
      expect(await createAt(remote, ['--store', `http://localhost:${remote.port}`])).toEqual(created)
    },
  )

  test.each([
    ['unix:PATH', 'POST /plants'],
    ['UNIX:PATH', 'POST /plants'],
    ['unix:PATH:/', 'POST /plants'],
    ['unix:PATH:/v1', 'POST /v1/plants'],
    ['unix:PATH:/v1/', 'POST /v1/plants'],
  ])('with the socket %s', async (address, line) => {
    const path = socketPath()
    const remote = await Hostile.listen({ posts, place: { path } })
    expect(await createAt(remote, ['--store', address.replace('PATH', path)])).toEqual({ ...created, requests: [line] })
    expect(remote.posts[0]?.headers['host']).toBe('localhost')
  })

  test('with the path of a socket below the current folder', async () => {
    const path = socketPath()
    await ownService({ path }, join(temporaryFolder(), 'plants.db'), '/v1')
    const { code, out } = await runPlants(atStore('unix:p.sock:/v1'), { env, cwd: path.replace(/\/p\.sock$/, '') })
    expect({ code, out }).toEqual({ code: 0, out: '{"name":"Fern"}\n' })
  })

  test.each([
    ['http://user:hunter2@127.0.0.1', 'contains a user name or a password, but a service takes a token'],
    ['http://hunter2@127.0.0.1', 'contains a user name or a password, but a service takes a token'],
    ['http://127.0.0.1/?token=hunter2', 'must be a base URL, without "?" and "#"'],
    ['http://127.0.0.1/#', 'must be a base URL, without "?" and "#"'],
    ['http://127.0.0.1:99999', 'is not a valid URL'],
    ['http:127.0.0.1', 'is not a valid URL'],
    ['http://', 'is not a valid URL'],
    ['unix:', 'does not name a socket'],
  ])('is refused when it is none: %s', async (store, why) => {
    const { code, out, err } = await runPlants(atStore(store), { env })
    expect({ code, out, ...JSON.parse(err) }).toMatchObject({ code: 2, out: '', error: 400, message: `--store ${why}` })
    expect(err).not.toContain('hunter2')
  })
})

describe('what cannot be reached is told apart', () => {
  const rest = { error: 503, retryable: true }
  const noName = `${'x'.repeat(64)}.example.com` // longer than a label may be: no network is asked

  test.each([
    [`https://${noName}`, `the host ${noName} is unknown`, 'Check the address for typing errors', false],
    [
      'unix:/nonexistent/p.sock',
      'there is no socket at /nonexistent/p.sock',
      'Is it running? Try: plants serve --socket PATH',
      true,
    ],
  ])('%s', async (store, why, hint, isRetried) => {
    const { code, out, err } = await runPlants(atStore(store, '--timeout', '1s'), { env })
    const message = `Could not reach ${store}: ${why}`
    const said = err
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect({ code, out, said }).toEqual({
      code: 4,
      out: '',
      said: [...(isRetried ? [{ warning: `${message}. Trying again for up to 1 s` }] : []), { ...rest, message, hint }],
    })
  })

  test.each([
    ['2s', [], 1500],
    ['500ms', ['--retry', '500ms'], 0],
    ['0', ['--retry', '0'], 0],
  ])('a service that refuses connections, which is retried for %s', async (_, flags, least) => {
    const start = performance.now()
    const { code } = await runPlants(atStore(`http://127.0.0.1:${closedPort}`, '--timeout', '30s', ...flags), { env })
    const time = performance.now() - start
    expect({ code, isLong: time >= least, isShort: time < 10_000 }).toEqual({ code: 4, isLong: true, isShort: true })
  })

  test('a service that refuses connections for longer than the time-out, when --retry says so', async () => {
    const { code, err } = await runPlants(
      atStore(`http://127.0.0.1:${closedPort}`, '--timeout', '100ms', '--retry', '1s'),
      { env },
    )
    expect({ code, err: err.split('\n')[0] }).toEqual({
      code: 4,
      err: expect.stringContaining('Trying again for up to 1 s'),
    })
  })

  test('a TLS handshake that nobody answers', async () => {
    const remote = await Hostile.listen({})
    const store = remote.url.replace('http', 'https')
    const { code, said, requests } = await createAt(remote, ['--store', store, '--timeout', '1s'])
    const hint = 'Check the address and the network, or wait longer with --timeout 2m'
    expect({ code, said, requests }).toEqual({
      code: 4,
      said: [{ ...rest, message: `Could not reach ${store}: the connection timed out`, hint }],
      requests: [],
    })
  })

  test('a service that speaks no TLS', async () => {
    const remote = await Hostile.listen({ onConnect: (socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n') })
    const store = remote.url.replace('http', 'https')
    const { code, said, requests } = await createAt(remote, ['--store', store, '--timeout', '1s'])
    const hint = 'Try http:// for a service on this machine'
    expect({ code, requests, error: said.at(-1) }).toEqual({
      code: 4,
      requests: [],
      error: { ...rest, message: `Could not reach ${store}: TLS failed: the server does not use TLS`, hint },
    })
  })

  test('a socket whose path is too long for the system, which would cut it', async () => {
    const path = `${temporaryFolder()}/`.padEnd(108, 'x')
    const other = await Hostile.listen({ posts, place: { path } })
    const { code, out } = await createAt(other, ['--store', `unix:${path}yz`, '--timeout', '1s'])
    expect({ code, out, connections: other.connections }).toEqual({ code: 2, out: '', connections: 0 })
  })
})
