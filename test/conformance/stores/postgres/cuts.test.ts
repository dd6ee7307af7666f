import { describe, expect, test } from 'vitest'
import type { PostgresStore } from '../../../../src/stores/postgres/postgres-store.js'
import { batchOf, createAll } from '../../../helpers/bulk.js'
import { type Database, ownServer, reusedDatabase } from '../../../helpers/postgres.js'
import {
  configure,
  createAtomically,
  Line,
  type Moment,
  openByLine,
  openShared,
  othersWait,
  settled,
} from '../../../helpers/shared-store.js'

const database = reusedDatabase()
const insert = 'INSERT INTO plant_store.plants'
const moments: Moment[] = ['before', 'sent', 'answered']
const answer = { name: 'Fern' }
const fern = { id: 1n, ...answer }
const taken = (id: number) => `conflict: A plant with id ${id} already exists`
const unknown = expect.stringMatching(
  /^unknownOutcome: The connection to .* was lost during a commit: whether it is stored is unknown$/,
)

test.each(moments)('answers once, and right, when the connection is cut %s', async (moment) => {
  const place = await database()
  const { line, store } = await openByLine(place)
  await store.create({ id: 7n, name: 'Moss' })
  line.cut(insert, moment)
  const calls = [
    store.create(fern),
    store.create({ id: 2n, name: 'Fern' }, { idempotencyKey: 'two' }),
    store.create(fern),
    store.create({ id: 7n, name: 'Moss' }),
  ]
  expect(await settled(calls)).toStrictEqual([answer, answer, taken(1), taken(7)])
  expect(line.cuts).toBe(1)
  const stored = await place.sql('SELECT id, idempotency_key AS key FROM plant_store.plants ORDER BY id')
  expect(stored.map(({ id, key }) => [id, key])).toEqual([
    [1n, null],
    [2n, 'two'],
    [7n, null],
  ])
})

test('tells each in its own time that the outcome is unknown', async () => {
  let skew = 0
  const clock = { signal: new AbortController().signal, now: () => performance.now() + skew, random: Math.random }
  const { line, store } = await openByLine(await database(), { timeout: 1000, clock })
  line.cut(insert, 'before', Infinity)
  const late: unknown[] = []
  const impatient = settled([store.create({ id: 2n, name: 'Moss' })]).then((told) => late.push(...told))
  skew = 10_000
  const patient = settled([store.create(fern)]).then((told) => late.push(...told))
  await impatient
  expect(late).toEqual([unknown])
  line.mend()
  await patient
  expect(late).toEqual([unknown, answer])
})

test('waits no longer than its time for what is silent', async () => {
  const place = await database()
  const { line, store } = await openByLine(place, { timeout: 1000 })
  line.silence()
  expect(await settled([store.create(fern)])).toEqual([unknown])
  line.mend()
  await expect.poll(() => settled([store.check()]), { interval: 5 }).toEqual([undefined])
  const patient = await openShared(place)
  const calls = [patient.create({ id: 2n, name: 'Fern' }), patient.create(fern)]
  expect(await settled(calls)).toEqual([answer, taken(1)])
  expect(await place.sql('SELECT id FROM plant_store.plants ORDER BY id')).toEqual([{ id: 1n }, { id: 2n }])
})

test('creates over its connection while a new one is not answered', async () => {
  const place = await database()
  const { line, store } = await openByLine(place)
  await store.create(fern)
  line.block()
  const release = await place.hold(`${insert} (id, attempt, name) VALUES (2, 1, 'Moss')`)
  const blocked = settled([store.create({ id: 2n, name: 'Fern' })])
  await othersWait(place, 1)
  const waiting = store.create({ id: 3n, name: 'Fern' }) // opens the connection that is not answered
  await new Promise(setImmediate)
  const start = performance.now()
  await release()
  expect(await waiting).toStrictEqual(answer)
  expect(performance.now() - start).toBeLessThan(2500) // half of `connect_timeout`
  await blocked
})

test.each(moments)('deletes once, and returns what it was, when the connection is cut %s', async (moment) => {
  const { line, store } = await openByLine(await database())
  for (const only of [undefined, fern]) {
    await store.create(fern)
    line.cut('DELETE FROM plant_store.plants', moment)
    expect(await store.delete(1n, only)).toStrictEqual(fern)
  }
  expect(line.cuts).toBe(2)
  expect(await store.delete(1n, fern)).toBeUndefined()
})

test('does not take for its own what another has deleted', async () => {
  const place = await database()
  const store = await openShared(place)
  for (const only of [undefined, fern]) {
    await store.create(fern)
    const commit = await place.hold('DELETE FROM plant_store.plants')
    const deleted = store.delete(1n, only)
    await othersWait(place, 1)
    const waiting = `FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
    const [first] = await place.admin(`SELECT query_start::text AS began, pg_cancel_backend(pid) ${waiting}`)
    const next = `SELECT ${waiting} AND query_start::text <> '${first?.['began']}'`
    await expect.poll(() => place.admin(next), { interval: 5 }).toHaveLength(1)
    await commit('COMMIT')
    expect(await deleted).toBeUndefined()
  }
})

test.each([1, 2, 3, 4, 5, 6, 7, 8])('opens and creates when a connection is cut behind piece %i', async (last) => {
  const place = await database()
  const line = await Line.to(place)
  line.cutBehind(last)
  const store = await openShared({ url: line.url, env: place.env })
  expect(await Promise.all([1n, 2n, 3n].map((id) => store.create({ id, name: 'Fern' })))).toHaveLength(3)
  do await store.check()
  while (line.cuts === 0) // a store has several connections
  expect(line.cuts).toBe(1)
})

async function waitFor(database: Database, standby: '' | 'absent'): Promise<void> {
  await configure(database, `synchronous_standby_names = '${standby}'`)
  const awaited = async () => (await database.admin('SHOW synchronous_standby_names'))[0]
  await expect.poll(awaited).toEqual({ synchronous_standby_names: standby })
}

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
    expect(await outcomes).toEqual(changes.map(() => unknown))
    expect(users.map(({ line }) => line.cuts)).toEqual(changes.map(() => Number(isCut)))
    const stored = await database.sql('SELECT id FROM plant_store.plants ORDER BY id')
    expect(stored.map(({ id }) => id)).toEqual([1n, 2n, 4n, 5n])
  })
})

test('a create is not answered before the plant is on the standby, not even a repeated one', async () => {
  const database = await ownServer()
  const store = await openShared(database, { timeout: 1000 })
  await store.create({ id: 2n, name: 'Moss' })
  await waitFor(database, 'absent')
  const create = () => store.create(fern, { idempotencyKey: 'fern' })
  expect(await settled([create()])).toEqual([unknown])
  const again = settled([create()])
  await cancelWaits(database, again)
  expect(await again).toEqual([expect.stringMatching(/^unavailable: /)])
  await waitFor(database, '')
  await expect.poll(() => create().catch(() => undefined)).toEqual({ name: 'Fern' })
})
