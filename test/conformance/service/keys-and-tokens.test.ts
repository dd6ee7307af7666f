import { describe, expect, test } from 'vitest'
import { differs } from '../../helpers/differences.js'
import { serve, storedIn, testToken } from '../../helpers/service.js'
import { answerTo, common, planted } from '../../helpers/service-answers.js'
import { World } from '../../helpers/world.js'

const fern = '{"id":1,"name":"Fern"}'

describe('an Idempotency-Key', () => {
  test('that comes many times at the same moment makes one plant, and all get the same response', async () => {
    const service = await serve()
    const request = { headers: { 'Idempotency-Key': 'moment' }, body: fern }
    const answers = await Promise.all(Array.from({ length: 20 }, () => answerTo(service, request)))
    expect(answers).toEqual(answers.map(() => planted))
    expect(await storedIn(service)).toEqual([fern])
  })

  test('is known after the service was started again', async () => {
    const request = { headers: { 'Idempotency-Key': 'restart' }, body: fern }
    const first = await serve()
    expect(await answerTo(first, request)).toEqual(planted)
    expect((await first.stop()).code).toBe(0)
    const second = await serve([], first)
    expect(await answerTo(second, request)).toEqual(planted)
    const other = { ...request, body: '{"id":2,"name":"Moss"}' }
    expect(await answerTo(second, other)).toMatchObject({ status: 400, body: { error: 409 } })
  })

  test.skipIf(differs('more than 200 headers'))(
    'counts, or is rejected, after any number of headers (needs Node as its runtime)',
    async () => {
      const service = await serve()
      const headers = { a: Array.from({ length: 1500 }, () => 'b'), 'Idempotency-Key': 'late' }
      const answer = await answerTo(service, { headers, body: fern })
      expect(answer.status).toBeOneOf([200, 431])
      expect(await answerTo(service, { headers, body: fern })).toEqual(answer)
    },
  )
})

test('a token of the store is accepted until it expires or is revoked, which a running service follows within a second', async () => {
  const world = new World()
  const make = async (flags = '') => (await world.spawn(`tokens create${flags}`)).out.trim()
  const [lasting, expired, revoked] = [await make(), await make(' --expires 1ms'), await make()]
  const service = await serve([], { folder: world.home, env: {} })
  const create = (token: string, id: number) => answerTo({ ...service, token }, { body: `{"id":${id},"name":"Fern"}` })
  const rejection = (message: string, describes = '') => ({
    status: 400,
    body: { error: 401, message: expect.stringMatching(`^${message}$`) },
    headers: {
      ...common,
      'www-authenticate': expect.stringMatching(`^Bearer realm="plants", error="invalid_token"${describes}$`),
    },
  })
  const ended = (what: string) => {
    const message = `The token ${what} on \\d{4}-\\d\\d-\\d\\d`
    return rejection(message, `, error_description="${message}"`)
  }
  expect(await create(expired, 1)).toEqual(ended('expired'))
  expect(await create(revoked, 2)).toEqual(planted)
  expect((await world.spawn('tokens revoke 3')).code).toBe(0)
  const start = performance.now()
  await expect.poll(() => create(revoked, 2), { interval: 20, timeout: 5000 }).toEqual(ended('was revoked'))
  expect(performance.now() - start).toBeLessThan(1000)
  expect(await create(lasting, 3)).toEqual(planted)
  expect(await create(testToken, 4)).toEqual(rejection('This token is not accepted'))
  const { err } = await world.spawn(`get 3 --store ${service.address}`, { env: { PLANTS_TOKEN: expired } })
  expect(err).toMatch(/^plants: The token expired on \d{4}-\d\d-\d\d \(status 401\)\n/)
})

test.each(['/v1', '/a/b.c~d/', '/v1/plants'])('the base path %s stands before all paths', async (given) => {
  const base = given.replace(/\/$/, '')
  const service = await serve(['--base-path', given])
  expect(new URL(service.address).pathname).toBe(base)
  expect(await answerTo(service, { target: `${base}/plants`, body: fern })).toEqual(planted)
  expect((await answerTo(service, { method: 'GET', target: `${base}/openapi.json` })).status).toBe(200)
  const message = `There is nothing at this path. The API is described at ${base}/openapi.json`
  for (const target of ['/plantsx', '/openapi.json', base, `${base}/`, `${base}x/plants`])
    expect(await answerTo(service, { target, body: fern })).toMatchObject({ status: 404, body: { message } })
  const put = await answerTo(service, { method: 'PUT', target: `${base}/plants` })
  expect(put.headers['allow']).toBe('POST, GET, HEAD')
})
