import { expect, test } from 'vitest'
import type { PostgresStore } from '../../../src/stores/postgres/store.js'
import type { ReadQuery } from '../../../src/stores/query.js'
import { createDatabase, openPostgresStore } from '../../helpers/postgres/database.js'
import { createClock } from '../../helpers/sandbox/clock.js'
import { createPlant, gather } from '../../helpers/sandbox/store.js'
import { getDatabaseName, settleAll, waitForBlockedSessions } from './steps.js'

const fern = { id: 1n, name: 'Fern' }
const busy = /^unavailable: All connections for searches at postgres:\S+ are in use$/
const firstPage = (store: PostgresStore, query: ReadQuery) =>
  gather(store.read({ ...query, inPages: true, limit: 1 }))

test('searches, counts and lists by tag use at most half of the connections', async () => {
  const database = await databaseWithSlowPlant()
  const store = await openPostgresStore(database, { parameters: 'max=4' })
  await createPlant(store, fern)
  await createPlant(store, { id: 2n, name: 'Moss' })
  const release = await database.beginTransaction('SELECT pg_advisory_xact_lock(7)')
  const scans = [
    firstPage(store, { search: 'slow' }),
    firstPage(store, { tag: 'slow' }),
    firstPage(store, { tag: false }),
    store.count({ search: 'slow' }),
    store.count({ tag: 'slow' }),
  ]
  const controller = new AbortController()
  const { signal } = controller
  const aborted = [firstPage(store, { search: 'a', signal }), store.count({ signal })]
  await waitForBlockedSessions(database, 2)

  expect((await store.get([1n])).get(1n)).toStrictEqual(fern)
  expect(await firstPage(store, {})).toStrictEqual([fern])
  expect(await store.tokens.find(new Uint8Array(32))).toBe(undefined)
  await createPlant(store, { id: 3n, name: 'Oak' })
  await store.check()
  const reason = new Error('The client is gone')
  controller.abort(reason)
  expect(await settleAll(aborted)).toEqual([reason, reason])
  await waitForBlockedSessions(database, 2)

  await release()
  const slow = { id: 9n, name: 'slow', tag: 'slow' }
  expect(await Promise.all(scans)).toStrictEqual([[slow], [slow], [fern], 1n, 1n])
})

test('a search that gets no connection in time fails, and the others continue', async () => {
  const database = await databaseWithSlowPlant()
  const store = await openPostgresStore(database, { parameters: 'max=2' })
  const release = await database.beginTransaction('SELECT pg_advisory_xact_lock(7)')
  const first = store.count()
  await waitForBlockedSessions(database, 1)
  const time = createClock()
  const late = settleAll([store.count()])
  await new Promise(setImmediate)
  time.timeOut()
  expect(await late).toEqual([expect.stringMatching(busy)])
  await release()
  expect([await first, await store.count()]).toEqual([1n, 1n])
})

/** Whoever reads plant 9 in it waits while somebody holds the advisory lock 7. */
async function databaseWithSlowPlant() {
  const database = await createDatabase()
  await database.queryAsSuperuser(
    `ALTER DATABASE ${getDatabaseName(database)} SET enable_seqscan = off`,
  )
  await database.query(`INSERT INTO plant_store.plants VALUES (9, 'slow', 'slow');
    CREATE FUNCTION public.wait_for_lock() RETURNS boolean LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_catalog.pg_advisory_xact_lock_shared(7); RETURN true; END $$;
    CREATE POLICY slow ON plant_store.plants
      USING (CASE WHEN id = 9 THEN public.wait_for_lock() ELSE true END) WITH CHECK (true);
    ALTER TABLE plant_store.plants ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY`)
  return database
}
