import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync, readSync, writeFileSync, writeSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { version } from '../../../package.json'
import { settingNames } from '../../../src/config/table.js'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { Hostile, http, json } from '../../helpers/hostile.js'
import { isLinux } from '../../helpers/linux.js'
import { bin, type ProcessResult, plants, start } from '../../helpers/process.js'
import { forwardProxy } from '../../helpers/proxy.js'
import { ownService, socketPath, token } from '../../helpers/remote.js'
import { rounds } from '../../helpers/rounds.js'
import { type Result, runPlants, type World } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { terminal } from '../../helpers/terminal.js'

const fern = ['create', '--id', '1', '--name', 'Fern', '--verbose']
const posts = [json(200, { name: 'Fern' })]
const keyed = json(200, { paths: { '/plants': { post: { parameters: [{ in: 'header', name: 'Idempotency-Key' }] } } } })

/** Creates a plant with --verbose. */
function create(store: string, flags: string[] = [], world: World = {}): Promise<Result> {
  return runPlants([...fern, '--store', store, ...flags], { ...world, env: { PLANTS_TOKEN: token, ...world.env } })
}

/** What was said behind the settings; times are N, the address is URL, and the idempotency key KEY. */
function wire(err: string, url: string): string[] {
  const general = err.replaceAll(url, 'URL').replaceAll(/\d+\.\d ms/g, 'N ms')
  return general
    .replaceAll(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, 'KEY')
    .trimEnd()
    .split('\n')
    .slice(1 + settingNames.length + 1) // the file, the settings, where the token is from
}

const headers = [
  '> accept: application/json',
  '> authorization: Bearer ***',
  '> content-type: application/json',
  '> idempotency-key: KEY',
  `> user-agent: plants/${version}`,
  '> 22 bytes',
]
const request = ['> POST URL/plants', ...headers]
const answer = [
  '< 200',
  '< content-length: 15',
  '< content-type: application/json',
  '* first byte N ms',
  '< 15 bytes',
  '* whole answer N ms',
]

describe('a request and its answer are shown', () => {
  test('over http, behind all settings and where the token is from', async () => {
    const remote = await Hostile.listen({ posts })
    const { code, out, err } = await create(`${remote.url}/v1`)
    expect({ code, out }).toEqual({ code: 0, out: '{"name":"Fern"}\n' })
    expect(err.split('\n').slice(0, 9)).toEqual([
      '* settings /nonexistent/config/settings.json',
      `* store ${remote.url}/v1 (--store)`,
      expect.stringMatching(/^\* output (json|text on a terminal, else json) \(default\)$/),
      '* timeout 30s (default)',
      '* ca-cert those of the system (default)',
      '* allow-http false (default)',
      '* token-command none (default)',
      '* allow-async-commit false (default)',
      '* token from PLANTS_TOKEN',
    ])
    expect(wire(err, `${remote.url}/v1`)).toEqual(['* connected: connect N ms', ...request, ...answer])
  })

  test('as objects, with JSON errors', async () => {
    const remote = await Hostile.listen({ posts })
    const { code, out, err } = await create(remote.url, ['--output', 'json'])
    expect({ code, out }).toEqual({ code: 0, out: '{"name":"Fern"}\n' })
    const objects = objectsOf(err)
    expect(objects.slice(0, 1)).toEqual([{ verbose: 'settings', path: '/nonexistent/config/settings.json' }])
    expect(objects.slice(1, 8).map(({ verbose, name }) => `${verbose} ${name}`)).toEqual(
      ['store', 'output', 'timeout', 'ca-cert', 'allow-http', 'token-command', 'allow-async-commit'].map((name) => `setting ${name}`),
    )
    const said = Object.fromEntries(headers.slice(0, -1).map((line) => line.slice(2).split(': ') as [string, string]))
    expect(objects.slice(8)).toEqual([
      { verbose: 'token', place: 'PLANTS_TOKEN' },
      { verbose: 'connection', connect: expect.any(Number) },
      {
        verbose: 'request',
        method: 'POST',
        address: `${remote.url}/plants`,
        headers: { ...said, 'idempotency-key': remote.keys[0] },
        bytes: 22,
      },
      {
        ...{ verbose: 'answer', status: 200, firstByte: expect.any(Number) },
        headers: { 'content-length': '15', 'content-type': 'application/json' },
      },
      { verbose: 'end', bytes: 15, whole: expect.any(Number) },
    ])
  })

  test.runIf(hasOpenssl)('over https by a name, with the time that each step took (needs openssl)', async () => {
    const tls = certificate({ names: ['DNS:localhost'] })
    const remote = await Hostile.listen({ posts, tls })
    const url = `https://localhost:${remote.port}`
    const { code, err } = await create(url, ['--ca-cert', tls.path])
    expect({ code, said: wire(err, url) }).toEqual({
      code: 0,
      said: ['* connected: name N ms, connect N ms, TLS N ms', ...request, ...answer],
    })
    const [connection, , head, end] = objectsOf((await create(url, ['--ca-cert', tls.path, '--output', 'json'])).err).slice(-4)
    expect(connection).toEqual({ verbose: 'connection', name: expect.any(Number), connect: expect.any(Number), tls: expect.any(Number) })
    for (const time of [connection?.['name'], connection?.['connect'], connection?.['tls'], head?.['firstByte']]) {
      expect(time).toBeGreaterThanOrEqual(0)
      expect(time).toBeLessThan(30_000)
    }
    expect(end?.['whole']).toBeGreaterThanOrEqual(Number(head?.['firstByte']))
  })

  test('over a Unix socket, below a path', async () => {
    const url = await ownService({ path: socketPath() }, join(temporaryFolder(), 'plants.db'), '/v1')
    const { code, err } = await create(url)
    expect({ code, said: wire(err, url) }).toEqual({
      code: 0,
      said: [
        ...['* connected: connect N ms', ...request, '< 200'],
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
    const remote = await Hostile.listen({ posts: [json(400, { error: 409, message: 'No ferns' })] })
    const { code, out, err } = await create(remote.url)
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(wire(err, remote.url).slice(8)).toEqual([
      ...['< 400', '< content-length: 34', '< content-type: application/json', '* first byte N ms', '< 34 bytes', '* whole answer N ms'],
      'plants: No ferns',
      '  Choose another id; to repeat an earlier create safely, give both the same --idempotency-key',
    ])
  })

  test('with what of the answer came, when it has no end', async () => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"name"'
    for (const stop of [false, true]) {
      const remote = await Hostile.listen({ posts: [(socket) => void socket.write(head, () => stop && socket.destroy())] })
      const { code, err } = await create(remote.url, ['--timeout', '1s'])
      expect({ code, said: wire(err, remote.url) }).toEqual({ code: 5, said: expect.arrayContaining(['< 200', '< content-length: 100']) })
    }
  })

  test('with a large body as its size alone', async () => {
    const remote = await Hostile.listen({ posts: [json(200, `{"name":"Fern"}${' '.repeat(1_000_000)}`)] })
    const { err } = await create(remote.url)
    expect(wire(err, remote.url).slice(-2)).toEqual(['< 1000015 bytes', '* whole answer N ms'])
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
    expect(err).toMatch(/^\* connected: connect .*\n> POST/m)
    expect(err).toContain('\n> 2 bytes\n< 400\n')
    expect(`${out}${err}`).not.toContain(token)
  })
})

describe('through a proxy (needs openssl)', () => {
  test.runIf(hasOpenssl).each([
    ['http', 'HTTP_PROXY', /connect \d+\.\d ms/],
    ['https', 'HTTPS_PROXY', /connect \d+\.\d ms.*tunnel \d+\.\d ms/s],
  ])('%s: the proxy is named, without its password, and so are the times', async (scheme, variable, times) => {
    const proxy = await forwardProxy()
    const tls = certificate({ names: ['IP:0.0.0.0'] })
    const remote = await Hostile.listen({ posts, place: { host: '0.0.0.0', port: 0 }, ...(scheme === 'https' ? { tls } : {}) })
    const env = { [variable]: proxy.url.replace('//', '//user:proxy-s3cret@') }
    const { code, err } = await create(`${scheme}://0.0.0.0:${remote.port}`, ['--allow-http', '--ca-cert', tls.path], { env })
    expect({ code, passed: proxy.passed.length }).toEqual({ code: 0, passed: 1 })
    expect(err).not.toContain('proxy-s3cret')
    expect(err).not.toContain(Buffer.from('user:proxy-s3cret').toString('base64'))
    expect(err).toContain(`> POST ${scheme}://0.0.0.0:${remote.port}/plants\n`)
    expect(err).toMatch(times)
    expect(err).toContain(new URL(proxy.url).host)
  })
})

describe('what is tried again', () => {
  test('is shown each time, in the order in which it happened, warnings and errors too', async () => {
    const busy = json(503, { error: 503, message: 'Busy' })
    const remote = await Hostile.listen({ posts: [busy, busy, (socket) => void socket.destroy(), ...posts], openapi: keyed })
    const { code, out, err } = await create(remote.url)
    expect({ code, out, requests: remote.lines }).toEqual({
      code: 0,
      out: '{"name":"Fern"}\n',
      requests: ['POST /plants', 'POST /plants', 'POST /plants', 'GET /openapi.json', 'POST /plants'],
    })
    const short = wire(err, remote.url).filter((line) => /^(> (POST|GET)|< \d+$|plants:)/.test(line))
    expect(short).toEqual([
      ...['> POST URL/plants', '< 503', expect.stringMatching(/^plants: Busy\. Trying again for up to \d+ s$/)],
      ...['> POST URL/plants', '< 503', '> POST URL/plants', '> GET URL/openapi.json', '< 200', '> POST URL/plants', '< 200'],
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
    expect([first, warning]).toEqual([failure, expect.stringMatching(/^plants: .*refused\. Trying again for up to 1 s$/)])
    expect(others.length).toBeGreaterThan(3)
    expect(others).toEqual([
      ...others.slice(0, -2).map(() => failure),
      'plants: Could not reach http://127.0.0.1:9: the connection was refused',
      '  Is it running? Try: plants serve',
    ])
  })
})

describe('nothing is shown', () => {
  test('of a token, wherever a service repeats it', async () => {
    const said = { 'X-Token': token, Location: `https://example.com/?${token}`, 'Content-Type': `text/${token}` }
    for (const flags of [[], ['--output', 'json']]) {
      const remote = await Hostile.listen({ posts: [http(400, `{"error":400,"message":"${token}"}`, said)] })
      const { out, err } = await create(remote.url, flags)
      expect(err).toContain('***')
      expect(`${out}${err}`).not.toContain(token)
    }
  })

  test.each(['error', 'verbose', 'true'])('that would spoil JSON: the token %s hides no name or value but texts', async (word) => {
    const env = { PLANTS_TOKEN: word }
    const { err } = await create('http://127.0.0.1:9', ['--timeout', '10ms', '--output', 'json'], { env })
    const [first, ...others] = objectsOf(err)
    expect(Object.keys(first ?? {})).toEqual(['verbose', 'path'])
    expect(Object.keys(others.at(-1) ?? {})).toEqual(['error', 'message', 'hint', 'retryable'])
  })

  test('that would spoil JSON: a token of digits hides no number', async () => {
    const remote = await Hostile.listen({ posts: [json(200, `{"name":"Fern"}${' '.repeat(1000)}`)] })
    const { err } = await create(remote.url, ['--output', 'json'], { env: { PLANTS_TOKEN: '1015' } })
    expect(objectsOf(err).at(-1)).toMatchObject({ verbose: 'end', bytes: 1015 })
  })

  test('of a password in front of an @, although that is no address of a store', async () => {
    const env = { PLANTS_CONFIG_DIR: temporaryFolder() }
    for (const argv of [['stores', 'list'], ['config', 'get', 'timeout'], ['create', '--id', '1', '--name', 'Fern'], ['doctor']]) {
      const { out, err } = await runPlants([...argv, '-v', '--store', 'https://user:s3cret@plants.example.com'], { env })
      expect({ argv, said: `${out}${err}` }).toEqual({ argv, said: expect.not.stringContaining('s3cret') })
    }
  })

  test('of a token that a command prints, or that was saved', async () => {
    const folder = temporaryFolder()
    const env = { PLANTS_CONFIG_DIR: folder, PLANTS_TOKEN: '' }
    const remote = await Hostile.listen({ posts: [json(400, { error: 422, message: 'No' })] })
    await runPlants(['auth', 'login', '--with-token', '--store', remote.url], { env, stdin: token })
    const saved = await create(remote.url, [], { env })
    expect(saved.err).toContain(`* token from ${join(folder, 'settings.json')}\n`)
    writeFileSync(join(folder, 'token.sh'), 'echo s3cret-of-command')
    await runPlants(['stores', 'add', 'team', remote.url, '--token-command', `/bin/sh ${join(folder, 'token.sh')}`], { env })
    const found = await create('team', [], { env })
    expect(found.err).toContain('* token from the token command of team\n')
    expect(remote.posts.map(({ headers }) => headers['authorization'])).toEqual([
      ...[`Bearer ${token}`, `Bearer ${token}`], // the first of them when it was saved
      'Bearer s3cret-of-command',
    ])
    for (const { out, err } of [saved, found]) {
      expect(err).toContain('> authorization: Bearer ***\n')
      expect(`${out}${err}`).not.toMatch(/s3cret/)
    }
  })

  test('that could drive a terminal: control characters of headers are made visible', async () => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n'
    const wild = Buffer.from(`${head}X-Wild: a\tb\u009b31m\u0085\r\nX-Twice: one\r\nX-Twice: two\r\n\r\n{"name":"Fern"}`, 'latin1')
    const remote = await Hostile.listen({ posts: [wild] })
    const { code, err } = await create(remote.url, [], { terminals: ['stderr', 'stdout'] })
    expect({ code, said: wire(err, remote.url) }).toEqual({
      code: 0,
      said: expect.arrayContaining(['< x-wild: a\\u{9}b\\u{9b}31m\\u{85}', '< x-twice: one', '< x-twice: two']),
    })
    expect(err.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u)
  })

  test('on stdout but the answer', async () => {
    const remote = await Hostile.listen({ posts })
    const text = await create(remote.url, ['--output', 'text'])
    expect({ code: text.code, out: text.out }).toEqual({ code: 0, out: 'Planted Fern (id 1)\n' })
    for (const argv of [['config', 'get', 'timeout'], ['config', 'list'], ['stores', 'list'], ['get', '1'], ['list'], ['tokens', 'list']]) {
      const env = { PLANTS_DATA_DIR: temporaryFolder(), PLANTS_CONFIG_DIR: temporaryFolder() }
      const quiet = await runPlants(argv, { env })
      const loud = await runPlants([...argv, '-v'], { env })
      expect({ argv, code: loud.code, out: loud.out }).toEqual({ argv, code: quiet.code, out: quiet.out })
      expect(loud.err).toMatch(/^\* settings .*\n(\* .*\n)+/)
      expect(loud.err.endsWith(quiet.err)).toBe(true)
    }
  })

  test('of settings twice', async () => {
    const env = { PLANTS_DATA_DIR: temporaryFolder(), PLANTS_CONFIG_DIR: temporaryFolder() }
    await runPlants(['stores', 'add', 'team', 'https://plants.example.com'], { env })
    for (const argv of [
      ['stores', 'use', 'team'],
      ['auth', 'status'],
      ['config', 'set', 'timeout', '1m'],
      ['stores', 'remove', 'team'],
    ]) {
      const { err } = await runPlants([...argv, '--verbose'], { env })
      expect({ argv, count: err.match(/^\* timeout /gm)?.length }).toEqual({ argv, count: 1 })
    }
  })
})

test('with --output json every line on stderr is an object, also warnings and errors', async () => {
  const remote = await Hostile.listen({ posts: [json(503, { error: 503, message: 'Busy' }), json(400, { error: 400, message: 'No' })] })
  const { code, err } = await create(remote.url, ['--output', 'json'])
  expect(code).toBe(1)
  const kinds = objectsOf(err).map((line) => line['verbose'] ?? Object.keys(line)[0])
  const counted = kinds.slice(2 + settingNames.length).filter((kind) => kind !== 'connection') // the first one may be used again, or not
  expect(counted).toEqual(['request', 'answer', 'end', 'warning', 'request', 'answer', 'end', 'error'])
})

function objectsOf(err: string): Record<string, unknown>[] {
  return err
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
}

describe('a process', () => {
  const env = { PLANTS_TOKEN: token }

  test('says the same, and first what came first', async () => {
    const url = await ownService({ host: '127.0.0.1', port: 0 }, join(temporaryFolder(), 'plants.db'))
    const first = await plants([...fern, '--store', url], temporaryFolder(), { env })
    expect({ code: first.code, out: first.out }).toEqual({ code: 0, out: '{"name":"Fern"}\n' })
    expect(wire(first.err, url).slice(0, 9)).toEqual(['* connected: connect N ms', ...request, '< 200'])
    const second = await plants([...fern, '--store', url, '--output', 'json'], temporaryFolder(), { env })
    expect(second.code).toBe(1)
    const kinds = objectsOf(second.err).map((line) => line['verbose'] ?? line['error'])
    expect(kinds.slice(1 + settingNames.length)).toEqual(['token', 'connection', 'request', 'answer', 'end', 409])
  })

  test.each([
    ['whose stderr has no reader', '2> >(true)'],
    ['whose stderr is a pipe that is closed at once', '2> >(exec 0<&-)'],
    ['whose stderr is closed', '2>&-'],
    ...(isLinux ? [['whose stderr takes nothing', '2> /dev/full'] as [string, string]] : []),
  ])('%s does its work all the same', async (_, redirection) => {
    const remote = await Hostile.listen({ posts: [json(503, { error: 503, message: 'Busy' }, { 'X-Long': 'x'.repeat(8000) }), ...posts] })
    expect(await bash(`"$plants" ${fern.join(' ')} --store ${remote.url} ${redirection}`)).toEqual({
      code: 0,
      out: '{"name":"Fern"}\n',
      err: '',
    })
    expect(await bash(`"$plants" get 1 -v ${redirection}`)).toEqual({ code: 1, out: '', err: '' })
  })

  test.runIf(isLinux)('is not held up by a stderr that nobody reads (a full pipe)', async () => {
    const remote = await Hostile.listen({ posts })
    const { process: child } = intoFullPipe([...fern, '--store', remote.url])
    const { exitCode, stdout } = await child
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '{"name":"Fern"}\n' })
  })

  test.each([
    ['SIGINT', 130, 'Interrupted'],
    ['SIGTERM', 143, 'Terminated'],
  ] as const)('that waits for an answer is ended by %s with %s, and says so last', async (signal, code, word) => {
    for (const flags of [[], ['--output', 'json']]) {
      const remote = await Hostile.listen({ posts: [() => child.kill(signal)] })
      const child = start([...fern, '--store', remote.url, ...flags], temporaryFolder(), { env })
      const { exitCode, stdout, stderr } = await child
      expect({ exitCode, stdout }).toEqual({ exitCode: code, stdout: '' })
      const lines = String(stderr).trimEnd().split('\n')
      const message = `${word} before ${remote.url} answered`
      if (flags.length > 0) expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ error: 500, message })
      else expect(lines.slice(-2)).toEqual([`plants: ${message}`, expect.stringMatching(/^ {2}Whether the plant 1 is stored/)])
      expect(lines.filter((line) => line.startsWith('> POST') || line.includes('"verbose":"request"'))).toHaveLength(1)
    }
  })

  test('that waits between two tries is ended by SIGINT with 130', async () => {
    const remote = await Hostile.listen({ posts: [json(503, { error: 503, message: 'Busy' }, { 'Retry-After': '20' })] })
    const child = start([...fern, '--store', remote.url], temporaryFolder(), { env })
    child.stderr?.on('data', (chunk: Buffer) => chunk.includes('Trying again') && child.kill('SIGINT'))
    const { exitCode, stdout, stderr } = await child
    expect({ exitCode, stdout, last: String(stderr).trimEnd().split('\n').at(-1) }).toEqual({
      exitCode: 130,
      stdout: '',
      last: 'plants: Interrupted, nothing was stored',
    })
  })

  test.runIf(isLinux)('that waits is ended by SIGINT also when nobody reads its stderr (a full pipe)', async () => {
    let sent = Infinity
    const stop = () => {
      sent = performance.now()
      child.kill('SIGINT')
    }
    const remote = await Hostile.listen({ posts: [stop] })
    const { process: child } = intoFullPipe([...fern, '--store', remote.url])
    const { exitCode, signal } = await child
    expect(signal ?? exitCode).toBeOneOf(['SIGINT', 130])
    expect(performance.now() - sent).toBeLessThan(5000)
  })

  test.runIf(isLinux).each(['text', 'json'])(
    'whose reader is slow tells every line whole and in order, and the error last, in %s (a full pipe)',
    async (output) => {
      const long = { 'X-Long': 'x'.repeat(9000) }
      const answers = [json(503, { error: 503, message: 'Busy' }, long), json(400, { error: 409, message: 'No ferns' }, long)]
      const remote = await Hostile.listen({ posts: answers })
      const { process: child, reader } = intoFullPipe([...fern, '--store', remote.url, '--output', output])
      readSync(reader, Buffer.alloc(8192)) // room for some of the first answer
      await expect.poll(() => remote.requests.length, { timeout: 10_000, interval: 5 }).toBe(2)
      const lines = (await drain(reader, child)).trimEnd().split('\n')
      expect((await child).exitCode).toBe(1)
      const kinds =
        output === 'json'
          ? lines.map(kindOf)
          : lines.flatMap((line) => /^(> POST|< \d+$|< x-long: x{9000}$|plants: )/.exec(line)?.[0] ?? [])
      const settings = ['settings', ...Array.from({ length: settingNames.length }, () => 'setting'), 'token']
      const exchange =
        output === 'json' ? ['request', 'answer', 'end'] : ['> POST', expect.stringMatching(/^< \d/), `< x-long: ${long['X-Long']}`]
      expect(kinds.filter((kind) => kind !== 'connection')).toEqual([
        ...(output === 'json' ? settings : []),
        ...[...exchange, output === 'json' ? 'warning' : 'plants: ', ...exchange, output === 'json' ? 409 : 'plants: '],
      ])
      if (output === 'text') expect(lines.filter((line) => !/^(\* |> |< |plants: | {2})/.test(line))).toEqual([])
    },
  )

  const stalled: [string, (argv: string[]) => Promise<{ process: ChildProcess }>][] = [
    ['a socket', intoFullSocket],
    ['a pipe that somebody has made non-blocking', async (argv) => intoFullPipe(argv, unblock)],
    ['a pipe', async (argv) => intoFullPipe(argv)],
  ]

  test.runIf(isLinux).each(stalled)(
    'whose stderr is %s that nobody reads is ended by SIGINT while it waits for an answer',
    async (_, begin) => {
      const remote = await Hostile.listen({ posts: [() => undefined] })
      const request = once(remote, 'request')
      const { process: child } = await begin([...fern, '--store', remote.url])
      await request
      child.kill('SIGINT')
      expect(await endOf(child)).toBeOneOf(['SIGINT', 130])
    },
  )

  test.runIf(isLinux).each(stalled)('whose stderr is %s that nobody reads is ended by SIGINT while its error waits', async (_, begin) => {
    const answer = json(400, { error: 409, message: 'No ferns' })
    const remote = await Hostile.listen({ posts: [(socket) => void socket.write(answer, () => child.kill('SIGINT'))] })
    const { process: child } = await begin([...fern, '--store', remote.url])
    expect(await endOf(child)).toBeOneOf(['SIGINT', 130])
  })

  test('on a real terminal the error comes last', async () => {
    const remote = await Hostile.listen({ posts: [json(400, { error: 409, message: 'No ferns' })] })
    for (let round = 0; round < rounds(5); round += 1) {
      const { code, screen } = await terminal([...fern, '--no-color', '--store', remote.url], temporaryFolder(), env).ended
      const short = wire(screen.replaceAll('\r', ''), remote.url).filter((line) => /^(> POST|< \d+$|\* whole|plants:)/.test(line))
      expect({ code, short }).toEqual({
        code: 1,
        short: ['> POST URL/plants', '< 400', '* whole answer N ms', 'plants: No ferns'],
      })
    }
  })

  /** Starts the program with a stderr that is full and that nobody reads; it is killed after 20 s. */
  function intoFullPipe(args: string[], before = '') {
    const folder = temporaryFolder()
    const path = join(folder, 'pipe')
    spawnSync('mkfifo', [path])
    const reader = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
    onTestFinished(() => closeSync(reader))
    fillUp(reader)
    const script = `exec 2> "$1"; shift; ${before} exec "$0" "$@"`
    const child = execa('bash', ['-c', script, bin, path, ...args], {
      ...{ reject: false, stripFinalNewline: false, stdin: 'ignore', extendEnv: false, timeout: 20_000, killSignal: 'SIGKILL' },
      env: { PATH: process.env['PATH'], HOME: folder, ...env },
    })
    return { process: child, reader }
  }

  /** Starts the program with such a stderr that is a socket. */
  async function intoFullSocket(args: string[]): Promise<{ process: ChildProcess }> {
    const path = socketPath()
    const server = createServer({ pauseOnConnect: true }).listen(path)
    await once(server, 'listening')
    const socket = connect(path)
    await once(socket, 'connect')
    socket.on('error', () => undefined).write(Buffer.alloc(1_048_576)) // more than the system keeps
    const folder = temporaryFolder()
    const child = spawn(bin, args, {
      ...{ stdio: ['ignore', 'ignore', socket], timeout: 20_000, killSignal: 'SIGKILL' },
      env: { PATH: process.env['PATH'], HOME: folder, ...env },
    })
    onTestFinished(() => {
      socket.destroy()
      server.close()
    })
    return { process: child }
  }

  /** The exit code of a process, or the signal that has ended it. */
  async function endOf(child: ChildProcess): Promise<unknown> {
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    return child.signalCode ?? child.exitCode
  }

  /** What comes out of a pipe until a process has ended, read in small pieces; the zeros that have filled it are left out. */
  async function drain(fd: number, child: ChildProcess): Promise<string> {
    const chunks: Buffer[] = []
    for (;;) {
      const isOver = child.exitCode !== null || child.signalCode !== null
      const chunk = readSome(fd)
      if (chunk.length === 0 && isOver) return Buffer.concat(chunks).toString().replace(/^\0+/, '')
      chunks.push(chunk)
      await new Promise(setImmediate)
    }
  }

  /** Runs a script in which "$plants" is the program. */
  async function bash(script: string): Promise<ProcessResult> {
    const folder = temporaryFolder()
    const { exitCode, stdout, stderr } = await execa('bash', ['-c', `plants=$0; ${script}`, bin], {
      ...{ reject: false, stripFinalNewline: false, stdin: 'ignore', extendEnv: false, cwd: folder },
      env: { PATH: process.env['PATH'], HOME: folder, PLANTS_DATA_DIR: join(folder, 'data'), ...env },
    })
    return { code: exitCode, out: stdout, err: stderr }
  }
})

/** Makes stderr non-blocking for all who share it, as Node does, and leaves it so. */
const unblock = '(node --eval "process.stderr; process.kill(process.pid, 9)"; true) > /dev/null;'

function kindOf(line: string): unknown {
  const { verbose, warning, error } = JSON.parse(line)
  return verbose ?? (warning === undefined ? error : 'warning')
}

/** What a pipe holds, up to a thousand bytes. */
function readSome(fd: number): Buffer {
  const bytes = Buffer.alloc(1000)
  try {
    return bytes.subarray(0, readSync(fd, bytes))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return Buffer.alloc(0)
    throw error
  }
}

/** Writes into a pipe until it takes no more. */
function fillUp(fd: number): void {
  try {
    for (;;) writeSync(fd, Buffer.alloc(4096))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error
  }
}
