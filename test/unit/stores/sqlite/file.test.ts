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
import { SqliteStore } from '../../../../src/stores/sqlite/sqlite-store.js'
import { runPlants } from '../../../helpers/run.js'
import { create, list, open, query, storeIn } from '../../../helpers/sqlite-file.js'
import { closedAfterTest, fileAddress, openOptions } from '../../../helpers/store.js'
import { temporaryFolder } from '../../../helpers/temporary.js'

describe('the file of a store', () => {
  test('is made for its owner alone, WAL, marked as ours, and strict', async () => {
    const path = join(temporaryFolder(), 'plants.db')
    await create(path, '1')
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(pragma(path, 'journal_mode')).toBe('wal')
    expect(pragma(path, 'application_id')).toBe(0x706c6e74)
    expect(pragma(path, 'user_version')).toBe(5)
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
      expect((await runPlants(['get', '1', '--store', `./${name}`], { cwd: folder })).out).toBe(
        '{"id":1,"name":"Fern"}\n',
      )
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
    await expect(create).rejects.toMatchObject({
      type: 'unavailable',
      retryable: true,
      message: `${path} was deleted or replaced`,
    })
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

test('a hundred thousand creates that run out of time in a queue end together', async () => {
  const path = join(await storeIn(temporaryFolder()), 'plants.db')
  let now = 0
  const { clock } = openOptions()
  const store = closedAfterTest(
    await SqliteStore.open(fileAddress(path), openOptions({ clock: { ...clock, now: () => now } })),
  )
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
  await expect(store.create({ id: 2n, name: 'Moss' })).rejects.toThrow(
    `${path} was written by a newer version of plants`,
  )
})

test('a store that was changed since it was opened is written to no more, until that is undone', async () => {
  const path = join(temporaryFolder(), 'plants.db')
  const store = closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions()))
  const other = open(path)
  other.exec('CREATE TRIGGER t AFTER INSERT ON plants BEGIN DELETE FROM plants; END')
  const changed = `${path} is not a store of plants: its tables, indexes or triggers were changed`
  await expect(store.create({ id: 1n, name: 'Fern' })).rejects.toMatchObject({ type: 'unavailable', message: changed })
  other.exec('DROP TRIGGER t')
  await store.create({ id: 1n, name: 'Fern' })
  other.exec('CREATE VIEW v AS SELECT 1')
  await expect(store.create({ id: 2n, name: 'Moss' })).rejects.toMatchObject({ type: 'unavailable', message: changed })
  expect(await store.get(1n)).toEqual({ id: 1n, name: 'Fern' })
})

test('a callback that throws after a commit fails its create, and no later one', async () => {
  const path = join(temporaryFolder(), 'plants.db')
  const defect = new Error('no metrics')
  const counts: number[] = []
  const onCommit = (count: number) => {
    if (counts.push(count) === 1) throw defect
  }
  const store = closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions({ onCommit })))
  await expect(store.create({ id: 1n, name: 'Fern' })).rejects.toBe(defect)
  expect(await store.create({ id: 2n, name: 'Moss' })).toEqual({ name: 'Moss' })
  expect([counts, await store.count()]).toEqual([[1, 1], 2n])
})

test('a defect while a write waits for a lock fails that write, and no later one', async () => {
  const path = join(temporaryFolder(), 'plants.db')
  const defect = new Error('no random numbers')
  const { clock } = openOptions()
  let isBroken = true
  const random = () => {
    if (isBroken) throw defect
    return 0
  }
  const store = closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions({ clock: { ...clock, random } })))
  const other = open(path)
  other.exec('BEGIN IMMEDIATE')
  await expect(store.create({ id: 1n, name: 'Fern' })).rejects.toBe(defect)
  isBroken = false
  const second = store.create({ id: 2n, name: 'Moss' })
  other.exec('COMMIT')
  expect(await second).toEqual({ name: 'Moss' })
})

test('a snapshot that was read to its end keeps nothing of the log', async () => {
  const path = join(temporaryFolder(), 'plants.db')
  const store = closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions()))
  await store.create({ id: 1n, name: 'Fern' })
  for await (const { plants } of store.snapshot({ record: 'json' })) expect(plants).toBe(1)
  await store.create({ id: 2n, name: 'Moss' })
  expect(query(path, 'PRAGMA wal_checkpoint(TRUNCATE)')).toEqual([{ busy: 0, log: 0, checkpointed: 0 }])
})

describe('a damaged store is named as that, and what is whole in it can be read:', () => {
  test.each<[string, (path: string) => void, string]>([
    ['a page that was overwritten', (path) => overwrite(path, 4096 * 9, 4096), 'database disk image is malformed'],
    ['a file that was cut', (path) => truncateSync(path, 8192), 'database disk image is malformed'],
  ])('%s', async (_, damage, what) => {
    const path = join(temporaryFolder(), 'plants.db')
    const store = await SqliteStore.open(fileAddress(path), openOptions())
    await Promise.all(
      Array.from({ length: 200 }, (__, index) => store.create({ id: BigInt(index), name: 'F'.repeat(500) })),
    )
    await store.close()
    query(path, 'PRAGMA wal_checkpoint(TRUNCATE)')
    damage(path)
    const { code, err } = await list(path)
    expect({ code, err }).toEqual({
      code: 4,
      err: `plants: The store ${path} is damaged: ${what}\n  Move the file aside, then restore a backup, or recover what is readable: sqlite3 ${path} .recover\n`,
    })
  })
})

function pragma(path: string, name: string): unknown {
  return Object.values(query(path, `PRAGMA ${name}`)[0] ?? {})[0]
}

function overwrite(path: string, from: number, length: number): void {
  const bytes = readFileSync(path)
  bytes.fill(0xaa, from, from + length)
  writeFileSync(path, bytes)
}
