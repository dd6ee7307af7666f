import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { Hostile, http, json } from '../../helpers/hostile.js'
import { howToRepeat, linesOf, token } from '../../helpers/http-store.js'
import { resultOf } from '../../helpers/process.js'
import { answer, World } from '../../helpers/world.js'

const create = 'create --id 1 --name Fern --output json --store'
const env = { PLANTS_TOKEN: token }
type Program = ReturnType<World['start']>

async function speaks({ stderr }: Program): Promise<void> {
  if (stderr) await once(stderr, 'data')
}

/** How a program has ended, and what it has said. */
async function endOf(program: Program, service: Hostile) {
  const { code, out, err } = await resultOf(program)
  return { code, out, said: linesOf(err, service), posts: service.posts.length }
}

describe('a signal', () => {
  const unavailable = http(503, '', { 'Retry-After': 30 })
  const keyed = json(200, {
    openapi: '3.1.0',
    paths: {
      '/plants': {
        parameters: [],
        post: { parameters: [{ name: 'Idempotency-Key', in: 'header' }] },
      },
    },
  })
  const reset = (socket: { resetAndDestroy(): unknown }) => void socket.resetAndDestroy()
  const requests = (count: number) => async (service: Hostile) => {
    while (service.requests.length < count) await once(service, 'request')
  }
  const warned = (_: Hostile, program: Program) => speaks(program)

  interface Case {
    answers?: Parameters<typeof Hostile.listen>[0]
    /** when the signal comes */
    until?: (service: Hostile, program: Program) => Promise<unknown>
    signal?: 'SIGINT' | 'SIGTERM'
    isTls?: true
    posts?: number
  }
  const nothing = { message: 'Interrupted, nothing was stored' }
  const open = { message: 'Interrupted before URL answered', hint: howToRepeat }

  test.each<[string, { message: string; hint?: string }, Case]>([
    ['while a response is waited for leaves the outcome open', open, {}],
    [
      'as SIGTERM, too',
      { ...open, message: 'Terminated before URL answered' },
      { signal: 'SIGTERM' },
    ],
    [
      'before anything was sent, in a handshake that nobody answers, tells that nothing was stored',
      nothing,
      { isTls: true, until: (service) => once(service, 'connection'), posts: 0 },
    ],
    [
      'between two tries tells that nothing was stored',
      nothing,
      { answers: { posts: [unavailable] }, until: warned },
    ],
    [
      'between two tries, of which the first was not answered, leaves it open',
      { ...open, hint: howToRepeat },
      { answers: { posts: [reset, unavailable], openapi: keyed }, until: requests(3), posts: 2 },
    ],
  ])(
    '%s',
    async (_, error, {
      answers = {},
      until = requests(1),
      signal = 'SIGINT',
      isTls,
      posts = 1,
    }) => {
      const service = await Hostile.listen(answers)
      const url = isTls ? service.url.replace('http', 'https') : service.url
      const program = new World().start(`${create} ${url} --timeout 60s`, { env })
      await until(service, program)
      program.kill(signal)
      const { said, ...end } = await endOf(program, service)
      const expected = {
        code: signal === 'SIGTERM' ? 143 : 130,
        out: '',
        posts,
        last: { error: 500, ...error },
      }
      expect({ ...end, last: said.at(-1) }).toEqual(expected)
    },
  )
})

test('a page in pieces of one byte needs little memory', async () => {
  const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
  const head =
    'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
  const page = `${head}${chunk('[')}${chunk(' ').repeat(1_000_000)}${chunk('{"id":1,"name":"Fern"}]')}${chunk('')}`
  const openapi = json(200, { paths: { '/plants': { get: {} } } })
  const service = await Hostile.listen({ openapi, others: { 'GET /plants': [page] } })
  const small = { env: { ...env, NODE_OPTIONS: '--max-old-space-size=64' } }
  expect(await new World().spawn(`list --limit 1000 --store ${service.url}`, small)).toEqual(
    answer({ id: 1, name: 'Fern' }),
  )
})

test.runIf(hasOpenssl)(
  'NODE_EXTRA_CA_CERTS is trusted, unless --ca-cert names others (needs openssl)',
  async () => {
    const names = ['IP:127.0.0.1']
    const own = certificate({ names })
    const service = await Hostile.listen({ posts: [json(200, { name: 'Fern' })], tls: own })
    const run = (flags: string) =>
      new World().spawn(`${create} ${service.url}${flags}`, {
        env: { ...env, NODE_EXTRA_CA_CERTS: own.path },
      })
    expect(await run('')).toEqual(answer({ name: 'Fern' }))
    expect((await run(` --timeout 5s --ca-cert ${certificate({ names }).path}`)).code).toBe(4)
    expect(service.lines).toEqual(['POST /plants'])
  },
)
