import { networkInterfaces } from 'node:os'
import { describe, expect, test } from 'vitest'
import { PlantsError } from '../../../../src/platform/errors.js'
import { certificate, hasOpenssl } from '../../../helpers/certificates.js'
import { closedPort, Hostile, json } from '../../../helpers/hostile.js'
import { forwardProxy } from '../../../helpers/proxy.js'
import { createAt, created, createIn, socketPath, token } from '../../../helpers/remote.js'
import { runPlants } from '../../../helpers/run.js'

const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
const ipv4 = addresses.find(({ internal, family }) => !internal && family === 'IPv4')?.address

const posts = [json(200, { name: 'Fern' })]
const busy = json(503, { error: 503, message: 'Not now' }, { 'Retry-After': 0 })
const place = { host: `${ipv4}`, port: 0 }
const names = ['DNS:localhost', 'IP:127.0.0.1', `IP:${ipv4}`]

async function createdBy(remote: Hostile, variables: Record<string, string>, flags: string[] = []) {
  const store = remote.url.replace('127.0.0.1', `${ipv4}`)
  const outcome = await createAt(remote, ['--store', store, '--allow-http', ...flags], variables)
  return { ...outcome, target: `CONNECT ${ipv4}:${remote.port}`, error: outcome.said.at(-1) }
}

describe.runIf(hasOpenssl && ipv4)('a proxy tunnel (needs openssl, and an address that is not loopback)', () => {
  test('leads to a service with TLS, and is opened once for two requests', async () => {
    const tls = certificate({ names })
    const proxy = await forwardProxy()
    const https_proxy = proxy.url.replace('//', '//me:hunter%32@')
    const remote = await Hostile.listen({ posts: [busy, ...posts], tls, place })
    const { target, code, requests } = await createdBy(remote, { https_proxy }, ['--ca-cert', tls.path])
    expect({ code, requests }).toEqual({ code: 0, requests: ['POST /plants', 'POST /plants'] })
    expect(proxy.passed).toEqual([target])
    expect(proxy.credentials).toEqual([`Basic ${Buffer.from('me:hunter2').toString('base64')}`])
  })

  test.each<[string, string[], boolean, RegExp]>([
    ['an unknown issuer', names, false, /self.signed certificate/],
    ['another IP address', names.slice(0, 2), true, /altnames: IP: .* is not in the cert's list/],
  ])('carries nothing to a service whose certificate is of %s', async (_, certified, isTrusted, message) => {
    const tls = certificate({ names: certified })
    const proxy = await forwardProxy()
    const remote = await Hostile.listen({ posts, tls, place })
    const flags = ['--timeout', '1s', ...(isTrusted ? ['--ca-cert', tls.path] : [])]
    const { code, error, requests, target } = await createdBy(remote, { HTTPS_PROXY: proxy.url }, flags)
    expect({ code, requests, passed: proxy.passed[0] }).toEqual({ code: 4, requests: [], passed: target })
    expect(error).toMatchObject({ error: 503, message: expect.stringMatching(message) })
  })

  test.each([403, 407])('is not opened when the proxy answers %s', async (status) => {
    const proxy = await forwardProxy(status)
    const variables = { HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url }
    const message = expect.stringMatching(new RegExp(`proxy.*${status}`, 'i'))
    for (const tls of [{ tls: certificate({ names }) }, {}]) {
      const remote = await Hostile.listen({ posts, place, ...tls })
      const { code, error } = await createdBy(remote, variables, ['--retry', '0'])
      expect({ code, connections: remote.connections }).toEqual({ code: 4, connections: 0 })
      expect(error).toEqual({ error: 503, message, hint: expect.stringMatching(/proxy/i), retryable: true })
    }
  })
})

describe.runIf(ipv4)('an address that is not loopback (needs one)', () => {
  test.each([
    ['HTTP_PROXY', {}, true],
    ['HTTPS_PROXY', {}, false],
    ['all_proxy', { NO_PROXY: `${ipv4}:1` }, true],
    ['http_proxy', { no_proxy: `${ipv4}` }, false],
  ])('is reached through the proxy of %s with %j: %s', async (name, others: Record<string, string>, isProxied) => {
    const proxy = await forwardProxy()
    const remote = await Hostile.listen({ posts, place })
    const url = name === 'HTTP_PROXY' ? proxy.url.replace('http://', '') : proxy.url
    const { target, ...outcome } = await createdBy(remote, { [name]: url, ...others })
    expect(outcome).toMatchObject(created)
    expect(proxy.passed).toEqual(isProxied ? [target] : [])
    expect(remote.posts[0]?.headers['host']).toBe(`${ipv4}:${remote.port}`)
  })

  test.each([
    [`127.0.0.1:${closedPort}`, 'the connection was refused'],
    [`${'x'.repeat(64)}.example.com:8080`, 'the host is unknown'], // longer than a label may be: no network is asked
  ])('is not reached when its proxy is not there: %s', async (host, why) => {
    const remote = await Hostile.listen({ posts, place })
    const { code, error } = await createdBy(remote, { HTTP_PROXY: `http://${host}` }, ['--timeout', '1s'])
    expect({ code, connections: remote.connections }).toEqual({ code: 4, connections: 0 })
    const message = expect.stringContaining(` through the proxy ${host}: ${why}`)
    expect(error).toMatchObject({ error: 503, message, hint: expect.stringMatching(/HTTP_PROXY/) })
  })
})

test.each(['0.0.0.0', '[::]', 'localhost.example.com', '127.0.0.1.example.com', '[::ffff:192.0.2.1]'])(
  '%s is not loopback',
  async (host) => {
    const { code, err } = await createIn(`http://${host}`)
    expect([code, err]).toEqual([2, expect.stringContaining('"The token is not sent to ')])
  },
)

test.each(['localhost', 'localhost.', 'plants.localhost', '127.1', '[::1]'])(
  'this machine is reached without a proxy at %s',
  async (host) => {
    expect(await isProxied(`http://${host}:1`, {})).toBe(false)
  },
)

test('a Unix socket is reached without a proxy', async () => {
  const { url, passed } = await forwardProxy()
  const path = socketPath()
  const remote = await Hostile.listen({ posts, place: { path } })
  expect(
    await createAt(remote, ['--store', `unix:${path}`], { HTTP_PROXY: url, HTTPS_PROXY: url, ALL_PROXY: url }),
  ).toEqual(created)
  expect(passed).toEqual([])
})

/** Whether a proxy would be asked about an address. No network is asked. */
async function isProxied(store: string, variables: Record<string, string>): Promise<boolean> {
  const signal = AbortSignal.abort(new PlantsError('interrupted', 'Interrupted before anything was sent'))
  const proxies = { HTTP_PROXY: 'http://127.0.0.1:1', HTTPS_PROXY: 'http://127.0.0.1:1' }
  const argv = ['create', '--id', '1', '--name', 'Fern', '--output', 'json', '--allow-http', '-v', '--store', store]
  const { code, err } = await runPlants(argv, { env: { PLANTS_TOKEN: token, ...proxies, ...variables }, signal })
  expect(code).toBe(130)
  return err.includes('{"verbose":"* proxy 127.0.0.1:1"}')
}

test.each<[string, string, boolean]>([
  ['*', 'http://10.1.2.3', true],
  ['10.0.0.0/8', 'http://10.1.2.3', false],
  ['fd00::2 example.com,10.1.2.3', 'http://10.1.2.3', true],
  ['[fd00::1]', 'http://[fd00::1]', true],
  ['[fd00::1]:8080', 'http://[fd00::1]', false],
  ['PLANTS.example.com', 'https://plants.EXAMPLE.com:8443', true],
  ['example.com', 'http://plants.example.com', false],
  ['.example.com:80', 'http://plants.example.com', true],
  ['.example.com:81', 'http://plants.example.com', false],
  [', ,', 'http://plants.example.com', false],
])('NO_PROXY=%j keeps the proxy from %s: %s', async (noProxy, url, isExcepted) => {
  for (const name of ['NO_PROXY', 'no_proxy']) expect(await isProxied(url, { [name]: noProxy })).toBe(!isExcepted)
})

const encoded = 'In its user name and password, "%" is written as %25'
const example = 'For example: HTTPS_PROXY=http://proxy.example.com:3128'

test.each([
  ['non sense', example],
  ['socks5://me:hunter2@127.0.0.1', example],
  ['https://me:hunter2%zz@127.0.0.1:1', encoded],
  ['hunter2%er:x@127.0.0.1:1', encoded],
])('the proxy %s is rejected', async (proxy, hint) => {
  const message = 'HTTPS_PROXY is not the address of an http or https proxy'
  const { code, out, err } = await createIn('https://plants.example.com', [], { HTTPS_PROXY: proxy })
  expect({ code, out, ...JSON.parse(err) }).toEqual({ code: 2, out: '', error: 400, message, hint })
})
