import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, onTestFinished } from 'vitest'
import { PostgresStore } from '../../../src/stores/postgres/store.js'
import { describeConstraints } from '../../contract/claims/constraints.js'
import type { Subject } from '../../contract/claims/fixtures.js'
import { describeDirectStore } from '../../contract/contract.js'
import {
  buildDatabaseOptions,
  createDatabase,
  type Database,
  openPostgresStore,
  parseDatabaseAddress,
  partitionPlants,
  shareDatabase,
} from '../../helpers/postgres/database.js'
import {
  createServerFolder,
  installations,
  password,
  startDaemon,
  startOnFreePort,
} from '../../helpers/postgres/server.js'

const program = '/usr/sbin/pgbouncer'
const hasPgBouncer = existsSync(program)

describe.each(installations)('$name', (installation) => {
  const getDatabase = shareDatabase(installation)
  describeDirectStore('the shared store', async () => openSubject(await getDatabase()))
})

const pooled = installations.at(-1)

describe.runIf(hasPgBouncer)(`${pooled?.name} through PgBouncer, in transaction mode`, () => {
  const getDatabase = shareDatabase(pooled)
  let started: ReturnType<typeof startBefore> | undefined
  afterAll(async () => (await started)?.stop())
  describeDirectStore('the shared store', async () => {
    const database = await getDatabase()
    started ??= startBefore(database.url)
    return openSubject({ ...database, url: (await started).url })
  })
})

describeConstraints('the shared store', async () => {
  const database = await createDatabase()
  const addConstraints = async () => {
    await database.query(`ALTER TABLE plant_store.plants ADD CONSTRAINT names UNIQUE (name),
      ADD CONSTRAINT short CHECK (length(name) < 100)`)
  }
  return { store: await openPostgresStore(database), addConstraints }
})

describe('in a table that is partitioned by id', () => {
  const getDatabase = shareDatabase()
  let partitioned: Promise<void> | undefined
  describeDirectStore('the shared store', async () => {
    const database = await getDatabase()
    partitioned ??= partitionPlants(database)
    await partitioned
    return openSubject(database)
  })
})

async function openSubject(database: Database): Promise<Subject<PostgresStore>> {
  const store = await openPostgresStore(database)
  let other: Promise<PostgresStore | undefined> | undefined
  onTestFinished(async () => (await other)?.close())
  const readBack = async (id: bigint) => {
    other ??= PostgresStore.open(
      parseDatabaseAddress(database),
      'read',
      buildDatabaseOptions(database),
    )
    return (await (await other)?.get([id]))?.get(id)
  }
  return { store, readBack }
}

/** PgBouncer has few connections for everybody: what a transaction leaves is seen. */
async function startBefore(address: string) {
  const url = new URL(address)
  const folder = createServerFolder()
  writeFileSync(join(folder, 'users.txt'), `"plants" "${password}"\n"postgres" "${password}"\n`)
  const documented = readFileSync('deploy/pgbouncer.ini', 'utf8')
  // Two snapshots at the same time have a connection each.
  const settings = (port: number) =>
    `${documented}unix_socket_dir =\n`
      .replace('plants = host=127.0.0.1 port=5432', `* = host=${url.hostname} port=${url.port}`)
      .replace('/etc/pgbouncer/userlist.txt', 'users.txt')
      .replace('listen_port = 6432', `listen_port = ${port}`)
      .replace('default_pool_size = 20', 'default_pool_size = 3')
  const { port, end } = await startOnFreePort((free) => {
    writeFileSync(join(folder, 'pgbouncer.ini'), settings(free))
    return startDaemon([program, 'pgbouncer.ini'], folder, /process up/)
  })
  url.port = `${port}`
  const stop = async () => {
    await end('SIGTERM')
    rmSync(folder, { recursive: true, force: true })
  }
  return { url: url.href, stop }
}
