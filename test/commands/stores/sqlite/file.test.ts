import { EventEmitter, once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { assertDefined } from '../../../../src/errors.js'
import { Connection } from '../../../../src/stores/sqlite/connection.js'
import { SqliteStore } from '../../../../src/stores/sqlite/store.js'
import { Writer } from '../../../../src/stores/sqlite/writer.js'
import type { Transaction } from '../../../../src/stores/store.js'
import { isWindows, readMode, Sandbox, toTextResult } from '../../../helpers/sandbox/sandbox.js'
import { openDatabase, queryFile } from '../../../helpers/sandbox/sqlite-file.js'
import {
  buildSqliteOptions,
  closeAfterTest,
  createFileAddress,
  createPlant,
  gather,
  openFile,
} from '../../../helpers/sandbox/store.js'
import { createTemporaryFolder } from '../../../helpers/sandbox/temporary-folder.js'

const fern = '{"id":1,"name":"Fern"}\n'
const moss = { id: 2n, name: 'Moss' }
const createFern = 'create --id 1 --name Fern'

async function openStore(path = join(createTemporaryFolder(), 'plants.db')) {
  const store = closeAfterTest(await openFile(path))
  return { path, store }
}

function linkFromElsewhere(path: string): void {
  const target = join(createTemporaryFolder(), 'moved.db')
  renameSync(path, target)
  symlinkSync(target, path)
}

describe('the file of a store', () => {
  test('is in WAL mode, has the application id of the program, and a strict table', async () => {
    const user = new Sandbox()
    await user.run(createFern)
    const pragma = (name: string) =>
      Object.values(queryFile(user.store, `PRAGMA ${name}`)[0] ?? {})[0]
    const pragmas = ['journal_mode', 'application_id', 'user_version'].map(pragma)
    expect(pragmas).toEqual(['wal', 0x706c6e74, 1])
    const isStrict = "SELECT strict FROM pragma_table_list WHERE name = 'plants'"
    expect(queryFile(user.store, isStrict)).toEqual([{ strict: 1 }])
  })

  test.skipIf(isWindows).each(['?mode=ro#x.db', '100%25.db'])(
    'may have the name %s (needs paths with ?)',
    async (name) => {
      const user = new Sandbox()
      await user.run([...createFern.split(' '), '--store', `sqlite:${name}`])
      expect(readdirSync(user.home).toSorted()[0]).toBe(name)
      expect((await user.run(['get', '1', '--store', `./${name}`])).out).toBe(fern)
    },
  )

  test.skipIf(isWindows)(
    'may be opened by a link, without files next to the link (needs links)',
    async () => {
      const user = new Sandbox()
      await user.run(createFern)
      symlinkSync(user.store, join(user.home, 'link.db'))
      await user.run('create --id 2 --name Fern --store ./link.db')
      expect((await user.run('count')).out).toBe('2\n')
      expect(readdirSync(user.home)).toEqual(['data', 'link.db'])
    },
  )

  test.skipIf(isWindows)(
    'is accessible to its owner only, even if an empty file was not (needs modes)',
    async () => {
      for (const command of ['create', 'restore', 'stores init']) {
        const user = new Sandbox()
        await user.run(createFern)
        await user.run('backup plants.bak')
        user.write('own.db', '')
        chmodSync(join(user.home, 'own.db'), 0o664)
        const line = {
          create: `${createFern} --store ./own.db`,
          restore: 'restore plants.bak --store ./own.db',
          'stores init': 'stores init ./own.db',
        }[command]
        expect((await user.run(line ?? '')).code, command).toBe(0)
        const { store } = await openStore(join(user.home, 'own.db'))
        await createPlant(store, moss)
        const files = ['own.db', 'own.db-wal', 'own.db-shm']
        const modes = files.map((name) => readMode(join(user.home, name)))
        expect(modes, command).toEqual(['600', '600', '600'])
      }
    },
  )

  test.each(['at once', 'while it waits for a lock'])(
    'that is closed %s stores nothing that has not begun',
    async (moment) => {
      const path = join(createTemporaryFolder(), 'plants.db')
      const options = buildSqliteOptions()
      const waits = new EventEmitter()
      const random = () => {
        waits.emit('wait') // for which the pause is random
        return 0
      }
      const runtime = { ...options.runtime, random }
      const store = await openFile(path, { runtime })
      const other = openDatabase(path)
      other.exec('BEGIN IMMEDIATE')
      const work = async ({ write }: Transaction) => write([{ type: 'create', plant: moss }])
      const results = Promise.allSettled([
        createPlant(store, moss),
        store.transaction(work),
        store.tokens.revoke(1n, new Date()),
      ])
      if (moment !== 'at once') await once(waits, 'wait')
      await store.close()
      const late = Promise.allSettled([createPlant(store, moss), store.get([2n])])
      const reason = expect.objectContaining({ kind: 'unavailable' })
      const failed = { status: 'rejected', reason }
      expect(await results).toEqual([failed, failed, failed])
      expect(await late).toEqual([failed, failed])
      other.exec('ROLLBACK')
      expect(queryFile(path, 'SELECT id FROM plants')).toEqual([])
    },
  )

  test('may be an existing file that is empty', async () => {
    const user = new Sandbox()
    user.write('data/plants.db', '')
    expect(await user.run(createFern)).toEqual(toTextResult('{"name":"Fern"}\n'))
  })

  const ends: [string, (path: string) => void][] = [
    ['deleted', (path) => unlinkSync(path)],
    ['replaced', (path) => renameSync(`${path}.backup`, path)],
    ['moved, and is a link', (path) => linkFromElsewhere(path)],
    ['left without its log', (path) => unlinkSync(`${path}-wal`)],
    ['left without the index of its log', (path) => unlinkSync(`${path}-shm`)],
  ]

  test.skipIf(isWindows).each(ends)(
    'that was %s accepts no plant, and the outcome of a commit is unknown (needs to remove what is open)',
    async (_, change) => {
      const [waiting, committing] = [await openStore(), await openStore()]
      for (const { path } of [waiting, committing]) copyFileSync(path, `${path}.backup`)
      const other = openDatabase(waiting.path)
      other.exec('BEGIN IMMEDIATE')
      const create = createPlant(waiting.store, moss)
      change(waiting.path)
      other.exec('ROLLBACK')
      await expect(create).rejects.toMatchObject({ kind: 'unavailable' })
      const written = committing.store.transaction(async ({ write }) => {
        await write([{ type: 'create', plant: moss }])
        change(committing.path)
      })
      await expect(written).rejects.toMatchObject({ kind: 'unknownOutcome' })
    },
  )
})

test.skipIf(isWindows)(
  'a create is confirmed only after its commit (needs to remove what is open)',
  async () => {
    const { path } = await openStore()
    const connection = assertDefined(
      await Connection.open({ name: path }, 'read', buildSqliteOptions()),
    )
    onTestFinished(() => connection.close())
    const { prepare } = connection
    vi.spyOn(connection, 'prepare').mockImplementation((sql) => {
      if (sql === 'COMMIT') unlinkSync(path)
      return prepare(sql)
    })
    const created = new Writer(connection).write([{ type: 'create', plant: moss }])
    await expect(created).rejects.toMatchObject({ kind: 'unknownOutcome' })
  },
)

/** A backup with a plant, and a store of it that was open before anything was written to it. */
async function openBackup() {
  const { path, store } = await openStore()
  await createPlant(store, moss)
  const backup = join(dirname(path), 'backup.db')
  openDatabase(path).exec(`VACUUM INTO '${backup}'`)
  const address = createFileAddress(backup)
  const writer = closeAfterTest(
    assertDefined(await SqliteStore.open(address, 'read', buildSqliteOptions())),
  )
  return { backup, address, writer }
}

const listFiles = (backup: string) =>
  readdirSync(dirname(backup)).filter((name) => name.startsWith('backup'))

test('a backup is read without a log, and written with one, also when another process writes first', async () => {
  const { backup, address, writer } = await openBackup()
  await writer.check()
  await writer.transaction(({ write }) => write([{ type: 'delete', id: moss.id }]), {
    shouldCommit: () => false,
  })
  expect(listFiles(backup)).toEqual(['backup.db'])
  await createPlant(closeAfterTest(await openFile(address.name)), {
    id: 3n,
    name: 'Fern',
  })
  await writer.write([{ type: 'update', patch: { ...moss, name: 'Oak' } }])
  expect(await gather(writer.read())).toEqual([
    { ...moss, name: 'Oak' },
    { id: 3n, name: 'Fern' },
  ])
})

test.skipIf(isWindows).each(['-wal', '-shm'])(
  'a backup that was written to accepts no plant once its %s is removed (needs to remove what is open)',
  async (end) => {
    const { backup, writer } = await openBackup()
    await writer.write([{ type: 'update', patch: { ...moss, name: 'Oak' } }])
    unlinkSync(backup + end)
    const message = `${backup} or its log was deleted or replaced`
    const create = () => createPlant(writer, { id: 3n, name: 'Fern' })
    for (let time = 0; time < 2; time += 1)
      await expect(create()).rejects.toMatchObject({ kind: 'unavailable', message })
  },
)

test('a store that a newer version has changed accepts no plant until the change is undone', async () => {
  const { path, store } = await openStore()
  await createPlant(store, { id: 1n, name: 'Fern' })
  const other = openDatabase(path)
  other.exec('PRAGMA user_version=99')
  const message = `${path} has version 99 of the store format, but this program reads version 1`
  await expect(createPlant(store, moss)).rejects.toMatchObject({ kind: 'accessDenied', message })
  expect((await store.get([2n])).get(2n)).toBeUndefined()
  other.exec('PRAGMA user_version=1')
  expect(await createPlant(store, moss)).toEqual(moss)
})

test('creates that arrive in successive iterations of the event loop share a commit', async () => {
  const { path, store } = await openStore()
  await createPlant(store, { id: 0n, name: 'Fern' })
  const other = openDatabase(path)
  const stored = () =>
    Number(other.prepare('SELECT count(*) AS count FROM plants').get()?.['count'])
  const creates: Promise<unknown>[] = []
  for (let id = 1n; id <= 20n; id += 1n) {
    creates.push(createPlant(store, { id, name: 'Fern' }))
    await new Promise(setImmediate)
    expect(stored()).toBe(1)
  }
  await creates[0]
  expect(stored()).toBe(21)
  await Promise.all(creates)
})

function readContents(path: string): string {
  return statSync(path).isDirectory() ? readdirSync(path).join() : readFileSync(path, 'base64')
}

const text =
  'not a database, but longer than a header of one hundred bytes, so that SQLite reads it and wonders'
const mark = `PRAGMA application_id=${0x706c6e74}`
const sql = (statements: string) => (path: string) => void openDatabase(path).exec(statements)

test.each<[string, (path: string) => void, why: string]>([
  ['a text', (path) => writeFileSync(path, text), 'it is not a SQLite database'],
  ['the database of another program', sql('CREATE TABLE notes (x)'), 'of another program'],
  ['a newer store', sql(`${mark}; PRAGMA user_version=99; CREATE TABLE t (x)`), 'version 99'],
  ['a directory', (path) => mkdirSync(path), 'is a directory'],
])('a file that cannot be a store is rejected, and stays as it is: %s', async (_, make, why) => {
  const user = new Sandbox()
  mkdirSync(user.data)
  make(user.store)
  const before = readContents(user.store)
  const err = expect.stringMatching(`${user.store} .*${why}`)
  for (const line of [createFern, 'list', 'delete 1 --yes'])
    expect(await user.run(line), line).toEqual({ code: 4, out: '', err })
  expect(readContents(user.store)).toEqual(before)
})
