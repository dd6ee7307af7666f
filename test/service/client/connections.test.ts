import { writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  type Certificate,
  createCertificate,
  hasOpenssl,
} from '../../helpers/sandbox/certificates.js'
import { createClock, createCountingClock } from '../../helpers/sandbox/clock.js'
import { parseObjects } from '../../helpers/sandbox/sandbox.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'
import {
  buildJsonResponse,
  closedPort,
  ScriptedServer,
} from '../../helpers/scripted-server/scripted-server.js'
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
const plainHint = { hint: expect.stringContaining('begin the address with http://') }

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
      plainHint,
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

describe('a service that closes each new connection at once', () => {
  const close = (socket: Socket) => void socket.destroy()

  test.runIf(hasOpenssl)(
    'got nothing if the connection had no handshake, so a create is retried (needs openssl)',
    async () => {
      const service = await ScriptedServer.listen({ onConnect: close })
      const ca = createCertificate({ names: ['IP:127.0.0.1'] }).path
      const flags = ['--store', service.url.replace(/^http:/, 'https:'), '--ca-cert', ca]
      const outcome = await createAt(service, flags, {}, createCountingClock(250))
      const error = unreached('the connection was closed', retryable)
      const warning = expect.objectContaining({ warning: expect.stringContaining(' again for up') })
      expect(outcome).toEqual({ code: 4, out: '', stderr: [warning, error], requests: [] })
      expect(service.bytes).toHaveLength(0)
      expect(service.connections).toBeGreaterThan(1)
    },
  )

  test('may have got the create otherwise, whose outcome is unknown', async () => {
    const service = await ScriptedServer.listen({ onConnect: close })
    const flags = ['--timeout', '1s']
    expect((await createAt(service, flags, {}, createCountingClock(250))).code).toBe(5)
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
    expect(JSON.stringify(outcome)).toContain('certificate')
    expect(service.bytes).toHaveLength(0)
  })

  test.each([
    {
      subject: { names: ['DNS:a.example'] },
      message: "does not match certificate's altnames",
      hint: 'Use an address with a host that the certificate of the service names',
    },
    {
      subject: { names, isExpired: true },
      message: 'certificate has expired',
      hint: 'Let the operator of the service renew its certificate',
    },
  ])('the hint when $message says what to do', async ({ subject, message, hint }) => {
    const tls = createCertificate(subject)
    const service = await ScriptedServer.listen({ posts, tls })
    const { stderr } = await createAt(service, ['--ca-cert', tls.path])
    expect(stderr).toEqual([unreached(message, { hint })])
  })

  test('a create sends no token without TLS to a port that expects TLS', async () => {
    const service = await ScriptedServer.listen({ posts, tls: createCertificate({ names }) })
    const flags = ['--timeout', '1s', '--store', service.url.replace('https', 'http')]
    const outcome = await createAt(service, flags, {}, createCountingClock(250))
    expect(outcome).toMatchObject({ code: 5, out: '', requests: [] })
    expect(service.bytes).toHaveLength(0)
  })
})

test.each(['0.0.0.0', 'localhost.example.com', '127.0.0.1.example.com', '[::ffff:192.0.2.1]'])(
  'no token is sent without TLS to %s, which is not loopback',
  async (host) => {
    const { code, err } = await createIn(`http://${host}`)
    expect([code, err]).toEqual([2, expect.stringContaining('"The token was not sent to ')])
  },
)
