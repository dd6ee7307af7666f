import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { digestOf } from '../../../../src/server/authenticator.js'
import { SqliteStore } from '../../../../src/stores/sqlite/sqlite-store.js'
import { DatabaseSync } from '../../../helpers/database.js'
import { journalOf } from '../../../helpers/journal.js'
import { type Result, runPlants } from '../../../helpers/run.js'
import { query } from '../../../helpers/sqlite-file.js'
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
  rights TEXT NOT NULL,
  last_used_at INTEGER
) STRICT`
const imports = 'CREATE TABLE imports (id TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT'
const fern = "INSERT INTO plants (id, name) VALUES (1, 'Fern')"
const exact = [plants, keys, tokens, imports, fern]

const endless = (name: string) =>
  `CREATE VIEW ${name} AS WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n)
    SELECT id, 'Fern' AS name, NULL AS tag, NULL AS idempotency_key FROM n`
const trigger =
  'CREATE TRIGGER evil AFTER INSERT ON plants BEGIN DELETE FROM plants WHERE id = NEW.id; END'

/** Changes what SQLite has of its schema, past all of its checks. */
const rewrite = (sql: string) =>
  `PRAGMA writable_schema = 1; ${sql}; PRAGMA writable_schema = RESET`
const rename = (set: string) => rewrite(`UPDATE sqlite_schema SET ${set} WHERE name = 'evil'`)

/** SQL that a column's name brings along: it deletes another store, and writes a new file. */
const hostile = `"id) SELECT 1 WHERE 0; COMMIT; ATTACH 'FOLDER/victim.db' AS o; DELETE FROM o.plants; DETACH o; ATTACH 'FOLDER/marker.db' AS p; CREATE TABLE p.marker (x); DETACH p; BEGIN; --"`

let folder: string

beforeEach(() => {
  folder = temporaryFolder()
  craft('mine.db', exact)
  craft('victim.db', exact)
})

/** Makes a file with the mark of a store, of some version. */
function craft(name: string, statements: string[], version = 5): void {
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

async function expectRejected(line: string, why: RegExp): Promise<void> {
  const before = contents()
  const start = process.cpuUsage()
  const { code, out, err } = await plantsIn(line)
  const { user, system } = process.cpuUsage(start) // not the time, which a loaded machine makes longer
  const isSlow = user + system > 2_000_000
  const said = `${out}${err}`.split('\n').find((text) => text.includes('evil.db'))
  const wanted = line.startsWith('doctor') ? 1 : line.includes('mine.db') ? 2 : 4
  const expected = [line, wanted, expect.stringMatching(why), false, before]
  expect([line, code, said, isSlow, contents()]).toEqual(expected)
}

const first = [
  'restore evil.db --yes --store ./mine.db',
  'create --id 2 --name Moss',
  'list --timeout 1s',
]
const others = [
  ...[
    'doctor',
    'create --dry-run --id 2 --name Moss',
    'tokens list',
    'tokens create',
    'tokens revoke 1',
  ],
  ...['serve --port 0', 'update 1 --name Moss'],
]
const all = [
  ...[
    ...first,
    ...others,
    'backup made.bak',
    'backup evil.db --store ./mine.db',
    'get 1',
    'delete 1 --yes',
  ],
  ...['export', 'export --output csv', 'import', 'import --dry-run', 'import --atomic'],
]

const flaw = (what: string) => new RegExp(`evil\\.db is not a store of plants: it${what}`)
const triggered = flaw(' has the trigger ')
/** what SQLite itself does not take */
const damaged = /evil\.db is damaged: malformed database schema/

const columnsOfPlants = 'id INTEGER PRIMARY KEY, name TEXT, tag TEXT, idempotency_key TEXT'

test.each([
  [
    'imports',
    [plants, keys, tokens, `CREATE TABLE imports (${hostile} TEXT)`, fern],
    flaw('s table imports was changed'),
  ],
  [
    'plants',
    [`CREATE TABLE plants (${columnsOfPlants}, ${hostile})`, fern],
    flaw('s table plants was changed'),
  ],
  ['an endless view', [endless('plants'), tokens, imports], flaw('s table plants was changed')],
])(
  'no command runs what is in a file with a hostile %s, whatever its version',
  async (_, statements, why) => {
    craft('evil.db', statements)
    for (const line of all) await expectRejected(line, why)
    for (const version of [0, 4]) {
      craft('evil.db', [], version)
      for (const line of first) await expectRejected(line, why)
    }
  },
)

test.each<[what: string, statements: string[], why: RegExp, version?: number]>([
  ['a trigger', [...exact, trigger], /it has the trigger "evil"$/],
  [
    'a trigger with a name of SQLite',
    [...exact, trigger, rename("name = 'sqlite_evil', sql = replace(sql, 'evil', 'sqlite_evil')")],
    triggered,
  ],
  [
    'a trigger that is called a TRIGGER',
    [...exact, trigger, rename("type = 'TRIGGER'")],
    triggered,
  ],
  [
    'a trigger whose type is a BLOB',
    [...exact, trigger, rename("type = CAST('trigger' AS BLOB)")],
    triggered,
  ],
  [
    'a trigger whose type goes on after U+0000',
    [...exact, trigger, rename("type = 'trigger' || char(0)")],
    triggered,
  ],
  [
    'a trigger that is called a table',
    [...exact, trigger, rename("type = 'table', name = 'sqlite_stat1'")],
    damaged,
  ],
  [
    'a view that is called sqlite_stat1',
    [
      ...exact,
      endless('evil'),
      rename("name = 'sqlite_stat1', sql = replace(sql, 'evil', 'sqlite_stat1')"),
    ],
    damaged,
  ],
  [
    'a table with a generated column',
    [plants.replace('tag TEXT', "tag TEXT AS (name || 'x')"), keys, tokens, imports],
    flaw('s table plants was changed'),
  ],
  [
    'an index that is not there',
    [plants, tokens, imports],
    flaw(' has no index plants_idempotency_key'),
  ],
  [
    'an index of another name for it',
    [plants, 'CREATE INDEX plants_idempotency_key ON plants (name)', tokens, imports],
    flaw('s index plants_idempotency_key was changed'),
  ],
  ['another version', exact, flaw(' has the user_version 4, not 5'), 4],
  [
    'texts in UTF-16',
    ["PRAGMA encoding = 'UTF-16le'", ...exact],
    /evil\.db is not a store of plants: its encoding is UTF-16le, not UTF-8/,
  ],
  [
    'one table of many bytes',
    [...exact, `CREATE TABLE evil (x /* ${'x'.repeat(5_000_000)} */)`],
    damaged,
  ],
])('a file with %s is rejected', async (_, statements, why, version = 5) => {
  craft('evil.db', statements, version)
  for (const line of first) await expectRejected(line, why)
})

test.each([...first, ...others])(
  'a journal that names a file for SQLite to delete is not played back by "%s"',
  async (line) => {
    craft('evil.db', exact)
    writeFileSync(join(folder, 'precious.txt'), 'water the fern')
    writeFileSync(
      join(folder, 'evil.db-journal'),
      journalOf(bytesOf('evil.db'), join(folder, 'precious.txt')),
    )
    const why = line.startsWith('restore')
      ? /evil\.db is not a complete backup, because it has changes in .*evil\.db-journal/
      : /evil\.db is not a store of plants: .*evil\.db-journal names another file, which SQLite would delete/
    await expectRejected(line, why)
  },
)

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
    expect((await plantsIn('restore evil.db --yes --store ./mine.db')).code).toBe(2)
  })

  test('also where it is read together with a plant', async () => {
    const rows = "INSERT INTO plants (id, name) VALUES (1, NULL), (2, 'Moss')"
    craft('evil.db', [loose, keys, tokens, imports, rows, pretend('plants', plants)])
    const store = closedAfterTest(
      await SqliteStore.open(fileAddress(join(folder, 'evil.db')), openOptions()),
    )
    const found = await Promise.allSettled([1n, 2n, 3n].map((id) => store.get([id])))
    const message = expect.stringMatching(
      /evil\.db is damaged: plant 1 has a value that is not text/,
    )
    expect(found).toEqual([
      { status: 'rejected', reason: expect.objectContaining({ message }) },
      { status: 'fulfilled', value: new Map([[2n, { id: 2n, name: 'Moss' }]]) },
      { status: 'fulfilled', value: new Map() },
    ])
  })

  test('a note of a token that is a blob', async () => {
    const looseTokens = tokens.replace(' STRICT', '').replace('note TEXT', 'note')
    const token =
      "INSERT INTO tokens (digest, note, created_at, rights) VALUES (x'00', x'00', 1, 'create')"
    craft('evil.db', [plants, keys, looseTokens, imports, fern, token, pretend('tokens', tokens)])
    for (const line of ['tokens list', 'serve --port 0'])
      expect(await plantsIn(line), line).toMatchObject(isDamaged)
  })

  test('a page that comes twice, as in a tree that never ends', async () => {
    const ids = 'n (id) AS (SELECT 2 UNION ALL SELECT id + 1 FROM n WHERE id < 400)'
    const many = `INSERT INTO plants (id, name) WITH RECURSIVE ${ids} SELECT id, printf('%500d', id) FROM n`
    craft('evil.db', [...exact, many])
    const bytes = bytesOf('evil.db')
    const root = bytes.readUInt16BE(16) // plants is the first table, on page 2
    const first = bytes.readUInt16BE(root + 12)
    const last = root + 12 + 2 * (bytes.readUInt16BE(root + 3) - 1)
    // the last child is the first once more
    bytes.copy(bytes, root + bytes.readUInt16BE(last), root + first, root + first + 4)
    writeFileSync(join(folder, 'evil.db'), bytes)
    const err = expect.stringMatching(/evil\.db is damaged: the id \d+ comes after \d+/)
    expect(await plantsIn('list')).toMatchObject({ code: 4, err })
    await expectRejected('restore evil.db --yes --store ./mine.db', /evil\.db is damaged: /)
  })

  test('a token that only the index on its digest has', async () => {
    const [shown, hidden, honest] = [digestOf('shown'), digestOf('hidden'), digestOf('honest')]
    const path = join(folder, 'evil.db')
    const hex = (digest: Uint8Array) => Buffer.from(digest).toString('hex')
    const tokenOf = (digest: Uint8Array) =>
      `INSERT INTO tokens (digest, note, created_at, rights) VALUES (x'${hex(digest)}', 'for the shop', 1, 'read')`
    const update = `UPDATE tokens SET digest = x'${hex(hidden)}' WHERE digest = x'${hex(shown)}'`
    craft('evil.db', [...exact, tokenOf(shown), tokenOf(honest), update])
    const [{ rootpage } = {}] = query(
      path,
      "SELECT rootpage FROM sqlite_schema WHERE name = 'tokens'",
    )
    const bytes = bytesOf('evil.db')
    const size = bytes.readUInt16BE(16)
    const at = bytes.indexOf(hidden, (Number(rootpage) - 1) * size)
    expect(Math.ceil(at / size)).toBe(rootpage)
    bytes.set(shown, at)
    writeFileSync(path, bytes)
    const store = closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions()))
    expect(await store.tokens.find(honest)).toMatchObject({ id: 2n, note: 'for the shop' })
    expect([await store.tokens.find(hidden), await store.tokens.find(shown)]).toEqual([
      undefined,
      undefined,
    ])
  })

  test('a token that expires at no time that a date has', async () => {
    const times = '-9000000000000000000, 9000000000000000000'
    const token = `INSERT INTO tokens (digest, created_at, expires_at, rights) VALUES (x'00', ${times}, 'read')`
    craft('evil.db', [...exact, token])
    const out = expect.stringContaining('+275760-09-13T00:00:00')
    expect(await plantsIn('tokens list')).toEqual({ code: 0, err: '', out })
  })
})

const statistics =
  "UPDATE sqlite_schema SET sql = replace(sql, ')', ',x)') WHERE name = 'sqlite_stat1'"

test.each([
  ['statistics with a column more', ['ANALYZE', rewrite(statistics)]],
  [
    'a virtual table of a module that is not there',
    [
      'CREATE TABLE evil (x)',
      rename("rootpage = 0, sql = 'CREATE VIRTUAL TABLE evil USING evil (x)'"),
    ],
  ],
  ['an endless view', [endless('evil')]],
])('beside the tables of a store, nothing is read: %s', async (_, statements) => {
  craft('evil.db', [...exact, ...statements])
  const moss = '{"id":2,"name":"Moss"}\n'
  for (const line of ['create', 'import --if-exists skip', 'backup made.bak --output text', 'list'])
    expect(await plantsIn(line), line).toMatchObject({ code: 0 })
  expect((await plantsIn('restore made.bak --yes --store ./mine.db')).code).toBe(0)
  const listed = { code: 0, out: `{"id":1,"name":"Fern"}\n${moss}`, err: '' }
  for (const store of ['./evil.db', './made.bak', './mine.db'])
    expect(await plantsIn(`list --store ${store}`)).toEqual(listed)
})
