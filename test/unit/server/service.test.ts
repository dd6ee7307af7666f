import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { PlantsError } from '../../../src/platform/errors.js'
import { adminServer, Metrics } from '../../../src/server/admin.js'
import { Log } from '../../../src/server/log.js'
import { exchange } from '../../helpers/raw-http.js'
import { logInto, quick, serveStore, testToken } from '../../helpers/service.js'
import { objectsOf } from '../../helpers/world.js'

describe('the admin port', () => {
  test('answers a check that fails with 500, and goes on', async () => {
    const broken = new Error('The store is broken')
    const errors: unknown[] = []
    const error = (found: unknown) => void errors.push(found)
    const isReady = () => Promise.reject(broken)
    const server = adminServer(new Metrics(), isReady, { error })
    onTestFinished(() => void server.close().closeAllConnections())
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo // as it listens at one
    const place = { host: '127.0.0.1', port }
    const statusOf = async (target: string) =>
      (await exchange({ place, token: '' }, { method: 'GET', target })).status
    expect([await statusOf('/ready'), await statusOf('/live')]).toEqual([500, 200])
    expect(errors).toEqual([broken])
  })
})

function logOf(level: string, isTerminal: boolean) {
  const written: string[] = []
  const { output } = logInto(async (lines) => void written.push(lines))
  return {
    log: new Log({ output: { ...output, isTerminal }, level, delayMs: 0, redact: String }),
    text: () => written.join(''),
  }
}

test.each([
  ['info', ['created', 'warning', 'error']],
  ['warn', ['warning', 'error']],
])('a log of level %s has the same lines as text and as JSON', (level, expected) => {
  for (const isTerminal of [true, false]) {
    const { log, text } = logOf(level, isTerminal)
    log.record({ outcome: 'created', path: '/a\u001b[31m', milliseconds: 1.2 })
    log.warn('warning')
    log.error(new Error('error'), 'r-1')
    const found = ['created', 'warning', 'error'].filter((word) => text().includes(word))
    expect(found).toEqual(expected)
    expect(text()).not.toContain('\u001b')
  }
})

test('the log has one sentence for a failure that a person can fix, and the stack of a defect', () => {
  const away = new PlantsError('unavailable', 'The database is away', {
    cause: new Error('The database is away'),
  })
  const lost = new PlantsError('unknownOutcome', 'The connection was lost', {
    hint: 'Look',
    cause: away,
  })
  const ours = [away, lost, new PlantsError('unwritable', 'The disk is full')]
  const defects = [new TypeError('x is undefined'), new PlantsError('defect', 'Internal error')]
  const [json, terminal] = [logOf('info', false), logOf('info', true)]
  for (const { log } of [json, terminal])
    for (const failure of [...ours, ...defects]) log.error(failure, 'r-1')
  const line = { level: 'error', time: expect.any(String), requestId: 'r-1' }
  expect(objectsOf(json.text())).toEqual([
    {
      ...line,
      code: 'unavailable',
      msg: 'The database is away',
      reason: 'The database is away',
    },
    {
      ...line,
      code: 'unknownOutcome',
      msg: 'The connection was lost',
      reason: 'The database is away',
    },
    { ...line, code: 'unwritable', msg: 'The disk is full' },
    ...defects.map(({ message }) => ({
      ...{ ...line, msg: 'failed' },
      stack: expect.stringMatching(RegExp(`: ${message}\\n {4}at `)),
    })),
  ])
  const lines = terminal
    .text()
    .replaceAll(/\d\d:\d\d:\d\d/g, 'TIME')
    .split('\n')
  expect(lines.slice(0, 5)).toEqual([
    'TIME error: The database is away requestId=r-1 code=unavailable reason=The database is away',
    'TIME error: The connection was lost requestId=r-1 code=unknownOutcome reason=The database is away',
    'TIME error: The disk is full requestId=r-1 code=unwritable',
    'TIME error: failed requestId=r-1',
    '  TypeError: x is undefined',
  ])
})

test('the path of a request is logged as that of the route, and without a route not at all', async () => {
  const service = await serveStore({ ...quick, get: async () => new Map() })
  const targets = [
    '/plants/4711?x',
    '/plants/4711/',
    `/x/${testToken}`,
    '/plants%3Fsearch=SECRET',
    '//plants/4711',
  ]
  for (const target of targets) await exchange(service, { method: 'GET', target })
  const found = objectsOf(service.log()).filter(({ outcome }) => outcome !== undefined)
  expect(found.map(({ outcome, path }) => [outcome, path])).toEqual([
    ['404', '/plants/{id}'],
    ...targets.slice(1).map(() => ['404', undefined]),
  ])
})

test('the log has the id of a plant that a request is to change, and no name', async () => {
  const plant = { id: 9_007_199_254_740_993n, name: 'SECRET' }
  const service = await serveStore({
    ...{ get: async () => new Map([[plant.id, plant]]), close: async () => undefined },
    write: async ([change]) => [{ type: change?.type === 'delete' ? 'deleted' : 'updated', plant }],
  })
  const target = `/plants/${plant.id}`
  await exchange(service, { method: 'PATCH', target, body: '{"name":"SECRET"}' })
  await exchange(service, { method: 'PATCH', target, body: '{"name":1}' })
  await exchange(service, { method: 'DELETE', target })
  await exchange(service, { method: 'DELETE', target: '/plants/SECRET' })
  await exchange(service, { method: 'GET', target })
  const found = objectsOf(service.log()).filter(({ outcome }) => outcome !== undefined)
  const id = String(plant.id)
  expect(found.map(({ outcome, plantId }) => [outcome, plantId])).toEqual([
    ...[
      ['updated', id],
      ['422', id],
      ['deleted', id],
    ],
    ...[
      ['400', undefined],
      ['read', undefined],
    ],
  ])
  expect(service.log()).not.toContain('SECRET')
})

test('the log of a request on a terminal has its fields by their names', () => {
  const { log, text } = logOf('info', true)
  const request = {
    requestId: 'r-1',
    status: 404,
    outcome: '404',
    milliseconds: 1.234,
    path: '/nope',
    token: '7',
  }
  log.record({ ...request, method: 'GET', from: '127.0.0.1' })
  log.info('listening', { address: 'http://127.0.0.1:1', admin: undefined })
  log.error(new Error('The disk is gone'), 'r-2')
  const [answered, listening, failed, first, second] = text()
    .replaceAll(/\d\d:\d\d:\d\d/g, 'TIME')
    .split('\n')
  expect([answered, listening, failed, first]).toEqual([
    'TIME requestId=r-1 status=404 outcome=404 milliseconds=1.234 path=/nope token=7 method=GET from=127.0.0.1',
    'TIME listening address=http://127.0.0.1:1',
    'TIME error: failed requestId=r-2',
    '  Error: The disk is gone',
  ])
  expect(second).toMatch(/^ +at /)
})
