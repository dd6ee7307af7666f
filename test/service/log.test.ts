import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { NetConnectOpts } from 'node:net'
import { connect } from 'node:tls'
import { expect, test } from 'vitest'
import { PlantsError } from '../../src/errors.js'
import { readKeyPair } from '../../src/platform/certificates.js'
import { Log } from '../../src/server/log.js'
import { createCertificate, hasOpenssl } from '../helpers/sandbox/certificates.js'
import { parseObjects } from '../helpers/sandbox/sandbox.js'
import { exchangeOnce } from '../helpers/scripted-server/raw-http.js'
import {
  createLogTo,
  quickStore,
  serveStore,
  testToken,
} from '../helpers/scripted-server/service.js'

function createLog(level: string, isTerminal: boolean) {
  const written: string[] = []
  const { output } = createLogTo(async (lines) => void written.push(lines))
  return {
    log: new Log({ output: { ...output, isTerminal }, level, delayMs: 0, redact: String }),
    text: () => written.join('').replaceAll(/\d\d:\d\d:\d\d/g, 'TIME'),
  }
}

test.each([
  ['info', ['created', 'warning', 'error']],
  ['warn', ['warning', 'error']],
])('a log of level %s has the same lines as text and as JSON', (level, expected) => {
  for (const isTerminal of [true, false]) {
    const { log, text } = createLog(level, isTerminal)
    log.record({ outcome: 'created', path: '/a\u001b[31m', milliseconds: 1.2 })
    log.warn('warning')
    log.error(new Error('error'), 'r-1')
    const found = ['created', 'warning', 'error'].filter((word) => text().includes(word))
    expect(found).toEqual(expected)
    expect(text()).not.toContain('\u001b')
  }
})

test('the log writes lines of requests together, in blocks of 64 KiB', () => {
  const blocks: string[] = []
  const { output } = createLogTo(async (lines) => void blocks.push(lines))
  const log = new Log({ output, level: 'info', delayMs: 3_600_000, redact: String })
  for (let index = 0; index < 1000; index += 1)
    log.record({ outcome: 'created', path: `/${'a'.repeat(100)}` })
  const longestLine = 300
  expect(blocks).toHaveLength(2)
  for (const { length } of blocks) {
    expect(length).toBeGreaterThanOrEqual(65_536)
    expect(length).toBeLessThan(65_536 + longestLine)
  }
})

test('the log has one sentence for a failure that a person can fix, and the stack of an internal error', () => {
  const away = new PlantsError('unavailable', 'Away', { cause: new Error('No route') })
  const lost = new PlantsError('unknownOutcome', 'Lost', { hint: 'Look', cause: away })
  const ours = [away, lost, new PlantsError('unwritable', 'The disk is full')]
  const defects = [
    new TypeError('x is undefined'),
    new PlantsError('internalError', 'Internal error'),
  ]
  const [json, terminal] = [createLog('info', false), createLog('info', true)]
  for (const { log } of [json, terminal])
    for (const failure of [...ours, ...defects]) log.error(failure, 'r-1')
  const line = { level: 'error', time: expect.any(String), requestId: 'r-1' }
  const matchStack = ({ message }: Error) => expect.stringMatching(RegExp(`: ${message}\\n {4}at `))
  expect(parseObjects(json.text())).toEqual([
    { ...line, code: 'unavailable', msg: 'Away', reason: 'No route' },
    { ...line, code: 'unknownOutcome', msg: 'Lost', reason: 'Away' },
    { ...line, code: 'unwritable', msg: 'The disk is full' },
    ...defects.map((defect) => ({ ...line, msg: 'failed', stack: matchStack(defect) })),
  ])
  expect(terminal.text().split('\n').slice(0, 5)).toEqual([
    'TIME error: Away requestId=r-1 code=unavailable reason=No route',
    'TIME error: Lost requestId=r-1 code=unknownOutcome reason=Away',
    'TIME error: The disk is full requestId=r-1 code=unwritable',
    'TIME error: failed requestId=r-1',
    '  TypeError: x is undefined',
  ])
})

test('the log has the path of a route, the id of a plant that changes, and nothing else of a request', async () => {
  const plant = { id: 9_007_199_254_740_993n, name: 'SECRET' }
  const service = await serveStore({
    ...{ ...quickStore, get: async () => new Map([[plant.id, plant]]) },
    write: async ([change]) => [{ type: change?.type === 'delete' ? 'deleted' : 'updated', plant }],
  })
  const target = `/plants/${plant.id}`
  const id = String(plant.id)
  const [body, path] = ['{"name":"SECRET"}', '/plants/{id}']
  const requests: [object, ...logged: (string | undefined)[]][] = [
    [{ method: 'PATCH', target, body }, 'updated', id, path],
    [{ method: 'PATCH', target, body: '{"name":1}' }, '422', id, path],
    [{ method: 'DELETE', target }, 'deleted', id, path],
    [{ method: 'DELETE', target: '/plants/SECRET' }, '400', undefined, path],
    [{ method: 'GET', target: `${target}?SECRET` }, 'read', undefined, path],
    ...[`${target}/`, `/x/${testToken}`, '/plants%3Fsearch=SECRET', `/${target}`].map(
      (other): [object, string] => [{ method: 'GET', target: other }, '404'],
    ),
  ]
  for (const [request] of requests) await exchangeOnce(service, request)
  const found = parseObjects(service.log()).filter(({ outcome }) => outcome !== undefined)
  expect(found.map(({ outcome, plantId, path }) => [outcome, plantId, path])).toEqual(
    requests.map(([, ...expected]) => [...expected, undefined, undefined].slice(0, 3)),
  )
  expect(service.log()).not.toContain('SECRET')
})

test.runIf(hasOpenssl)(
  'a service uses a renewed certificate once its key is there, and the old one until then (needs openssl)',
  async () => {
    const [old, renewed] = [
      createCertificate({ names: ['DNS:old'] }),
      createCertificate({ names: ['DNS:new'] }),
    ]
    const { path, keyPath } = old
    const read = () => readKeyPair(path, keyPath, { cert: 'the file', key: 'the other file' })
    const service = await serveStore(quickStore, {
      tls: { paths: [path, keyPath], intervalMs: 20, read },
    })
    const served = async () => {
      const endpoint = service.endpoint as NetConnectOpts & { host: string }
      const socket = connect({ ...endpoint, rejectUnauthorized: false })
      await once(socket, 'secureConnect')
      const { subjectaltname } = socket.getPeerCertificate()
      socket.destroy()
      return subjectaltname
    }
    const messages = () => parseObjects(service.log()).map(({ msg }) => msg)
    const mixed = `${path} and ${keyPath} are not a certificate and the key for it`
    // Again until it is seen: what is written before the first look is no change.
    const renew = () => {
      writeFileSync(path, renewed.cert)
      return messages()
    }
    await expect.poll(renew).toContain(mixed)
    expect(await served()).toBe('DNS:old')
    writeFileSync(keyPath, renewed.key)
    await expect.poll(served).toBe('DNS:new')
    expect(messages().at(-1)).toBe('The certificate was reloaded')
  },
)
