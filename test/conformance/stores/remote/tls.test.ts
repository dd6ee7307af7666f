import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { certificate, hasOpenssl } from '../../../helpers/certificates.js'
import { Hostile, json } from '../../../helpers/hostile.js'
import { ipv4, ipv6 } from '../../../helpers/own-addresses.js'
import { createAt } from '../../../helpers/remote.js'
import { temporaryFolder } from '../../../helpers/temporary.js'

const posts = [json(200, { name: 'Fern' })]
const created = { code: 0, out: '{"name":"Fern"}\n', said: [], requests: ['POST /plants'] }

describe.runIf(hasOpenssl)('TLS (needs openssl)', () => {
  const names = ['DNS:localhost', 'IP:127.0.0.1', ...[ipv4 ?? [], ipv6 ?? []].flat().map((address) => `IP:${address}`)]
  const untrusted = 'TLS failed: its certificate is not trusted (unknown issuer)'
  const giveCa = 'If you trust the issuer, give its certificate with --ca-cert FILE'

  test('a certificate that signs itself is trusted when --ca-cert says so', async () => {
    const own = certificate({ names })
    const remote = await Hostile.listen({ posts, tls: own })
    expect(await createAt(remote, ['--ca-cert', own.path])).toEqual(created)
  })

  test('a certificate of an authority is trusted when --ca-cert names that', async () => {
    const issuer = certificate({ names: ['DNS:authority'], isAuthority: true })
    const remote = await Hostile.listen({ posts, tls: certificate({ names, issuer }) })
    const both = join(temporaryFolder(), 'both.pem')
    writeFileSync(both, `${certificate({ names: ['DNS:another'] }).cert}${issuer.cert}`)
    expect(await createAt(remote, ['--ca-cert', both, '--store', `https://localhost:${remote.port}/v1/`])).toEqual({
      ...created,
      requests: ['POST /v1/plants'],
    })
  })

  test.each<[string, () => { tls: ReturnType<typeof certificate>; flags?: string[] }, string, string]>([
    ['signs itself', () => ({ tls: certificate({ names }) }), untrusted, giveCa],
    [
      'an unknown authority has signed',
      () => ({ tls: certificate({ names, issuer: certificate({ names, isAuthority: true }) }) }),
      untrusted,
      giveCa,
    ],
    [
      'another authority has signed',
      () => ({ tls: certificate({ names }), flags: ['--ca-cert', certificate({ names }).path] }),
      'TLS failed: its certificate is not signed by a certificate given with --ca-cert',
      'Use the one that signed it',
    ],
    [
      'is for another name',
      () => trusted(certificate({ names: ['DNS:plants.example.com'] })),
      'TLS failed: its certificate is for another name',
      'Check the address',
    ],
    [
      'has expired',
      () => trusted(certificate({ names, isExpired: true })),
      'TLS failed: certificate has expired',
      'Check the address, the clock, and the certificate of the service',
    ],
  ])('sends nothing to whoever shows a certificate that %s, and does not ask again', async (_, show, why, hint) => {
    const { tls, flags = [] } = show()
    const remote = await Hostile.listen({ posts, tls })
    const message = `Could not reach URL: ${why}`
    expect(await createAt(remote, ['--timeout', '1s', ...flags])).toEqual({
      code: 4,
      out: '',
      said: [{ error: 503, message, hint, retryable: true }],
      requests: [],
    })
    expect(remote.bytes).toHaveLength(0)
  })

  function trusted(tls: ReturnType<typeof certificate>) {
    return { tls, flags: ['--ca-cert', tls.path] }
  }

  test('a certificate that somebody has signed who may not is what TLS failed for', async () => {
    const issuer = certificate({ names: ['DNS:no-authority'] })
    const remote = await Hostile.listen({ posts, tls: certificate({ names, issuer }) })
    const { code, said, requests } = await createAt(remote, ['--ca-cert', issuer.path, '--timeout', '1s'])
    expect({ code, requests, error: said.at(-1) }).toMatchObject({
      code: 4,
      requests: [],
      error: { error: 503, message: expect.stringMatching(/^Could not reach URL: TLS failed/), retryable: true },
    })
  })

  test.each<[string, string | undefined, string]>([
    ['is not there', undefined, 'Could not read FILE: there is no such file'],
    ['holds none', 'hello', 'FILE contains no PEM certificate'],
    [
      'holds a broken one',
      '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
      'FILE contains an invalid certificate',
    ],
  ])('a file of certificates that %s is wrong usage', async (_, content, message) => {
    const path = join(temporaryFolder(), 'ca.pem')
    if (content !== undefined) writeFileSync(path, content)
    const remote = await Hostile.listen({ posts, tls: certificate({ names }) })
    const { code, said } = await createAt(remote, ['--ca-cert', path, '--timeout', '1s'])
    expect({ code, said }).toEqual({
      code: 2,
      said: [
        { error: 400, message: message.replace('FILE', path), hint: 'Give a file of PEM certificates with --ca-cert' },
      ],
    })
    expect(remote.connections).toBe(0)
  })

  test('the token does not go without TLS where TLS is spoken', async () => {
    const remote = await Hostile.listen({ posts, tls: certificate({ names }) })
    const { code, out } = await createAt(remote, ['--store', remote.url.replace('https', 'http'), '--timeout', '1s'])
    expect({ code, out, requests: remote.lines }).toEqual({ code: 5, out: '', requests: [] })
  })
})
