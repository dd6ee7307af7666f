import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { type Answer, Hostile, http, json } from '../../../helpers/hostile.js'
import { createAt, howToRepeat, token } from '../../../helpers/remote.js'
import { runPlants } from '../../../helpers/run.js'

const plant = { name: 'Fern' }
const refusal = { error: 409, message: 'No ferns today' }
/** A description of a service that has no idempotency keys. */
const openapi = json(200, { openapi: '3.1.0', paths: { '/plants': { post: {} } } })
const half = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'

describe('an answer that does not come in time', () => {
  const late = {
    error: 504,
    message: 'URL received the request, but did not answer: the request timed out',
    hint: howToRepeat.unasked,
  }

  test.each<[string, Answer]>([
    ['none at all', () => undefined],
    ['headers, and no body', `${half}Content-Length: 15\r\n\r\n`],
    ['a byte now and then', drip],
    ['100 Continue for ever', (socket) => void repeat(socket, 'HTTP/1.1 103 Early Hints\r\n\r\n')],
  ])('is not waited for: %s', async (_, answer) => {
    const remote = await Hostile.listen({ posts: [answer], openapi })
    expect(await createAt(remote, ['--timeout', '1s'])).toEqual({
      code: 5,
      out: '',
      said: [late],
      requests: ['POST /plants'],
    })
  })

  test('is waited for when the time-out is longer than a timer of Node can be', async () => {
    const remote = await Hostile.listen({
      posts: [(socket) => void setImmediate(() => socket.write(json(200, plant)))],
    })
    expect(await createAt(remote, ['--timeout', '90d'])).toEqual({
      code: 0,
      out: '{"name":"Fern"}\n',
      said: [],
      requests: ['POST /plants'],
    })
  })
})

/** Sends a Plant so slowly that nobody waits for it. */
function drip(socket: Socket): void {
  const bytes = [...json(200, plant)]
  const timer = setInterval(() => socket.write(Buffer.from(bytes.splice(0, 1))), 100)
  socket.once('close', () => clearInterval(timer))
}

function repeat(socket: Socket, text: string): void {
  const timer = setInterval(() => socket.write(text), 20)
  socket.once('close', () => clearInterval(timer))
}

describe('what a remote says', () => {
  const location = http(302, '', { Location: 'http://example.com/\u009b31m\u202e' })
  const wild = '\u001b[2J\u001b]0;title\u0007\u202e\u009b31m\r\nplants: Planted Fern'

  test('cannot drive the terminal, whether it is a message, a header or a plant', async () => {
    for (const answer of [json(400, { error: 400, message: wild }), location, json(200, { name: wild, tag: wild })]) {
      const remote = await Hostile.listen({ posts: [answer] })
      const argv = ['create', '--id', '1', '--name', 'Fern', '--output', 'text', '--store', remote.url]
      const { out, err } = await runPlants(argv, { env: { PLANTS_TOKEN: token }, terminals: ['stdout', 'stderr'] })
      // biome's rule knows nothing of what a terminal does: SGR sequences are our own colours
      expect(`${out}${err}`.replaceAll(/\u001b\[\d+m/g, '')).not.toMatch(
        /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/,
      )
    }
  })

  test('is cut when it is long, but not within a character', async () => {
    const remote = await Hostile.listen({
      posts: [json(400, { error: 400, message: `${'x'.repeat(999)}${'\u{1f331}'.repeat(250_000)}` })],
    })
    const [error] = (await createAt(remote)).said as [{ message: string }]
    expect(error.message.length).toBeLessThan(2000)
    expect(error.message.isWellFormed()).toBe(true)
  })

  test.each<[string, Answer]>([
    ['an Error', json(400, { error: 400, message: `Bad token: ${token}` })],
    ['a refused token', json(401, { error: 401, message: `Bearer ${token} is not accepted` })],
    ['an Error of 500', json(500, { error: 500, message: `Bearer ${token}` })],
    ['an Error of 503', json(503, { error: 503, message: `Bearer ${token}` }, { 'Retry-After': 60 })],
    ['a redirect', http(302, '', { Location: `https://example.com/login?token=${token}` })],
    ['a media type', http(200, '{"name":"Fern"}', { 'Content-Type': `text/${token}` })],
    ['the name of the request', json(400, refusal, { 'Request-Id': token })],
  ])('is told without the token that it repeats: %s', async (_, answer) => {
    const remote = await Hostile.listen({ posts: [answer] })
    expect(JSON.stringify(await createAt(remote))).not.toContain(token)
  })

  test('says with which status it came, also to people', async () => {
    for (const status of [404, 500, 502]) {
      const remote = await Hostile.listen({
        posts: [json(status, { ...refusal, message: `No ferns at :1${status}2` })],
        openapi,
      })
      expect((await createAt(remote, ['--output', 'text'])).said[0]).toMatch(new RegExp(` \\(status ${status}\\)$`))
    }
  })
})

describe('a Plant', () => {
  test.each<[string, unknown, string]>([
    ['another name', { name: 'Moss' }, '{"name":"Moss"}'],
    ['another tag', { name: 'Fern', tag: 'sun' }, '{"name":"Fern","tag":"sun"}'],
    ['an empty tag', { tag: '', name: 'Fern' }, '{"name":"Fern","tag":""}'],
  ])('with %s is printed, with a warning', async (_, answer, out) => {
    const remote = await Hostile.listen({ posts: [json(200, answer)] })
    const warning = `The store returned a plant that differs from the one that was sent: ${out} instead of {"name":"Fern"}`
    expect(await createAt(remote)).toEqual({
      code: 0,
      out: `${out}\n`,
      said: [{ warning }],
      requests: ['POST /plants'],
    })
  })

  test.each<[string, Answer]>([
    ['with what else it has', json(200, { id: 1, name: 'Fern', more: [null] })],
    ['with a charset', http(200, '{"name":"Fern"}', { 'Content-Type': 'Application/JSON ; charset=utf-8' })],
    ['with spaces around it', json(200, ' \r\n{"name":"Fern"}\t')],
    ['of exactly 1 MiB', json(200, `{"name":"Fern"}${' '.repeat(1_048_561)}`)],
    [
      'in chunks',
      `${half}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\ne;x=y\r\n"name":"Fern"}\r\n0\r\nTrailer: 1\r\n\r\n`,
    ],
    ['up to the end of the connection', (socket) => void socket.end(`${half}\r\n{"name":"Fern"}`)],
    [
      'of HTTP/1.0',
      (socket) => void socket.end('HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{"name":"Fern"}'),
    ],
    ['in many pieces', (socket) => void pieces(socket)],
    ['after 100 Continue', `HTTP/1.1 100 Continue\r\n\r\n${json(200, plant)}`],
    [
      'after 102 and 103',
      `HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n${json(200, plant)}`,
    ],
    [
      'after 103 and 100',
      `HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n${json(200, plant)}`,
    ],
    ['after 100 without a reason', `HTTP/1.1 100\r\n\r\n${json(200, plant)}`],
    ['before another answer', `${json(200, plant)}${json(200, { name: 'Moss' })}`],
    ['before garbage', `${json(200, plant)}garbage`],
  ])('%s is an answer', async (_, answer) => {
    const remote = await Hostile.listen({ posts: [answer] })
    expect(await createAt(remote)).toEqual({ code: 0, out: '{"name":"Fern"}\n', said: [], requests: ['POST /plants'] })
  })

  function pieces(socket: Socket): void {
    socket.setNoDelay(true)
    const bytes = [...json(200, plant)]
    const more = () =>
      void (bytes.length > 0 && socket.write(Buffer.from(bytes.splice(0, 7)), () => setImmediate(more)))
    more()
  }
})

describe('an answer that comes before the whole plant was sent', () => {
  const tooLarge = json(413, { error: 413, message: 'Too large' })
  const hint = 'Shorten the name or tag'

  test.each<[string, (socket: Socket) => void]>([
    ['goes on reading', (socket) => void socket.write(tooLarge)],
    ['reads no more', (socket) => void socket.pause().write(tooLarge)],
    ['says no more', (socket) => void socket.end(tooLarge)],
  ])('is one, when the service %s', async (_, then) => {
    const remote = await Hostile.listen({ onConnect: (socket) => socket.once('data', () => then(socket)) })
    const stdin = JSON.stringify({ id: 1, name: 'F'.repeat(1_048_000) })
    const argv = ['create', '--output', 'json', '--timeout', '5s', '--store', remote.url]
    const { code, out, err } = await runPlants(argv, { stdin, env: { PLANTS_TOKEN: token } })
    expect({ code, out, error: JSON.parse(err) }).toEqual({
      code: 1,
      out: '',
      error: { error: 413, message: 'Too large', hint, status: 413 },
    })
  })
})

describe('a connection that ends before anything is answered', () => {
  test.each<[string, (socket: Socket) => void]>([
    ['is closed', (socket) => void socket.destroy()],
    ['is closed on one side', (socket) => void socket.end()],
  ])('may have brought the plant when it %s', async (_, onConnect) => {
    const remote = await Hostile.listen({ onConnect })
    const { code, out, said } = await createAt(remote, ['--timeout', '1s'])
    expect({ code, out }).toEqual({ code: 5, out: '' })
    const message = 'URL received the request, but did not answer: the connection was closed'
    expect(said).toMatchObject([{ warning: `${message}. Trying again for up to 1 s` }, { error: 504, message }])
  })

  test('is said to be reset, whether the plant was on its way or not', async () => {
    const remote = await Hostile.listen({ onConnect: (socket) => void socket.resetAndDestroy() })
    const { code, out, said } = await createAt(remote, ['--timeout', '1s'])
    expect({ code, out }).toEqual({ code: expect.toSatisfy((exit) => exit === 4 || exit === 5), out: '' })
    expect(said.at(-1)).toMatchObject({
      error: code === 4 ? 503 : 504,
      message: expect.stringContaining('the connection was reset'),
    })
  })
})
