import { describe, expect, test } from 'vitest'
import { forwardProxy, Hostile, json } from '../../helpers/hostile.js'
import { token } from '../../helpers/http-store.js'
import { objectsOf } from '../../helpers/json-lines.js'
import { create, exchanged, wire } from '../../helpers/traces.js'
import { isWindows } from '../../helpers/windows.js'
import { World } from '../../helpers/world.js'

const posts = [json(200, { name: 'Fern' })]
const keyed = json(200, {
  paths: { '/plants': { post: { parameters: [{ in: 'header', name: 'Idempotency-Key' }] } } },
})
const busy = json(503, { error: 503, message: 'Busy' })
const created = { code: 0, out: '{"name":"Fern"}\n' }

/** The first lines of requests and answers, and messages. */
function steps(err: string, url: string): string[] {
  const lines = wire(err, url).filter((line) => /^(> (POST|GET)|< \d+|plants:)/.test(line))
  return lines.map((line) => /^< \d+/.exec(line)?.[0] ?? line)
}

describe('--verbose shows a request and its answer', () => {
  test('after the source of the token', async () => {
    const service = await Hostile.listen({ posts })
    const { err, ...result } = await create(`${service.url}/v1`)
    expect(result).toEqual(created)
    expect(err.split('\n')[0]).toBe('* token from PLANTS_TOKEN')
    expect(wire(err, `${service.url}/v1`)).toEqual(exchanged)
  })

  test('through a proxy, which is named without its password', async () => {
    const proxy = await forwardProxy()
    const service = await Hostile.listen({ posts, place: { host: '0.0.0.0', port: 0 } })
    const env = { HTTP_PROXY: proxy.url.replace('//', '//user:proxy-s3cret@') }
    const { err } = await create(`http://0.0.0.0:${service.port}`, ['--allow-http'], { env })
    expect(proxy.passed).toHaveLength(1)
    expect(err).not.toContain(Buffer.from('user:proxy-s3cret').toString('base64'))
    expect(err).toContain(`\n* proxy ${new URL(proxy.url).host}\n`)
  })
})

describe('--verbose shows what is tried again', () => {
  test('each time, in order, with warnings and errors', async () => {
    const hangUp = (socket: { destroy(): unknown }) => void socket.destroy()
    const service = await Hostile.listen({ posts: [busy, busy, hangUp, ...posts], openapi: keyed })
    const { err, ...result } = await create(service.url)
    expect(result).toEqual(created)
    expect(service.lines).toEqual([
      ...Array(3).fill('POST /plants'),
      'GET /openapi.json',
      'POST /plants',
    ])
    const [post, get] = ['> POST URL/plants', '> GET URL/openapi.json']
    const warning = expect.stringMatching(/^plants: Busy\. Trying again for up to \d+ s$/)
    expect(steps(err, service.url)).toEqual([
      post,
      '< 503',
      warning,
      post,
      '< 503',
      post,
      get,
      '< 200',
      post,
      '< 200',
    ])
    expect(new Set(service.keys).size).toBe(1)
  })

  test('with --output json as one object a line', async () => {
    const service = await Hostile.listen({
      posts: [busy, json(400, { error: 400, message: 'No' })],
    })
    const { code, err } = await create(service.url, ['--output', 'json'])
    const kinds = objectsOf(err).flatMap(
      (line) => /^[<>] (?:POST|\d+)/.exec(String(line['verbose']))?.[0] ?? Object.keys(line)[0],
    )
    const shown = kinds.filter((kind) => kind !== 'verbose')
    expect({ code, shown }).toEqual({
      code: 1,
      shown: ['> POST', '< 503', 'warning', '> POST', '< 400', 'error'],
    })
  })
})

describe('--verbose shows', () => {
  test.skipIf(isWindows)('the source of a token, but not the token (needs sh)', async () => {
    const service = await Hostile.listen({ posts: [json(400, { error: 422, message: 'No' })] })
    const user = new World()
    const { err: ofLogin } = await user.run(
      `auth login --from-stdin --verbose --store ${service.url}`,
      {
        stdin: token,
      },
    )
    expect(ofLogin).toContain('* token from this login\n')
    user.write('token.txt', 's3cret-of-command')
    await user.run([
      'stores',
      'add',
      'team',
      service.url,
      '--token-command',
      `cat ${user.home}/token.txt`,
    ])
    for (const [store, source] of Object.entries({
      [service.url]: user.file,
      team: 'the token command of team',
    })) {
      const { err } = await user.run(`create --id 1 --name Fern --verbose --store ${store}`)
      expect(err).toContain(`* token from ${source}\n`)
    }
    const sent = service.posts.map(({ headers }) => headers['authorization'])
    expect(sent).toEqual([`Bearer ${token}`, `Bearer ${token}`, 'Bearer s3cret-of-command']) // the first by the login
  })
})
