import { existsSync, readdirSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isWindows, Sandbox } from '../../helpers/sandbox/sandbox.js'
import { openDatabase } from '../../helpers/sandbox/sqlite-file.js'
import {
  buildRequest,
  connectTo,
  exchangeOnce,
  type RawRequest,
} from '../../helpers/scripted-server/raw-http.js'
import {
  getStorePath,
  launchService,
  serve,
  testToken,
} from '../../helpers/scripted-server/service.js'

const fern = '{"id":1,"name":"Fern"}'

test('a service runs without its stdout, which may be closed before or after the address is printed', async () => {
  const { home } = new Sandbox()
  const path = join(home, 'socket')
  const { child, ready, ended } = launchService(['--socket', path], home)
  onTestFinished(() => void child.kill('SIGKILL'))
  ready.catch(() => undefined)
  child.stdout?.destroy()
  const service = { endpoint: { path }, token: testToken }
  const created = () => exchangeOnce(service, { body: fern }).catch(() => undefined)
  await expect.poll(async () => (await created())?.status).toBeDefined()
  child.kill('SIGTERM')
  expect((await ended).code).toBe(0)
})

test('the Unix socket of a service is open to its user and group, replaces no file, and is removed at the end', async () => {
  const sandbox = new Sandbox()
  const path = join(sandbox.home, 'socket')
  const args = ['--socket', path]
  const first = await serve(args, { folder: sandbox.home })
  expect(first.address).toBe(`unix:${path}`)
  expect(statSync(path).mode & 0o777).toBe(0o660)
  const env = { PLANTS_SERVE_TOKEN: testToken }
  const err = expect.stringMatching(/address already in use\n {2}Choose another path/)
  expect(await sandbox.spawn(`serve --socket ${path}`, { env })).toEqual({ code: 4, out: '', err })
  const service = { endpoint: { path }, token: testToken }
  expect((await exchangeOnce(service, { body: fern })).status).toBe(200)
  expect((await first.stop()).code).toBe(0)
  expect(existsSync(path)).toBe(false)
})

describe.skipIf(isWindows)('the socket of a service that was killed (needs Unix sockets)', () => {
  const serviceAt = (path: string) => ({ endpoint: { path }, token: testToken })

  async function leaveSocket() {
    const sandbox = new Sandbox()
    const path = join(sandbox.home, 'socket')
    const args = ['--socket', path]
    const first = await serve(args, { folder: sandbox.home })
    await first.stop('SIGKILL')
    expect(statSync(path).isSocket()).toBe(true)
    return { sandbox, path, args }
  }

  test('is replaced by the next service, which leaves no other file', async () => {
    const { sandbox, path, args } = await leaveSocket()
    const second = await serve(args, { folder: sandbox.home })
    expect(second.address).toBe(`unix:${path}`)
    expect(statSync(path).mode & 0o777).toBe(0o660)
    expect((await exchangeOnce(serviceAt(path), { body: fern })).status).toBe(200)
    expect(readdirSync(sandbox.home).toSorted()).toEqual(['data', 'socket'])
    expect((await second.stop()).code).toBe(0)
    expect(readdirSync(sandbox.home)).toEqual(['data'])
  })

  test('is not replaced through a link', async () => {
    const { sandbox, path } = await leaveSocket()
    symlinkSync(path, join(sandbox.home, 'link'))
    const env = { PLANTS_SERVE_TOKEN: testToken }
    const { code, err } = await sandbox.spawn('serve --socket ./link', { env })
    expect([code, err]).toEqual([4, expect.stringContaining('link exists, and is not a socket')])
    expect(statSync(path).isSocket()).toBe(true)
  })
})

test('a service accepts PLANTS_SERVE_TOKEN instead of the tokens of the store', async () => {
  const sandbox = new Sandbox()
  const ofStore = (await sandbox.spawn('tokens create')).out.trim()
  const service = await serve([], { folder: sandbox.home })
  const statusOf = async (token: string) =>
    (await exchangeOnce({ ...service, token }, { body: fern })).status
  for (const token of [ofStore, `${testToken}x`]) expect(await statusOf(token)).toBe(400)
  expect(await statusOf(testToken)).toBe(200)
  expect(service.err).not.toContain(ofStore)
})

test('a service that only reads is ready while another program holds the write lock', async () => {
  const service = await serve(['--allow', 'read', '--admin-port', '0'])
  const address = service.log.find(({ msg }) => msg === 'listening')?.['admin']
  const ask = async () => {
    const response = await fetch(`${address}/ready`)
    return [response.status, await response.json()]
  }
  const db = openDatabase(getStorePath(service))
  db.exec('BEGIN IMMEDIATE')
  expect(await ask()).toEqual([200, { ready: true }])
  db.exec('ROLLBACK')
  const path = getStorePath(service)
  rmSync(path)
  const message = `${path} or its log was deleted or replaced`
  expect(await ask()).toEqual([503, { error: 503, message }])
})

test('the log of a service has every exchange with its id, but no token and no plant', async () => {
  const service = await serve([], { rights: 'create' })
  const { token } = service
  const requests: RawRequest[] = [
    { body: '{"id":1,"name":"SECRET","tag":"SECRET","SECRET":1}' },
    { body: '{"id":1,"name":"SECRET"}' },
    { body: '{"id":"SECRET"}' },
    { headers: { Authorization: 'Bearer SECRET' }, body: fern },
    { headers: { 'Idempotency-Key': 'SECRET twice' }, body: fern },
    { target: `/nowhere/%1b/${token}/${'y'.repeat(300)}?token=SECRET`, body: fern },
    { method: 'GET', target: '/openapi.json' },
    { method: 'GET', target: '/plants/1?SECRET' },
    { headers: { 'SECRET ': 'x' }, body: '{"id":2,"name":"SECRET"}' },
  ]
  const ids: (string | undefined)[] = []
  for (const request of requests)
    ids.push((await exchangeOnce(service, request)).headers['request-id'])
  expect(new Set(ids).size).toBe(requests.length)
  const leaving = await connectTo(service.endpoint)
  const half = buildRequest(token, { headers: { 'Content-Length': '99' }, body: 'SECRET' })
  leaving.send(half).socket.destroy()
  const exchanges = () => service.log.filter(({ outcome }) => outcome !== undefined)
  await expect.poll(() => exchanges().length).toBe(requests.length + 1)
  expect(exchanges().map(({ requestId }) => requestId)).toEqual([...ids, expect.any(String)])
  const fields = ['outcome', 'status', 'token', 'method', 'path', 'plantId']
  const none = undefined
  expect(exchanges().map((entry) => fields.map((field) => entry[field]))).toEqual([
    ['created', 200, '1', 'POST', '/plants', '1'],
    ['409', 400, '1', 'POST', '/plants', '1'],
    ['422', 400, '1', 'POST', '/plants', none],
    ['401', 400, none, 'POST', '/plants', none],
    ['400', 400, '1', 'POST', '/plants', none],
    ['404', 404, none, 'POST', none, none],
    ['described', 200, none, 'GET', '/openapi.json', none],
    ['403', 403, '1', 'GET', '/plants/{id}', none],
    ['400', none, none, none, none, none], // which is not HTTP
    expect.toBeOneOf([
      ['400', 400, '1', 'POST', '/plants', none],
      ['aborted', none, '1', 'POST', '/plants', none],
    ]),
  ])
  expect(exchanges()[0]).toMatchObject({
    ...{ level: 'info', from: '127.0.0.1', milliseconds: expect.any(Number) },
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  })
  const { out, err } = await service.stop()
  const bytes = Buffer.from('SECRET')
  const forms = ['SECRET', token, bytes.join(','), bytes.toString('hex')]
  expect(forms.filter((form) => (out + err).includes(form))).toEqual([])
})
