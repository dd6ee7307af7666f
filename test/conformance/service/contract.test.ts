import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { exchange, type RawRequest } from '../../helpers/raw-http.js'
import { type RunningService, serve, serveForAll, storedIn } from '../../helpers/service.js'
import { World } from '../../helpers/world.js'

const all = 'create,read,update,delete'
const fern = '{"id":1,"name":"Fern"}'
const planted = '200 {"name":"Fern"}'

test.each(['create', 'read', 'change'])(
  'exchanges/%s.http shows what the service responds',
  async (name) => {
    const path = join(import.meta.dirname, `exchanges/${name}.http`)
    const service = await serve(['--allow', all])
    await expect(await replay(readFileSync(path, 'utf8'), service)).toMatchFileSnapshot(path)
  },
)

describe('a create', () => {
  const service = serveForAll()
  const limit = 1_048_576
  const inChunks = (...chunks: string[]): RawRequest => ({
    headers: { 'Content-Length': undefined, 'Transfer-Encoding': 'Chunked' },
    body: [...chunks, '']
      .map((chunk) => `${chunk.length.toString(16)};a=b\r\n${chunk}\r\n`)
      .join(''),
  })

  test.each<[string, plant: string, RawRequest]>([
    [
      'a body as large as the limit',
      '{"id":2,"name":"Fern"}',
      { body: '{"id":2,"name":"Fern"}'.padEnd(limit) },
    ],
    ['chunks', '{"id":4,"name":"Fern"}', inChunks('{', '"id":4,"name":"Fern"}')],
  ])('with %s is accepted', async (_, plant, request) => {
    expect((await exchange(service(), request)).text).toBe(planted)
    expect(await storedIn(service())).toContain(plant)
  })

  test.each<[text: string, RawRequest]>([
    [
      '(401) This token is not accepted',
      { headers: { Authorization: `Bearer ${'x'.repeat(5000)}` } },
    ],
    [`(413) The body is larger than ${limit} bytes`, { body: fern.padEnd(limit + 1) }],
    [`(413) The body is larger than ${limit} bytes`, inChunks(' '.repeat(limit + 1))],
    ['The body is empty', {}],
    ['The body is not UTF-8', { body: Buffer.from('{"id":1,"name":"gr\u00fcn"}', 'latin1') }],
    [
      '(422) Invalid plant: it must be an object, but was an array',
      { body: '['.repeat(1e5) + ']'.repeat(1e5) },
    ],
  ])('is rejected: %s', async (text, request) => {
    expect((await exchange(service(), request)).text).toBe(`400 ${text}`)
    expect(await storedIn(service())).not.toContain(fern)
  })
})

describe('a service with --allow', () => {
  const requests = [
    'POST /plants',
    'GET /plants',
    'GET /plants/1',
    'PATCH /plants/1',
    'DELETE /plants/1',
  ]

  test.each([
    ['', all, '200 200 200 200 200'],
    ['create', all, '200 403 403 403 403'],
    ['read', all, '400 200 404 403 403'],
    ['', '', '200 403 403 403 403'],
    [all, '', '200 200 200 200 200'],
  ])('"%s" gives a token with "%s" %s', async (allow, rights, expected) => {
    const service = await serve(allow === '' ? [] : ['--allow', allow], { rights }) // or a token of the environment
    const statuses: number[] = []
    for (const line of requests) {
      const [method = '', target = ''] = line.split(' ')
      statuses.push(
        (await exchange(service, { method, target, body: method.startsWith('P') ? fern : '' }))
          .status,
      )
    }
    expect(statuses.join(' ')).toBe(expected)
  })

  test.each([
    ['read', 'create', '/plants', '400 (403) This service does not create plants', ''],
    [
      all,
      'read',
      '/plants',
      '400 (403) This token has no right to create plants',
      ', scope="create"',
    ],
    [all, 'read', '/plants/x', '403 This token has no right to update plants', ', scope="update"'],
  ])('%s rejects a token with "%s": %s', async (allow, rights, target, text, scope) => {
    const method = target === '/plants' ? 'POST' : 'PATCH'
    const answer = await exchange(await serve(['--allow', allow], { rights }), {
      method,
      target,
      body: '{',
    })
    const headers = {
      'www-authenticate': `Bearer realm="plants", error="insufficient_scope"${scope}`,
    }
    expect(answer).toMatchObject({ text, headers })
  })

  test('read rejects a create without a token with 401', async () => {
    const reader = await serve(['--allow', 'read'])
    expect((await exchange(reader, { method: 'PUT' })).headers['allow']).toBe('POST, GET')
    expect((await exchange(reader, { headers: { Authorization: undefined } })).text).toMatch(
      /^400 \(401\) No bearer/,
    )
  })
})

test.each([
  ['expired', ' --expires 1ms', 'list'],
  ['was revoked', '', 'revoke 2'],
])('a token that %s is rejected by a service that runs', async (_, flags, then) => {
  const world = new World()
  await world.run('tokens create') // without a valid one, no service starts
  const token = (await world.run(`tokens create${flags}`)).out.trim()
  const service = { ...(await serve([], { folder: world.home, env: {} })), token }
  await exchange(service, { body: fern })
  await world.run(`tokens ${then}`)
  await expect
    .poll(() => exchange(service, { body: fern }))
    .toMatchObject({
      text: '400 (401) This token is not accepted',
      headers: { 'www-authenticate': 'Bearer realm="plants", error="invalid_token"' },
    })
  const { err } = await world.run(`get 3 --store ${service.address}`, {
    env: { PLANTS_TOKEN: token },
  })
  expect(err).toMatch(/^plants: This token is not accepted \(status 401\)\n/)
})

test.each(['/a/b.c~d/', '/v1/plants'])(
  'the base path %s stands before all paths',
  async (given) => {
    const base = given.replace(/\/$/, '')
    const service = await serve(['--base-path', given])
    expect(new URL(service.address).pathname).toBe(base)
    expect((await exchange(service, { target: `${base}/plants`, body: fern })).text).toBe(planted)
    expect(
      (await exchange(service, { method: 'GET', target: `${base}/openapi.json` })).status,
    ).toBe(200)
    const nothing = `404 There is nothing at this path. The API is described at ${base}/openapi.json`
    for (const target of ['/plantsx', '/openapi.json', base, `${base}/`, `${base}x/plants`])
      expect((await exchange(service, { target, body: fern })).text).toBe(nothing)
    const put = await exchange(service, { method: 'PUT', target: `${base}/plants` })
    expect(put.headers['allow']).toBe('POST, GET')
  },
)

/**
 * Sends the requests of a text again, and returns it with the responses of now. A request is a line such as
 * `PATCH /plants/1 | If-Match: * | !Content-Type | {"name":"Moss"}`, with what differs from a usual create: `!` leaves
 * a header out, and TOKEN is a valid token. Below it, or below several, stands the response, with the headers that not
 * every one has.
 */
async function replay(text: string, service: RunningService): Promise<string> {
  const lines: { line: string; response?: string }[] = []
  for (const line of text.split('\n')) {
    if (/^[A-Z]/.test(line)) lines.push({ line, response: await responseTo(line, service) })
    else if (!/^\d/.test(line)) lines.push({ line })
  }
  return lines
    .flatMap(({ line, response }, at) =>
      response === undefined || response === lines[at + 1]?.response ? line : [line, response],
    )
    .join('\n')
}

async function responseTo(line: string, service: RunningService) {
  const given = line.replaceAll('TOKEN', service.token)
  const { headers, text } = await exchange(service, requestOf(given))
  if (!/^[\da-f]{8}-[\da-z]+$/.test(headers['request-id'] ?? ''))
    throw new Error('A response has no Request-Id')
  const shown = Object.entries(headers)
    .filter(([name, value]) => !volatile.has(name) && value !== usual[name])
    .map(([name, value]) => ` [${name}: ${value}]`)
    .toSorted()
  const missing = Object.keys(usual).filter((name) => !(name in headers))
  const sentence = text.replace(/(?<=is not JSON: ).+/, '…') // of the parser, which differs between runtimes
  return `${sentence}${shown.join('')}${missing.map((name) => ` [no ${name}]`).join('')}`
}

const volatile = new Set(['connection', 'date', 'content-length', 'keep-alive', 'request-id'])
const usual: Record<string, string> = { 'content-type': 'application/json' }

function requestOf(line: string): RawRequest {
  const [start = '', ...parts] = line.split(' | ')
  const [method = '', target = ''] = start.split(' ')
  const headers: Record<string, string | string[] | undefined> = {}
  let body = { POST: '{"id":1,"name":"Fern"}', PATCH: '{"name":"Fern"}' }[method] ?? ''
  for (const part of parts) {
    const [, name, value = ''] = /^([A-Z][\w-]*): ?(.*)$/.exec(part) ?? []
    if (part.startsWith('!')) headers[part.slice(1)] = undefined
    else if (name === undefined) body = part
    else headers[name] = name in headers ? [headers[name] ?? '', value].flat() : value
  }
  return { method, target, headers, body }
}
