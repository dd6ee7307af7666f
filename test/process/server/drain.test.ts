import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { request as secureRequest } from 'node:https'
import { type AddressInfo, connect, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { connect as connectSecurely } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { DatabaseSync } from '../../helpers/database.js'
import { isLinux } from '../../helpers/linux.js'
import { plants } from '../../helpers/process.js'
import { connectTo, exchange, type RawConnection, requestBytes } from '../../helpers/raw-http.js'
import { rounds } from '../../helpers/rounds.js'
import { launch, placeOf, type RunningService, serve, testToken } from '../../helpers/service.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { terminal } from '../../helpers/terminal.js'

const repeated = { repeats: rounds(1) - 1 }
const patience = { timeout: 10_000, interval: 10 }
const fern = '{"id":1,"name":"Fern"}'
const half = requestBytes(testToken, { headers: { 'Content-Length': '99' }, body: fern })

describe.each(['SIGTERM', 'SIGINT'] as const)('%s', (signal) => {
  test('under load: every request that was sent is answered, and every plant is stored', repeated, async () => {
    const service = await serve()
    const { load, clients } = loadOf(service, { clients: 50, atOnce: 1 })
    await expect.poll(() => Math.min(...load.answers), patience).toBeGreaterThan(5)
    expect(await endedIn(5000, service.stop(signal))).toMatchObject({ code: 0 })
    const answered = await clients
    expect(answered).toEqual(Array.from({ length: load.last }, (_, at) => at + 1))
    expect(await idsIn(service)).toEqual(answered)
  })

  test('under load of clients that send several at once: no plant is stored without an answer', repeated, async () => {
    const service = await serve()
    const { load, clients } = loadOf(service, { clients: 20, atOnce: 5 })
    await expect.poll(() => Math.min(...load.answers), patience).toBeGreaterThan(25)
    expect(await endedIn(5000, service.stop(signal))).toMatchObject({ code: 0 })
    expect(await idsIn(service)).toEqual(await clients)
  })

  test('a second time ends it at once', async () => {
    const service = await serve()
    await draining(service, signal)
    // Two that come within a tenth of a second are taken for one.
    const again = setInterval(() => service.kill(signal), 50)
    const { code } = await endedIn(3000, service.ended)
    clearInterval(again)
    expect(code).toBe(signal === 'SIGINT' ? 130 : 143)
  })

  test('right behind the line with the address drains as well', { repeats: 2 }, async () => {
    const service = await serve()
    const { code, out } = await service.stop(signal)
    expect({ code, out }).toEqual({ code: 0, out: `${service.address}\n` })
  })
})

describe('while it drains, a service', () => {
  test.each([[[]], [['--drain-timeout', '24d']]])('answers what it has received, and lets no one in any more (%j)', async (args) => {
    const service = await serve(args)
    const connection = await draining(service)
    await expect.poll(() => isRefused(service), patience).toBe(true)
    connection.send(' '.repeat(99 - fern.length))
    const answer = await connection.answer()
    expect(answer).toMatchObject({ status: 200, headers: { connection: 'close' }, body: '{"name":"Fern"}' })
    expect((await service.ended).code).toBe(0)
    expect(await idsIn(service)).toEqual([1])
  })

  test('answers all requests that it has received on one connection, in their turn', async () => {
    const service = await serve()
    const unlock = lock(service)
    const connection = await connectTo(service.place)
    connection.send(Buffer.concat([1, 2, 3].map((id) => requestBytes(testToken, { body: `{"id":${id},"name":"Fern ${id}"}` }))))
    await expect.poll(() => exchange(service, { target: '/nope' }).then(({ status }) => status)).toBe(404) // the three came before
    service.kill('SIGTERM')
    await expect.poll(() => service.log.map(({ msg }) => msg), patience).toContain('draining')
    unlock()
    const answers = await connection.answers()
    expect(answers.map(({ status, body }) => [status, body])).toEqual([1, 2, 3].map((id) => [200, `{"name":"Fern ${id}"}`]))
    expect((await service.ended).code).toBe(0)
    expect(await idsIn(service)).toEqual([1, 2, 3])
  })

  test.runIf(isLinux)('answers those who stood in the queue of its socket when it was told', async () => {
    const service = await serve()
    service.kill('SIGSTOP')
    const ids = Array.from({ length: 50 }, (_, at) => at + 1)
    const connections = await Promise.all(ids.map(() => connectTo(service.place)))
    for (const id of ids) connections[id - 1]?.send(requestBytes(testToken, { body: `{"id":${id},"name":"Fern"}` }))
    service.kill('SIGTERM')
    service.kill('SIGCONT')
    const answers = await Promise.all(connections.map((connection) => connection.answer()))
    expect(answers.map((answer) => answer?.status)).toEqual(ids.map(() => 200))
    expect((await service.ended).code).toBe(0)
    expect(await idsIn(service)).toEqual(ids)
  })

  test('waits for a client that sends a byte now and then, but not beyond --drain-timeout', async () => {
    const service = await serve(['--drain-timeout', '700ms'])
    const connection = await draining(service)
    const sent = performance.now()
    let isEnded = false
    void service.ended.then(() => {
      isEnded = true
    })
    const drip = () => {
      connection.socket.write(' ')
      return isEnded
    }
    await expect.poll(drip, { timeout: 5000, interval: 100 }).toBe(true)
    expect((await service.ended).code).toBe(0)
    expect(performance.now() - sent).toBeLessThan(4000)
    expect(await idsIn(service)).toEqual([])
  })

  test('does not wait beyond --drain-timeout for a store that is locked either, and stores nothing then', async () => {
    const service = await serve(['--drain-timeout', '500ms'])
    const unlock = lock(service)
    const connection = await connectTo(service.place)
    connection.send(requestBytes(testToken, { body: fern }))
    expect((await exchange(service, { target: '/nope' })).status).toBe(404) // by now the other has come as well
    const { code } = await endedIn(3000, service.stop())
    unlock()
    expect(code).toBe(0)
    expect((await connection.answers()).map(({ status }) => status)).toEqual((await idsIn(service)).map(() => 200))
  })

  test.runIf(isLinux)('is told, and ends, though nobody reads its log', async () => {
    const folder = temporaryFolder()
    const path = join(folder, 'pipe')
    expect(spawnSync('mkfifo', [path]).status).toBe(0)
    const reader = openSync(path, 'r+')
    onTestFinished(() => closeSync(reader))
    const service = await serve(['--drain-timeout', '1s'], { folder, through: ['sh', '-c', 'exec "$@" 2> "$0"', path] })
    const connection = await connectTo(service.place)
    const requests = Buffer.concat(Array.from({ length: 30 }, () => requestBytes(testToken, { target: '/nope' })))
    for (let round = 0; round < 34; round += 1) {
      connection.send(requests)
      for (let count = 0; count < 30; count += 1) expect((await connection.answer())?.status).toBe(404)
    }
    expect((await endedIn(4000, service.stop())).code).toBeOneOf([0, 143])
  })

  test('does not wait for connections that are idle, or never brought a byte', async () => {
    const service = await serve(['--drain-timeout', '9s'])
    await connectTo(service.place)
    const used = await connectTo(service.place)
    expect((await used.send(requestBytes(testToken, { body: fern })).answer())?.status).toBe(200)
    expect(await endedIn(3000, service.stop())).toMatchObject({ code: 0 })
  })
})

describe('what keeps a service from listening', () => {
  const env = { PLANTS_SERVE_TOKEN: testToken }
  const start = async (...args: string[]) => {
    const { err, ...result } = await plants(['serve', '--output', 'json', ...args], temporaryFolder(), { env, timeout: 4000 })
    return { ...result, err: JSON.parse(err.split('\n').at(-2) ?? '') }
  }

  test.each([
    ['--port', ['--port']],
    ['--admin-port', ['--port', '0', '--admin-port']],
  ])('a %s that is taken is told, and ends it', async (_, args) => {
    const server = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo // as it listens at one
    const error = {
      error: 503,
      message: `Port ${port} of 127.0.0.1 is in use by another program`,
      hint: expect.any(String),
      retryable: true,
    }
    expect(await start(...args, `${port}`)).toEqual({ code: 4, out: '', err: error })
  })

  test.each([
    ['is too long', 'x'.repeat(120)],
    ['has no folder', 'none/socket'],
  ])('a path of a socket that %s is told, and ends it', async (_, name) => {
    const path = join(temporaryFolder(), name)
    expect(await start('--socket', path)).toMatchObject({
      code: 2,
      out: '',
      err: { error: 400, message: expect.stringContaining(dirname(path)) },
    })
  })
})

describe('stdout of a service', () => {
  test('is the address, and nothing else', async () => {
    const service = await serve(['--base-path', '/v1'])
    expect(service.address).toMatch(/^http:\/\/127\.0\.0\.1:[1-9]\d+\/v1$/)
    expect((await exchange(service, { target: '/v1/plants', body: fern })).status).toBe(200)
    expect((await service.stop()).out).toBe(`${service.address}\n`)
  })

  test('is JSON when that is asked for', async () => {
    const service = await serve(['--output', 'json'])
    const { out } = await service.stop()
    expect(out).toBe(`${service.address}\n`)
    expect(JSON.parse(out)).toEqual({ address: expect.stringMatching(/^http:\/\/127\.0\.0\.1:[1-9]\d+$/) })
  })

  test('may be closed, before the address and after it', async () => {
    const folder = temporaryFolder()
    const path = join(folder, 'socket')
    const { child, ready, ended } = launch(['--socket', path], folder)
    onTestFinished(() => void child.kill('SIGKILL'))
    ready.catch(() => undefined)
    child.stdout.destroy()
    const created = () => exchange({ place: { path }, token: testToken }, { body: fern }).catch(() => undefined)
    await expect.poll(async () => (await created())?.status, patience).toBeDefined()
    child.kill('SIGTERM')
    expect((await ended).code).toBe(0)
  })
})

describe('a Unix socket', () => {
  test('is served for this user and group alone, replaces one that was left behind, and goes with the service', async () => {
    const folder = temporaryFolder()
    const path = join(folder, 'socket')
    const first = await serve(['--socket', path, '--base-path', '/v1'], { folder })
    expect(first.address).toBe(`unix:${path}:/v1`)
    expect(statSync(path).mode & 0o777).toBe(0o660)
    const second = await plants(['serve', '--socket', path], folder, { env: { PLANTS_SERVE_TOKEN: testToken } })
    expect(second).toMatchObject({ code: 4, out: '', err: expect.stringContaining(`${path} is in use by another program`) })
    const args = ['create', '--id', '1', '--name', 'Fern', '--store', first.address]
    const made = await plants(args, folder, { env: { PLANTS_TOKEN: testToken } })
    expect(made).toEqual({ code: 0, out: '{"name":"Fern"}\n', err: '' })
    await first.stop('SIGKILL')
    expect(existsSync(path)).toBe(true)
    const third = await serve(['--socket', path], { folder })
    expect((await exchange(third, { body: '{"id":2,"name":"Moss"}' })).status).toBe(200)
    expect((await third.stop()).code).toBe(0)
    expect(existsSync(path)).toBe(false)
  })

  test('takes the place of no file', async () => {
    const folder = temporaryFolder()
    const path = join(folder, 'file')
    writeFileSync(path, 'precious')
    const { code } = await plants(['serve', '--socket', path], folder, { env: { PLANTS_SERVE_TOKEN: testToken } })
    expect([code, readFileSync(path, 'utf8')]).toEqual([2, 'precious'])
  })
})

test.each(['info', 'trace'])('the log of level %s tells of every exchange, and holds no token and no plant', async (level) => {
  const folder = temporaryFolder()
  const made = (await plants(['tokens', 'create', '--note', 'laptop'], folder)).out.trim()
  const service = await serve(['--log-level', level], { folder, env: {} })
  const headers = { Authorization: `Bearer ${made}` }
  await exchange(service, { headers, body: '{"id":1,"name":"SECRET","tag":"SECRET","SECRET":1}' })
  await exchange(service, { headers, body: '{"id":1,"name":"SECRET"}' })
  await exchange(service, { headers, body: '{"id":"SECRET"}' })
  await exchange(service, { headers: { Authorization: 'Bearer SECRET' }, body: fern })
  await exchange(service, { headers: { ...headers, 'Idempotency-Key': 'SECRET twice' }, body: fern })
  await exchange(service, { target: `/nowhere/${made}?token=SECRET`, headers, body: fern })
  await exchange(service, { method: 'GET', target: '/openapi.json', headers })
  await exchange(service, { headers: { ...headers, 'SECRET ': 'x' }, body: '{"id":2,"name":"SECRET"}' })
  const connection = await connectTo(service.place)
  connection.send(requestBytes(made, { headers: { ...headers, 'Content-Length': '99' }, body: 'SECRET' })).socket.destroy()
  await expect.poll(() => service.log.filter(({ outcome }) => outcome !== undefined).length, patience).toBeGreaterThan(8)
  const { out, err } = await service.stop()
  const exchanges = service.log.filter(({ outcome }) => outcome !== undefined)
  expect(exchanges.map(({ outcome, status, token }) => [outcome, status, token])).toEqual([
    ['created', 200, '1'],
    ['409', 400, '1'],
    ['422', 400, '1'],
    ['401', 400, undefined],
    ['400', 400, '1'],
    ['404', 404, undefined],
    ['described', 200, undefined],
    ['400', undefined, undefined],
    [expect.toBeOneOf(['400', 'aborted']), undefined, undefined],
  ])
  for (const { status, requestId, time, milliseconds } of exchanges.slice(0, 5)) {
    expect({ status, requestId, time, milliseconds }).toEqual({
      status: expect.any(Number),
      requestId: expect.stringMatching(/^[\da-f]{8}-[\da-z]+$/),
      time: expect.any(Number),
      milliseconds: expect.any(Number),
    })
  }
  expect(out + err).not.toMatch(new RegExp(`SECRET|${made}|${Buffer.from('SECRET').join(',')}|${Buffer.from('SECRET').toString('hex')}`))
})

describe('the admin port', () => {
  test('tells of the life, the readiness and the figures of a service, without a token', async () => {
    const service = await serve(['--admin-port', '0'])
    const ask = adminOf(service)
    expect(await ask('/live')).toMatchObject({ status: 200 })
    expect(await ask('/ready')).toMatchObject({ status: 200 })
    expect(await ask('/nope')).toMatchObject({ status: 404, body: { error: 404, message: 'Only /live, /ready and /metrics are here' } })
    expect(await ask('/live', 'POST')).toMatchObject({ status: 405, allow: 'GET, HEAD', body: { error: 405 } })
    expect((await exchange(service, { target: '/live', method: 'GET' })).status).toBe(404)
    await exchange(service, { body: fern })
    await exchange(service, { body: fern })
    const { body } = await ask('/metrics')
    expect(String(body).match(/^plants_(requests_total|queue_depth|batch_size_count).*$/gm)).toEqual([
      'plants_requests_total{outcome="404"} 1',
      'plants_requests_total{outcome="created"} 1',
      'plants_requests_total{outcome="409"} 1',
      'plants_batch_size_count 2',
      'plants_queue_depth 0',
    ])
    await draining(service)
    expect(await ask('/live')).toMatchObject({ status: 200 })
    expect(await ask('/ready')).toMatchObject({ status: 503, again: '1', body: { error: 503, message: 'The service is not ready' } })
  })
})

describe('the tokens that a service accepts', () => {
  test('are those of the store; without one, and without a terminal, it does not start', async () => {
    const folder = temporaryFolder()
    const { err, ...result } = await plants(['serve', '--port', '0', '--output', 'json'], folder)
    const message = `${join(folder, 'data/plants.db')} has no token that is valid, so nobody could use the service`
    const error = { error: 401, message, hint: 'Make one with: plants tokens create. Or set PLANTS_SERVE_TOKEN, or give --token-file PATH' }
    expect({ ...result, err: JSON.parse(err) }).toEqual({ code: 3, out: '', err: error })
  })

  test('are PLANTS_SERVE_TOKEN and those of --token-file, when they are given, and no others', async () => {
    const folder = temporaryFolder()
    const file = join(folder, 'tokens')
    writeFileSync(file, 's3cret-first-of-the-file\r\n\n  s3cret-second-of-the-file  \n')
    const ofStore = (await plants(['tokens', 'create'], folder)).out.trim()
    const service = await serve(['--token-file', file], { folder })
    const isAccepted = async (token: string) => {
      const { status, body } = await exchange({ place: service.place, token }, { headers: { 'Idempotency-Key': 'k' }, body: fern })
      return status === 200 || JSON.parse(body).error
    }
    const accepted = (tokens: string[]) => Promise.all(tokens.map(isAccepted))
    const all = [testToken, 's3cret-first-of-the-file', 's3cret-second-of-the-file', ofStore, 's3cret-third-of-the-file']
    expect(await accepted(all)).toEqual([true, true, true, 401, 401])
    writeFileSync(file, 's3cret-third-of-the-file\n')
    await expect.poll(() => accepted(all), { timeout: 1500, interval: 50 }).toEqual([true, 401, 401, 401, true])
    writeFileSync(file, 'a token with spaces\n')
    const asked = async () => [await accepted(all), service.err.includes('The tokens that were in it before are still accepted')]
    await expect.poll(asked, { timeout: 1500, interval: 50 }).toEqual([[true, 401, 401, 401, true], true])
    expect(service.err).not.toMatch(/of-the-file|with spaces/)
  })

  test('are made on a terminal for a store that has none, and shown once', async () => {
    const folder = temporaryFolder()
    const first = terminal(['serve', '--port', '0'], folder)
    await first.see('listening')
    const [token = '', ...more] = first.screen.match(/plants_[\w-]{43}/g) ?? []
    const address = /http:\/\/127\.0\.0\.1:\d+/.exec(first.screen)?.[0] ?? ''
    expect((await exchange({ place: placeOf(address), token }, { body: fern })).status).toBe(200)
    first.kill('SIGTERM')
    const ended = await first.ended
    expect([more, ended.code, ended.screen.match(/plants_[\w-]{43}/g)]).toEqual([[], 0, [token]])
    const second = terminal(['serve', '--port', '0'], folder)
    await second.see('listening')
    second.kill('SIGINT')
    expect((await second.ended).screen).not.toMatch(/plants_[\w-]{43}/)
  })
})

describe.runIf(spawnSync('openssl', ['version']).status === 0)('over TLS (needs openssl), a service', () => {
  test('answers, and lets plants create in that trusts the certificate', async () => {
    const { service, cert } = await serveSecurely()
    expect(service.address).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/)
    const args = ['create', '--id', '1', '--name', 'Fern', '--store', service.address, '--timeout', '3s']
    const trusting = await plants([...args, '--ca-cert', cert], service.folder, { env: { PLANTS_TOKEN: testToken } })
    expect(trusting).toEqual({ code: 0, out: '{"name":"Fern"}\n', err: '' })
    const other = await plants(args, service.folder, { env: { PLANTS_TOKEN: testToken } })
    expect([other.code, other.out]).toEqual([4, ''])
  })

  test('closes on whoever speaks no TLS, and goes on', async () => {
    const { service, ca } = await serveSecurely()
    const plain = await connectTo(service.place)
    expect(await plain.send(requestBytes(testToken, { body: fern })).answers()).toEqual([])
    expect(await statusOf(service, ca)).toBe(200)
  })

  test.each([
    ['a connection that has brought no request', true],
    ['a connection that has not even said hello', false],
  ])('does not wait, when it drains, for %s', async (_, isSecure) => {
    const { service, ca } = await serveSecurely(['--drain-timeout', '9s'])
    if (isSecure) await helloTo(service, ca)
    else await connectTo(service.place)
    expect(await statusOf(service, ca)).toBe(200)
    expect(await endedIn(4000, service.stop())).toMatchObject({ code: 0 })
  })

  test('does not start with a key that is not the one of the certificate', async () => {
    const folder = temporaryFolder()
    const [one, two] = [certificate(folder, 'one'), certificate(folder, 'two')]
    const args = ['serve', '--port', '0', '--tls-cert', one.cert]
    const env = { PLANTS_SERVE_TOKEN: testToken }
    expect((await plants([...args, '--tls-key', two.key], folder, { env })).code).toBe(2)
    expect((await plants(args, folder, { env })).code).toBe(2)
    expect((await plants([...args, '--tls-key', join(folder, 'none')], folder, { env })).code).toBe(2)
  })
})

interface Load {
  /** the last id that was given away; the first is 1 */
  last: number
  /** how many each client has got */
  answers: number[]
}

/** Many clients, each of which creates so many plants at once on a connection of its own, until the service closes it. */
function loadOf(service: RunningService, { clients, atOnce }: { clients: number; atOnce: number }) {
  const load: Load = { last: 0, answers: Array.from({ length: clients }, () => 0) }
  const work = Promise.all(load.answers.map((_, client) => createUntilClosed(service, load, { client, atOnce })))
  work.catch(() => undefined) // it is looked at when the service has ended
  return { load, clients: work.then((ids) => ids.flat().toSorted((a, b) => a - b)) }
}

/** @returns the ids that were answered with 200. Any other answer is an error, and so is none at all to a lone request. */
async function createUntilClosed(
  service: RunningService,
  load: Load,
  { client, atOnce }: { client: number; atOnce: number },
): Promise<number[]> {
  const connection = await connectTo(service.place)
  const answered: number[] = []
  for (let isOpen = true; isOpen; ) {
    const sent = Array.from({ length: atOnce }, () => {
      load.last += 1
      return load.last
    })
    connection.send(Buffer.concat(sent.map((id) => requestBytes(testToken, { body: `{"id":${id},"name":"Fern"}` }))))
    for (const id of sent) {
      const answer = await connection.answer()
      if (!answer && atOnce > 1) return answered
      if (answer?.status !== 200) throw new Error(`${id} was sent, and the answer was ${answer?.status}`)
      answered.push(id)
      load.answers[client] = answered.length
      isOpen = answer.headers['connection'] !== 'close'
    }
  }
  return answered
}

/** Tells a service to stop while it waits for the rest of a request, on the connection that this gives. */
async function draining(service: RunningService, signal: NodeJS.Signals = 'SIGTERM'): Promise<RawConnection> {
  const connection = await connectTo(service.place)
  connection.send(half)
  expect((await exchange(service, { target: '/nope' })).status).toBe(404) // by now the half has come as well
  service.kill(signal)
  await expect.poll(() => service.log.map(({ msg }) => msg), patience).toContain('draining')
  return connection
}

/** Takes the write lock of the store, and gives what lets it go. */
function lock({ folder }: RunningService): () => void {
  const db = new DatabaseSync(join(folder, 'data/plants.db'))
  onTestFinished(() => db.close())
  db.exec('BEGIN IMMEDIATE')
  return () => db.exec('ROLLBACK')
}

/** What a service gives when it has ended, which must not take longer. */
async function endedIn<T>(milliseconds: number, ending: Promise<T>): Promise<T> {
  const end = AbortSignal.timeout(milliseconds)
  const late = once(end, 'abort').then(() => {
    throw new Error(`It had not ended after ${milliseconds} ms`)
  })
  return Promise.race([ending, late])
}

function isRefused({ place }: RunningService): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(place)
    socket.once('connect', () => resolve(false)).once('error', () => resolve(true))
    socket.once('connect', () => socket.destroy())
  })
}

async function idsIn({ folder }: RunningService): Promise<number[]> {
  const { code, out } = await plants(['list'], folder)
  expect(code).toBe(0)
  return [...out.matchAll(/^\{"id":(\d+),/gm)].map((match) => parseInt(match[1] ?? '', 10))
}

function adminOf(service: RunningService) {
  return async (path: string, method = 'GET') => {
    const address = service.log.find(({ msg }) => msg === 'listening')?.['admin']
    const response = await fetch(`${address}${path}`, { method })
    const text = await response.text()
    const isJson = response.headers.get('content-type') === 'application/json'
    const { headers, status } = response
    return { status, allow: headers.get('allow'), again: headers.get('retry-after'), body: isJson ? (JSON.parse(text) as unknown) : text }
  }
}

function certificate(folder: string, name = 'plants'): { cert: string; key: string } {
  const [cert, key] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)]
  const names = 'subjectAltName=DNS:localhost,IP:127.0.0.1'
  const how = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=localhost']
  const { status, stderr } = spawnSync('openssl', ['req', ...how, '-addext', names, '-keyout', key, '-out', cert], { encoding: 'utf8' })
  expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' })
  return { cert, key }
}

async function serveSecurely(args: string[] = []) {
  const folder = temporaryFolder()
  const { cert, key } = certificate(folder)
  const service = await serve(['--tls-cert', cert, '--tls-key', key, ...args], { folder })
  return { service, cert, ca: readFileSync(cert) }
}

/** A TLS connection that says no more than hello. */
async function helloTo({ address }: RunningService, ca: Buffer): Promise<void> {
  const { hostname: host, port } = new URL(address)
  const socket = connectSecurely({ host, port: parseInt(port, 10), ca })
  socket.on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  await once(socket, 'secureConnect')
}

function statusOf(service: RunningService, ca: Buffer): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { Authorization: `Bearer ${testToken}`, 'Content-Type': 'application/json' }
    const request = secureRequest(`${service.address}/plants`, { method: 'POST', ca, headers, agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
    request.once('error', reject).end(fern)
  })
}
