import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import type { NewPlant } from '../../../../src/plant/plant.js'
import type { Change } from '../../../../src/stores/common/change.js'
import { freshDatabase, reusedDatabase } from '../../../helpers/postgres.js'
import {
  createAll,
  createAtomically,
  creations,
  type Moment,
  openByLine,
  openShared,
  othersWait,
  typesOf,
} from '../../../helpers/shared-store.js'
import { gathered, openOptions } from '../../../helpers/store.js'

const database = reusedDatabase()
const plants = (count: number, first = 0, name = 'Fern'): NewPlant[] =>
  Array.from({ length: count }, (_, index) => ({
    id: BigInt(first + index),
    name: `${name} ${first + index}`,
  }))
const count = 'SELECT count(*)::int FROM plant_store.plants'
const checkpoint = { id: 'a', from: undefined, to: 'done' }

test.each<[string, Moment]>([
  ['COMMIT', 'sent'],
  ['COMMIT', 'answered'],
  ['Fern 9000', 'before'],
])('creates each row once when the connection is cut at its %s, %s', async (text, moment) => {
  const place = await database()
  const { line, store } = await openByLine(place)
  line.cut(text, moment)
  expect(new Set(await createAll(store, plants(10_000), { checkpoint }))).toEqual(
    new Set(['created']),
  )
  expect([line.cuts, await place.sql(count)]).toEqual([1, [{ count: 10_000 }]])
  expect(await store.checkpoint('a')).toBe('done')
})

test('does not take what it has updated itself for what was there before', async () => {
  const { line, store } = await openByLine(await database())
  await createAll(store, plants(1))
  line.cut('COMMIT', 'answered')
  const updates = plants(2, 0, 'Moss').map(
    (patch): Change => ({ type: 'update', patch, ifMissing: 'create' }),
  )
  const outcomes = await store.transaction(
    async ({ write, saveCheckpoint }) => {
      const all = await write(updates)
      await saveCheckpoint(checkpoint)
      return all
    },
    { isRepeatable: true },
  )
  expect(typesOf(outcomes)).toEqual(['updated', 'created'])
  expect([line.cuts, await gathered(store.read())]).toEqual([1, plants(2, 0, 'Moss')])
})

test('the outcome of a commit is unknown when nobody can be asked', async () => {
  let cuts = () => 0
  const runtime = { ...openOptions().runtime, now: () => (cuts() < 3 ? 0 : 3_600_000) }
  const { line, store } = await openByLine(await database(), { runtime })
  cuts = () => line.cuts
  line.cut('COMMIT', 'answered')
  line.cut('', 'before', Infinity)
  const failure = createAll(store, plants(10), { checkpoint })
  await expect(failure).rejects.toMatchObject({ kind: 'unknownOutcome' })
})

test('gives each id once to two imports that want the same ones', async () => {
  const place = await database()
  const [one, other] = [await openShared(place), await openShared(place)]
  const [a, b] = await Promise.all([
    createAll(one, plants(20_000, 0, 'one')),
    createAll(other, plants(20_000, 0, 'other').reverse()),
  ])
  const names = a.map((outcome, id) => `${outcome === 'created' ? 'one' : 'other'} ${id}`)
  expect(b.reverse()).toEqual(a.map((outcome) => (outcome === 'created' ? 'rejected' : 'created')))
  expect((await gathered(one.read())).map(({ name }) => name)).toEqual(names)
})

test('makes no change after one that another store makes rejected', async () => {
  const place = await database()
  const store = await openShared(place)
  await createAll(store, [...plants(1, 7), { id: 1n, name: 'Moss' }])
  const commit = await place.hold("INSERT INTO plant_store.plants VALUES (0, 0, 'Fern 0')")
  const wanted = [7, 5, 0, 1, 2, 3].flatMap((id) => plants(1, id))
  const outcomes = store.write(creations(wanted, { ifExists: 'same' }), { maxRejected: 1 })
  await othersWait(place, 1)
  await commit('COMMIT')
  expect(typesOf(await outcomes).join(' ')).toBe('skipped created skipped rejected unsent unsent')
  expect((await gathered(store.read())).map(({ id }) => id)).toEqual([0n, 1n, 5n, 7n])
})

/** The trigger of another, which runs before each insert. */
const trigger = (body: string) =>
  `CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} END $$;
    CREATE TRIGGER other BEFORE INSERT ON plant_store.plants FOR EACH ROW EXECUTE FUNCTION other()`

test('does not count as created what a trigger leaves out', async () => {
  const place = await freshDatabase()
  const store = await openShared(place)
  await place.sql(trigger('RETURN CASE WHEN NEW.id = 2 THEN NULL ELSE NEW END;'))
  const failure = {
    type: 'unavailable',
    message: expect.stringMatching(/^postgres:\S+ did not change all plants$/),
  }
  for (const size of [3, 2000]) {
    await expect(createAll(store, plants(size))).rejects.toMatchObject(failure)
    await expect(createAtomically(store, plants(size))).rejects.toMatchObject(failure)
  }
  expect(await place.sql(count)).toEqual([{ count: 0 }])
})

test('creates what another writer has taken and deleted meanwhile', async () => {
  const place = await freshDatabase()
  const store = await openShared(place)
  const odd = "IF nextval('public.tries') % 2 = 1 THEN RAISE unique_violation; END IF;"
  await place.sql(`CREATE SEQUENCE tries; ${trigger(`${odd} RETURN NEW;`)}`)
  expect(await createAll(store, plants(1))).toEqual(['created'])
  await createAtomically(store, plants(1, 9))
  expect((await gathered(store.read())).map(({ id }) => id)).toEqual([0n, 9n])
})

test('reads many of the largest plants at once, but no endless record', async () => {
  const place = await database()
  const store = await openShared(place)
  const insert = 'INSERT INTO plant_store.plants (id, attempt, name)'
  await place.sql(`${insert} SELECT id, 0, repeat('x', 1000000) FROM generate_series(0, 69) AS id`)
  const found = await store.get(plants(70).map(({ id }) => id))
  expect([...found.values()].reduce((sum, { name }) => sum + name.length, 0)).toBe(70_000_000)
  await place.sql(`${insert} SELECT 71, 0, repeat('x', 70000000)`)
  const exported = Readable.from(store.read()).toArray()
  await expect(exported).rejects.toThrow('its response is too large')
})

test('a page has a plant, however large it is', async () => {
  const place = await database()
  const store = await openShared(place)
  const insert = "INSERT INTO plant_store.plants (id, name) SELECT id, repeat('x', 1100000)"
  await place.sql(`${insert} FROM generate_series(0, 2) AS id`)
  const pages = await Readable.from(store.read({ inPages: true })).toArray()
  expect(pages.map((page) => page.map(({ id }: NewPlant) => id))).toEqual([[0n], [1n], [2n]])
})

test('gives its connection back when nobody reads on', async () => {
  const store = await openShared(await database(), { parameters: 'max=1' })
  await createAll(store, plants(3000))
  for await (const _ of store.read()) break
  expect((await store.get([2n])).get(2n)).toStrictEqual({ id: 2n, name: 'Fern 2' })
})
