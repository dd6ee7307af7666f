import { expect, test, vi } from 'vitest'
import { Listener, says } from '../../helpers/postgres/listener.js'
import { freshDatabase } from '../../helpers/postgres.js'
import { plants } from '../../helpers/process.js'
import { World } from '../../helpers/world.js'

const given = 's3cret-of-this-run'

/** Starts listeners that ask for a password in one way or another, and saves a store for each. */
async function strangers() {
  const listeners = await Promise.all([says.clear, says.md5, says.scram].map((asks) => Listener.start([asks])))
  const stores = listeners.map(({ port }, index) => [
    `other${index}`,
    { address: `postgres://someone@127.0.0.1:${port}/elsewhere` },
  ])
  const user = new World()
  user.save({ stores: Object.fromEntries(stores) })
  return { user, listeners }
}

test.each([
  ['doctor', true],
  ['stores list', false],
  ['auth status', false],
  ['config list', false],
  ['stores use other1', false],
])('plants %s gives PGPASSWORD to no database but that of this run', async (line, connects) => {
  const { user, listeners } = await strangers()
  const own = await Listener.start([says.clear, says.refused])
  const env = { PGPASSWORD: given, PLANTS_STORE: `postgres://ann@127.0.0.1:${own.port}/garden` }
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  await user.run(line, { env })
  vi.unstubAllEnvs()
  expect(listeners.map(({ logins, passwords }) => [logins > 0, passwords])).toEqual(listeners.map(() => [connects, []]))
  expect(new Set(own.passwords)).toEqual(new Set(connects ? [`${given}\0`] : []))
})

test.each([
  'list',
  'export',
  'create --id 1 --name Fern',
  'delete 1 --yes',
  'tokens list',
  'stores init ADDRESS',
  'import',
])('plants %s gives PGPASSWORD to the servers of its database', async (line) => {
  const one = await Listener.start([says.clear, says.starting])
  const other = await Listener.start([says.clear, says.refused])
  const address = `postgres://ann@127.0.0.1:${one.port},127.0.0.1:${other.port}/garden`
  const stranger = await Listener.start([says.clear])
  const user = new World()
  user.save({ stores: { other: { address: `postgres://ann@127.0.0.1:${stranger.port}/garden` } } })
  const env = { PGPASSWORD: given, PLANTS_STORE: address }
  const { code } = await user.run(line.replace('ADDRESS', address), { env, stdin: '{"id":1,"name":"Fern"}\n' })
  expect({ code, heard: [one, other].map(({ passwords }) => new Set(passwords)) }).toEqual({
    code: 3,
    heard: [new Set([`${given}\0`]), new Set([`${given}\0`])],
  })
  expect(stranger.logins).toBe(0)
})

test('no variable of PostgreSQL changes anything that the address says, or that docs/database-address.md does not name', async () => {
  const { url, env } = await freshDatabase()
  const names = [
    ...[
      'BACKOFF',
      'CONNECT_TIMEOUT',
      'DATABASE',
      'DEBUG',
      'FETCH_TYPES',
      'HOST',
      'HOSTADDR',
      'IDLE_TIMEOUT',
      'KEEP_ALIVE',
      'MAX',
    ],
    ...[
      'MAX_LIFETIME',
      'MAX_PIPELINE',
      'OPTIONS',
      'PORT',
      'PREPARE',
      'PUBLICATIONS',
      'SERVICE',
      'SSL',
      'SSLMODE',
      'SSLNEGOTIATION',
    ],
    ...['TARGETSESSIONATTRS', 'TARGET_SESSION_ATTRS', 'USER', 'USERNAME', 'CLIENTENCODING', 'DATESTYLE', 'TZ'],
  ]
  const nonsense = Object.fromEntries(names.map((name) => [`PG${name}`, 'nonsense']))
  const store = `${url}?sslmode=disable&target_session_attrs=any&connect_timeout=5&max=2`
  const user = new World()
  const run = async (line: string) =>
    plants(line.split(' '), user.home, { env: { ...nonsense, ...env, PGAPPNAME: 'app', PLANTS_STORE: store } })
  const ok = (out: string) => ({ code: 0, out, err: '' })
  expect(await run('create --id 1 --name Fern')).toEqual(ok('{"name":"Fern"}\n'))
  expect(await run('list')).toEqual(ok('{"id":1,"name":"Fern"}\n'))
})
