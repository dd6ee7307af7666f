import { describe, expect, test } from 'vitest'
import { PostgresStore } from '../../../../src/stores/postgres/postgres-store.js'
import { type Certificate, certificate, hasOpenssl } from '../../../helpers/certificates.js'
import { installations } from '../../../helpers/postgres/installation.js'
import { Line } from '../../../helpers/postgres/line.js'
import type { PostgresServer } from '../../../helpers/postgres/server.js'
import { type Database, ownServer, reusedDatabase, reusedServer } from '../../../helpers/postgres.js'
import { isSoak } from '../../../helpers/rounds.js'
import { settled } from '../../../helpers/settled.js'
import { addressOf, databaseOptions, nameOf, openShared } from '../../../helpers/shared-store.js'
import { closedAfterTest } from '../../../helpers/store.js'

const fern = { id: 1n, name: 'Fern' }

test.runIf(hasOpenssl)('each sslmode lets in whom libpq lets in (needs openssl)', async () => {
  const [authority, stranger] = [1, 2].map(() => certificate({ names: ['DNS:ca'], isAuthority: true }))
  const access = [
    ...['hostssl all secure all trust', 'hostnossl all secure all reject'],
    ...['hostnossl all plain all trust', 'hostssl all plain all reject'],
  ]
  const tls = certificate({ names: ['DNS:localhost'], ...(authority && { issuer: authority }) })
  const place = await ownServer({ tls, access })
  await openShared(place)
  await place.admin('CREATE ROLE secure LOGIN; CREATE ROLE plain LOGIN; GRANT plants TO secure, plain')
  const come = async (username: string, sslmode: string, ca?: Certificate, hostname = 'localhost') => {
    const url = Object.assign(new URL(place.url), { username, hostname }).href
    const address = addressOf({ url }, `sslmode=${sslmode}${ca ? `&sslrootcert=${ca.path}` : ''}`)
    const login = async () => ({ ...(await databaseOptions({ env: {} }).login(address)), ca: ca?.cert })
    const store = closedAfterTest(await PostgresStore.open(address, databaseOptions(place, { login })))
    await store.check()
    const sessions = `pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = '${username}'`
    const ways = await place.admin(`SELECT ssl FROM ${sessions}`)
    await store.close()
    return ways.map(({ ssl }) => (ssl ? 'secure' : 'plain'))
  }
  const inTurn = async (username: string, modes: string[], ...rest: [Certificate?, string?]) => {
    const told: unknown[] = []
    for (const mode of modes) told.push(...(await settled([come(username, mode, ...rest)])))
    return told
  }
  const modes = ['disable', 'prefer', 'require']
  const rejected = expect.stringMatching(/^unauthorized: .* rejected the login of \w+: pg_hba.conf rejects connection/)
  const [secure, plain] = [['secure'], ['plain']]
  expect(await inTurn('secure', modes)).toEqual([rejected, secure, secure])
  expect(await inTurn('plain', modes)).toEqual([plain, plain, rejected])
  const checked = ['require', 'verify-ca', 'verify-full']
  expect(await inTurn('secure', checked, authority)).toEqual([secure, secure, secure])
  const unknown = expect.stringMatching(/^unavailable: .*: unable to verify the first certificate$/)
  expect(await inTurn('secure', checked, stranger)).toEqual([unknown, unknown, unknown])
  expect(await inTurn('plain', ['prefer'], stranger)).toEqual([plain])
  expect(await inTurn('secure', ['prefer'], stranger)).toEqual([secure])
  const elsewhere = expect.stringMatching(/^unavailable: .* does not match certificate's altnames/)
  expect(await inTurn('secure', checked, authority, '127.0.0.1')).toEqual([secure, secure, elsewhere])
})

describe('of several hosts', () => {
  const database = reusedDatabase()
  const server = reusedServer()

  test.each(['is down', 'says nothing'])('takes the next when the first %s', async (how) => {
    const place = await database()
    const line = await Line.to(place)
    if (how === 'is down') line.end()
    else line.silence()
    const store = await openShared({ ...place, url: bothOf(line, place) }, { parameters: 'connect_timeout=1' })
    expect(await store.create(fern)).toStrictEqual({ name: 'Fern' })
  })

  test('takes the one that takes writes', async () => {
    const [reader, writer] = [await server(), await database()]
    const name = nameOf(writer)
    await reader.admin(`CREATE DATABASE ${name} OWNER plants`)
    await reader.admin(`ALTER DATABASE ${name} SET default_transaction_read_only = on`)
    const store = await openShared({ ...writer, url: bothOf(reader, writer) })
    await store.create(fern)
    expect(await writer.sql('SELECT id FROM plant_store.plants')).toEqual([{ id: 1n }])
    await reader.stop('immediate')
    expect(await store.create({ id: 2n, name: 'Moss' })).toStrictEqual({ name: 'Moss' })
  })

  const debian = installations.find(({ isPacked }) => !isPacked)
  test.runIf(isSoak && debian)("goes on with Debian's standby when it is promoted (in a soak)", async () => {
    const place = { settings: ["synchronous_standby_names = 'second'"], ...(debian ? { installation: debian } : {}) }
    const primary: PostgresServer & Database = await ownServer({ ...place, settings: [] })
    const second = await ownServer({ ...place, primary, settings: ["cluster_name = 'second'"] })
    await primary.admin("ALTER SYSTEM SET synchronous_standby_names = 'second'")
    await primary.admin('SELECT pg_reload_conf()')
    const store = await openShared({ env: {}, url: bothOf(second, primary) }, { timeout: 30_000 })
    const calls = Array.from({ length: 200 }, (_, id) => store.create({ id: BigInt(id), name: 'Fern' }))
    const answers = settled(calls)
    await Promise.race(calls)
    await primary.stop('immediate')
    await second.admin('SELECT pg_promote()')
    expect(await answers).toStrictEqual(calls.map(() => ({ name: 'Fern' })))
    expect(await second.sql('SELECT count(*)::int FROM plant_store.plants')).toEqual([{ count: 200 }])
  })
})

/** The address of two servers that have the same database. */
function bothOf(first: { url: string }, second: { url: string }): string {
  return second.url.replace('@', `@${new URL(first.url).host},`)
}
