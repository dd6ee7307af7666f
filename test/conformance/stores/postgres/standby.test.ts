import { describe, expect, test } from 'vitest'
import type { PostgresStore } from '../../../../src/stores/postgres/postgres-store.js'
import { batchOf, createAll } from '../../../helpers/bulk.js'
import { type Database, ownServer } from '../../../helpers/postgres.js'
import { settled } from '../../../helpers/settled.js'
import { createAtomically, openByLine, openShared } from '../../../helpers/shared-store.js'

const fern = { id: 1n, name: 'Fern' }
const unknown = expect.objectContaining({ type: 'unknownOutcome' })

/** Makes commits wait for a standby that is not there, or for none. */
async function waitFor({ admin }: Database, standby: '' | 'absent'): Promise<void> {
  await admin(`ALTER SYSTEM SET synchronous_standby_names = '${standby}'`)
  await admin('SELECT pg_reload_conf()')
  const awaited = async () => (await admin('SHOW synchronous_standby_names'))[0]
  await expect.poll(awaited).toEqual({ synchronous_standby_names: standby })
}

test('what is not on a standby is answered by no store, also by one that was connected before there was a standby', async () => {
  const database = await ownServer()
  const timeout = 1500
  const [first, second] = [await openShared(database, { timeout }), await openShared(database, { timeout })]
  await Promise.all([first.create({ ...fern, id: -1n }), second.create({ ...fern, id: -2n })])
  await waitFor(database, 'absent')
  const create = (store: PostgresStore) => store.create(fern, { idempotencyKey: 'fern' })

  await expect(create(first)).rejects.toEqual(unknown)
  const rejected = { status: 'rejected' }
  expect(await Promise.allSettled([create(second), create(first)])).toMatchObject([rejected, rejected])

  await waitFor(database, '')
  await expect.poll(() => create(second).catch(() => undefined)).toEqual({ name: 'Fern' })
  expect(await create(first)).toEqual({ name: 'Fern' })
})

/** Cancels each wait of the server for its standby until a call is over: what is committed is on this server alone. */
async function cancelWaits(database: Database, call: Promise<unknown>): Promise<number> {
  let [isOver, cancelled] = [false, 0]
  void call.finally(() => {
    isOver = true
  })
  // Except what waits for an earlier commit to reach the standby.
  const where = "wait_event = 'SyncRep' AND query NOT LIKE '%barrier%'"
  while (!isOver) {
    cancelled += (await database.admin(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE ${where}`)).length
  }
  return cancelled
}

const lost = expect.stringMatching(/^unknownOutcome: The connection to .* was lost during a commit: /)

describe('a commit is not answered when the server stops waiting for its standby,', () => {
  const changes: { text: string; change(store: PostgresStore): Promise<unknown> }[] = [
    { text: 'INSERT INTO plant_store.plants', change: (store) => store.create(fern) },
    { text: 'UPDATE plant_store.plants', change: (store) => store.replace({ id: 2n, name: 'Ivy' }) },
    { text: 'DELETE FROM plant_store.plants', change: (store) => store.delete(3n) },
    { text: 'COMMIT', change: (store) => createAll(store, batchOf([{ id: 4n, name: 'Oak' }])) },
    { text: 'COMMIT', change: (store) => createAtomically(store, [{ id: 5n, name: 'Yew' }]) },
  ]

  test.each([
    ['and says so', false, 'on'],
    ['and says so, whatever the default of the role', false, 'off'],
    ['and the connection is lost, so that a retry finds what was committed', true, 'on'],
  ])('%s', async (_, isCut, commit) => {
    const database = await ownServer()
    await database.admin(`ALTER ROLE plants SET synchronous_commit = ${commit}`)
    const users = await Promise.all(
      changes.map(async ({ text, change }) => {
        const { line, store } = await openByLine(database, { timeout: 1000 })
        return { line, text, change: () => change(store) }
      }),
    )
    const moss = "INSERT INTO plant_store.plants (id, name, attempt) VALUES (2, 'Moss', 0), (3, 'Moss', 0)"
    await database.sql(moss)
    await waitFor(database, 'absent')
    if (isCut) for (const { line, text } of users) line.cut(text, 'sent')
    const outcomes = settled(users.map(({ change }) => change()))
    expect(await cancelWaits(database, outcomes)).toBeGreaterThanOrEqual(changes.length)
    expect(await outcomes).toEqual(changes.map(() => lost))
    expect(users.map(({ line }) => line.cuts)).toEqual(changes.map(() => Number(isCut)))
    const stored = await database.sql('SELECT id FROM plant_store.plants ORDER BY id')
    expect(stored.map(({ id }) => id)).toEqual([1n, 2n, 4n, 5n])
  })
})

test('a repeated create is not answered before the plant is on the standby', async () => {
  const database = await ownServer()
  const store = await openShared(database, { timeout: 1000 })
  await store.create({ id: 2n, name: 'Moss' })
  await waitFor(database, 'absent')
  const create = () => store.create(fern, { idempotencyKey: 'fern' })
  const first = settled([create()])
  await cancelWaits(database, first)
  expect(await first).toEqual([lost])
  expect(await settled([create()])).toEqual([expect.stringMatching(/^unavailable: /)])
  await waitFor(database, '')
  await expect.poll(() => create().catch(() => undefined)).toEqual({ name: 'Fern' })
})
