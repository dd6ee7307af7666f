import { writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Answer, Hostile, http, json } from '../../../helpers/hostile.js'
import { createAt, linesOf, token } from '../../../helpers/remote.js'
import { runPlants, withUsual } from '../../../helpers/run.js'
import { temporaryFolder } from '../../../helpers/temporary.js'

const item = { get: {}, put: {}, delete: {} }
/** A description of a service that has all operations, and calls the parameter as it likes. */
const openapi = json(200, { paths: { '/plants': { get: {}, post: {} }, '/plants/{plantId}': item } })
const fern = '{"id":1,"name":"Fern"}'
const moss = '{"id":2,"name":"Moss"}'
const missing = json(404, { error: 404, message: 'No plant has id 1' })
const changed = json(412, { error: 412, message: 'Changed' })
const tagged = (plant: string) => json(200, plant, { ETag: '"v1"' })
const lose: Answer = (socket: Socket) => void socket.resetAndDestroy()
const page = (plants: string[], next?: string) =>
  json(200, `[${plants.join()}]`, next === undefined ? {} : { Link: `<${next}>; rel="next"` })
const ndjson = (body: string | Buffer, headers = {}) =>
  http(200, body, { 'Content-Type': 'application/x-ndjson', ...headers })
const chunked = (...chunks: string[]) =>
  ndjson(chunks.map((chunk) => `${Buffer.byteLength(chunk).toString(16)}\r\n${chunk}\r\n`).join(''), {
    'Transfer-Encoding': 'chunked',
  })

const otherId = 'Choose another id; to repeat an earlier create safely, use the same --idempotency-key for both'
const otherKey = 'Choose another id or another key: a key belongs to one plant only'
const wrongAddress = 'Is the address right? It is the base URL: the part before /plants'

/** Runs a command at a service that answers so, and gives what came of it. */
async function runAt(argv: string[], others: Record<string, Answer[]>, description: Answer = openapi, base = '') {
  const remote = await Hostile.listen({ openapi: description, others })
  const args = withUsual({ '--timeout': '2s', '--store': `${remote.url}${base}`, '--output': 'ndjson' }, argv)
  const { code, out, err } = await runPlants(args, { env: { PLANTS_TOKEN: token } })
  const lines = linesOf(err, remote) as Record<string, unknown>[]
  return { code, out, said: lines.flatMap((line) => line['message'] ?? line), lines, remote }
}

describe('a service that can be read', () => {
  test('gives a plant under its exact id', async () => {
    const { code, out, remote } = await runAt(['get', '9007199254740993'], {
      'GET /plants/9007199254740993': [json(200, '{"tag":"a","id":9007199254740993,"name":"Fern","more":1}')],
    })
    expect({ code, out }).toEqual({ code: 0, out: '{"id":9007199254740993,"name":"Fern","tag":"a"}\n' })
    expect(remote.lines).toEqual(['GET /openapi.json', 'GET /plants/9007199254740993'])
    expect(remote.requests.map(({ headers }) => headers['authorization'])).toEqual([undefined, `Bearer ${token}`])
  })

  test.each([
    ['may', missing, ['GET /plants/0', 'GET /plants/1', 'GET /plants/2'], { created: 1, updated: 1 }],
    ['may not', json(403, { error: 403, message: 'No' }), ['GET /plants/0'], { created: 2, updated: 0 }],
  ])('is what a dry run compares the input with, if the token %s read', async (_, first, requests, counts) => {
    const file = join(temporaryFolder(), 'plants.csv')
    writeFileSync(file, 'id,name,tag\n1,Fern,wet\n2,Moss,\n')
    const { code, out, said, remote } = await runAt(
      ['import', file, '--if-exists', 'update', '--dry-run', '--output', 'ndjson'],
      {
        'GET /plants/0': [first],
        'GET /plants/1': [json(200, '{"id":1,"name":"Fern","tag":"dry"}')],
        'GET /plants/2': [missing],
      },
    )
    const update = '{"dryRun":true,"id":1,"before":{"name":"Fern","tag":"dry"},"after":{"name":"Fern","tag":"wet"}}'
    const moss = '{"dryRun":true,"id":2,"after":{"name":"Moss"}}'
    expect(out.trim().split('\n').slice(0, -1)).toEqual(
      counts.updated > 0 ? [update, moss] : [update.replace(/"before":\{.*?\},/, ''), moss],
    )
    expect({ code, summary: JSON.parse(out.trim().split('\n').at(-1) ?? '') }).toMatchObject({
      code: 0,
      summary: counts,
    })
    const warning = 'Only the input is checked, not which ids exist at URL'
    expect(said).toEqual(counts.updated > 0 ? [] : [{ warning }])
    expect(remote.lines.toSorted()).toEqual(['GET /openapi.json', ...requests])
  })

  test('lists plants page by page, as its links lead, and no more than were asked for', async () => {
    const third = '{"id":3,"name":"Ivy"}'
    const pages = [
      page([fern], 'plants?after=1&x=%20'),
      page([moss], '/plants?after=2'),
      page([third, '{"id":4,"name":"Oak"}']),
    ]
    const { code, out, remote } = await runAt(['list', '--limit', '3', '--tag', 'a b'], {
      'GET /plants': pages.map(withTag),
    })
    expect({ code, out }).toEqual({
      code: 0,
      out: `${[fern, moss, third].map((plant) => plant.replace('}', ',"tag":"a b"}')).join('\n')}\n`,
    })
    expect(remote.lines.slice(1)).toEqual([
      'GET /plants?limit=3&tag=a%20b',
      'GET /plants?after=1&x=%20',
      'GET /plants?after=2',
    ])
  })

  test('is exported as a stream, however it is cut', async () => {
    const { code, out, remote } = await runAt(['export', '--output', 'csv'], {
      'GET /plants': [chunked('{"id":1,"na', 'me":"F,\u00e9"}\n{"id":2,"name":"","tag":"x"}', '\n', '')],
    })
    expect({ code, out }).toEqual({ code: 0, out: 'id,name,tag\n1,"F,\u00e9",\n2,"",x\n' })
    expect(remote.requests.at(-1)?.headers['accept']).toBe('application/x-ndjson')
  })

  test.each([
    ['an id', otherId, []],
    ['an id, with a key', otherKey, ['--idempotency-key', 'import-9']],
  ])('says what to do about %s that exists, and asks for nothing more', async (_, hint, flags) => {
    const taken = json(400, { error: 409, message: 'Id 2 is taken' }, { 'Request-Id': 'r-1' })
    const remote = await Hostile.listen({ openapi, posts: [taken] })
    const { code, out, said } = await createAt(remote, ['--id', '2', ...flags])
    const error = { error: 409, message: 'Id 2 is taken', hint, status: 400, requestId: 'r-1' }
    expect({ code, out, said }).toEqual({ code: 1, out: '', said: [error] })
  })

  test.each(['get 1', 'list', 'export', 'update 1 --name A', 'delete 1 --yes'])(
    'is asked nothing that it does not list: %s',
    async (line) => {
      const argv = line.split(' ')
      const operation =
        { list: 'GET /plants', export: 'GET /plants', delete: 'DELETE /plants/{id}' }[argv[0] ?? ''] ??
        'GET /plants/{id}'
      const { code, lines, remote } = await runAt(argv, {}, json(200, { paths: { '/plants': { post: {} } } }))
      const message = `This service can only create plants: its openapi.json lists no ${operation}`
      const hint = 'Run the command on the host of the service, or select another store with --store'
      expect({ code, lines, asked: remote.lines }).toEqual({
        code: 2,
        lines: [{ error: 400, message, hint }],
        asked: ['GET /openapi.json'],
      })
    },
  )

  test.each([
    ['get 1', 404, '', wrongAddress],
    ['count', 401, '/plants', `${wrongAddress}. Try: --store URL`],
    ['list', 404, '/v1/plants/', `${wrongAddress}. Try: --store URL/v1`],
    ['export', 403, '/v1', wrongAddress],
  ])('is not said to lack what no openapi.json lists: %s, %i at "%s"', async (line, status, base, hint) => {
    const path = `${base.replace(/\/$/, '')}/openapi.json`
    const { code, lines, remote } = await runAt(line.split(' '), { [`GET ${path}`]: [http(status)] }, http(404), base)
    const message = `URL${path} answered ${status}, so it is unknown whether this service can read plants`
    expect({ code, lines, asked: remote.lines }).toEqual({
      code: 2,
      lines: [{ error: 400, message, hint, status }],
      asked: [`GET ${path}`],
    })
  })

  test('may lack a single operation', async () => {
    const description = json(200, { paths: { '/plants': { post: {} }, '/plants/{id}': { get: {} } } })
    const { code, said } = await runAt(['delete', '1', '--yes'], { 'GET /plants/1': [json(200, fern)] }, description)
    expect({ code, said }).toEqual({
      code: 2,
      said: ['This service does not offer this: its openapi.json lists no DELETE /plants/{id}'],
    })
  })
})

describe('what a service answers that reads', () => {
  test.each<[string, Answer, number, string]>([
    ['no plant', missing, 1, 'No plant has id 1 in URL'],
    ['404 without an Error', http(404), 1, 'URL answered 404 with nothing'],
    ['another plant', json(200, moss), 5, 'URL answered 200 with JSON that is no StoredPlant'],
    ['a plant without an id', json(200, '{"name":"Fern"}'), 5, 'URL answered 200 with JSON that is no StoredPlant'],
    [
      'an id that is no integer',
      json(200, '{"id":1.5,"name":"Fern"}'),
      5,
      'URL answered 200 with JSON that is no StoredPlant',
    ],
    ['HTML', http(200, '<p>', { 'Content-Type': 'text/html' }), 5, 'URL answered 200 with text/html'],
    [
      'a redirect',
      http(302, '', { Location: 'http://example.com/' }),
      4,
      'URL answered 302, and redirects to http://example.com/',
    ],
    ['304', http(304), 5, 'URL answered 304'],
    [
      'no right',
      json(403, { error: 403, message: 'This token has no right to read plants' }),
      3,
      'This token has no right to read plants',
    ],
    ['a failure', json(500, { error: 500, message: 'Oh' }), 4, 'URL failed: Oh'],
    ['nothing', lose, 4, 'URL received the request, but did not answer: the connection was reset'],
  ])('%s', async (_, answer, code, message) => {
    const result = await runAt(['get', '1'], { 'GET /plants/1': [answer] })
    expect({ code: result.code, out: result.out, said: result.said.at(-1) }).toEqual({ code, out: '', said: message })
  })

  test('a question is asked again while the service is busy', async () => {
    const busy = json(503, { error: 503, message: 'Busy' }, { 'Retry-After': 0 })
    expect(await runAt(['get', '1'], { 'GET /plants/1': [busy, lose, json(200, fern)] })).toMatchObject({
      code: 0,
      out: `${fern}\n`,
    })
  })

  test.each<[string, Answer[], string]>([
    ['ids out of order', [page([moss, fern])], 'plant 1 after plant 2'],
    [
      'the same page again',
      [page([fern, moss], 'plants?after=2'), page([fern, moss], 'plants?after=2')],
      'plant 1 after plant 2',
    ],
    ['an empty page in the middle', [page([], 'plants?after=2')], 'an empty page with a link to the next one'],
    [
      'a link to another origin',
      [page([fern], 'http://example.com/plants?after=1')],
      'a next page at another address: http://example.com/plants?after=1',
    ],
    [
      'a link to another path',
      [page([fern], '/other/plants?after=1')],
      'a next page at another address: /other/plants?after=1',
    ],
    ['a link that is none', [page([fern], 'http://[')], 'a next page at another address: http://['],
    ['an object', [json(200, fern)], '200 with JSON that is no list of plants'],
    [
      'an id that would be rounded',
      [page(['{"id":1.0000000000000000001,"name":"Fern"}'])],
      '200 with JSON that is no list of plants',
    ],
    ['more than is read', [json(200, `[${' '.repeat(16_777_216)}]`)], '200 with more than 16 MiB'],
  ])('a list with %s is no list', async (_, pages, message) => {
    const { code, said } = await runAt(['list'], { 'GET /plants': pages })
    expect({ code, said: said.at(-1) }).toEqual({ code: 5, said: `URL answered ${message}` })
  })

  test('a service that does not know --no-tag is not believed', async () => {
    const refusal = json(400, { error: 400, message: 'There is no parameter "noTag"' })
    const answers = [withTag(page([fern])), refusal]
    const said: unknown[] = []
    for (const answer of answers)
      said.push((await runAt(['list', '--no-tag'], { 'GET /plants': [answer] })).said.at(-1))
    expect(said).toEqual(['URL answered plant 1, which has a tag', 'There is no parameter "noTag"'])
  })

  test('texts of a service are counted up to a limit', async () => {
    const lines = Array.from({ length: 15 }, (_, id) => `{"id":${id},"name":"${id}${'x'.repeat(14_000_000)}"}\n`)
    const { code, out, said } = await runAt(['count', '--by', 'name'], { 'GET /plants': [chunked(...lines, '')] })
    expect({ code, out, said: said.at(-1) }).toEqual({
      code: 2,
      out: '',
      said: 'The plants of URL have too many different texts as their name to count them here',
    })
  })

  const endless: Answer = (socket: Socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n')
    const chunk = `100000\r\n${'x'.repeat(1_048_576)}\r\n`
    const more = () => {
      while (socket.write(chunk));
    }
    socket.on('drain', more)
    more()
  }

  test.each<[string, Answer, number, string]>([
    ['a line without an end', endless, 5, 'URL answered a line that is too long'],
    ['ids out of order', chunked(`${moss}\n${fern}\n`, ''), 5, 'URL answered plant 1 after plant 2'],
    ['a line that is not a plant', chunked(`${fern}\n\n`, ''), 5, 'URL answered a line that is not a plant'],
    [
      'what is not UTF-8',
      ndjson(Buffer.from('{"id":1,"name":"\xff"}\n', 'latin1')),
      5,
      'URL answered a stream that is not UTF-8',
    ],
    [
      'a packed body',
      ndjson(fern, { 'Content-Encoding': 'gzip' }),
      5,
      'URL answered a stream that is compressed or does not mark its end',
    ],
    [
      'half a line at its end',
      chunked(`${fern}\n{"id"`, ''),
      5,
      'URL answered a stream that ends in the middle of a line',
    ],
    [
      'no end',
      'HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n',
      5,
      'URL answered a stream that is compressed or does not mark its end',
    ],
    ...['identity', 'chunked, gzip'].map((coding): [string, Answer, number, string] => [
      `the transfer coding ${coding}`,
      `HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: ${coding}\r\n\r\n${fern}\n`,
      5,
      'URL answered a stream that is compressed or does not mark its end',
    ]),
    ['another media type', page([fern]), 5, 'URL answered 200 with JSON that is no stream of plants'],
  ])('a stream with %s is none', async (_, answer, code, message) => {
    const result = await runAt(['export'], { 'GET /plants': [answer] })
    expect({ code: result.code, said: result.said.at(-1) }).toEqual({ code, said: message })
  })

  test('a byte now and then is no plant, whether they come in a stream or a page', async () => {
    const trickle =
      (type: string): Answer =>
      (socket) => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nTransfer-Encoding: chunked\r\n\r\n`)
        const timer = setInterval(() => socket.write('1\r\n \r\n'), 50)
        socket.once('close', () => clearInterval(timer))
      }
    const message = 'URL sent no complete plant before the timeout'
    const incomplete = { error: 503, message, hint: 'The output is incomplete. Try again', retryable: true }
    const stream = { 'GET /plants': [trickle('application/x-ndjson')] }
    for (const command of ['count --timeout 500ms', 'export --timeout 500ms']) {
      const { code, lines } = await runAt(command.split(' '), stream)
      expect({ code, lines }).toEqual({ code: 4, lines: [incomplete] })
    }
    const late = 'URL received the request, but did not answer: the request timed out'
    const { code, said } = await runAt(['list', '--timeout', '500ms'], { 'GET /plants': [trickle('application/json')] })
    expect({ code, said }).toEqual({ code: 4, said: [late] })
  })

  test('a long line in small pieces costs no more than in large ones', async () => {
    const line = `${fern.slice(0, -1)}${' '.repeat(8_000_000)}}\n`
    const pieces: Answer = (socket) => {
      socket.setNoDelay(true)
      socket.write(`HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Length: ${line.length}\r\n\r\n`)
      const write = (at: number) => {
        if (at < line.length) socket.write(line.slice(at, at + 400), () => setImmediate(write, at + 400))
      }
      write(0)
    }
    const start = process.cpuUsage()
    const { code, out } = await runAt(['export', '--timeout', '50s'], { 'GET /plants': [pieces] })
    expect({ code, out }).toEqual({ code: 0, out: `${fern}\n` })
    const { user, system } = process.cpuUsage(start) // not the time, which a loaded machine makes longer
    expect((user + system) / 1e6).toBeLessThan(6)
  })

  test('a stream that breaks off is an error, and what came of it is no export', async () => {
    const answer: Answer = (socket) => {
      socket.write(chunked(`${fern}\n`))
      socket.end()
    }
    const { code, lines } = await runAt(['export'], { 'GET /plants': [answer] })
    expect({ code, lines }).toEqual({
      code: 4,
      lines: [
        {
          error: 503,
          message: 'URL ended its response too early',
          hint: 'The output is incomplete. Try again',
          retryable: true,
        },
      ],
    })
  })
})

describe('a plant at a service is corrected', () => {
  const get = (...answers: Answer[]) => ({ 'GET /plants/1': answers })
  const renamed = '{"id":1,"name":"Moss"}'

  test('only if it is still the one that was read', async () => {
    const { code, out, remote } = await runAt(['update', '1', '--name', 'Moss'], {
      ...get(tagged(fern)),
      'PUT /plants/1': [json(200, renamed)],
    })
    expect({ code, out }).toEqual({ code: 0, out: `${renamed}\n` })
    const { line, headers, body } = remote.requests.at(-1) ?? {}
    expect({ line, ifMatch: headers?.['if-match'], body }).toEqual({
      line: 'PUT /plants/1',
      ifMatch: '"v1"',
      body: '{"name":"Moss"}',
    })
  })

  test('again with what it is now when somebody else was faster', async () => {
    const tagged2 = json(200, '{"id":1,"name":"Fern","tag":"b"}', { ETag: '"v2"' })
    const both = '{"id":1,"name":"Moss","tag":"b"}'
    const { code, out, remote } = await runAt(['update', '1', '--name', 'Moss'], {
      ...get(tagged(fern), tagged2),
      'PUT /plants/1': [changed, json(200, both)],
    })
    expect({ code, out }).toEqual({ code: 0, out: `${both}\n` })
    expect(remote.requests.at(-1)?.headers['if-match']).toBe('"v2"')
  })

  test('once, when the answer was lost and the plant is as it should be', async () => {
    const { code, out } = await runAt(['update', '1', '--name', 'Moss'], {
      ...get(tagged(fern), json(200, renamed, { ETag: '"v2"' })),
      'PUT /plants/1': [lose, changed],
    })
    expect({ code, out }).toEqual({ code: 0, out: `${renamed}\n` })
  })

  test('or may be, when the answer was lost and the plant cannot be read again', async () => {
    const { code, lines } = await runAt(['update', '1', '--name', 'Moss'], {
      ...get(tagged(fern), json(403, { error: 403, message: 'This token may not read plants' })),
      'PUT /plants/1': [lose, changed],
    })
    expect({ code, hint: lines.at(-1)?.['hint'] }).toEqual({
      code: 5,
      hint: 'Whether plant 1 was changed is unknown. Look at it with: plants get 1 --store URL',
    })
  })

  test('or may be, when no answer comes at all', async () => {
    const { code, lines } = await runAt(['update', '1', '--name', 'Moss'], {
      ...get(tagged(fern)),
      'PUT /plants/1': [lose],
    })
    expect({ code, last: lines.at(-1) }).toEqual({
      code: 5,
      last: {
        error: 504,
        message: 'URL received the request, but did not answer: the connection was reset',
        hint: 'Whether plant 1 was changed is unknown. Look at it with: plants get 1 --store URL',
      },
    })
  })

  test('deletes several plants with one look at the description', async () => {
    const { code, remote } = await runAt(['delete', '1', '2', '3', '--yes'], {
      ...{
        'DELETE /plants/1': [json(200, fern)],
        'DELETE /plants/2': [json(200, moss)],
        'DELETE /plants/3': [missing],
      },
    })
    expect({ code, looks: remote.lines.filter((line) => line === 'GET /openapi.json') }).toEqual({
      code: 1,
      looks: ['GET /openapi.json'],
    })
  })

  test('reports each failure of several deletes, and ends with the code of the most severe', async () => {
    const refused = json(403, { error: 403, message: 'This token may not delete plants' })
    const { code, out, lines } = await runAt(['delete', '1', '2', '3', '4', '5', '6', '--yes'], {
      ...{ 'DELETE /plants/1': [json(500, { error: 500, message: 'Oh' })], 'DELETE /plants/2': [refused] },
      ...{ 'DELETE /plants/3': [json(200, '{"id":3,"name":"Ivy"}')], 'DELETE /plants/4': [missing] },
      ...{ 'DELETE /plants/5': [refused], 'DELETE /plants/6': [json(400, { error: 400, message: 'No' })] },
    })
    const [warning, ...failures] = lines.map(({ message, warning = message }) => warning)
    expect({ code, out, warning, failures }).toEqual({
      code: 5,
      out: '{"id":3,"name":"Ivy"}\n',
      warning: expect.stringMatching(/^URL failed: Oh\. Trying again for up to /),
      failures: ['No plant has id 4 in URL', 'No', 'This token may not delete plants (2 plants)', 'URL failed: Oh'],
    })
  })

  test.each([
    ['is gone', missing],
    ['does not match', changed],
  ])('and a plant that %s after a lost answer may have been deleted by somebody else', async (_, answer) => {
    const { code, lines } = await runAt(['delete', '1', '--yes'], {
      ...get(json(200, fern)),
      'DELETE /plants/1': [lose, answer],
    })
    expect({ code, hint: lines.at(-1)?.['hint'] }).toEqual({
      code: 5,
      hint: 'Whether plant 1 was changed is unknown. Look at it with: plants get 1 --store URL',
    })
  })
})

function withTag(answer: Buffer): Buffer {
  const [head = '', body = ''] = answer.toString().split('\r\n\r\n')
  const changedBody = body.replaceAll('}', ',"tag":"a b"}')
  return Buffer.from(
    `${head.replace(/Content-Length: \d+/, `Content-Length: ${changedBody.length}`)}\r\n\r\n${changedBody}`,
  )
}
