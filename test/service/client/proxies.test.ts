import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { PlantsError } from '../../../src/errors.js'
import { createCertificate, hasOpenssl } from '../../helpers/sandbox/certificates.js'
import { createCountingClock } from '../../helpers/sandbox/clock.js'
import { hangLimitsMs } from '../../helpers/sandbox/hang.mjs'
import { runPlants } from '../../helpers/sandbox/run.js'
import { ipv4 } from '../../helpers/scripted-server/proxies.js'
import {
  buildJsonResponse,
  closedPort,
  type ScriptedResponse,
  ScriptedServer,
  startForwardProxy,
} from '../../helpers/scripted-server/scripted-server.js'
import { token } from '../../helpers/scripted-server/service.js'
import { createAt, created, createIn } from './steps.js'

// A service that is reached through a proxy, and a proxy that fails.

const posts = [buildJsonResponse(200, { name: 'Fern' })]

/** Repeats the text as long as somebody reads it. */
function pourOut(socket: Socket, start: string, text: string): void {
  const pour = () => {
    while (!socket.destroyed && socket.write(text.repeat(100)));
  }
  socket.on('drain', pour).write(start)
  pour()
}

const busy = buildJsonResponse(503, { error: 503, message: 'Not now' }, { 'Retry-After': 0 })
const host = `${ipv4}`
const allNames = ['DNS:localhost', 'IP:127.0.0.1', `IP:${ipv4}`]

async function createdThrough(
  service: ScriptedServer,
  variables: Record<string, string>,
  flags: string[] = [],
  now?: () => number,
) {
  const store = service.url.replace('127.0.0.1', `${ipv4}`)
  const argv = ['--store', store, '--allow-http', ...flags]
  const { stderr, ...outcome } = await createAt(service, argv, variables, now)
  const target = service.url.startsWith('https')
    ? `CONNECT ${ipv4}:${service.port}`
    : `POST ${store}/plants`
  return { ...outcome, target, error: stderr.at(-1) }
}

test.runIf(ipv4)(
  'the error names a proxy that answers plain http with endless headers',
  async () => {
    const pour: ScriptedResponse = (socket) =>
      void pourOut(socket, 'HTTP/1.1 200 OK\r\n', `A: ${'a'.repeat(1000)}\r\n`)
    const proxy = await ScriptedServer.listen({ posts: [pour] })
    const service = await ScriptedServer.listen({ posts, host })
    const { code, error } = await createdThrough(service, { http_proxy: proxy.url }, [
      '--retry',
      '0',
    ])
    expect(code).toBe(5)
    const way = `did not answer through the proxy ${new URL(proxy.url).host}`
    const message = expect.stringContaining(`${way}: the response headers are larger than 16 KiB`)
    expect(error).toMatchObject({ error: 504, message })
  },
)

describe.runIf(hasOpenssl && ipv4)(
  'a proxy tunnel (needs openssl, and an address that is not loopback)',
  () => {
    test('leads to a service with TLS, and is opened once for two requests', async () => {
      const tls = createCertificate({ names: allNames })
      const proxy = await startForwardProxy()
      const https_proxy = proxy.url.replace('//', '//me:hunter%32@')
      const service = await ScriptedServer.listen({ posts: [busy, ...posts], tls, host })
      const flags = ['--ca-cert', tls.path]
      const { target, code, requests } = await createdThrough(service, { https_proxy }, flags)
      expect({ code, requests }).toEqual({ code: 0, requests: ['POST /plants', 'POST /plants'] })
      expect(proxy.lines).toEqual([target])
      expect(proxy.requests.map(({ headers }) => headers['proxy-authorization'])).toEqual([
        `Basic ${Buffer.from('me:hunter2').toString('base64')}`,
      ])
    })

    test('carries no request to a service whose certificate is for another IP address', async () => {
      const tls = createCertificate({ names: allNames.slice(0, 2) })
      const proxy = await startForwardProxy()
      const service = await ScriptedServer.listen({ posts, tls, host })
      const variables = { HTTPS_PROXY: proxy.url }
      const outcome = await createdThrough(service, variables, ['--ca-cert', tls.path])
      const { code, error, requests, target } = outcome
      expect([code, requests, proxy.lines[0]]).toEqual([4, [], target])
      expect(error).toMatchObject({
        message: expect.stringContaining("does not match certificate's altnames"),
      })
    })

    test.each<[string, ScriptedResponse, string]>([
      ['says nothing', () => undefined, 'it timed out'],
      [
        'sends headers without end',
        (socket) => void pourOut(socket, 'HTTP/1.1 200 OK\r\n', `A: ${'a'.repeat(1000)}\r\n`),
        'the response headers are larger than 16 KiB',
      ],
      [
        'sends a status line without end',
        (socket) => void pourOut(socket, 'HTTP/1.1 200 ', 'a'.repeat(1000)),
        'the response headers are larger than 16 KiB',
      ],
      ['speaks another protocol', 'SSH-2.0-OpenSSH_9.9\r\n\r\n', 'the response is not HTTP'],
      ['closes', (socket) => void socket.end(), 'the connection was closed'],
      [
        'answers in plain text after it opened the tunnel',
        `HTTP/1.1 200 OK\r\n\r\n${buildJsonResponse(200, { name: 'Fern' })}`,
        'the proxy answered instead of the service',
      ],
    ])('fails in time when the proxy %s', async (_, answer, why) => {
      const proxy = await ScriptedServer.listen({ openapi: answer })
      const service = await ScriptedServer.listen({
        posts,
        host,
        tls: createCertificate({ names: allNames }),
      })
      const HTTPS_PROXY = proxy.url.replace('//', '//me:of-the-proxy@')
      // Only a proxy that says nothing takes all of the time.
      const timeoutMs = why === 'it timed out' ? 300 : hangLimitsMs.event
      const flags = ['--timeout', `${timeoutMs}ms`, '--retry', '0']
      const { code, error } = await createdThrough(service, { HTTPS_PROXY }, flags)
      expect([code, service.connections]).toEqual([4, 0])
      expect(error).toMatchObject({ error: 503, message: expect.stringContaining(why) })
      expect(JSON.stringify(error)).not.toContain('of-the-proxy')
      expect(proxy.bytes.includes(token)).toBe(false)
    })

    test('is not opened, and no request is forwarded, when the proxy answers 407', async () => {
      const proxy = await startForwardProxy({ errorStatus: 407 })
      const variables = { HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url }
      for (const tls of [{ tls: createCertificate({ names: allNames }) }, {}]) {
        const service = await ScriptedServer.listen({ posts, host, ...tls })
        const { code, error } = await createdThrough(service, variables)
        expect([code, service.connections]).toEqual([4, 0])
        const proxyHost = new URL(proxy.url).host
        const message = expect.stringContaining(` the proxy ${proxyHost}: the proxy answered 407`)
        expect(error).toEqual({
          error: 503,
          kind: 'accessDenied',
          message,
          hint: 'Write USER:PASSWORD@ before its host in HTTPS_PROXY or HTTP_PROXY',
        })
      }
    })
  },
)

describe.runIf(ipv4)('an address that is not loopback (needs one)', () => {
  test.each<[string, Record<string, string>, boolean]>([
    ['HTTP_PROXY', {}, true],
    ['http_proxy', { no_proxy: `${ipv4}` }, false],
  ])(
    'is reached through the proxy of %s with the variables %j: %s',
    async (name, others, isProxied) => {
      const proxy = await startForwardProxy()
      const service = await ScriptedServer.listen({ posts, host })
      const url = name === 'HTTP_PROXY' ? proxy.url.replace('http://', '') : proxy.url
      const { target, ...outcome } = await createdThrough(service, { [name]: url, ...others })
      expect(outcome).toMatchObject({ code: 0, out: created.out })
      expect(proxy.lines).toEqual(isProxied ? [target] : [])
      expect(service.posts[0]?.headers['host']).toBe(`${ipv4}:${service.port}`)
    },
  )

  test('is not blamed for a 403 that may come from its proxy', async () => {
    const proxy = await startForwardProxy({ errorStatus: 403 })
    const service = await ScriptedServer.listen({ posts, host })
    const { code, error } = await createdThrough(service, { http_proxy: proxy.url })
    expect([code, service.connections]).toEqual([3, 0])
    expect(error).toMatchObject({
      message: expect.stringContaining(`403 through the proxy ${new URL(proxy.url).host}`),
      hint: 'Check HTTPS_PROXY or HTTP_PROXY, or bypass the proxy with NO_PROXY',
    })
  })

  test('is not reached when its proxy does not listen', async () => {
    const service = await ScriptedServer.listen({ posts, host })
    const HTTP_PROXY = `http://127.0.0.1:${closedPort}`
    const { code, error } = await createdThrough(
      service,
      { HTTP_PROXY },
      [],
      createCountingClock(300),
    )
    expect([code, service.connections]).toEqual([4, 0])
    const message = expect.stringContaining(`proxy 127.0.0.1:${closedPort}: the connection was`)
    expect(error).toMatchObject({ error: 503, message })
  })
})

test.each([
  { noProxy: '', url: 'http://localhost:1', isProxied: false },
  { noProxy: '', url: 'http://127.1:1', isProxied: false },
  { noProxy: '', url: 'http://[::1]:1', isProxied: false },
  { noProxy: 'fd00::2 example.com,10.1.2.3', url: 'http://10.1.2.3', isProxied: false },
  { noProxy: 'PLANTS.example.com', url: 'https://plants.EXAMPLE.com:8443', isProxied: false },
  { noProxy: 'example.com', url: 'https://plants.example.com', isProxied: true },
])(
  'with NO_PROXY=$noProxy, $url is reached through the proxy: $isProxied',
  async ({ noProxy, url, isProxied }) => {
    const signal = AbortSignal.abort(new PlantsError('interrupted', 'Before anything was sent'))
    const proxies = { HTTP_PROXY: 'http://127.0.0.1:1', HTTPS_PROXY: 'http://127.0.0.1:1' }
    const argv = 'create --id 1 --name Fern --output json --allow-http -v --store'.split(' ')
    for (const name of ['NO_PROXY', 'no_proxy']) {
      const env = { PLANTS_TOKEN: token, ...proxies, [name]: noProxy }
      const { code, err } = await runPlants([...argv, url], { env, signal })
      expect([code, err.includes('* proxy')]).toEqual([130, isProxied])
    }
  },
)

test.each(['socks5://me:hunter2@127.0.0.1', 'hunter2%er:x@127.0.0.1:1', 'http://'])(
  'the error for an invalid proxy does not repeat it, and nothing is sent: %s',
  async (HTTPS_PROXY) => {
    const { code, out, err } = await createIn('https://plants.example.com', [], { HTTPS_PROXY })
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain('HTTPS_PROXY')
    expect(err).not.toContain('hunter2')
  },
)
