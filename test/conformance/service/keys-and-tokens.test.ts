import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { differs } from '../../helpers/differences.js'
import { plants } from '../../helpers/process.js'
import { runPlants } from '../../helpers/run.js'
import { type RunningService, serve, testToken } from '../../helpers/service.js'
import { answerTo, common, planted } from '../../helpers/service-answers.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const fern = '{"id":1,"name":"Fern"}'

describe('an Idempotency-Key', () => {
  test('that comes many times at the same moment makes one plant, and all get the same answer', async () => {
    const service = await serve()
    const request = { headers: { 'Idempotency-Key': 'moment' }, body: '{"id":1,"name":"Fern","tag":"shade"}' }
    const answers = await Promise.all(Array.from({ length: 20 }, () => answerTo(service, request)))
    expect(answers).toEqual(answers.map(() => ({ ...planted, body: '{"name":"Fern","tag":"shade"}' })))
    expect(await listOf(service)).toEqual(['{"id":1,"name":"Fern","tag":"shade"}'])
  })

  test('is known after the service was started again', async () => {
    const folder = temporaryFolder()
    const request = { headers: { 'Idempotency-Key': 'restart' }, body: fern }
    const first = await serve([], { folder })
    expect(await answerTo(first, request)).toEqual(planted)
    expect((await first.stop()).code).toBe(0)
    const second = await serve([], { folder })
    expect(await answerTo(second, request)).toEqual(planted)
    const other = await answerTo(second, { ...request, body: '{"id":2,"name":"Moss"}' })
    expect(other.body).toEqual({ error: 409, message: 'This idempotency key was used for a different plant' })
  })

  test.skipIf(differs('more than 200 headers'))(
    'counts, or is refused, after any number of headers (needs Node as its runtime)',
    async () => {
      const service = await serve()
      const many = Array.from({ length: 1500 }, () => 'b')
      const request = { headers: { a: many, 'Idempotency-Key': 'late' }, body: fern }
      const [first, second] = [await answerTo(service, request), await answerTo(service, request)]
      expect(first.status).toBeOneOf([200, 431])
      expect(second).toEqual(first)
    },
  )
})

describe('a token of the store', () => {
  test('is accepted until it expires or is revoked, which a running service follows within a second', async () => {
    const folder = temporaryFolder()
    const make = async (...args: string[]) => (await plants(['tokens', 'create', ...args], folder)).out.trim()
    const [lasting, expired, revoked] = [await make(), await make('--expires', '1ms'), await make()]
    const service = await serve([], { folder, env: {} })
    const create = (token: string, id: number) =>
      answerTo(service, { headers: { Authorization: `Bearer ${token}` }, body: `{"id":${id},"name":"Fern"}` })
    const refusal = (message: string, description = '') => {
      const challenge = RegExp(`^Bearer realm="plants", error="invalid_token"${description}$`)
      const headers = { ...common, 'www-authenticate': expect.stringMatching(challenge) }
      return { status: 400, body: { error: 401, message: expect.stringMatching(`^${message}$`) }, headers }
    }
    const ended = (what: string) => {
      const message = `The token ${what} on \\d{4}-\\d\\d-\\d\\d`
      return refusal(message, `, error_description="${message}"`)
    }
    expect(await create(expired, 1)).toEqual(ended('expired'))
    expect(await create(revoked, 2)).toEqual(planted)
    expect((await plants(['tokens', 'revoke', '3'], folder)).code).toBe(0)
    const start = performance.now()
    await expect.poll(() => create(revoked, 2), { interval: 20, timeout: 5000 }).toEqual(ended('was revoked'))
    expect(performance.now() - start).toBeLessThan(1000)
    expect(await create(lasting, 3)).toEqual(planted)
    expect(await create(testToken, 4)).toEqual(refusal('This token is not accepted'))
    const env = { PLANTS_TOKEN: expired }
    const { err } = await plants(['get', '3', '--store', service.address], folder, { env })
    expect(err).toMatch(/^plants: The token expired on \d{4}-\d\d-\d\d \(status 401\)\n/)
  })
})

describe('a base path', () => {
  test.each(['/v1', '/a/b.c~d/', '/v1/plants'])('%s stands before /plants and /openapi.json', async (given) => {
    const base = given.replace(/\/$/, '')
    const service = await serve(['--base-path', given])
    const message = `There is nothing at this path. The API is described at ${base}/openapi.json`
    const nowhere = { status: 404, body: { error: 404, message }, headers: common }
    expect(new URL(service.address).pathname).toBe(base)
    expect(await answerTo(service, { target: `${base}/plants`, body: fern })).toEqual(planted)
    expect((await answerTo(service, { method: 'GET', target: `${base}/openapi.json` })).status).toBe(200)
    for (const target of ['/plantsx', '/openapi.json', base, `${base}/`, `${base}x/plants`]) {
      expect(await answerTo(service, { target, body: fern })).toEqual(nowhere)
    }
    expect((await answerTo(service, { method: 'PUT', target: `${base}/plants` })).headers).toEqual({
      ...common,
      allow: 'POST, GET, HEAD',
    })
  })
})

async function listOf({ folder }: RunningService): Promise<string[]> {
  const { code, out } = await runPlants(['list'], { env: { PLANTS_DATA_DIR: join(folder, 'data') } })
  expect(code).toBe(0)
  return out.split('\n').filter((line) => line !== '')
}
