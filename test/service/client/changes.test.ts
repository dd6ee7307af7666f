import { expect, test } from 'vitest'
import { createClock, createCountingClock } from '../../helpers/sandbox/clock.js'
import {
  buildJsonResponse,
  type ScriptedResponse,
} from '../../helpers/scripted-server/scripted-server.js'
import { denied, fern, missing, moss, resetConnection, runCommandAt } from './steps.js'

// A command that changes or deletes plants at a service.

const expectText = (text: string) => expect.stringContaining(text)

test('an update is one request with the changed fields only', async () => {
  const answers = { 'PATCH /plants/1': [buildJsonResponse(200, fern)] }
  expect(await runCommandAt('update 1 --name Moss --no-tag', answers)).toMatchObject({
    ...{ code: 0, out: `${fern}\n` },
    requests: ['PATCH /plants/1 {"name":"Moss","tag":null}'],
  })
})

test('an update is sent again when its response was lost', async () => {
  const answers = { 'PATCH /plants/1': [resetConnection, buildJsonResponse(200, fern)] }
  const result = await runCommandAt('update 1 --name Fern', answers)
  expect(result).toMatchObject({ code: 0, out: `${fern}\n` })
})

const lost = 'the connection was closed'

test.each<[string, ScriptedResponse[], string]>([
  ['lost', [resetConnection], lost],
  [
    'lost, and then there is a conflict',
    [resetConnection, buildJsonResponse(409, { error: 409, message: 'No' })],
    lost,
  ],
  ['lost, and then the plant is gone', [resetConnection, missing], lost],
  ['about another plant', [buildJsonResponse(200, moss)], `with id 1: ${moss}`],
])('the outcome of a change is unknown when its response is %s', async (_, answers, message) => {
  const hint = expectText('plants get 1 --store URL')
  for (const line of ['update 1 --name Fern', 'delete 1 --yes']) {
    const operations = { 'PATCH /plants/1': [...answers], 'DELETE /plants/1': [...answers] }
    const result = await runCommandAt(line, operations, { now: createCountingClock(600_000) })
    const last = { message: expectText(message), hint }
    expect({ line, ...result }).toMatchObject({ line, code: 5, out: '', last })
  }
})

test('an import stops when the service answers with another plant', async () => {
  const posts = [buildJsonResponse(400, { error: 409, message: 'Exists' })]
  const answers = { 'PATCH /plants/1': [buildJsonResponse(200, moss)] }
  const result = await runCommandAt('import --if-exists update', answers, {
    posts,
    stdin: `${fern}\n`,
  })
  expect(result).toMatchObject({ code: 5, lines: [{ error: 502, status: 200 }] })
  expect(JSON.parse(result.out)).toMatchObject({ created: 0, updated: 0, unknown: 1 })
})

test('a delete of several plants reports each failure, and exits with the worst code', async () => {
  const time = createClock()
  const failing = buildJsonResponse(500, { error: 500, message: 'Oh' })
  const last: ScriptedResponse = (socket) => {
    time.pass()
    socket.write(failing)
  }
  const answers = {
    'DELETE /plants/1': [missing],
    'DELETE /plants/3': [buildJsonResponse(200, '{"id":3,"name":"Ivy"}')],
    'DELETE /plants/4': [failing, last],
    'DELETE /plants/6': [buildJsonResponse(400, { error: 400, message: 'No' })],
  }
  const { code, out, lines, requests } = await runCommandAt('delete 1 3 4 6 --yes', answers, time)
  expect({ code, out }).toEqual({ code: 5, out: '{"id":3,"name":"Ivy"}\n' })
  const [warning, ...errors] = lines
  expect(warning).toMatchObject({ warning: expectText('500: Oh. Trying again for up to ') })
  expect(errors.map(({ error }) => error)).toEqual([404, 502, 400])
  expect(requests).not.toContain('GET /openapi.json')
})

test('a delete of several plants without the right ends with one error', async () => {
  const answers = { 'DELETE /plants/1': [denied], 'DELETE /plants/2': [denied] }
  const lines = [{ error: 403, message: 'URL answered 403: Not allowed' }]
  expect(await runCommandAt('delete 1 2 --yes', answers)).toMatchObject({ code: 3, out: '', lines })
})
