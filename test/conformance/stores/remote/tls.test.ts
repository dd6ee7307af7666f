import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Certificate, certificate, hasOpenssl } from '../../../helpers/certificates.js'
import { Hostile, json } from '../../../helpers/hostile.js'
import { createAt, created } from '../../../helpers/remote.js'
import { temporaryFolder } from '../../../helpers/temporary.js'

const posts = [json(200, { name: 'Fern' })]

describe.runIf(hasOpenssl)('TLS (needs openssl)', () => {
  const names = ['DNS:localhost', 'IP:127.0.0.1']
  const signed = (issuer: Certificate) => certificate({ names, issuer })

  test('--ca-cert trusts a self-signed certificate', async () => {
    const own = certificate({ names })
    const remote = await Hostile.listen({ posts, tls: own })
    expect(await createAt(remote, ['--ca-cert', own.path])).toEqual(created)
  })

  test('--ca-cert trusts the certificates of its authorities', async () => {
    const issuer = certificate({ names: ['DNS:authority'], isAuthority: true })
    const remote = await Hostile.listen({ posts, tls: signed(issuer) })
    const both = join(temporaryFolder(), 'both.pem')
    writeFileSync(both, `${certificate({ names: ['DNS:another'] }).cert}${issuer.cert}`)
    const store = `https://localhost:${remote.port}`
    expect(await createAt(remote, ['--ca-cert', both, '--store', store])).toEqual(created)
  })

  const untrusted = 'its certificate is not trusted (unknown issuer)'
  const giveCa = 'If you trust the issuer, give its certificate with --ca-cert FILE'
  const notSigned = 'its certificate is not signed by a certificate given with --ca-cert'
  const checkAll = 'Check the address, the clock, and the certificate of the service'

  test.each<[string, () => [tls: Certificate, ca?: Certificate], string, string]>([
    ['is self-signed', () => [certificate({ names })], untrusted, giveCa],
    ['an unknown authority has signed', () => [signed(certificate({ names, isAuthority: true }))], untrusted, giveCa],
    [
      'another authority has signed',
      () => [certificate({ names }), certificate({ names })],
      notSigned,
      'Use the one that signed it',
    ],
    [
      'is for another name',
      () => own(certificate({ names: ['DNS:plants.example.com'] })),
      'its certificate is for another name',
      'Check the address',
    ],
    ['has expired', () => own(certificate({ names, isExpired: true })), 'certificate has expired', checkAll],
  ])('a service with a certificate that %s gets nothing, and no second try', async (_, show, why, hint) => {
    const [tls, ca] = show()
    const remote = await Hostile.listen({ posts, tls })
    const said = [{ error: 503, message: `Could not reach URL: TLS failed: ${why}`, hint, retryable: true }]
    const outcome = await createAt(remote, ['--timeout', '1s', ...(ca ? ['--ca-cert', ca.path] : [])])
    expect(outcome).toEqual({ code: 4, out: '', said, requests: [] })
    expect(remote.bytes).toHaveLength(0)
  })

  function own(tls: Certificate): [Certificate, Certificate] {
    return [tls, tls]
  }

  test('a certificate whose issuer is no authority is not trusted', async () => {
    const issuer = certificate({ names: ['DNS:no-authority'] })
    const remote = await Hostile.listen({ posts, tls: signed(issuer) })
    const { code, said, requests } = await createAt(remote, ['--ca-cert', issuer.path, '--timeout', '1s'])
    const message = expect.stringMatching(/^Could not reach URL: TLS failed/)
    expect([code, requests, said.at(-1)]).toMatchObject([4, [], { error: 503, message, retryable: true }])
  })

  const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'

  test.each([
    ['is not there', undefined, 'Could not read FILE: there is no such file'],
    ['contains none', 'hello', 'FILE contains no PEM certificate'],
    ['contains a broken one', broken, 'FILE contains an invalid certificate'],
  ])('a file of certificates that %s is wrong usage', async (_, content, message) => {
    const path = join(temporaryFolder(), 'ca.pem')
    if (content !== undefined) writeFileSync(path, content)
    const remote = await Hostile.listen({ posts, tls: certificate({ names }) })
    const { code, said } = await createAt(remote, ['--ca-cert', path, '--timeout', '1s'])
    const hint = 'Give a file of PEM certificates with --ca-cert'
    expect({ code, said }).toEqual({ code: 2, said: [{ error: 400, message: message.replace('FILE', path), hint }] })
    expect(remote.connections).toBe(0)
  })

  test('a service with TLS gets no token without it', async () => {
    const remote = await Hostile.listen({ posts, tls: certificate({ names }) })
    const { code, out } = await createAt(remote, ['--store', remote.url.replace('https', 'http'), '--timeout', '1s'])
    expect({ code, out, requests: remote.lines }).toEqual({ code: 5, out: '', requests: [] })
  })
})
