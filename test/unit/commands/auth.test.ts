import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { version } from '../../../package.json'
import { type Answer, closedPort, Hostile, json } from '../../helpers/hostile.js'
import { objectsOf } from '../../helpers/json-lines.js'
import { ownService, token as ownToken } from '../../helpers/remote.js'
import type { Result } from '../../helpers/run.js'
import { modeOf } from '../../helpers/settings-file.js'
import { answer, printed, refusal, World } from '../../helpers/world.js'

// What these commands print without a service is in transcripts/auth.txt.

const store = 'https://plants.example.com'
const token = 'plants_s3cret-Token~+/='
const savedAt = '2026-01-02T03:04:05.678Z'
const aTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const insufficientScope = { 'WWW-Authenticate': 'Bearer error="insufficient_scope"' }
let user: World

beforeEach(() => {
  user = new World()
})

/** A service that accepts every token: it answers an empty object with what a plant needs. */
const accepting = () =>
  Hostile.listen({ posts: [json(400, { error: 422, message: 'id must be an integer, but is missing' })] })

function login(address: string, stdin: string | Uint8Array = token): Promise<Result> {
  return user.run(`auth login --from-stdin --output ndjson --store ${address}`, { stdin })
}

/** The objects in a result; the address of a service is URL in them. */
function read({ code, out, err }: Result, url = 'no url') {
  const objects = (text: string) => (text === '' ? [] : objectsOf(text.replaceAll(url, 'URL')))
  return { code, out: objects(out), err: objects(err) }
}

// Other fields of the file are kept: unit/config.
describe('login saves a token', () => {
  test('of 4096 characters between spaces, for its owner alone, and asks the service once', async () => {
    const longest = 's3cret'.padEnd(4096, 'x')
    const remote = await accepting()
    const address = `${remote.url}/v1`
    expect(read(await login(address, `\ufeff\n  ${longest}\t\r\n\r\n`))).toEqual({
      code: 0,
      out: [{ store: address, address, source: 'file', savedAt: aTime, checked: true }],
      err: [],
    })
    expect(user.saved).toEqual({ version: 1, tokens: { [address]: { token: longest, savedAt: aTime } } })
    expect(readdirSync(user.config)).toEqual(['settings.json'])
    expect([modeOf(user.config), modeOf(user.file)]).toEqual(['700', '600'])
    const headers = {
      accept: 'application/json',
      authorization: `Bearer ${longest}`,
      connection: 'keep-alive',
      'content-length': '2',
      'content-type': 'application/json',
      host: `127.0.0.1:${remote.port}`,
      'user-agent': `plants/${version}`,
    }
    expect(remote.requests).toEqual([{ line: 'POST /v1/plants', headers, body: '{}' }])
  })

  test('for the address of a name, and says that PLANTS_TOKEN takes precedence', async () => {
    const remote = await accepting()
    const address = `${remote.url}/v1`
    await user.run(`stores add team ${address}/`)
    const options = { stdin: token, env: { PLANTS_TOKEN: 's3cret-of-env' } }
    expect(await user.run('auth login --with-token --output text --store team', options)).toEqual({
      ...printed(`Saved the token for team (${address}), which accepts it\n`),
      err: 'plants: PLANTS_TOKEN is still set, and takes precedence\n',
    })
    expect(user.saved).toMatchObject({ tokens: { [address]: { token } } })
    expect(remote.posts[0]?.headers).toMatchObject({ authorization: `Bearer ${token}` })
  })

  test('that the own service accepts, where no plant is created', async () => {
    const url = await ownService({ host: '127.0.0.1', port: 0 }, join(user.home, 'plants.db'), '/v1')
    expect(read(await login(url, ownToken))).toMatchObject({ code: 0, out: [{ store: url, checked: true }], err: [] })
    const message = `${url} does not accept this token: This token is not accepted`
    const err = [{ error: 401, message, status: 400 }]
    expect(read(await login(url, 's3cret-other'))).toMatchObject({ code: 3, out: [], err })
    expect(user.saved).toMatchObject({ tokens: { [url]: { token: ownToken } } })
    expect(await user.run('list --store ./plants.db')).toEqual(printed(''))
    expect(await user.run(`create --id 1 --name Fern --store ${url}`)).toEqual(answer({ name: 'Fern' }))
  })

  // The specification does not say what values of `error` mean.
  test.each<[string, Answer]>([
    ['an error of its own', json(400, { error: 1001, message: 'Invalid plant' })],
    ['400', json(400, { error: 400, message: 'The body is not a plant' })],
    ['409, as a mock does', json(400, { error: 409, message: 'A plant with id 1 already exists' })],
    ['a missing right', json(400, { error: 403, message: 'Not you' }, insufficientScope)],
    ['a missing right, and the status 403', json(403, { error: 403, message: 'Not you' }, insufficientScope)],
  ])('that a service accepts, which answers %s', async (_, posts) => {
    const remote = await Hostile.listen({ posts: [posts] })
    const { code, out, err } = read(await login(remote.url), remote.url)
    expect({ code, out, err }).toMatchObject({ code: 0, out: [{ checked: true }], err: [] })
  })

  const unchecked = 'The token is saved, but could not be checked'

  // More answers: conformance/stores/remote.
  test.each<[string, Answer, string]>([
    [
      '404',
      json(404, { error: 404, message: 'Not here' }),
      'Not here. Is the address right? It is the base URL: the part before /plants',
    ],
    ['a Plant', json(200, { name: 'Fern' }), 'URL answered 200 to an empty object'],
    ['422', json(422, { error: 422, message: 'No plant' }), 'No plant. This message is from URL'],
    ['400 without an Error', json(400, { detail: 'No plant' }), 'URL answered 400: {"detail":"No plant"}'],
    ['503', json(503, { error: 503, message: 'Not now' }, { 'Retry-After': 60 }), 'Not now'],
    ['nothing', () => undefined, 'URL received the request, but did not answer: it timed out'],
  ])('with a warning when the service answers %s', async (_, posts, why) => {
    const remote = await Hostile.listen({ posts: [posts] })
    const { code, out, err } = read(await login(`${remote.url} --timeout 1s`), remote.url)
    const saved = { store: 'URL', address: 'URL', source: 'file', savedAt: aTime, checked: false }
    expect([code, out]).toEqual([0, [saved]])
    expect(err).toEqual([{ warning: expect.stringContaining(`${unchecked}: ${why}`) }])
    expect(user.saved).toMatchObject({ tokens: { [remote.url]: { token } } })
    expect(remote.lines).toEqual(['POST /plants'])
  })

  test('with a warning when the connection is refused', async () => {
    const url = `http://127.0.0.1:${closedPort}`
    const warning = `${unchecked}: Could not reach ${url}: the connection was refused`
    expect(read(await login(url))).toMatchObject({ code: 0, out: [{ checked: false }], err: [{ warning }] })
  })
})

describe('login saves nothing', () => {
  test.each<[string, Answer, Record<string, unknown>]>([
    ['403', json(403, { error: 403, message: 'No' }), { error: 403, message: 'No', status: 403 }],
    ['400 with the error 401', json(400, { error: 401, message: 'Wrong' }), { message: 'Wrong', status: 400 }],
    ['400 with the error 403', json(400, { error: 403, message: 'No' }), { error: 403, message: 'No', status: 400 }],
    [
      '401 and a missing right',
      json(400, { error: 401, message: 'Wrong' }, insufficientScope),
      { message: 'Wrong', status: 400 },
    ],
    ['401 with the token', json(401, { error: 401, message: token }), { message: '***', status: 401 }],
  ])('when the service answers %s', async (_, posts, { message, ...fields }) => {
    const remote = await Hostile.listen({ posts: [posts] })
    const hint = 'Nothing was saved. Copy it again, or ask for a new one'
    expect(read(await login(remote.url), remote.url)).toEqual({
      code: 3,
      out: [],
      err: [{ error: 401, hint, message: `URL does not accept this token: ${message}`, ...fields }],
    })
    expect(user.has('config')).toBe(false)
    const tokens = { [remote.url]: { token: 'old', savedAt } }
    user.save({ tokens })
    expect((await login(remote.url)).code).toBe(3)
    expect(user.saved).toEqual({ version: 1, tokens })
  })

  const notOne =
    'The token on stdin contains a space, a line break or another invalid character. A token consists of letters, digits and -._~+/='
  const again = 'Copy the token again, without any other text'

  test.each<[stdin: string | Uint8Array, message: string, hint?: string]>([
    [' \r\n\t', 'The token on stdin is empty'],
    ...['s3cret\ns3cret', 's3=cret', '=='].map((text): [string, string] => [text, notOne]),
    ['s3cret'.repeat(683), 'The token on stdin is longer than 4096 characters'],
    ['s3cret'.repeat(500_000), 'Stdin is larger than 1 MiB (1048576 bytes)', 'Pipe nothing but the token to stdin'],
    [Buffer.from('s3cret\xff\xfe', 'latin1'), 'Stdin is not UTF-8', 'Convert it from its encoding to UTF-8 first'],
  ])('and asks nothing for a text that is no token: %#', async (stdin, message, hint = again) => {
    const remote = await accepting()
    const result = await user.run(`auth login --with-token --store ${remote.url}`, { stdin })
    expect(result).toEqual(refusal(message, hint))
    expect([user.has('config'), remote.connections]).toEqual([false, 0])
  })
})

test('a saved token is sent only when it can be one', async () => {
  const remote = await accepting()
  user.save({
    stores: { team: { address: remote.url } },
    tokens: { [remote.url]: { token: 's3cret\r\nX: b', savedAt } },
  })
  const err = expect.stringMatching(/^plants: The saved token contains a space, a line break/)
  expect(await user.run('create --id 1 --name Fern --store team')).toMatchObject({ code: 2, err })
  expect(remote.connections).toBe(0)
})

test.each([
  ['text', ''],
  ['json', '[\n]\n'],
])('status --output %s shows no token in the place of an address, or in one', async (output, out) => {
  const entry = { token, savedAt }
  const misplaced = { 's3cret-as-a-key': { token: 'https://x.example', savedAt }, 's3cret/key': entry }
  user.save({ tokens: misplaced })
  const err = expect.stringContaining('No token is saved')
  expect(await user.run(`auth status --output ${output}`)).toMatchObject({ code: 3, out, err })
  user.save({ tokens: { ...misplaced, [store]: entry, 'https://me:s3cret@x.example': entry, 'https:s3cret': entry } })
  expect((await user.run(`auth status --output ${output}`)).code).toBe(0) // it fails by itself when it shows a token
  user.save({ tokens: { ...misplaced, [store]: entry } })
  expect((await user.run('auth status --output text')).out.split('\n')).toHaveLength(2)
})
