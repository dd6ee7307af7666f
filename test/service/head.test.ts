import { once } from 'node:events'
import { Agent, request } from 'node:https'
import { expect, onTestFinished, test } from 'vitest'
import { PlantsError } from '../../src/errors.js'
import { readKeyPair } from '../../src/platform/certificates.js'
import type { ServiceOptions } from '../../src/server/service.js'
import { createCertificate, hasOpenssl } from '../helpers/sandbox/certificates.js'
import { buildRequest, connectTo, exchangeOnce } from '../helpers/scripted-server/raw-http.js'
import { quickStore, serveStore, testCaller } from '../helpers/scripted-server/service.js'

// A HEAD gets what a GET would get, without the body (RFC 9110, 9.3.2).

/** A list of it has 400 kB, which is more than what is written at once. */
const large = { id: 1n, name: 'ä'.repeat(200_000) }

/** Keeps one plant; of plant 3, it does not know. */
function serveLarge(options: Partial<ServiceOptions> = {}) {
  return serveStore(
    {
      ...quickStore,
      get: async ([id]) => {
        if (id === 3n) throw new PlantsError('unavailable', 'The store is away')
        return new Map(id === large.id ? [[large.id, large]] : [])
      },
      read: async function* () {
        yield [large]
      },
    },
    options,
  )
}

const targets: [status: number, target: string, headers?: Record<string, string>][] = [
  [200, '/plants'],
  [200, '/plants/1'],
  [200, '/openapi.json'],
  [400, '/plants?limit=0'],
  [401, '/plants', { Authorization: 'Bearer wrong' }],
  [404, '/plants/2'],
  [404, '/nothing'],
  [503, '/plants/3'],
]

test('HEAD has the status and the headers of GET, and keeps its connection open', async () => {
  const service = await serveLarge({ cors: ['*'] })
  const connection = await connectTo(service.endpoint)
  for (const [status, target, headers = {}] of targets) {
    const get = await exchangeOnce(service, { method: 'GET', target, headers })
    const length = Number(get.headers['content-length'])
    expect([get.status, length]).toEqual([status, Buffer.byteLength(get.body)])
    const head = { method: 'HEAD', target, headers }
    const answer = await connection.send(buildRequest(service.token, head)).readResponse(head)
    const volatile = { date: expect.any(String), 'request-id': expect.any(String) }
    const expected = { ...get.headers, ...volatile }
    expect(answer).toEqual({ status, headers: expected, body: '', text: `${status}` })
  }
})

test("the response to HEAD has no body if the request's body is invalid or too large", async () => {
  const service = await serveLarge()
  const chunked = { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }
  for (const [status, request] of [
    [400, { headers: chunked, body: 'no chunk\r\n' }],
    [413, { headers: { 'Content-Length': '99999999' } }],
  ] as const) {
    const head = { method: 'HEAD', ...request, headers: { ...request.headers } }
    const connection = await connectTo(service.endpoint)
    connection.send(buildRequest(service.token, head))
    expect(await connection.readResponse(head)).toMatchObject({ status })
    connection.socket.end()
    expect(await connection.readResponse()).toBeUndefined()
  }
})

test('the header Allow names HEAD wherever it names GET', async () => {
  const service = await serveLarge()
  for (const [target, allow] of [
    ['/plants', 'POST, GET, HEAD'],
    ['/plants/1', 'GET, HEAD, PATCH, DELETE'],
    ['/openapi.json', 'GET, HEAD'],
  ] as const)
    expect(await exchangeOnce(service, { method: 'PUT', target })).toMatchObject({
      ...{ status: 405, headers: { allow } },
    })
})

test('HEAD needs the right to read, as GET does', async () => {
  const reader = { ...testCaller, rights: ['read'] as const }
  const creator = { ...testCaller, rights: ['create'] as const }
  const openTokenSource: ServiceOptions['openTokenSource'] = async () => (token) =>
    token === 'reader' ? reader : creator
  const service = await serveLarge({ openTokenSource })
  const askAs = async (token: string) =>
    (await exchangeOnce({ ...service, token }, { method: 'HEAD' })).status
  expect([await askAs('reader'), await askAs('creator')]).toEqual([200, 403])
})

test.runIf(hasOpenssl)(
  'a large response over TLS is not written for HEAD, and its connection stays open (needs openssl)',
  async () => {
    const { cert, path, keyPath } = createCertificate({ names: ['IP:127.0.0.1'] })
    const read = () => readKeyPair(path, keyPath)
    const service = await serveLarge({ tls: { paths: [path, keyPath], read } })
    const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: cert })
    onTestFinished(() => agent.destroy())
    const headers = { Authorization: `Bearer ${service.token}` }
    const ask = async (method: string) => {
      const outgoing = request(`${service.address}/plants`, { agent, method, headers }).end()
      const [response] = await once(outgoing, 'response')
      let bytes = 0
      for await (const chunk of response) bytes += chunk.length
      const { 'content-length': length } = response.headers
      return { isReused: outgoing.reusedSocket, bytes, length: Number(length) }
    }
    const length = Buffer.byteLength(JSON.stringify([{ ...large, id: 1 }]))
    expect([await ask('HEAD'), await ask('HEAD'), await ask('GET')]).toEqual([
      { isReused: false, bytes: 0, length },
      { isReused: true, bytes: 0, length },
      { isReused: true, bytes: length, length },
    ])
  },
)
