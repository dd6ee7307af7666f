import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createSecureServer } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { PlantsError } from '../../../../src/errors.js'
import {
  type Certificate,
  createCertificate,
  hasOpenssl,
} from '../../../helpers/sandbox/certificates.js'
import { createClock, createCountingClock } from '../../../helpers/sandbox/clock.js'
import { runPlants } from '../../../helpers/sandbox/run.js'
import { parseObjects } from '../../../helpers/sandbox/sandbox.js'
import { createTemporaryFolder } from '../../../helpers/sandbox/temporary-folder.js'
import { ipv4 } from '../../../helpers/scripted-server/proxies.js'
import {
  buildJsonResponse,
  buildResponse,
  closedPort,
  type ScriptedResponse,
  ScriptedServer,
  startForwardProxy,
} from '../../../helpers/scripted-server/scripted-server.js'
import { token } from '../../../helpers/scripted-server/service.js'
import { createAt, created, createIn } from './steps.js'

const posts = [buildJsonResponse(200, { name: 'Fern' })]

test('the address of a service may have any path', async () => {
  const service = await ScriptedServer.listen({ posts })
  const outcome = await createAt(service, ['--store', `${service.url}/a/../caf\u00e9 1/b%2Fc/.`])
  expect(outcome).toEqual({ ...created, requests: ['POST /caf%C3%A9%201/b%2Fc/plants'] })
})

const unreached = (why: string, rest: object = {}) =>
  expect.objectContaining({ error: 503, message: expect.stringContaining(why), ...rest })
const retryable = { retryable: true }
const tryUrl = { hint: 'Try URL' }

describe('the error for a service that cannot be reached says', () => {
  const noName = `${'x'.repeat(64)}.example.com` // longer than a label may be: no network is asked

  test('that its host is unknown, without a retry', async () => {
    const { code, err } = await createIn(`https://${noName}`)
    expect([code, parseObjects(err)]).toEqual([4, [unreached('the host is unknown')]])
  })

  test('that the connection was refused, after two seconds of retries', async () => {
    let reads = 0
    const now = () => {
      reads += 1
      return reads < 6 ? 0 : 2000
    }
    const { code, err } = await createIn(
      `http://127.0.0.1:${closedPort}`,
      ['--timeout', '30s'],
      {},
      now,
    )
    const warning = { warning: expect.stringMatching(/ again for up to 2 s$/) }
    const error = unreached('the connection was refused', retryable)
    expect([code, parseObjects(err)]).toEqual([4, [warning, error]])
  })

  test.each([
    ['a TLS handshake without an answer', '', 'it timed out', retryable],
    [
      'a service without TLS',
      'HTTP/1.1 400 Bad Request\r\n\r\n',
      'the TLS handshake failed',
      tryUrl,
    ],
  ])('%s', async (_, answer, why, rest) => {
    const service = await ScriptedServer.listen({
      onConnect: (socket) => void (answer && socket.end(answer)),
    })
    const store = service.url.replace('http', 'https')
    const time = createClock()
    service.on('connection', () => answer === '' && time.timeOut())
    const { code, stderr, requests } = await createAt(service, ['--store', store], {}, time.now)
    expect([code, requests, stderr.at(-1)]).toEqual([4, [], unreached(why, rest)])
  })
})

describe('a create retries a service that closes each new connection at once, and has sent nothing', () => {
  const close = (socket: Socket) => void socket.destroy()
  const own = () => createCertificate({ names: ['IP:127.0.0.1'] })

  test.each<[string, boolean, () => { service: Promise<ScriptedServer>; ca?: string }]>([
    ['over http', true, () => ({ service: ScriptedServer.listen({ onConnect: close }) })],
    [
      'over https, before its handshake (needs openssl)',
      hasOpenssl,
      () => ({ service: ScriptedServer.listen({ onConnect: close }), ca: own().path }),
    ],
    [
      'over https, after its handshake (needs openssl)',
      hasOpenssl,
      () => {
        const tls = own()
        return { service: ScriptedServer.listen({ onConnect: close, tls }), ca: tls.path }
      },
    ],
  ])('%s', async (_, canRun, start) => {
    if (!canRun) return
    const { service: starting, ca } = start()
    const service = await starting
    const store = ca === undefined ? service.url : service.url.replace(/^http:/, 'https:')
    const flags = ['--store', store, ...(ca === undefined ? [] : ['--ca-cert', ca])]
    const outcome = await createAt(service, flags, {}, createCountingClock(250))
    const hint = expect.stringContaining('the service has too many connections: try again later')
    const error = unreached('the connection was closed', { retryable: true, hint })
    const warning = expect.objectContaining({ warning: expect.stringContaining(' again for up') })
    expect(outcome).toEqual({ code: 4, out: '', stderr: [warning, error], requests: [] })
    expect(service.bytes).toHaveLength(0)
    expect(service.connections).toBeGreaterThan(1)
  })

  test('and sends the plant once a connection stays open', async () => {
    const service = await ScriptedServer.listen({
      posts,
      onConnect: (socket) => void (service.connections < 3 && socket.destroy()),
    })
    const outcome = await createAt(service)
    expect(outcome).toMatchObject({ code: 0, requests: ['POST /plants'] })
    expect(service.connections).toBe(3)
  })
})

describe.runIf(hasOpenssl)('TLS (needs openssl)', () => {
  const names = ['DNS:localhost', 'IP:127.0.0.1']
  const signed = (issuer: Certificate) => createCertificate({ names, issuer })

  test('--ca-cert trusts the certificates of its authorities', async () => {
    const issuer = createCertificate({ names: ['DNS:authority'], isAuthority: true })
    const service = await ScriptedServer.listen({ posts, tls: signed(issuer) })
    const both = join(createTemporaryFolder(), 'both.pem')
    writeFileSync(both, `${createCertificate({ names: ['DNS:another'] }).cert}${issuer.cert}`)
    const store = `https://localhost:${service.port}`
    expect(await createAt(service, ['--ca-cert', both, '--store', store])).toEqual(created)
  })

  const own = (tls: Certificate): [Certificate, Certificate] => [tls, tls]
  const signedBy = (issuer: Certificate): [Certificate, Certificate] => [signed(issuer), issuer]

  test.each<[string, () => [tls: Certificate, ca?: Certificate]]>([
    ['has an unknown issuer', () => [signed(createCertificate({ names, isAuthority: true }))]],
    ['is for another name', () => own(createCertificate({ names: ['DNS:a.example'] }))],
    ['has expired', () => own(createCertificate({ names, isExpired: true }))],
    [
      'has an issuer that is no authority',
      () => signedBy(createCertificate({ names: ['DNS:none'] })),
    ],
  ])('a create sends nothing to a service whose certificate %s', async (_, show) => {
    const [tls, ca] = show()
    const service = await ScriptedServer.listen({ posts, tls })
    const outcome = await createAt(service, ca ? ['--ca-cert', ca.path] : [])
    // In the words of Node or of Bun, some with the name of the certificate.
    const stderr = [unreached('Could not reach URL: ')]
    expect(outcome).toEqual({ code: 4, out: '', stderr, requests: [] })
    expect(JSON.stringify(outcome)).toMatch(/certificate|altnames/)
    expect(service.bytes).toHaveLength(0)
  })

  test('a create sends no token without TLS to a service with TLS', async () => {
    const service = await ScriptedServer.listen({ posts, tls: createCertificate({ names }) })
    const outcome = await createAt(service, ['--store', service.url.replace('https', 'http')])
    expect(outcome).toMatchObject({ code: 5, out: '', requests: [] })
    expect(service.bytes).toHaveLength(0)
  })
})

/** What a port that speaks TLS does when it is sent plain HTTP. */
const answersOfTlsPorts = {
  'as Caddy, nginx and Apache, answers 400 with a text': (socket: Socket) =>
    socket.end(buildResponse(400, 'HTTP request to an HTTPS server')),
  'answers with an alert': (socket: Socket) =>
    socket.end(Buffer.from([0x15, 0x03, 0x03, 0, 2, 2, 10])), // unexpected_message
  'as OpenSSL, closes the connection': (socket: Socket) => socket.destroy(),
}

/** @param tls without a certificate, each handshake ends with an alert */
async function listenWithTls(
  answerPlainHttp: (socket: Socket) => void,
  tls: Partial<Certificate> = {},
): Promise<string> {
  const secure = createSecureServer(tls).on('tlsClientError', () => undefined)
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', (chunk: Buffer) => {
      if (chunk[0] !== 0x16) return void answerPlainHttp(socket)
      socket.pause().unshift(chunk)
      secure.emit('connection', socket)
    })
  })
  onTestFinished(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `127.0.0.1:${(server.address() as AddressInfo).port}` // as it listens on a port
}

describe.each(Object.entries(answersOfTlsPorts))(
  'a create over plain http to a port with TLS, which %s',
  (_, answerPlainHttp) => {
    const isClosed = answerPlainHttp === answersOfTlsPorts['as OpenSSL, closes the connection']

    test.each([
      ['has a certificate (needs openssl)', hasOpenssl],
      ['rejects each handshake with an alert', true],
    ])('%s', async (what, canRun) => {
      if (!canRun) return
      const tls = what.startsWith('has') ? createCertificate({ names: ['IP:127.0.0.1'] }) : {}
      const host = await listenWithTls(answerPlainHttp, tls)
      const message = `The port of http://${host} speaks TLS, not plain HTTP`
      const hint = `Try https://${host}`
      const create = await createIn(`http://${host}`)
      const stderr = isClosed
        ? { error: 504, hint: expect.stringMatching(`^${hint}. Whether plant 1 is stored is unk`) }
        : { error: 503, hint }
      expect(create).toMatchObject({ code: isClosed ? 5 : 4, out: '' })
      expect(parseObjects(create.err)).toEqual([{ message, ...stderr }])
      const args = ['update', '1', '--name', 'Moss', '-o', 'json', '--store', `http://${host}`]
      const update = await runPlants(args, { env: { PLANTS_TOKEN: token } })
      const unknown = `${hint}. Whether plant 1 was changed is unknown`
      expect(update.code).toBe(isClosed ? 5 : 4)
      expect(parseObjects(update.err)).toMatchObject([{ message, hint: isClosed ? unknown : hint }])
    })

    test('changes nothing by a command that reads', async () => {
      const host = await listenWithTls(answerPlainHttp)
      const hint = `Try https://${host}`
      const err = `plants: The port of http://${host} speaks TLS, not plain HTTP\n  ${hint}\n`
      const env = { PLANTS_TOKEN: token, PLANTS_CONFIG_DIR: createTemporaryFolder() }
      for (const command of ['list', 'count', 'get 1', 'export -o csv']) {
        const args = [...command.split(' '), '--store', `http://${host}`]
        expect(await runPlants(args, { env })).toEqual({ code: 4, out: '', err })
      }
      const doctor = await runPlants(['doctor', '--store', `http://${host}`], { env })
      expect(parseObjects(doctor.out)).toContainEqual(expect.objectContaining({ hint }))
    })

    test('fails two deletions with one error', async () => {
      const host = await listenWithTls(answerPlainHttp)
      const env = { PLANTS_TOKEN: token, PLANTS_CONFIG_DIR: createTemporaryFolder() }
      const args = ['delete', '1', '2', '--yes', '--store', `http://${host}`]
      const { code, err } = await runPlants(args, { env })
      expect(code).toBe(isClosed ? 5 : 4)
      expect(err.match(/speaks TLS, not plain HTTP/g)).toHaveLength(1)
    })

    test('ends an import, with the same hint', async () => {
      const host = await listenWithTls(answerPlainHttp)
      const [folder, state] = [createTemporaryFolder(), createTemporaryFolder()]
      const file = join(folder, 'plants.csv')
      writeFileSync(file, 'id,name\n1,Fern\n2,Moss\n')
      const env = { PLANTS_TOKEN: token, PLANTS_CONFIG_DIR: folder, PLANTS_STATE_DIR: state }
      const { code, out, err } = await runPlants(['import', file, '--store', `http://${host}`], {
        env,
      })
      expect([code, out]).toEqual([isClosed ? 5 : 4, ''])
      const message = `plants: The port of http://${host} speaks TLS, not plain HTTP`
      expect(err.split('\n').slice(0, 2)).toEqual([
        message,
        expect.stringMatching(`^  Try https://${host}`),
      ])
    })
  },
)

test('the error for a port that closes connections does not mention TLS if the port has none', async () => {
  const close = (socket: Socket) => void socket.destroy()
  const service = await ScriptedServer.listen({ posts: [close] })
  const { code, stderr } = await createAt(service, ['--retry', '0'])
  expect(code).toBe(5)
  expect(JSON.stringify(stderr)).not.toContain('TLS')
})

/** Repeats the text as long as somebody reads it. */
function pourOut(socket: Socket, start: string, text: string): void {
  const pour = () => {
    while (!socket.destroyed && socket.write(text.repeat(100)));
  }
  socket.on('drain', pour).write(start)
  pour()
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
    const way = `was sent through the proxy ${new URL(proxy.url).host}, but not answered`
    const message = expect.stringContaining(`${way}: the response headers are larger than 16 KiB`)
    expect(error).toMatchObject({ error: 504, message })
  },
)

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
      expect(error).toMatchObject({ message: expect.stringContaining('altnames') })
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
      const flags = ['--timeout', '300ms', '--retry', '0']
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
        expect(error).toEqual({
          error: 503,
          message: `The proxy ${proxyHost} answered 407: it asks for another user name or password`,
          hint: `Set them in the variable of the proxy: http://USER:PASSWORD@${proxyHost}`,
        })
      }
    })
  },
)

describe.runIf(ipv4)('an address that is not loopback (needs one)', () => {
  test.each<[string, Record<string, string>, boolean]>([
    ['HTTP_PROXY', {}, true],
    ['http_proxy', { no_proxy: `${ipv4}` }, false],
  ])('is reached through the proxy of %s with %j: %s', async (name, others, isProxied) => {
    const proxy = await startForwardProxy()
    const service = await ScriptedServer.listen({ posts, host })
    const url = name === 'HTTP_PROXY' ? proxy.url.replace('http://', '') : proxy.url
    const { target, ...outcome } = await createdThrough(service, { [name]: url, ...others })
    expect(outcome).toMatchObject({ code: 0, out: created.out })
    expect(proxy.lines).toEqual(isProxied ? [target] : [])
    expect(service.posts[0]?.headers['host']).toBe(`${ipv4}:${service.port}`)
  })

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

test.each(['0.0.0.0', 'localhost.example.com', '127.0.0.1.example.com', '[::ffff:192.0.2.1]'])(
  'no token is sent without TLS to %s, which is not loopback',
  async (host) => {
    const { code, err } = await createIn(`http://${host}`)
    expect([code, err]).toEqual([2, expect.stringContaining('"The token was not sent to ')])
  },
)

test.each([
  ['', 'http://localhost:1', false],
  ['', 'http://127.1:1', false],
  ['', 'http://[::1]:1', false],
  ['fd00::2 example.com,10.1.2.3', 'http://10.1.2.3', false],
  ['PLANTS.example.com', 'https://plants.EXAMPLE.com:8443', false],
  ['example.com', 'https://plants.example.com', true],
])('with NO_PROXY=%j, %s is reached through the proxy: %s', async (noProxy, url, isProxied) => {
  const signal = AbortSignal.abort(new PlantsError('interrupted', 'Before anything was sent'))
  const proxies = { HTTP_PROXY: 'http://127.0.0.1:1', HTTPS_PROXY: 'http://127.0.0.1:1' }
  const argv = 'create --id 1 --name Fern --output json --allow-http -v --store'.split(' ')
  for (const name of ['NO_PROXY', 'no_proxy']) {
    const env = { PLANTS_TOKEN: token, ...proxies, [name]: noProxy }
    const { code, err } = await runPlants([...argv, url], { env, signal })
    expect([code, err.includes('* proxy')]).toEqual([130, isProxied])
  }
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
