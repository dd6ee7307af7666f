import { expect, test } from 'vitest'
import { Line, type Moment } from '../../../helpers/postgres/line.js'
import { reusedDatabase } from '../../../helpers/postgres.js'
import { settled } from '../../../helpers/settled.js'
import { openByLine, openShared, othersWait } from '../../../helpers/shared-store.js'

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

test('tells each in its own time that the outcome is unknown, in whichever order their ids are', async () => {
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

test('creates over the connection that it has while a new one is not answered', async () => {
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

test('does not take for its own what another has deleted, after a try that the server refused', async () => {
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

test.each([1, 2, 3, 4, 5, 6, 7, 8])('opens and creates when a connection is cut behind answer %i', async (last) => {
  const place = await database()
  const line = await Line.to(place)
  line.cutBehind(last)
  const store = await openShared({ url: line.url, env: place.env })
  expect(await Promise.all([1n, 2n, 3n].map((id) => store.create({ id, name: 'Fern' })))).toHaveLength(3)
  do await store.check()
  while (line.cuts === 0) // the answers of a store come over several connections
  expect(line.cuts).toBe(1)
})
