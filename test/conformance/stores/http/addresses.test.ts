import { lookup } from 'node:dns/promises'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Certificate, certificate, hasOpenssl } from '../../../helpers/certificates.js'
import { closedPort, Hostile, json } from '../../../helpers/hostile.js'
import { createAt, created, createIn, token } from '../../../helpers/http-store.js'
import { objectsOf } from '../../../helpers/json-lines.js'
import { runPlants } from '../../../helpers/run.js'
import { temporaryFolder } from '../../../helpers/temporary.js'
import { countingClock, settableTime } from '../../../helpers/time.js'

const posts = [json(200, { name: 'Fern' })]
const loopbacks = await lookup('localhost', { all: true })

async function saidAt(store: string, flags: string[] = [], now?: () => number) {
  const { code, err } = await createIn(store, flags, {}, now)
  return { code, said: objectsOf(err) }
}

describe('a base url', () => {
  test.each([
    ['/a/../b/.', '/b/plants'],
    ['/caf\u00e9 1/a%2Fb', '/caf%C3%A9%201/a%2Fb/plants'],
  ])('with the path %j', async (path, target) => {
    const service = await Hostile.listen({ posts })
    const outcome = await createAt(service, ['--store', `${service.url}${path}`])
    expect(outcome).toEqual({ ...created, requests: [`POST ${target}`] })
  })

  test.each([
    ['LOCALHOST', '127.0.0.1'],
    // Where the hosts file has both, a service listens at one.
    ...(loopbacks.length > 1 ? loopbacks.map(({ address }) => ['localhost', address]) : []),
  ])('with the host %s, and a service at %s', async (host, listening) => {
    const service = await Hostile.listen({ posts, place: { host: listening, port: 0 } })
    expect(await createAt(service, ['--store', `HTTP://${host}:${service.port}`])).toEqual(created)
    expect(service.posts[0]?.headers['host']).toBe(`localhost:${service.port}`)
  })
})

describe('an error tells why a service could not be reached:', () => {
  const noName = `${'x'.repeat(64)}.example.com` // longer than a label may be: no network is asked
  const running = 'Is it running? Try: plants serve'

  test.each([
    [`https://${noName}`, 'the host is unknown', 'Check the address for typing errors', false],
    [`http://127.0.0.1:${closedPort}`, 'the connection was refused', running, true],
  ])('%s', async (store, why, hint, isRetried) => {
    const { code, said } = await saidAt(store, ['--timeout', '1s'], countingClock(100))
    const message = `Could not reach ${store}: ${why}`
    const warning = { warning: `${message}. Trying again for up to 1 s` }
    const error = { error: 503, message, hint, ...(isRetried && { retryable: true }) }
    expect({ code, said }).toEqual({ code: 4, said: isRetried ? [warning, error] : [error] })
  })

  const slow = 'Check the address and the network, or wait longer with --timeout 2m'
  const noTls = 'HTTP/1.1 400 Bad Request\r\n\r\n'

  test.each([
    ['a TLS handshake without an answer', '', 'it timed out', slow, { retryable: true }],
    [
      'a service without TLS',
      noTls,
      'the TLS handshake failed',
      'Try http:// for a service on this machine',
      {},
    ],
  ])('%s', async (_, answer, why, hint, rest) => {
    const service = await Hostile.listen({
      onConnect: (socket) => void (answer && socket.end(answer)),
    })
    const store = service.url.replace('http', 'https')
    const time = settableTime()
    service.on('connection', () => answer === '' && time.timeOut())
    const { code, said, requests } = await createAt(service, ['--store', store], {}, time.now)
    const error = { error: 503, message: `Could not reach ${store}: ${why}`, hint, ...rest }
    expect({ code, requests, error: said.at(-1) }).toEqual({ code: 4, requests: [], error })
  })
})

test('a service that refuses connections is retried for two seconds', async () => {
  const now = countingClock(60)
  const { code, said } = await saidAt(`http://127.0.0.1:${closedPort}`, ['--timeout', '30s'], now)
  expect([code, now() < 10_000]).toEqual([4, true])
  expect(said[0]).toEqual({ warning: expect.stringMatching(/Trying again for up to 2 s$/) })
})

describe.runIf(hasOpenssl)('TLS (needs openssl)', () => {
  const names = ['DNS:localhost', 'IP:127.0.0.1']
  const signed = (issuer: Certificate) => certificate({ names, issuer })

  test('--ca-cert trusts the certificates of its authorities', async () => {
    const issuer = certificate({ names: ['DNS:authority'], isAuthority: true })
    const service = await Hostile.listen({ posts, tls: signed(issuer) })
    const both = join(temporaryFolder(), 'both.pem')
    writeFileSync(both, `${certificate({ names: ['DNS:another'] }).cert}${issuer.cert}`)
    const store = `https://localhost:${service.port}`
    expect(await createAt(service, ['--ca-cert', both, '--store', store])).toEqual(created)
  })

  const own = (tls: Certificate): [Certificate, Certificate] => [tls, tls]
  const giveCa = 'If you trust its issuer, give the certificate of the issuer with --ca-cert FILE'
  const checkAll = 'Check the address and the certificate of the service'

  // the words of Node and of Bun
  test.each<[string, () => [tls: Certificate, ca?: Certificate], RegExp, string]>([
    [
      'has an unknown issuer',
      () => [signed(certificate({ names, isAuthority: true }))],
      /unable to verify/,
      giveCa,
    ],
    [
      'is for another name',
      () => own(certificate({ names: ['DNS:a.example'] })),
      /altnames/,
      checkAll,
    ],
    [
      'has expired',
      () => own(certificate({ names, isExpired: true })),
      /certificate has expired/,
      checkAll,
    ],
  ])('a service gets nothing if its certificate %s', async (_, show, why, hint) => {
    const [tls, ca] = show()
    const service = await Hostile.listen({ posts, tls })
    const message = expect.stringMatching(RegExp(`^Could not reach URL: .*${why.source}`))
    const said = [{ error: 503, message, hint }]
    const outcome = await createAt(service, [...(ca ? ['--ca-cert', ca.path] : [])])
    expect(outcome).toEqual({ code: 4, out: '', said, requests: [] })
    expect(service.bytes).toHaveLength(0)
  })

  test('a certificate whose issuer is no authority is not trusted', async () => {
    const issuer = certificate({ names: ['DNS:no-authority'] })
    const service = await Hostile.listen({ posts, tls: signed(issuer) })
    const { code, said, requests } = await createAt(service, ['--ca-cert', issuer.path])
    const message = expect.stringMatching(/^Could not reach URL: .*certificate/)
    expect([code, requests, said.at(-1)]).toMatchObject([4, [], { error: 503, message }])
  })

  test('a service with TLS gets no token without it', async () => {
    const service = await Hostile.listen({ posts, tls: certificate({ names }) })
    const flags = ['--store', service.url.replace('https', 'http')]
    const outcome = await createAt(service, flags)
    const http = service.url.replace('https', 'http')
    // It may have stored the plant: one port may take both.
    const message = `${http} received the request, but did not answer: ${http} needs https`
    const hint = expect.stringMatching(/^Whether plant 1 is stored is unknown\. /)
    const said = [{ error: 504, message, hint }]
    expect(outcome).toEqual({ code: 5, out: '', said, requests: [] })
    expect(service.bytes).toHaveLength(0)
    expect(await runPlants(['list', '--store', http], { env: { PLANTS_TOKEN: token } })).toEqual({
      ...{ code: 4, out: '' },
      err: `plants: ${http} needs https\n  Try ${service.url}\n`,
    })
  })
})
