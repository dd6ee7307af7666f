import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { objectsOf } from '../../helpers/json-lines.js'
import { PlantService } from '../../helpers/plant-service.js'
import { forwardProxy } from '../../helpers/proxy.js'
import { token } from '../../helpers/remote.js'
import { withUsual } from '../../helpers/run.js'
import { World } from '../../helpers/world.js'

const isRoot = process.getuid?.() === 0
const fern = ['create', '--id', '1', '--name', 'Fern', '--tag', 'shade']
const service = 'https://plants.example.com/v1'
const key = ['--idempotency-key', 'order-66']

test('a dry run tells where a plant would go, and makes no file', async () => {
  const user = new World()
  const store = join(user.home, 'data', 'plants.db')
  const fields = { dryRun: true, id: 1, name: 'Fern', tag: 'shade', store, storeExists: false, creates: true }
  expect(await user.run([...fern, '--dry-run'])).toEqual({ code: 0, out: `${JSON.stringify(fields)}\n`, err: '' })
  expect(await user.run([...fern, '--dry-run', '--output', 'text'])).toEqual({
    code: 0,
    out: `Would plant Fern (id 1, tag shade) in ${store}, which would be created\n`,
    err: '',
  })
  expect(readdirSync(user.home)).toEqual([])
})

test('a dry run stores nothing in a file that is there', async () => {
  const user = new World()
  await user.run(fern)
  const out = await user.run([
    'create',
    '--id',
    '9223372036854775807',
    '--name',
    ' Moss',
    '--dry-run',
    '--output',
    'text',
  ])
  const store = join(user.home, 'data', 'plants.db')
  expect(out).toEqual({ code: 0, out: `Would plant " Moss" (id 9223372036854775807) in ${store}\n`, err: '' })
  expect((await user.run('list')).out).toBe('{"id":1,"name":"Fern","tag":"shade"}\n')
})

test('a dry run keeps an id exact', async () => {
  const { out } = await new World().run(
    'create --id -9223372036854775807 --name Fern --dry-run'.replace('--id ', '--id=').split(' '),
  )
  expect(out).toContain('"id":-9223372036854775807,')
})

test.each([
  ['whose id is taken', ['create', '--id', '1', '--name', 'Moss']],
  ['that is there, without a key', fern],
  ['whose id is taken, with a key', ['create', '--id', '1', '--name', 'Moss', '--idempotency-key', 'other']],
  ['whose key made another', ['create', '--id', '2', '--name', 'Moss', ...key]],
])('a dry run refuses a plant %s, as a create does', async (_, argv) => {
  const user = new World()
  await user.run([...fern, ...key])
  const real = await user.run(argv)
  expect(real.code).toBe(1)
  expect(await user.run([...argv, '--dry-run'])).toEqual(real)
})

test('a dry run says when a key has made the plant already', async () => {
  const user = new World()
  await user.run([...fern, ...key])
  const text = 'Would plant nothing: the idempotency key has already created Fern (id 1, tag shade)\n'
  expect(await user.run([...fern, ...key, '--dry-run', '--output', 'text'])).toEqual({ code: 0, out: text, err: '' })
  expect(JSON.parse((await user.run([...fern, ...key, '--dry-run'])).out)).toMatchObject({
    creates: false,
    idempotencyKey: 'order-66',
  })
})

test.each([
  ['a folder', (home: string) => home],
  ['a folder that is not there', (home: string) => join(home, 'none', 'plants.db')],
  ['what is no store', (home: string) => join(home, 'text.db')],
  ['a folder as the parent', (home: string) => join(home, 'text.db', 'plants.db')],
])('a dry run is refused by %s as a create is (needs a user that is not root)', async (_, pathOf) => {
  const user = new World()
  writeFileSync(join(user.home, 'text.db'), 'This is no database, and long enough to be none. '.repeat(20))
  const argv = [...fern, '--store', pathOf(user.home)]
  const shown = await user.run([...argv, '--dry-run'])
  expect(shown).toEqual(await user.run(argv))
  expect(shown.code).toBe(4)
})

test.skipIf(isRoot)(
  'a dry run is refused where nothing may be written, as a create is (needs a user that is not root)',
  async () => {
    const argv = [...fern, '--store', '/plants.db']
    const user = new World()
    expect(await user.run([...argv, '--dry-run'])).toEqual(await user.run(argv))
  },
)

test.each([
  ['no name', ['create', '--id', '1'], 2],
  ['an id that is none', ['create', '--id', '1.5', '--name', 'Fern'], 2],
  ['a key that is none', [...fern, '--idempotency-key', 'a b'], 2],
  ['a file that is not there', ['create', '--file', 'none.json'], 2],
  ['an address that leads nowhere', [...fern, '--store', 'https://'], 2],
  ['a store that has no name here', [...fern, '--store', 'garden'], 2],
  ['a token that would be seen', [...fern, '--store', 'http://plants.example.com'], 2],
  ['certificates that are not there', [...fern, '--store', service, '--ca-cert', 'none.pem'], 2],
])('%s is refused as by a create', async (_, argv, code) => {
  const user = new World()
  const env = { PLANTS_TOKEN: token }
  const real = await user.run(argv, { env })
  expect(real.code).toBe(code)
  expect(await user.run([...argv, '--dry-run'], { env })).toEqual(real)
})

test.each([
  ['a proxy that is none', { PLANTS_TOKEN: token, HTTPS_PROXY: 'socks://a' }],
  ['a token that is none', { PLANTS_TOKEN: 'a b' }],
])('%s is refused as by a create', async (_, env) => {
  const argv = [...fern, '--store', service]
  const user = new World()
  const real = await user.run(argv, { env })
  expect(real.code).toBe(2)
  expect(await user.run([...argv, '--dry-run'], { env })).toEqual(real)
})

test('a dry run shows the request to a service, and sends nothing', async () => {
  const server = await PlantService.listen()
  const env = { PLANTS_TOKEN: token }
  const user = new World()
  const argv = [...fern, ...key, '--dry-run', '--store', `${server.url}/v1`]
  const { out, ...rest } = await user.run(argv, { env })
  expect(rest).toEqual({ code: 0, err: '' })
  const body = '{"id":1,"name":"Fern","tag":"shade"}'
  const headers = {
    accept: 'application/json',
    authorization: 'Bearer ***',
    'content-type': 'application/json',
    'idempotency-key': 'order-66',
    'user-agent': expect.stringMatching(/^plants\//),
  }
  expect(JSON.parse(out)).toEqual({
    ...{ dryRun: true, id: 1, name: 'Fern', tag: 'shade', store: `${server.url}/v1`, token: 'variable' },
    request: { method: 'POST', url: `${server.url}/v1/plants`, headers, body },
  })
  const text = await user.run([...argv, '--output', 'text'], { env })
  expect(
    text.out.replace(/plants\/\d[\d.]*\n/, 'plants/VERSION\n'),
  ).toBe(`Would plant Fern (id 1, tag shade) at ${server.url}/v1

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
  const env = { PLANTS_TOKEN: token }
  const argv = [...fern, '--store', server.url]
  const user = new World()
  const { request } = JSON.parse((await user.run([...argv, ...key, '--dry-run'], { env })).out)
  expect((await user.run([...argv, ...key, '--verbose', '--output', 'json'], { env })).code).toBe(0)
  const { err } = await user.run([...argv, ...key, '--verbose', '--output', 'json'], { env })
  const sent = objectsOf(err).flatMap(({ verbose }) => (`${verbose}`.startsWith('>') ? `${verbose}`.slice(2) : []))
  const headers = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`)
  expect(sent).toEqual([`${request.method} ${request.url}`, ...headers, `${Buffer.byteLength(request.body)} bytes`])
  expect(server.posts.map(({ id, key: sentKey }) => [id, sentKey])).toEqual([
    ['1', 'order-66'],
    ['1', 'order-66'],
  ])
})

test('a dry run tells of the socket and of the proxy', async () => {
  const user = new World()
  const env = { PLANTS_TOKEN: token, HTTPS_PROXY: 'http://me:s3cret@proxy.example.com:3128' }
  const over = await user.run([...fern, '--dry-run', '--output', 'text', '--store', 'unix:/run/p.sock:/v1'], { env })
  expect(over.out).toContain('\nPOST http://localhost/v1/plants over the socket /run/p.sock\n')
  const through = await user.run([...fern, '--dry-run', '--output', 'text', '--store', service], { env })
  expect(through.out).toContain(`\nPOST ${service}/plants through the proxy proxy.example.com:3128\n`)
  expect(JSON.parse((await user.run([...fern, '--dry-run', '--store', service], { env })).out).proxy).toBe(
    'proxy.example.com:3128',
  )
})

test('a dry run starts no token command', async () => {
  const user = new World()
  const witness = join(user.home, 'started')
  user.save({ stores: { team: { address: service, 'token-command': `touch ${witness}` } } })
  const argv = [...fern, '--store', 'team']
  expect(JSON.parse((await user.run([...argv, '--dry-run'])).out)).toMatchObject({ token: 'command' })
  expect((await user.run([...argv, '--dry-run', '--output', 'text'])).out).toContain(
    'Bearer *** (the token command of team)',
  )
  expect(existsSync(witness)).toBe(false)
  await user.run(argv)
  expect(existsSync(witness)).toBe(true)
})

test('a saved token is told of, and not shown', async () => {
  const user = new World()
  user.save({ tokens: { [service]: { token, savedAt: '2026-01-01T00:00:00.000Z' } } })
  const { out } = await user.run([...fern, '--dry-run', '--store', service])
  expect(JSON.parse(out)).toMatchObject({ token: 'file', request: { headers: { authorization: 'Bearer ***' } } })
  const { err } = await user.run([...fern, '--dry-run', '--verbose', '--store', service])
  expect(err).toContain(`* token from ${user.file}\n`)
})

test('without a token, a dry run says so', async () => {
  const user = new World()
  const { code, out, err } = await user.run([...fern, '--dry-run', '--store', service])
  expect({ code, err }).toEqual({ code: 0, err: '' })
  const { token: source, request } = JSON.parse(out)
  expect({ source, headers: Object.keys(request.headers) }).toEqual({
    source: 'none',
    headers: ['accept', 'content-type', 'idempotency-key', 'user-agent'],
  })
  const text = await user.run([...fern, '--dry-run', '--output', 'text', '--store', service])
  expect(text.out).toContain(
    '\nauthorization: Bearer *** (there is no token yet: set PLANTS_TOKEN, or save one with plants auth login)\n',
  )
})

test('each request without a key gets one of its own', async () => {
  const user = new World()
  const ask = async () =>
    JSON.parse((await user.run([...fern, '--dry-run', '--store', service])).out).request.headers['idempotency-key']
  const [one, other] = [await ask(), await ask()]
  expect(one).toMatch(/^[\da-f-]{36}$/)
  expect(other).not.toBe(one)
})

test('what people see of a plant cannot drive their terminal', async () => {
  const user = new World()
  const name = '\u001b]0;x\u0007\u009b2J\u202e\n'
  const env = { PLANTS_TOKEN: token }
  for (const more of [
    ['--dry-run'],
    ['--dry-run', '--output', 'json'],
    ['--dry-run', '--store', join(user.home, 'a.db')],
  ]) {
    const usual = { '--output': 'text', '--store': service }
    const argv = withUsual(usual, ['create', '--id', '1', `--name=${name}`, ...more])
    const { code, out } = await user.run(argv, { env })
    expect({ code, unsafe: /[\p{Cc}\p{Bidi_Control}]/u.exec(out.replaceAll('\n', '')) }).toEqual({
      code: 0,
      unsafe: null,
    })
  }
})

test('a dry run sends nothing to a proxy', async () => {
  const proxy = await forwardProxy()
  const env = { PLANTS_TOKEN: token, HTTPS_PROXY: proxy.url }
  const user = new World()
  expect((await user.run([...fern, '--dry-run', '--store', service], { env })).code).toBe(0)
  expect(proxy.passed).toEqual([])
})

test('the plant is read from a file, from stdin, or from both and flags', async () => {
  const user = new World()
  writeFileSync(join(user.home, 'fern.json'), '{"id":1,"name":"Fern","nmae":1}')
  const warning = 'plants: warning: ignored unknown field "nmae". Did you mean "name"?\n'
  const { out, err } = await user.run(
    'create --file fern.json --tag wet --dry-run'.replace('fern.json', join(user.home, 'fern.json')),
  )
  expect({ plant: JSON.parse(out), err }).toEqual({
    plant: expect.objectContaining({ id: 1, name: 'Fern', tag: 'wet' }),
    err: warning,
  })
  const env = { PLANTS_TOKEN: token }
  const piped = await user.run(['create', '--dry-run', '--store', service], { stdin: '{"id":2,"name":"Moss"}', env })
  expect(JSON.parse(piped.out).request.body).toBe('{"id":2,"name":"Moss"}')
})
