import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { version } from '../../../package.json'
import { type Answer, closedPort, Hostile, http, json } from '../../helpers/hostile.js'
import { objectsOf } from '../../helpers/json-lines.js'
import { ownService, token as ownToken, socketPath } from '../../helpers/remote.js'
import type { Result } from '../../helpers/run.js'
import { modeOf } from '../../helpers/settings-file.js'
import { answer, printed, refusal, World } from '../../helpers/world.js'

// What these commands print without a service is in transcripts/auth.txt.

const store = 'https://plants.example.com'
const token = 'plants_s3cret-Token~+/='
const savedAt = '2026-01-02T03:04:05.678Z'
const aTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
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
  test('between spaces and line breaks, for its owner alone', async () => {
    const { url } = await accepting()
    expect(read(await login(url, `\ufeff\n  ${token}\t\r\n\r\n`))).toEqual({
      code: 0,
      out: [{ store: url, address: url, source: 'file', savedAt: aTime, checked: true }],
      err: [],
    })
    expect(user.saved).toEqual({ version: 1, tokens: { [url]: { token, savedAt: aTime } } })
    expect(readdirSync(user.config)).toEqual(['settings.json'])
    expect([modeOf(user.config), modeOf(user.file)]).toEqual(['700', '600'])
  })

  test('of 4096 characters, of which the service is asked once, with an empty object', async () => {
    const longest = 's3cret'.padEnd(4096, 'x')
    const remote = await accepting()
    expect((await login(`${remote.url}/v1`, longest)).code).toBe(0)
    expect(user.saved).toMatchObject({ tokens: { [`${remote.url}/v1`]: { token: longest } } })
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

  test('for the address of a name, and says so', async () => {
    const { url } = await accepting()
    await user.run(`stores add team ${url}/v1/`)
    expect(await user.run('auth login --with-token --output text --store team', { stdin: token })).toEqual(
      printed(`Saved the token for team (${url}/v1), which accepts it\n`),
    )
    expect(user.saved).toMatchObject({ tokens: { [`${url}/v1`]: { token } } })
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

  test.each([
    ['s3cret-of-env', 'plants: PLANTS_TOKEN is still set, and takes precedence\n'],
    [' ', ''],
  ])('and warns that PLANTS_TOKEN takes precedence, unless it is empty: %j', async (PLANTS_TOKEN, err) => {
    const remote = await accepting()
    const options = { stdin: token, env: { PLANTS_TOKEN } }
    const result = await user.run(`auth login --with-token --output text --store ${remote.url}`, options)
    expect(result).toEqual({ ...printed(`Saved the token for ${remote.url}, which accepts it\n`), err })
    expect(remote.posts[0]?.headers).toMatchObject({ authorization: `Bearer ${token}` })
  })

  const unchecked = 'The token is saved, but could not be checked'

  // More answers: conformance/stores/remote.
  test.each<[string, Answer, string]>([
    [
      '404',
      json(404, { error: 404, message: 'Not here' }),
      'Not here. Is the address right? It is the base URL: the part before /plants',
    ],
    ['405', http(405), 'URL answered 405 with nothing. Is the address right?'],
    ['a Plant', json(200, { name: 'Fern' }), 'URL answered 200 to an empty object'],
    ['500', json(500, { error: 500, message: 'Oops' }), 'URL failed: Oops'],
    ['503', json(503, { error: 503, message: 'Not now' }, { 'Retry-After': 60 }), 'Not now'],
    ['400 with invalid JSON', json(400, '{"error":4'), 'URL answered 400 with invalid JSON'],
    ['nothing', () => undefined, 'URL received the request, but did not answer: the request timed out'],
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
    const socket = `unix:${socketPath()}`
    expect(read(await login(socket))).toMatchObject({ code: 0, out: [{ store: socket, checked: false }] })
  })
})

describe('login saves nothing', () => {
  test.each<[string, Answer, Record<string, unknown>]>([
    ['401', http(401), { message: 'URL answered 401 with nothing', status: 401 }],
    ['403', json(403, { error: 403, message: 'No' }), { error: 403, message: 'No', status: 403 }],
    ['400 with the error 401', json(400, { error: 401, message: 'Wrong' }), { message: 'Wrong', status: 400 }],
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
    ...['s3cret\ns3cret', 's3cret\0', 's3cr\u00e9t', 's3cret:x', 's3=cret', '=='].map((text): [string, string] => [
      text,
      notOne,
    ]),
    ['s3cret'.repeat(683), 'The token on stdin is longer than 4096 characters'],
    ['s3cret'.repeat(500_000), 'Stdin is larger than 1 MiB (1048576 bytes)', 'Pipe nothing but the token to stdin'],
    [Buffer.from('s3cret\xff\xfe', 'latin1'), 'Stdin is not UTF-8', 'Convert it from its encoding to UTF-8 first'],
  ])('and asks nothing for a text that is no token: %#', async (stdin, message, hint = again) => {
    const remote = await accepting()
    const result = await user.run(`auth login --with-token --store ${remote.url}`, { stdin })
    expect(result).toEqual(refusal(message, hint))
    expect([user.has('config'), remote.connections]).toEqual([false, 0])
  })

  test('for a store with a token command, which is not run', async () => {
    const remote = await accepting()
    user.save({ stores: { team: { address: remote.url, 'token-command': `touch ${user.home}/ran` } } })
    expect((await login('team')).code).toBe(2)
    expect([remote.connections, user.has('ran')]).toEqual([0, false])
    expect((await login(remote.url)).code).toBe(0)
  })
})

describe('a token is sent', () => {
  const fern = 'create --id 1 --name Fern --store team'

  test('from PLANTS_TOKEN, when it is set, whatever is saved, below the path of the store', async () => {
    const remote = await Hostile.listen({ posts: [json(200, { name: 'Fern' })] })
    const address = `${remote.url}/v1`
    user.save({ stores: { team: { address } }, tokens: { [address]: { token, savedAt } } })
    const env = { PLANTS_TOKEN: 's3cret-of-env' }
    expect(await user.run(fern, { env })).toEqual(answer({ name: 'Fern' }))
    const sent = remote.posts.map(({ line, headers }) => [line, headers['authorization']])
    expect(sent).toEqual([['POST /v1/plants', 'Bearer s3cret-of-env']])
  })

  test('only when it can be one, also from the file', async () => {
    const remote = await accepting()
    user.save({
      stores: { team: { address: remote.url } },
      tokens: { [remote.url]: { token: 's3cret\r\nX: b', savedAt } },
    })
    const err = expect.stringMatching(/^plants: The saved token contains a space, a line break/)
    expect([await user.run(fern), remote.connections]).toMatchObject([{ code: 2, err }, 0])
  })
})

describe('status shows no token', () => {
  const entry = { token, savedAt }

  test.each([
    ['text', ''],
    ['json', '[\n]\n'],
  ])('that stands where an address should: --output %s', async (output, out) => {
    const misplaced = {
      's3cret-as-a-key': { token: 'https://x.example', savedAt },
      's3cret/key': { token: 'x', savedAt },
    }
    user.save({ tokens: misplaced })
    const err = expect.stringContaining('No token is saved')
    expect(await user.run(`auth status --output ${output}`)).toMatchObject({ code: 3, out, err })
    user.save({ tokens: { ...misplaced, [store]: entry } })
    expect((await user.run('auth status --output text')).out.split('\n')).toHaveLength(2)
  })

  test('that stands in an address', async () => {
    user.save({ tokens: { [store]: entry, 'https://me:s3cret@x.example': entry, 'https:s3cret': entry } })
    for (const output of ['text', 'json']) expect((await user.run(`auth status --output ${output}`)).code).toBe(0)
  })
})

test('settings that are broken are left as they are, and are not shown', async () => {
  const text = `{"version":1,"tokens":{"${store}":{"token":["${token}"],"savedAt":""}}}`
  user.save(text)
  const why = 'tokens.https://plants.example.com.token must be a string'
  const expected = refusal(`The settings in ${user.file} are invalid: ${why}`, 'Fix the file, or move it away')
  for (const verb of ['status', 'logout', 'token', 'login --with-token'])
    expect(await user.run(`auth ${verb} --store ${store}`, { stdin: 's3cret-another' })).toEqual(expected)
  expect(await user.run('auth status', { env: { PLANTS_TOKEN: token } })).toEqual(expected)
  expect(user.read('config/settings.json')).toBe(text)
})
