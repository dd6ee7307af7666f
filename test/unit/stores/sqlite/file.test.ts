import {
  copyFileSync,
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
import { World } from '../../../helpers/world.js'

const fern = '{"id":1,"name":"Fern"}\n'
const moss = { id: 2n, name: 'Moss' }
const createFern = 'create --id 1 --name Fern'

/** Opens the store of a new user, until the test is over. */
async function openedStore(options: Partial<OpenOptions> = {}) {
  const path = join(temporaryFolder(), 'plants.db')
  const store = await SqliteStore.open(fileAddress(path), openOptions(options))
  return { path, store: closedAfterTest(store) }
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

  test.each(['a b.db', '?mode=ro#x.db', '100%25.db', "it's.sqlite", 'シダ.db', 'file:x.db'])(
    'may be named %s',
    async (name) => {
      const user = new World()
      await user.run([...createFern.split(' '), '--store', `sqlite:${name}`])
      expect(readdirSync(user.home).toSorted()[0]).toBe(name)
      expect((await user.run(['get', '1', '--store', `./${name}`])).out).toBe(fern)
    },
  )

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
    expect((await user.run('list')).out).toBe('')
    expect(await user.run(createFern)).toEqual({ code: 0, out: '{"name":"Fern"}\n', err: '' })
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
    await expect(create).rejects.toMatchObject({
      type: 'unavailable',
      retryable: true,
      message: `${path} was deleted or replaced`,
    })
  })

  test('keeps no plants of a transaction that another process never finished, and may be vacuumed', async () => {
    const user = new World()
    await user.run(createFern)
    const other = open(user.store)
    other.exec("BEGIN IMMEDIATE; INSERT INTO plants (id, name) VALUES (2, 'Moss')")
    expect((await user.run('list')).out).toBe(fern)
    other.exec('ROLLBACK; VACUUM')
    expect((await user.run('list')).out).toBe(fern)
    expect((await user.run('create --id 2 --name Moss')).code).toBe(0)
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

test('a store that a newer version has taken over is written to no more', async () => {
  const { path, store } = await openedStore()
  await store.create({ id: 1n, name: 'Fern' })
  query(path, 'PRAGMA user_version=99')
  await expect(store.create(moss)).rejects.toThrow(`${path} was written by a newer version of plants`)
})

test('a store that was changed since it was opened is written to no more, until that is undone', async () => {
  const { path, store } = await openedStore()
  const other = open(path)
  other.exec('CREATE TRIGGER t AFTER INSERT ON plants BEGIN DELETE FROM plants; END')
  const changed = `${path} is not a store of plants: its tables, indexes or triggers were changed`
  await expect(store.create({ id: 1n, name: 'Fern' })).rejects.toMatchObject({ type: 'unavailable', message: changed })
  other.exec('DROP TRIGGER t')
  await store.create({ id: 1n, name: 'Fern' })
  other.exec('CREATE VIEW v AS SELECT 1')
  await expect(store.create(moss)).rejects.toMatchObject({ type: 'unavailable', message: changed })
  expect(await store.get(1n)).toEqual({ id: 1n, name: 'Fern' })
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
  await expect(store.create({ id: 1n, name: 'Fern' })).rejects.toBe(defect)
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

test.each<[string, (path: string) => void]>([
  ['a page that was overwritten', (path) => writeFileSync(path, readFileSync(path).fill(0xaa, 4096 * 9, 4096 * 10))],
  ['a file that was cut', (path) => truncateSync(path, 8192)],
])('a store is said to be damaged by %s', async (_, damage) => {
  const path = join(temporaryFolder(), 'plants.db')
  const store = await SqliteStore.open(fileAddress(path), openOptions())
  const names = Array.from({ length: 200 }, () => 'F'.repeat(500))
  await Promise.all(names.map((name, index) => store.create({ id: BigInt(index), name })))
  await store.close()
  query(path, 'PRAGMA wal_checkpoint(TRUNCATE)')
  damage(path)
  const hint = `Move the file aside, then restore a backup, or recover what is readable: sqlite3 ${path} .recover`
  expect(await new World().run(`list --store ${path}`)).toMatchObject({
    code: 4,
    err: `plants: The store ${path} is damaged: database disk image is malformed\n  ${hint}\n`,
  })
})
