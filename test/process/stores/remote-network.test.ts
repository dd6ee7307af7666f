import { describe, expect, test } from 'vitest'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { Hostile, json } from '../../helpers/hostile.js'
import { plants } from '../../helpers/process.js'
import { token } from '../../helpers/remote.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const posts = [json(200, { name: 'Fern' })]
const argv = ['create', '--id', '1', '--name', 'Fern', '--output', 'json', '--timeout', '5s', '--store']
const env = { PLANTS_TOKEN: token }

describe('what cannot be reached is told apart', () => {
  test('and the program ends with its time-out, whatever is still on its way', async () => {
    const remote = await Hostile.listen({})
    const store = remote.url.replace('http', 'https')
    const { code } = await plants([...argv, store, '--timeout', '1s'], temporaryFolder(), { env, timeout: 5000 })
    expect(code).toBe(4)
  })
})

describe.runIf(hasOpenssl)('TLS (needs openssl)', () => {
  const names = ['IP:127.0.0.1']

  test('NODE_EXTRA_CA_CERTS is trusted, unless --ca-cert says whom to trust instead', async () => {
    const own = certificate({ names })
    const remote = await Hostile.listen({ posts, tls: own })
    const extra = { ...env, NODE_EXTRA_CA_CERTS: own.path }
    const folder = temporaryFolder()
    expect(await plants([...argv, remote.url], folder, { env: extra })).toEqual({ code: 0, out: '{"name":"Fern"}\n', err: '' })
    const flags = ['--ca-cert', certificate({ names }).path, '--timeout', '1s']
    expect((await plants([...argv, remote.url, ...flags], folder, { env: extra })).code).toBe(4)
    expect(remote.lines).toEqual(['POST /plants'])
  })
})
