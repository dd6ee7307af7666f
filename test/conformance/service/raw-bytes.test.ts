import { describe, expect, test } from 'vitest'
import { differs, isSingleFile } from '../../helpers/differences.js'
import {
  broken,
  chunked,
  error,
  head,
  isServed,
  late,
  length,
  type Outcome,
  outcomeOf,
  patience,
  plant,
  requestOf,
  start,
  tooManyBytes,
} from '../../helpers/outcomes.js'
import { connectTo, exchange, RawConnection, requestBytes } from '../../helpers/raw-http.js'
import { serve, serveForAll, testToken } from '../../helpers/service.js'

/** What ends with one Error at most, and a closed connection. */
type Refusal = [title: string, bytes: string | Uint8Array, expected: Outcome, isHalfClosed?: boolean]
const sameLengths = isSingleFile ? error(400, 400, 'The header Content-Length must be given once') : broken
const framing: Refusal[] = [
  ['two lengths', head(length, 'Content-Length: 3') + plant, broken],
  ['the same length twice', head(length, length) + plant, sameLengths],
  ['a list of lengths', head(`${length}, ${plant.length}`) + plant, broken],
  ['a length and chunks', `${head('Content-Length: 5', chunked)}0\r\n\r\n`, broken],
  ['chunks and a length', `${head(chunked, 'Content-Length: 5')}0\r\n\r\n`, broken],
  ['a negative length', head('Content-Length: -1'), broken],
  ['a length with a plus', head('Content-Length: +22') + plant, broken],
  ['a length in hexadecimal digits', head('Content-Length: 0x16') + plant, broken],
  ['a length of nothing', head('Content-Length:'), broken],
  ['a length of 23 digits', head('Content-Length: 99999999999999999999999'), broken],
  ['an unknown transfer coding', `${head('Transfer-Encoding: xchunked')}0\r\n\r\n`, broken],
  ['chunks that are not the last coding', `${head('Transfer-Encoding: chunked, gzip')}0\r\n\r\n`, broken],
  ...['gzip, chunked', 'identity, chunked', 'chunked, chunked', 'identity', 'chunked;q=1', ', chunked'].map(
    (coding): Refusal => [
      `the transfer coding "${coding}"`,
      `${head(`Transfer-Encoding: ${coding}`)}16\r\n${plant}\r\n0\r\n\r\n`,
      broken,
    ],
  ),
  ['chunks of chunks', `${head(chunked, chunked)}0\r\n\r\n`, broken],
  ['a space after Transfer-Encoding', `${head('Transfer-Encoding : chunked', 'Content-Length: 5')}0\r\n\r\n`, broken],
  [
    'a transfer coding in the next line',
    `${head('Transfer-Encoding:\r\n chunked')}16\r\n${plant}\r\n0\r\n\r\n`,
    broken,
  ],
  ['chunks in HTTP/1.0', `${head(chunked).replace('HTTP/1.1', 'HTTP/1.0')}0\r\n\r\n`, broken],
  ['a chunk size that is no number', `${head(chunked)}zz\r\n${plant}\r\n0\r\n\r\n`, broken],
  ['a negative chunk size', `${head(chunked)}-16\r\n${plant}\r\n0\r\n\r\n`, broken],
  ['a chunk size of 17 digits', `${head(chunked)}fffffffffffffffff\r\n${plant}\r\n0\r\n\r\n`, broken],
  ['a chunk longer than its size', `${head(chunked)}2\r\n${plant}\r\n0\r\n\r\n`, broken],
  ['a line feed alone after a chunk size', `${head(chunked)}16\n${plant}\r\n0\r\n\r\n`, broken],
  ['a line feed alone after a chunk', `${head(chunked)}16\r\n${plant}\n0\r\n\r\n`, broken],
  ['line feeds alone after the last chunk', `${head(chunked)}16\r\n${plant}\r\n0\n\n`, broken],
  ['a length in the trailer', `${head(chunked)}16\r\n${plant}\r\n0\r\nContent-Length: 9\r\n\r\n`, broken],
  ['a broken trailer', `${head(chunked)}16\r\n${plant}\r\n0\r\nbroken\r\n\r\n`, broken],
  [
    'extensions of a chunk without end',
    `${head(chunked)}16;${'x'.repeat(20_000)}`,
    error(400, 413, 'The chunk extensions are too large'),
  ],
  ['trailers without end', `${head(chunked)}16\r\n${plant}\r\n0\r\n${'x: y\r\n'.repeat(20_000)}`, tooManyBytes],
  ['a body that is cut short', head('Content-Length: 99') + plant, broken, true],
  ['chunks that are cut short', `${head(chunked)}99\r\n${plant}`, broken, true],
  ['headers that are cut short', `${start}X: `, broken, true],
  ['a request line that is cut short', 'POST /pl', broken, true],
]

const headers: Refusal[] = [
  ['a header larger than the limit', head(`X: ${'a'.repeat(17_000)}`, length) + plant, tooManyBytes],
  ['headers larger than the limit', head(...Array<string>(4000).fill('X: abcdef'), length) + plant, tooManyBytes],
  ['a path larger than the limit', `POST /${'a'.repeat(17_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, tooManyBytes],
  ['a header without a colon', head('X'), broken],
  ['a header without a name', head(': a'), broken],
  ['a header that goes on in the next line', head('X: a\r\n b'), broken],
  ['a space in front of the colon', head('X : a'), broken],
  ['a space in front of the first header', 'POST /plants HTTP/1.1\r\n Host: x\r\n\r\n', broken],
  ['U+0000 in a header', head('X: a\0b'), broken],
  ['a carriage return in a header', head('X: a\rb'), broken],
  ['line feeds alone', head('Content-Length: 0').replaceAll('\r', ''), broken],
  ['a line feed alone', head('X: a\nContent-Length: 0'), broken],
  ['no Host', requestOf({ headers: { Host: undefined }, body: plant }), error(400, 400, 'The header Host is missing')],
  [
    'two Hosts',
    requestOf({ headers: { Host: ['a', 'b'] }, body: plant }),
    error(400, 400, 'The header Host must be given once'),
  ],
  [
    'the same Host twice',
    requestOf({ headers: { Host: ['a', 'a'] }, body: plant }),
    error(400, 400, 'The header Host must be given once'),
  ],
  [
    'two Hosts, and a large body on its way',
    requestOf({ headers: { Host: ['a', 'b'] }, body: plant.padEnd(1_000_000) }),
    error(400, 400, 'The header Host must be given once'),
  ],
  [
    'two tokens',
    requestOf({ headers: { Authorization: ['Bearer x', `Bearer ${testToken}`] }, body: plant }),
    error(400, 400, 'The header Authorization must be given once'),
  ],
]

const others: Refusal[] = [
  ['garbage', 'garbage\r\n\r\n', broken],
  ['every byte there is', Uint8Array.from({ length: 256 }, (_, byte) => byte), broken],
  ['a megabyte of garbage', `${'x'.repeat(1_000_000)}\r\n`, broken],
  ['a method that nobody has', requestOf({ method: 'BREW', body: plant }), broken],
  ['a method in small letters', requestOf({ method: 'post', body: plant }), broken],
  ['a target without a slash', requestOf({ target: 'plants', body: plant }), broken],
  ['a target that is not ASCII', requestOf({ target: '/pl\u00e4nts', body: plant }), broken],
  ['a target with a space', requestOf({ target: '/pla nts', body: plant }), broken],
  ['HTTP/1.2', 'GET /openapi.json HTTP/1.2\r\nHost: x\r\n\r\n', broken],
  [
    'HTTP/2.0 in words',
    'GET /openapi.json HTTP/2.0\r\nHost: x\r\n\r\n',
    error(400, 400, 'HTTP/2.0 is not supported, only HTTP/1.1'),
  ],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', broken],
  [
    'the ClientHello of TLS',
    Uint8Array.from([22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3, ...Array<number>(190).fill(7)]),
    broken,
  ],
]

/** What docs/platforms.md calls requests that the single file answers otherwise. */
function requestIn(title: string): string {
  return (
    { 'HTTP/2.0 in words': 'GET /openapi.json HTTP/2.0', 'HTTP/0.9': 'GET /openapi.json, as HTTP/0.9 has it' }[title] ??
    title
  )
}

/** What is broken off, on a connection that stays. */
const unfinished: [title: string, bytes: string][] = [
  ['a chunk shorter than its size', `${head(chunked)}99\r\n${plant}\r\n0\r\n\r\n`],
  ['HTTP/0.9', 'GET /openapi.json\r\n'],
  ['silence', ''],
  ['an empty line, and then silence', '\r\n'],
  ['half of a request line, and then silence', 'POST /pl'],
  ['half of the headers, and then silence', start],
  ['half of the body, and then silence', head('Content-Length: 99') + plant],
]

describe('what is no request is refused, and the next one is served:', () => {
  const service = serveForAll(['--request-timeout', '300ms'])

  test.each([framing, headers, others].flat().filter(([title]) => !differs(requestIn(title))))(
    '%s',
    async (_, bytes, expected, isHalfClosed) => {
      const connection = await connectTo(service().place)
      connection.send(bytes)
      if (isHalfClosed) connection.end()
      const answers = (await connection.answers()).map(outcomeOf)
      expect([[], [expected]]).toContainEqual(answers)
      await isServed(service())
    },
  )

  test('what does not go on is told so, or closed', async () => {
    const cases = unfinished.filter(([title]) => !differs(requestIn(title)))
    const results = await Promise.all(
      cases.map(async ([title, bytes]) => {
        const connection = await connectTo(service().place)
        const [answer, ...more] = (await connection.send(bytes).answers()).map(outcomeOf)
        return [title, answer ?? late, more]
      }),
    )
    expect(results).toEqual(cases.map(([title]) => [title, late, []]))
    await isServed(service())
  })

  test.each([
    ['headers', 'POST /plants HTTP/1.1\r\nX: '],
    ['a body', head('Content-Length: 9999')],
  ])('a byte now and then is too slow for %s', async (_, bytes) => {
    const connection = await connectTo(service().place)
    const answers = connection.send(bytes).answers()
    await expect.poll(() => connection.socket.readableEnded || !connection.socket.write(' '), patience).toBe(true)
    expect([[], [late]]).toContainEqual((await answers).map(outcomeOf))
    await isServed(service())
  })

  test('who leaves early harms nobody', async () => {
    const parts = [
      start,
      head('Content-Length: 99') + plant,
      requestOf({ target: '/nope' }),
      requestOf({ body: plant.padEnd(1_000_000) }),
    ]
    for (const bytes of parts) {
      const connection = await connectTo(service().place)
      connection.send(bytes).socket.destroy()
      await connection.closed
    }
    await isServed(service())
  })

  test('the log has a line for each, without a byte of it', async () => {
    const connection = await connectTo(service().place)
    const lines = () =>
      service().log.filter(({ code }) => code === (isSingleFile ? 'HPE_INVALID_CONSTANT' : 'HPE_INVALID_METHOD'))
    const before = lines().length
    await connection.send('SECRET garbage\r\n\r\n').answers()
    await expect.poll(() => lines().length).toBeGreaterThan(before)
    expect(Object.keys(lines().at(-1) ?? {}).toSorted()).toEqual(['code', 'level', 'outcome', 'time'])
    expect(service().err).not.toContain('SECRET')
  })
})

test('1000 connections at once, of which --connection-limit lets 50 in, leave the service as it was', async () => {
  const service = await serve(['--connection-limit', '50'])
  let closed = 0
  const connections = Array.from({ length: 1000 }, () => new RawConnection(service.place))
  for (const connection of connections) {
    void connection.answer().then(() => {
      closed += 1
    })
  }
  await expect.poll(() => closed, patience).toBe(950)
  for (const { socket } of connections) socket.destroy()
  await expect
    .poll(async () => (await exchange(service, { body: plant }).catch(() => undefined))?.status, patience)
    .toBe(200)
})

test('bodies that break off leave no trace', async () => {
  const service = await serve(['--body-limit', '1KiB'])
  const half = requestBytes(testToken, { headers: { 'Content-Length': '1000' }, body: ' '.repeat(900) })
  for (let count = 0; count < 100; count += 1) {
    const connection = await connectTo(service.place)
    await connection.send(half).end().answers()
    connection.socket.destroy()
  }
  const { status, body } = await exchange(service, { body: plant.padEnd(1000) })
  expect([status, body]).toEqual([200, '{"name":"Fern"}'])
})
