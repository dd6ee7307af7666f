import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Change } from '../../../../src/stores/change.js'
import { Sandbox, toTextResult } from '../../../helpers/sandbox/sandbox.js'
import { DatabaseSync, queryFile } from '../../../helpers/sandbox/sqlite-file.js'
import { closeAfterTest, openFile } from '../../../helpers/sandbox/store.js'

// What users add to the file of their store with other programs.

const fern = '{"id":1,"name":"Fern","tag":"shade"}\n'
const moss = '{"id":2,"name":"Moss"}'
let user: Sandbox

beforeEach(async () => {
  user = new Sandbox()
  await user.run('create', { stdin: fern })
})

function exec(sql: string): void {
  const db = new DatabaseSync(user.store)
  db.exec(sql)
  db.close()
}

const opened = async () => closeAfterTest(await openFile(user.store))

test('all commands leave an added index, view and table alone, and a backup has them', async () => {
  exec(`CREATE INDEX my_index ON plants (tag, lower(name));
    CREATE VIEW my_view AS SELECT tag, count(*) FROM plants GROUP BY tag;
    CREATE TABLE my_table (plant INTEGER REFERENCES plants (id), watered TEXT);
    INSERT INTO my_table VALUES (1, 'today')`)
  const wet = '{"id":2,"name":"Moss","tag":"wet"}\n'
  for (const [line, out] of [
    ['create', '{"name":"Moss"}\n'],
    ['update 2 --tag wet', wet],
    ['list --tag wet --sort name', wet],
    ['delete 2 --yes', wet],
  ] as const)
    expect(await user.run(line, { stdin: moss }), line).toEqual(toTextResult(out))
  for (const line of ['import', 'backup plants.bak', 'delete 1 --yes', 'restore plants.bak --yes'])
    expect((await user.run(line, { stdin: moss })).code, line).toBe(0)
  expect(await user.run('list')).toEqual(toTextResult(`${fern}${moss}\n`))
  expect((await user.run('doctor')).code).toBe(0)
  for (const path of [user.store, join(user.home, 'plants.bak')])
    expect(queryFile(path, 'SELECT watered FROM my_table')).toEqual([{ watered: 'today' }])
  const names = "SELECT name FROM sqlite_schema WHERE name LIKE 'my%' ORDER BY name"
  expect(queryFile(user.store, names).map(({ name }) => name)).toEqual([
    ...['my_index', 'my_table', 'my_view'],
  ])
})

const ids = Array.from({ length: 60 }, (_, index) => BigInt(100 + index))
const others = ids.filter((id) => id !== 107n)
const create = (id: bigint): Change => ({
  type: 'create',
  plant: { id, name: 'Moss' },
})
const refusing = (time: string, raise: string) => `CREATE TABLE my_log (plant INTEGER);
  CREATE TRIGGER my_trigger ${time} INSERT ON plants WHEN NEW.id = 107
  BEGIN INSERT INTO my_log VALUES (NEW.id); SELECT ${raise}; END`

describe.each([
  ['a trigger, in the end', refusing('AFTER', "RAISE(ABORT, 'not here')"), 'not here'],
  ['a trigger that ignores it', refusing('BEFORE', 'RAISE(IGNORE)'), 'a trigger skipped it'],
  ['a trigger that rolls back', refusing('AFTER', "RAISE(ROLLBACK, 'not here')"), 'not here'],
])('the plant that %s rejects does not affect the other plants', (what, sql, reason) => {
  const stored = () =>
    queryFile(user.store, 'SELECT id FROM plants WHERE id >= 100').map(({ id }) =>
      BigInt(Number(id)),
    )

  beforeEach(() => exec(sql))

  test('of concurrent creates', async () => {
    const store = await opened()
    const results = await Promise.allSettled(ids.map((id) => store.write([create(id)])))
    const kinds = results.map((result) => {
      if (result.status === 'rejected') return result.reason.kind
      const [outcome] = result.value
      return outcome && 'problem' in outcome ? outcome.problem.kind : outcome?.type
    })
    expect(kinds).toEqual(ids.map((id) => (id === 107n ? 'constraint' : 'created')))
    expect(stored()).toEqual(others)
  })

  if (what.endsWith('rolls back')) return // it undoes the whole transaction of an import
  test('of an import', async () => {
    const outcomes = await (await opened()).write(ids.map(create))
    expect(outcomes.map(({ type }) => type)).toEqual(
      ids.map((id) => (id === 107n ? 'rejected' : 'created')),
    )
    const message = expect.stringContaining(`plant 107: ${reason}`)
    expect(outcomes[7]).toMatchObject({ problem: { error: 422, message } })
    expect(stored()).toEqual(others)
    if (sql.includes('my_log')) expect(queryFile(user.store, 'SELECT * FROM my_log')).toEqual([])
  })
})

test.each([
  { column: 'name', sql: "INSERT INTO plants (id, name) VALUES (2, 'Moss' || char(0))" },
  { column: 'name', sql: "UPDATE plants SET name = 'a' || char(0) || 'b'" },
  { column: 'tag', sql: 'UPDATE plants SET tag = char(0)' },
  {
    column: 'note',
    sql: "INSERT INTO tokens VALUES (1, x'00', 'a' || char(0), 'read', 0, NULL, NULL)",
  },
])('another program can store no $column with U+0000: $sql', ({ column, sql }) => {
  expect(() => exec(sql)).toThrow(`CHECK constraint failed: ${column}_without_u0000`)
})

test('a restore that a UNIQUE index rejects changes nothing', async () => {
  exec("INSERT INTO plants (id, name) VALUES (2, 'Fern')")
  expect((await user.run('backup twice.bak')).code).toBe(0)
  exec('DELETE FROM plants WHERE id = 2; CREATE UNIQUE INDEX my_names ON plants (name)')
  const err = expect.stringContaining('UNIQUE constraint failed: plants.name')
  expect(await user.run('restore twice.bak --yes')).toEqual({ code: 1, out: '', err })
  expect(await user.run('list')).toEqual(toTextResult(fern))
})

test('a trigger that is added while the store is open rejects only its plant', async () => {
  const store = await opened()
  await store.write(ids.slice(0, 3).map(create))
  exec(refusing('BEFORE', 'RAISE(IGNORE)'))
  const outcomes = await store.write(ids.slice(3).map(create))
  const rejectedCount = outcomes.filter(({ type }) => type === 'rejected').length
  expect(rejectedCount).toBe(1)
  expect(outcomes[4]?.type).toBe('rejected')
})

test('a table whose conflicts replace rows keeps every plant', async () => {
  exec(`DROP TABLE plants;
    CREATE TABLE plants (id INTEGER PRIMARY KEY ON CONFLICT REPLACE,
      name TEXT NOT NULL UNIQUE ON CONFLICT REPLACE, tag TEXT, idempotency_key TEXT) STRICT;
    INSERT INTO plants (id, name) VALUES (1, 'Fern'), (2, 'Rose')`)
  const store = await opened()
  const outcomes = await store.write([
    { type: 'create', plant: { id: 1n, name: 'Moss' } },
    { type: 'create', plant: { id: 3n, name: 'Rose' } },
    { type: 'update', patch: { id: 2n, name: 'Fern' } },
  ])
  const kinds = outcomes.map((outcome) => 'problem' in outcome && outcome.problem.kind)
  expect(kinds).toEqual(['conflict', 'constraint', 'constraint'])
  expect(queryFile(user.store, 'SELECT id, name FROM plants')).toEqual([
    { id: 1, name: 'Fern' },
    { id: 2, name: 'Rose' },
  ])
})
