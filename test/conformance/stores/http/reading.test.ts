import { describe, expect, test } from 'vitest'
import { run } from '../../../../src/cli/program/run.js'
import { type Answer, Hostile, http, json } from '../../../helpers/hostile.js'
import { linesOf, token } from '../../../helpers/http-store.js'
import { Captured, ioOf, type RunOptions, runPlants, withUsual } from '../../../helpers/run.js'
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
const isRight = 'Is the address right? It is the base URL: the part before /plants'
const denied = json(403, { error: 403, message: 'Not allowed' })
const lose: Answer = (socket) => void socket.resetAndDestroy()
const page = (plants: string[], next?: string) =>
  json(200, `[${plants.join()}]`, next === undefined ? {} : { Link: `<${next}>; rel="next"` })
const type = 'application/x-ndjson'
const ndjson = (body: string | Buffer, headers = {}) =>
  http(200, body, { 'Content-Type': type, ...headers })
const chunked = (...chunks: string[]) =>
  ndjson(
    chunks.map((chunk) => `${Buffer.byteLength(chunk).toString(16)}\r\n${chunk}\r\n`).join(''),
    {
      'Transfer-Encoding': 'chunked',
    },
  )
const head = (fields: string) => `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\n${fields}\r\n`
const streamHead = head('Transfer-Encoding: chunked\r\n')

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
  const dry = (id: number, rest: string) => `{"dryRun":true,"id":${id},${rest}}`
  const after = '"after":{"name":"Fern","tag":"wet"}'
  test('is compared with the input of a dry run', async () => {
    const change = dry(1, `"before":{"name":"Fern","tag":"dry"},${after}`)
    const stored = {
      'GET /plants/1': [json(200, '{"id":1,"name":"Fern","tag":"dry"}')],
      'GET /plants/2': [missing],
    }
    const stdin = '{"id":1,"name":"Fern","tag":"wet"}\n{"id":2,"name":"Moss"}\n'
    const line = 'import --if-exists update --dry-run'
    const { code, out, lines, asked } = await runAt(
      line,
      { 'GET /plants/0': [missing], ...stored },
      { stdin },
    )
    const [one, two, summary = ''] = out.split('\n')
    expect([one, two]).toEqual([change, dry(2, '"after":{"name":"Moss"}')])
    expect([code, JSON.parse(summary), lines]).toMatchObject([0, { updated: 1 }, []])
    expect(asked.toSorted()).toEqual([
      'GET /openapi.json',
      ...['0', '1', '2'].map((id) => `GET /plants/${id}`),
    ])
  })

  test('is not compared where its token may not read', async () => {
    const stdin = '{"id":1,"name":"Fern","tag":"wet"}\n'
    const { out, lines } = await runAt('import --dry-run', { 'GET /plants/0': [denied] }, { stdin })
    const unread = { warning: 'Only the input is checked, not which ids exist at URL' }
    expect([out.split('\n')[0], lines]).toEqual([dry(1, after), [unread]])
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

  test('is exported as a stream, however it is cut', async () => {
    const answer = chunked('{"id":1,"na', 'me":"F,\u00e9"}\n{"id":2,"name":"","tag":"x"}', '\n', '')
    const { code, out, service } = await list(answer, 'export --output csv')
    expect({ code, out }).toEqual({ code: 0, out: 'id,name,tag\n1,"F,\u00e9",\n2,"",x\n' })
    expect(service.requests.at(-1)?.headers['accept']).toBe(type)
  })

  const paths = { '/plants': { post: {} }, '/plants/{id}': { get: {} } }

  test.each([
    ['list --limit 1', 'GET /plants', 405],
    ['delete 1 --yes', 'DELETE /plants/{id}', 404],
  ])(
    'is asked, and tells then that it does not offer this: %s',
    async (line, operation, status) => {
      const request = operation.replace('{id}', '1')
      const answers = { [request]: [http(status)] }
      const { code, lines, asked } = await runAt(line, answers, {
        description: json(200, { paths }),
      })
      const message = `This service does not offer this: its openapi.json lists no ${operation}`
      const hint =
        'Run the command on the host of the service, or select another store with --store'
      expect({ code, lines }).toEqual({ code: 2, lines: [{ error: 400, message, hint }] })
      expect(asked.map((one) => one.replace('?limit=1', ''))).toEqual([
        request,
        'GET /openapi.json',
      ])
    },
  )

  test('needs no description', async () => {
    const answers = {
      'GET /plants/1': [missing, json(200, fern)],
      'PATCH /plants/1': [json(200, fern)],
    }
    const description = http(401)
    const { code: failed, lines, last } = await runAt('get 1', answers, { description })
    const warning = { warning: `URL has no openapi.json. ${isRight}` }
    expect([failed, lines.slice(0, -1), last]).toEqual([1, [warning], 'No plant has id 1 in URL'])
    const { code, out, asked } = await runAt('update 1 --name Fern', answers, { description })
    expect({ code, out, asked }).toEqual({ code: 0, out: `${fern}\n`, asked: ['PATCH /plants/1'] })
    expect(
      await runAt(
        'list',
        { 'GET /v1/plants/plants': [http(404)] },
        { base: '/v1/plants/', description },
      ),
    ).toMatchObject({ code: 1, hint: isRight })
  })

  test.each([
    'list',
    'count',
    'export',
    'create --id next --name Fern',
    'get 1',
    'update 1 --tag x',
    'delete 1 --yes',
  ])('is asked at its base URL, not at its plants: %s', async (line) => {
    const unlike = json(400, { error: 400, message: 'There is no parameter "limit"' })
    const [lists, at] = ['/v1/plants/plants', '/v1/plants/plants/1']
    const answers = {
      [`GET ${lists}`]: [unlike],
      [`GET ${at}`]: [missing],
      [`PATCH ${at}`]: [missing],
    }
    const wrong = { base: '/v1/plants', description: http(404) }
    const { code, lines, last, hint } = await runAt(
      line,
      { ...answers, [`DELETE ${at}`]: [missing] },
      wrong,
    )
    expect({ code, hint }).toEqual({ code: 1, hint: isRight })
    const isOfOne = line.includes(' 1')
    const answered = 'URL/v1/plants answered 400: There is no parameter "limit"'
    expect(last).toBe(isOfOne ? 'No plant has id 1 in URL/v1/plants' : answered)
    expect(lines.slice(0, -1)).toEqual(
      isOfOne ? [{ warning: 'URL/v1/plants has no openapi.json' }] : [],
    )
    const own = { 'GET /v1/plants/plants': [unlike] }
    expect(await runAt('list', own, { base: '/v1/plants' })).toMatchObject({
      hint: 'This message is from URL/v1/plants',
    })
  })

  const desc = 'GET /plants?limit=2&order=desc'
  const above = 'GET /plants?limit=1&after=1'

  test.each<[string, string[][], string[], number]>([
    ['two plants that descend', [[moss, fern]], [desc], 0],
    ['its only plant', [[moss], []], [desc, above.replace('1&after=1', '1&after=2')], 0],
    ['plants that ascend', [[fern, moss]], [desc], 2],
    ['one of several', [[fern], [moss], [fern]], [desc, above, desc], 2],
    ['one before another is created', [[fern], [moss], [moss, fern]], [desc, above, desc], 0],
  ])('proposes the id after its greatest: %s', async (_, lists, asked, code) => {
    const posts = [json(200, '{"name":"Ivy"}')]
    const service = await Hostile.listen({
      openapi,
      posts,
      others: { 'GET /plants': lists.map((list) => page(list)) },
    })
    const argv = ['create', '--id', 'next', '--name', 'Ivy', '--store', service.url]
    const result = await runPlants(argv, { env: { PLANTS_TOKEN: token } })
    const hint = 'Give a number instead of next, or leave out --desc'
    const err = `plants: ${service.url} cannot list plants in descending order\n  ${hint}\n`
    expect(result).toEqual(code === 0 ? printed('{"id":3,"name":"Ivy"}\n') : { code, out: '', err })
    expect(service.lines.filter((line) => line.startsWith('GET'))).toEqual(asked)
  })
})

describe('an answer to a request that reads', () => {
  const rounded = '{"id":1.0000000000000000001,"name":"F"}'

  test.each<[string, Answer, number, string]>([
    ['404 without an Error', http(404), 1, 'URL answered 404 with nothing'],
    [
      'another plant',
      json(200, moss),
      5,
      `URL answered 200 with no StoredPlant with id 1: ${moss}`,
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
      code: 5,
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
    expect(last).toBe('URL answered plant 1, which has a tag')
    expect((await list(unknown, 'list --no-tag --limit 10')).last).toBe(
      'There is no parameter "noTag"',
    )
  })

  test('is listed up to the limit, whatever limit the service keeps', async () => {
    const plants = [fern, moss, '{"id":3,"name":"Ivy"}']
    const { code, out, lines } = await list(page(plants, '?after=3'), 'list --limit 2')
    expect({ code, out, lines }).toEqual({ code: 0, out: `${fern}\n${moss}\n`, lines: [] })
  })

  test('is counted by texts up to a limit', async () => {
    const long = Buffer.alloc(14_000_000, 'x')
    const stream: Answer = (socket) => {
      socket.write(streamHead)
      for (let id = 0; id < 15; id += 1) {
        const start = `{"id":${id},"name":"${id}`
        socket.write(`${(start.length + long.length + 3).toString(16)}\r\n${start}`)
        socket.write(long)
        socket.write('"}\n\r\n')
      }
      socket.write('0\r\n\r\n')
    }
    const last = 'The plants of URL have too many different texts as their name to count them here'
    expect(await list(stream, 'count --by name')).toMatchObject({ code: 2, out: '', last })
  })

  const endless: Answer = (socket) => {
    socket.write(streamHead)
    const more = () => {
      while (socket.write(`100000\r\n${'x'.repeat(1_048_576)}\r\n`));
    }
    socket.on('drain', more)
    more()
  }
  const unmarked = 'a stream that is compressed or does not mark its end'

  test.each<[string, Answer, string]>([
    ['a line without an end', endless, 'a line that is too long'],
    ['ids out of order', chunked(`${moss}\n${fern}\n`, ''), 'plant 1 after plant 2'],
    ['an empty line', chunked(`${fern}\n\n`, ''), 'a line that is not a plant'],
    [
      'other bytes',
      ndjson(Buffer.from('{"id":1,"name":"\xff"}\n', 'latin1')),
      'a stream that is not UTF-8',
    ],
    [
      'half a line at its end',
      chunked(`${fern}\n{"id"`, ''),
      'a stream that ends in the middle of a line',
    ],
    ['a content coding', ndjson(fern, { 'Content-Encoding': 'gzip' }), unmarked],
    ['no length', head(''), unmarked],
  ])('of a stream is rejected: %s', async (_, answer, message) => {
    expect(await list(answer, 'export')).toMatchObject({ code: 5, last: `URL answered ${message}` })
  })

  const incomplete = (message: string) => {
    const error = {
      error: 503,
      message,
      hint: 'The output is incomplete. Try again',
      retryable: true,
    }
    return { code: 4, lines: [error] }
  }

  test('has to end in time, though a byte comes now and then', async () => {
    const time = settableTime()
    let timer: NodeJS.Timeout | undefined
    const trickle: Answer = (socket) => {
      socket.write(streamHead)
      timer = setInterval(() => {
        socket.write('1\r\n \r\n')
        time.timeOut(600_000)
      }, 10)
    }
    const message = 'URL sent no complete plant before the timeout'
    const result = await list(trickle, 'export', time)
    clearInterval(timer)
    expect(result).toMatchObject(incomplete(message))
  })

  test('may take longer than the timeout if the reader of the output is slow', async () => {
    const time = settableTime()
    const piece = (line: string) => `${line.length.toString(16)}\r\n${line}\r\n`
    let sendRest = () => false
    const answer: Answer = (socket) => {
      socket.write(`${streamHead}${piece(`${fern}\n`)}`)
      sendRest = () => socket.write(`${piece(`${moss}\n`)}0\r\n\r\n`)
    }
    const service = await Hostile.listen({ others: { 'GET /plants': [answer] } })
    const written: string[] = []
    const write = async (text: string) => {
      if (written.push(text) > 1) return
      time.timeOut(7_200_000)
      sendRest()
    }
    const io = ioOf(
      { env: { PLANTS_TOKEN: token }, now: time.now },
      Object.assign(new Captured({}, 'stdout'), { write }),
    )
    const code = await run(['export', '--timeout', '1h', '--store', service.url], io)
    expect({ code, written }).toEqual({ code: 0, written: [`${fern}\n`, `${moss}\n`] })
  })

  test('is incomplete when its stream breaks off', async () => {
    const answer: Answer = (socket) => void socket.end(chunked(`${fern}\n`))
    expect(await list(answer, 'export')).toMatchObject(
      incomplete('URL ended its response too early'),
    )
  })
})

test('null is no tag in an answer', async () => {
  const none = '{"id":1,"name":"Fern","tag":null}'
  const answers = { 'GET /plants/1': [json(200, none)], 'PATCH /plants/1': [json(200, none)] }
  for (const line of ['get 1', 'update 1 --no-tag'])
    expect(await runAt(line, answers)).toMatchObject({ code: 0, out: `${fern}\n` })
  expect(await list(chunked(`${none}\n`, ''), 'export')).toMatchObject({
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

  test('that the service has not made is told of', async () => {
    const { code, lines } = await runAt('update 1 --no-tag', {
      'PATCH /plants/1': [json(200, renamed)],
    })
    const instead = '{"name":"Moss","tag":"a"} instead of {"name":"Moss"} for plant 1'
    const warning = `The store returns plants that differ from those that were sent, such as ${instead}`
    expect({ code, lines }).toMatchObject({ code: 0, lines: [{ warning }] })
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
      ...{ line, code: 5, out: '', last, hint },
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
    ...{ 1: missing, 2: denied, 3: json(200, '{"id":3,"name":"Ivy"}') },
    ...{ 4: [failing, last], 5: denied, 6: json(400, { error: 400, message: 'No' }) },
  }
  const deletes = Object.entries(answers).map(([id, answer]) => [
    `DELETE /plants/${id}`,
    [answer].flat(),
  ])
  const { code, out, lines, asked } = await runAt(
    'delete 1 2 3 4 5 6 --yes',
    Object.fromEntries(deletes),
    time,
  )
  expect({ code, out }).toEqual({ code: 5, out: '{"id":3,"name":"Ivy"}\n' })
  expect(lines.map(({ message, warning = message }) => warning)).toEqual([
    expect.stringMatching(/^URL answered 500: Oh\. Trying again for up to /),
    ...['No plant has id 1 in URL', 'Not allowed', 'Not allowed', 'No', 'URL answered 500: Oh'],
  ])
  expect(asked.filter((line) => line === 'GET /openapi.json')).toHaveLength(1)
})
