import { once } from 'node:events'
import { expect, test } from 'vitest'
import { createCertificate, hasOpenssl } from '../../helpers/sandbox/certificates.js'
import { waitForResult } from '../../helpers/sandbox/process.js'
import { parseObjects, Sandbox, toJsonResult } from '../../helpers/sandbox/sandbox.js'
import {
  buildJsonResponse,
  buildResponse,
  ScriptedServer,
} from '../../helpers/scripted-server/scripted-server.js'
import { token } from '../../helpers/scripted-server/service.js'

const create = 'create --id 1 --name Fern --output json --store'
const env = { PLANTS_TOKEN: token }

const unavailable = buildResponse(503, '', { 'Retry-After': 30 })
const key = { name: 'Idempotency-Key', in: 'header' }
const plants = { parameters: [], post: { parameters: [key] } }
const keyed = buildJsonResponse(200, { openapi: '3.1.0', paths: { '/plants': plants } })
const reset = (socket: { resetAndDestroy(): unknown }) => void socket.resetAndDestroy()

interface Case {
  answers?: Parameters<typeof ScriptedServer.listen>[0]
  /** when the signal comes */
  until?: (service: ScriptedServer, program: ReturnType<Sandbox['start']>) => Promise<unknown>
  signal?: 'SIGINT' | 'SIGTERM'
  scheme?: 'http' | 'https'
  posts?: number
  /** whether the plant may be stored, so that the hint says how to repeat it */
  isOpen?: boolean
}

const requests = (count: number) => async (service: ScriptedServer) => {
  while (service.requests.length < count) await once(service, 'request')
}

test.each<[string, Case]>([
  ['while a response is waited for leaves the outcome open', {}],
  ['by SIGTERM leaves the outcome open, too', { signal: 'SIGTERM' }],
  [
    'in a handshake that nobody answers leaves nothing open',
    { scheme: 'https', until: (service) => once(service, 'connection'), posts: 0, isOpen: false },
  ],
  [
    'between two tries leaves nothing open',
    {
      ...{ answers: { posts: [unavailable] }, isOpen: false },
      until: async (_, { stderr }) => stderr && once(stderr, 'data'),
    },
  ],
  [
    'between two tries, of which the first was not answered, leaves it open',
    { answers: { posts: [reset, unavailable], openapi: keyed }, until: requests(3), posts: 2 },
  ],
])('a signal to a create %s', async (_, each) => {
  const { answers = {}, until = requests(1), scheme = 'http', posts = 1, isOpen = true } = each
  const { signal = 'SIGINT' } = each
  const service = await ScriptedServer.listen(answers)
  const url = service.url.replace('http', scheme)
  const program = new Sandbox().start(`${create} ${url} --timeout 60s`, { env })
  await until(service, program)
  program.kill(signal)
  const { code, out, err } = await waitForResult(program)
  expect([code, out]).toEqual([signal === 'SIGTERM' ? 143 : 130, ''])
  expect(service.posts).toHaveLength(posts)
  const { error, hint } = parseObjects(err).at(-1) ?? {}
  expect(error).toBe(500)
  expect(hint).toEqual(
    isOpen ? expect.stringContaining(`--idempotency-key ${service.keys[0]}`) : undefined,
  )
})

test.runIf(hasOpenssl)(
  'a client trusts NODE_EXTRA_CA_CERTS, unless --ca-cert names other certificates (needs openssl)',
  async () => {
    const names = ['IP:127.0.0.1']
    const own = createCertificate({ names })
    const service = await ScriptedServer.listen({
      posts: [buildJsonResponse(200, { name: 'Fern' })],
      tls: own,
    })
    const options = { env: { ...env, NODE_EXTRA_CA_CERTS: own.path } }
    const run = (flags: string) => new Sandbox().spawn(`${create} ${service.url}${flags}`, options)
    expect(await run('')).toEqual(toJsonResult({ name: 'Fern' }))
    expect((await run(` --timeout 5s --ca-cert ${createCertificate({ names }).path}`)).code).toBe(4)
    expect(service.lines).toEqual(['POST /plants'])
  },
)
