import { describe, expect, test } from 'vitest'
import { createCountingClock } from '../../helpers/sandbox/clock.js'
import {
  buildJsonResponse,
  buildResponse,
  type ScriptedResponse,
} from '../../helpers/scripted-server/scripted-server.js'
import { denied, fern, missing, moss, resetConnection, runCommandAt } from './steps.js'

const buildPage = (plants: string[], next?: string) =>
  buildJsonResponse(
    200,
    `[${plants.join()}]`,
    next === undefined ? {} : { Link: `<${next}>; rel="next"` },
  )
const expectText = (text: string) => expect.stringContaining(text)

const conflict = buildJsonResponse(400, { error: 409, message: 'It exists' })

const list = (answers: ScriptedResponse | ScriptedResponse[], line = 'list') =>
  runCommandAt(line, { 'GET /plants': [answers].flat() })

describe('a service that can be read', () => {
  test.each([
    ['the token may not read', denied],
    ['are not offered', buildResponse(405)],
  ])('is not compared by a dry run with plants that %s', async (_, answer) => {
    const others = { 'GET /plants': [answer] }
    const stdin = `${fern}\n`
    const { out, lines } = await runCommandAt('import --dry-run --output json', others, { stdin })
    expect(JSON.parse(out)).toMatchObject({ dryRun: true, created: 1 })
    expect(lines).toEqual([{ warning: expectText('The dry run checks only the input') }])
  })

  test('lists plants page by page along its links, up to the limit', async () => {
    const [one = '', two = '', three = '', four = ''] = [1, 2, 3, 4].map(
      (id) => `{"id":${id},"name":"F","tag":"a&b"}`,
    )
    const first = buildPage([one], 'plants?after=1&x=%20')
    const pages = [first, buildPage([two], 'http://a.example/x?after=2'), buildPage([three, four])]
    const { out, requests } = await list(pages, 'list --limit 3 --tag a&b')
    expect(out).toBe(`${one}\n${two}\n${three}\n`)
    const queries = ['limit=3&tag=a%26b', 'after=1&x=%20', 'after=2']
    expect(requests).toEqual(queries.map((query) => `GET /plants?${query}`))
  })

  test.each([
    ['list --limit 1', 'GET /plants', 405],
    ['delete 1 --yes', 'DELETE /plants/1', 404],
  ])(
    'is asked by plants %s, and its response that it does not offer this is reported',
    async (line, request, status) => {
      const { code, lines } = await runCommandAt(line, { [request]: [buildResponse(status)] })
      const error = { error: status, hint: expectText('does not offer this'), status }
      expect({ code, lines }).toMatchObject({ code: 1, lines: [error] })
    },
  )

  test.each<[string, string[], number]>([
    ['two plants that descend', [moss, fern], 0],
    ['its only plant', [moss], 0],
    ['plants that ascend', [fern, moss], 4],
  ])('proposes the id after the greatest one of %s', async (_, plants, expected) => {
    const posts = [buildJsonResponse(200, '{"name":"Ivy"}')]
    const answers = { 'GET /plants': [buildPage(plants)] }
    const { code, out, requests } = await runCommandAt('create --id next --name Ivy', answers, {
      posts,
    })
    expect(code).toBe(expected)
    expect(out).toBe(code === 0 ? '{"id":3,"name":"Ivy"}\n' : '')
    expect(requests[0]).toBe('GET /plants?limit=2&order=desc')
  })

  const parameters = [{ name: 'Idempotency-Key', in: 'header' }]
  const keyed = buildJsonResponse(200, { paths: { '/plants': { post: { parameters } } } })

  test('is asked again for the next id if a stale read offers an existing one', async () => {
    const posts = [conflict, conflict, buildJsonResponse(200, '{"name":"Ivy"}')]
    const answers = { 'GET /plants': [buildPage([moss, fern])] }
    const { code, out } = await runCommandAt('create --id next --name Ivy', answers, { posts })
    expect([code, out]).toEqual([0, '{"id":5,"name":"Ivy"}\n'])
  })

  test('leaves the outcome unknown if a plant has the id of a create whose response was lost', async () => {
    const answers = { 'GET /plants': [buildPage([moss, fern])], 'GET /openapi.json': [keyed] }
    const line = 'create --id next --name Ivy'
    const { code, last, requests } = await runCommandAt(line, answers, {
      posts: [resetConnection, conflict],
    })
    const message = 'Whether plant 3 is the new one is unknown: its first try got no response'
    const hint = 'Look at it with: plants get 3 --store URL'
    expect({ code, last }).toMatchObject({ code: 5, last: { message, hint } })
    expect(requests.filter((request) => request.startsWith('POST'))).toHaveLength(2)
  })

  test('is asked for the greatest id at most a hundred times', async () => {
    const pages = Array.from({ length: 200 }, (_, id) => buildPage([`{"id":${id},"name":"F"}`]))
    const posts = [conflict]
    const answers = { 'GET /plants': pages }
    const { code, requests } = await runCommandAt('create --id next --name Ivy', answers, { posts })
    expect([code, requests.length]).toEqual([1, 200])
  })
})

describe('the count of plants', () => {
  const count = (answers: Record<string, ScriptedResponse[]>) =>
    runCommandAt('count --tag a', answers)

  test('is requested from the service, and exact', async () => {
    const answers = { 'GET /plants/count': [buildJsonResponse(200, '{"count":9007199254740993}')] }
    const { code, out, requests } = await count(answers)
    expect([code, out]).toEqual([0, '9007199254740993\n'])
    expect(requests).toEqual(['GET /plants/count?tag=a'])
  })

  test.each([400, 404, 405, 422])(
    'is that of the listed plants if the service answers with %i',
    async (status) => {
      const tagged = '{"id":1,"name":"Fern","tag":"a"}'
      const rejection = buildJsonResponse(status, { error: status, message: 'count is no id' })
      const answers = { 'GET /plants/count': [rejection], 'GET /plants': [buildPage([tagged])] }
      const { code, out, requests } = await count(answers)
      expect([code, out]).toEqual([0, '1\n'])
      expect(requests.at(-1)).toBe('GET /plants?limit=1000&tag=a')
    },
  )

  test.each([
    '{"count":-1}',
    '{"count":1.5}',
    '{"count":9223372036854775808}',
    '{"count":"1"}',
    '{}',
    '[]',
    '1',
  ])('is rejected if the body is %s', async (body) => {
    const { code, last } = await count({ 'GET /plants/count': [buildJsonResponse(200, body)] })
    const message = `URL answered 200 with no count: ${body}`
    expect({ code, last }).toMatchObject({ code: 4, last: { message } })
  })
})

describe('a response to a request that reads', () => {
  const rounded = '{"id":1.0000000000000000001,"name":"F"}'

  test.each<[string, ScriptedResponse, number, string]>([
    ['404 without an Error', buildResponse(404), 1, '404 with nothing'],
    ['more than 4 MiB', buildJsonResponse(200, fern.padEnd(4_194_305)), 4, 'more than 4 MiB'],
    ['another plant', buildJsonResponse(200, moss), 4, `no StoredPlant with id 1: ${moss}`],
    [
      'a web page',
      buildResponse(200, 'Hi', { 'Content-Type': 'text/html' }),
      4,
      '200 with a web page',
    ],
    ['a reset', resetConnection, 4, 'the connection was closed'],
  ])('for one plant is rejected: %s', async (_, answer, code, message) => {
    const now = createCountingClock(600_000)
    const result = await runCommandAt('get 1', { 'GET /plants/1': [answer] }, { now })
    expect(result).toMatchObject({ code, out: '', last: { message: expectText(message) } })
  })

  test.each<[string, ScriptedResponse, string]>([
    ['the same page again', buildPage([fern, moss], 'plants?after=2'), 'plant 1 after plant 2'],
    ['an empty page in the middle', buildPage([], 'plants?after=2'), 'an empty page'],
    ['a link to nowhere', buildPage([fern], 'http://['), 'plant 1 after plant 1'],
    [
      'a rounded id',
      buildPage([fern, rounded, rounded]),
      `URL answered 200 with no list of plants: [${fern},${rounded}`,
    ],
    [
      'plants without names and tags',
      buildPage(['{"id":1,"tag":5,"nme":"F"}']),
      'URL answered 200 with no list of plants: [{"id":1,"tag":5,"nme":"F"}]',
    ],
    ['more than 8 MiB', buildJsonResponse(200, `[${' '.repeat(8_388_608)}]`), 'more than 8 MiB'],
    [
      'compressed plants',
      buildJsonResponse(200, `[${fern}]`, { 'Content-Encoding': 'br' }),
      'URL answered 200 with a compressed body (br)',
    ],
    [
      'plants that are not UTF-8',
      buildResponse(200, Buffer.from(`[${fern.replace('e', '\xe4')}]`, 'latin1'), {
        'Content-Type': 'application/json',
      }),
      'URL answered 200 with a body that is not UTF-8',
    ],
    [
      'less than was announced',
      (socket) => void socket.end(buildPage([fern]).toString().replace('h: 24', 'h: 34')),
      'URL did not answer: its response (200) was cut short after 24 of 34 bytes',
    ],
  ])('for a list is rejected: %s', async (_, answer, message) => {
    const { code, last } = await runCommandAt(
      'list --limit 1000',
      { 'GET /plants': [answer] },
      { now: createCountingClock(600_000) },
    )
    expect({ code, last }).toMatchObject({ code: 4, last: { message: expectText(message) } })
  })

  test('for a list is accepted up to 8 MiB', async () => {
    const answer = buildJsonResponse(200, `[${fern}]`.padEnd(8_388_608))
    const { code, out } = await runCommandAt('list', { 'GET /plants': [answer] })
    expect({ code, out }).toEqual({ code: 0, out: `${fern}\n` })
  })

  test('with the tag null has no tag', async () => {
    const none = '{"id":1,"name":"Fern","tag":null}'
    const answers = {
      'GET /plants/1': [buildJsonResponse(200, none)],
      'PATCH /plants/1': [buildJsonResponse(200, none)],
    }
    const results = [
      await runCommandAt('get 1', answers),
      await runCommandAt('update 1 --no-tag', answers),
    ]
    const found = { code: 0, out: `${fern}\n` }
    expect([...results, await list(buildPage([none]), 'export')]).toMatchObject([
      found,
      found,
      found,
    ])
  })
})

describe('a service that ignores a parameter of a list', () => {
  const pages = [
    buildPage(['{"id":1,"name":"Fern"}'], 'plants?after=1'),
    buildPage(['{"id":2,"name":"Moss","tag":"sun"}']),
  ]

  test.each([
    { parameter: 'search', line: 'delete --search fern --yes' },
    { parameter: 'noTag', line: 'delete --no-tag --yes' },
    { parameter: 'search', line: 'list --search fern' },
    { parameter: 'search', line: 'count --search fern' },
    { parameter: 'search', line: 'count --by tag --search fern' },
    { parameter: 'search', line: 'export --search fern' },
  ])('($parameter) ends plants $line after reading, and nothing is changed', async (row) => {
    const count = buildJsonResponse(404, { error: 404, message: 'No such operation' })
    const answers = { 'GET /plants/count': [count], 'GET /plants': [...pages] }
    const { code, last, requests } = await runCommandAt(row.line, answers)
    const message = `URL ignores the parameter ${row.parameter}: it answered plant 2`
    expect({ code, last }).toMatchObject({ code: 4, last: { message } })
    expect(requests.filter((request) => !request.startsWith('GET /plants'))).toEqual([])
  })

  test.each([
    { parameter: 'tag', line: 'delete --tag sun --yes' },
    { parameter: 'after', line: 'list --after 1' },
    { parameter: 'after', line: 'list --desc --after 1' },
  ])('($parameter) ends plants $line at its first plant', async ({ parameter, line }) => {
    const { code, out, last } = await list(pages, line)
    const message = `URL ignores the parameter ${parameter}: it answered plant 1`
    expect({ code, out, last }).toMatchObject({ code: 4, out: '', last: { message } })
  })

  test.each(['create --id next --name Ivy', 'list --desc --limit 1'])(
    '(order) ends plants %s, also if each of its pages has one plant',
    async (line) => {
      const answers = { 'GET /plants': [...pages] }
      const posts = [conflict]
      const { code, out, last, requests } = await runCommandAt(line, answers, { posts })
      const message = 'URL ignores the order of a list: it answered plant 2 after plant 1'
      expect({ code, out, last }).toMatchObject({ code: 4, out: '', last: { message } })
      expect(requests).toEqual(['GET /plants?limit=2&order=desc', 'GET /plants?after=1'])
    },
  )

  test('(limit) may answer all of its plants at once', async () => {
    const plants = Array.from({ length: 150_000 }, (_, id) => `{"id":${id},"name":"F"}`)
    const { code, requests } = await list(buildPage(plants), 'delete --search f --yes')
    expect(code).toBe(1) // it does not offer to delete
    expect(requests.slice(0, 2)).toEqual(['GET /plants?limit=1000&search=f', 'DELETE /plants/0'])
  })
})

test('a list at a service is searched by the same rules as a store', async () => {
  const plants = ['"name":"ROSÉ"', '"name":"Tea","tag":"Rosenstraße"', '"name":"prose"']
  const page = buildPage(plants.map((fields, id) => `{"id":${id},${fields}}`))
  const { code, out } = await list(page, 'list --search rosE')
  expect([code, out.split('\n').length]).toEqual([0, 4])
})

test('a get of several plants reports each failure, and prints the other plants', async () => {
  const broken = buildJsonResponse(400, { error: 400, message: 'Broken row' })
  const answers = {
    ...{ 'GET /plants/1': [buildJsonResponse(200, fern)], 'GET /plants/2': [broken] },
    ...{ 'GET /plants/3': [denied], 'GET /plants/4': [missing] },
  }
  const { code, out, lines } = await runCommandAt('get 1 2 3 4', answers)
  expect({ code, out }).toEqual({ code: 3, out: `${fern}\n` })
  expect(lines).toMatchObject([
    { error: 400, message: 'Plant 2: Broken row', status: 400 },
    { error: 403, message: 'Plant 3: URL answered 403: Not allowed', status: 403 },
    { error: 404, message: 'No plant has id 4 in URL' },
  ])
  const same = { 'GET /plants/1': [denied], 'GET /plants/2': [denied] }
  const all = await runCommandAt('get 1 2', same)
  expect([all.code, all.out]).toEqual([3, ''])
  expect(all.lines).toMatchObject([{ error: 403, message: 'URL answered 403: Not allowed' }])
})
