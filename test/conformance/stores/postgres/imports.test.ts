import { expect, test } from 'vitest'
import { createDatabase, type Database, shareDatabase } from '../../../helpers/postgres/database.js'
import { ImportSandbox } from '../../../helpers/sandbox/import-sandbox.js'

const getDatabase = shareDatabase()
/** Of several chunks, each of which is stored by COPY. */
const recordCount = 20_000

test('an import that stops generates no ids for the chunk that it read ahead', async () => {
  const database = await getDatabase()
  const user = new ImportSandbox()
  const names = Array.from({ length: recordCount }, (_, index) => `{"name":"Fern ${index}"}\n`)
  names[1] = '{"name":1}\n'
  user.write('plants', names.join(''))
  const command = `plants --id-from 1 --max-errors 1 --store ${database.url}`
  const first = await user.import(command, undefined, { env: database.env })
  expect(first).toMatchObject({ code: 6, rejected: { 422: 1 } })
  expect(first.created).toBeLessThan(recordCount - 1)
  expect(await user.import(command, undefined, { env: database.env })).toMatchObject({
    code: 6,
    created: recordCount - 1,
    err: expect.stringContaining('Resuming an interrupted import'),
  })
  const range = 'SELECT min(id)::int, max(id)::int, count(*)::int FROM plant_store.plants'
  expect(await database.query(range)).toEqual([
    { min: 1, max: recordCount - 1, count: recordCount - 1 },
  ])
})

const count = async (database: Database) => {
  const [row] = await database.query('SELECT count(*)::int FROM plant_store.plants')
  return Number(row?.['count'])
}

/** Rows in no order of ids, whose names have what COPY escapes, with one instead of some. */
function buildCsv(replaced: Record<number, string> = {}): string {
  const rows = Array.from({ length: recordCount }, (_, row) => {
    const id = (row * 7919) % recordCount
    return replaced[row] ?? `${id},"Fern\\N\t""${id}""",${row % 2 === 0 ? 'shade' : ''}\n`
  })
  return `id,name,tag\n${rows.join('')}`
}

test('an import stores each plain row once, in any order of ids', async () => {
  const database = await getDatabase()
  const user = new ImportSandbox()
  user.write('plants.csv', buildCsv())
  const importAll = () =>
    user.import(`plants.csv --store ${database.url}`, undefined, { env: database.env })
  expect(await importAll()).toMatchObject({ code: 0, created: recordCount })
  const differing = `SELECT id FROM plant_store.plants WHERE idempotency_key IS NOT NULL OR
    name <> 'Fern\\N' || chr(9) || '"' || id || '"' OR coalesce(tag, 'shade') <> 'shade'`
  expect(await database.query(differing)).toEqual([])
  const [tagged] = await database.query('SELECT count(tag)::int FROM plant_store.plants')
  expect(tagged).toEqual({ count: recordCount / 2 })
  expect(await importAll()).toMatchObject({ code: 0, skipped: recordCount })
})

test('an import of ordinary rows rejects only the row whose id exists, or that a trigger rejects', async () => {
  const database = await createDatabase()
  const user = new ImportSandbox()
  await database.query(`INSERT INTO plant_store.plants VALUES (5, 'Oak');
    CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
    CREATE TRIGGER t BEFORE INSERT ON plant_store.plants FOR EACH ROW WHEN (NEW.id = 7000)
      EXECUTE FUNCTION skip();
    ALTER TABLE plant_store.plants ADD CHECK (id <> 13000)`)
  user.write('plants.csv', buildCsv({ 11000: '5x,Fern,\n' }))
  const command = `plants.csv --rejects bad --store ${database.url}`
  const result = await user.import(command, undefined, { env: database.env })
  const created = recordCount - 4
  expect(result).toMatchObject({ code: 6, created, rejected: { 409: 1, 422: 3 } })
  expect(await count(database)).toBe(created + 1)
  const lines = user.read('bad').split('\n').slice(1, -1)
  expect(lines.map((row) => row.split(',')[0])).toContain('11002')
})

test('an import of ordinary rows that stopped resumes after the stored rows', async () => {
  const database = await getDatabase()
  const user = new ImportSandbox()
  user.write('plants.csv', buildCsv({ 5000: 'x,Fern,\n' }))
  const command = `plants.csv --max-errors 1 --store ${database.url}`
  const importSome = () => user.import(command, undefined, { env: database.env })
  expect(await importSome()).toMatchObject({ code: 6, rejected: { 422: 1 } })
  const stored = await count(database)
  expect(stored).toBeGreaterThan(0)
  expect(stored).toBeLessThan(recordCount - 1)
  const { err, ...result } = await importSome()
  expect(result).toMatchObject({ code: 6, created: recordCount - 1, rejected: { 422: 1 } })
  expect(err).toContain('Resuming an interrupted import after ')
  expect(await count(database)).toBe(recordCount - 1)
})

test('an import stops at a line that is too large, and keeps the chunk before it', async () => {
  const database = await getDatabase()
  const user = new ImportSandbox()
  const rows = Array.from({ length: recordCount }, (_, id) => `${id},Fern\n`)
  user.write('plants.csv', `id,name\n${rows.join('')}1,${'long '.repeat(300_000)}\n`)
  const command = `plants.csv --store ${database.url}`
  const { code, err } = await user.import(command, undefined, { env: database.env })
  expect([code, err]).toEqual([2, expect.stringContaining(`plants.csv:${recordCount + 2}`)])
  const stored = await count(database)
  expect(stored).toBeGreaterThan(0)
  user.write('plants.csv', `id,name\n${rows.join('')}`)
  const again = await user.import(`${command} --restart`, undefined, { env: database.env })
  expect(again).toMatchObject({ code: 0, skipped: stored })
  expect(await count(database)).toBe(recordCount)
})
