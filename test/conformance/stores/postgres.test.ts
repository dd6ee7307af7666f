import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { PostgresStore } from '../../../src/stores/postgres/store.js'
import { password } from '../../helpers/postgres/cluster.js'
import { Daemon, onFreePort } from '../../helpers/postgres/daemon.js'
import { serverFolder, writeOwned } from '../../helpers/postgres/identity.js'
import { installations } from '../../helpers/postgres/installation.js'
import { type Database, freshDatabase, reusedDatabase } from '../../helpers/postgres.js'
import { isSoak } from '../../helpers/rounds.js'
import { addressOf, databaseOptions, openShared } from '../../helpers/shared-store.js'
import { describeConstraints, describeOwnStore, type Subject } from './contract.js'

const program = '/usr/sbin/pgbouncer'
const hasPgBouncer = existsSync(program)

// The older version of PostgreSQL is behind PgBouncer: so each version and each way there has the whole contract, in
// two runs of it. A soak asks the older version directly as well.
const direct = hasPgBouncer && !isSoak ? installations.slice(0, 1) : installations

describe.each(direct)('$name', (installation) => {
  const database = reusedDatabase(installation)
  describeOwnStore('the shared store', async () => subjectIn(await database()))
})

const pooled = installations.at(-1)

describe.runIf(hasPgBouncer)(`${pooled?.name} through PgBouncer, in transaction mode`, () => {
  const database = reusedDatabase(pooled)
  let started: ReturnType<typeof startBefore> | undefined
  afterAll(async () => (await started)?.end())
  describeOwnStore('the shared store', async () => {
    const place = await database()
    started ??= startBefore(place.url)
    return subjectIn({ ...place, url: (await started).url })
  })
})

test('a deferred constraint that somebody added rejects its plant alone', async () => {
  const database = await freshDatabase()
  const store = await openShared(database)
  await database.sql(`CREATE TABLE plant_store.kinds (name text PRIMARY KEY); INSERT INTO plant_store.kinds VALUES ('Fern');
    ALTER TABLE plant_store.plants ADD CONSTRAINT kind FOREIGN KEY (name) REFERENCES plant_store.kinds
    DEFERRABLE INITIALLY DEFERRED`)
  const names = ['Fern', 'Oak', 'Fern']
  const outcomes = await Promise.all(
    names.map((name, index) =>
      store.write([{ type: 'create', plant: { id: BigInt(index), name } }]),
    ),
  )
  expect(outcomes.flat()).toMatchObject([
    { type: 'created' },
    { type: 'rejected', error: { kind: 'constraint', message: expect.stringContaining('kind') } },
    { type: 'created' },
  ])
})

describeConstraints('the shared store', async () => {
  const database = await freshDatabase()
  const alter = async () => {
    await database.sql(`ALTER TABLE plant_store.plants ADD CONSTRAINT names UNIQUE (name),
      ADD CONSTRAINT short CHECK (length(name) < 100)`)
  }
  return { store: await openShared(database), alter }
})

async function subjectIn(database: Database): Promise<Subject<PostgresStore>> {
  const store = await openShared(database)
  let other: Promise<PostgresStore | undefined> | undefined
  onTestFinished(async () => (await other)?.close())
  const look = async (id: bigint) => {
    other ??= PostgresStore.open(addressOf(database), databaseOptions(database))
    return (await (await other)?.get([id]))?.get(id)
  }
  return { store, look }
}

/** PgBouncer has few connections for everybody: what a transaction leaves behind is seen. */
async function startBefore(address: string) {
  const url = new URL(address)
  const folder = serverFolder()
  const server = `* = host=${url.hostname} port=${url.port}`
  const access = [
    'auth_type = scram-sha-256',
    'auth_file = users.txt',
    'listen_addr = 127.0.0.1',
    'unix_socket_dir =',
  ]
  writeOwned(join(folder, 'users.txt'), [`"plants" "${password}"`, `"postgres" "${password}"`])
  let daemon: Daemon | undefined
  await onFreePort('Address already in use', async (port) => {
    // Two snapshots at the same time have a connection each.
    const pool = ['pool_mode = transaction', 'default_pool_size = 3', `listen_port = ${port}`]
    const lines = ['[databases]', server, '[pgbouncer]', ...access, ...pool]
    writeOwned(join(folder, 'pgbouncer.ini'), lines)
    daemon = new Daemon([program, 'pgbouncer.ini'], folder)
    await daemon.says(/process up/)
    url.port = `${port}`
    return daemon
  })
  const end = async () => {
    await daemon?.end('SIGTERM')
    rmSync(folder, { recursive: true, force: true })
  }
  return { url: url.href, end }
}
