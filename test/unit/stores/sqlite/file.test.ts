import {
  chmodSync,
  chownSync,
  copyFileSync,
  lchownSync,
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
import { describe, expect, test } from 'vitest'
import type { OpenOptions } from '../../../../src/stores/common/store.js'
import { SqliteStore } from '../../../../src/stores/sqlite/sqlite-store.js'
import { open, query } from '../../../helpers/sqlite-file.js'
import { closedAfterTest, fileAddress, openOptions } from '../../../helpers/store.js'
import { temporaryFolder } from '../../../helpers/temporary.js'
import { printed, refusal, World } from '../../../helpers/world.js'

const fern = '{"id":1,"name":"Fern"}\n'
const moss = { id: 2n, name: 'Moss' }
const createFern = 'create --id 1 --name Fern'

async function openedStore(options: Partial<OpenOptions> = {}) {
  const path = join(temporaryFolder(), 'plants.db')
  return { path, store: closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions(options))) }
}

describe('the file of a store', () => {
  test('is made for its owner alone, with all that is missing above, WAL, marked as ours, and strict', async () => {
    const user = new World()
    const env = { PLANTS_DATA_DIR: join(user.home, 'a/b') }
    const path = join(user.home, 'a/b/plants.db')
    await user.run(createFern, { env })
    expect([statSync(path), statSync(env.PLANTS_DATA_DIR)].map(({ mode }) => mode & 0o777)).toEqual([0o600, 0o700])
    const pragma = (name: string) => Object.values(query(path, `PRAGMA ${name}`)[0] ?? {})[0]
    expect(['journal_mode', 'application_id', 'user_version'].map(pragma)).toEqual(['wal', 0x706c6e74, 5])
    expect(query(path, "SELECT strict FROM pragma_table_list WHERE name = 'plants'")).toEqual([{ strict: 1 }])
  })

  test('is not made to read or to delete', async () => {
    const user = new World()
    for (const line of ['get 1', 'list', 'delete 1 --yes']) await user.run(line)
    expect(readdirSync(user.home)).toEqual([])
  })

  test.each(['a b.db', '?mode=ro#x.db', '100%25.db', 'file:x.db'])('may be named %s', async (name) => {
    const user = new World()
    await user.run([...createFern.split(' '), '--store', `sqlite:${name}`])
    expect(readdirSync(user.home).toSorted()[0]).toBe(name)
    expect((await user.run(['get', '1', '--store', `./${name}`])).out).toBe(fern)
  })

  test('may be a link to where it really is', async () => {
    const user = new World()
    await user.run(createFern)
    symlinkSync(user.store, join(user.home, 'link.db'))
    await user.run('create --id 2 --name Fern --store ./link.db')
    expect((await user.run('count')).out).toBe('2\n')
    expect(readdirSync(user.home)).toEqual(['data', 'link.db'])
  })

  test('may be an empty one that is there already', async () => {
    const user = new World()
    user.write('data/plants.db', '')
    expect(await user.run(createFern)).toEqual(printed('{"name":"Fern"}\n'))
  })

  test.each<[string, (path: string) => void]>([
    ['deleted', (path) => unlinkSync(path)],
    ['replaced', (path) => renameSync(`${path}.backup`, path)],
  ])('takes no plant when it was %s while a create waited', async (_, change) => {
    const { path, store } = await openedStore()
    copyFileSync(path, `${path}.backup`)
    const other = open(path)
    other.exec('BEGIN IMMEDIATE')
    const create = store.create(moss)
    change(path)
    other.exec('ROLLBACK')
    const message = `${path} was deleted or replaced`
    await expect(create).rejects.toMatchObject({ type: 'unavailable', retryable: true, message })
  })
})

test('a hundred thousand creates that run out of time in a queue end together', async () => {
  let now = 0
  const { clock } = openOptions()
  const { path, store } = await openedStore({ clock: { ...clock, now: () => now } })
  open(path).exec('BEGIN IMMEDIATE')
  const ended = Promise.allSettled(Array.from({ length: 100_000 }, () => store.create({ id: 1n, name: 'Fern' })))
  const start = process.cpuUsage()
  now = 1e9
  const messages = (await ended).map((result) => result.status === 'rejected' && String(result.reason))
  const { user, system } = process.cpuUsage(start)
  expect(new Set(messages).size).toBe(1)
  expect(messages[0]).toMatch('was in use by')
  // microseconds; with a look through the queue for each it is many times that
  expect(user + system).toBeLessThan(2_000_000)
})

test('a store that another program or a newer version has changed is written to no more, until that is undone', async () => {
  const { path, store } = await openedStore()
  const other = open(path)
  for (const [change, undo, why] of [
    ['CREATE TRIGGER t AFTER INSERT ON plants BEGIN DELETE FROM plants; END', 'DROP TRIGGER t', 'is not a store'],
    ['PRAGMA user_version=99', 'PRAGMA user_version=5', 'was written by a newer version of plants'],
  ] as const) {
    other.exec(change)
    const message = expect.stringContaining(`${path} ${why}`)
    await expect(store.create(moss)).rejects.toMatchObject({ type: 'unavailable', message })
    expect(await store.get(2n)).toBeUndefined()
    other.exec(undo)
  }
  expect(await store.create(moss)).toEqual({ name: 'Moss' })
})

test('a callback that throws after a commit fails its create, and no later one', async () => {
  const defect = new Error('no metrics')
  const counts: number[] = []
  const onCommit = (count: number) => {
    if (counts.push(count) === 1) throw defect
  }
  const { store } = await openedStore({ onCommit })
  await expect(store.create({ id: 1n, name: 'Fern' })).rejects.toBe(defect)
  expect(await store.create(moss)).toEqual({ name: 'Moss' })
  expect([counts, await store.count()]).toEqual([[1, 1], 2n])
})

test('a defect while a write waits for a lock fails that write, and no later one', async () => {
  const defect = new Error('no random numbers')
  const { clock } = openOptions()
  let isBroken = true
  const random = () => {
    if (isBroken) throw defect
    return 0
  }
  const { path, store } = await openedStore({ clock: { ...clock, random } })
  const other = open(path)
  other.exec('BEGIN IMMEDIATE')
  await expect(store.create(moss)).rejects.toBe(defect)
  isBroken = false
  const second = store.create(moss)
  other.exec('COMMIT')
  expect(await second).toEqual({ name: 'Moss' })
})

test('a snapshot that was read to its end keeps nothing of the log', async () => {
  const { path, store } = await openedStore()
  await store.create({ id: 1n, name: 'Fern' })
  for await (const { plants } of store.snapshot({ record: 'json' })) expect(plants).toBe(1)
  await store.create(moss)
  expect(query(path, 'PRAGMA wal_checkpoint(TRUNCATE)')).toEqual([{ busy: 0, log: 0, checkpointed: 0 }])
})

test('a store whose file was cut is said to be damaged', async () => {
  const path = join(temporaryFolder(), 'plants.db')
  const store = await SqliteStore.open(fileAddress(path), openOptions())
  const ids = Array.from({ length: 200 }, (_, id) => BigInt(id))
  await Promise.all(ids.map((id) => store.create({ id, name: 'F'.repeat(500) })))
  await store.close()
  query(path, 'PRAGMA wal_checkpoint(TRUNCATE)')
  truncateSync(path, 8192)
  const hint = `Move the file aside, then restore a backup, or recover what is readable: sqlite3 ${path} .recover`
  const err = `plants: The store ${path} is damaged: database disk image is malformed\n  ${hint}\n`
  expect(await new World().run(`list --store ${path}`)).toMatchObject({ code: 4, err })
})

const elsewhere = 'Choose another file with --store PATH'

function contents(path: string): string {
  return statSync(path).isDirectory() ? readdirSync(path).join() : readFileSync(path, 'base64')
}

describe('a file that cannot be a store is rejected, and left as it is:', () => {
  const text = 'not a database, but longer than a header of one hundred bytes, so that SQLite reads it and wonders'
  const mark = `PRAGMA application_id=${0x706c6e74}`
  const ofAnother = '{} is an SQLite file of another program, not a store'
  const newer = '{} was written by a newer version of plants (schema 99, this one supports 5)'
  const changed = '{} is not a store of plants: its tables, indexes or triggers were changed'
  const sql = (statements: string) => (path: string) => void open(path).exec(statements)

  test.each<[string, (path: string) => void, string, string?]>([
    ['a text', (path) => writeFileSync(path, text), '{} is not a store: it is not an SQLite file'],
    ['the database of another program', sql('CREATE TABLE notes (text TEXT)'), ofAnother],
    ['an empty one', sql('PRAGMA application_id=7; CREATE TABLE t (x); DROP TABLE t'), ofAnother],
    ['a newer store', sql(`${mark}; PRAGMA user_version=99; CREATE TABLE t (x)`), newer, 'Update plants'],
    ['another schema', sql(`${mark}; PRAGMA user_version=5`), changed, 'Undo that, or restore a backup'],
    ['a folder', (path) => mkdirSync(path), 'The store {} could not be opened: it is a directory'],
  ])('%s', async (_, make, message, hint = elsewhere) => {
    const user = new World()
    mkdirSync(user.data)
    make(user.store)
    const before = contents(user.store)
    for (const line of [createFern, 'list', 'delete 1 --yes'])
      expect(await user.run(line), line).toEqual(refusal(message.replace('{}', user.store), hint, 4))
    expect(contents(user.store)).toEqual(before)
  })
})

describe('a place where no store can be made is rejected:', () => {
  const noPart = 'The store {} could not be opened: a part of its path is not a directory'

  test.each([
    ['HOME/device', '/dev/null is a device or a pipe, not a store', elsewhere],
    ['HOME/link', 'The store {} could not be opened: there is no such file', elsewhere],
    ['HOME/no/plants.db', 'There is no directory HOME/no for the store {}', 'Make it with: mkdir -p HOME/no'],
    ['HOME/file/plants.db', noPart, elsewhere],
  ])('%s', async (path, message, hint) => {
    const user = new World()
    user.write('file', '')
    symlinkSync('nowhere', join(user.home, 'link'))
    symlinkSync('/dev/null', join(user.home, 'device'))
    const at = (text: string) => text.replace('{}', path).replaceAll('HOME', user.home)
    expect(await user.run(`${createFern} --store ${at(path)}`)).toEqual(refusal(at(message), at(hint), 4))
  })

  test('a path that is not UTF-8', async () => {
    const err = expect.stringContaining('PLANTS_STORE is a path that is not UTF-8, or holds U+FFFD: /\ufffd.db\n')
    expect(await new World().run('list', { env: { PLANTS_STORE: '/\ufffd.db' } })).toMatchObject({ code: 2, err })
  })
})

const isRoot = process.getuid?.() === 0
const createMoss = 'create --id 2 --name Moss'

async function withStore(): Promise<World> {
  const user = new World()
  await user.run(createFern)
  return user
}

/** The lines of a run's stderr about other users. */
function warningsOf(err: string): string[] {
  return err.split('\n').filter((line) => /another user|other users/.test(line))
}

describe.runIf(isRoot)('a store that another user owns (needs root)', () => {
  const owned = (path: string) =>
    `${path} belongs to another user (uid 65534), who can read and change everything in it`

  test.each([
    ...[createMoss, `${createMoss} --dry-run`, 'import', 'import --dry-run', 'list', 'export'],
    ...['backup plants.bak', 'restore other.bak --yes', 'tokens create', 'tokens revoke 7'],
  ])('is used by "%s", with one warning', async (line) => {
    const user = await withStore()
    await user.run('backup other.bak')
    chownSync(user.store, 65_534, 65_534)
    const { code, err } = await user.run(line, { stdin: '{"id":3,"name":"Ivy"}\n', mayShowSecrets: true })
    const warned = [`plants: The store ${owned(user.store)}`]
    expect([code, warningsOf(err)]).toEqual([line === 'tokens revoke 7' ? 1 : 0, warned])
  })

  test('is what doctor warns of', async () => {
    const user = await withStore()
    chownSync(user.store, 65_534, 65_534)
    expect(await user.run('doctor')).toMatchObject({ code: 0, out: expect.stringContaining(owned(user.store)) })
  })

  test('is restored from with a warning, once, when it is the backup', async () => {
    const user = await withStore()
    await user.run('backup other.bak')
    const file = join(user.home, 'other.bak')
    chownSync(file, 65_534, 65_534)
    const err = `plants: The backup ${file} belongs to another user (uid 65534), who may have added tokens to it\n`
    expect(await user.run('restore other.bak --yes')).toMatchObject({ code: 0, err })
  })

  test.each([
    ['a link of theirs', ['theirs.db']],
    ['a link of this user to a link of theirs', ['mine.db', 'theirs.db']],
  ])('is warned of when it is %s to a file of this user', async (_, links) => {
    const user = await withStore()
    for (const [index, link] of links.entries())
      symlinkSync(links[index + 1] ?? 'data/plants.db', join(user.home, link))
    const theirs = join(user.home, 'theirs.db')
    lchownSync(theirs, 65_534, 65_534)
    const why = 'is a link of another user (uid 65534), who can point it to another file'
    for (const line of ['list', `${createMoss} --dry-run`, createMoss]) {
      const { code, err } = await user.run(`${line} --store ./${links[0]}`)
      expect([code, warningsOf(err)]).toEqual([0, [`plants: The store ${theirs} ${why}`]])
    }
  })
})

describe.runIf(isRoot)('where other users can create files beside a store (needs root)', () => {
  const written = (mode: string) => `can be written by other users (mode ${mode})`
  const theirs = 'belongs to another user (uid 1234)'

  test.each<[string, [mode: number, uid?: number, gid?: number][], string?, number?]>([
    ['a folder that is open to all', [[0o777]], written('777')],
    ['a sticky folder', [[0o1777]], written('1777')],
    ['a folder of a group', [[0o775, 0, 7777]], written('775')],
    ['a folder of the group of its owner alone', [[0o775]]],
    ['a folder of another user', [[0o755, 1234]], theirs],
    ['a folder in one that is open to all', [[0o777], [0o755]], written('777'), 1],
    ['a folder in a sticky one', [[0o1777], [0o755]]],
    ['a folder of another user in a sticky one', [[0o1777], [0o755, 1234]], theirs],
    ['an open folder in a private one', [[0o700], [0o777]]],
  ])('doctor fails and a create warns: %s', async (_, folders, reason, depth = folders.length) => {
    const user = new World()
    chmodSync(user.home, 0o755)
    const places = folders.map((__, index) => join(user.home, ...folders.slice(0, index + 1).map(() => 'in')))
    for (const [index, [mode, uid = 0, gid = uid]] of folders.entries()) {
      const place = places[index] ?? ''
      mkdirSync(place)
      chownSync(place, uid, gid)
      chmodSync(place, mode)
    }
    const path = join(places.at(-1) ?? '', 'plants.db')
    const exposed = `${path} is exposed to other users: ${places[depth - 1]} ${reason}`
    const hint = 'Move it to a directory that only you can write to'
    const { code, err } = await user.run(`${createFern} --store ${path}`)
    expect([code, warningsOf(err)]).toEqual([0, reason ? [`plants: The store ${exposed}. ${hint}`] : []])
    const { code: result, out } = await user.run(`doctor --store ${path}`)
    const check = `store ${path}`
    const [finding = ''] = out.split('\n').filter((line) => line.includes(check))
    const found = reason ? { state: 'failed', message: exposed, hint } : { state: 'ok' }
    expect([result, JSON.parse(finding)]).toMatchObject([reason ? 1 : 0, { check, ...found }])
  })
})
