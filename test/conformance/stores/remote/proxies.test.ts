import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { PlantsError } from '../../../../src/platform/errors.js'
import { certificate, hasOpenssl } from '../../../helpers/certificates.js'
import { closedPort, Hostile, json } from '../../../helpers/hostile.js'
import { hasIpv6, ipv4, ipv6 } from '../../../helpers/own-addresses.js'
import { forwardProxy } from '../../../helpers/proxy.js'
import { createAt, socketPath, token } from '../../../helpers/remote.js'
import { open } from '../../../helpers/remote-bulk.js'
import { runPlants } from '../../../helpers/run.js'

const posts = [json(200, { name: 'Fern' })]
const created = { code: 0, out: '{"name":"Fern"}\n', said: [], requests: ['POST /plants'] }
const argv = ['create', '--id', '1', '--name', 'Fern', '--output', 'json', '--timeout', '5s', '--store']
const env = { PLANTS_TOKEN: token }

describe.runIf(hasOpenssl)('TLS (needs openssl)', () => {
  const names = ['DNS:localhost', 'IP:127.0.0.1', ...[ipv4 ?? [], ipv6 ?? []].flat().map((address) => `IP:${address}`)]
  const untrusted = 'TLS failed: its certificate is not trusted (unknown issuer)'

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
      expect(await createAt(remote, flags, { HTTPS_PROXY: proxy.url.replace('//', '//me:hunter%32@') })).toEqual(
        created,
      )
      expect(proxy.credentials).toEqual([`Basic ${Buffer.from('me:hunter2').toString('base64')}`])
    })

    test('whose certificate it checks all the same', async () => {
      const proxy = await forwardProxy()
      const remote = await Hostile.listen({ posts, tls: certificate({ names }), place: { host: `${ipv4}`, port: 0 } })
      const store = `https://${ipv4}:${remote.port}`
      const { code, said, requests } = await createAt(remote, ['--store', store, '--timeout', '1s'], {
        HTTPS_PROXY: proxy.url,
      })
      expect({ code, requests, error: said.at(-1) }).toEqual({
        code: 4,
        requests: [],
        error: {
          error: 503,
          message: expect.stringContaining(untrusted),
          hint: expect.stringContaining('--ca-cert'),
          retryable: true,
        },
      })
      expect(proxy.passed[0]).toBe(`CONNECT ${ipv4}:${remote.port}`)
    })

    test('whose certificate must be for its IP address', async () => {
      const own = certificate({ names: ['DNS:localhost', 'IP:127.0.0.1'] })
      const proxy = await forwardProxy()
      const remote = await Hostile.listen({ posts, tls: own, place: { host: `${ipv4}`, port: 0 } })
      const flags = ['--store', `https://${ipv4}:${remote.port}`, '--ca-cert', own.path, '--timeout', '1s']
      const { code, said, requests } = await createAt(remote, flags, { HTTPS_PROXY: proxy.url })
      const message = expect.stringContaining('TLS failed: its certificate is for another name')
      expect({ code, requests, error: said.at(-1) }).toMatchObject({ code: 4, requests: [], error: { message } })
    })

    test('which opens one tunnel for requests that follow each other', async () => {
      const own = certificate({ names })
      const proxy = await forwardProxy()
      const remote = await Hostile.listen({ posts, tls: own })
      const access = { ca: readFileSync(own.path, 'utf8'), proxy: proxy.url }
      const store = await open(remote.url, { access })
      const creates = []
      for (let count = 0; count < 3; count += 1) creates.push(await store.create({ id: 1n, name: 'Fern' }, {}))
      expect(creates).toHaveLength(3)
      expect([remote.posts.length, proxy.passed]).toEqual([3, [`CONNECT 127.0.0.1:${remote.port}`]])
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
          hint: 'Use https://, or on a network that only you use, add --allow-http',
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
    ['ALL_PROXY', {}, true],
    ['all_proxy', { NO_PROXY: `${ipv4}` }, false],
    ['HTTP_PROXY', { NO_PROXY: 'example.com' }, true],
    ['HTTP_PROXY', { NO_PROXY: `example.com, ${ipv4}` }, false],
    ['HTTP_PROXY', { no_proxy: `${ipv4}` }, false],
    ['HTTP_PROXY', { NO_PROXY: `${ipv4}:PORT` }, false],
    ['HTTP_PROXY', { NO_PROXY: `${ipv4}:1` }, true],
    ['HTTP_PROXY', { NO_PROXY: '*' }, false],
    ['HTTP_PROXY', { NO_PROXY: `${ipv4}/8` }, true],
    ['HTTP_PROXY', { NO_PROXY: `${ipv4}`.slice(1) }, true],
  ])('is reached through the proxy of %s with %j: %s', async (name, others, isProxied) => {
    const proxy = await forwardProxy()
    const remote = await Hostile.listen({ posts, place })
    const exceptions = Object.fromEntries(
      Object.entries(others).map(([key, value]) => [key, value.replace('PORT', `${remote.port}`)]),
    )
    const flags = ['--store', `${addressOf(remote)}/v1`, '--allow-http']
    const result = await createAt(remote, flags, { [name]: proxy.url, ...exceptions })
    expect(result).toEqual({ ...created, requests: ['POST /v1/plants'] })
    expect(proxy.passed).toEqual(isProxied ? [`CONNECT ${ipv4}:${remote.port}`] : [])
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
        hint: 'Is it running? Try: plants serve --port 9',
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
    expect(proxy.passed).toEqual([`CONNECT ${ipv4}:${remote.port}`])
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

test.each([
  'http://0.0.0.0',
  'http://[::]',
  'http://localhost.example.com',
  'http://127.0.0.1.example.com',
  'http://[::ffff:192.0.2.1]',
])('%s is not loopback', async (store) => {
  const { code, err } = await runPlants([...argv, store], { env })
  expect({ code, ...JSON.parse(err) }).toMatchObject({
    code: 2,
    message: expect.stringMatching(/^The token is not sent to /),
  })
})

test.each(['127.0.0.1', 'localhost', ...(hasIpv6 ? ['[::1]'] : [])])(
  'a proxy is not asked about this machine: %s',
  async (host) => {
    const proxy = await forwardProxy()
    const remote = await Hostile.listen({ posts, place: { host: host === '[::1]' ? '::1' : '127.0.0.1', port: 0 } })
    const variables = { HTTP_PROXY: proxy.url, http_proxy: proxy.url, HTTPS_PROXY: proxy.url, ALL_PROXY: proxy.url }
    expect(await createAt(remote, ['--store', `http://${host}:${remote.port}`], variables)).toEqual(created)
    expect(proxy.passed).toEqual([])
  },
)

test.each(['http://localhost.:1', 'http://plants.localhost:1', 'http://127.1:1'])(
  'a proxy is not asked about this machine by another name: %s',
  async (store) => {
    const signal = AbortSignal.abort(new PlantsError('interrupted', 'Interrupted before anything was sent'))
    const variables = { ...env, HTTP_PROXY: 'http://127.0.0.1:1' }
    const { code, err } = await runPlants([...argv, store, '--allow-http', '-v'], { env: variables, signal })
    expect({ code, isProxied: err.includes('{"verbose":"* proxy') }).toEqual({ code: 130, isProxied: false })
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
    ['10.0.0.0/8', 'http://10.1.2.3', false],
    ['10.1.2.3', 'http://10.1.2.3', true],
    ['[fd00::1]', 'http://[fd00::1]', true],
    ['[fd00::1]', 'http://[fd00::2]', false],
    ['[fd00::1]:80', 'http://[fd00::1]', true],
    ['[fd00::1]:8080', 'http://[fd00::1]', false],
    ['plants.example.com', 'http://plants.example.com', true],
    ['plants.example.com', 'https://plants.example.com:8443', true],
    ['example.com', 'http://plants.example.com', false],
    ['.example.com', 'http://plants.example.com', true],
    ['*.example.com', 'https://plants.example.com', true],
    ['.example.com:80', 'http://plants.example.com', true],
    ['.example.com:81', 'http://plants.example.com', false],
    [', ,', 'http://plants.example.com', false],
    ['PLANTS.example.com', 'http://plants.EXAMPLE.com', true],
    ['ants.example.com', 'http://plants.example.com', false],
    ['fd00::2 plants.example.com\t10.0.0.1', 'http://10.0.0.1', true],
  ])('%j keeps from a proxy what is at %s: %s', async (noProxy, url, isExcepted) => {
    // no network is asked
    const signal = AbortSignal.abort(new PlantsError('interrupted', 'Interrupted before anything was sent'))
    for (const name of ['NO_PROXY', 'no_proxy']) {
      const variables = { ...env, HTTP_PROXY: 'http://127.0.0.1:1', HTTPS_PROXY: 'http://127.0.0.1:1', [name]: noProxy }
      const { code, err } = await runPlants([...argv, url, '--allow-http', '-v'], { env: variables, signal })
      expect({ code, isProxied: err.includes('{"verbose":"* proxy 127.0.0.1:1"}') }).toEqual({
        code: 130,
        isProxied: !isExcepted,
      })
    }
  })
})

test.each([
  'http://me:s3cret%@127.0.0.1:1',
  'http://s3cr%et:x@127.0.0.1:1',
  'https://me:s3cret%zz@127.0.0.1:1',
  'me:%s3cret@127.0.0.1:1',
])('a "%" in the user or the password of a proxy that stands for nothing is wrong usage: %s', async (proxy) => {
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
  expect({ code: doctor.code, last: findings.at(-1).check }).toEqual({ code: 1, last: 'proxy' })
  expect(findings.filter(({ state }) => state === 'failed').map((finding) => finding.message)).toEqual([
    message,
    message,
  ])
})
