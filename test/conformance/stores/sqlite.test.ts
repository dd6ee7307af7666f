import { join } from 'node:path'
import { SqliteStore } from '../../../src/stores/sqlite/store.js'
import { closedAfterTest, fileAddress, openOptions } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { describePlantStore, describeReadableStore, type Subject } from './contract.js'
import { describeCheckpointStore, describeManyStore, describeSnapshotStore, describeSortedStore } from './contract-many.js'
import { describeServedStore } from './contract-tokens.js'

describePlantStore('the embedded store', openEmpty)
describeReadableStore('the embedded store', openEmpty)
describeManyStore('the embedded store', async () => (await openEmpty()).store)
describeSnapshotStore('the embedded store', async () => (await openEmpty()).store)
describeSortedStore('the embedded store', async () => (await openEmpty()).store)
describeCheckpointStore('the embedded store', async () => (await openEmpty()).store)
describeServedStore('the embedded store', async () => (await openEmpty()).store)

async function openEmpty(): Promise<Subject<SqliteStore>> {
  const path = join(temporaryFolder(), 'plants.db')
  const store = closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions()))
  const look = async (id: bigint) => {
    const other = await SqliteStore.openExisting(fileAddress(path), openOptions())
    const plant = await other?.get(id)
    await other?.close()
    return plant
  }
  return { store, look }
}
