import { describe, expect, test } from 'vitest'
import { exchange, type RawRequest } from '../../helpers/raw-http.js'
import { serve, serveForAll } from '../../helpers/service.js'
import { World } from '../../helpers/world.js'

const garden = 'https://garden.example'
const shown = ({ headers }: { headers: Record<string, string> }) =>
  Object.entries(headers).filter(([name]) => name.startsWith('access-control-') || name === 'vary')
const preflight = (Origin: string, target = '/plants'): RawRequest => ({
  method: 'OPTIONS',
  target,
  headers: {
    Origin,
    'Access-Control-Request-Method': 'POST',
    Authorization: undefined,
    'Content-Type': undefined,
  },
  body: '',
})
const allowed = (origin: string) => [
  ['access-control-allow-origin', origin],
  ['access-control-expose-headers', 'Link, Retry-After, Request-Id, WWW-Authenticate'],
]

describe('--cors', () => {
  const service = serveForAll([
    '--allow',
    'create,read',
    '--cors',
    garden,
    '--cors',
    'http://localhost:5173',
  ])

  test('answers a preflight of an origin without a token', async () => {
    for (const target of ['/plants', '/plants/1', '/openapi.json']) {
      const answer = await exchange(service(), preflight(garden, target))
      expect([answer.status, answer.body, answer.headers['content-length']]).toEqual([
        204,
        '',
        undefined,
      ])
      expect(shown(answer).toSorted()).toEqual([
        ['access-control-allow-headers', 'Authorization, Content-Type, Idempotency-Key, Accept'],
        ['access-control-allow-methods', 'GET, POST, PATCH, DELETE'],
        ...allowed(garden),
        ['vary', 'Origin'],
      ])
    }
    expect(await exchange(service(), preflight(garden, '/nothing'))).toMatchObject({ status: 404 })
  })

  test('lets the origin read every answer', async () => {
    const headers = { Origin: 'http://localhost:5173' }
    const requests: [number, RawRequest][] = [
      [200, { headers, body: '{"id":1,"name":"Fern"}' }],
      [400, { headers: { ...headers, Authorization: undefined } }],
      [200, { method: 'GET', target: '/plants', headers }],
      [404, { method: 'GET', target: '/nothing', headers }],
    ]
    for (const [status, request] of requests) {
      const answer = await exchange(service(), request)
      const origin = shown(answer).filter(([name]) => name !== 'vary')
      expect([answer.status, origin]).toEqual([status, allowed('http://localhost:5173')])
      expect(answer.headers['vary']).toMatch(/\bOrigin\b/)
    }
  })

  test('allows no other origin', async () => {
    for (const origin of ['https://other.example', 'https://garden.example:444', 'null', '*']) {
      const { status, headers } = await exchange(service(), preflight(origin))
      expect([status, headers['access-control-allow-origin'], headers['vary']]).toEqual([
        405,
        undefined,
        'Origin',
      ])
      const answer = await exchange(service(), { headers: { Origin: origin }, body: '{' })
      expect(shown(answer)).toEqual([['vary', 'Origin']])
    }
  })
})

test('--cors * allows any origin', async () => {
  const service = await serve(['--cors', '*'])
  const answer = await exchange(service, preflight('https://other.example'))
  expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([204, '*'])
})

test('without --cors, there are no such headers', async () => {
  const service = await serve()
  const { status, headers } = await exchange(service, preflight(garden))
  expect([status, shown({ headers })]).toEqual([405, []])
})

test.each(['https://garden.example/', 'null', ''])(
  '--cors must be an origin, not "%s"',
  async (origin) => {
    const { code, err } = await new World().run(['serve', '--cors', origin])
    const message = '--cors must be an origin without a path, or *'
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(`plants: ${message}`) })
  },
)
