import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { Hostile, json } from '../../helpers/hostile.js'
import { objectsOf } from '../../helpers/json-lines.js'
import { forwardProxy } from '../../helpers/proxy.js'
import { ownService, socketPath, token } from '../../helpers/remote.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { answer, connected, create, request, wire } from '../../helpers/traces.js'
import { World } from '../../helpers/world.js'

const posts = [json(200, { name: 'Fern' })]
const keyed = json(200, { paths: { '/plants': { post: { parameters: [{ in: 'header', name: 'Idempotency-Key' }] } } } })
const busy = json(503, { error: 503, message: 'Busy' })
const created = { code: 0, out: '{"name":"Fern"}\n' }

/** The first lines of requests and answers, and messages. */
function steps(err: string, url: string): string[] {
  return wire(err, url).filter((line) => /^(> (POST|GET)|< \d+$|plants:)/.test(line))
}

describe('--verbose shows a request and its answer', () => {
  test('after the settings and the source of the token', async () => {
    const remote = await Hostile.listen({ posts })
    const { err, ...result } = await create(`${remote.url}/v1`)
    expect(result).toEqual(created)
    expect(err.split('\n').slice(0, 8)).toEqual([
      '* settings /nonexistent/config/settings.json',
      `* store ${remote.url}/v1 (--store)`,
      expect.stringMatching(/^\* output (json|text on a terminal, else JSON) \(default\)$/),
      '* timeout 30s (default)',
      '* ca-cert those of the system (default)',
      '* allow-http false (default)',
      '* token-command none (default)',
      '* token from PLANTS_TOKEN',
    ])
    expect(wire(err, `${remote.url}/v1`)).toEqual([connected, ...request, ...answer])
    const times = Array.from(err.matchAll(/after (\d+\.\d) ms/g), ([, time = '']) => parseFloat(time))
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    expect(times.at(-1)).toBeLessThan(30_000)
  })

  test('over a Unix socket, below a path', async () => {
    const url = await ownService({ path: socketPath() }, join(temporaryFolder(), 'plants.db'), '/v1')
    const { err } = await create(url)
    expect(wire(err, url)).toEqual(expect.arrayContaining([connected, ...request, '< 200', ...answer.slice(-3)]))
  })

  test.each([false, true])('that has no end: its connection is closed: %j', async (isClosed) => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"name"'
    const remote = await Hostile.listen({
      posts: [(socket) => void socket.write(head, () => isClosed && socket.destroy())],
    })
    const { code, err } = await create(remote.url, ['--timeout', '1s'])
    expect(code).toBe(5)
    expect(wire(err, remote.url)).toEqual(expect.arrayContaining(['< 200', '< content-length: 100']))
  })

  test('also of plants doctor', async () => {
    const remote = await Hostile.listen({ posts: [json(400, { error: 422, message: 'No' })] })
    const { err } = await new World().run(`doctor -v --store ${remote.url}`, { env: { PLANTS_TOKEN: token } })
    expect(err).toContain(`\n> POST ${remote.url}/plants\n> accept: application/json\n> authorization: Bearer ***\n`)
    expect(err).toContain('\n> 2 bytes\n< 400\n')
  })

  test.runIf(hasOpenssl).each(['http', 'https'])(
    'over %s through a proxy, which is named without its password (needs openssl)',
    async (scheme) => {
      const proxy = await forwardProxy()
      const tls = certificate({ names: ['IP:0.0.0.0'] })
      const place = { host: '0.0.0.0', port: 0 }
      const remote = await Hostile.listen({ posts, place, ...(scheme === 'https' && { tls }) })
      const url = `${scheme}://0.0.0.0:${remote.port}`
      const env = { [`${scheme.toUpperCase()}_PROXY`]: proxy.url.replace('//', '//user:proxy-s3cret@') }
      const { err } = await create(url, ['--allow-http', '--ca-cert', tls.path], { env })
      expect(proxy.passed).toHaveLength(1)
      expect(err).not.toContain(Buffer.from('user:proxy-s3cret').toString('base64'))
      for (const line of [`* proxy ${new URL(proxy.url).host}`, `> POST ${url}/plants`])
        expect(err).toContain(`\n${line}\n`)
    },
  )
})

describe('--verbose shows what is tried again', () => {
  test('each time, in order, with warnings and errors', async () => {
    const hangUp = (socket: { destroy(): unknown }) => void socket.destroy()
    const remote = await Hostile.listen({ posts: [busy, busy, hangUp, ...posts], openapi: keyed })
    const { err, ...result } = await create(remote.url)
    expect(result).toEqual(created)
    expect(remote.lines).toEqual([...Array(3).fill('POST /plants'), 'GET /openapi.json', 'POST /plants'])
    const [post, get] = ['> POST URL/plants', '> GET URL/openapi.json']
    const warning = expect.stringMatching(/^plants: Busy\. Trying again for up to \d+ s$/)
    expect(steps(err, remote.url)).toEqual([post, '< 503', warning, post, '< 503', post, get, '< 200', post, '< 200'])
    const [, headers = ''] = wire(err, remote.url).join('\n').split('> GET')
    expect(headers.split('>')[0]).not.toContain('authorization')
    expect(new Set(remote.keys).size).toBe(1)
  })

  test('with the reason why each try failed', async () => {
    const { code, err } = await create('http://127.0.0.1:9', ['--timeout', '1s'])
    const [first, warning, ...others] = wire(err, 'URL')
    const failure = '* failed: connect ECONNREFUSED 127.0.0.1:9'
    expect([code, first]).toEqual([4, failure])
    expect(warning).toMatch(/^plants: .*refused\. Trying again for up to 1 s$/)
    expect(others.length).toBeGreaterThan(3)
    expect(new Set(others.slice(0, -2))).toEqual(new Set([failure]))
    expect(others.at(-2)).toBe('plants: Could not reach http://127.0.0.1:9: the connection was refused')
  })

  test('with --output json as one object a line', async () => {
    const remote = await Hostile.listen({ posts: [busy, json(400, { error: 400, message: 'No' })] })
    const { code, err } = await create(remote.url, ['--output', 'json'])
    const kinds = objectsOf(err).flatMap(
      (line) => /^[<>] (?:POST|\d+$)/.exec(String(line['verbose']))?.[0] ?? Object.keys(line)[0],
    )
    const shown = kinds.filter((kind) => kind !== 'verbose')
    expect({ code, shown }).toEqual({ code: 1, shown: ['> POST', '< 503', 'warning', '> POST', '< 400', 'error'] })
  })
})

describe('--verbose shows', () => {
  test.each(['error', 'verbose'])('no *** in the names of JSON for the token %s', async (word) => {
    const env = { PLANTS_TOKEN: word }
    const { err } = await create('http://127.0.0.1:9', ['--timeout', '10ms', '--output', 'json'], { env })
    const [first, ...others] = objectsOf(err)
    expect(Object.keys(first ?? {})).toEqual(['verbose'])
    expect(Object.keys(others.at(-1) ?? {})).toEqual(['error', 'message', 'hint', 'retryable'])
  })

  test('the source of a token, but not the token', async () => {
    const remote = await Hostile.listen({ posts: [json(400, { error: 422, message: 'No' })] })
    const user = new World()
    const { err: ofLogin } = await user.run(`auth login --with-token --verbose --store ${remote.url}`, { stdin: token })
    expect(ofLogin).toContain('* token from this login\n')
    user.write('token.txt', 's3cret-of-command')
    await user.run(['stores', 'add', 'team', remote.url, '--token-command', `cat ${user.home}/token.txt`])
    for (const [store, source] of Object.entries({ [remote.url]: user.file, team: 'the token command of team' })) {
      const { err } = await user.run(`create --id 1 --name Fern --verbose --store ${store}`)
      expect(err).toContain(`\n* token from ${source}\n`)
      expect(err).toContain('\n> authorization: Bearer ***\n')
    }
    const sent = remote.posts.map(({ headers }) => headers['authorization'])
    expect(sent).toEqual([`Bearer ${token}`, `Bearer ${token}`, 'Bearer s3cret-of-command']) // the first by the login
  })

  test('control characters of headers escaped', async () => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n'
    const wild = 'X-Wild: a\tb\u009b31m\u0085\r\nX-Twice: one\r\nX-Twice: two'
    const remote = await Hostile.listen({ posts: [Buffer.from(`${head}${wild}\r\n\r\n{"name":"Fern"}`, 'latin1')] })
    const { err } = await create(remote.url, [], { terminals: ['stderr', 'stdout'] })
    const shown = ['< x-wild: a\\u{9}b\\u{9b}31m\\u{85}', '< x-twice: one', '< x-twice: two']
    expect(wire(err, remote.url)).toEqual(expect.arrayContaining(shown))
    expect(err.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u)
  })

  test.each(['config list', 'get 1', 'list', 'tokens list'])('nothing on stdout: plants %s', async (line) => {
    const user = new World()
    const [quiet, loud] = [await user.run(line), await user.run(`${line} -v`)]
    const settings = /^\* settings .*\n(\* .*\n)+/
    expect(loud.err).toMatch(settings)
    expect({ ...loud, err: loud.err.replace(settings, '') }).toEqual(quiet)
  })

  test('no setting twice', async () => {
    const user = new World({ stores: { team: { address: 'https://plants.example.com' } } })
    for (const line of ['stores use team', 'auth status', 'config set timeout 1m', 'stores remove team']) {
      const { err } = await user.run(`${line} --verbose`)
      expect({ line, count: err.match(/^\* timeout /gm)?.length }).toEqual({ line, count: 1 })
    }
  })
})
