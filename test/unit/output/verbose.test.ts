import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { Hostile, http, json } from '../../helpers/hostile.js'
import { objectsOf } from '../../helpers/json-lines.js'
import { forwardProxy } from '../../helpers/proxy.js'
import { ownService, socketPath, token } from '../../helpers/remote.js'
import { runPlants } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { answer, connected, create, request, wire } from '../../helpers/traces.js'

const posts = [json(200, { name: 'Fern' })]
const keyed = json(200, { paths: { '/plants': { post: { parameters: [{ in: 'header', name: 'Idempotency-Key' }] } } } })

describe('a request and its answer are shown', () => {
  test('over http, behind all settings and where the token is from', async () => {
    const remote = await Hostile.listen({ posts })
    const { code, out, err } = await create(`${remote.url}/v1`)
    expect({ code, out }).toEqual({ code: 0, out: '{"name":"Fern"}\n' })
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
  })

  test('as objects, with JSON errors', async () => {
    const remote = await Hostile.listen({ posts })
    const { code, out, err } = await create(remote.url, ['--output', 'json'])
    expect({ code, out }).toEqual({ code: 0, out: '{"name":"Fern"}\n' })
    const lines = objectsOf(err).map(({ verbose, ...others }) => (Object.keys(others).length === 0 ? verbose : others))
    expect(lines[0]).toBe('* settings /nonexistent/config/settings.json')
    expect(wire(lines.join('\n'), remote.url)).toEqual([connected, ...request, ...answer])
  })

  test.runIf(hasOpenssl)('over https by a name, with times that follow each other (needs openssl)', async () => {
    const tls = certificate({ names: ['DNS:localhost'] })
    const remote = await Hostile.listen({ posts, tls })
    const url = `https://localhost:${remote.port}`
    const { code, err } = await create(url, ['--ca-cert', tls.path])
    expect({ code, said: wire(err, url) }).toEqual({
      code: 0,
      said: [connected, ...request, ...answer],
    })
    const times = Array.from(err.matchAll(/after (\d+\.\d) ms/g), ([, time = '']) => parseFloat(time))
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    expect(times.at(-1)).toBeLessThan(30_000)
  })

  test('over a Unix socket, below a path', async () => {
    const url = await ownService({ path: socketPath() }, join(temporaryFolder(), 'plants.db'), '/v1')
    const { code, err } = await create(url)
    expect({ code, said: wire(err, url) }).toEqual({
      code: 0,
      said: [
        ...[connected, ...request, '< 200'],
        expect.stringMatching(/^< content-type: application\/json/),
        '< content-length: 15',
        '< x-content-type-options: nosniff',
        expect.stringMatching(/^< request-id: /),
        expect.stringMatching(/^< date: /),
        '< connection: keep-alive',
        '< keep-alive: timeout=65',
        ...answer.slice(-3),
      ],
    })
  })

  test('to a service that refuses', async () => {
    const remote = await Hostile.listen({ posts: [json(400, { error: 422, message: 'No ferns' })] })
    const { code, out, err } = await create(remote.url)
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(wire(err, remote.url).slice(8)).toEqual([
      ...[
        '< 400',
        '< content-length: 34',
        '< content-type: application/json',
        '* first byte after N ms',
        '< 34 bytes',
        '* whole response after N ms',
      ],
      'plants: No ferns',
      '  This message is from URL',
    ])
  })

  test('with what of the answer came, when it has no end', async () => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"name"'
    for (const stop of [false, true]) {
      const remote = await Hostile.listen({
        posts: [(socket) => void socket.write(head, () => stop && socket.destroy())],
      })
      const { code, err } = await create(remote.url, ['--timeout', '1s'])
      expect({ code, said: wire(err, remote.url) }).toEqual({
        code: 5,
        said: expect.arrayContaining(['< 200', '< content-length: 100']),
      })
    }
  })

  test('with a large body as its size alone', async () => {
    const remote = await Hostile.listen({ posts: [json(200, `{"name":"Fern"}${' '.repeat(1_000_000)}`)] })
    const { err } = await create(remote.url)
    expect(wire(err, remote.url).slice(-2)).toEqual(['< 1000015 bytes', '* whole response after N ms'])
  })

  test.each([
    ['auth', 'login', '--with-token'],
    ['doctor', '--output', 'text'],
  ])('of %s too', async (...argv) => {
    const remote = await Hostile.listen({ posts: [json(400, { error: 422, message: 'No' })] })
    const env = { PLANTS_CONFIG_DIR: temporaryFolder(), PLANTS_DATA_DIR: temporaryFolder(), PLANTS_TOKEN: token }
    const { code, out, err } = await runPlants([...argv, '-v', '--store', remote.url], { env, stdin: token })
    expect(code, err).toBe(0)
    expect(err).toContain(`> POST ${remote.url}/plants\n> accept: application/json\n> authorization: Bearer ***\n`)
    expect(err).toMatch(/^\* connected after .*\n> POST/m)
    expect(err).toContain('\n> 2 bytes\n< 400\n')
    expect(`${out}${err}`).not.toContain(token)
  })
})

describe('through a proxy (needs openssl)', () => {
  test.runIf(hasOpenssl).each([
    ['http', 'HTTP_PROXY'],
    ['https', 'HTTPS_PROXY'],
  ])('%s: the proxy is named, without its password', async (scheme, variable) => {
    const proxy = await forwardProxy()
    const tls = certificate({ names: ['IP:0.0.0.0'] })
    const remote = await Hostile.listen({
      posts,
      place: { host: '0.0.0.0', port: 0 },
      ...(scheme === 'https' ? { tls } : {}),
    })
    const env = { [variable]: proxy.url.replace('//', '//user:proxy-s3cret@') }
    const { code, err } = await create(`${scheme}://0.0.0.0:${remote.port}`, ['--allow-http', '--ca-cert', tls.path], {
      env,
    })
    expect({ code, passed: proxy.passed.length }).toEqual({ code: 0, passed: 1 })
    expect(err).not.toContain('proxy-s3cret')
    expect(err).not.toContain(Buffer.from('user:proxy-s3cret').toString('base64'))
    expect(err).toContain(`> POST ${scheme}://0.0.0.0:${remote.port}/plants\n`)
    expect(err).toContain(new URL(proxy.url).host)
  })
})

describe('what is tried again', () => {
  test('is shown each time, in the order in which it happened, warnings and errors too', async () => {
    const busy = json(503, { error: 503, message: 'Busy' })
    const remote = await Hostile.listen({
      posts: [busy, busy, (socket) => void socket.destroy(), ...posts],
      openapi: keyed,
    })
    const { code, out, err } = await create(remote.url)
    expect({ code, out, requests: remote.lines }).toEqual({
      code: 0,
      out: '{"name":"Fern"}\n',
      requests: ['POST /plants', 'POST /plants', 'POST /plants', 'GET /openapi.json', 'POST /plants'],
    })
    const short = wire(err, remote.url).filter((line) => /^(> (POST|GET)|< \d+$|plants:)/.test(line))
    expect(short).toEqual([
      ...['> POST URL/plants', '< 503', expect.stringMatching(/^plants: Busy\. Trying again for up to \d+ s$/)],
      ...[
        '> POST URL/plants',
        '< 503',
        '> POST URL/plants',
        '> GET URL/openapi.json',
        '< 200',
        '> POST URL/plants',
        '< 200',
      ],
    ])
    const [, get = ''] = wire(err, remote.url).join('\n').split('> GET')
    expect(get.split('>')[0]).not.toContain('authorization')
    expect(new Set(remote.keys).size).toBe(1)
  })

  test('ends with the error', async () => {
    const remote = await Hostile.listen({ posts: [http(503)] })
    const { code, err } = await create(remote.url, ['--timeout', '1s'])
    expect(code).toBe(4)
    const short = wire(err, remote.url).filter((line) => /^(> POST|< \d+$|plants:)/.test(line))
    expect(short.slice(0, 3)).toEqual(['> POST URL/plants', '< 503', expect.stringMatching(/^plants: .*Trying again/)])
    expect(short.slice(-3)).toEqual(['> POST URL/plants', '< 503', expect.stringMatching(/^plants: URL answered 503/)])
  })

  test('says why each try came to nothing', async () => {
    const { code, err } = await create('http://127.0.0.1:9', ['--timeout', '1s'])
    expect(code).toBe(4)
    const failure = expect.stringMatching(/^\* failed: connect ECONNREFUSED 127\.0\.0\.1:9$/)
    const [first, warning, ...others] = wire(err, 'URL')
    expect([first, warning]).toEqual([
      failure,
      expect.stringMatching(/^plants: .*refused\. Trying again for up to 1 s$/),
    ])
    expect(others.length).toBeGreaterThan(3)
    expect(others).toEqual([
      ...others.slice(0, -2).map(() => failure),
      'plants: Could not reach http://127.0.0.1:9: the connection was refused',
      '  Is it running? Try: plants serve --port 9',
    ])
  })
})

test('with --output json every line on stderr is an object, also warnings and errors', async () => {
  const remote = await Hostile.listen({
    posts: [json(503, { error: 503, message: 'Busy' }), json(400, { error: 400, message: 'No' })],
  })
  const { code, err } = await create(remote.url, ['--output', 'json'])
  expect(code).toBe(1)
  const lines = objectsOf(err).flatMap(
    (line) => /^[<>] (?:POST|\d+$)/.exec(String(line['verbose']))?.[0] ?? Object.keys(line)[0],
  )
  const exchange = ['> POST', '< 503', 'warning', '> POST', '< 400', 'error']
  expect(lines.filter((line) => line !== 'verbose')).toEqual(exchange)
})
