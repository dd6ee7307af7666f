import { expect, test } from 'vitest'
import { type Answer, Hostile, http, json } from '../../helpers/hostile.js'
import { everyWay, savedAt } from '../../helpers/redacting.js'
import { World } from '../../helpers/world.js'

const token = 's3cret-Of/one+address~s3cret=='
const error = (status: number, message: string, headers: Record<string, string> = {}) =>
  json(status, { error: status, message }, headers)
const redirect = (location: string) => http(302, '', { Location: `https://example.com/${location}` })
const typed = (type: string, body = '{}') => http(200, body, { 'Content-Type': type })

const inMessage: [string, Answer] = ['in its message', error(400, `Bad: ${token}`)]
const inRedirect: [string, Answer] = ['in a redirect', redirect(`login?token=${token}`)]
const headers = { 'X-Debug': `Bearer ${token}`, 'Set-Cookie': `token=${token}`, 'Request-Id': token }
const inHeaders: [string, Answer] = ['in its headers', error(422, 'No', headers)]

const create = 'create --id 1 --name Fern'

test.each<[string, Answer]>([
  inMessage,
  ['in its message of 401', error(401, `Bearer ${token} is not accepted`)],
  ['in its message of 409', json(400, { error: 409, message: `"${token}" is taken` })],
  ['in its message of 503', error(503, token, { 'Retry-After': '60' })],
  ['in its message, which is cut within it', error(400, `${'x'.repeat(990)}${token}`)],
  ['in its message, twice and in another text', error(400, `${token}${token}x${token}`)],
  ['in its message, with lines', error(400, `first\n${token}\r\nthird`)],
  ['in its other request id', error(401, 'No', { 'X-Request-Id': `id-${token}` })],
  inHeaders,
  inRedirect,
  ['in a redirect that is cut within it', redirect(`${'x'.repeat(270)}${token}`)],
  ['in its media type', typed(`text/${token}`)],
  ['in its media type, which is cut within it', typed(`text/${'x'.repeat(62)}${token}`)],
  ['in its status line', `HTTP/1.1 400 ${token}\r\nContent-Length: 0\r\n\r\n`],
  ['in no HTTP', (socket) => void socket.end(`${token}\r\n`)],
  ['in half an answer', (socket) => void socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n${token}`)],
  ['in an answer that is longer than is read', typed('application/json', token.repeat(50_000))],
])('a token that a service repeats is not shown: %s', async (_, answer) => {
  const { url } = await Hostile.listen({ posts: [answer] })
  const store = `--store ${url} --timeout 300ms`
  for (const line of [create, 'doctor'])
    await everyWay(new World(), `${line} ${store}`, { env: { PLANTS_TOKEN: token } })
  await everyWay(new World(), `auth login --with-token ${store}`, { stdin: token })
})

test.each([inMessage, inHeaders, inRedirect])('nor one from the settings or a command: %s', async (_, answer) => {
  const { url } = await Hostile.listen({ posts: [answer] })
  const user = new World()
  user.write('token.txt', token)
  const team = { address: url, 'token-command': `cat ${user.home}/token.txt` }
  user.save({ stores: { team }, tokens: { [url]: { token, savedAt } } })
  for (const store of ['team', url])
    for (const line of [create, 'doctor']) await everyWay(user, `${line} --timeout 300ms --store ${store}`)
})

const percent = (text: string) => encodeURIComponent(text).replaceAll('~', '%7E')

test.each<[string, (text: string) => string]>([
  ['as it is', String],
  ['percent-encoded', percent],
  ['percent-encoded in small letters', (text) => percent(text).replaceAll(/%../g, (code) => code.toLowerCase())],
  ['with escapes of JSON', (text) => text.replaceAll('/', '\\/')],
])('nor one %s, in a redirect, a message and a header', async (_, encode) => {
  // The first characters are escaped, too; the last one is as long as a token of this program.
  for (const secret of [token, 'ab/cd+ef-s3cret/s3cret==', `${'x/'.repeat(30)}s3cret`]) {
    const text = encode(secret)
    for (const answer of [
      redirect(`login?token=${text}&next=/`),
      error(400, `Bad: ${text}`, { 'X-Token': text, 'Request-Id': text }),
      error(400, `Bad: ${text.slice(0, -3)}`),
    ]) {
      const { url } = await Hostile.listen({ posts: [answer] })
      const shown = await everyWay(new World(), `${create} --store ${url}`, { env: { PLANTS_TOKEN: secret } })
      // twice as what was sent, and each time that it was repeated
      expect(shown.match(/\*\*\*/g)?.length).toBeGreaterThanOrEqual(4)
      expect(shown).not.toContain(text.slice(-14, -3))
    }
  }
})

test('a *** stands for a token in traces, also in the name of a header', async () => {
  const secret = 's3cret-of-one-address-s3cret'
  const fields = { 'X-Debug': `<${secret}>`, [`X-${secret}`]: '1' }
  const { url } = await Hostile.listen({ posts: [json(200, { name: 'Fern' }, fields)] })
  const shown = await everyWay(new World(), `${create} --store ${url}`, { env: { PLANTS_TOKEN: secret } })
  for (const line of ['> authorization: Bearer ***', '< x-debug: <***>', '< x-***: 1'])
    expect(shown.split('\n')).toEqual(expect.arrayContaining([line, JSON.stringify({ verbose: line })]))
})

test('a *** stands for a token in the warning of a plant that differs', async () => {
  const { url } = await Hostile.listen({ posts: [json(200, { name: token, tag: token })] })
  const options = { env: { PLANTS_TOKEN: token }, mayShowSecrets: true }
  const { code, err } = await new World().run(`${create} --store ${url}`, options)
  expect({ code, err }).toEqual({
    code: 0,
    err: expect.stringMatching(/The store returned a plant that differs.*\*\*\*/),
  })
  expect(err).not.toContain('s3cret')
})
