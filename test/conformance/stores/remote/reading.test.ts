import { describe, expect, test } from 'vitest'
import { type Answer, Hostile, http, json } from '../../../helpers/hostile.js'
import { linesOf, token } from '../../../helpers/remote.js'
import { runPlants, withUsual } from '../../../helpers/run.js'

const item = { get: {}, put: {}, delete: {} }
/** The description of a service that has all operations, and calls the parameter as it likes. */
const openapi = json(200, { paths: { '/plants': { get: {}, post: {} }, '/plants/{plantId}': item } })
const fern = '{"id":1,"name":"Fern"}'
const moss = '{"id":2,"name":"Moss"}'
const missing = json(404, { error: 404, message: 'No plant has id 1' })
const changed = json(412, { error: 412, message: 'Changed' })
const denied = json(403, { error: 403, message: 'Not allowed' })
const tagged = (plant: string, etag = '"v1"') => json(200, plant, { ETag: etag })
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
    ['read', missing, [0, 1, 2], dry(1, `"before":{"name":"Fern","tag":"dry"},${after}`), { updated: 1 }, []],
    ['not read', denied, [0], dry(1, after), { updated: 0 }, [unread]],
  ])('is compared with the input of a dry run: its token may %s', async (_, first, ids, change, counts, warnings) => {
    const stored = { 'GET /plants/1': [json(200, '{"id":1,"name":"Fern","tag":"dry"}')], 'GET /plants/2': [missing] }
    const stdin = '{"id":1,"name":"Fern","tag":"wet"}\n{"id":2,"name":"Moss"}\n'
    const line = 'import --if-exists update --dry-run'
    const { code, out, lines, asked } = await runAt(line, { 'GET /plants/0': [first], ...stored }, { stdin })
    const [one, two, summary = ''] = out.split('\n')
    expect([one, two]).toEqual([change, dry(2, '"after":{"name":"Moss"}')])
    expect([code, JSON.parse(summary), lines]).toMatchObject([0, counts, warnings])
    expect(asked.toSorted()).toEqual(['GET /openapi.json', ...ids.map((id) => `GET /plants/${id}`)])
  })

  test('lists plants page by page, as its links lead, up to the limit', async () => {
    const [one = '', two = '', three = '', four = ''] = [1, 2, 3, 4].map((id) => `{"id":${id},"name":"F","tag":"a&b"}`)
    const pages = [page([one], 'plants?after=1&x=%20'), page([two], '/plants?after=2'), page([three, four])]
    const { out, asked } = await list(pages, 'list --limit 3 --tag a&b')
    expect(out).toBe(`${one}\n${two}\n${three}\n`)
    const queries = ['limit=3&tag=a%26b', 'after=1&x=%20', 'after=2']
    expect(asked.slice(1)).toEqual(queries.map((query) => `GET /plants?${query}`))
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
    ['list', creates, 'can only create plants', 'GET /plants'],
    ['update 1 --name A', reads, 'does not offer this', 'PUT /plants/{id}'],
    ['delete 1 --yes', reads, 'does not offer this', 'DELETE /plants/{id}'],
  ])('is not asked for what it does not offer: %s of %j', async (line, paths, what, operation) => {
    const answers = { 'GET /plants/1': [tagged(fern)] }
    const { code, lines, asked } = await runAt(line, answers, { description: json(200, { paths }) })
    const message = `This service ${what}: its openapi.json lists no ${operation}`
    const hint = 'Run the command on the host of the service, or select another store with --store'
    expect({ code, lines }).toEqual({ code: 2, lines: [{ error: 400, message, hint }] })
    expect(asked.filter((line) => !line.startsWith('GET'))).toEqual([])
  })

  test.each([
    ['get 1', 401, '', ''],
    ['list', 404, '/v1/plants/', '. Try: --store URL/v1'],
  ])('may offer it all the same without an openapi.json: %s, %i at "%s"', async (line, status, base, other) => {
    const path = `${base.replace(/\/$/, '')}/openapi.json`
    const { code, lines, asked } = await runAt(line, { [`GET ${path}`]: [http(status)] }, { base })
    const message = `URL${path} answered ${status}, so it is unknown whether this service can read plants`
    const hint = `Is the address right? It is the base URL: the part before /plants${other}`
    expect({ code, lines }).toEqual({ code: 2, lines: [{ error: 400, message, hint, status }] })
    expect(asked).toEqual([`GET ${path}`])
  })
})

describe('an answer to a request that reads', () => {
  test.each<[string, Answer, number, string]>([
    ['404 with an Error', missing, 1, 'No plant has id 1 in URL'],
    ['404 without an Error', http(404), 1, 'URL answered 404 with nothing'],
    ['another plant', json(200, moss), 5, 'URL answered 200 with JSON that is no StoredPlant'],
    ['a wrong id', json(200, '{"id":1.5,"name":"Fern"}'), 5, 'URL answered 200 with JSON that is no StoredPlant'],
    ['a reset', lose, 4, 'URL received the request, but did not answer: the connection was reset'],
  ])('of one plant is rejected: %s', async (_, answer, code, message) => {
    expect(await runAt('get 1', { 'GET /plants/1': [answer] })).toMatchObject({ code, out: '', last: message })
  })

  const linked = (link: string): [string, Answer, string] => [
    `a link to ${link}`,
    page([fern], link),
    `a next page at another address: ${link}`,
  ]

  test.each<[string, Answer, string]>([
    ['the same page again', page([fern, moss], 'plants?after=2'), 'plant 1 after plant 2'],
    ['an empty page in the middle', page([], 'plants?after=2'), 'an empty page with a link to the next one'],
    linked('http://a.example/plants?after=1'),
    linked('/other/plants?after=1'),
    linked('http://['),
    ['an object', json(200, fern), '200 with JSON that is no list of plants'],
    ['a rounded id', page(['{"id":1.0000000000000000001,"name":"F"}']), '200 with JSON that is no list of plants'],
    ['more than 16 MiB', json(200, `[${' '.repeat(16_777_216)}]`), '200 with more than 16 MiB'],
  ])('of a list is rejected: %s', async (_, answer, message) => {
    expect(await list(answer)).toMatchObject({ code: 5, last: `URL answered ${message}` })
  })

  test('is checked against --no-tag, which the service may not know', async () => {
    const unknown = json(400, { error: 400, message: 'There is no parameter "noTag"' })
    const { last } = await list([page(['{"id":1,"name":"Fern","tag":"a"}'])], 'list --no-tag')
    expect(last).toBe('URL answered plant 1, which has a tag')
    expect((await list(unknown, 'list --no-tag')).last).toBe('There is no parameter "noTag"')
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
    ['another media type', page([fern]), '200 with JSON that is no stream of plants'],
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

describe('an update', () => {
  const renamed = '{"id":1,"name":"Moss"}'
  const update = (gets: Answer[], puts: Answer[]) =>
    runAt('update 1 --name Moss', { 'GET /plants/1': gets, 'PUT /plants/1': puts })
  const unknown = { code: 5, hint: 'Whether plant 1 was changed is unknown. Look at it with: plants get 1 --store URL' }

  const unread = 'URL received the request, but did not answer: the connection was reset'

  test('changes the plant that was read, and begins again when others have changed it', async () => {
    const both = '{"id":1,"name":"Moss","tag":"b"}'
    const gets = [tagged(fern), tagged('{"id":1,"name":"Fern","tag":"b"}', '"v2"')]
    const { code, out, remote } = await update(gets, [changed, json(200, both)])
    expect({ code, out }).toEqual({ code: 0, out: `${both}\n` })
    const puts = remote.requests.filter(({ line }) => line === 'PUT /plants/1')
    const expected = ['"v1" {"name":"Moss"}', '"v2" {"name":"Moss","tag":"b"}']
    expect(puts.map(({ headers, body }) => `${headers['if-match']} ${body}`)).toEqual(expected)
  })

  test.each<[string, Answer[], Answer[], object]>([
    ['is as it should be', [tagged(fern), tagged(renamed, '"v2"')], [lose, changed], { code: 0, out: `${renamed}\n` }],
    ['cannot be read again', [tagged(fern), denied], [lose, changed], unknown],
    ['is not told of again', [tagged(fern)], [lose], { ...unknown, last: unread }],
  ])('after a lost answer whose plant %s', async (_, gets, puts, outcome) => {
    expect(await update(gets, puts)).toMatchObject(outcome)
  })

  test.each([
    ['is gone', missing],
    ['has changed', changed],
  ])('that deletes is unknown when the plant %s after a lost answer', async (_, answer) => {
    const answers = { 'GET /plants/1': [json(200, fern)], 'DELETE /plants/1': [lose, answer] }
    expect(await runAt('delete 1 --yes', answers)).toMatchObject(unknown)
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
    expect.stringMatching(/^URL failed: Oh\. Trying again for up to /),
    ...['No plant has id 4 in URL', 'No', 'Not allowed (2 plants)', 'URL failed: Oh'],
  ])
  expect(asked.filter((line) => line === 'GET /openapi.json')).toHaveLength(1)
})
