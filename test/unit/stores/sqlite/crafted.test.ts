import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { digestOf } from '../../../../src/server/authenticator.js'
import { SqliteStore } from '../../../../src/stores/sqlite/sqlite-store.js'
import { DatabaseSync } from '../../../helpers/database.js'
import { journalOf } from '../../../helpers/journal.js'
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
const keys = 'CREATE UNIQUE INDEX plants_idempotency_key ON plants (idempotency_key) WHERE idempotency_key IS NOT NULL'
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
const trigger = 'CREATE TRIGGER evil AFTER INSERT ON plants BEGIN DELETE FROM plants WHERE id = NEW.id; END'

/** Changes what SQLite has of its schema, past all of its checks. */
const rewrite = (sql: string) => `PRAGMA writable_schema = 1; ${sql}; PRAGMA writable_schema = RESET`
const rename = (set: string) => rewrite(`UPDATE sqlite_schema SET ${set} WHERE name = 'evil'`)

/** SQL that a column's name brings along: it deletes another store, and writes a new file. */
const hostileColumn = (folder: string) =>
  `"id) SELECT 1 WHERE 0; COMMIT; ATTACH '${folder}/victim.db' AS o; DELETE FROM o.plants; DETACH o; ATTACH '${folder}/marker.db' AS p; CREATE TABLE p.marker (x); DETACH p; BEGIN; --"`

let folder: string

beforeEach(async () => {
  folder = temporaryFolder()
  craft('mine.db', 5, exact)
  craft('victim.db', 5, exact)
})

/** Makes a file with the mark of a store, of some version. */
function craft(name: string, version: number, statements: string[]): void {
  const db = new DatabaseSync(join(folder, name), { defensive: false })
  for (const sql of statements) db.exec(sql)
  db.exec(`PRAGMA application_id = ${0x706c6e74}; PRAGMA user_version = ${version}`)
  db.close()
}

/** Each file of the folder with what is in it. */
function contents(): Record<string, string> {
  return Object.fromEntries(
    readdirSync(folder).map((name) => [
      name,
      createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex'),
    ]),
  )
}

const commands: [argv: string[], code: number][] = [
  [['restore', 'evil.db', '--yes', '--store', './mine.db'], 2],
  [['create', '--id', '2', '--name', 'Moss', '--store', './evil.db'], 4],
  [['list', '--timeout', '1s', '--store', './evil.db'], 4],
  [['backup', 'made.bak', '--store', './evil.db'], 4],
  [['backup', 'evil.db', '--store', './mine.db'], 2],
  [['doctor', '--store', './evil.db'], 1],
]

const otherCommands: typeof commands = [
  [['get', '1', '--store', './evil.db'], 4],
  [['delete', '1', '--yes', '--store', './evil.db'], 4],
  [['export', '--store', './evil.db'], 4],
  [['export', '--output', 'csv', '--store', './evil.db'], 4],
  [['import', '--store', './evil.db'], 4],
  [['import', '--dry-run', '--store', './evil.db'], 4],
  [['import', '--atomic', '--store', './evil.db'], 4],
  [['create', '--dry-run', '--id', '2', '--name', 'Moss', '--store', './evil.db'], 4],
  [['tokens', 'list', '--store', './evil.db'], 4],
  [['tokens', 'create', '--store', './evil.db'], 4],
  [['tokens', 'revoke', '1', '--store', './evil.db'], 4],
  [['serve', '--port', '0', '--store', './evil.db'], 4],
  [['update', '1', '--name', 'Moss', '--store', './evil.db'], 4],
]

async function expectRefused([argv, code]: (typeof commands)[number], why: RegExp): Promise<void> {
  const before = contents()
  const start = process.cpuUsage()
  const result = await runPlants(argv, {
    cwd: folder,
    env: { PLANTS_DATA_DIR: join(folder, 'data') },
    stdin: '{"id":2,"name":"Moss"}\n',
  })
  const { user, system } = process.cpuUsage(start) // not the time, which a loaded machine makes longer
  const isSlow = user + system > 2_000_000
  expect({ argv, code: result.code, said: said(result), isSlow, contents: contents() }).toEqual({
    argv,
    code,
    said: expect.stringMatching(why),
    isSlow: false,
    contents: before,
  })
}

/** What a run said of the file. */
function said({ out, err }: Result): string {
  const line = `${out}${err}`.split('\n').find((text) => text.includes('evil.db'))
  return line ?? `nothing of the file: ${out}${err}`
}

const kinds: [what: string, statements: () => string[]][] = [
  [
    'a hostile column of imports',
    () => [plants, keys, tokens, `CREATE TABLE imports (${hostileColumn(folder)} TEXT)`, fern],
  ],
  [
    'a hostile column of tokens',
    () => [plants, keys, `CREATE TABLE tokens (${hostileColumn(folder)} TEXT)`, imports, fern],
  ],
  [
    'a hostile column of plants',
    () => [
      `CREATE TABLE plants (id INTEGER PRIMARY KEY, name TEXT, tag TEXT, idempotency_key TEXT, ${hostileColumn(folder)})`,
      fern,
    ],
  ],
  ['a trigger', () => [...exact, trigger]],
  [
    'a trigger with a name of SQLite',
    () => [...exact, trigger, rename("name = 'sqlite_evil', sql = replace(sql, 'evil', 'sqlite_evil')")],
  ],
  ['an endless view that is called plants', () => [endless('plants'), tokens, imports]],
  ['an endless view besides', () => [...exact, endless('others')]],
]

describe.each([0, 4, 5])('a file that says version %i is refused, and nothing in it is run:', (version) => {
  test.each(kinds)('%s', async (_, statements) => {
    craft('evil.db', version, statements())
    for (const command of commands) await expectRefused(command, changed)
  })
})

test.each([
  [5, [plants, keys, tokens.replace(',\n  last_used_at INTEGER', ''), imports, fern]],
  [4, exact],
])('a file that says version %i and has the tables of another is refused', async (version, statements) => {
  craft('evil.db', version, statements)
  for (const command of commands.slice(0, 3)) await expectRefused(command, changed)
})

test('each command refuses it', async () => {
  craft('evil.db', 5, [endless('plants'), tokens, imports])
  for (const command of otherCommands) await expectRefused(command, /evil\.db is not a store of plants: /)
})

const changed = /evil\.db is not a store of plants: its tables, indexes or triggers were changed/
/** what SQLite itself does not take */
const damaged = /evil\.db is damaged: malformed database schema/

const variants: [what: string, why: RegExp, statements: string[]][] = [
  [
    'a trigger that is called an index of SQLite',
    damaged,
    [...exact, trigger, rename("type = 'index', name = 'sqlite_autoindex_plants_1'")],
  ],
  ['a trigger that is called a table', damaged, [...exact, trigger, rename("type = 'table', name = 'sqlite_stat1'")]],
  ['a trigger of another case', damaged, [...exact, trigger, rename("type = 'TRIGGER', name = 'SQLITE_SEQUENCE'")]],
  ['a trigger whose name goes on after U+0000', damaged, [...exact, trigger, rename("name = 'plants' || char(0)")]],
  ['a trigger whose type is a number', damaged, [...exact, trigger, rename("type = 7, name = x'00'")]],
  [
    'a view that is called sqlite_stat1',
    damaged,
    [...exact, endless('evil'), rename("name = 'sqlite_stat1', sql = replace(sql, 'evil', 'sqlite_stat1')")],
  ],
  [
    'a table of statistics with a column more',
    changed,
    [
      ...exact,
      'ANALYZE',
      rewrite("UPDATE sqlite_schema SET sql = replace(sql, ')', ',x)') WHERE name = 'sqlite_stat1'"),
    ],
  ],
  ['a virtual table', changed, [...exact, 'CREATE VIRTUAL TABLE evil USING fts5 (x)']],
  [
    'a virtual table of a module that is not there',
    changed,
    [...exact, 'CREATE TABLE evil (x)', rename("rootpage = 0, sql = 'CREATE VIRTUAL TABLE evil USING evil (x)'")],
  ],
  ['a generated column', changed, [plants.replace('tag TEXT', "tag TEXT AS (name || 'x')"), keys, tokens, imports]],
  ['a CHECK', changed, [plants.replace('NOT NULL', 'NOT NULL CHECK (length(name) < 9)'), keys, tokens, imports]],
  ['a DEFAULT', changed, [plants.replace('tag TEXT', 'tag TEXT DEFAULT (hex(randomblob(9)))'), keys, tokens, imports]],
  ['a table without types', changed, [plants.replace(' STRICT', ''), keys, tokens, imports]],
  ['a table without row ids', changed, [plants.replace('STRICT', 'STRICT, WITHOUT ROWID'), keys, tokens, imports]],
  [
    'an index of an expression',
    changed,
    [plants, keys.replace('(idempotency_key)', '(lower(idempotency_key))'), tokens, imports],
  ],
  ['an index of other rows', changed, [plants, keys.replace('IS NOT NULL', "> ''"), tokens, imports]],
  ['an index that is not there', changed, [plants, tokens, imports]],
  ['a name in capitals', changed, [plants.replace('TABLE plants', 'TABLE PLANTS'), keys, tokens, imports]],
  [
    'texts in UTF-16',
    /evil\.db is not a store of plants: its encoding is UTF-16le, not UTF-8/,
    ["PRAGMA encoding = 'UTF-16le'", ...exact],
  ],
  [
    'more tables than anybody needs',
    changed,
    [...exact, 'BEGIN', ...Array.from({ length: 3000 }, (_, index) => `CREATE TABLE t${index} (x)`), 'COMMIT'],
  ],
  ['one table of many bytes', damaged, [...exact, `CREATE TABLE evil (x /* ${'x'.repeat(5_000_000)} */)`]],
]

test.each(variants)('refused as well: %s', async (_, why, statements) => {
  craft('evil.db', 5, statements)
  for (const command of commands.slice(0, 3)) await expectRefused(command, why)
})

describe('a journal that names a file for SQLite to delete is not played back', () => {
  test.each(
    otherCommands
      .slice(7)
      .concat(commands)
      .filter(([argv]) => argv[0] !== 'backup'),
  )('by "%s"', async (argv, code) => {
    craft('evil.db', 5, exact)
    writeFileSync(join(folder, 'precious.txt'), 'water the fern')
    writeFileSync(
      join(folder, 'evil.db-journal'),
      journalOf(readFileSync(join(folder, 'evil.db')), join(folder, 'precious.txt')),
    )
    const why = /evil\.db is not a store of plants: .*evil\.db-journal names another file, which SQLite would delete/
    const ofBackup = /evil\.db is no complete backup, because it has changes in .*evil\.db-journal/
    await expectRefused([argv, code], argv[0] === 'restore' ? ofBackup : why)
  })
})

describe('what rows hold that SQLite would not have let in is not taken for plants:', () => {
  const loose = [plants.replace(' STRICT', '').replaceAll(/ TEXT( NOT NULL)?/g, ''), keys, tokens, imports]
  const strict = rewrite(`UPDATE sqlite_schema SET sql = '${plants}' WHERE name = 'plants'`)

  test.each([
    ["x'00ff'", ['list', 'get', 'export', 'create', 'delete']],
    ['NULL', ['list', 'get', 'create', 'delete']],
    ['7', ['list', 'get', 'create', 'delete']],
  ])('a name that is %s', async (name, names) => {
    craft('evil.db', 5, [...loose, `INSERT INTO plants (id, name, idempotency_key) VALUES (1, ${name}, 'k')`, strict])
    for (const command of names) {
      const flags =
        { create: ['--id', '1', '--name', 'Fern', '--idempotency-key', 'k'], delete: ['1', '--yes'], get: ['1'] }[
          command
        ] ?? []
      const { code, out, err } = await runPlants([command, ...flags, '--store', './evil.db'], { cwd: folder })
      expect({ command, code, out, err }).toEqual({
        command,
        code: 4,
        out: '',
        err: expect.stringMatching(/evil\.db is damaged: /),
      })
    }
    expect((await runPlants(['restore', 'evil.db', '--yes', '--store', './mine.db'], { cwd: folder })).code).toBe(2)
  })

  test.each(['7', "x'00'"])('a note of a token that is %s', async (note) => {
    const looseTokens = tokens.replace(' STRICT', '').replace('note TEXT', 'note')
    const strictTokens = rewrite(`UPDATE sqlite_schema SET sql = '${tokens}' WHERE name = 'tokens'`)
    const token = `INSERT INTO tokens (digest, note, created_at, rights) VALUES (x'00', ${note}, 1, 'create')`
    craft('evil.db', 5, [plants, keys, looseTokens, imports, fern, token, strictTokens])
    const writing = note === '7' ? [] : [['tokens', 'revoke', '1']] // SQLite stores a number as text there
    for (const command of [['tokens', 'list'], ['serve', '--port', '0'], ...writing]) {
      const { code, err } = await runPlants([...command, '--store', './evil.db'], { cwd: folder })
      expect({ code, err }).toEqual({ code: 4, err: expect.stringMatching(/evil\.db is damaged: /) })
    }
  })

  test('a page that comes twice, as in a tree that never ends', async () => {
    craft('evil.db', 5, [
      ...exact,
      "INSERT INTO plants (id, name) WITH RECURSIVE n (id) AS (SELECT 2 UNION ALL SELECT id + 1 FROM n WHERE id < 400) SELECT id, printf('%500d', id) FROM n",
    ])
    const file = join(folder, 'evil.db')
    const bytes = readFileSync(file)
    const size = bytes.readUInt16BE(16)
    const root = 2 * size - size // plants is the first table, on page 2
    const first = bytes.readUInt16BE(root + 12)
    const last = root + 12 + 2 * (bytes.readUInt16BE(root + 3) - 1)
    // the last child is the first once more
    bytes.copy(bytes, root + bytes.readUInt16BE(last), root + first, root + first + 4)
    writeFileSync(file, bytes)
    const { code, err } = await runPlants(['list', '--store', './evil.db'], { cwd: folder })
    expect({ code, err }).toEqual({
      code: 4,
      err: expect.stringMatching(/evil\.db is damaged: the id \d+ comes after \d+/),
    })
    for (const command of commands.slice(0, 1)) await expectRefused(command, /evil\.db is damaged: /)
  })

  test('a token that only the index on its digest has', async () => {
    const [shown, hidden, honest] = [digestOf('shown'), digestOf('hidden'), digestOf('honest')]
    const path = join(folder, 'evil.db')
    craft('evil.db', 5, [
      ...exact,
      ...[shown, honest].map(
        (digest) =>
          `INSERT INTO tokens (digest, note, created_at, rights) VALUES (x'${Buffer.from(digest).toString('hex')}', 'for the shop', 1, 'read')`,
      ),
    ])
    const db = new DatabaseSync(path)
    db.prepare('UPDATE tokens SET digest = ? WHERE digest = ?').run(hidden, shown)
    const root = db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'tokens'").get()?.['rootpage']
    db.close()
    const bytes = readFileSync(path)
    const size = bytes.readUInt16BE(16)
    const at = bytes.indexOf(hidden, (Number(root) - 1) * size)
    expect(Math.ceil(at / size)).toBe(root)
    bytes.set(shown, at)
    writeFileSync(path, bytes)
    const { tokens } = closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions()))
    expect(await tokens.find(honest)).toMatchObject({ id: 2n, note: 'for the shop' })
    expect(await tokens.find(hidden)).toBeUndefined()
    expect(await tokens.find(shown)).toBeUndefined()
  })

  test('a token that expires at no time that a date has', async () => {
    const token =
      "INSERT INTO tokens (digest, created_at, expires_at, rights) VALUES (x'00', -9e18, 9e18, 'read')".replaceAll(
        '9e18',
        '9000000000000000000',
      )
    craft('evil.db', 5, [...exact, token])
    const { code, out, err } = await runPlants(['tokens', 'list', '--store', './evil.db'], { cwd: folder })
    expect({ code, err, out }).toEqual({ code: 0, err: '', out: expect.stringContaining('+275760-09-13T00:00:00') })
  })
})

test('statistics of SQLite are no change', async () => {
  craft('evil.db', 5, [...exact, 'ANALYZE', 'CREATE TABLE t (x INTEGER PRIMARY KEY AUTOINCREMENT)', 'DROP TABLE t'])
  expect(await runPlants(['list', '--store', './evil.db'], { cwd: folder })).toEqual({
    code: 0,
    out: '{"id":1,"name":"Fern"}\n',
    err: '',
  })
})

test('a plant that cannot be read does not affect those that are read at the same time', async () => {
  const blob = "INSERT INTO plants (id, name) VALUES (2, x'00')"
  const strict = rewrite("UPDATE sqlite_schema SET sql = sql || ' STRICT' WHERE name = 'plants'")
  craft('odd.db', 5, [plants.replace(' STRICT', ''), keys, tokens, imports, fern, blob, strict])
  const path = join(folder, 'odd.db')
  const store = closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions()))
  expect(await Promise.allSettled([1n, 2n, 3n].map((id) => store.get(id)))).toEqual([
    { status: 'fulfilled', value: { id: 1n, name: 'Fern' } },
    {
      status: 'rejected',
      reason: expect.objectContaining({
        message: `The store ${path} is damaged: plant 2 has a value that is not text`,
      }),
    },
    { status: 'fulfilled', value: undefined },
  ])
})
