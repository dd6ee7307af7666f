import { expect, test } from 'vitest'
import { assertDefined } from '../../../src/errors.js'
import type { NewPlant } from '../../../src/plant/plant.js'
import { type Outcome, writeOne } from '../../../src/stores/change.js'
import type { PostgresStore } from '../../../src/stores/postgres/store.js'
import type { Transaction } from '../../../src/stores/store.js'
import {
  createDatabase,
  openPostgresStore,
  shareDatabase,
} from '../../helpers/postgres/database.js'
import { createPlant, gather, toCreates } from '../../helpers/sandbox/store.js'
import {
  createAll,
  createRole,
  getDatabaseName,
  settleAll,
  waitForBlockedSessions,
} from './steps.js'

const getDatabase = shareDatabase()
const plants = (count: number, first = 0, name = 'Fern'): NewPlant[] =>
  Array.from({ length: count }, (_, index) => ({
    id: BigInt(first + index),
    name: `${name} ${first + index}`,
  }))

test('a transaction that a deadlock ends is repeated', async () => {
  const database = await getDatabase()
  await database.queryAsSuperuser(
    `ALTER DATABASE ${getDatabaseName(database)} SET deadlock_timeout = '20ms'`,
  )
  const [one, other] = [await openPostgresStore(database), await openPostgresStore(database)]
  let arrived = 0
  let release = () => {}
  const bothWrote = new Promise<void>((resolve) => {
    release = resolve
  })
  const createBoth = (store: PostgresStore, ids: bigint[]) =>
    store.transaction(async ({ write }) => {
      const [first, second] = ids.map((id) => toCreates([{ id, name: 'Fern' }]))
      const before = await write(assertDefined(first))
      arrived += 1
      if (arrived === 2) release()
      await bothWrote
      return [...before, ...(await write(assertDefined(second)))].map(({ type }) => type)
    })
  const outcomes = await settleAll([createBoth(one, [1n, 2n]), createBoth(other, [2n, 1n])])
  expect(outcomes).toContainEqual(['created', 'created'])
  expect(outcomes).toContainEqual(expect.stringMatching(/^unavailable: /))
  await Promise.all([one.close(), other.close()]) // after which the server counts it
  const met = 'SELECT deadlocks > 0 AS met FROM pg_stat_database WHERE datname = current_database()'
  await expect.poll(() => database.queryAsSuperuser(met), { interval: 5 }).toEqual([{ met: true }])
})

test('two stores that both read a plant before they change it lose no change', async () => {
  const database = await getDatabase()
  const [one, other] = [await openPostgresStore(database), await openPostgresStore(database)]
  await createPlant(one, { id: 1n, name: 'Fern' })
  const release = await database.beginTransaction('SELECT FROM plant_store.plants FOR UPDATE')
  const first = writeOne(one, { type: 'update', patch: { id: 1n, name: 'Moss' } })
  await waitForBlockedSessions(database, 1)
  const second = writeOne(other, { type: 'update', patch: { id: 1n, tag: 'wet' } })
  await waitForBlockedSessions(database, 2)
  await release()
  await Promise.all([first, second])
  expect((await one.get([1n])).get(1n)).toEqual({ id: 1n, name: 'Moss', tag: 'wet' })
})

test('two imports that generate ids at the same time get different ids', async () => {
  const database = await getDatabase()
  const [one, other] = [await openPostgresStore(database), await openPostgresStore(database)]
  const [a, b] = await Promise.all([
    createAll(one, plants(20_000, 0, 'one')),
    createAll(other, plants(20_000, 0, 'other').reverse()),
  ])
  const names = a.map((outcome, id) => `${outcome === 'created' ? 'one' : 'other'} ${id}`)
  expect(b.reverse()).toEqual(a.map((outcome) => (outcome === 'created' ? 'rejected' : 'created')))
  expect((await gather(one.read())).map(({ name }) => name)).toEqual(names)
})

/** The trigger of another, which runs before each insert. */
const trigger = (body: string) =>
  `CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} END $$;
    CREATE TRIGGER other BEFORE INSERT ON plant_store.plants FOR EACH ROW EXECUTE FUNCTION other()`

test('a trigger that raises unique_violation rejects a plant whose id is free', async () => {
  const database = await createDatabase()
  const store = await openPostgresStore(database)
  const raise = "RAISE unique_violation USING CONSTRAINT = 'plants_pkey'"
  await database.query(trigger(`IF NEW.id % 1000 = 2 THEN ${raise}; END IF; RETURN NEW;`))
  const [rejected] = await store.write(toCreates(plants(1, 2)))
  expect(rejected).toMatchObject({ type: 'rejected', problem: { kind: 'constraint' } })
  const expectedTypes = plants(2000).map(({ id }) => (id % 1000n === 2n ? 'rejected' : 'created'))
  expect(await createAll(store, plants(2000))).toEqual(expectedTypes)
})

test('a table whose policy is for inserts alone accepts no plant, and says why', async () => {
  const database = await createDatabase()
  await database.query(`ALTER TABLE plant_store.plants ENABLE ROW LEVEL SECURITY,
    FORCE ROW LEVEL SECURITY;
    CREATE POLICY inserts ON plant_store.plants FOR INSERT WITH CHECK (true)`)
  const [outcome] = await (await openPostgresStore(database)).write(toCreates(plants(1)))
  const message = expect.stringContaining('row-level security policy')
  expect(outcome).toMatchObject({ type: 'rejected', problem: { kind: 'constraint', message } })
})

test('a plant that a trigger skips is the only one that is rejected', async () => {
  const database = await createDatabase()
  const store = await openPostgresStore(database)
  await database.query(trigger('RETURN CASE WHEN NEW.id % 1000 = 2 THEN NULL ELSE NEW END;'))
  const expectedTypes = plants(2000).map(({ id }) => (id % 1000n === 2n ? 'rejected' : 'created'))
  expect(await createAll(store, plants(2000))).toEqual(expectedTypes)
  expect(await store.count()).toBe(1998n)
})

const policy = `ALTER TABLE plant_store.plants ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
  CREATE POLICY no_x ON plant_store.plants USING (true) WITH CHECK (tag IS DISTINCT FROM 'x')`
const ofTagX = trigger("IF NEW.tag = 'x' THEN RAISE 'no x'; END IF; RETURN NEW;")

/** Each is refused with another class of SQLSTATE. */
test.each([
  ['22P02', "CREATE INDEX numbers ON plant_store.plants ((nullif(tag, '')::int))"],
  ['23514', "ALTER TABLE plant_store.plants ADD CHECK (tag <> 'x')"],
  ['P0001', ofTagX],
  ['42501', policy],
])(
  'a plant that the database rejects with the SQLSTATE %s is the only one that is rejected',
  async (_, ddl) => {
    const database = await createDatabase()
    await database.query(ddl)
    const store = await openPostgresStore(database, { parameters: 'max=1' })
    const isWrong = (id: bigint) => id % 10n === 3n
    const wanted = plants(40).map((plant) => ({ ...plant, ...(isWrong(plant.id) && { tag: 'x' }) }))
    const expected = wanted.map(({ id }) => (isWrong(id) ? 'constraint' : 'created'))
    const kindsOf = (outcomes: Outcome[]) =>
      outcomes.map((outcome) => ('problem' in outcome ? outcome.problem.kind : outcome.type))
    const singles = await Promise.all(wanted.map((plant) => store.write(toCreates([plant]))))
    expect(kindsOf(singles.flat())).toEqual(expected)
    const many = toCreates(wanted.map((plant) => ({ ...plant, id: plant.id + 100n })))
    expect(kindsOf(await store.transaction(({ write }) => write(many)))).toEqual(expected)
  },
)

test('many concurrent reads of the largest plants yield pages of one plant', async () => {
  const database = await getDatabase()
  const store = await openPostgresStore(database)
  const insert = "INSERT INTO plant_store.plants (id, name) SELECT id, repeat('x', 1100000)"
  await database.query(`${insert} FROM generate_series(0, 63) AS id`)
  const found = await store.get(plants(64).map(({ id }) => id))
  expect([...found.values()].every(({ name }) => name.length === 1_100_000)).toBe(true)
  expect(found.size).toBe(64)
  const sizes: number[] = []
  for await (const page of store.read({ inPages: true, limit: 3 })) sizes.push(page.length)
  expect([(await gather(store.read())).length, sizes]).toEqual([64, [1, 1, 1]])
})

test('a read that is not continued returns its connection to the pool', async () => {
  const store = await openPostgresStore(await getDatabase(), { parameters: 'max=1' })
  await createAll(store, plants(3000))
  for await (const _ of store.read()) break
  expect((await store.get([2n])).get(2n)).toStrictEqual({ id: 2n, name: 'Fern 2' })
})

test('a transaction that the server rolls back is reported as failed', async () => {
  const database = await getDatabase()
  const reader = await createRole(database, 'reader')
  await database.query(`GRANT USAGE ON SCHEMA plant_store TO ${reader.role};
    GRANT SELECT ON ALL TABLES IN SCHEMA plant_store TO ${reader.role}`)
  const store = await openPostgresStore(reader)
  const work = async ({ write }: Transaction) => {
    await write(toCreates(plants(1))).catch(() => undefined)
  }
  expect(await settleAll([store.transaction(work)])).toEqual([
    expect.stringMatching(/^unavailable: .* rolled back the transaction$/),
  ])
})
