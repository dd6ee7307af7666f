import { lookup } from 'node:dns/promises'
import { writeFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { PlantsError } from '../../../src/platform/errors.js'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { closedPort, Hostile, json } from '../../helpers/hostile.js'
import { plants } from '../../helpers/process.js'
import { forwardProxy } from '../../helpers/proxy.js'
import { createAt, ownService, socketPath, token } from '../../helpers/remote.js'
import { runPlants } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const posts = [json(200, { name: 'Fern' })]
const created = { code: 0, out: '{"name":"Fern"}\n', said: [], requests: ['POST /plants'] }
const argv = ['create', '--id', '1', '--name', 'Fern', '--output', 'json', '--timeout', '5s', '--store']
const env = { PLANTS_TOKEN: token }

/** Addresses of this machine that are not loopback, if it has any: in a URL, and as a server takes them. */
const outside = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
const ipv4 = outside.find(({ family }) => family === 'IPv4')?.address
const ipv6 = outside.find(({ family }) => family === 'IPv6')?.address
const hasIpv6 = Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === '::1'))
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
    const { code, out } = await runPlants([...argv, 'unix:p.sock:/v1'], { env, cwd: path.replace(/\/p\.sock$/, '') })
    expect({ code, out }).toEqual({ code: 0, out: '{"name":"Fern"}\n' })
  })

  test.each([
    ['http://user:hunter2@127.0.0.1', 'holds a user name or a password; a store takes a token'],
    ['http://hunter2@127.0.0.1', 'holds a user name or a password; a store takes a token'],
    ['http://127.0.0.1/?token=hunter2', 'is a base url, which has no "?" and no "#"'],
    ['http://127.0.0.1/#', 'is a base url, which has no "?" and no "#"'],
    ['http://127.0.0.1:99999', 'is not a valid URL'],
    ['http:127.0.0.1', 'is not a valid URL'],
    ['http://', 'is not a valid URL'],
    ['unix:', 'names no socket'],
  ])('is refused when it is none: %s', async (store, why) => {
    const { code, out, err } = await runPlants([...argv, store], { env })
    expect({ code, out, ...JSON.parse(err) }).toMatchObject({ code: 2, out: '', error: 400, message: `--store ${why}` })
    expect(err).not.toContain('hunter2')
  })
})

describe('what cannot be reached is told apart', () => {
  const rest = { error: 503, retryable: true }
  const noName = `${'x'.repeat(64)}.example.com` // longer than a label may be: no network is asked

  test.each([
    [`https://${noName}`, `the name ${noName} is not known`, 'Check the address for typing errors', false],
    ['unix:/nonexistent/p.sock', 'there is no socket at /nonexistent/p.sock', 'Is it running? Try: plants serve --socket PATH', true],
  ])('%s', async (store, why, hint, isRetried) => {
    const { code, out, err } = await runPlants([...argv, store, '--timeout', '1s'], { env })
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
    const { code } = await runPlants([...argv, `http://127.0.0.1:${closedPort}`, '--timeout', '30s', ...flags], { env })
    const time = performance.now() - start
    expect({ code, isLong: time >= least, isShort: time < 10_000 }).toEqual({ code: 4, isLong: true, isShort: true })
  })

  test('a service that refuses connections for longer than the time-out, when --retry says so', async () => {
    const { code, err } = await runPlants([...argv, `http://127.0.0.1:${closedPort}`, '--timeout', '100ms', '--retry', '1s'], { env })
    expect({ code, err: err.split('\n')[0] }).toEqual({ code: 4, err: expect.stringContaining('Trying again for up to 1 s') })
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

  test('and the program ends with its time-out, whatever is still on its way', async () => {
    const remote = await Hostile.listen({})
    const store = remote.url.replace('http', 'https')
    const { code } = await plants([...argv, store, '--timeout', '1s'], temporaryFolder(), { env, timeout: 5000 })
    expect(code).toBe(4)
  })

  test('a service that speaks no TLS', async () => {
    const remote = await Hostile.listen({ onConnect: (socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n') })
    const store = remote.url.replace('http', 'https')
    const { code, said, requests } = await createAt(remote, ['--store', store, '--timeout', '1s'])
    const hint = 'Try http:// for a service on this machine'
    expect({ code, requests, error: said.at(-1) }).toEqual({
      code: 4,
      requests: [],
      error: { ...rest, message: `Could not reach ${store}: TLS failed, because the other side does not speak it`, hint },
    })
  })

  test('a socket whose path is too long for the system, which would cut it', async () => {
    const path = `${temporaryFolder()}/`.padEnd(108, 'x')
    const other = await Hostile.listen({ posts, place: { path } })
    const { code, out } = await createAt(other, ['--store', `unix:${path}yz`, '--timeout', '1s'])
    expect({ code, out, connections: other.connections }).toEqual({ code: 2, out: '', connections: 0 })
  })
})

describe.runIf(hasOpenssl)('TLS (needs openssl)', () => {
  const names = ['DNS:localhost', 'IP:127.0.0.1', ...[ipv4 ?? [], ipv6 ?? []].flat().map((address) => `IP:${address}`)]
  const untrusted = 'TLS failed, because nobody whom this machine trusts has signed its certificate'
  const giveCa = 'If you know who has, give their certificate with --ca-cert FILE'

  test('a certificate that signs itself is trusted when --ca-cert says so', async () => {
    const own = certificate({ names })
    const remote = await Hostile.listen({ posts, tls: own })
    expect(await createAt(remote, ['--ca-cert', own.path])).toEqual(created)
  })

  test('a certificate of an authority is trusted when --ca-cert names that', async () => {
    const issuer = certificate({ names: ['DNS:authority'], isAuthority: true })
    const remote = await Hostile.listen({ posts, tls: certificate({ names, issuer }) })
    const both = join(temporaryFolder(), 'both.pem')
    writeFileSync(both, `${certificate({ names: ['DNS:another'] }).cert}${issuer.cert}`)
    expect(await createAt(remote, ['--ca-cert', both, '--store', `https://localhost:${remote.port}/v1/`])).toEqual({
      ...created,
      requests: ['POST /v1/plants'],
    })
  })

  test.each<[string, () => { tls: ReturnType<typeof certificate>; flags?: string[] }, string, string]>([
    ['signs itself', () => ({ tls: certificate({ names }) }), untrusted, giveCa],
    [
      'an unknown authority has signed',
      () => ({ tls: certificate({ names, issuer: certificate({ names, isAuthority: true }) }) }),
      untrusted,
      giveCa,
    ],
    [
      'another authority has signed',
      () => ({ tls: certificate({ names }), flags: ['--ca-cert', certificate({ names }).path] }),
      'TLS failed, because none of the certificates given with --ca-cert has signed its own',
      'Give the one that has',
    ],
    [
      'is for another name',
      () => trusted(certificate({ names: ['DNS:plants.example.com'] })),
      'TLS failed, because its certificate is for another name',
      'Check the address',
    ],
    [
      'has expired',
      () => trusted(certificate({ names, isExpired: true })),
      'TLS failed, because its certificate is not valid today',
      'Check the clock, or ask its operator',
    ],
  ])('sends nothing to whoever shows a certificate that %s, and does not ask again', async (_, show, why, hint) => {
    const { tls, flags = [] } = show()
    const remote = await Hostile.listen({ posts, tls })
    const message = `Could not reach URL: ${why}`
    expect(await createAt(remote, ['--timeout', '1s', ...flags])).toEqual({
      code: 4,
      out: '',
      said: [{ error: 503, message, hint, retryable: true }],
      requests: [],
    })
    expect(remote.bytes).toHaveLength(0)
  })

  function trusted(tls: ReturnType<typeof certificate>) {
    return { tls, flags: ['--ca-cert', tls.path] }
  }

  test('a certificate that somebody has signed who may not is what TLS failed for', async () => {
    const issuer = certificate({ names: ['DNS:no-authority'] })
    const remote = await Hostile.listen({ posts, tls: certificate({ names, issuer }) })
    const { code, said, requests } = await createAt(remote, ['--ca-cert', issuer.path, '--timeout', '1s'])
    expect({ code, requests, error: said.at(-1) }).toMatchObject({
      code: 4,
      requests: [],
      error: { error: 503, message: expect.stringMatching(/^Could not reach URL: TLS failed/), retryable: true },
    })
  })

  test.each<[string, string | undefined, string]>([
    ['is not there', undefined, 'Could not read FILE: there is no such file'],
    ['holds none', 'hello', 'FILE holds no PEM certificate'],
    ['holds a broken one', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n', 'FILE holds a certificate that is broken'],
  ])('a file of certificates that %s is wrong usage', async (_, content, message) => {
    const path = join(temporaryFolder(), 'ca.pem')
    if (content !== undefined) writeFileSync(path, content)
    const remote = await Hostile.listen({ posts, tls: certificate({ names }) })
    const { code, said } = await createAt(remote, ['--ca-cert', path, '--timeout', '1s'])
    expect({ code, said }).toEqual({
      code: 2,
      said: [{ error: 400, message: message.replace('FILE', path), hint: 'Give a file of PEM certificates with --ca-cert' }],
    })
    expect(remote.connections).toBe(0)
  })

  test('NODE_EXTRA_CA_CERTS is trusted, unless --ca-cert says whom to trust instead', async () => {
    const own = certificate({ names })
    const remote = await Hostile.listen({ posts, tls: own })
    const extra = { ...env, NODE_EXTRA_CA_CERTS: own.path }
    const folder = temporaryFolder()
    expect(await plants([...argv, remote.url], folder, { env: extra })).toEqual({ code: 0, out: '{"name":"Fern"}\n', err: '' })
    const flags = ['--ca-cert', certificate({ names }).path, '--timeout', '1s']
    expect((await plants([...argv, remote.url, ...flags], folder, { env: extra })).code).toBe(4)
    expect(remote.lines).toEqual(['POST /plants'])
  })

  test('the token does not go without TLS where TLS is spoken', async () => {
    const remote = await Hostile.listen({ posts, tls: certificate({ names }) })
    const { code, out } = await createAt(remote, ['--store', remote.url.replace('https', 'http'), '--timeout', '1s'])
    expect({ code, out, requests: remote.lines }).toEqual({ code: 5, out: '', requests: [] })
  })

  describe.runIf(ipv4)('through a proxy (needs an address that is not loopback)', () => {
    test.each(['HTTPS_PROXY', 'https_proxy'])('which %s names, by a tunnel', async (name) => {
      const own = certificate({ names })
      const proxy = await forwardProxy()
      const remote = await Hostile.listen({ posts, tls: own, place: { host: `${ipv4}`, port: 0 } })
      const store = `https://${ipv4}:${remote.port}`
      expect(await createAt(remote, ['--store', store, '--ca-cert', own.path], { [name]: proxy.url })).toEqual(created)
      expect(proxy.passed).toEqual([`CONNECT ${ipv4}:${remote.port}`])
    })

    test('to which it gives the password of the proxy, and never shows it', async () => {
      const own = certificate({ names })
      const proxy = await forwardProxy()
      const remote = await Hostile.listen({ posts, tls: own, place: { host: `${ipv4}`, port: 0 } })
      const flags = ['--store', `https://${ipv4}:${remote.port}`, '--ca-cert', own.path]
      expect(await createAt(remote, flags, { HTTPS_PROXY: proxy.url.replace('//', '//me:hunter%32@') })).toEqual(created)
      expect(proxy.credentials).toEqual([`Basic ${Buffer.from('me:hunter2').toString('base64')}`])
    })

    test('whose certificate it checks all the same', async () => {
      const proxy = await forwardProxy()
      const remote = await Hostile.listen({ posts, tls: certificate({ names }), place: { host: `${ipv4}`, port: 0 } })
      const store = `https://${ipv4}:${remote.port}`
      const { code, said, requests } = await createAt(remote, ['--store', store, '--timeout', '1s'], { HTTPS_PROXY: proxy.url })
      expect({ code, requests, error: said.at(-1) }).toEqual({
        code: 4,
        requests: [],
        error: { error: 503, message: expect.stringContaining(untrusted), hint: expect.stringContaining('--ca-cert'), retryable: true },
      })
      expect(proxy.passed[0]).toBe(`CONNECT ${ipv4}:${remote.port}`)
    })

    test.each([403, 407, 502])('that answers %s: nothing was sent, and the message names the proxy', async (status) => {
      const own = certificate({ names })
      const proxy = await forwardProxy(status)
      const remote = await Hostile.listen({ posts, tls: own, place: { host: `${ipv4}`, port: 0 } })
      const flags = ['--store', `https://${ipv4}:${remote.port}`, '--ca-cert', own.path, '--timeout', '1s']
      const { code, out, said } = await createAt(remote, flags, { HTTPS_PROXY: proxy.url })
      expect({ code, out, connections: remote.connections }).toEqual({ code: 4, out: '', connections: 0 })
      expect(said.at(-1)).toEqual({
        error: 503,
        message: expect.stringMatching(new RegExp(`proxy.*${status}`, 'i')),
        hint: expect.stringMatching(/proxy/i),
        retryable: true,
      })
      expect(proxy.passed[0]).toBe(`CONNECT ${ipv4}:${remote.port}`)
    })
  })
})

describe.runIf(ipv4)('an address that is not loopback (needs one)', () => {
  const place = { host: `${ipv4}`, port: 0 }
  const addressOf = ({ port }: Hostile) => `http://${ipv4}:${port}`

  test('gets no token without TLS, unless --allow-http says so', async () => {
    const remote = await Hostile.listen({ posts, place })
    const store = addressOf(remote)
    expect(await createAt(remote, ['--store', store])).toEqual({
      code: 2,
      out: '',
      said: [
        {
          error: 400,
          message: `The token is not sent to ${store}: without TLS others could read it`,
          hint: 'Use https://, or, where the network is yours alone, add --allow-http',
        },
      ],
      requests: [],
    })
    expect(remote.connections).toBe(0)
    expect(await createAt(remote, ['--store', store, '--allow-http'])).toEqual(created)
  })

  test.each([
    ['HTTP_PROXY', {}, true],
    ['http_proxy', {}, true],
    ['HTTPS_PROXY', {}, false],
    ['ALL_PROXY', {}, false],
    ['HTTP_PROXY', { NO_PROXY: 'example.com' }, true],
    ['HTTP_PROXY', { NO_PROXY: `example.com, ${ipv4}` }, false],
    ['HTTP_PROXY', { no_proxy: `${ipv4}` }, false],
    ['HTTP_PROXY', { NO_PROXY: `${ipv4}:PORT` }, false],
    ['HTTP_PROXY', { NO_PROXY: `${ipv4}:1` }, true],
    ['HTTP_PROXY', { NO_PROXY: '*' }, false],
    ['HTTP_PROXY', { NO_PROXY: `10.255.0.0/16,${ipv4}/32` }, false],
    ['HTTP_PROXY', { NO_PROXY: `${ipv4}/8` }, false],
    ['HTTP_PROXY', { NO_PROXY: `${ipv4}/33, ${ipv4}/, ${ipv4}/x, ${ipv4}/-1` }, true],
    ['HTTP_PROXY', { NO_PROXY: `${ipv4}`.slice(1) }, true],
  ])('is reached through the proxy of %s with %j: %s', async (name, others, isProxied) => {
    const proxy = await forwardProxy()
    const remote = await Hostile.listen({ posts, place })
    const exceptions = Object.fromEntries(Object.entries(others).map(([key, value]) => [key, value.replace('PORT', `${remote.port}`)]))
    const flags = ['--store', `${addressOf(remote)}/v1`, '--allow-http']
    const result = await createAt(remote, flags, { [name]: proxy.url, ...exceptions })
    expect(result).toEqual({ ...created, requests: ['POST /v1/plants'] })
    expect(proxy.passed).toEqual(isProxied ? [`POST ${addressOf(remote)}/v1/plants`] : [])
    expect(remote.posts[0]?.headers['host']).toBe(`${ipv4}:${remote.port}`)
  })

  test('a proxy that wants a password has sent nothing on', async () => {
    const proxy = await forwardProxy(407)
    const remote = await Hostile.listen({ posts, place })
    const flags = ['--store', addressOf(remote), '--allow-http', '--timeout', '1s']
    const { code, out, said } = await createAt(remote, flags, { HTTP_PROXY: proxy.url })
    expect({ code, out, connections: remote.connections }).toEqual({ code: 4, out: '', connections: 0 })
    expect(said.at(-1)).toMatchObject({ error: 503, message: expect.stringMatching(/proxy.*407/i) })
  })

  test('a proxy that is not there is what the message names', async () => {
    const url = `http://127.0.0.1:${closedPort}`
    const remote = await Hostile.listen({ posts, place })
    const flags = ['--store', addressOf(remote), '--allow-http', '--timeout', '1s']
    const { code, said } = await createAt(remote, flags, { HTTP_PROXY: url })
    expect({ code, connections: remote.connections }).toEqual({ code: 4, connections: 0 })
    expect(said.at(-1)).toMatchObject({ error: 503, message: expect.stringContaining(url.replace('http://', '')) })
  })

  test('a proxy that NO_PROXY leaves out is not what the message names', async () => {
    const remote = await Hostile.listen({ place })
    const store = `http://${ipv4}:${closedPort}`
    const proxy = await forwardProxy()
    const flags = ['--store', store, '--allow-http', '--timeout', '1s']
    const { code, said } = await createAt(remote, flags, { HTTP_PROXY: proxy.url, NO_PROXY: '*' })
    expect({ code, error: said.at(-1), passed: proxy.passed }).toEqual({
      code: 4,
      error: {
        error: 503,
        message: `Could not reach ${store}: the connection was refused`,
        hint: 'Is it running? Try: plants serve',
        retryable: true,
      },
      passed: [],
    })
  })

  test('a proxy may be given without http://', async () => {
    const proxy = await forwardProxy()
    const remote = await Hostile.listen({ posts, place })
    const flags = ['--store', addressOf(remote), '--allow-http']
    expect(await createAt(remote, flags, { HTTP_PROXY: proxy.url.replace('http://', '') })).toEqual(created)
    expect(proxy.passed).toEqual([`POST ${addressOf(remote)}/plants`])
  })

  test.each([
    'non sense',
    'ftp://127.0.0.1',
    'socks5://me:hunter2@127.0.0.1',
    'http://me:hunter2%zz@127.0.0.1',
    'http://hunter2%:x@127.0.0.1',
  ])('a proxy that is no URL of one is wrong usage: %s', async (proxy) => {
    const remote = await Hostile.listen({ posts, place })
    const { code, said } = await createAt(remote, ['--store', addressOf(remote), '--allow-http'], { HTTP_PROXY: proxy })
    expect({ code, said, connections: remote.connections }).toMatchObject({
      code: 2,
      said: [{ error: 400, message: expect.stringContaining('HTTP_PROXY') }],
      connections: 0,
    })
    expect(JSON.stringify(said)).not.toContain('hunter2')
  })
})

test.runIf(ipv6)('an address of IPv6 that is not loopback gets no token without TLS either (needs one)', async () => {
  const remote = await Hostile.listen({ posts, place: { host: `${ipv6}`, port: 0 } })
  const store = `http://[${ipv6}]:${remote.port}`
  expect((await createAt(remote, ['--store', store])).code).toBe(2)
  expect(remote.connections).toBe(0)
  expect(await createAt(remote, ['--store', store, '--allow-http'])).toEqual(created)
})

test.each(['http://0.0.0.0', 'http://[::]', 'http://localhost.example.com', 'http://127.0.0.1.example.com', 'http://[::ffff:192.0.2.1]'])(
  '%s is not loopback',
  async (store) => {
    const { code, err } = await runPlants([...argv, store], { env })
    expect({ code, ...JSON.parse(err) }).toMatchObject({ code: 2, message: expect.stringMatching(/^The token is not sent to /) })
  },
)

test.each(['127.0.0.1', 'localhost', ...(hasIpv6 ? ['[::1]'] : [])])('a proxy is not asked about this machine: %s', async (host) => {
  const proxy = await forwardProxy()
  const remote = await Hostile.listen({ posts, place: { host: host === '[::1]' ? '::1' : '127.0.0.1', port: 0 } })
  const variables = { HTTP_PROXY: proxy.url, http_proxy: proxy.url, HTTPS_PROXY: proxy.url, ALL_PROXY: proxy.url }
  expect(await createAt(remote, ['--store', `http://${host}:${remote.port}`], variables)).toEqual(created)
  expect(proxy.passed).toEqual([])
})

test.each(['http://localhost.:1', 'http://plants.localhost:1', 'http://127.1:1'])(
  'a proxy is not asked about this machine by another name: %s',
  async (store) => {
    const signal = AbortSignal.abort(new PlantsError('interrupted', 'Interrupted before anything was sent'))
    const variables = { ...env, HTTP_PROXY: 'http://127.0.0.1:1' }
    const { code, err } = await runPlants([...argv, store, '--allow-http', '-v'], { env: variables, signal })
    expect({ code, isProxied: err.includes('{"verbose":"proxy"') }).toEqual({ code: 130, isProxied: false })
  },
)

test('a proxy is not asked about a socket either', async () => {
  const proxy = await forwardProxy()
  const path = socketPath()
  const remote = await Hostile.listen({ posts, place: { path } })
  expect(await createAt(remote, ['--store', `unix:${path}`], { HTTP_PROXY: proxy.url })).toEqual(created)
  expect(proxy.passed).toEqual([])
})

describe('NO_PROXY', () => {
  test.each<[string, string, boolean]>([
    ['10.0.0.0/8', 'http://10.1.2.3', true],
    ['10.0.0.0/8', 'http://11.1.2.3', false],
    ['10.0.0.0/8', 'http://10.example.com', false],
    ['192.0.2.128/25', 'http://192.0.2.129', true],
    ['192.0.2.128/25', 'http://192.0.2.127', false],
    ['0.0.0.0/0', 'http://192.0.2.1', true],
    ['0.0.0.0/0', 'http://plants.example.com', false],
    ['0.0.0.0/0', 'http://[fd00::1]', false],
    ['fd00::/8', 'http://[fd12:3456::1]', true],
    ['fd00::/8', 'http://[fe12:3456::1]', false],
    ['::/0', 'http://10.1.2.3', false],
    ['fd00::/129', 'http://[fd00::]', false],
    ['fd00::1', 'http://[fd00::1]', true],
    ['fd00::1', 'http://[fd00::1]:8080', true],
    ['fd00::1', 'http://[fd00::2]', false],
    ['FD00:0:0::1', 'http://[fd00::1]', true],
    ['[fd00::1]', 'http://[fd00::1]', true],
    ['[fd00::1]:80', 'http://[fd00::1]', true],
    ['[fd00::1]:8080', 'http://[fd00::1]:8080', true],
    ['[fd00::1]:8080', 'http://[fd00::1]', false],
    ['plants.example.com', 'http://plants.example.com.', true],
    ['plants.example.com.', 'http://plants.example.com', true],
    ['example.com.', 'http://plants.example.com', true],
    ['.example.com.', 'https://plants.example.com.:8443', true],
    ['example.com.:80', 'http://plants.example.com', true],
    ['example.com.:81', 'http://plants.example.com', false],
    ['.', 'http://plants.example.com', false],
    [', ,', 'http://plants.example.com', false],
    ['PLANTS.example.com', 'http://plants.EXAMPLE.com', true],
    ['ants.example.com', 'http://plants.example.com', false],
    ['fd00::2 10.0.0.0/8\tplants.example.com', 'http://10.0.0.1', true],
  ])('%j keeps from a proxy what is at %s: %s', async (noProxy, url, isExcepted) => {
    const signal = AbortSignal.abort(new PlantsError('interrupted', 'Interrupted before anything was sent')) // no network is asked
    for (const name of ['NO_PROXY', 'no_proxy']) {
      const variables = { ...env, HTTP_PROXY: 'http://127.0.0.1:1', HTTPS_PROXY: 'http://127.0.0.1:1', [name]: noProxy }
      const { code, err } = await runPlants([...argv, url, '--allow-http', '-v'], { env: variables, signal })
      expect({ code, isProxied: err.includes('{"verbose":"proxy","host":"127.0.0.1:1"}') }).toEqual({ code: 130, isProxied: !isExcepted })
    }
  })
})

test.each(['http://me:s3cret%@127.0.0.1:1', 'http://s3cr%et:x@127.0.0.1:1', 'https://me:s3cret%zz@127.0.0.1:1', 'me:%s3cret@127.0.0.1:1'])(
  'a "%" in the user or the password of a proxy that stands for nothing is wrong usage: %s',
  async (proxy) => {
    const message = 'HTTPS_PROXY is not the address of an http or https proxy'
    const hint = 'In its user name and password, "%" is written as %25'
    const variables = { ...env, HTTPS_PROXY: proxy }
    const { code, out, err } = await runPlants([...argv, 'https://plants.example.com'], { env: variables })
    expect({ code, out, ...JSON.parse(err) }).toEqual({ code: 2, out: '', error: 400, message, hint })
    const doctor = await runPlants(['doctor', '--store', 'https://plants.example.com'], { env: variables })
    const findings = doctor.out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect({ code: doctor.code, last: findings.at(-1).check }).toEqual({ code: 1, last: 'terminal' })
    expect(findings.filter(({ state }) => state === 'failed').map((finding) => finding.message)).toEqual([message, message])
  },
)
