import { lookup } from 'node:dns/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { closedPort, Hostile, json } from '../../../helpers/hostile.js'
import { hasIpv6 } from '../../../helpers/own-addresses.js'
import { createAt, created, ownService, socketPath, token } from '../../../helpers/remote.js'
import { runPlants, withUsual } from '../../../helpers/run.js'
import { temporaryFolder } from '../../../helpers/temporary.js'

const posts = [json(200, { name: 'Fern' })]
const fern = ['create', '--id', '1', '--name', 'Fern', '--output', 'json', '--store']
const loopbacks = await lookup('localhost', { all: true })

/** Creates a plant at a store, and reads what is said. */
async function createIn(store: string, flags: string[] = [], cwd?: string) {
  const argv = withUsual({ '--timeout': '5s' }, [...fern, store, ...flags])
  const { code, out, err } = await runPlants(argv, { env: { PLANTS_TOKEN: token }, ...(cwd && { cwd }) })
  const lines = err.split('\n').filter((line) => line !== '')
  return { code, out, err, said: lines.map((line) => JSON.parse(line)) }
}

describe('a base url', () => {
  test.each([
    ['', '/plants'],
    ['/', '/plants'],
    ['//', '/plants'],
    ['/v1/', '/v1/plants'],
    ['/a/b/c', '/a/b/c/plants'],
    ['/a/../b/.', '/b/plants'],
    ['/caf\u00e9 1', '/caf%C3%A9%201/plants'],
    ['/a%2Fb', '/a%2Fb/plants'],
    ['/plants', '/plants/plants'],
  ])('with the path %j', async (path, target) => {
    const remote = await Hostile.listen({ posts })
    const outcome = await createAt(remote, ['--store', `${remote.url}${path}`])
    expect(outcome).toEqual({ ...created, requests: [`POST ${target}`] })
  })

  type Row = [host: string, listening: string, sent: string]

  test.each<Row>([
    ['LOCALHOST', '127.0.0.1', 'localhost'],
    ['127.1', '127.0.0.1', '127.0.0.1'],
    ['127.0.0.1', '0.0.0.0', '127.0.0.1'],
    ...(hasIpv6 ? [['[0:0:0:0:0:0:0:1]', '::1', '[::1]'] satisfies Row] : []),
    // Where the hosts file has both, a service listens at one.
    ...(loopbacks.length > 1 ? loopbacks.map(({ address }): Row => ['localhost', address, 'localhost']) : []),
  ])('with the host %s, and a service at %s', async (host, listening, sent) => {
    const remote = await Hostile.listen({ posts, place: { host: listening, port: 0 } })
    expect(await createAt(remote, ['--store', `HTTP://${host}:${remote.port}`])).toEqual(created)
    expect(remote.posts[0]?.headers['host']).toBe(`${sent}:${remote.port}`)
  })

  test.each([
    ['unix:PATH', '/plants'],
    ['UNIX:PATH', '/plants'],
    ['unix:PATH:/', '/plants'],
    ['unix:PATH:/v1/', '/v1/plants'],
  ])('with the socket %s', async (address, target) => {
    const path = socketPath()
    const remote = await Hostile.listen({ posts, place: { path } })
    const outcome = await createAt(remote, ['--store', address.replace('PATH', path)])
    expect(outcome).toEqual({ ...created, requests: [`POST ${target}`] })
    expect(remote.posts[0]?.headers['host']).toBe('localhost')
  })

  test('with the path of a socket below the current folder', async () => {
    const path = socketPath()
    await ownService({ path }, join(temporaryFolder(), 'plants.db'), '/v1')
    const { code, out } = await createIn('unix:p.sock:/v1', [], path.replace(/\/p\.sock$/, ''))
    expect({ code, out }).toEqual({ code: 0, out: '{"name":"Fern"}\n' })
  })

  test.each([
    ['http://user:hunter2@127.0.0.1', 'contains a user name or a password, but a service takes a token'],
    ['http://127.0.0.1/?token=hunter2', 'must be a base URL, without "?" and "#"'],
    ['http:127.0.0.1', 'is not a valid URL'],
    ['unix:', 'does not name a socket'],
  ])('is rejected: %s', async (store, why) => {
    const { code, err, said } = await createIn(store)
    expect({ code, said }).toMatchObject({ code: 2, said: [{ error: 400, message: `--store ${why}` }] })
    expect(err).not.toContain('hunter2')
  })
})

describe('an error tells why a service could not be reached:', () => {
  const noName = `${'x'.repeat(64)}.example.com` // longer than a label may be: no network is asked
  const running = 'Is it running? Try: plants serve'

  test.each([
    [`https://${noName}`, `the host ${noName} is unknown`, 'Check the address for typing errors', false],
    [`http://127.0.0.1:${closedPort}`, 'the connection was refused', `${running} --port 9`, true],
    ['unix:/nonexistent/p.sock', 'there is no socket at /nonexistent/p.sock', `${running} --socket PATH`, true],
  ])('%s', async (store, why, hint, isRetried) => {
    const { code, said } = await createIn(store, ['--timeout', '1s'])
    const message = `Could not reach ${store}: ${why}`
    const warning = { warning: `${message}. Trying again for up to 1 s` }
    const error = { error: 503, message, hint, retryable: true }
    expect({ code, said }).toEqual({ code: 4, said: isRetried ? [warning, error] : [error] })
  })

  test.each<[string, string, string, string]>([
    [
      'a TLS handshake without an answer',
      '',
      'the connection timed out',
      'Check the address and the network, or wait longer with --timeout 2m',
    ],
    [
      'a service without TLS',
      'HTTP/1.1 400 Bad Request\r\n\r\n',
      'TLS failed: the server does not use TLS',
      'Try http:// for a service on this machine',
    ],
  ])('%s', async (_, answer, why, hint) => {
    const remote = await Hostile.listen({ onConnect: (socket) => void (answer && socket.end(answer)) })
    const store = remote.url.replace('http', 'https')
    const { code, said, requests } = await createAt(remote, ['--store', store, '--timeout', '1s'])
    const error = { error: 503, message: `Could not reach ${store}: ${why}`, hint, retryable: true }
    expect({ code, requests, error: said.at(-1) }).toEqual({ code: 4, requests: [], error })
  })

  test('a socket whose path is too long for the system, which would cut it', async () => {
    const path = `${temporaryFolder()}/`.padEnd(108, 'x')
    const other = await Hostile.listen({ posts, place: { path } })
    const { code, out } = await createAt(other, ['--store', `unix:${path}yz`, '--timeout', '1s'])
    expect({ code, out, connections: other.connections }).toEqual({ code: 2, out: '', connections: 0 })
  })
})

test.each([
  ['2s', [], 1500],
  ['500ms', ['--retry', '500ms'], 0],
  ['0', ['--retry', '0'], 0],
])('a service that refuses connections is retried for %s', async (_, flags, least) => {
  const start = performance.now()
  const { code } = await createIn(`http://127.0.0.1:${closedPort}`, ['--timeout', '30s', ...flags])
  const time = performance.now() - start
  expect({ code, isLong: time >= least, isShort: time < 10_000 }).toEqual({ code: 4, isLong: true, isShort: true })
})

test('a service that refuses connections is retried for longer than the timeout, if --retry says so', async () => {
  const { code, said } = await createIn(`http://127.0.0.1:${closedPort}`, ['--timeout', '100ms', '--retry', '1s'])
  expect([code, said[0].warning]).toEqual([4, expect.stringContaining('Trying again for up to 1 s')])
})
