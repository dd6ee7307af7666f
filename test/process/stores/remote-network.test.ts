import { describe, expect, test } from 'vitest'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { Hostile, json } from '../../helpers/hostile.js'
import { plants } from '../../helpers/process.js'
import { token } from '../../helpers/remote.js'
import { withUsual } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const posts = [json(200, { name: 'Fern' })]
const fern = ['create', '--id', '1', '--name', 'Fern', '--output', 'json', '--store']
const atStore = (...words: string[]) => withUsual({ '--timeout': '5s' }, [...fern, ...words])
const env = { PLANTS_TOKEN: token }

describe('what cannot be reached is told apart', () => {
  test('and the program ends with its time-out, whatever is still on its way', async () => {
    const remote = await Hostile.listen({})
    const store = remote.url.replace('http', 'https')
    const { code } = await plants(atStore(store, '--timeout', '1s'), temporaryFolder(), { env, timeout: 5000 })
    expect(code).toBe(4)
  })
})

test('a page in pieces of one byte needs little memory', async () => {
  const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
  const page = `${head}${chunk('[')}${chunk(' ').repeat(1_000_000)}${chunk('{"id":1,"name":"Fern"}]')}${chunk('')}`
  const openapi = json(200, { paths: { '/plants': { get: {} } } })
  const remote = await Hostile.listen({ openapi, others: { 'GET /plants': [page] } })
  const small = { env: { ...env, NODE_OPTIONS: '--max-old-space-size=64' } }
  expect(await plants(['list', '--store', remote.url], temporaryFolder(), small)).toEqual({
    ...{ code: 0, out: '{"id":1,"name":"Fern"}\n', err: '' },
  })
})

describe.runIf(hasOpenssl)('TLS (needs openssl)', () => {
  const names = ['IP:127.0.0.1']

  test('NODE_EXTRA_CA_CERTS is trusted, unless --ca-cert says whom to trust instead', async () => {
    const own = certificate({ names })
    const remote = await Hostile.listen({ posts, tls: own })
    const extra = { ...env, NODE_EXTRA_CA_CERTS: own.path }
    const folder = temporaryFolder()
    expect(await plants(atStore(remote.url), folder, { env: extra })).toEqual({
      code: 0,
      out: '{"name":"Fern"}\n',
      err: '',
    })
    const flags = ['--ca-cert', certificate({ names }).path]
    expect((await plants(atStore(remote.url, ...flags), folder, { env: extra })).code).toBe(4)
    expect(remote.lines).toEqual(['POST /plants'])
  })
})
