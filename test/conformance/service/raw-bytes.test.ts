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

const whole = `16\r\n${plant}\r\n0\r\n\r\n`
const inChunks = (rest: string) => head(chunked) + rest
const codedAs = (coding: string) => head(`Transfer-Encoding: ${coding}`) + whole
const described = (version: string) => `GET /openapi.json HTTP/${version}\r\nHost: x\r\n\r\n`

/** What is not HTTP, by what is wrong. */
const malformed: Record<string, string | Uint8Array> = {
  'two lengths': head(length, 'Content-Length: 3') + plant,
  'a list of lengths': head(`${length}, ${plant.length}`) + plant,
  'a length and chunks': `${head('Content-Length: 5', chunked)}0\r\n\r\n`,
  'chunks and a length': `${head(chunked, 'Content-Length: 5')}0\r\n\r\n`,
  'a negative length': head('Content-Length: -1'),
  'a length with a plus': head('Content-Length: +22') + plant,
  'a length in hexadecimal digits': head('Content-Length: 0x16') + plant,
  'a length of nothing': head('Content-Length:'),
  'a length of 23 digits': head('Content-Length: 99999999999999999999999'),
  'an unknown transfer coding': codedAs('xchunked'),
  'chunks that are not the last coding': codedAs('chunked, gzip'),
  'chunks after gzip': codedAs('gzip, chunked'),
  'chunks after identity': codedAs('identity, chunked'),
  'chunks twice': codedAs('chunked, chunked'),
  'the coding identity': codedAs('identity'),
  'chunks with a parameter': codedAs('chunked;q=1'),
  'chunks after a comma': codedAs(', chunked'),
  'chunks in two headers': head(chunked, chunked) + whole,
  'a space after Transfer-Encoding': `${head('Transfer-Encoding : chunked', 'Content-Length: 5')}0\r\n\r\n`,
  'a transfer coding in the next line': head('Transfer-Encoding:\r\n chunked') + whole,
  'chunks in HTTP/1.0': inChunks(whole).replace('HTTP/1.1', 'HTTP/1.0'),
  'a chunk size that is no number': inChunks(`zz\r\n${plant}\r\n0\r\n\r\n`),
  'a negative chunk size': inChunks(`-${whole}`),
  'a chunk size of 17 digits': inChunks(whole.replace('16', 'f'.repeat(17))),
  'a chunk longer than its size': inChunks(whole.replace('16', '2')),
  'a line feed alone after a chunk size': inChunks(whole.replace('\r', '')),
  'a line feed alone after a chunk': inChunks(whole.replace('}\r', '}')),
  'line feeds alone after the last chunk': inChunks(whole.replace(/0\r\n\r/, '0\n')),
  'a length in the trailer': inChunks(whole.replace(/\r\n$/, 'Content-Length: 9\r\n\r\n')),
  'a broken trailer': inChunks(whole.replace(/\r\n$/, 'broken\r\n\r\n')),
  'a header without a colon': head('X'),
  'a header without a name': head(': a'),
  'a header that goes on in the next line': head('X: a\r\n b'),
  'a space in front of the colon': head('X : a'),
  'a space in front of the first header': 'POST /plants HTTP/1.1\r\n Host: x\r\n\r\n',
  'U+0000 in a header': head('X: a\0b'),
  'a carriage return in a header': head('X: a\rb'),
  'line feeds alone': head('Content-Length: 0').replaceAll('\r', ''),
  'a line feed alone': head('X: a\nContent-Length: 0'),
  garbage: 'garbage\r\n\r\n',
  'every byte there is': Uint8Array.from({ length: 256 }, (_, byte) => byte),
  'a megabyte of garbage': `${'x'.repeat(1_000_000)}\r\n`,
  'an unknown method': requestOf({ method: 'BREW', body: plant }),
  'a method in small letters': requestOf({ method: 'post', body: plant }),
  'a target without a slash': requestOf({ target: 'plants', body: plant }),
  'a target that is not ASCII': requestOf({ target: '/pl\u00e4nts', body: plant }),
  'a target with a space': requestOf({ target: '/pla nts', body: plant }),
  'HTTP/1.2': described('1.2'),
  'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'the ClientHello of TLS': Uint8Array.from([22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3, ...Array<number>(190).fill(7)]),
}

/** What its sender breaks off, and closes its side. */
const cutShort: Record<string, string> = {
  'a body': head('Content-Length: 99') + plant,
  chunks: inChunks(`99\r\n${plant}`),
  headers: `${start}X: `,
  'a request line': 'POST /pl',
}

const twice = (name: string) => error(400, 400, `The header ${name} must be given once`)
const tokens = ['Bearer x', `Bearer ${testToken}`]

/** What gets an error of its own. */
const rejected: [title: string, bytes: string, Outcome][] = [
  ['the same length twice', head(length, length) + plant, isSingleFile ? twice('Content-Length') : broken],
  [
    'extensions of a chunk without end',
    inChunks(`16;${'x'.repeat(20_000)}`),
    error(400, 413, 'The chunk extensions are too large'),
  ],
  ['trailers without end', inChunks(whole.replace(/\r\n$/, 'x: y\r\n'.repeat(20_000))), tooManyBytes],
  ['a header larger than the limit', head(`X: ${'a'.repeat(17_000)}`, length) + plant, tooManyBytes],
  ['headers larger than the limit', head(...Array<string>(4000).fill('X: abcdef'), length) + plant, tooManyBytes],
  ['a path larger than the limit', `POST /${'a'.repeat(17_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, tooManyBytes],
  ['no Host', requestOf({ headers: { Host: undefined }, body: plant }), error(400, 400, 'The header Host is missing')],
  ['two Hosts', requestOf({ headers: { Host: ['a', 'b'] }, body: plant }), twice('Host')],
  ['the same Host twice', requestOf({ headers: { Host: ['a', 'a'] }, body: plant.padEnd(1_000_000) }), twice('Host')],
  ['two tokens', requestOf({ headers: { Authorization: tokens }, body: plant }), twice('Authorization')],
  ['GET /openapi.json HTTP/2.0', described('2.0'), error(400, 400, 'HTTP/2.0 is not supported, only HTTP/1.1')],
]

/** What does not go on, on a connection that stays. */
const unfinished: Record<string, string> = {
  'a chunk shorter than its size': inChunks(whole.replace('16', '99')),
  'GET /openapi.json, as HTTP/0.9 has it': 'GET /openapi.json\r\n',
  silence: '',
  'an empty line': '\r\n',
  'half of a request line': 'POST /pl',
  'half of the headers': start,
  'half of the body': head('Content-Length: 99') + plant,
}

describe('what is no request is rejected, and the next one is served:', () => {
  const service = serveForAll(['--request-timeout', '300ms'])

  test.each([
    ...Object.entries(malformed).map(([title, bytes]) => [title, bytes, broken, false] as const),
    ...Object.entries(cutShort).map(([title, bytes]) => [`${title}, cut short`, bytes, broken, true] as const),
    ...rejected.filter(([title]) => !differs(title)).map((row) => [...row, false] as const),
  ])('%s', async (_, bytes, expected, isHalfClosed) => {
    const connection = (await connectTo(service().place)).send(bytes)
    if (isHalfClosed) connection.end()
    expect([[], [expected]]).toContainEqual((await connection.answers()).map(outcomeOf))
    await isServed(service())
  })

  test('what does not go on gets 408, or is closed', async () => {
    const cases = Object.entries(unfinished).filter(([title]) => !differs(title))
    const results = await Promise.all(
      cases.map(async ([title, bytes]) => {
        const answers = await (await connectTo(service().place)).send(bytes).answers()
        return [title, ...(answers.length === 0 ? [late] : answers.map(outcomeOf))]
      }),
    )
    expect(results).toEqual(cases.map(([title]) => [title, late]))
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

  test.each([
    ['headers', start],
    ['half of a body', head('Content-Length: 99') + plant],
    ['a request', requestOf({ target: '/nope' })],
    ['a large request', requestOf({ body: plant.padEnd(1_000_000) })],
  ])('who leaves after %s harms nobody', async (_, bytes) => {
    const connection = await connectTo(service().place)
    connection.send(bytes).socket.destroy()
    await connection.closed
    await isServed(service())
  })

  test('the log has a line for each, without a byte of it', async () => {
    const code = isSingleFile ? 'HPE_INVALID_CONSTANT' : 'HPE_INVALID_METHOD'
    const lines = () => service().log.filter((line) => line['code'] === code)
    const before = lines().length
    await (await connectTo(service().place)).send('SECRET garbage\r\n\r\n').answers()
    await expect.poll(() => lines().length).toBeGreaterThan(before)
    expect(Object.keys(lines().at(-1) ?? {}).toSorted()).toEqual(['code', 'level', 'outcome', 'time'])
    expect(service().err).not.toContain('SECRET')
  })
})

test('1000 connections at once, of which --connection-limit lets 50 in, leave the service as it was', async () => {
  const service = await serve(['--connection-limit', '50'])
  let closed = 0
  const connections = Array.from({ length: 1000 }, () => new RawConnection(service.place))
  for (const connection of connections)
    void connection.answer().then(() => {
      closed += 1
    })
  await expect.poll(() => closed, patience).toBe(950)
  for (const { socket } of connections) socket.destroy()
  const status = async () => (await exchange(service, { body: plant }).catch(() => undefined))?.status
  await expect.poll(status, patience).toBe(200)
})

test('bodies that break off leave no trace', async () => {
  const service = await serve(['--body-limit', '1KiB'])
  const half = requestBytes(testToken, { headers: { 'Content-Length': '1000' }, body: ' '.repeat(900) })
  for (let count = 0; count < 100; count += 1) {
    const connection = await connectTo(service.place)
    await connection.send(half).end().answers()
    connection.socket.destroy()
  }
  expect(await exchange(service, { body: plant.padEnd(1000) })).toMatchObject({ status: 200 })
})
