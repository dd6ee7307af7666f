import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { plantFields } from '../../../../src/plant/fields.js'
import { digestOf } from '../../../../src/server/authenticator.js'
import type { OpenOptions, Right } from '../../../../src/stores/common/store.js'
import { addedColumns, columnsOf } from '../../../../src/stores/sqlite/sqlite-schema.js'
import { SqliteStore } from '../../../../src/stores/sqlite/sqlite-store.js'
import { DatabaseSync } from '../../../helpers/database.js'
import { type Result, runPlants } from '../../../helpers/run.js'
import { query } from '../../../helpers/sqlite-file.js'
import { closedAfterTest, fileAddress, openOptions } from '../../../helpers/store.js'
import { temporaryFolder } from '../../../helpers/temporary.js'

let folder: string
let path: string

const oldToken: { note: string; rights: Right[] } = { note: 'laptop', rights: ['read'] }
const released = addedColumns.length
const createMoss = 'create --id 2 --name Moss'

/** Makes a store as this version does; from then on, the program is a later version, with two more columns. */
beforeEach(async () => {
  folder = temporaryFolder()
  path = join(folder, 'old.db')
  addedColumns.length = released
  const store = await SqliteStore.open(fileAddress(path), openOptions())
  await store.create({ id: 1n, name: 'Fern' }, { idempotencyKey: 'key' })
  await store.tokens.add(digestOf('old'), { ...oldToken, createdAt: new Date(1), expiresAt: undefined })
  await store.close()
  addedColumns.push(
    { table: 'tokens', name: 'scope', type: 'TEXT NOT NULL', value: "'all'" },
    { table: 'plants', name: 'watered', type: 'INTEGER', value: 'NULL' },
  )
})

afterEach(() => {
  addedColumns.length = released
})

function plants(line: string, store = './old.db'): Promise<Result> {
  return runPlants([...line.split(' '), '--store', store], { cwd: folder })
}

function version(of = path): unknown {
  return query(of, 'PRAGMA user_version')[0]
}

async function openOld(at = path, options: Partial<OpenOptions> = {}): Promise<SqliteStore> {
  const store = await SqliteStore.openExisting(fileAddress(at), openOptions(options))
  if (!store) throw new Error('There is no store')
  return closedAfterTest(store)
}

test('a store of the version before is read as it is, with the values of the columns that it lacks', async () => {
  for (const line of ['list', 'get 1', 'export'])
    expect(await plants(line)).toEqual({ code: 0, out: '{"id":1,"name":"Fern"}\n', err: '' })
  const store = await openOld()
  expect(await store.tokens.find(digestOf('old'))).toMatchObject({ ...oldToken, lastUsedAt: undefined })
  expect(version()).toEqual({ user_version: 5 })
})

test.each([
  ['update 1 --tag shade', '{"id":1,"name":"Fern","tag":"shade"}\n'],
  ['delete 1 --yes', '{"id":1,"name":"Fern"}\n'],
])('"%s" migrates it', async (line, out) => {
  expect((await plants(line)).out).toBe(out)
  expect(version()).toEqual({ user_version: 7 })
})

test('a create migrates it, to the schema of a new store', async () => {
  for (const store of ['./old.db', './new.db']) expect((await plants(createMoss, store)).code).toBe(0)
  const schema = 'SELECT type, name, tbl_name, sql FROM sqlite_schema'
  expect([version(), query(path, schema)]).toEqual([{ user_version: 7 }, query(join(folder, 'new.db'), schema)])
  expect(JSON.parse((await plants('tokens list')).out)).toMatchObject(oldToken)
  expect((await plants('create --id 1 --name Fern --idempotency-key key')).out).toBe('{"name":"Fern"}\n')
})

test('it has its columns in the order in which an import writes them, as a new store has', async () => {
  await plants(createMoss)
  const written = columnsOf('plants')
  expect(written.toSorted()).toEqual([...plantFields.map(({ name }) => name), 'idempotency_key', 'watered'].toSorted())
  expect(query(path, "SELECT name FROM pragma_table_info('plants')")).toEqual(written.map((name) => ({ name })))
})

test('those who open it at the same moment migrate it once', async () => {
  const stores = await Promise.all(Array.from({ length: 10 }, () => SqliteStore.open(fileAddress(path), openOptions())))
  const tokens = await Promise.all(stores.map((store) => closedAfterTest(store).tokens.find(digestOf('old'))))
  expect(tokens).toEqual(stores.map(() => expect.objectContaining(oldToken)))
})

test('one that is open while another version of plants migrates it can still be corrected', async () => {
  const store = await openOld()
  await store.replace({ id: 1n, name: 'Moss' })
  await plants(createMoss)
  expect(await store.replace({ id: 1n, name: 'Fern' })).toEqual({ id: 1n, name: 'Fern' })
})

test('a backup of the version before is restored, and left as it is', async () => {
  expect((await plants('backup old.bak')).code).toBe(0)
  const bytes = readFileSync(join(folder, 'old.bak'))
  expect(version(join(folder, 'old.bak'))).toEqual({ user_version: 5 })
  for (const store of ['./old.db', './new.db']) {
    expect(await plants('restore old.bak --yes', store)).toMatchObject({ code: 0, err: '' })
    expect(version(join(folder, store))).toEqual({ user_version: 7 })
    expect(JSON.parse((await plants('tokens list', store)).out)).toMatchObject(oldToken)
  }
  expect(readFileSync(join(folder, 'old.bak')).equals(bytes)).toBe(true)
})

test('a store whose first write is rolled back is migrated by the next one', async () => {
  const store = await openOld()
  const fail = () => {
    throw new Error('rolled back')
  }
  await expect(store.createAll(fail, () => false)).rejects.toThrow('rolled back')
  expect(version()).toEqual({ user_version: 5 })
  await store.tokens.markUsed(1n, new Date(86_400_000))
  expect(version()).toEqual({ user_version: 7 })
})

test('a locked store is waited for once', async () => {
  expect((await plants('backup old.bak')).code).toBe(0) // unlike a store, a backup is not in WAL mode
  const backup = join(folder, 'old.bak')
  const db = new DatabaseSync(backup)
  const store = await openOld(backup, { timeout: 500 })
  db.exec('BEGIN EXCLUSIVE')
  const start = performance.now()
  await expect(store.get(1n)).rejects.toThrow('was in use')
  expect(performance.now() - start).toBeLessThan(950)
  db.close()
  expect(await store.get(1n)).toEqual({ id: 1n, name: 'Fern' })
})
