import { beforeAll, describe, expect, test } from 'vitest'
import { exchange, type RawRequest } from '../../helpers/raw-http.js'
import { serveForAll } from '../../helpers/service.js'
import { answerTo, common } from '../../helpers/service-answers.js'

const int64 = 'an integer from -9223372036854775808 to 9223372036854775807, in decimal digits'
const fern = '{"id":1,"name":"Fern","tag":"shade"}'
const moss = '{"id":2,"name":"Moss"}'
const ids = ['-9223372036854775808', '-1', '0', '1', '2', '9007199254740993', '9223372036854775807']
const others = ids
  .filter((id) => id !== '1' && id !== '2')
  .map((id) => `{"id":${id},"name":"Plant ${id}","tag":"a b&c=ü"}`)
const all = [fern, moss, ...others].toSorted((one, other) => ids.indexOf(idOf(one)) - ids.indexOf(idOf(other)))
const varying = { ...common, vary: 'Accept' }
const etag = /^"[\w-]{22}"$/

const service = serveForAll([], { rights: 'create,read' })

beforeAll(async () => {
  for (const body of [...all].toReversed()) expect((await exchange(service(), { body })).status).toBe(200)
})

describe('GET /plants/{id}', () => {
  test.each(all)('gives the plant as it was given, with its entity tag: %s', async (plant) => {
    const { status, body, headers } = await answerTo(service(), get(`/plants/${idOf(plant)}`))
    expect({ status, body, etag: headers['etag'] }).toEqual({
      status: 200,
      body: plant,
      etag: expect.stringMatching(etag),
    })
  })

  test('answers HEAD as GET, without the body', async () => {
    const { headers } = await answerTo(service(), get('/plants/1'))
    expect(await answerTo(service(), { ...get('/plants/1'), method: 'HEAD' })).toEqual({
      status: 200,
      body: '',
      headers,
    })
  })

  test.each([
    ['the tag', (tag: string) => tag, 304],
    ['the tag, weak, in a list', (tag: string) => `"a", W/${tag}`, 304],
    ['any', () => '*', 304],
    ['other tags', () => '"a", W/"b"', 200],
  ])('is 304 for an If-None-Match with %s', async (_, condition, status) => {
    const { headers } = await answerTo(service(), get('/plants/1'))
    const known = await exchange(service(), get('/plants/1', { 'If-None-Match': condition(headers['etag'] ?? '') }))
    expect({ status: known.status, body: known.body, etag: known.headers['etag'] }).toEqual({
      status,
      body: status === 304 ? '' : fern,
      etag: headers['etag'],
    })
  })

  test.each<[string, number, string]>([
    ['/plants/3', 404, 'No plant has id 3'],
    ['/plants/-9223372036854775809', 400, `id must be ${int64}, but was "-9223372036854775809"`],
    ['/plants/abc', 400, `id must be ${int64}, but was "abc"`],
    ['/plants/01', 400, `id must be ${int64}, but was "01"`],
    ['/plants/-0', 400, `id must be ${int64}, but was "-0"`],
    ['/plants/1.0', 400, `id must be ${int64}, but was "1.0"`],
    ['/plants/1e0', 400, `id must be ${int64}, but was "1e0"`],
    ['/plants/1?x=1', 400, 'There is no parameter "x"'],
    ['/plants/3?x=1', 400, 'There is no parameter "x"'],
    ['/plants/1?limit=1', 400, 'There is no parameter "limit"'],
    ['/plants/', 404, 'There is nothing at this path. The API is described at /openapi.json'],
    ['/plants/1/2', 404, 'There is nothing at this path. The API is described at /openapi.json'],
  ])('refuses %s with %i', async (target, status, message) => {
    const { headers: _, ...answer } = await answerTo(service(), get(target))
    expect(answer).toEqual({ status, body: { error: status, message } })
  })
})

describe('GET /plants', () => {
  test.each<[string, string[]]>([
    ['', all],
    ['?limit=1000', all],
    ['?after=0', all.slice(3)],
    ['?after=9223372036854775807', []],
    ['?tag=shade', [fern]],
    ['?tag=a+b%26c%3D%C3%BC&after=-1', all.filter((plant) => plant.includes('a b') && !idOf(plant).startsWith('-'))],
    ['?noTag=true', all.filter((plant) => !plant.includes('"tag":'))],
    ['?noTag=false&tag=shade', [fern]],
    ['?search=MOSS', [moss]],
    ['?search=PLANT&tag=shade', []],
  ])('%s lists what was asked for, in the order of ids', async (query, plants) => {
    const answer = await answerTo(service(), get(`/plants${query}`))
    expect(answer).toEqual({ status: 200, body: `[${plants.join()}]`, headers: varying })
  })

  test.each([1, 2, 3])('is followed to its end by its links, with extreme ids, %i at a time', async (limit) => {
    const found: string[] = []
    for (let target: string | undefined = `/plants?limit=${limit}`, pages = 0; target !== undefined; pages += 1) {
      const { body, headers } = await exchange(service(), get(target))
      found.push(body.slice(1, -1))
      const [, next] = /^<(plants\?[^>]*)>; rel="next"$/.exec(headers['link'] ?? '') ?? []
      target = next && `/${next}`
      expect(pages).toBeLessThan(10)
    }
    expect(found.join()).toBe(all.join())
  })

  test('refuses to search for more than 200 characters', async () => {
    const { status, body } = await answerTo(service(), get(`/plants?search=${'x'.repeat(201)}`))
    const message = 'search must have at most 200 characters, but has 201'
    expect({ status, body }).toEqual({ status: 400, body: { error: 400, message } })
  })

  test('carries the parameters on in its link', async () => {
    const { headers } = await exchange(service(), get('/plants?search=plant&limit=1&tag=a%20b%26c%3D%C3%BC'))
    expect(headers['link']).toBe(
      '<plants?limit=1&after=-9223372036854775808&tag=a%20b%26c%3D%C3%BC&search=plant>; rel="next"',
    )
  })

  test.each([
    ['limit=0', 'limit must be a whole number from 1 to 1000, but was "0"'],
    ['limit=1001', 'limit must be a whole number from 1 to 1000, but was "1001"'],
    ['limit=', 'limit must be a whole number from 1 to 1000, but was ""'],
    ['after=1.5', `after must be ${int64}, but was "1.5"`],
    ['tag=%00', 'tag must be text without U+0000, but contains it'],
    ['search=%FF', 'The query of the request is not valid'],
    ['noTag=1', 'noTag must be true or false, but was "1"'],
    ['tag=&noTag=true', 'tag and noTag cannot be used together'],
    ['tag=a&tag=b', 'The parameter tag must be given once'],
    ['name=Fern', 'There is no parameter "name", only limit, after, tag, noTag, search'],
    ['__proto__=x', 'There is no parameter "__proto__", only limit, after, tag, noTag, search'],
  ])('refuses %s', async (query, message) => {
    const answer = await answerTo(service(), get(`/plants?${query}`))
    expect(answer).toEqual({ status: 400, body: { error: 400, message }, headers: varying })
  })
})

describe('the Accept of GET /plants', () => {
  const [json, ndjson] = ['application/json', 'application/x-ndjson']

  test.each([
    [undefined, json],
    ['', json],
    ['*/*', json],
    ['application/*', json],
    [ndjson, ndjson],
    ['Application/X-NDJSON', ndjson],
    [`${ndjson};charset=utf-8`, ndjson],
    [`${json}, ${ndjson};q=0`, json],
    [`${json}, ${ndjson};q=0.1`, json],
    [`${json};q=0.1, ${ndjson} ; Q=0.2`, ndjson],
    [`${json}, ${ndjson}`, json],
    [`${ndjson}, ${json}`, json],
    [`${ndjson}, */*`, ndjson],
    [`${ndjson};q=0.5, */*;q=0.8`, json],
    [`*/*, ${json};q=0`, ndjson],
    [`application/*, ${json};q=0.9`, ndjson],
    [`text/plain, ${ndjson};q=0.5`, ndjson],
    [`text/plain;a="${ndjson},", ${json};q=0.5`, json],
    [`${ndjson};q=0`, json],
    ['text/html, *; q=.2, */*; q=.2', json],
    [`x-${ndjson}`, json],
  ])('%s gets %s', async (accept, type) => {
    const head = { ...get('/plants', { Accept: accept }), method: 'HEAD' }
    const { status, headers } = await exchange(service(), head)
    expect([status, headers['content-type'], headers['vary']]).toEqual([200, type, 'Accept'])
  })
})

describe('a client that may not', () => {
  const challenge = (more: string) => ({ ...common, 'www-authenticate': `Bearer realm="plants"${more}` })

  test.each<[string, RawRequest, number, string, string]>([
    [
      'read without a token',
      get('/plants', { Authorization: undefined }),
      401,
      'No bearer token: send one in the header Authorization, as "Bearer TOKEN"',
      '',
    ],
    [
      'read with another token',
      get('/plants/1', { Authorization: 'Bearer x' }),
      401,
      'This token is not accepted',
      ', error="invalid_token"',
    ],
    [
      'replace',
      { method: 'PUT', target: '/plants/1', body: '{' },
      403,
      'This token has no right to update plants',
      ', error="insufficient_scope", scope="update"',
    ],
    [
      'delete',
      { method: 'DELETE', target: '/plants/x' },
      403,
      'This token has no right to delete plants',
      ', error="insufficient_scope", scope="delete"',
    ],
  ])('%s is told so by the status', async (_, request, status, message, more) => {
    const vary = request.target === '/plants' && { vary: 'Accept' }
    expect(await answerTo(service(), request)).toEqual({
      status,
      body: { error: status, message },
      headers: { ...challenge(more), ...vary },
    })
  })

  test('is told which methods there are', async () => {
    const { status, headers } = await answerTo(service(), { method: 'PATCH', target: '/plants/1' })
    expect({ status, allow: headers['allow'] }).toEqual({ status: 405, allow: 'GET, HEAD, PUT, DELETE' })
  })

  test('is in the log by the path of the route, and not by what it asked for', async () => {
    await exchange(service(), get('/plants/9007199254740993?secret-1'))
    await exchange(service(), get('/plants?tag=secret-2'))
    await expect
      .poll(() => service().log.filter(({ outcome, path }) => outcome === '404' && path === '/plants/{id}').length)
      .toBeGreaterThan(0)
    expect(service().log).toContainEqual(
      expect.objectContaining({ outcome: 'read', status: 200, method: 'GET', path: '/plants' }),
    )
    expect(service().err).not.toMatch(/9007199254740993|secret-/)
  })
})

function get(target: string, headers: RawRequest['headers'] = {}): RawRequest {
  return { method: 'GET', target, headers: { 'Content-Type': undefined, ...headers } }
}

function idOf(plant: string): string {
  return /-?\d+/.exec(plant)?.[0] ?? ''
}
