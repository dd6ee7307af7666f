import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { type Answer, Hostile, http, json, jsonHead } from '../../../helpers/hostile.js'
import { createAt, created, howToRepeat, keyless, token } from '../../../helpers/remote.js'
import { runPlants } from '../../../helpers/run.js'

const fern = '{"name":"Fern"}'
const plant = json(200, fern)

describe('an answer that does not come in time', () => {
  const message = 'URL received the request, but did not answer: the request timed out'

  test.each<[string, Answer]>([
    ['none at all', () => undefined],
    ['headers without a body', `${jsonHead}Content-Length: 15\r\n\r\n`],
    [
      'a byte now and then',
      trickle(
        [...plant].map((byte) => Buffer.from([byte])),
        100,
      ),
    ],
    ['endless 103 Early Hints', trickle(Array(50).fill('HTTP/1.1 103 Early Hints\r\n\r\n'), 20)],
  ])('is not waited for: %s', async (_, answer) => {
    const remote = await Hostile.listen({ posts: [answer], openapi: keyless })
    const said = [{ error: 504, message, hint: howToRepeat.unasked }]
    expect(await createAt(remote, ['--timeout', '1s'])).toEqual({ ...created, code: 5, out: '', said })
  })

  test('is waited for when the timeout is longer than a timer of Node can be', async () => {
    const remote = await Hostile.listen({ posts: [(socket) => void setImmediate(() => socket.write(plant))] })
    expect(await createAt(remote, ['--timeout', '90d'])).toEqual(created)
  })
})

/** Sends one after the other, so slowly that nobody waits for the last. */
function trickle(parts: (string | Buffer)[], interval: number): Answer {
  return (socket) => {
    const timer = setInterval(() => socket.write(parts.shift() ?? ''), interval)
    socket.once('close', () => clearInterval(timer))
  }
}

describe('the text of a remote', () => {
  const location = http(302, '', { Location: 'http://example.com/\u009b31m\u202e' })
  const wild = '\u001b[2J\u001b]0;title\u0007\u202e\u009b31m\r\nplants: Planted Fern'

  test.each<[string, Answer]>([
    ['a message', json(400, { error: 400, message: wild })],
    ['a header', location],
    ['a plant', json(200, { name: wild, tag: wild })],
  ])('cannot drive the terminal: %s', async (_, answer) => {
    const remote = await Hostile.listen({ posts: [answer] })
    const argv = ['create', '--id', '1', '--name', 'Fern', '--output', 'text', '--store', remote.url]
    const { out, err } = await runPlants(argv, { env: { PLANTS_TOKEN: token }, terminals: ['stdout', 'stderr'] })
    // SGR sequences are our own colours
    expect(`${out}${err}`.replaceAll(/\u001b\[\d+m/g, '')).not.toMatch(
      /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/,
    )
  })

  test('is cut when it is long, but not within a character', async () => {
    const message = `${'x'.repeat(999)}${'\u{1f331}'.repeat(250_000)}`
    const remote = await Hostile.listen({ posts: [json(400, { error: 400, message })] })
    const [error] = (await createAt(remote)).said as [{ message: string }]
    expect(error.message.length).toBeLessThan(2000)
    expect(error.message.isWellFormed()).toBe(true)
  })

  test.each<[string, Answer]>([
    ['an Error', json(400, { error: 400, message: `Bad token: ${token}` })],
    ['an Error of 401', json(401, { error: 401, message: `Bearer ${token} is not accepted` })],
    ['an Error of 500', json(500, { error: 500, message: `Bearer ${token}` })],
    ['an Error of 503', json(503, { error: 503, message: `Bearer ${token}` }, { 'Retry-After': 60 })],
    ['a redirect', http(302, '', { Location: `https://example.com/login?token=${token}` })],
    ['a media type', http(200, fern, { 'Content-Type': `text/${token}` })],
    ['the id of the request', json(400, { error: 409, message: 'No' }, { 'Request-Id': token })],
  ])('is printed without the token: %s', async (_, answer) => {
    const remote = await Hostile.listen({ posts: [answer] })
    expect(JSON.stringify(await createAt(remote))).not.toContain(token)
  })

  test.each([404, 500])('is followed by the status %i for people', async (status) => {
    const posts = [json(status, { error: 409, message: `No ferns at :1${status}2` })]
    const remote = await Hostile.listen({ posts, openapi: keyless })
    expect((await createAt(remote, ['--output', 'text'])).said[0]).toMatch(new RegExp(` \\(status ${status}\\)$`))
  })
})

describe('a Plant', () => {
  test.each([
    ['another name', '{"name":"Moss"}', '{"name":"Moss"}'],
    ['another tag', '{"name":"Fern","tag":"sun"}', '{"name":"Fern","tag":"sun"}'],
    ['an empty tag', '{"tag":"","name":"Fern"}', '{"name":"Fern","tag":""}'],
  ])('with %s is printed with a warning', async (_, answer, out) => {
    const remote = await Hostile.listen({ posts: [json(200, answer)] })
    const warning = `The store returned a plant that differs from the one that was sent: ${out} instead of ${fern}`
    expect(await createAt(remote)).toEqual({ ...created, out: `${out}\n`, said: [{ warning }] })
  })

  const continued = 'HTTP/1.1 100 Continue\r\n\r\n'
  const hinted = 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n'

  test.each<[string, Answer]>([
    ['with other fields', json(200, { id: 1, name: 'Fern', more: [null] })],
    ['with a charset', http(200, fern, { 'Content-Type': 'Application/JSON ; charset=utf-8' })],
    ['with spaces around it', json(200, ` \r\n${fern}\t`)],
    ['of exactly 1 MiB', json(200, fern + ' '.repeat(1_048_561))],
    [
      'in chunks',
      `${jsonHead}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\ne;x=y\r\n"name":"Fern"}\r\n0\r\nTrailer: 1\r\n\r\n`,
    ],
    ['until the end of the connection', (socket) => void socket.end(`${jsonHead}\r\n${fern}`)],
    ['of HTTP/1.0', (socket) => void socket.end(`${jsonHead.replace('1.1', '1.0')}\r\n${fern}`)],
    ['in many pieces', pieces],
    ['after 102, 103 and 100', `HTTP/1.1 102 Processing\r\n\r\n${hinted}${continued}${plant}`],
    ['after 100 without a reason', `HTTP/1.1 100\r\n\r\n${plant}`],
    ['before another answer', `${plant}${json(200, { name: 'Moss' })}`],
    ['before garbage', `${plant}garbage`],
  ])('is accepted %s', async (_, answer) => {
    const remote = await Hostile.listen({ posts: [answer] })
    expect(await createAt(remote)).toEqual(created)
  })

  function pieces(socket: Socket): void {
    socket.setNoDelay(true)
    const bytes = [...plant]
    const more = () =>
      void (bytes.length > 0 && socket.write(Buffer.from(bytes.splice(0, 7)), () => setImmediate(more)))
    more()
  }
})

const tooLarge = json(413, { error: 413, message: 'Too large' })

test.each<[string, (socket: Socket) => void]>([
  ['goes on reading', (socket) => void socket.write(tooLarge)],
  ['stops reading', (socket) => void socket.pause().write(tooLarge)],
  ['closes its side', (socket) => void socket.end(tooLarge)],
])('an answer counts before the whole plant was sent, when the service %s', async (_, then) => {
  const remote = await Hostile.listen({ onConnect: (socket) => socket.once('data', () => then(socket)) })
  const stdin = JSON.stringify({ id: 1, name: 'F'.repeat(1_048_000) })
  const argv = ['create', '--output', 'json', '--timeout', '5s', '--store', remote.url]
  const { code, err } = await runPlants(argv, { stdin, env: { PLANTS_TOKEN: token } })
  expect({ code, error: JSON.parse(err) }).toMatchObject({ code: 1, error: { error: 413, message: 'Too large' } })
})

describe('a connection that ends before any answer', () => {
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

  test('is reported as reset, whether the plant was on its way or not', async () => {
    const remote = await Hostile.listen({ onConnect: (socket) => void socket.resetAndDestroy() })
    const { code, said } = await createAt(remote, ['--timeout', '1s'])
    const error = { 4: 503, 5: 504 }[code] ?? 'none'
    expect(said.at(-1)).toMatchObject({ error, message: expect.stringContaining('the connection was reset') })
  })
})
