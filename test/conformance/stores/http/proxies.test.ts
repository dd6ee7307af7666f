import { networkInterfaces } from 'node:os'
import { describe, expect, test } from 'vitest'
import { PlantsError } from '../../../../src/platform/errors.js'
import { certificate, hasOpenssl } from '../../../helpers/certificates.js'
import { closedPort, forwardProxy, Hostile, json } from '../../../helpers/hostile.js'
import { createAt, created, createIn, token } from '../../../helpers/http-store.js'
import { runPlants } from '../../../helpers/run.js'
import { countingClock } from '../../../helpers/time.js'

const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
const ipv4 = addresses.find(({ internal, family }) => !internal && family === 'IPv4')?.address

const posts = [json(200, { name: 'Fern' })]
const busy = json(503, { error: 503, message: 'Not now' }, { 'Retry-After': 0 })
const place = { host: `${ipv4}`, port: 0 }
const names = ['DNS:localhost', 'IP:127.0.0.1', `IP:${ipv4}`]

async function createdBy(
  service: Hostile,
  variables: Record<string, string>,
  flags: string[] = [],
  now?: () => number,
) {
  const store = service.url.replace('127.0.0.1', `${ipv4}`)
  const argv = ['--store', store, '--allow-http', ...flags]
  const { said, ...outcome } = await createAt(service, argv, variables, now)
  return { ...outcome, target: `CONNECT ${ipv4}:${service.port}`, error: said.at(-1) }
}

describe.runIf(hasOpenssl && ipv4)(
  'a proxy tunnel (needs openssl, and an address that is not loopback)',
  () => {
    test('leads to a service with TLS, and is opened once for two requests', async () => {
      const tls = certificate({ names })
      const proxy = await forwardProxy()
      const https_proxy = proxy.url.replace('//', '//me:hunter%32@')
      const service = await Hostile.listen({ posts: [busy, ...posts], tls, place })
      const flags = ['--ca-cert', tls.path]
      const { target, code, requests } = await createdBy(service, { https_proxy }, flags)
      expect({ code, requests }).toEqual({ code: 0, requests: ['POST /plants', 'POST /plants'] })
      expect(proxy.passed).toEqual([target])
      expect(proxy.credentials).toEqual([`Basic ${Buffer.from('me:hunter2').toString('base64')}`])
    })

    test('carries nothing to a service whose certificate is of another IP address', async () => {
      const tls = certificate({ names: names.slice(0, 2) })
      const proxy = await forwardProxy()
      const service = await Hostile.listen({ posts, tls, place })
      const variables = { HTTPS_PROXY: proxy.url }
      const outcome = await createdBy(service, variables, ['--ca-cert', tls.path])
      const { code, error, requests, target } = outcome
      expect([code, requests, proxy.passed[0]]).toEqual([4, [], target])
      expect(error).toMatchObject({ message: expect.stringContaining('altnames') })
    })

    test('is not opened when the proxy answers 407', async () => {
      const proxy = await forwardProxy(407)
      const variables = { HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url }
      for (const tls of [{ tls: certificate({ names }) }, {}]) {
        const service = await Hostile.listen({ posts, place, ...tls })
        const { code, error } = await createdBy(service, variables, ['--retry', '0'])
        expect([code, service.connections]).toEqual([4, 0])
        const message = expect.stringMatching(/proxy.*407/i)
        expect(error).toMatchObject({ error: 503, message, retryable: true })
      }
    })
  },
)

describe.runIf(ipv4)('an address that is not loopback (needs one)', () => {
  test.each<[string, Record<string, string>, boolean]>([
    ['HTTP_PROXY', {}, true],
    ['http_proxy', { no_proxy: `${ipv4}` }, false],
  ])('is reached through the proxy of %s with %j: %s', async (name, others, isProxied) => {
    const proxy = await forwardProxy()
    const service = await Hostile.listen({ posts, place })
    const url = name === 'HTTP_PROXY' ? proxy.url.replace('http://', '') : proxy.url
    const { target, ...outcome } = await createdBy(service, { [name]: url, ...others })
    expect(outcome).toMatchObject({ code: 0, out: created.out })
    expect(proxy.passed).toEqual(isProxied ? [target] : [])
    expect(service.posts[0]?.headers['host']).toBe(`${ipv4}:${service.port}`)
  })

  test('is not reached when its proxy is not there', async () => {
    const service = await Hostile.listen({ posts, place })
    const HTTP_PROXY = `http://127.0.0.1:${closedPort}`
    const { code, error } = await createdBy(service, { HTTP_PROXY }, [], countingClock(300))
    expect([code, service.connections]).toEqual([4, 0])
    const message = expect.stringContaining(`proxy 127.0.0.1:${closedPort}: the connection was`)
    expect(error).toMatchObject({ error: 503, message })
  })
})

test.each(['0.0.0.0', 'localhost.example.com', '127.0.0.1.example.com', '[::ffff:192.0.2.1]'])(
  '%s is not loopback: without TLS it gets no token',
  async (host) => {
    const { code, err } = await createIn(`http://${host}`)
    expect([code, err]).toEqual([2, expect.stringContaining('"The token is not sent to ')])
  },
)

/** Whether a proxy would be asked about an address. No network is asked. */
async function isProxied(store: string, variables: Record<string, string>): Promise<boolean> {
  const signal = AbortSignal.abort(new PlantsError('interrupted', 'Before anything was sent'))
  const proxies = { HTTP_PROXY: 'http://127.0.0.1:1', HTTPS_PROXY: 'http://127.0.0.1:1' }
  const argv = 'create --id 1 --name Fern --output json --allow-http -v --store'.split(' ')
  const env = { PLANTS_TOKEN: token, ...proxies, ...variables }
  const { code, err } = await runPlants([...argv, store], { env, signal })
  expect(code).toBe(130)
  return err.includes('{"verbose":"* proxy 127.0.0.1:1"}')
}

test.each<[string, string, boolean]>([
  ['', 'http://localhost:1', false],
  ['', 'http://127.1:1', false],
  ['', 'http://[::1]:1', false],
  ['fd00::2 example.com,10.1.2.3', 'http://10.1.2.3', false],
  ['PLANTS.example.com', 'https://plants.EXAMPLE.com:8443', false],
])('with NO_PROXY=%j, %s is reached through the proxy: %s', async (noProxy, url, expected) => {
  for (const name of ['NO_PROXY', 'no_proxy'])
    expect(await isProxied(url, { [name]: noProxy })).toBe(expected)
})

test.each(['socks5://me:hunter2@127.0.0.1', 'hunter2%er:x@127.0.0.1:1', 'http://'])(
  'the proxy %s is rejected',
  async (HTTPS_PROXY) => {
    const { code, out, err } = await createIn('https://plants.example.com', [], { HTTPS_PROXY })
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain('HTTPS_PROXY')
    expect(err).not.toContain('hunter2')
  },
)
