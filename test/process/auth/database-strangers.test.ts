import { expect, test, vi } from 'vitest'
import { Listener, says } from '../../helpers/postgres/listener.js'
import { freshDatabase } from '../../helpers/postgres.js'
import { printed, World } from '../../helpers/world.js'

const given = 's3cret-of-this-run'

test.each([
  ['doctor', true],
  ['stores list', false],
  ['auth status', false],
  ['config list', false],
  ['stores use other1', false],
])('plants %s gives PGPASSWORD to no database but that of this run', async (line, connects) => {
  const others = await Promise.all([says.clear, says.md5, says.scram].map((asks) => Listener.start([asks])))
  const stores = others.map(({ port }, index) => [
    `other${index}`,
    { address: `postgres://someone@127.0.0.1:${port}/elsewhere` },
  ])
  const user = new World({ stores: Object.fromEntries(stores) })
  const own = await Listener.start([says.clear, says.refused])
  const env = { PGPASSWORD: given, PLANTS_STORE: `postgres://ann@127.0.0.1:${own.port}/garden` }
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value) // a driver would read them there
  await user.run(line, { env })
  vi.unstubAllEnvs()
  expect(others.map(({ logins, passwords }) => [logins > 0, passwords])).toEqual(others.map(() => [connects, []]))
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
  const servers = [await Listener.start([says.clear, says.starting]), await Listener.start([says.clear, says.refused])]
  const address = `postgres://ann@${servers.map(({ port }) => `127.0.0.1:${port}`)}/garden`
  const stranger = await Listener.start([says.clear])
  const user = new World({ stores: { other: { address: `postgres://ann@127.0.0.1:${stranger.port}/garden` } } })
  const env = { PGPASSWORD: given, PLANTS_STORE: address }
  const { code } = await user.run(line.replace('ADDRESS', address), { env, stdin: '{"id":1,"name":"Fern"}\n' })
  const heard = servers.map(({ passwords }) => new Set(passwords))
  expect({ code, heard }).toEqual({ code: 3, heard: Array(2).fill(new Set([`${given}\0`])) })
  expect(stranger.logins).toBe(0)
})

test('no variable of PostgreSQL that docs/database-address.md does not name changes anything', async () => {
  const { url, env } = await freshDatabase()
  const names = `BACKOFF CLIENTENCODING CONNECT_TIMEOUT DATABASE DATESTYLE DEBUG FETCH_TYPES HOST HOSTADDR IDLE_TIMEOUT
    KEEP_ALIVE MAX MAX_LIFETIME MAX_PIPELINE OPTIONS PORT PREPARE PUBLICATIONS SERVICE SSL SSLMODE SSLNEGOTIATION
    TARGETSESSIONATTRS TARGET_SESSION_ATTRS TZ USER USERNAME`
  const nonsense = Object.fromEntries(names.split(/\s+/).map((name) => [`PG${name}`, 'nonsense']))
  const store = `${url}?sslmode=disable&target_session_attrs=any&connect_timeout=5&max=2`
  const user = new World()
  const options = { env: { ...nonsense, ...env, PGAPPNAME: 'app', PLANTS_STORE: store } }
  expect(await user.spawn('create --id 1 --name Fern', options)).toEqual(printed('{"name":"Fern"}\n'))
  expect(await user.spawn('list', options)).toEqual(printed('{"id":1,"name":"Fern"}\n'))
})
