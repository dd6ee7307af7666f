import { describe, onTestFinished } from 'vitest'
import { PostgresStore } from '../../../src/stores/postgres/postgres-store.js'
import { hasPgBouncer, reusedPgbouncer } from '../../helpers/pgbouncer.js'
import { installations } from '../../helpers/postgres/installation.js'
import { type Database, reusedDatabase } from '../../helpers/postgres.js'
import { isSoak } from '../../helpers/rounds.js'
import { addressOf, databaseOptions } from '../../helpers/shared-store.js'
import { closedAfterTest } from '../../helpers/store.js'
import { describePlantStore, describeReadableStore, type Subject } from './contract.js'
import {
  describeCheckpointStore,
  describeManyStore,
  describeSnapshotStore,
  describeSortedStore,
} from './contract-many.js'
import { describeServedStore } from './contract-tokens.js'

// The older version of PostgreSQL is behind PgBouncer: so each version and each way there has the whole contract, in
// two runs of it. A soak asks the older version directly as well.
const direct = hasPgBouncer && !isSoak ? installations.slice(0, 1) : installations

describe.each(direct)('$name', (installation) => {
  const database = reusedDatabase(installation)
  describeSharedStore(async () => subjectIn(await database()))
})

const pooled = installations.at(-1)

describe.runIf(hasPgBouncer)(`${pooled?.name} through PgBouncer, in transaction mode`, () => {
  const database = reusedPgbouncer(pooled)
  describeSharedStore(async () => subjectIn(await database()))
})

function describeSharedStore(open: () => Promise<Subject<PostgresStore>>): void {
  describePlantStore('the shared store', open)
  describeReadableStore('the shared store', open)
  for (const describeStore of [
    ...[describeManyStore, describeSnapshotStore, describeSortedStore, describeCheckpointStore, describeServedStore],
  ])
    describeStore('the shared store', async () => (await open()).store)
}

async function subjectIn(database: Database): Promise<Subject<PostgresStore>> {
  const options = databaseOptions(database)
  const address = addressOf(database)
  const store = closedAfterTest(await PostgresStore.open(address, options))
  let other: Promise<PostgresStore | undefined> | undefined
  onTestFinished(async () => (await other)?.close())
  const look = async (id: bigint) => {
    other ??= PostgresStore.openExisting(address, options)
    return (await other)?.get(id)
  }
  return { store, look }
}
