import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { SqliteStore } from '../../../../src/stores/sqlite/store.js'
import { journalOf } from '../../../helpers/crafted-files.js'
import { DatabaseSync } from '../../../helpers/database.js'
import { type Result, runPlants } from '../../../helpers/run.js'
import { closedAfterTest, fileAddress, openOptions } from '../../../helpers/store.js'
import { temporaryFolder } from '../../../helpers/temporary.js'

// What somebody else could hand over as a store, or as a backup of one. Nothing in it is ever run.

const plants = `CREATE TABLE plants (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  tag TEXT,
  idempotency_key TEXT
) STRICT`
const keys =
  'CREATE UNIQUE INDEX plants_idempotency_key ON plants (idempotency_key) WHERE idempotency_key IS NOT NULL'
const tokens = `CREATE TABLE tokens (
  id INTEGER PRIMARY KEY,
  digest BLOB NOT NULL UNIQUE,
  note TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  rights TEXT NOT NULL
) STRICT`
const imports = 'CREATE TABLE imports (id TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT'
const fern = "INSERT INTO plants (id, name) VALUES (1, 'Fern')"
const exact = [plants, keys, tokens, imports, fern]

/** Changes what SQLite has of its schema, past all of its checks. */
const rewrite = (sql: string) =>
  `PRAGMA writable_schema = 1; ${sql}; PRAGMA writable_schema = RESET`
let folder: string

beforeEach(() => {
  folder = temporaryFolder()
  craft('mine.db', exact)
  craft('victim.db', exact)
})

/** Makes a file with the mark of a store, of some version. */
function craft(name: string, statements: string[], version = 1): void {
  const db = new DatabaseSync(join(folder, name), { defensive: false })
  for (const sql of statements) db.exec(sql.replaceAll('FOLDER', folder))
  db.exec(`PRAGMA application_id = ${0x706c6e74}; PRAGMA user_version = ${version}`)
  db.close()
}

function plantsIn(line: string): Promise<Result> {
  const env = { PLANTS_DATA_DIR: join(folder, 'data'), PLANTS_STORE: './evil.db' }
  return runPlants(line.split(' '), { cwd: folder, env, stdin: '{"id":2,"name":"Moss"}\n' })
}

/** Each file of the folder with what is in it. */
function contents(): string[] {
  return readdirSync(folder).map(
    (name) => `${name} ${createHash('sha256').update(bytesOf(name)).digest('hex')}`,
  )
}

function bytesOf(name: string): Buffer {
  return readFileSync(join(folder, name))
}

async function expectRejected(line: string, exitCode: number, why: RegExp): Promise<void> {
  const before = contents()
  const start = process.cpuUsage()
  const { code, out, err } = await plantsIn(line)
  const { user, system } = process.cpuUsage(start) // not the time, which a loaded machine makes longer
  const isSlow = user + system > 2_000_000
  const said = `${out}${err}`.split('\n').find((text) => text.includes('evil.db'))
  const expected = [line, exitCode, expect.stringMatching(why), false, before]
  expect([line, code, said, isSlow, contents()]).toEqual(expected)
}

test('nor by a restore, which takes no backup with a journal', async () => {
  craft('evil.db', exact)
  writeFileSync(join(folder, 'precious.txt'), 'water the fern')
  const journal = journalOf(bytesOf('evil.db'), join(folder, 'precious.txt'))
  writeFileSync(join(folder, 'evil.db-journal'), journal)
  const why = /evil\.db is not a complete backup, because it has changes in .*evil\.db-journal/
  await expectRejected('restore evil.db --yes --store ./mine.db', 2, why)
})

test.each([
  ...['create --id 2 --name Moss', 'list --timeout 1s', 'doctor'],
  ...['create --dry-run --id 2 --name Moss', 'tokens list', 'tokens create'],
  ...['tokens revoke 1', 'serve --port 0', 'update 1 --name Moss'],
])('a journal that names a file for SQLite to delete is not played back by "%s"', async (line) => {
  craft('evil.db', exact)
  writeFileSync(join(folder, 'precious.txt'), 'water the fern')
  writeFileSync(
    join(folder, 'evil.db-journal'),
    journalOf(bytesOf('evil.db'), join(folder, 'precious.txt')),
  )
  const why = /evil\.db cannot be used: SQLite would delete a file that .*evil\.db-journal names/
  await expectRejected(line, line === 'doctor' ? 1 : 4, why)
})

describe('what rows hold that SQLite would not have let in is not taken for plants:', () => {
  const isDamaged = { code: 4, err: expect.stringMatching(/evil\.db is damaged: /) }
  /** Says that a table is as it should be, whatever it holds. */
  const pretend = (name: string, sql: string) =>
    rewrite(`UPDATE sqlite_schema SET sql = '${sql}' WHERE name = '${name}'`)
  const loose = plants.replace(' STRICT', '').replaceAll(/ TEXT( NOT NULL)?/g, '')
  const commands = [
    'list',
    'get 1',
    'create --id 1 --name Fern --idempotency-key k',
    'delete 1 --yes',
  ]

  test.each([
    ["name that is x'00ff'", "x'00ff', NULL", [...commands, 'export']],
    ['name that is NULL', 'NULL, NULL', commands],
    ['tag that is 7', "'Fern', 7", [...commands, 'export']],
  ])('a %s', async (_, values, lines) => {
    const row = `INSERT INTO plants (id, name, tag, idempotency_key) VALUES (1, ${values}, 'k')`
    craft('evil.db', [loose, keys, tokens, imports, row, pretend('plants', plants)])
    for (const line of lines) expect(await plantsIn(line), line).toEqual({ ...isDamaged, out: '' })
    expect((await plantsIn('restore evil.db --yes --store ./mine.db')).code).toBe(4)
  })

  test('also where it is read together with a plant', async () => {
    const rows = "INSERT INTO plants (id, name) VALUES (1, NULL), (2, 'Moss')"
    craft('evil.db', [loose, keys, tokens, imports, rows, pretend('plants', plants)])
    const store = closedAfterTest(
      await SqliteStore.open(fileAddress(join(folder, 'evil.db')), openOptions()),
    )
    const found = await Promise.allSettled([1n, 2n, 3n].map((id) => store.get([id])))
    const message = expect.stringMatching(
      /evil\.db is damaged: plant 1 has a value of another type/,
    )
    expect(found).toEqual([
      { status: 'rejected', reason: expect.objectContaining({ message }) },
      { status: 'fulfilled', value: new Map([[2n, { id: 2n, name: 'Moss' }]]) },
      { status: 'fulfilled', value: new Map() },
    ])
  })

  test('a page that comes twice, as in a tree that never ends', async () => {
    const ids = 'n (id) AS (SELECT 2 UNION ALL SELECT id + 1 FROM n WHERE id < 400)'
    const many = `INSERT INTO plants (id, name) WITH RECURSIVE ${ids} SELECT id, printf('%500d', id) FROM n`
    craft('evil.db', [...exact, many])
    const bytes = bytesOf('evil.db')
    const root = bytes.readUInt16BE(16) // plants is the first table, on page 2
    const first = root + bytes.readUInt16BE(root + 12)
    const last = root + 12 + 2 * (bytes.readUInt16BE(root + 3) - 1)
    // the last two children are the first once more
    for (const child of [root + bytes.readUInt16BE(last), root + 8])
      bytes.copy(bytes, child, first, first + 4)
    writeFileSync(join(folder, 'evil.db'), bytes)
    const err = expect.stringMatching(/evil\.db is damaged: the id \d+ is out of order/)
    expect(await plantsIn('list')).toMatchObject({ code: 4, err })
    await expectRejected('restore evil.db --yes --store ./mine.db', 4, /evil\.db is damaged: /)
  })
})
