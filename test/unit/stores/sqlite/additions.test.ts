import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Change } from '../../../../src/stores/common/change.js'
import { SqliteStore } from '../../../../src/stores/sqlite/store.js'
import { DatabaseSync } from '../../../helpers/database.js'
import { query } from '../../../helpers/sqlite-file.js'
import { closedAfterTest, fileAddress, openOptions } from '../../../helpers/store.js'
import { printed, refusal, World } from '../../../helpers/world.js'

// What users add to the file of their store with other programs.

const fern = '{"id":1,"name":"Fern","tag":"shade"}\n'
let user: World

beforeEach(async () => {
  user = new World()
  await user.run('create', { stdin: fern })
})

function exec(sql: string, defensive = true): void {
  const db = new DatabaseSync(user.store, { defensive })
  db.exec(sql)
  db.close()
}

function additions(): unknown[] {
  return query(
    user.store,
    "SELECT name FROM sqlite_schema WHERE name LIKE 'my%' ORDER BY name",
  ).map(({ name }) => name)
}

test('an index, a view and a table are left alone by all commands, and are in a backup', async () => {
  exec(`CREATE INDEX my_index ON plants (tag, lower(name));
    CREATE VIEW my_view AS SELECT tag, count(*) FROM plants GROUP BY tag;
    CREATE TABLE my_table (plant INTEGER REFERENCES plants (id), watered TEXT);
    INSERT INTO my_table VALUES (1, 'today')`)
  const moss = '{"id":2,"name":"Moss"}'
  const wet = '{"id":2,"name":"Moss","tag":"wet"}\n'
  const changes: [line: string, out: string, stdin?: string][] = [
    ['create', '{"name":"Moss"}\n', moss],
    ['update 2 --tag wet', wet],
    ['list --tag wet --sort name', wet],
    ['delete 2 --yes', wet],
  ]
  for (const [line, out, stdin = ''] of changes)
    expect(await user.run(line, { stdin }), line).toEqual(printed(out))
  expect((await user.run('import --if-exists update', { stdin: moss })).code).toBe(0)
  expect((await user.run('backup plants.bak')).code).toBe(0)
  await user.run('delete 1 --yes')
  expect((await user.run('restore plants.bak --yes')).code).toBe(0)
  expect((await user.run('list')).out).toBe(`${fern}${moss}\n`)
  expect((await user.run('doctor')).code).toBe(0)
  for (const path of [user.store, join(user.home, 'plants.bak')])
    expect(query(path, 'SELECT watered FROM my_table')).toEqual([{ watered: 'today' }])
  expect(additions()).toEqual(['my_index', 'my_table', 'my_view'])
})

test('a plant that an index on an expression refuses affects no other one', async () => {
  exec("CREATE INDEX my_index ON plants (json_extract(tag, '$.a')) WHERE tag <> 'shade'")
  const store = await SqliteStore.open(fileAddress(user.store), openOptions())
  const tags = Array.from({ length: 60 }, (_, at) => (at === 7 ? 'no JSON' : '{}'))
  const creates = (first: number) =>
    tags.map(
      (tag, at): Change => ({
        type: 'create',
        plant: { id: BigInt(first + at), name: 'Moss', tag },
      }),
    )
  const single = await Promise.all(creates(100).map((create) => store.write([create])))
  for (const outcomes of [single.flat(), await store.write(creates(200))]) {
    const rejected = outcomes.filter(({ type }) => type === 'rejected')
    expect(rejected).toMatchObject([
      { error: { error: 422, message: expect.stringContaining('malformed JSON') } },
    ])
  }
  await store.close()
  expect(query(user.store, 'SELECT count(*) AS count FROM plants')).toEqual([{ count: 119 }])
})

describe('a plant that a UNIQUE index on the name refuses is rejected with its reason:', () => {
  const rule = 'The store does not accept plant 2: UNIQUE constraint failed: plants.name'
  const hint =
    'Somebody added this constraint to the store. Change the plant, or remove the constraint'
  const second = '{"id":2,"name":"Fern"}\n'

  beforeEach(() => exec('CREATE UNIQUE INDEX my_names ON plants (name)'))

  test('by create, with and without an idempotency key', async () => {
    for (const line of ['create', 'create --idempotency-key k'])
      expect(await user.run(line, { stdin: second })).toEqual(refusal(rule, hint, 1))
    expect(await user.run('create', { stdin: second.replace('2', '1') })).toMatchObject({
      code: 1,
      err: expect.stringContaining('A plant with id 1 already exists'),
    })
  })

  test.each(['error', 'skip'])(
    'by an import with --if-exists %s, of this row alone',
    async (policy) => {
      const stdin = `${second}{"id":3,"name":"Moss"}\n`
      const { code, out, err } = await user.run(`import --if-exists ${policy} --output json`, {
        stdin,
      })
      expect([code, JSON.parse(out)]).toMatchObject([6, { created: 1, rejected: 1 }])
      expect(err).toContain(rule)
      expect(err).not.toContain('already exists')
      expect((await user.run('list')).out).toBe(`${fern}{"id":3,"name":"Moss"}\n`)
    },
  )

  test('by a restore, which changes nothing', async () => {
    exec("DROP INDEX my_names; INSERT INTO plants (id, name) VALUES (2, 'Fern')")
    expect((await user.run('backup twice.bak')).code).toBe(0)
    exec('DELETE FROM plants WHERE id = 2; CREATE UNIQUE INDEX my_names ON plants (name)')
    const message = `The store does not accept this: UNIQUE constraint failed: plants.name`
    expect(await user.run('restore twice.bak --yes')).toEqual(refusal(message, hint, 1))
    expect((await user.run('list')).out).toBe(fern)
  })
})

test('a trigger that keeps a log does so, and a restore brings back plants alone', async () => {
  await user.run('backup plants.bak')
  exec(`CREATE TABLE my_log (plant INTEGER);
    CREATE TRIGGER my_trigger AFTER INSERT ON plants BEGIN INSERT INTO my_log VALUES (NEW.id); END`)
  expect((await user.run('create --id 2 --name Moss')).code).toBe(0)
  expect((await user.run('restore plants.bak --yes')).code).toBe(0)
  expect(await user.run('list')).toEqual(printed(fern))
  expect(query(user.store, 'SELECT plant FROM my_log')).toEqual([{ plant: 2 }, { plant: 1 }])
})

describe.each([
  ['BEFORE', "RAISE(ABORT, 'not here')"],
  ['BEFORE', "RAISE(ABORT, '')"],
  ['AFTER', "RAISE(ABORT, 'not here')"],
  ['AFTER', "RAISE(FAIL, 'not here')"],
  ['BEFORE', 'RAISE(IGNORE)'],
  ['AFTER', "RAISE(ROLLBACK, 'not here')"],
])(
  'a plant that a trigger refuses %s it is stored, by %s, affects no other one:',
  (time, raise) => {
    const ids = Array.from({ length: 60 }, (_, index) => BigInt(100 + index))
    const create = (id: bigint): Change => ({ type: 'create', plant: { id, name: 'Moss' } })
    const text = raise.includes("''") ? '' : 'not here'
    const reason = raise.includes('IGNORE') ? 'a trigger ignores it' : text
    const opened = async () => {
      exec(`CREATE TABLE my_log (plant INTEGER);
      CREATE TRIGGER my_trigger ${time} INSERT ON plants WHEN NEW.id = 107
      BEGIN INSERT INTO my_log VALUES (NEW.id); SELECT ${raise}; END`)
      return closedAfterTest(await SqliteStore.open(fileAddress(user.store), openOptions()))
    }
    const stored = () =>
      query(user.store, 'SELECT id FROM plants WHERE id >= 100').map(({ id }) => BigInt(Number(id)))
    const others = ids.filter((id) => id !== 107n)

    test('of many who create at once', async () => {
      const store = await opened()
      const results = await Promise.allSettled(ids.map((id) => store.write([create(id)])))
      const told = results.map((result) => {
        if (result.status === 'rejected') return result.reason.kind
        const [outcome] = result.value
        return outcome && 'error' in outcome ? outcome.error.kind : outcome?.type
      })
      expect(told).toEqual(ids.map((id) => (id === 107n ? 'constraint' : 'created')))
      expect(stored()).toEqual(others)
    })

    if (raise.includes('ROLLBACK')) return // it undoes the whole transaction of an import
    test('of an import', async () => {
      const store = await opened()
      const outcomes = await store.write(ids.map(create))
      expect(outcomes.map(({ type }) => type)).toEqual(
        ids.map((id) => (id === 107n ? 'rejected' : 'created')),
      )
      const message = `The store does not accept plant 107: ${reason}`
      expect(outcomes[7]).toMatchObject({ error: { error: 422, message } })
      expect(stored()).toEqual(others)
      expect(query(user.store, 'SELECT * FROM my_log')).toEqual([])
    })
  },
)

test.each([
  ['name COLLATE german', 'no such collation sequence: german'],
  ['heightOf(name)', 'unknown function: heightOf()'],
])(
  'an index on %s, which only another program can keep, is said to be the cause',
  async (expression, why) => {
    const rewritten = `UPDATE sqlite_schema SET sql = 'CREATE INDEX my_index ON plants (${expression})' WHERE name = 'my_index'`
    exec(
      `CREATE INDEX my_index ON plants (lower(name)); PRAGMA writable_schema = 1; ${rewritten}`,
      false,
    )
    const hint =
      'Somebody added this constraint to the store. Change the plant, or remove the constraint'
    for (const [line, id] of [
      ['create --id 2 --name Moss', 2],
      ['update 1 --name Ivy', 1],
      ['delete 1 --yes', 1],
    ] as const)
      expect(await user.run(line), line).toEqual(
        refusal(`The store does not accept plant ${id}: ${why}`, hint, 1),
      )
    expect(await user.run('list')).toEqual(printed(fern))
  },
)

test('an index whose expression makes more than 64 MiB of a plant takes no memory, and is said to be the cause', async () => {
  expect((await user.run('backup plants.bak')).code).toBe(0)
  exec('CREATE INDEX my_index ON plants (length(hex(zeroblob(40000000))))')
  const rule = 'The store does not accept plant 2: string or blob too big'
  const constraint =
    'Somebody added this constraint to the store. Change the plant, or remove the constraint'
  expect(await user.run('create --id 2 --name Moss')).toEqual(refusal(rule, constraint, 1))
  const cause = `The store ${user.store} could not be used: string or blob too big`
  for (const line of ['backup other.bak', 'restore plants.bak --yes'])
    expect(await user.run(line), line).toEqual(refusal(cause, 'Try again', 4))
  expect(await user.run('doctor')).toMatchObject({
    code: 1,
    out: expect.stringContaining(JSON.stringify(cause).slice(1, -1)),
  })
  expect(await user.run('list')).toEqual(printed(fern))
})
