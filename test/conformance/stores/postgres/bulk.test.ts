import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import type { NewPlant } from '../../../../src/plant/plant.js'
import { batchOf, createAll, outcomesOf } from '../../../helpers/bulk.js'
import { freshDatabase, reusedDatabase } from '../../../helpers/postgres.js'
import {
  createAtomically,
  endSessions,
  type Moment,
  openByLine,
  openShared,
  othersWait,
} from '../../../helpers/shared-store.js'
import { gathered } from '../../../helpers/store.js'

const database = reusedDatabase()
const plants = (count: number, first = 0, name = 'Fern'): NewPlant[] =>
  Array.from({ length: count }, (_, index) => ({ id: BigInt(first + index), name: `${name} ${first + index}` }))
const count = 'SELECT count(*)::int FROM plant_store.plants'
const lock = 'LOCK TABLE plant_store.plants IN EXCLUSIVE MODE'
const checkpoint = 'a'

test.each<[string, Moment]>([
  ['COMMIT', 'before'],
  ['COMMIT', 'sent'],
  ['COMMIT', 'answered'],
  ['Fern 9000', 'before'],
])('creates each row once when the connection is cut at its %s, %s', async (text, moment) => {
  const place = await database()
  const { line, store } = await openByLine(place)
  line.cut(text, moment)
  expect(new Set(await createAll(store, batchOf(plants(10_000)), { checkpoint }))).toEqual(new Set(['created']))
  expect([line.cuts, await place.sql(count)]).toEqual([1, [{ count: 10_000 }]])
  expect(await store.findCheckpoint('a')).toBe('1'.repeat(10_000))
})

test.each<[Moment, string]>([
  ['before', 'updated'],
  ['answered', 'skipped'],
])('updates again when the connection is cut at its COMMIT, %s', async (moment, outcome) => {
  const { line, store } = await openByLine(await database())
  await createAll(store, batchOf(plants(2000)))
  line.cut('COMMIT', moment)
  const batch = [...plants(3000, 0, 'Moss'), ...plants(1, 2500)]
  const outcomes = await createAll(store, batchOf(batch), { checkpoint, ifExists: 'update' })
  expect(line.cuts).toBe(1)
  expect(outcomes).toEqual([...Array(2000).fill(outcome), ...Array(1000).fill('created'), 'updated'])
  const names = (await gathered(store.list())).map(({ name }) => name)
  expect(names).toEqual(plants(3000, 0, 'Moss').map(({ name }, id) => (id === 2500 ? 'Fern 2500' : name)))
})

test('the outcome of a commit is unknown when nobody can be asked', async () => {
  const { line, store } = await openByLine(await database(), { timeout: 1000 })
  line.cut('COMMIT', 'answered')
  line.cut('', 'before', Infinity)
  const failure = createAll(store, batchOf(plants(10)), { checkpoint })
  await expect(failure).rejects.toMatchObject({ type: 'unknownOutcome' })
})

test('leaves all rows pending when nothing of them was stored', async () => {
  const place = await database()
  const store = await openShared(place, { timeout: 1000 })
  const release = await place.hold(lock)
  const batch = batchOf(plants(10))
  await expect(createAll(store, batch, { checkpoint })).rejects.toMatchObject({ type: 'unavailable' })
  expect(outcomesOf(batch)).toEqual(Array(10).fill('pending'))
  await release()
  expect(await place.sql(count)).toEqual([{ count: 0 }])
})

test('gives each id once to two imports that want the same ones', async () => {
  const place = await database()
  const [one, other] = [await openShared(place), await openShared(place)]
  const [a, b] = await Promise.all([
    createAll(one, batchOf(plants(20_000, 0, 'one'))),
    createAll(other, batchOf(plants(20_000, 0, 'other').reverse())),
  ])
  const names = a.map((outcome, id) => `${outcome === 'created' ? 'one' : 'other'} ${id}`)
  expect(b.reverse()).toEqual(a.map((outcome) => (outcome === 'created' ? 'exists' : 'created')))
  expect((await gathered(one.list())).map(({ name }) => name)).toEqual(names)
})

test('begins nothing after a row that another store makes rejected', async () => {
  const place = await database()
  const store = await openShared(place)
  await createAll(store, batchOf([...plants(1, 7), { id: 1n, name: 'Moss' }]))
  const commit = await place.hold("INSERT INTO plant_store.plants VALUES (0, 0, 'Fern 0')")
  const batch = batchOf([7, 5, 0, 1, 2, 3].flatMap((id) => plants(1, id)))
  const outcomes = createAll(store, batch, { stopsAtReject: true, ifExists: 'same' })
  await othersWait(place, 1)
  await commit('COMMIT')
  expect((await outcomes).join(' ')).toBe('skipped created skipped exists pending pending')
  expect((await gathered(store.list())).map(({ id }) => id)).toEqual([0n, 1n, 5n, 7n])
})

test('creates nothing of a batch that is stopped before its commit', async () => {
  const place = await database()
  const store = await openShared(place)
  const release = await place.hold(lock)
  const stop = new AbortController()
  const outcomes = createAll(store, batchOf(plants(10)), { stop: stop.signal, checkpoint })
  await othersWait(place, 1)
  stop.abort()
  await endSessions(place)
  expect(new Set(await outcomes)).toEqual(new Set(['pending']))
  await release()
  expect([await store.findCheckpoint('a'), await place.sql(count)]).toEqual([undefined, [{ count: 0 }]])
})

/** The trigger of another, which runs before each insert. */
const trigger = (body: string) =>
  `CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} END $$;
    CREATE TRIGGER other BEFORE INSERT ON plant_store.plants FOR EACH ROW EXECUTE FUNCTION other()`

test('does not count as created what a trigger leaves out', async () => {
  const place = await freshDatabase()
  const store = await openShared(place)
  await createAll(store, batchOf(plants(1, 100)))
  await place.sql(trigger('RETURN CASE WHEN NEW.id = 2 THEN NULL ELSE NEW END;'))
  const failure = { type: 'unavailable', message: expect.stringMatching(/^postgres:\S+ did not insert all plants$/) }
  for (const batch of [plants(3), [...plants(1, 100), ...plants(3)]]) {
    await expect(createAll(store, batchOf(batch))).rejects.toMatchObject(failure)
    expect((await gathered(store.list())).map(({ id }) => id)).not.toContain(2n)
  }
  await expect(createAtomically(store, plants(3))).rejects.toMatchObject(failure)
})

test('creates what another writer has taken and deleted meanwhile', async () => {
  const place = await freshDatabase()
  const store = await openShared(place)
  const odd = "IF nextval('public.tries') % 2 = 1 THEN RAISE unique_violation; END IF;"
  await place.sql(`CREATE SEQUENCE tries; ${trigger(`${odd} RETURN NEW;`)}`)
  expect(await createAll(store, batchOf(plants(1)))).toEqual(['created'])
  await createAtomically(store, plants(1, 9))
  expect((await gathered(store.list())).map(({ id }) => id)).toEqual([0n, 9n])
})

test('reads many of the largest plants at once, but no endless record', async () => {
  const place = await database()
  const store = await openShared(place)
  const insert = 'INSERT INTO plant_store.plants (id, attempt, name)'
  await place.sql(`${insert} SELECT id, 0, repeat('x', 1000000) FROM generate_series(0, 69) AS id`)
  const found = await store.getMany(plants(70).map(({ id }) => id))
  expect([...found.values()].reduce((sum, { name }) => sum + name.length, 0)).toBe(70_000_000)
  await place.sql(`${insert} SELECT 71, 0, repeat('x', 70000000)`)
  const exported = Readable.from(store.snapshot({ record: 'json' })).toArray()
  await expect(exported).rejects.toThrow('its response is too large')
})

test('gives its connection back when nobody reads on', async () => {
  const store = await openShared(await database(), { parameters: 'max=1' })
  await createAll(store, batchOf(plants(3000)))
  for await (const _ of store.snapshot({ record: 'json' })) break
  expect(await store.get(2n)).toStrictEqual({ id: 2n, name: 'Fern 2' })
})
