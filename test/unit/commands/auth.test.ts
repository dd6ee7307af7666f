import { readdirSync } from 'node:fs'
import { beforeEach, describe, expect, test } from 'vitest'
import { type Answer, Hostile, json } from '../../helpers/hostile.js'
import type { Result, RunOptions } from '../../helpers/run.js'
import { settableTime } from '../../helpers/time.js'
import { isWindows, modeOf, objectsOf, printed, refusal, World } from '../../helpers/world.js'

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
  Hostile.listen({
    posts: [
      json(400, {
        error: 422,
        message:
          'id must be an integer from -9223372036854775808 to 9223372036854775807, but is missing',
      }),
    ],
  })

function login(
  address: string,
  stdin: string | Uint8Array = token,
  options: Pick<RunOptions, 'now'> = {},
): Promise<Result> {
  return user.run(`auth login --from-stdin --output ndjson --store ${address}`, {
    ...options,
    stdin,
  })
}

/** The objects in a result; the address of a service is URL in them. */
function read({ code, out, err }: Result, url = 'no url') {
  const objects = (text: string) => (text === '' ? [] : objectsOf(text.replaceAll(url, 'URL')))
  return { code, out: objects(out), err: objects(err) }
}

// Other fields of the file are kept: unit/config.
describe('login saves a token', () => {
  test.skipIf(isWindows)(
    'of 4096 characters between spaces, for its owner alone, and asks the service (needs modes)',
    async () => {
      const longest = 's3cret'.padEnd(4096, 'x')
      const service = await accepting()
      const address = `${service.url}/v1`
      expect(read(await login(address, `\ufeff\n  ${longest}\t\r\n\r\n`))).toEqual({
        code: 0,
        out: [{ store: address, address, source: 'file', savedAt: aTime, checked: true }],
        err: [],
      })
      expect(user.saved).toEqual({
        version: 1,
        tokens: { [address]: { token: longest, savedAt: aTime } },
      })
      expect(readdirSync(user.config)).toEqual(['settings.json', 'settings.json.lock'])
      expect([modeOf(user.config), modeOf(user.file)]).toEqual(['700', '600'])
      const headers = expect.objectContaining({ authorization: `Bearer ${longest}` })
      expect(service.requests).toEqual([{ line: 'POST /v1/plants', headers, body: '{}' }])
    },
  )

  test('for the address of a name, and says that PLANTS_TOKEN takes precedence', async () => {
    const service = await accepting()
    const address = `${service.url}/v1`
    await user.run(`stores add team ${address}/`)
    const options = { stdin: token, env: { PLANTS_TOKEN: 's3cret-of-env' } }
    expect(await user.run('auth login --from-stdin --output text --store team', options)).toEqual({
      ...printed(`Saved the token for ${address}, which accepts it\n`),
      err: 'plants: PLANTS_TOKEN is still set, and takes precedence\n',
    })
    expect(service.posts[0]?.headers).toMatchObject({ authorization: `Bearer ${token}` })
  })

  // The specification does not say what values of `error` mean.
  test.each<[string, Answer]>([
    ['an error of its own', json(400, { error: 1001, message: 'Invalid plant' })],
    ['a missing right', json(400, { error: 403, message: 'Not you' }, insufficientScope)],
    [
      'a missing right, and the status 403',
      json(403, { error: 403, message: 'Not you' }, insufficientScope),
    ],
  ])('that a service accepts, which answers %s', async (_, posts) => {
    const service = await Hostile.listen({ posts: [posts] })
    const { code, out, err } = read(await login(service.url), service.url)
    expect({ code, out, err }).toMatchObject({ code: 0, out: [{ checked: true }], err: [] })
  })

  const unchecked = 'The token is saved, but could not be checked'

  // More answers: conformance/stores/http.
  test.each<[string, Answer, string]>([
    ['404', json(404, { error: 404, message: 'Not here' }), 'Not here'],
    ['a Plant', json(200, { name: 'Fern' }), 'URL answered 200 to an empty object'],
    ['nothing', () => undefined, 'URL received the request, but did not answer: it timed out'],
  ])('with a warning when the service answers %s', async (_, posts, why) => {
    const service = await Hostile.listen({ posts: [posts] })
    const { now, timeOut } = settableTime()
    if (why.endsWith('timed out')) service.on('request', () => timeOut())
    const { code, out, err } = read(await login(service.url, token, { now }), service.url)
    const saved = { store: 'URL', address: 'URL', source: 'file', savedAt: aTime, checked: false }
    expect([code, out]).toEqual([0, [saved]])
    expect(err).toEqual([{ warning: expect.stringContaining(`${unchecked}: ${why}`) }])
    expect(user.saved).toMatchObject({ tokens: { [service.url]: { token } } })
    expect(service.lines).toEqual(['POST /plants'])
  })
})

describe('login saves nothing', () => {
  test.each<[string, Answer, Record<string, unknown>]>([
    ['403', json(403, { error: 403, message: 'No' }), { error: 403, message: 'No', status: 403 }],
    [
      '400 with the error 403',
      json(400, { error: 403, message: 'No' }),
      { error: 403, message: 'No', status: 400 },
    ],
    [
      '401 and a missing right',
      json(400, { error: 401, message: 'Wrong' }, insufficientScope),
      { message: 'Wrong', status: 400 },
    ],
  ])('when the service answers %s', async (_, posts, { message, ...fields }) => {
    const service = await Hostile.listen({ posts: [posts] })
    const hint = 'Nothing was saved. Copy it again, or ask for a new one'
    expect(read(await login(service.url), service.url)).toEqual({
      code: 3,
      out: [],
      err: [{ error: 401, hint, message: `URL does not accept this token: ${message}`, ...fields }],
    })
    expect(user.has('config')).toBe(false)
  })

  test('when the service refuses a create with 403, and names no missing right', async () => {
    const refused = json(403, { error: 403, message: 'No' })
    const service = await Hostile.listen({ posts: [refused] })
    expect(read(await login(service.url))).toMatchObject({ code: 3, out: [] })
    expect(user.saved).toBeUndefined()
    expect(service.lines).toEqual(['POST /plants'])
  })

  const notOne =
    'The token on stdin contains a space, a line break or another invalid character. A token consists of letters, digits and -._~+/='
  const again = 'Copy the token again, without any other text'

  test.each<[stdin: string | Uint8Array, message: string, hint?: string]>([
    [' \r\n\t', 'The token on stdin is empty'],
    ...['s3cret\ns3cret', 's3=cret'].map((text): [string, string] => [text, notOne]),
    ['s3cret'.repeat(683), 'The token on stdin is longer than 4096 characters'],
    [
      's3cret'.repeat(500_000),
      'Stdin is larger than 1 MiB (1048576 bytes)',
      'Pipe nothing but the token to stdin',
    ],
    [Buffer.from('s3cret\xff\xfe', 'latin1'), 'Stdin is not UTF-8', 'Convert it to UTF-8 first'],
  ])('and asks nothing for a text that is no token: %#', async (stdin, message, hint = again) => {
    const service = await accepting()
    const result = await user.run(`auth login --from-stdin --store ${service.url}`, { stdin })
    expect(result).toEqual(refusal(message, hint))
    expect([user.has('config'), service.connections]).toEqual([false, 0])
  })
})

test('logout says whether there was a token, wherever it is in the file', async () => {
  const tokens = { [store]: { token, savedAt } }
  const other = 'https://other.example.com'
  user.save({ version: 1, tokens, timeout: '1m' })
  const { out } = await user.run(`auth logout --store ${other} --output json`)
  expect(JSON.parse(out)).toMatchObject({ removed: false })
  expect(user.saved).toEqual({ version: 1, tokens, timeout: '1m' })
})
