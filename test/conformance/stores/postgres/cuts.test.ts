import { expect, test } from 'vitest'
import { Line, type Moment } from '../../../helpers/postgres/line.js'
import { reusedDatabase } from '../../../helpers/postgres.js'
import { settled } from '../../../helpers/settled.js'
import { openShared, othersWait } from '../../../helpers/shared-store.js'

const database = reusedDatabase()
const insert = 'INSERT INTO plant_store.plants'
const moments: Moment[] = ['before', 'sent', 'answered']

const unknown = expect.stringMatching(
  /^unknownOutcome: The connection to .* was lost during a commit: whether it is stored is unknown$/,
)

async function openByLine(options: Parameters<typeof openShared>[1] = {}) {
  const place = await database()
  const line = await Line.to(place)
  return { place, line, store: await openShared({ url: line.url, env: place.env }, options) }
}

test.each(moments)('answers once, and right, when the connection is cut %s', async (moment) => {
  const { place, line, store } = await openByLine()
  await store.create({ id: 7n, name: 'Moss' })
  line.cut(insert, moment)
  const calls = [
    store.create({ id: 1n, name: 'Fern' }),
    store.create({ id: 2n, name: 'Fern' }, { idempotencyKey: 'two' }),
    store.create({ id: 1n, name: 'Fern' }),
    store.create({ id: 7n, name: 'Moss' }),
  ]
  expect(await settled(calls)).toStrictEqual([
    { name: 'Fern' },
    { name: 'Fern' },
    'conflict: A plant with id 1 already exists',
    'conflict: A plant with id 7 already exists',
  ])
  expect(line.cuts).toBe(1)
  expect(await place.sql('SELECT id, idempotency_key AS key FROM plant_store.plants ORDER BY id')).toEqual([
    { id: 1n, key: null },
    { id: 2n, key: 'two' },
    { id: 7n, key: null },
  ])
})

test('tells each in its own time that the outcome is unknown, in whichever order their ids are', async () => {
  let skew = 0
  const clock = { signal: new AbortController().signal, now: () => performance.now() + skew, random: Math.random }
  const { line, store } = await openByLine({ timeout: 1000, clock })
  line.cut(insert, 'before', Infinity)
  const late: unknown[] = []
  const impatient = settled([store.create({ id: 2n, name: 'Moss' })]).then((told) => late.push(...told))
  skew = 10_000
  const patient = settled([store.create({ id: 1n, name: 'Fern' })]).then((told) => late.push(...told))
  await impatient
  expect(late).toEqual([unknown])
  line.mend()
  await patient
  expect(late).toEqual([unknown, { name: 'Fern' }])
})

test('waits no longer than its time for what is silent', async () => {
  const { place, line, store } = await openByLine({ timeout: 1000 })
  line.silence()
  expect(await settled([store.create({ id: 1n, name: 'Fern' })])).toEqual([unknown])
  line.mend()
  await expect.poll(() => settled([store.check()]), { interval: 5 }).toEqual([undefined])
  const patient = await openShared(place)
  expect(await settled([patient.create({ id: 2n, name: 'Moss' }), patient.create({ id: 1n, name: 'Fern' })])).toEqual([
    { name: 'Moss' },
    'conflict: A plant with id 1 already exists',
  ])
  expect(await place.sql('SELECT id FROM plant_store.plants ORDER BY id')).toEqual([{ id: 1n }, { id: 2n }])
})

test('creates over the connection that it has while a new one is not answered', async () => {
  const { place, line, store } = await openByLine()
  await store.create({ id: 1n, name: 'Fern' })
  line.block()
  const release = await place.hold(`${insert} (id, attempt, name) VALUES (2, 1, 'Moss')`)
  const blocked = settled([store.create({ id: 2n, name: 'Fern' })])
  await othersWait(place, 1)
  const waiting = store.create({ id: 3n, name: 'Fern' }) // opens the connection that is not answered
  await new Promise(setImmediate)
  const start = performance.now()
  await release()
  expect(await waiting).toStrictEqual({ name: 'Fern' })
  expect(performance.now() - start).toBeLessThan(2500) // half of `connect_timeout`
  await blocked
})

test.each(moments)('deletes once, and tells what it was, when the connection is cut %s', async (moment) => {
  const { line, store } = await openByLine()
  await store.create({ id: 1n, name: 'Fern' })
  line.cut('DELETE FROM plant_store.plants', moment)
  expect(await store.delete(1n)).toStrictEqual({ id: 1n, name: 'Fern' })
  expect(line.cuts).toBe(1)
  await store.create({ id: 1n, name: 'Fern' })
  line.cut('DELETE FROM plant_store.plants', moment)
  expect(await store.delete(1n, { id: 1n, name: 'Fern' })).toStrictEqual({ id: 1n, name: 'Fern' })
  expect(await store.delete(1n, { id: 1n, name: 'Fern' })).toBeUndefined()
})

test('does not take for its own what another has deleted, after a try that the server refused', async () => {
  const place = await database()
  const store = await openShared(place)
  for (const only of [undefined, { id: 1n, name: 'Fern' }]) {
    await store.create({ id: 1n, name: 'Fern' })
    const commit = await place.hold('DELETE FROM plant_store.plants')
    const deleted = store.delete(1n, only)
    await othersWait(place, 1)
    const waiting = `FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
    const [first] = await place.admin(`SELECT query_start::text AS began, pg_cancel_backend(pid) ${waiting}`)
    await expect
      .poll(() => place.admin(`SELECT ${waiting} AND query_start::text <> '${first?.['began']}'`), { interval: 5 })
      .toHaveLength(1)
    await commit('COMMIT')
    expect(await deleted).toBeUndefined()
  }
})

test.each([1, 2, 3, 4, 5, 6, 7, 8])(
  'opens and creates all the same when a connection is cut behind answer %i',
  async (answer) => {
    const place = await database()
    const line = await Line.to(place)
    line.cutBehind(answer)
    const store = await openShared({ url: line.url, env: place.env })
    expect(await Promise.all([1n, 2n, 3n].map((id) => store.create({ id, name: 'Fern' })))).toHaveLength(3)
    do await store.check()
    while (line.cuts === 0) // the answers of a store come over several connections
    expect(line.cuts).toBe(1)
  },
)
