import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  lchownSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSyncInstance } from '@photostructure/sqlite'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { SqliteStore } from '../../../src/stores/sqlite/store.js'
import { DatabaseSync } from '../../helpers/database.js'
import { fill } from '../../helpers/fill.js'
import { bin } from '../../helpers/process.js'
import { type Result, runPlants } from '../../helpers/run.js'
import { closedAfterTest, fileAddress, openOptions } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { describePlantStore, describeReadableStore, type Subject } from './contract.js'
import { describeManyStore } from './contract-many.js'
import { describeServedStore } from './contract-tokens.js'

describePlantStore('the embedded store', openEmpty)
describeReadableStore('the embedded store', openEmpty)
describeManyStore('the embedded store', async () => (await openEmpty()).store)
describeServedStore('the embedded store', async () => (await openEmpty()).store)

async function openEmpty(): Promise<Subject<SqliteStore>> {
  const path = join(temporaryFolder(), 'plants.db')
  const store = closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions()))
  const look = async (id: bigint) => {
    const other = await SqliteStore.openExisting(fileAddress(path), openOptions())
    const plant = await other?.get(id)
    await other?.close()
    return plant
  }
  return { store, look }
}

describe('the file of a store', () => {
  test('is made for its owner alone, WAL, marked as ours, and strict', async () => {
    const path = join(temporaryFolder(), 'plants.db')
    await create(path, '1')
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(pragma(path, 'journal_mode')).toBe('wal')
    expect(pragma(path, 'application_id')).toBe(0x706c6e74)
    expect(pragma(path, 'user_version')).toBe(3)
    expect(query(path, "SELECT strict FROM pragma_table_list WHERE name = 'plants'")).toEqual([{ strict: 1 }])
  })

  test('is made in a data directory for its owner alone, with all that is missing above', async () => {
    const data = join(temporaryFolder(), 'a/b')
    await runPlants(['create', '--id', '1', '--name', 'Fern'], { env: { PLANTS_DATA_DIR: data } })
    expect(statSync(data).mode & 0o777).toBe(0o700)
    expect(statSync(join(data, 'plants.db')).mode & 0o777).toBe(0o600)
  })

  test.each([['get', '1'], ['list'], ['delete', '1', '--yes']])('is not made by "%s"', async (...argv) => {
    const folder = temporaryFolder()
    await runPlants(argv, { env: { PLANTS_DATA_DIR: join(folder, 'data') } })
    expect(readdirSync(folder)).toEqual([])
  })

  test.each(['plants.db', 'a b.db', '?mode=ro#x.db', '100%25.db', "it's.sqlite", 'シダ.db', 'file:x.db'])(
    'may be named %s',
    async (name) => {
      const folder = temporaryFolder()
      await create(`sqlite:${name}`, '1', folder)
      expect(readdirSync(folder).toSorted()[0]).toBe(name)
      expect((await runPlants(['get', '1', '--store', `./${name}`], { cwd: folder })).out).toBe('{"id":1,"name":"Fern"}\n')
    },
  )

  test('may be a link to where it really is', async () => {
    const folder = temporaryFolder()
    await create(join(folder, 'real.db'), '1')
    symlinkSync('real.db', join(folder, 'link.db'))
    await create(join(folder, 'link.db'), '2')
    expect((await list(join(folder, 'real.db'))).out).toBe('{"id":1,"name":"Fern"}\n{"id":2,"name":"Fern"}\n')
  })

  test('may be an empty one that is there already', async () => {
    const path = join(temporaryFolder(), 'plants.db')
    writeFileSync(path, '')
    expect((await list(path)).out).toBe('')
    expect(await create(path, '1')).toEqual({ code: 0, out: '{"name":"Fern"}\n', err: '' })
  })

  test('is used by its real name, beside which its log is, when a link leads to it', async () => {
    const [folder, links] = [await storeIn(temporaryFolder()), temporaryFolder()]
    symlinkSync(join(folder, 'plants.db'), join(links, 'link.db'))
    open(join(folder, 'plants.db')).prepare('SELECT count(*) FROM plants').get()
    readOnlyFolder(links)
    await create(join(links, 'link.db'), '2')
    expect((await unprivileged(['list', '--store', join(links, 'link.db')])).out).toBe('{"id":1,"name":"Fern"}\n{"id":2,"name":"Fern"}\n')
  })

  test.each<[string, (path: string) => void]>([
    ['deleted', (path) => unlinkSync(path)],
    ['replaced', (path) => renameSync(`${path}.backup`, path)],
  ])('takes no plant when it was %s while a create waited', async (_, change) => {
    const path = join(await storeIn(temporaryFolder()), 'plants.db')
    copyFileSync(path, `${path}.backup`)
    const store = closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions()))
    const other = open(path)
    other.exec('BEGIN IMMEDIATE')
    const create = store.create({ id: 2n, name: 'Moss' })
    change(path)
    other.exec('ROLLBACK')
    await expect(create).rejects.toMatchObject({ kind: 'unavailable', retryable: true, message: `${path} was deleted or replaced` })
  })

  test('keeps no plants of a transaction that another process never finished', async () => {
    const path = join(temporaryFolder(), 'plants.db')
    await create(path, '1')
    const other = open(path)
    other.exec("BEGIN IMMEDIATE; INSERT INTO plants (id, name) VALUES (2, 'Moss')")
    expect((await list(path)).out).toBe('{"id":1,"name":"Fern"}\n')
    other.exec('ROLLBACK')
    expect(await create(path, '2')).toEqual({ code: 0, out: '{"name":"Fern"}\n', err: '' })
  })
})

describe('a file that cannot be a store is refused, and left as it is:', () => {
  const elsewhere = 'Choose another file with --store PATH'

  test.each<[string, (path: string) => void, string, string]>([
    [
      'a text',
      (path) => writeFileSync(path, 'not a database, but longer than a header of one hundred bytes, so that SQLite reads it and wonders'),
      '{} is not a store: it is no SQLite file',
      elsewhere,
    ],
    [
      'the database of another program',
      (path) => open(path).exec('CREATE TABLE notes (text TEXT)'),
      '{} is an SQLite file of another program, not a store',
      elsewhere,
    ],
    [
      'an empty database with the mark of another program',
      (path) => open(path).exec('PRAGMA application_id=7; CREATE TABLE t (x); DROP TABLE t'),
      '{} is an SQLite file of another program, not a store',
      elsewhere,
    ],
    [
      'a store of a newer version',
      (path) => open(path).exec(`PRAGMA application_id=${0x706c6e74}; PRAGMA user_version=99; CREATE TABLE t (x)`),
      '{} was written by a newer version of plants (schema 99, this one knows 3)',
      'Update plants',
    ],
    ['a folder', (path) => mkdirSync(path), '{} is a folder, not a store', 'Name a file in it: --store {}/plants.db'],
  ])('%s', async (_, make, message, hint) => {
    const path = join(temporaryFolder(), 'plants.db')
    make(path)
    const before = contents(path)
    const error = { error: 503, message: message.replace('{}', path), hint: hint.replace('{}', path) }
    for (const argv of [['create', '--id', '1', '--name', 'Fern'], ['list'], ['get', '1'], ['delete', '1', '--yes']]) {
      const { code, out, err } = await runPlants([...argv, '--store', path, '--output', 'json'])
      expect({ code, out, error: JSON.parse(err) }).toEqual({ code: 4, out: '', error })
    }
    expect(contents(path)).toEqual(before)
  })

  test.each<[string, (path: string) => void, string]>([
    ['a device', (path) => symlinkSync('/dev/null', path), '/dev/null is a device or a pipe, not a store'],
    ['a link to nowhere', (path) => symlinkSync('nowhere', path), '{} is a link to a file that is not there'],
  ])('%s', async (_, make, message) => {
    const path = join(temporaryFolder(), 'plants.db')
    make(path)
    expect(await create(path, '1')).toEqual({ code: 4, out: '', err: `plants: ${message.replace('{}', path)}\n  ${elsewhere}\n` })
  })

  const undo = 'Undo that, or bring back a backup'

  test.each([
    ['DROP TABLE plants'],
    ['DROP INDEX plants_idempotency_key'],
    ['CREATE TRIGGER t AFTER INSERT ON plants BEGIN DELETE FROM plants; END'],
    ['CREATE UNIQUE INDEX i ON plants (name)'],
    ['ALTER TABLE plants ADD COLUMN height INTEGER'],
    ['DROP TABLE plants; CREATE VIEW plants AS SELECT 1 AS id, 2 AS name, 3 AS tag, 4 AS idempotency_key'],
  ])('a store that was changed with "%s"', async (sql) => {
    const path = join(await storeIn(temporaryFolder()), 'plants.db')
    open(path).exec(sql)
    const err = `plants: ${path} is not a store of plants: its tables, indexes or triggers were changed\n  ${undo}\n`
    expect(await create(path, '2')).toEqual({ code: 4, out: '', err })
    expect(await list(path)).toEqual({ code: 4, out: '', err })
  })

  test('a store with a second name', async () => {
    const folder = await storeIn(temporaryFolder())
    const [path, other] = [join(folder, 'plants.db'), join(folder, 'other.db')]
    linkSync(path, other)
    const err = `plants: ${other} has a second name (a hard link), and each name would have a log of its own\n  Copy the file instead\n`
    expect(await create(other, '2')).toEqual({ code: 4, out: '', err })
    unlinkSync(path)
    expect((await create(other, '2')).code).toBe(0)
  })

  test('a path that is not UTF-8', async () => {
    const err =
      'plants: PLANTS_STORE is a path that is not UTF-8, or holds U+FFFD: /\ufffd.db\n  A store is a saved name, "local", a path such as ./plants.db, sqlite:PATH, http(s)://…, unix:PATH or postgres://…\n'
    expect(await runPlants(['list'], { env: { PLANTS_STORE: '/\ufffd.db' } })).toEqual({ code: 2, out: '', err })
  })

  test.runIf(process.platform === 'linux')('one in a folder where none can be made', async () => {
    const err = 'plants: There is no folder /proc/none for the store /proc/none/plants.db\n  Make it with: mkdir -p /proc/none\n'
    expect(await runPlants(['create', '--id', '1', '--name', 'Fern'], { env: { PLANTS_DATA_DIR: '/proc/none' } })).toEqual({
      code: 4,
      out: '',
      err,
    })
  })

  test('one in a data directory that is a file', async () => {
    const file = join(temporaryFolder(), 'file')
    writeFileSync(file, '')
    expect(await runPlants(['create', '--id', '1', '--name', 'Fern'], { env: { PLANTS_DATA_DIR: file } })).toEqual({
      code: 4,
      out: '',
      err: `plants: There is no place for the store ${file}/plants.db: ${file} is not a folder\n  ${elsewhere}\n`,
    })
  })

  test('one in a folder that is not there', async () => {
    const folder = temporaryFolder()
    expect(await create(join(folder, 'no/plants.db'), '1')).toEqual({
      code: 4,
      out: '',
      err: `plants: There is no folder ${folder}/no for the store ${folder}/no/plants.db\n  Make it with: mkdir -p ${folder}/no\n`,
    })
  })

  test('one below a file', async () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'file'), '')
    const err = `plants: There is no place for the store ${folder}/file/plants.db: ${folder}/file is not a folder\n  ${elsewhere}\n`
    expect(await create(join(folder, 'file/plants.db'), '1')).toEqual({ code: 4, out: '', err })
    expect(await list(join(folder, 'file/plants.db'))).toEqual({ code: 4, out: '', err })
  })
})

test.each(['run out of time', 'are cancelled'])('a hundred thousand creates that %s in a queue end together', async (end) => {
  const path = join(await storeIn(temporaryFolder()), 'plants.db')
  let now = 0
  const { clock } = openOptions()
  const store = closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions({ clock: { ...clock, now: () => now } })))
  open(path).exec('BEGIN IMMEDIATE')
  const aborts = Array.from({ length: 100_000 }, () => new AbortController())
  const ended = Promise.allSettled(
    aborts.map(({ signal }) => store.create({ id: 1n, name: 'Fern' }, end === 'are cancelled' ? { signal } : {})),
  )
  const start = process.cpuUsage()
  if (end === 'are cancelled') for (const abort of aborts) abort.abort(new Error('Enough'))
  now = 1e9
  const messages = (await ended).map((result) => result.status === 'rejected' && String(result.reason))
  const { user, system } = process.cpuUsage(start)
  expect(new Set(messages).size).toBe(1)
  expect(messages[0]).toMatch(end === 'are cancelled' ? 'Enough' : 'was in use by')
  expect(user + system).toBeLessThan(2_000_000) // microseconds; with a look through the queue for each it is many times that
})

test('a store that was vacuumed is a store', async () => {
  const path = join(await storeIn(temporaryFolder()), 'plants.db')
  query(path, 'VACUUM')
  expect((await list(path)).out).toBe('{"id":1,"name":"Fern"}\n')
})

test('a store that a newer version has taken over is written to no more', async () => {
  const path = join(temporaryFolder(), 'plants.db')
  const store = closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions()))
  await store.create({ id: 1n, name: 'Fern' })
  query(path, 'PRAGMA user_version=99')
  await expect(store.create({ id: 2n, name: 'Moss' })).rejects.toThrow(`${path} was written by a newer version of plants`)
})

test('a store that was changed since it was opened is written to no more, until that is undone', async () => {
  const path = join(temporaryFolder(), 'plants.db')
  const store = closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions()))
  const other = open(path)
  other.exec('CREATE TRIGGER t AFTER INSERT ON plants BEGIN DELETE FROM plants; END')
  const changed = `${path} is not a store of plants: its tables, indexes or triggers were changed`
  await expect(store.create({ id: 1n, name: 'Fern' })).rejects.toMatchObject({ kind: 'unavailable', message: changed })
  other.exec('DROP TRIGGER t')
  await store.create({ id: 1n, name: 'Fern' })
  other.exec('CREATE VIEW v AS SELECT 1')
  await expect(store.create({ id: 2n, name: 'Moss' })).rejects.toMatchObject({ kind: 'unavailable', message: changed })
  expect(await store.get(1n)).toEqual({ id: 1n, name: 'Fern' })
})

describe('a damaged store is named as that, and what is whole in it can be read:', () => {
  test.each<[string, (path: string) => void, string]>([
    ['a page that was overwritten', (path) => overwrite(path, 4096 * 9, 4096), 'database disk image is malformed'],
    ['a file that was cut', (path) => truncateSync(path, 8192), 'database disk image is malformed'],
  ])('%s', async (_, damage, what) => {
    const path = join(temporaryFolder(), 'plants.db')
    const store = await SqliteStore.open(fileAddress(path), openOptions())
    await Promise.all(Array.from({ length: 200 }, (__, index) => store.create({ id: BigInt(index), name: 'F'.repeat(500) })))
    await store.close()
    query(path, 'PRAGMA wal_checkpoint(TRUNCATE)')
    damage(path)
    const { code, err } = await list(path)
    expect({ code, err }).toEqual({
      code: 4,
      err: `plants: The store ${path} is damaged: ${what}\n  Copy the file aside, then bring back a backup, or what can be read: sqlite3 ${path} .recover\n`,
    })
  })
})

describe.runIf(process.getuid?.() === 0)('a store that another user owns', () => {
  const warning = (path: string) =>
    `plants: The store ${path} belongs to another user (uid 65534), who can read and change all that is in it\n`

  test.each([
    ['create', '--id', '2', '--name', 'Moss'],
    ['create', '--id', '2', '--name', 'Moss', '--dry-run'],
    ['import'],
    ['import', '--check'],
    ['get', '1'],
    ['list'],
    ['export'],
    ['backup', 'plants.bak'],
    ['restore', 'other.bak', '--force'],
    ['tokens', 'create'],
    ['tokens', 'revoke', '7'],
    ['delete', '1', '--yes'],
  ])('is used by "%s", with one warning', async (...argv) => {
    const folder = await storeIn(temporaryFolder())
    const path = join(folder, 'plants.db')
    await runPlants(['backup', 'other.bak', '--store', path], { cwd: folder })
    chownSync(path, 65_534, 65_534)
    const world = { cwd: folder, stdin: '{"id":3,"name":"Ivy"}\n', mayShowSecrets: true, env: { PLANTS_STATE_DIR: folder } }
    const { code, err } = await runPlants([...argv, '--store', path], world)
    expect({ code, warnings: err.split('\n').filter((line) => line.includes('belongs')) }).toEqual({
      code: argv.includes('revoke') ? 1 : 0,
      warnings: [warning(path).trimEnd()],
    })
  })

  test('is restored from with a warning, once, when it is the backup', async () => {
    const folder = await storeIn(temporaryFolder())
    const [path, file] = [join(folder, 'plants.db'), join(folder, 'other.bak')]
    await runPlants(['backup', file, '--store', path])
    chownSync(file, 65_534, 65_534)
    const { code, err } = await runPlants(['restore', file, '--force', '--store', path])
    const warning = `plants: The backup ${file} belongs to another user (uid 65534), who may have put tokens in it\n`
    expect({ code, err }).toEqual({ code: 0, err: warning })
  })

  test.each([
    ['a link of theirs', ['theirs.db']],
    ['a link of this user to a link of theirs', ['mine.db', 'theirs.db']],
  ])('is warned of when it is %s to a file of this user', async (_, links) => {
    const folder = await storeIn(temporaryFolder())
    for (const [index, link] of links.entries()) symlinkSync(links[index + 1] ?? 'plants.db', join(folder, link))
    lchownSync(join(folder, 'theirs.db'), 65_534, 65_534)
    const store = join(folder, links[0] ?? '')
    for (const argv of [['list'], ['create', '--id', '2', '--name', 'Moss', '--dry-run'], ['create', '--id', '2', '--name', 'Moss']]) {
      const { code, err } = await runPlants([...argv, '--store', store])
      expect({ code, warnings: err.split('\n').filter((line) => line.includes('another user')) }).toEqual({
        code: 0,
        warnings: [
          `plants: The store ${join(folder, 'theirs.db')} is a link of another user (uid 65534), who can make it lead to another file`,
        ],
      })
    }
  })

  test('is what doctor warns of', async () => {
    const path = join(await storeIn(temporaryFolder()), 'plants.db')
    chownSync(path, 65_534, 65_534)
    const { code, out } = await runPlants(['doctor', '--store', path])
    expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining(`${path} belongs to another user (uid 65534), who can read`) })
  })
})

// Root may write anywhere, so root's rights are taken away for these.
const setpriv = ['setpriv', '--bounding-set', '-all', '--inh-caps', '-all']
const isRoot = process.getuid?.() === 0
const canDropRights = process.platform !== 'win32' && (!isRoot || existsSync('/usr/bin/setpriv'))

describe.runIf(canDropRights)('a place that may not be written', () => {
  test('can still be read', async () => {
    const folder = readOnlyFolder(await storeIn(temporaryFolder()))
    expect(await unprivileged(['list', '--store', join(folder, 'plants.db')])).toEqual({
      code: 0,
      out: '{"id":1,"name":"Fern"}\n',
      err: '',
    })
    expect(readdirSync(folder)).toEqual(['plants.db'])
  })

  test('can still be exported, and to a file that may not be written nothing is', async () => {
    const folder = readOnlyFolder(await storeIn(temporaryFolder()))
    const store = join(folder, 'plants.db')
    expect(await unprivileged(['export', '--store', store])).toEqual({ code: 0, out: '{"id":1,"name":"Fern"}\n', err: '' })
    const out = join(temporaryFolder(), 'out.csv')
    writeFileSync(out, 'old', { mode: 0o400 })
    for (const path of [out, join(folder, 'out.csv')]) {
      const err = `plants: ${path} could not be written: permission denied\n  Choose another place with --out FILE\n`
      expect(await unprivileged(['export', '--store', store, '--out', path])).toEqual({ code: 74, out: '', err })
    }
    expect([readFileSync(out, 'utf8'), readdirSync(folder)]).toEqual(['old', ['plants.db']])
  })

  test('takes no plant, and says why', async () => {
    const folder = readOnlyFolder(await storeIn(temporaryFolder()))
    const err = (file: string) =>
      `plants: The store ${folder}/${file} cannot be written: its folder, ${folder}, is read-only for this user\n  Change the permissions, or choose another file with --store PATH\n`
    expect(await unprivileged(['create', '--id', '2', '--name', 'Moss', '--store', `${folder}/plants.db`])).toEqual({
      code: 4,
      out: '',
      err: err('plants.db'),
    })
    expect(await unprivileged(['create', '--id', '2', '--name', 'Moss', '--store', `${folder}/new.db`])).toEqual({
      code: 4,
      out: '',
      err: err('new.db'),
    })
    expect(readdirSync(folder)).toEqual(['plants.db'])
  })

  test('can be read while its owner has it open', async () => {
    const folder = await storeIn(temporaryFolder())
    open(join(folder, 'plants.db')).exec("INSERT INTO plants (id, name) VALUES (2, 'Moss')")
    readOnlyFolder(folder)
    const out = '{"id":1,"name":"Fern"}\n{"id":2,"name":"Moss"}\n'
    expect(await unprivileged(['list', '--store', join(folder, 'plants.db')])).toEqual({ code: 0, out, err: '' })
  })

  test('tells when it was changed while it was read', async () => {
    const folder = await storeIn(temporaryFolder())
    const path = join(folder, 'plants.db')
    fill(path, 100_000)
    readOnlyFolder(folder)
    const [command = '', ...prefix] = isRoot ? [...setpriv, bin] : [bin]
    const reader = execa(command, [...prefix, 'list', '--store', path], {
      reject: false,
      buffer: { stdout: false },
      stripFinalNewline: false,
    })
    await once(reader.stdout, 'readable')
    if (!isRoot) chmodSync(folder, 0o700)
    open(path).exec('DELETE FROM plants WHERE id > 50000')
    reader.stdout.resume()
    const { exitCode, stderr } = await reader
    expect({ exitCode, stderr }).toEqual({ exitCode: 4, stderr: `plants: ${path} was changed while it was read\n  Try again\n` })
  })

  test('is named when its log was left there by a crash', async () => {
    const [source, folder] = [await storeIn(temporaryFolder()), temporaryFolder()]
    open(join(source, 'plants.db')).exec("INSERT INTO plants (id, name) VALUES (2, 'Moss')")
    for (const name of ['plants.db', 'plants.db-wal']) copyFileSync(join(source, name), join(folder, name))
    readOnlyFolder(folder)
    const path = join(folder, 'plants.db')
    const why = `its last changes are in ${path}-wal, and reading them takes a folder that can be written`
    const err = `plants: ${path} was not closed: ${why}\n  Copy both files to such a folder\n`
    expect(await unprivileged(['list', '--store', path])).toEqual({ code: 4, out: '', err })
  })

  test.each([
    [0o400, 'cannot be written: its file is read-only for this user'],
    [0o000, 'may not be read by this user'],
  ])('may be the file itself, with mode %o', async (mode, why) => {
    const path = join(await storeIn(temporaryFolder()), 'plants.db')
    chmodSync(path, mode)
    expect(await unprivileged(['create', '--id', '2', '--name', 'Moss', '--store', path])).toEqual({
      code: 4,
      out: '',
      err: `plants: The store ${path} ${why}\n  Change the permissions, or choose another file with --store PATH\n`,
    })
  })

  test('is no data directory either', async () => {
    const folder = readOnlyFolder(temporaryFolder())
    const { code, err } = await unprivileged(['create', '--id', '1', '--name', 'Fern'], { PLANTS_DATA_DIR: join(folder, 'data') })
    expect({ code, err }).toEqual({
      code: 4,
      err: `plants: The store ${folder}/data/plants.db cannot be written: its folder, ${folder}/data, is read-only for this user\n  Change the permissions, or choose another file with --store PATH\n`,
    })
  })
})

function create(store: string, id: string, cwd = '/'): Promise<Result> {
  return runPlants(['create', '--id', id, '--name', 'Fern', '--store', store], { cwd })
}

function list(store: string): Promise<Result> {
  return runPlants(['list', '--store', store])
}

async function unprivileged(argv: string[], env: Record<string, string> = {}): Promise<Result> {
  const [command = '', ...prefix] = isRoot ? [...setpriv, bin] : [bin]
  const options = {
    reject: false,
    stripFinalNewline: false,
    stdin: 'ignore',
    extendEnv: false,
    env: { PATH: process.env['PATH'], ...env },
  } as const
  const { exitCode = -1, stdout, stderr } = await execa(command, [...prefix, ...argv], options)
  return { code: exitCode, out: stdout, err: stderr }
}

/** A folder with a store that holds one plant, written by a process that has ended: no log is left beside it. */
async function storeIn(folder: string): Promise<string> {
  await execa(bin, ['create', '--id', '1', '--name', 'Fern', '--store', join(folder, 'plants.db')])
  return folder
}

function readOnlyFolder(folder: string): string {
  chmodSync(folder, 0o500)
  onTestFinished(() => chmodSync(folder, 0o700))
  return folder
}

function open(path: string): DatabaseSyncInstance {
  const db = new DatabaseSync(path)
  onTestFinished(() => db.close())
  return db
}

function query(path: string, sql: string): unknown[] {
  const db = new DatabaseSync(path)
  try {
    return db
      .prepare(sql)
      .all()
      .map((row) => ({ ...(row as object) }))
  } finally {
    db.close()
  }
}

function pragma(path: string, name: string): unknown {
  return Object.values(query(path, `PRAGMA ${name}`)[0] ?? {})[0]
}

function contents(path: string): string {
  return statSync(path).isDirectory() ? readdirSync(path).join() : readFileSync(path).toString('base64')
}

function overwrite(path: string, from: number, length: number): void {
  const bytes = readFileSync(path)
  bytes.fill(0xaa, from, from + length)
  writeFileSync(path, bytes)
}
