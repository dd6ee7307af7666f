import { describe, expect, test } from 'vitest'
import { type Answer, Hostile, http, json } from '../../../helpers/hostile.js'
import { linesOf, token } from '../../../helpers/remote.js'
import { runPlants, withUsual } from '../../../helpers/run.js'

const item = { get: {}, patch: {}, delete: {} }
/** The description of a service that has all operations, and calls the parameter as it likes. */
const openapi = json(200, { paths: { '/plants': { get: {}, post: {} }, '/plants/{plantId}': item } })
const fern = '{"id":1,"name":"Fern"}'
const moss = '{"id":2,"name":"Moss"}'
const missing = json(404, { error: 404, message: 'No plant has id 1' })
const denied = json(403, { error: 403, message: 'Not allowed' })
const lose: Answer = (socket) => void socket.resetAndDestroy()
const page = (plants: string[], next?: string) =>
  json(200, `[${plants.join()}]`, next === undefined ? {} : { Link: `<${next}>; rel="next"` })
const type = 'application/x-ndjson'
const ndjson = (body: string | Buffer, headers = {}) => http(200, body, { 'Content-Type': type, ...headers })
const chunked = (...chunks: string[]) =>
  ndjson(chunks.map((chunk) => `${Buffer.byteLength(chunk).toString(16)}\r\n${chunk}\r\n`).join(''), {
    'Transfer-Encoding': 'chunked',
  })
const head = (fields: string) => `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\n${fields}\r\n`
const streamHead = head('Transfer-Encoding: chunked\r\n')

/** Runs a command at a service with these answers. `last` is the last message, `asked` what was asked after that. */
async function runAt(
  line: string,
  others: Record<string, Answer[]>,
  { description = openapi, base = '', ...world }: { description?: Answer; base?: string; stdin?: string } = {},
) {
  const remote = await Hostile.listen({ openapi: description, others })
  const usual = { '--timeout': '2s', '--store': `${remote.url}${base}`, '--output': 'ndjson' }
  const argv = withUsual(usual, line.split(' '))
  const { code, out, err } = await runPlants(argv, { env: { PLANTS_TOKEN: token }, ...world })
  const lines = linesOf(err, remote) as Record<string, unknown>[]
  const { message, hint } = lines.at(-1) ?? {}
  return { code, out, lines, last: message, hint, remote, asked: remote.lines }
}

const list = (answers: Answer | Answer[], line = 'list') => runAt(line, { 'GET /plants': [answers].flat() })

describe('a service that can be read', () => {
  const dry = (id: number, rest: string) => `{"dryRun":true,"id":${id},${rest}}`
  const after = '"after":{"name":"Fern","tag":"wet"}'
  const unread = { warning: 'Only the input is checked, not which ids exist at URL' }

  test.each([
    ['read', missing, dry(1, `"before":{"name":"Fern","tag":"dry"},${after}`), { updated: 1 }, []],
    ['not read', denied, dry(1, after), { updated: 0 }, [unread]],
    ['not read', json(403, { error: 1001, message: 'No' }), dry(1, after), { updated: 0 }, [unread]],
  ])('is compared with the input of a dry run: its token may %s', async (may, first, change, counts, warnings) => {
    const stored = { 'GET /plants/1': [json(200, '{"id":1,"name":"Fern","tag":"dry"}')], 'GET /plants/2': [missing] }
    const stdin = '{"id":1,"name":"Fern","tag":"wet"}\n{"id":2,"name":"Moss"}\n'
    const line = 'import --if-exists update --dry-run'
    const { code, out, lines, asked } = await runAt(line, { 'GET /plants/0': [first], ...stored }, { stdin })
    const [one, two, summary = ''] = out.split('\n')
    expect([one, two]).toEqual([change, dry(2, '"after":{"name":"Moss"}')])
    expect([code, JSON.parse(summary), lines]).toMatchObject([0, counts, warnings])
    const others = ['GET /openapi.json', 'GET /plants/1', 'GET /plants/2']
    expect(asked.toSorted()).toEqual([...(may === 'read' ? others : []), 'GET /plants/0'].toSorted())
  })

  test('lists plants page by page, as its links lead, up to the limit', async () => {
    const [one = '', two = '', three = '', four = ''] = [1, 2, 3, 4].map((id) => `{"id":${id},"name":"F","tag":"a&b"}`)
    const pages = [page([one], 'plants?after=1&x=%20'), page([two], '/plants?after=2'), page([three, four])]
    const { out, asked } = await list(pages, 'list --limit 3 --tag a&b')
    expect(out).toBe(`${one}\n${two}\n${three}\n`)
    const queries = ['limit=3&tag=a%26b', 'after=1&x=%20', 'after=2']
    expect(asked).toEqual(queries.map((query) => `GET /plants?${query}`))
  })

  test('is exported as a stream, however it is cut', async () => {
    const answer = chunked('{"id":1,"na', 'me":"F,\u00e9"}\n{"id":2,"name":"","tag":"x"}', '\n', '')
    const { code, out, remote } = await list(answer, 'export --output csv')
    expect({ code, out }).toEqual({ code: 0, out: 'id,name,tag\n1,"F,\u00e9",\n2,"",x\n' })
    expect(remote.requests.at(-1)?.headers['accept']).toBe(type)
  })

  const creates = { '/plants': { post: {} } }
  const reads = { ...creates, '/plants/{id}': { get: {} } }

  test.each([
    ['list --limit 1', creates, 'GET /plants'],
    ['get 1', creates, 'GET /plants/{id}'],
    ['update 1 --name A', reads, 'PATCH /plants/{id}'],
    ['delete 1 --yes', reads, 'DELETE /plants/{id}'],
  ])('is asked, and tells then that it does not offer this: %s', async (line, paths, operation) => {
    const request = operation.replace('{id}', '1')
    const answers = { [request]: [http(line === 'list --limit 1' ? 405 : 404)] }
    const { code, lines, asked } = await runAt(line, answers, { description: json(200, { paths }) })
    const message = `This service does not offer this: its openapi.json lists no ${operation}`
    const hint = 'Run the command on the host of the service, or select another store with --store'
    expect({ code, lines }).toEqual({ code: 2, lines: [{ error: 400, message, hint }] })
    expect(asked.map((one) => one.replace('?limit=1', ''))).toEqual([request, 'GET /openapi.json'])
  })

  test('needs no description', async () => {
    const answers = { 'GET /plants/1': [missing, json(200, fern)], 'PATCH /plants/1': [json(200, fern)] }
    const description = http(401)
    expect(await runAt('get 1', answers, { description })).toMatchObject({ code: 1, last: 'No plant has id 1 in URL' })
    const { code, out, asked } = await runAt('update 1 --name Fern', answers, { description })
    expect({ code, out, asked }).toEqual({ code: 0, out: `${fern}\n`, asked: ['PATCH /plants/1'] })
    const hint = 'Is the address right? It is the base URL: the part before /plants'
    expect(
      await runAt('list', { 'GET /v1/plants/plants': [http(404)] }, { base: '/v1/plants/', description }),
    ).toMatchObject({ code: 1, hint })
  })

  const one = `[${fern}]`
  const two = `[${moss},${fern}]`
  const pair = ['limit=2&order=desc', 'limit=1&after=1']

  test.each<[string, string[], string[], number, string]>([
    ['two plants that descend', [two], ['limit=2&order=desc'], 0, '{"id":3,"name":"Ivy"}\n'],
    ['its only plant', [one, '[]'], pair, 0, '{"id":2,"name":"Ivy"}\n'],
    ['no plant', ['[]'], ['limit=2&order=desc'], 0, '{"id":1,"name":"Ivy"}\n'],
    ['plants that ascend', [`[${fern},${moss}]`], ['limit=2&order=desc'], 2, ''],
    ['one of several', [one, `[${moss}]`, one], [...pair, 'limit=2&order=desc'], 2, ''],
    [
      'one before another is created',
      [one, `[${moss}]`, two],
      [...pair, 'limit=2&order=desc'],
      0,
      '{"id":3,"name":"Ivy"}\n',
    ],
  ])('proposes the id after its greatest: %s', async (_, lists, queries, code, out) => {
    const remote = await Hostile.listen({
      openapi,
      posts: [json(200, '{"name":"Ivy"}')],
      others: { 'GET /plants': lists.map((body) => json(200, body)) },
    })
    const argv = ['create', '--id', 'next', '--name', 'Ivy', '--store', remote.url]
    const result = await runPlants(argv, { env: { PLANTS_TOKEN: token } })
    expect({ code: result.code, out: result.out }).toEqual({ code, out })
    expect(remote.lines.filter((line) => line.startsWith('GET'))).toEqual(queries.map((text) => `GET /plants?${text}`))
    const hint = 'Give a number instead of next, or leave out --desc'
    const err = `plants: ${remote.url} cannot list plants in descending order\n  ${hint}\n`
    expect(result.err).toBe(code === 2 ? err : '')
  })
})

describe('an answer to a request that reads', () => {
  const rounded = '{"id":1.0000000000000000001,"name":"F"}'

  test.each<[string, Answer, number, string]>([
    ['404 with an Error', missing, 1, 'No plant has id 1 in URL'],
    ['404 without an Error', http(404), 1, 'URL answered 404 with nothing'],
    ['another plant', json(200, moss), 5, `URL answered 200 with no StoredPlant with id 1: ${moss}`],
    [
      'a wrong id',
      json(200, '{"id":1.5,"name":"F"}'),
      5,
      'URL answered 200 with no StoredPlant with id 1: {"id":1.5,"name":"F"}',
    ],
    ['a reset', lose, 4, 'URL received the request, but did not answer: the connection was closed'],
  ])('of one plant is rejected: %s', async (_, answer, code, message) => {
    expect(await runAt('get 1', { 'GET /plants/1': [answer] })).toMatchObject({ code, out: '', last: message })
  })

  test.each<[string, Answer, string]>([
    ['the same page again', page([fern, moss], 'plants?after=2'), 'plant 1 after plant 2'],
    ['an empty page in the middle', page([], 'plants?after=2'), 'an empty page with a link to the next one'],
    ['a link to nowhere', page([fern], 'http://['), 'plant 1 after plant 1'],
    ['an object', json(200, fern), `200 with no list of plants: ${fern}`],
    ['a rounded id', page([rounded]), `200 with no list of plants: [${rounded}]`],
    ['more than 16 MiB', json(200, `[${' '.repeat(16_777_216)}]`), '200 with more than 16 MiB'],
  ])('of a list is rejected: %s', async (_, answer, message) => {
    expect(await list(answer, 'list --limit 1000')).toMatchObject({ code: 5, last: `URL answered ${message}` })
  })

  test.each(['http://a.example/plants?after=1', '/other/plants?after=1'])(
    'has the next page at its own address, whatever its link says: %s',
    async (link) => {
      const { code, out, asked } = await list([page([fern], link), page([moss])], 'list --limit 10')
      const lines = ['GET /plants?limit=10', 'GET /plants?after=1']
      expect({ code, out, asked }).toEqual({ code: 0, out: `${fern}\n${moss}\n`, asked: lines })
    },
  )

  test('is checked against --no-tag, which the service may not know', async () => {
    const unknown = json(400, { error: 400, message: 'There is no parameter "noTag"' })
    const { last } = await list([page(['{"id":1,"name":"Fern","tag":"a"}'])], 'list --no-tag --limit 10')
    expect(last).toBe('URL answered plant 1, which has a tag')
    expect((await list(unknown, 'list --no-tag --limit 10')).last).toBe('There is no parameter "noTag"')
  })

  test('is counted by texts up to a limit', async () => {
    const lines = Array.from({ length: 15 }, (_, id) => `{"id":${id},"name":"${id}${'x'.repeat(14_000_000)}"}\n`)
    const last = 'The plants of URL have too many different texts as their name to count them here'
    expect(await list(chunked(...lines, ''), 'count --by name')).toMatchObject({ code: 2, out: '', last })
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
    ['other bytes', ndjson(Buffer.from('{"id":1,"name":"\xff"}\n', 'latin1')), 'a stream that is not UTF-8'],
    ['half a line at its end', chunked(`${fern}\n{"id"`, ''), 'a stream that ends in the middle of a line'],
    ['a content coding', ndjson(fern, { 'Content-Encoding': 'gzip' }), unmarked],
    ['no length', head(''), unmarked],
    ['two transfer codings', ndjson(`${fern}\n`, { 'Transfer-Encoding': 'chunked, gzip' }), unmarked],
    ['another media type', page([fern]), `200 with no stream of plants: [${fern}]`],
  ])('of a stream is rejected: %s', async (_, answer, message) => {
    expect(await list(answer, 'export')).toMatchObject({ code: 5, last: `URL answered ${message}` })
  })

  const incomplete = (message: string) => {
    const error = { error: 503, message, hint: 'The output is incomplete. Try again', retryable: true }
    return { code: 4, lines: [error] }
  }

  test('has to end in time, though a byte comes now and then', async () => {
    const trickle: Answer = (socket) => {
      socket.write(streamHead)
      const timer = setInterval(() => socket.write('1\r\n \r\n'), 50)
      socket.once('close', () => clearInterval(timer))
    }
    const message = 'URL sent no complete plant before the timeout'
    expect(await list(trickle, 'export --timeout 500ms')).toMatchObject(incomplete(message))
  })

  test('is incomplete when its stream breaks off', async () => {
    const answer: Answer = (socket) => void socket.end(chunked(`${fern}\n`))
    expect(await list(answer, 'export')).toMatchObject(incomplete('URL ended its response too early'))
  })

  test('with a long line in small pieces costs little', async () => {
    const line = `${fern.slice(0, -1)}${' '.repeat(8_000_000)}}\n`
    const pieces: Answer = (socket) => {
      socket.setNoDelay(true)
      socket.write(head(`Content-Length: ${line.length}\r\n`))
      const write = (at: number) => {
        if (at < line.length) socket.write(line.slice(at, at + 400), () => setImmediate(write, at + 400))
      }
      write(0)
    }
    const start = process.cpuUsage()
    expect(await list(pieces, 'export --timeout 50s')).toMatchObject({ code: 0, out: `${fern}\n` })
    const { user, system } = process.cpuUsage(start) // not the time, which a loaded machine makes longer
    expect((user + system) / 1e6).toBeLessThan(6)
  })
})

test('null is no tag in an answer', async () => {
  const none = '{"id":1,"name":"Fern","tag":null}'
  const answers = { 'GET /plants/1': [json(200, none)], 'PATCH /plants/1': [json(200, none)] }
  for (const line of ['get 1', 'update 1 --no-tag'])
    expect(await runAt(line, answers)).toMatchObject({ code: 0, out: `${fern}\n` })
  expect(await list(page([none]))).toMatchObject({ code: 0, out: `${fern}\n` })
  expect(await list(chunked(`${none}\n`, ''), 'export')).toMatchObject({ code: 0, out: `${fern}\n` })
  const remote = await Hostile.listen({ posts: [json(200, '{"name":"Fern","tag":null}')] })
  const argv = ['create', '--id', '1', '--name', 'Fern', '--store', remote.url]
  const { code, out } = await runPlants(argv, { env: { PLANTS_TOKEN: token } })
  expect({ code, out }).toEqual({ code: 0, out: '{"name":"Fern"}\n' })
})

test('a description that cannot be read explains nothing', async () => {
  const { code, last } = await runAt(
    'get 1 --timeout 500ms',
    { 'GET /plants/1': [missing] },
    { description: http(500) },
  )
  expect({ code, last }).toEqual({ code: 1, last: 'No plant has id 1 in URL' })
})

describe('an update', () => {
  const renamed = '{"id":1,"name":"Moss","tag":"a"}'
  const unknown = { code: 5, hint: 'Whether plant 1 was changed is unknown. Look at it with: plants get 1 --store URL' }
  const unread = 'URL received the request, but did not answer: the connection was closed'

  test('is one request, which names what changes', async () => {
    const { code, out, remote } = await runAt('update 1 --name Moss', { 'PATCH /plants/1': [json(200, renamed)] })
    expect({ code, out }).toEqual({ code: 0, out: `${renamed}\n` })
    expect(remote.requests.map(({ line, body }) => [line, body])).toEqual([['PATCH /plants/1', '{"name":"Moss"}']])
    const removing = await runAt('update 1 --no-tag', { 'PATCH /plants/1': [json(200, fern)] })
    expect(removing.remote.requests.map(({ body }) => body)).toEqual(['{"tag":null}'])
  })

  test('that the service has not made is told of', async () => {
    const answers = { 'PATCH /plants/1': [json(200, '{"id":1,"name":"Old","tag":"a"}')] }
    const { code, lines } = await runAt('update 1 --name Moss --no-tag', answers)
    const instead = '{"name":"Old","tag":"a"} instead of {"name":"Moss"} for plant 1'
    const warning = `The store returns plants that differ from those that were sent, such as ${instead}`
    expect({ code, lines }).toMatchObject({ code: 0, lines: [{ warning }] })
  })

  test('is sent again when its answer was lost', async () => {
    const answers = { 'PATCH /plants/1': [lose, json(200, renamed)] }
    expect(await runAt('update 1 --name Moss', answers)).toMatchObject({ code: 0, out: `${renamed}\n` })
    expect(await runAt('update 1 --name Moss', { 'PATCH /plants/1': [lose] })).toMatchObject({
      ...unknown,
      last: unread,
    })
  })

  test('that deletes is unknown when the plant is gone after a lost answer', async () => {
    expect(await runAt('delete 1 --yes', { 'DELETE /plants/1': [lose, missing] })).toMatchObject(unknown)
  })
})

test.each(['update 1 --name Fern', 'delete 1 --yes'])(
  '%s is unknown when a conflict follows a lost answer',
  async (line) => {
    const answers = [lose, json(409, { error: 409, message: 'Locked' })]
    expect(await runAt(line, { 'PATCH /plants/1': answers, 'DELETE /plants/1': answers })).toMatchObject({
      code: 5,
      out: '',
    })
  },
)

describe('an answer that names another plant leaves a change unknown', () => {
  const another = json(200, '{"id":2,"name":"Fern"}')
  const answers = {
    ...{ 'PATCH /plants/1': [another], 'DELETE /plants/1': [another] },
  }

  test.each(['update 1 --name Fern', 'delete 1 --yes'])('%s', async (line) => {
    const { code, out, lines } = await runAt(line, answers)
    const message = 'URL answered 200 with no StoredPlant with id 1: {"id":2,"name":"Fern"}'
    const hint = 'Whether plant 1 was changed is unknown. Look at it with: plants get 1 --store URL'
    expect({ code, out, lines }).toEqual({ code: 5, out: '', lines: [{ error: 502, message, hint, status: 200 }] })
  })

  test('of an import, which ends', async () => {
    const remote = await Hostile.listen({
      openapi,
      posts: [json(400, { error: 409, message: 'Exists' })],
      others: answers,
    })
    const argv = ['import', '--if-exists', 'update', '--store', remote.url, '--output', 'ndjson']
    const { code, out, err } = await runPlants(argv, { env: { PLANTS_TOKEN: token }, stdin: `${fern}\n` })
    const message = 'URL answered 200 with no StoredPlant with id 1: {"id":2,"name":"Fern"}'
    expect({ code, out }).toEqual({ code: 5, out: '' })
    expect(linesOf(err, remote)).toMatchObject([{ error: 502, message, status: 200 }])
  })
})

test('several deletes report each failure, and end with the worst code', async () => {
  const answers = {
    ...{ 1: json(500, { error: 500, message: 'Oh' }), 2: denied, 3: json(200, '{"id":3,"name":"Ivy"}') },
    ...{ 4: missing, 5: denied, 6: json(400, { error: 400, message: 'No' }) },
  }
  const deletes = Object.entries(answers).map(([id, answer]) => [`DELETE /plants/${id}`, [answer]])
  const { code, out, lines, asked } = await runAt('delete 1 2 3 4 5 6 --yes', Object.fromEntries(deletes))
  expect({ code, out }).toEqual({ code: 5, out: '{"id":3,"name":"Ivy"}\n' })
  expect(lines.map(({ message, warning = message }) => warning)).toEqual([
    expect.stringMatching(/^URL answered 500: Oh\. Trying again for up to /),
    ...['Not allowed', 'No plant has id 4 in URL', 'Not allowed', 'No', 'URL answered 500: Oh'],
  ])
  expect(asked.filter((line) => line === 'GET /openapi.json')).toHaveLength(1)
})
