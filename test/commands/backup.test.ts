import * as fs from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { PlantsError } from '../../src/errors.js'
import { restoreStore } from '../../src/stores/sqlite/backup.js'
import { isWindows, readMode, Sandbox, toJsonResult } from '../helpers/sandbox/sandbox.js'
import { insertPlants, openDatabase } from '../helpers/sandbox/sqlite-file.js'
import {
  buildSqliteOptions,
  closeAfterTest,
  createFileAddress,
  createPlant,
  openFile,
} from '../helpers/sandbox/store.js'

// What these commands say is in transcripts/backup.txt.

const fern = '{"id":1,"name":"Fern","tag":"shade"}\n'
const moss = '{"id":-9223372036854775808,"name":"Moss"}\n'
const ivy = '{"id":2,"name":"Ivy"}\n'
let user: Sandbox

beforeEach(async () => {
  user = new Sandbox()
  await user.run('create', { stdin: fern })
})

const at = (name: string) => join(user.home, name)
const listOf = async (path: string) => (await user.run(`list --store ${path}`)).out

/** Runs a command that fails, with a telling part of its message. */
async function expectFailure(line: string, code: number, message: string): Promise<void> {
  const err = expect.stringContaining(message)
  expect(await user.run(line), line).toEqual({ code, out: '', err })
}

/** What is in the directories, but what SQLite keeps beside a store that this process has open. */
const names = () =>
  fs
    .readdirSync(user.home, { recursive: true, encoding: 'utf8' })
    .filter((name) => !/-(wal|shm)$/.test(name))
    .toSorted()

/** Opens a store as another program has it open. */
const live = async (path: string) => closeAfterTest(await openFile(path))

/** A copy of the store with many plants, whose pages in the middle are spoilt. */
async function damagedCopy(): Promise<string> {
  insertPlants(user.store, 5000)
  await user.run('backup damaged.db')
  openDatabase(user.store).exec("DELETE FROM plants WHERE name LIKE 'Plant%'")
  const bytes = fs.readFileSync(at('damaged.db'))
  fs.writeFileSync(at('damaged.db'), bytes.fill(0xa5, 8 * 4096, 10 * 4096))
  return at('damaged.db')
}

test.each([
  ['backup plants.bak', 'interrupted', 130],
  ['restore plants.bak --yes', 'terminated', 143],
] as const)(
  'plants %s changes nothing when it is %s, and exits with %i',
  async (line, kind, code) => {
    if (line.startsWith('restore')) await user.run('backup plants.bak')
    await user.run('create', { stdin: ivy })
    const before = names()
    const signal = AbortSignal.abort(new PlantsError(kind, kind))
    expect(await user.run(line, { signal })).toMatchObject({ code, out: '' })
    expect([await listOf('local'), names()]).toEqual([fern + ivy, before])
  },
)

test('no command backs up, replaces or restores a damaged store', async () => {
  await user.run('backup plants.bak')
  const damaged = await damagedCopy()
  const before = names()
  for (const line of [
    `backup plants.bak --store ${damaged}`,
    `restore plants.bak --yes --store ${damaged}`,
    `restore ${damaged} --yes`,
    `restore ${damaged} --dry-run`,
  ])
    await expectFailure(line, 4, ' is damaged, or its disk cannot be read: ')
  expect([await listOf('./plants.bak'), await listOf('local'), names()]).toEqual([
    ...[fern, fern, before],
  ])
})

describe('backup', () => {
  test('copies a whole store into one file', async () => {
    await user.run('create', { stdin: moss })
    await user.run('tokens create --note ci')
    const made = await user.run('backup plants.bak')
    const bytes = fs.statSync(at('plants.bak')).size
    expect(made).toEqual(toJsonResult({ file: at('plants.bak'), plants: 2, bytes }))
    const db = openDatabase(at('plants.bak'))
    expect([
      db.prepare('PRAGMA journal_mode').get(),
      db.prepare('PRAGMA integrity_check').get(),
    ]).toMatchObject([{ journal_mode: 'delete' }, { integrity_check: 'ok' }])
    expect(fs.readdirSync(user.home)).toEqual(['data', 'plants.bak'])
    expect(await listOf('./plants.bak')).toBe(moss + fern)
    expect((await user.run('tokens list --store ./plants.bak')).out).toContain('"note":"ci"')
  })

  test.skipIf(isWindows)(
    'replaces an older backup, also through a link (needs links)',
    async () => {
      await user.run('backup plants.bak')
      await user.run('create', { stdin: moss })
      fs.symlinkSync('plants.bak', at('latest'))
      expect((await user.run('backup latest')).code).toBe(0)
      expect(await listOf('./plants.bak')).toBe(moss + fern)
    },
  )

  test('fails if another backup has created its file in the meantime', async () => {
    // The clock is asked before the copy gets its name.
    const now = () => {
      if (!user.has('plants.bak')) user.write('plants.bak', 'of another process')
      return performance.now()
    }
    const err = expect.stringContaining(`The backup ${at('plants.bak')} could not be used`)
    expect(await user.run('backup plants.bak', { now })).toEqual({ code: 4, out: '', err })
    expect(user.read('plants.bak')).toBe('of another process')
  })

  test.skipIf(isWindows)(
    'is readable only by its owner, even if it replaces a file that others could read (needs modes)',
    async () => {
      for (const content of ['an empty file', 'an older backup']) {
        if (content === 'an empty file') user.write('plants.bak', '')
        fs.chmodSync(at('plants.bak'), 0o666)
        expect((await user.run('backup plants.bak')).code).toBe(0)
        expect(readMode(at('plants.bak')), content).toBe('600')
      }
      expect((await user.run('restore plants.bak --yes')).code).toBe(0)
      const copies = fs.readdirSync(user.data).filter((name) => name.includes('before-restore'))
      expect(copies.map((name) => readMode(join(user.data, name)))).toEqual(['600'])
    },
  )

  test.skipIf(isWindows)(
    'replaces neither its own store, a store in use, nor a damaged file (needs links)',
    async () => {
      fs.symlinkSync(user.store, at('link'))
      fs.linkSync(user.store, at('name'))
      for (const name of ['link', 'name'])
        await expectFailure(`backup ${name}`, 2, 'is a file of the store')
      fs.rmSync(at('name'))
      await createPlant(await live(at('other.db')), { id: 2n, name: 'Ivy' })
      await user.run('backup damaged.bak')
      const bytes = fs.readFileSync(at('damaged.bak'))
      fs.writeFileSync(at('damaged.bak'), bytes.fill(0x78, 100, 120))
      for (const name of ['other.db', 'damaged.bak'])
        await expectFailure(`backup ${name} --yes`, 2, `${at(name)} cannot be overwritten`)
      expect([await listOf('local'), await listOf('./other.db')]).toEqual([fern, ivy])
    },
  )

  test('does not replace the file of another store, which no process has open', async () => {
    await user.run('create --store ./other.db', { stdin: ivy })
    openDatabase(at('other.db')).exec('PRAGMA wal_checkpoint(TRUNCATE)')
    fs.copyFileSync(at('other.db'), at('copy.db'))
    await expectFailure('backup copy.db --yes', 2, `${at('copy.db')} cannot be overwritten`)
    expect(await listOf('./copy.db')).toBe(ivy)
  })

  test('replaces a backup with more than twice the plants only with --yes', async () => {
    await user.run('create --id 3 --name Ivy')
    await user.run('create --id 4 --name Oak')
    await user.run('backup plants.bak')
    await user.run('create --store ./other.db', { stdin: ivy })
    await expectFailure('backup plants.bak --store ./other.db', 2, 'has 3 plants')
    expect((await user.run('count --store ./plants.bak')).out).toBe('3\n')
    await user.run('delete 3 --yes')
    expect(await user.run('backup plants.bak')).toMatchObject({ code: 0, err: '' })
    // Exactly twice as many are replaced without a question.
    await user.run('backup twice.bak')
    expect(await user.run('backup twice.bak --store ./other.db')).toMatchObject({
      code: 0,
      err: '',
    })
    await user.run('create --id 5 --name Elm')
    await user.run('backup plants.bak')
    const forced = await user.run('backup plants.bak --store ./other.db --yes')
    expect(forced).toMatchObject({ code: 0, err: '' })
    expect(await listOf('./plants.bak')).toBe(ivy)
  })
})

describe('restore', () => {
  beforeEach(async () => {
    await user.run('create', { stdin: moss })
    await user.run('backup plants.bak')
  })

  test('replaces plants with --yes, and keeps the old store', async () => {
    await user.run('create', { stdin: ivy })
    const before = await listOf('local')
    const { code, out, err } = await user.run('restore plants.bak --yes')
    const { kept } = JSON.parse(out)
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(kept.replace(user.store, '')).toMatch(/^\.before-restore-\d{8}T\d{6}Z$/)
    expect([await listOf('local'), await listOf(kept)]).toEqual([moss + fern, before])
    expect((await user.run(['restore', kept, '--yes'])).code).toBe(0)
    expect(await listOf('local')).toBe(before)
  })

  const kept = () => `${user.store}.before-restore-20260102T030405Z`

  /** Restores the backup. The call comes when it is open, and nothing has the name of `kept` yet. */
  function restoreDuring(call: () => void): Promise<unknown> {
    const options = buildSqliteOptions()
    const { runtime } = options
    let calls = 0
    const getStopSignal = () => {
      calls += 1
      // The second call comes from the backup of the old store, which has found no file there.
      if (calls === 2) call()
      return runtime.getStopSignal()
    }
    return restoreStore(
      createFileAddress(user.store),
      at('plants.bak'),
      new Date('2026-01-02T03:04:05Z'),
      { ...options, runtime: { ...runtime, getStopSignal } },
    )
  }

  test('leaves a file alone that another program creates where the old store would be kept', async () => {
    const restore = restoreDuring(() => fs.writeFileSync(kept(), 'of another program'))
    await expect(restore).rejects.toMatchObject({ kind: 'accessDenied' })
    expect(fs.readFileSync(kept(), 'utf8')).toBe('of another program')
  })

  test('changes nothing if another program writes to the backup meanwhile', async () => {
    const before = await listOf('local')
    const restore = restoreDuring(() =>
      openDatabase(at('plants.bak')).exec("UPDATE plants SET name = 'Elm'"),
    )
    const message = `The backup ${at('plants.bak')} was changed while it was read`
    await expect(restore).rejects.toMatchObject({ kind: 'unavailable', message })
    expect([await listOf('local'), fs.existsSync(kept())]).toEqual([before, false])
  })

  test('does not replace the store that another restore kept in the same second', async () => {
    const results = await Promise.all([1, 2, 3, 4].map(() => user.run('restore plants.bak --yes')))
    const kept = results.map(({ out }) => JSON.parse(out).kept)
    expect(new Set(kept).size).toBe(4)
    for (const path of kept) expect(await listOf(path)).toBe(moss + fern)
  })

  test('brings back the tokens into a store without any', async () => {
    await user.run('tokens create --note old')
    await user.run('backup plants.bak')
    await user.run('restore plants.bak --store ./other.db')
    expect((await user.run('tokens list --store ./other.db')).out).toContain('"note":"old"')
  })

  test('leaves a store the tokens that it has, also if all are revoked', async () => {
    await user.run('tokens create --note old')
    await user.run('backup plants.bak')
    await user.run('tokens revoke old')
    const tokens = await user.run('tokens list')
    await user.run('create', { stdin: ivy })
    const { kept } = JSON.parse((await user.run('restore plants.bak --yes')).out)
    expect(await user.run('tokens list')).toEqual(tokens)
    expect(await listOf('local')).toBe(moss + fern)
    expect(await user.run(`tokens list --store ${kept}`)).toEqual(tokens)
  })

  test('waits for a writer, as long as --timeout says', async () => {
    const other = openDatabase(user.store)
    other.exec('BEGIN IMMEDIATE')
    await expectFailure(
      'restore plants.bak --yes --timeout 10ms',
      4,
      'is in use by another process',
    )
    other.exec("INSERT INTO plants (id, name) VALUES (2, 'Ivy'); COMMIT")
    expect(await listOf('local')).toBe(moss + fern + ivy)
  })

  test('rejects a store with a write-ahead log, and any other database', async () => {
    await createPlant(await live(at('live.db')), { id: 6n, name: 'Elm' })
    await expectFailure('restore live.db --yes', 2, `it has changes in ${at('live.db')}-wal`)
    openDatabase(at('songs.db')).exec('CREATE TABLE songs (id INTEGER) STRICT')
    await expectFailure(
      'restore songs.db --yes',
      4,
      `${at('songs.db')} is a SQLite file of another`,
    )
    expect(await listOf('local')).toBe(moss + fern)
  })
})
