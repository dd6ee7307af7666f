import { describe, onTestFinished } from 'vitest'
import { PostgresStore } from '../../../src/stores/postgres/postgres-store.js'
import { hasPgBouncer, reusedPgbouncer } from '../../helpers/pgbouncer.js'
import { installations } from '../../helpers/postgres/installation.js'
import { type Database, reusedDatabase } from '../../helpers/postgres.js'
import { isSoak } from '../../helpers/rounds.js'
import { addressOf, databaseOptions, openShared } from '../../helpers/shared-store.js'
import type { Subject } from './contract.js'
import { describeOwnStore } from './contract-many.js'

// The older version of PostgreSQL is behind PgBouncer: so each version and each way there has the whole contract, in
// two runs of it. A soak asks the older version directly as well.
const direct = hasPgBouncer && !isSoak ? installations.slice(0, 1) : installations

describe.each(direct)('$name', (installation) => {
  const database = reusedDatabase(installation)
  describeOwnStore('the shared store', async () => subjectIn(await database()))
})

const pooled = installations.at(-1)

describe.runIf(hasPgBouncer)(`${pooled?.name} through PgBouncer, in transaction mode`, () => {
  const database = reusedPgbouncer(pooled)
  describeOwnStore('the shared store', async () => subjectIn(await database()))
})

async function subjectIn(database: Database): Promise<Subject<PostgresStore>> {
  const store = await openShared(database)
  let other: Promise<PostgresStore | undefined> | undefined
  onTestFinished(async () => (await other)?.close())
  const look = async (id: bigint) => {
    other ??= PostgresStore.openExisting(addressOf(database), databaseOptions(database))
    return (await other)?.get(id)
  }
  return { store, look }
}
