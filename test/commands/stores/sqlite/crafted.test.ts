import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { tables } from '../../../../src/stores/sqlite/schema.js'
import { Sandbox } from '../../../helpers/sandbox/sandbox.js'
import { DatabaseSync, queryFile } from '../../../helpers/sandbox/sqlite-file.js'

// What a file may hold that SQLite would not have let in.

const fern = '{"id":1,"name":"Fern"}\n'
let user: Sandbox
let path: string

beforeEach(async () => {
  user = new Sandbox()
  path = join(user.home, 'evil.db')
  await user.run('create', { stdin: fern })
  await user.run(`backup ${path}`)
})

/** Each file of the home with what is in it. */
const contents = () =>
  readdirSync(user.home, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => [name, readFileSync(join(user.home, name), 'base64')])

/** A rollback journal that names a file, which SQLite deletes after it (https://sqlite.org/fileformat2.html). */
function journalNaming(path: string): Buffer {
  const [mark, name] = [Buffer.from('d9d505f920a163d7', 'hex'), Buffer.from(path)]
  const numbers = (...values: number[]) => Buffer.from(new Uint32Array(values).buffer).swap32()
  const header = [mark, numbers(0, 0, 1, 512, 4096), Buffer.alloc(484)]
  const checksum = name.reduce((total, byte) => total + byte, 0)
  return Buffer.concat([...header, numbers(1), name, numbers(name.length, checksum), mark])
}

function exec(sql: string): void {
  const db = new DatabaseSync(path)
  db.exec(sql)
  db.close()
}

/** Inserts rows into a table of plants that takes any value, and then says that it does not. */
function insert(values: string): void {
  const db = new DatabaseSync(path, { defensive: false })
  const sqlIs = "SELECT sql FROM sqlite_schema WHERE name = 'plants'"
  const strict = String(db.prepare(sqlIs).get()?.['sql'])
  const pretend = (sql: string) =>
    db.exec(`PRAGMA writable_schema = 1;
      UPDATE sqlite_schema SET sql = '${sql}' WHERE name = 'plants';
      PRAGMA writable_schema = RESET`)
  pretend(strict.replace(' STRICT', '').replaceAll(/ TEXT.*(?=,)/g, ''))
  db.exec(`INSERT INTO plants (id, name, tag, idempotency_key) VALUES ${values}`)
  pretend(strict)
  db.close()
}

test.each([
  ...['create --id 2 --name Moss', 'list', 'doctor', 'tokens list', 'serve --port 0'],
  'restore evil.db --yes --store local',
])('a journal that names a file for SQLite to delete is not played back by "%s"', async (line) => {
  const precious = join(user.home, user.write('precious.txt', 'water the fern'))
  writeFileSync(`${path}-journal`, journalNaming(precious))
  const before = contents()
  const { code, out, err } = await user.run(line, { env: { PLANTS_STORE: './evil.db' } })
  const exit = { doctor: 1, restore: 2 }[line.replace(/ .*/, '')] ?? 4
  expect([code, contents()]).toEqual([exit, before])
  expect(out + err).toContain('evil.db-journal')
})

test.each([
  ["name that is x'00ff'", "(2, x'00ff', NULL, 'k')"],
  ['tag that is 7', "(2, 'Fern', 7, 'k')"],
])('a stored %s is not read as a string', async (_, values) => {
  insert(values)
  const err = expect.stringMatching(/evil\.db is damaged, or its disk cannot be read: /)
  const create = 'create --id 2 --name Fern --idempotency-key k'
  for (const line of ['list', 'get 2', create, 'delete 2 --yes']) {
    const { code, out, ...messages } = await user.run(line, { env: { PLANTS_STORE: './evil.db' } })
    expect([line, code, messages]).toEqual([line, 4, { err }])
    expect(out).not.toContain('"id":2')
  }
  expect((await user.run('restore evil.db --yes')).code).toBe(4)
  expect((await user.run('list')).out).toBe(fern)
})

test.each([
  {
    table: 'plants',
    kind: 'view',
    sql: `CREATE VIEW Plants (${tables.plants}) AS VALUES (1, 'Fern', NULL, NULL)`,
  },
  {
    table: 'plants',
    kind: 'virtual table',
    sql: `CREATE VIRTUAL TABLE plants USING fts5(${tables.plants})`,
  },
  {
    table: 'tokens',
    kind: 'view',
    sql: `CREATE VIEW tokens (${tables.tokens}) AS VALUES (1, 0, '', '', 0, 0, 0)`,
  },
])('no command uses a store with a $kind in place of its $table', async ({ table, sql }) => {
  exec(`DROP TABLE ${table}; ${sql}`)
  const problem = `has a view or a virtual table in the place of the table ${table}`
  const failure = { code: 4, out: '', err: `plants: ${path} ${problem}\n  Choose another file\n` }
  for (const line of [
    ...['list', 'tokens list', 'create --id 2 --name Moss', 'delete 1 --yes'],
    ...['export plants.csv', 'backup copy.bak', 'serve --port 0'],
  ])
    expect(await user.run(`${line} --store ./evil.db`), line).toEqual(failure)
  expect(await user.run('restore evil.db --yes')).toEqual(failure)
  expect(await user.run('backup evil.db --yes')).toMatchObject({ code: 2, out: '' })
  const { code, out } = await user.run('doctor --store ./evil.db')
  expect([code, out]).toEqual([1, expect.stringContaining(problem)])
  expect((await user.run('list')).out).toBe(fern)
})

const insertCut = "INSERT INTO plants (id, name) VALUES (2, 'Fern' || char(0) || 'SECRET')"

test.each([
  {
    what: 'in a table without constraints',
    sql: `DROP TABLE plants; CREATE TABLE plants (id, name, tag, idempotency_key); ${insertCut}`,
    problem: 'plant 2 has U+0000 in its name or tag',
  },
  {
    what: 'that a program has stored in spite of the constraint',
    sql: `PRAGMA ignore_check_constraints = 1; ${insertCut}`,
    problem: 'CHECK constraint failed in plants',
  },
])('a string with U+0000 $what is reported by doctor, and not copied', async ({ sql, problem }) => {
  exec(sql)
  const message = 'evil.db is damaged, or its disk cannot be read: '
  const { code, out } = await user.run('doctor --store ./evil.db')
  expect([code, out]).toEqual([1, expect.stringContaining(message + problem)])
  for (const line of ['restore evil.db --yes', 'backup copy.bak --store ./evil.db']) {
    const err = expect.stringContaining(message)
    expect(await user.run(line), line).toEqual({ code: 4, out: '', err })
  }
  expect((await user.run('list')).out).toBe(fern)
})

test('the error for a store without its table of plants has a hint for the owner of the store', async () => {
  queryFile(path, 'DROP TABLE plants')
  expect(await user.run('list', { env: { PLANTS_STORE: './evil.db' } })).toMatchObject({
    code: 4,
    err:
      `plants: The store ${path} could not be used: no such table: plants\n` +
      '  Another program has changed the tables: restore a backup\n',
  })
})

test('a token whose expiry is no valid date is not shown as one that never expires', async () => {
  await user.run('tokens create', { env: { PLANTS_STORE: './evil.db' } })
  queryFile(path, 'UPDATE tokens SET expires_at = 9223372036854775807')
  const { code, out, err } = await user.run('tokens list', { env: { PLANTS_STORE: './evil.db' } })
  expect([code, out]).toEqual([4, ''])
  expect(err).toContain('is damaged, or its disk cannot be read: token 1 has an invalid time\n')
})
