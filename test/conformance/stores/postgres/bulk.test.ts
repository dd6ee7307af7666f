import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import type { NewPlant } from '../../../../src/plant/plant.js'
import type { Outcome } from '../../../../src/stores/common/change.js'
import type { Transaction } from '../../../../src/stores/common/store.js'
import { freshDatabase, reusedDatabase } from '../../../helpers/postgres.js'
import {
  asRole,
  createAll,
  createAtomically,
  creations,
  grantsTo,
  type Moment,
  openByLine,
  openShared,
  settled,
} from '../../../helpers/shared-store.js'
import { gathered } from '../../../helpers/store.js'

const database = reusedDatabase()
const plants = (count: number, first = 0, name = 'Fern'): NewPlant[] =>
  Array.from({ length: count }, (_, index) => ({
    id: BigInt(first + index),
    name: `${name} ${first + index}`,
  }))
const count = 'SELECT count(*)::int FROM plant_store.plants'
/** Which cannot be compressed. */
const randomText = (bytes: number) => randomBytes(bytes).toString('base64')
const checkpoint = { id: 'a', from: undefined, to: 'done' }

test('creates each row once when the connection is cut before they are sent', async () => {
  const place = await database()
  const { line, store } = await openByLine(place)
  line.cut('Fern 9000', 'before')
  expect(new Set(await createAll(store, plants(10_000), { checkpoint }))).toEqual(
    new Set(['created']),
  )
  expect([line.cuts, await place.sql(count)]).toEqual([1, [{ count: 10_000 }]])
  expect(await store.checkpoint('a')).toBe('done')
})

test.each<[Moment, string | undefined]>([
  ['before', undefined],
  ['answered', 'done'],
])('does not know the outcome of a commit that is cut %s', async (moment, stored) => {
  const place = await database()
  const { line, store } = await openByLine(place)
  line.cut('COMMIT', moment)
  const failure = createAll(store, plants(10), { checkpoint })
  await expect(failure).rejects.toMatchObject({ kind: 'unknownOutcome' })
  expect(line.cuts).toBe(1)
  expect(await store.checkpoint('a')).toBe(stored)
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

/** The trigger of another, which runs before each insert. */
const trigger = (body: string) =>
  `CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} END $$;
    CREATE TRIGGER other BEFORE INSERT ON plant_store.plants FOR EACH ROW EXECUTE FUNCTION other()`

test('rejects alone what a trigger leaves out', async () => {
  const place = await freshDatabase()
  const store = await openShared(place)
  await place.sql(trigger('RETURN CASE WHEN NEW.id % 1000 = 2 THEN NULL ELSE NEW END;'))
  const told = plants(2000).map(({ id }) => (id % 1000n === 2n ? 'rejected' : 'created'))
  expect(await createAll(store, plants(2000))).toEqual(told)
  expect(await place.sql(count)).toEqual([{ count: 1998 }])
})

test('creates what another writer has taken and deleted meanwhile', async () => {
  const place = await freshDatabase()
  const store = await openShared(place)
  const taken = "RAISE unique_violation USING CONSTRAINT = 'plants_pkey'"
  const odd = `IF nextval('public.tries') % 2 = 1 THEN ${taken}; END IF;`
  await place.sql(`CREATE SEQUENCE tries; ${trigger(`${odd} RETURN NEW;`)}`)
  expect(await createAll(store, plants(1))).toEqual(['created'])
  await createAtomically(store, plants(1, 9))
  expect((await gathered(store.read())).map(({ id }) => id)).toEqual([0n, 9n])
})

test('reads many of the largest plants at once', async () => {
  const place = await database()
  const store = await openShared(place)
  const insert = 'INSERT INTO plant_store.plants (id, name)'
  await place.sql(`${insert} SELECT id, repeat('x', 1000000) FROM generate_series(0, 69) AS id`)
  const found = await store.get(plants(70).map(({ id }) => id))
  expect([...found.values()].reduce((sum, { name }) => sum + name.length, 0)).toBe(70_000_000)
  expect((await gathered(store.read())).length).toBe(70)
})

const policy = `ALTER TABLE plant_store.plants ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
  CREATE POLICY no_x ON plant_store.plants USING (true) WITH CHECK (tag IS DISTINCT FROM 'x')`

/** Each is refused with another class of SQLSTATE. */
test.each([
  [
    '21000',
    trigger("IF NEW.tag = 'x' THEN NEW.name = (VALUES ('a'), ('b')); END IF; RETURN NEW;"),
    { tag: 'x' },
  ],
  ['22P02', "CREATE INDEX numbers ON plant_store.plants ((nullif(tag, '')::int))", { tag: 'x' }],
  ['23514', "ALTER TABLE plant_store.plants ADD CHECK (tag <> 'x')", { tag: 'x' }],
  ['42501', policy, { tag: 'x' }],
  [
    '42P01',
    trigger("IF NEW.tag = 'x' THEN INSERT INTO absent VALUES (1); END IF; RETURN NEW;"),
    { tag: 'x' },
  ],
  ['54000', 'CREATE INDEX names ON plant_store.plants (name)', { name: randomText(6000) }],
  ['P0001', trigger("IF NEW.tag = 'x' THEN RAISE 'no x'; END IF; RETURN NEW;"), { tag: 'x' }],
])('a plant that the database refuses with %s is refused alone', async (_, ddl, wrong) => {
  const place = await freshDatabase()
  await place.sql(ddl)
  const store = await openShared(place, { parameters: 'max=1' })
  const isWrong = (id: bigint) => id % 10n === 3n
  const wanted = plants(40).map((plant) => ({ ...plant, ...(isWrong(plant.id) && wrong) }))
  const expected = wanted.map(({ id }) => (isWrong(id) ? 'constraint' : 'created'))
  const kindOf = ([outcome]: Outcome[]) =>
    outcome?.type === 'rejected' ? outcome.error.kind : outcome?.type
  const singles = wanted.map(async (plant) => kindOf(await store.write(creations([plant]))))
  expect(await Promise.all(singles)).toEqual(expected)
  const many = wanted.map((plant) => ({ ...plant, id: plant.id + 100n }))
  expect((await createAtomically(store, many)).map((outcome) => kindOf([outcome]))).toEqual(
    expected,
  )
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

test('repeats no transaction whose work fails, and keeps its error', async () => {
  const store = await openShared(await database())
  const failure = new Error('no space left on device')
  let calls = 0
  const work = async ({ write }: Transaction) => {
    calls += 1
    await write(creations(plants(1)))
    throw failure
  }
  expect(await settled([store.transaction(work, { isRepeatable: true })])).toEqual([failure])
  expect([calls, await gathered(store.read())]).toEqual([1, []])
})

test('a transaction that the server rolls back is not done', async () => {
  const place = await database()
  const reader = await asRole(place, 'reader')
  await place.sql(grantsTo(reader.role, 'SELECT'))
  const store = await openShared(reader)
  const work = async ({ write }: Transaction) => {
    await write(creations(plants(1))).catch(() => undefined)
  }
  expect(await settled([store.transaction(work)])).toEqual([
    expect.stringMatching(/^unavailable: .* rolled a transaction back$/),
  ])
})

test('a checkpoint that there is not can be removed', async () => {
  const store = await openShared(await database())
  const none = { id: 'none', from: undefined, to: undefined }
  await store.transaction(({ saveCheckpoint }) => saveCheckpoint(none))
  expect(await store.checkpoint('none')).toBe(undefined)
})
