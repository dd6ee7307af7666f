import { beforeEach, expect, test } from 'vitest'
import { objectsOf } from '../../helpers/json-lines.js'
import { PlantService } from '../../helpers/plant-service.js'
import { forwardProxy } from '../../helpers/proxy.js'
import { token } from '../../helpers/remote.js'
import { World } from '../../helpers/world.js'

// What a dry run prints for a store in a file is in transcripts/create.txt.

const isRoot = process.getuid?.() === 0
const fern = 'create --id 1 --name Fern --tag shade'
const service = 'https://plants.example.com/v1'
const key = '--idempotency-key order-66'
const env = { PLANTS_TOKEN: token }

let user: World

beforeEach(() => {
  user = new World()
})

test.each<[string, string, number, Record<string, string>?]>([
  ['whose id is taken', 'create --id 1 --name Moss', 1],
  ['whose id is taken, with a key', 'create --id 1 --name Moss --idempotency-key other', 1],
  ['whose key created another', `create --id 2 --name Moss ${key}`, 1],
  ['in a directory', `${fern} --store .`, 4],
  ['in a directory that does not exist', `${fern} --store none/plants.db`, 4],
  ['in a file that is no store', `${fern} --store text.db`, 4],
  ['below a file', `${fern} --store text.db/plants.db`, 4],
  ['whose token would be seen', `${fern} --store http://plants.example.com`, 2],
  ['without the certificates', `${fern} --store ${service} --ca-cert none.pem`, 2],
  ['through an unsupported proxy', `${fern} --store ${service}`, 2, { HTTPS_PROXY: 'socks://a' }],
  ['with a wrong token', `${fern} --store ${service}`, 2, { PLANTS_TOKEN: 'a b' }],
])('a dry run rejects a plant %s, as a create does', async (_, line, code, variables = {}) => {
  user.write('text.db', 'This is no database, and long enough to be none. '.repeat(20))
  await user.run(`${fern} ${key}`)
  const options = { env: { ...env, ...variables } }
  const real = await user.run(line, options)
  expect(real.code).toBe(code)
  expect(await user.run(`${line} --dry-run`, options)).toEqual(real)
})

test.skipIf(isRoot)(
  'a dry run fails as a create does where nothing may be written (needs a user that is not root)',
  async () => {
    expect(await user.run(`${fern} --store /plants.db --dry-run`)).toEqual(await user.run(`${fern} --store /plants.db`))
  },
)

test('a dry run shows the request to a service, and sends nothing', async () => {
  const server = await PlantService.listen()
  const line = `${fern} ${key} --dry-run --store ${server.url}/v1`
  const { out, ...rest } = await user.run(line, { env })
  expect(rest).toEqual({ code: 0, err: '' })
  const body = '{"id":1,"name":"Fern","tag":"shade"}'
  expect(JSON.parse(out)).toMatchObject({
    ...{ dryRun: true, id: 1, name: 'Fern', tag: 'shade', store: `${server.url}/v1`, token: 'variable' },
    request: { headers: { authorization: 'Bearer ***' }, body },
  })
  const text = await user.run(`${line} --output text`, { env })
  expect(text.out.replace(/plants\/\d[\d.]*\n/, 'plants/VERSION\n')).toBe(`\
Would plant Fern (id 1, tag shade) at ${server.url}/v1

POST ${server.url}/v1/plants
accept: application/json
authorization: Bearer *** (PLANTS_TOKEN)
content-type: application/json
idempotency-key: order-66
user-agent: plants/VERSION

${body}
`)
  expect({ posts: server.posts, connections: server.mostConnections }).toEqual({ posts: [], connections: 0 })
})

test('a dry run shows the request that a create then sends', async () => {
  const server = await PlantService.listen()
  const line = `${fern} ${key} --store ${server.url}`
  const { request } = JSON.parse((await user.run(`${line} --dry-run`, { env })).out)
  expect((await user.run(line, { env })).code).toBe(0)
  const { err } = await user.run(`${line} --verbose --output json`, { env })
  const sent = objectsOf(err).flatMap(({ verbose }) => (`${verbose}`.startsWith('>') ? `${verbose}`.slice(2) : []))
  const headers = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`)
  expect(sent).toEqual([`${request.method} ${request.url}`, ...headers, `${Buffer.byteLength(request.body)} bytes`])
  const sentPost = expect.objectContaining({ id: '1', key: 'order-66' })
  expect(server.posts).toEqual([sentPost, sentPost])
})

test('a dry run shows the socket and the proxy, to which nothing is sent', async () => {
  const proxy = await forwardProxy()
  const HTTPS_PROXY = proxy.url.replace('//', '//me:s3cret@')
  const show = async (more: string) =>
    (await user.run(`${fern} --dry-run ${more}`, { env: { ...env, HTTPS_PROXY } })).out
  const shown = new URL(proxy.url).host
  expect(await show('--output text --store unix:/run/p.sock:/v1')).toContain(
    '\nPOST http://localhost/v1/plants over the socket /run/p.sock\n',
  )
  expect(await show(`--output text --store ${service}`)).toContain(
    `\nPOST ${service}/plants through the proxy ${shown}\n`,
  )
  expect(JSON.parse(await show(`--store ${service}`)).proxy).toBe(shown)
  expect(proxy.passed).toEqual([])
})

test('a dry run starts no token command', async () => {
  user.save({ stores: { team: { address: service, 'token-command': `touch ${user.home}/started` } } })
  const line = `${fern} --store team`
  expect(JSON.parse((await user.run(`${line} --dry-run`)).out)).toMatchObject({ token: 'command' })
  expect((await user.run(`${line} --dry-run --output text`)).out).toContain('Bearer *** (the token command of team)')
  expect(user.has('started')).toBe(false)
  await user.run(line)
  expect(user.has('started')).toBe(true)
})

test('a dry run names the place of a saved token, and does not show it', async () => {
  user.save({ tokens: { [service]: { token, savedAt: '2026-01-01T00:00:00.000Z' } } })
  const { out, err } = await user.run(`${fern} --dry-run --verbose --store ${service}`)
  expect(JSON.parse(out)).toMatchObject({ token: 'file', request: { headers: { authorization: 'Bearer ***' } } })
  expect(err).toContain(`* token from ${user.file}\n`)
})

test('a dry run without a token says so, with a new idempotency key each time', async () => {
  const dry = async () => JSON.parse((await user.run(`${fern} --dry-run --store ${service}`)).out)
  const [one, other] = [await dry(), await dry()]
  expect({ source: one.token, headers: Object.keys(one.request.headers) }).toEqual({
    source: 'none',
    headers: ['accept', 'content-type', 'idempotency-key', 'user-agent'],
  })
  const keyOf = ({ request }: typeof one) => request.headers['idempotency-key']
  expect(keyOf(one)).toMatch(/^[\da-f-]{36}$/)
  expect(keyOf(other)).not.toBe(keyOf(one))
  expect((await user.run(`${fern} --dry-run --output text --store ${service}`)).out).toContain(
    '\nauthorization: Bearer *** (there is no token yet: set PLANTS_TOKEN, or save one with plants auth login)\n',
  )
})

test.each([[], ['--store', service]])('a dry run escapes what could drive a terminal: %s %s', async (...flags) => {
  const name = '\u001b]0;x\u0007\u009b2J\u202e\n'
  const { code, out } = await user.run(
    ['create', '--id', '1', `--name=${name}`, '--dry-run', '--output', 'text', ...flags],
    { env },
  )
  expect([code, out.replaceAll('\n', '')]).toEqual([0, expect.not.stringMatching(/[\p{Cc}\p{Bidi_Control}]/u)])
})
