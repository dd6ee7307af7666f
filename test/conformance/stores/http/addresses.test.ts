import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Certificate, certificate, hasOpenssl } from '../../../helpers/certificates.js'
import { closedPort, Hostile, json } from '../../../helpers/hostile.js'
import { createAt, created, createIn } from '../../../helpers/http-store.js'
import { objectsOf } from '../../../helpers/json-lines.js'
import { temporaryFolder } from '../../../helpers/temporary.js'
import { settableTime } from '../../../helpers/time.js'

const posts = [json(200, { name: 'Fern' })]

test('a base url may have any path', async () => {
  const service = await Hostile.listen({ posts })
  const outcome = await createAt(service, ['--store', `${service.url}/a/../caf\u00e9 1/b%2Fc/.`])
  expect(outcome).toEqual({ ...created, requests: ['POST /caf%C3%A9%201/b%2Fc/plants'] })
})

const unreached = (why: string, rest: object = {}) =>
  expect.objectContaining({ error: 503, message: expect.stringContaining(why), ...rest })
const retryable = { retryable: true }

describe('an error tells why a service could not be reached:', () => {
  const noName = `${'x'.repeat(64)}.example.com` // longer than a label may be: no network is asked

  test('the host is unknown, which is final', async () => {
    const { code, err } = await createIn(`https://${noName}`)
    expect([code, objectsOf(err)]).toEqual([4, [unreached('the host is unknown')]])
  })

  test('the connection was refused, after two seconds of retries', async () => {
    let reads = 0
    const now = () => {
      reads += 1
      return reads < 10 ? 0 : 2000
    }
    const { code, err } = await createIn(
      `http://127.0.0.1:${closedPort}`,
      ['--timeout', '30s'],
      {},
      now,
    )
    const warning = { warning: expect.stringMatching(/ again for up to 2 s$/) }
    const error = unreached('the connection was refused', retryable)
    expect([code, objectsOf(err)]).toEqual([4, [warning, error]])
  })

  test.each([
    ['a TLS handshake without an answer', '', 'it timed out', retryable],
    ['a service without TLS', 'HTTP/1.1 400 Bad Request\r\n\r\n', 'the TLS handshake failed', {}],
  ])('%s', async (_, answer, why, rest) => {
    const service = await Hostile.listen({
      onConnect: (socket) => void (answer && socket.end(answer)),
    })
    const store = service.url.replace('http', 'https')
    const time = settableTime()
    service.on('connection', () => answer === '' && time.timeOut())
    const { code, said, requests } = await createAt(service, ['--store', store], {}, time.now)
    expect([code, requests, said.at(-1)]).toEqual([4, [], unreached(why, rest)])
  })
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
  const signedBy = (issuer: Certificate): [Certificate, Certificate] => [signed(issuer), issuer]

  test.each<[string, () => [tls: Certificate, ca?: Certificate]]>([
    ['has an unknown issuer', () => [signed(certificate({ names, isAuthority: true }))]],
    ['is for another name', () => own(certificate({ names: ['DNS:a.example'] }))],
    ['has expired', () => own(certificate({ names, isExpired: true }))],
    ['has an issuer that is no authority', () => signedBy(certificate({ names: ['DNS:none'] }))],
  ])('a service gets nothing if its certificate %s', async (_, show) => {
    const [tls, ca] = show()
    const service = await Hostile.listen({ posts, tls })
    const outcome = await createAt(service, ca ? ['--ca-cert', ca.path] : [])
    // In the words of Node or of Bun, some with the name of the certificate.
    const said = [unreached('Could not reach URL: ')]
    expect(outcome).toEqual({ code: 4, out: '', said, requests: [] })
    expect(JSON.stringify(outcome)).toMatch(/certificate|altnames/)
    expect(service.bytes).toHaveLength(0)
  })

  test('a service with TLS gets no token without it', async () => {
    const service = await Hostile.listen({ posts, tls: certificate({ names }) })
    const outcome = await createAt(service, ['--store', service.url.replace('https', 'http')])
    const said = [unreached('needs https', { hint: 'Try URL' })]
    expect(outcome).toEqual({ code: 4, out: '', said, requests: [] })
    expect(service.bytes).toHaveLength(0)
  })
})
