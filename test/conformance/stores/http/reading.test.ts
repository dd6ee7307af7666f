import { describe, expect, test } from 'vitest'
import { type Answer, Hostile, http, json } from '../../../helpers/hostile.js'
import { linesOf, token } from '../../../helpers/http-store.js'
import { type RunOptions, runPlants, withUsual } from '../../../helpers/run.js'
import { countingClock, settableTime } from '../../../helpers/time.js'
import { printed } from '../../../helpers/world.js'

const item = { get: {}, patch: {}, delete: {} }
/** The description of a service that has all operations, and calls the parameter as it likes. */
const openapi = json(200, {
  paths: { '/plants': { get: {}, post: {} }, '/plants/{plantId}': item },
})
const fern = '{"id":1,"name":"Fern"}'
const moss = '{"id":2,"name":"Moss"}'
const missing = json(404, { error: 404, message: 'No plant has id 1' })
const denied = json(403, { error: 403, message: 'Not allowed' })
const lose: Answer = (socket) => void socket.resetAndDestroy()
const page = (plants: string[], next?: string) =>
  json(200, `[${plants.join()}]`, next === undefined ? {} : { Link: `<${next}>; rel="next"` })
interface ServiceWorld extends Pick<RunOptions, 'stdin' | 'now'> {
  description?: Answer
  base?: string
}

/** Runs a command at a service with these answers. `last` is the last message, `asked` what was asked after that. */
async function runAt(
  line: string,
  others: Record<string, Answer[]>,
  { description = openapi, base = '', ...world }: ServiceWorld = {},
) {
  const service = await Hostile.listen({ openapi: description, others })
  const usual = { '--timeout': '1h', '--store': `${service.url}${base}`, '--output': 'ndjson' }
  const argv = withUsual(usual, line.split(' '))
  const { code, out, err } = await runPlants(argv, { env: { PLANTS_TOKEN: token }, ...world })
  const lines = linesOf(err, service) as Record<string, unknown>[]
  const { message, hint } = lines.at(-1) ?? {}
  return { code, out, lines, last: message, hint, service, asked: service.lines }
}

const list = (answers: Answer | Answer[], line = 'list', world?: ServiceWorld) =>
  runAt(line, { 'GET /plants': [answers].flat() }, world)

describe('a service that can be read', () => {
  test('is not compared where its token may not read', async () => {
    const stdin = '{"id":1,"name":"Fern","tag":"wet"}\n'
    const { out, lines } = await runAt('import --dry-run', { 'GET /plants/0': [denied] }, { stdin })
    const unread = { warning: 'Only the input is checked, not which ids exist at URL' }
    expect([JSON.parse(out), lines]).toEqual([
      expect.objectContaining({ dryRun: true, created: 1 }),
      [unread],
    ])
  })

  test('lists plants page by page, as its links lead, up to the limit', async () => {
    const [one = '', two = '', three = '', four = ''] = [1, 2, 3, 4].map(
      (id) => `{"id":${id},"name":"F","tag":"a&b"}`,
    )
    const pages = [
      page([one], 'plants?after=1&x=%20'),
      page([two], '/plants?after=2'),
      page([three, four]),
    ]
    const { out, asked } = await list(pages, 'list --limit 3 --tag a&b')
    expect(out).toBe(`${one}\n${two}\n${three}\n`)
    const queries = ['limit=3&tag=a%26b', 'after=1&x=%20', 'after=2']
    expect(asked).toEqual(queries.map((query) => `GET /plants?${query}`))
  })

  test.each([
    ['list --limit 1', 'GET /plants', 405],
    ['delete 1 --yes', 'DELETE /plants/1', 404],
  ])('is asked, and says then that it does not offer this: %s', async (line, request, status) => {
    const { code, lines } = await runAt(line, { [request]: [http(status)] })
    const message = `URL answered ${status} with nothing`
    const hint = `This service does not offer this, or the address is wrong: it is the base URL, the part before /plants`
    expect({ code, lines }).toEqual({ code: 1, lines: [{ error: status, message, hint, status }] })
  })

  const desc = 'GET /plants?limit=2&order=desc'

  test.each<[string, string[], number]>([
    ['two plants that descend', [moss, fern], 0],
    ['its only plant', [moss], 0],
    ['plants that ascend', [fern, moss], 4],
  ])('proposes the id after its greatest: %s', async (_, plants, code) => {
    const posts = [json(200, '{"name":"Ivy"}')]
    const service = await Hostile.listen({
      openapi,
      posts,
      others: { 'GET /plants': [page(plants)] },
    })
    const argv = ['create', '--id', 'next', '--name', 'Ivy', '--store', service.url]
    const result = await runPlants(argv, { env: { PLANTS_TOKEN: token } })
    const hint = 'Is it a Plant Store?'
    const err = `plants: ${service.url} answered plant 2 after plant 1\n  ${hint}\n`
    expect(result).toEqual(code === 0 ? printed('{"id":3,"name":"Ivy"}\n') : { code, out: '', err })
    expect(service.lines.filter((line) => line.startsWith('GET'))).toEqual([desc])
  })
})

describe('an answer to a request that reads', () => {
  const rounded = '{"id":1.0000000000000000001,"name":"F"}'

  test.each<[string, Answer, number, string]>([
    ['404 without an Error', http(404), 1, 'URL answered 404 with nothing'],
    [
      'another plant',
      json(200, moss),
      4,
      `URL answered 200 with no StoredPlant with id 1: ${moss}`,
    ],
    [
      'a web page',
      http(200, '<h1>Hi</h1>', { 'Content-Type': 'text/html' }),
      4,
      'URL answered 200 with text/html, not application/json: <h1>Hi</h1>',
    ],
    ['a reset', lose, 4, 'URL received the request, but did not answer: the connection was closed'],
  ])('of one plant is rejected: %s', async (_, answer, code, message) => {
    const now = countingClock(600_000)
    expect(await runAt('get 1', { 'GET /plants/1': [answer] }, { now })).toMatchObject({
      code,
      out: '',
      last: message,
    })
  })

  test.each<[string, Answer, string]>([
    ['the same page again', page([fern, moss], 'plants?after=2'), 'plant 1 after plant 2'],
    [
      'an empty page in the middle',
      page([], 'plants?after=2'),
      'an empty page with a link to the next one',
    ],
    ['a link to nowhere', page([fern], 'http://['), 'plant 1 after plant 1'],
    ['a rounded id', page([rounded]), `200 with no list of plants: [${rounded}]`],
    ['more than 16 MiB', json(200, `[${' '.repeat(16_777_216)}]`), '200 with more than 16 MiB'],
  ])('of a list is rejected: %s', async (_, answer, message) => {
    expect(await list(answer, 'list --limit 1000')).toMatchObject({
      code: 4,
      last: `URL answered ${message}`,
    })
  })

  test('has the next page at its own address, whatever its link says', async () => {
    const { code, out, asked } = await list(
      [page([fern], 'http://a.example/x?after=1'), page([moss])],
      'list --limit 9',
    )
    const lines = ['GET /plants?limit=9', 'GET /plants?after=1']
    expect({ code, out, asked }).toEqual({ code: 0, out: `${fern}\n${moss}\n`, asked: lines })
  })

  test('is checked against --no-tag, which the service may not know', async () => {
    const unknown = json(400, { error: 400, message: 'There is no parameter "noTag"' })
    const { last } = await list(
      [page(['{"id":1,"name":"Fern","tag":"a"}'])],
      'list --no-tag --limit 10',
    )
    expect(last).toBe('URL answered plant 1, which has another tag')
    expect((await list(unknown, 'list --no-tag --limit 10')).last).toBe(
      'There is no parameter "noTag"',
    )
  })

  test('is listed up to the limit, whatever limit the service keeps', async () => {
    const plants = [fern, moss, '{"id":3,"name":"Ivy"}']
    const { code, out, lines } = await list(page(plants, '?after=3'), 'list --limit 2')
    expect({ code, out, lines }).toEqual({ code: 0, out: `${fern}\n${moss}\n`, lines: [] })
  })

  test('is exported page by page', async () => {
    const { code, out } = await list([page([fern], '?after=1'), page([moss])], 'export')
    expect({ code, out }).toEqual({ code: 0, out: `${fern}\n${moss}\n` })
  })
})

test('null is no tag in an answer', async () => {
  const none = '{"id":1,"name":"Fern","tag":null}'
  const answers = { 'GET /plants/1': [json(200, none)], 'PATCH /plants/1': [json(200, none)] }
  for (const line of ['get 1', 'update 1 --no-tag'])
    expect(await runAt(line, answers)).toMatchObject({ code: 0, out: `${fern}\n` })
  expect(await list(page([none]), 'export')).toMatchObject({
    code: 0,
    out: `${fern}\n`,
  })
})

describe('an update', () => {
  const renamed = '{"id":1,"name":"Moss","tag":"a"}'

  test('is one request, which names what changes', async () => {
    const { code, out, service } = await runAt('update 1 --name Moss --no-tag', {
      'PATCH /plants/1': [json(200, fern)],
    })
    expect({ code, out }).toEqual({ code: 0, out: `${fern}\n` })
    const sent = service.requests.map(({ line, body }) => `${line} ${body}`)
    expect(sent).toEqual(['PATCH /plants/1 {"name":"Moss","tag":null}'])
  })

  test('is sent again when its answer was lost', async () => {
    const answers = { 'PATCH /plants/1': [lose, json(200, renamed)] }
    expect(await runAt('update 1 --name Moss', answers)).toMatchObject({
      code: 0,
      out: `${renamed}\n`,
    })
  })
})

const lost = 'URL received the request, but did not answer: the connection was closed'

test.each<[string, Answer[], string]>([
  ['lost', [lose], lost],
  [
    'lost, and then the plant is locked',
    [lose, json(409, { error: 409, message: 'Locked' })],
    lost,
  ],
  ['lost, and then the plant is gone', [lose, missing], lost],
  [
    'about another plant',
    [json(200, moss)],
    `URL answered 200 with no StoredPlant with id 1: ${moss}`,
  ],
])('a change is unknown when its answer is %s', async (_, answers, last) => {
  const operations = () => ({ 'PATCH /plants/1': [...answers], 'DELETE /plants/1': [...answers] })
  const hint = 'Whether plant 1 was changed is unknown. Look at it with: plants get 1 --store URL'
  for (const line of ['update 1 --name Fern', 'delete 1 --yes'])
    expect({
      line,
      ...(await runAt(line, operations(), { now: countingClock(600_000) })),
    }).toMatchObject({
      ...{ line, code: 5, out: '', last, hint: expect.stringContaining(hint) },
    })
})

test('an answer about another plant ends an import', async () => {
  const others = { 'PATCH /plants/1': [json(200, moss)] }
  const service = await Hostile.listen({
    openapi,
    posts: [json(400, { error: 409, message: 'Exists' })],
    others,
  })
  const argv = ['import', '--if-exists', 'update', '--store', service.url, '--output', 'ndjson']
  const { code, out, err } = await runPlants(argv, {
    env: { PLANTS_TOKEN: token },
    stdin: `${fern}\n`,
  })
  const message = `URL answered 200 with no StoredPlant with id 1: ${moss}`
  expect({ code, out }).toEqual({ code: 5, out: '' })
  expect(linesOf(err, service)).toMatchObject([{ error: 502, message, status: 200 }])
})

test('several deletes report each failure, and end with the worst code', async () => {
  const time = settableTime()
  const failing = json(500, { error: 500, message: 'Oh' })
  const last: Answer = (socket) => {
    time.pass()
    socket.write(failing)
  }
  const answers = {
    ...{ 1: missing, 3: json(200, '{"id":3,"name":"Ivy"}') },
    ...{ 4: [failing, last], 6: json(400, { error: 400, message: 'No' }) },
  }
  const deletes = Object.entries(answers).map(([id, answer]) => [
    `DELETE /plants/${id}`,
    [answer].flat(),
  ])
  const { code, out, lines, asked } = await runAt(
    'delete 1 3 4 6 --yes',
    Object.fromEntries(deletes),
    time,
  )
  expect({ code, out }).toEqual({ code: 5, out: '{"id":3,"name":"Ivy"}\n' })
  expect(lines.map(({ message, warning = message }) => warning)).toEqual([
    expect.stringMatching(/^URL answered 500: Oh\. Trying again for up to /),
    ...['No plant has id 1 in URL', 'URL answered 500: Oh', 'No'],
  ])
  expect(asked).not.toContain('GET /openapi.json')
})

test('a right that is missing ends with 3 what several deletes had in flight', async () => {
  const answers = { 'DELETE /plants/1': [denied], 'DELETE /plants/2': [denied] }
  const { code, out, lines } = await runAt('delete 1 2 --yes', answers)
  expect({ code, out }).toEqual({ code: 3, out: '' })
  const refused = { error: 403, message: 'Not allowed' }
  expect(lines).toMatchObject([refused, refused])
})

test('several reads report each failure, and show the other plants', async () => {
  const broken = json(400, { error: 400, message: 'Broken row' })
  const answers = {
    ...{ 'GET /plants/1': [json(200, fern)], 'GET /plants/2': [broken] },
    ...{ 'GET /plants/3': [denied], 'GET /plants/4': [missing] },
  }
  const { code, out, lines } = await runAt('get 1 2 3 4', answers)
  expect({ code, out }).toEqual({ code: 3, out: `${fern}\n` })
  expect(lines).toMatchObject([
    { error: 400, message: 'Plant 2: Broken row', status: 400 },
    { error: 403, message: 'Plant 3: Not allowed', status: 403 },
    { error: 404, message: 'No plant has id 4 in URL' },
  ])
  const same = { 'GET /plants/1': [denied], 'GET /plants/2': [denied] }
  const all = await runAt('get 1 2', same)
  expect([all.code, all.out]).toEqual([3, ''])
  expect(all.lines).toMatchObject([{ error: 403, message: 'Not allowed' }])
})
