import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { PlantsError } from '../../../src/platform/errors.js'
import { SqliteStore } from '../../../src/stores/sqlite/store.js'
import { DatabaseSync } from '../../helpers/database.js'
import { fill } from '../../helpers/fill.js'
import { type Result, runPlants, type World } from '../../helpers/run.js'
import { closedAfterTest, fileAddress, openOptions } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temporary.js'

let folder: string
let store: string
let file: string

beforeEach(() => {
  folder = temporaryFolder()
  store = join(folder, 'plants.db')
  file = join(folder, 'plants.bak')
})

function plants(argv: string[], world: World = {}): Promise<Result> {
  return runPlants(argv, { cwd: folder, env: { PLANTS_DATA_DIR: folder }, ...world })
}

async function plant(...plantsToCreate: object[]): Promise<void> {
  for (const each of plantsToCreate) await plants(['create'], { stdin: JSON.stringify(each) })
}

async function listOf(path: string): Promise<string> {
  return (await plants(['list', '--store', path])).out
}

const fern = '{"id":1,"name":"Fern","tag":"shade"}\n'
const moss = '{"id":-9223372036854775808,"name":"Moss"}\n'

describe('backup', () => {
  test('copies all that is in a store into one file, for its owner alone', async () => {
    await plant({ id: 1, name: 'Fern', tag: 'shade' })
    await plants(['create', '--id=-9223372036854775808', '--name', 'Moss', '--idempotency-key', 'k'])
    await plants(['tokens', 'create', '--note', 'ci'], { mayShowSecrets: true })
    const made = await plants(['backup', 'plants.bak'])
    const { size, mode } = statSync(file)
    expect(made).toEqual({ code: 0, out: `{"file":"${file}","plants":2,"bytes":${size}}\n`, err: '' })
    expect(mode & 0o777).toBe(0o600)
    expect(look(file)).toEqual({ journal_mode: 'delete', integrity_check: 'ok' })
    expect(readdirSync(folder).filter((name) => name.includes('bak'))).toEqual(['plants.bak'])
    expect(await listOf(file)).toBe(moss + fern)
    expect((await plants(['tokens', 'list', '--store', file])).out).toContain('"note":"ci"')
    const again = await plants(['create', '--store', file, '--id=-9223372036854775808', '--name', 'Moss', '--idempotency-key', 'k'])
    expect(again).toEqual({ code: 0, out: '{"name":"Moss"}\n', err: '' })
  })

  test('says in text what it did', async () => {
    await plant({ id: 1, name: 'Fern' })
    const result = await plants(['backup', file, '--output', 'text'])
    const out = `Backed up 1 plant from ${store} to ${file} (${statSync(file).size / 1024} KiB)\n`
    expect(result).toEqual({ code: 0, out, err: '' })
    fill(store, 30_000)
    expect((await plants(['backup', file, '--output', 'text'])).out).toMatch(/^Backed up 30000 plants from .* \(\d\d\d KiB\)\n$/)
    fill(store, 200_000)
    expect((await plants(['backup', file, '--output', 'text'])).out).toMatch(/^Backed up 200000 plants from .* \(\d\.\d MiB\)\n$/)
  })

  test('has what is in the log, and not what somebody is just writing', async () => {
    const open = closedAfterTest(await SqliteStore.open(fileAddress(store), openOptions()))
    await open.create({ id: 1n, name: 'Fern', tag: 'shade' })
    const other = connect(store)
    other.exec("BEGIN IMMEDIATE; INSERT INTO plants (id, name) VALUES (2, 'Ivy')")
    expect((await plants(['backup', file])).code).toBe(0)
    expect(await listOf(file)).toBe(fern)
  })

  test('replaces an older backup, by way of a link too, and an empty file', async () => {
    await plant({ id: 1, name: 'Fern', tag: 'shade' })
    await plants(['backup', file])
    await plants(['create', '--id=-9223372036854775808', '--name', 'Moss'])
    symlinkSync(file, join(folder, 'latest'))
    writeFileSync(join(folder, 'empty'), '')
    for (const name of ['latest', 'empty']) {
      expect((await plants(['backup', name])).code).toBe(0)
      expect(await listOf(join(folder, name))).toBe(moss + fern)
    }
    expect(await listOf(file)).toBe(moss + fern)
  })

  test('refuses to replace the store itself, whatever it is called', async () => {
    await plant({ id: 1, name: 'Fern' })
    symlinkSync(store, join(folder, 'link'))
    for (const name of ['plants.db', 'link', 'plants.db-wal', 'plants.db-shm', 'plants.db-journal']) {
      const path = name === 'link' ? store : join(folder, name)
      const err = `plants: ${path} cannot be replaced by a backup: it is the store itself, or belongs to it\n  Choose another file for the backup\n`
      expect(await plants(['backup', name])).toEqual({ code: 2, out: '', err })
    }
    expect(names()).toEqual(['link', 'plants.db'])
  })

  test('refuses to replace what is no backup, and leaves it as it was', async () => {
    await plant({ id: 1, name: 'Fern' })
    writeFileSync(join(folder, 'notes.txt'), 'water the fern')
    connect(join(folder, 'songs.db')).exec('CREATE TABLE songs (id INTEGER) STRICT')
    await plants(['backup', 'linked.bak'])
    linkSync(join(folder, 'linked.bak'), join(folder, 'second.bak'))
    mkdirSync(join(folder, 'folder'))
    const reasons = {
      'notes.txt': 'is not a store: it is no SQLite file',
      'songs.db': 'is an SQLite file of another program, not a store',
      'linked.bak': 'has a second name (a hard link), and each name would have a log of its own',
    }
    for (const [name, why] of Object.entries(reasons)) {
      const before = readFileSync(join(folder, name))
      const hint = 'Choose another file for the backup, or delete this one first'
      const err = `plants: A backup would replace what is no backup: ${join(folder, name)} ${why}\n  ${hint}\n`
      expect(await plants(['backup', name])).toEqual({ code: 2, out: '', err })
      expect(readFileSync(join(folder, name))).toEqual(before)
    }
    const err = `plants: ${folder}/folder cannot be replaced by a backup: it is a folder\n  Name a file in it: ${folder}/folder/plants.bak\n`
    expect(await plants(['backup', 'folder'])).toEqual({ code: 2, out: '', err })
    expect((await plants(['backup', '/dev/full'])).err).toContain('it is a device or a pipe\n')
  })

  test('refuses to replace another store that is in use', async () => {
    await plant({ id: 1, name: 'Fern' })
    const other = closedAfterTest(await SqliteStore.open(fileAddress(file), openOptions()))
    await other.create({ id: 2n, name: 'Ivy' })
    const why = 'it is in use, or was not closed: a log is beside it'
    const err = `plants: ${file} cannot be replaced by a backup: ${why}\n  Choose another file for the backup\n`
    expect(await plants(['backup', file])).toEqual({ code: 2, out: '', err })
    expect(await listOf(file)).toBe('{"id":2,"name":"Ivy"}\n')
  })

  test('says where there is no store, and where there is no place', async () => {
    const err = `plants: There is no store at ${store} yet\n  plants create makes it\n`
    expect(await plants(['backup', file])).toEqual({ code: 1, out: '', err })
    expect(readdirSync(folder)).toEqual([])
    await plant({ id: 1, name: 'Fern' })
    const hint = 'Fix that, or choose another place. What was there is as it was'
    expect(await plants(['backup', 'gone/plants.bak'])).toEqual({
      code: 74,
      out: '',
      err: `plants: The copy ${folder}/gone/plants.bak could not be written: there is no such folder\n  ${hint}\n`,
    })
    expect(await plants(['backup', 'plants.db/plants.bak'])).toEqual({
      code: 74,
      out: '',
      err: `plants: The copy ${store}/plants.bak could not be written: a part of its path is not a folder\n  ${hint}\n`,
    })
  })

  test('is refused for a remote store', async () => {
    const { code, err } = await plants(['backup', file, '--store', 'https://plants.example.com'])
    expect({ code, err }).toEqual({
      code: 2,
      err: 'plants: https://plants.example.com is a remote store, where plants can be created, and nothing else done\n  Do this where its file is, or choose another store with --store\n',
    })
  })

  test('keeps the older backup when the store is damaged', async () => {
    await plant({ id: 1, name: 'Fern', tag: 'shade' })
    await plants(['backup', file])
    const damaged = await damagedCopy(store)
    const { code, err } = await plants(['backup', file, '--store', damaged])
    expect({ code, err }).toEqual({ code: 4, err: expect.stringContaining(`plants: The store ${damaged} is damaged: `) })
    expect(await listOf(file)).toBe(fern)
    expect(names()).toEqual(['damaged.db', 'plants.bak', 'plants.db'])
  })

  describe('leaves alone what only looks like the folder of an earlier backup:', () => {
    let victim: string
    let trap: string
    let bytes: Buffer

    beforeEach(async () => {
      victim = join(folder, 'victim.db')
      const open = new DatabaseSync(victim)
      open.exec('PRAGMA journal_mode = WAL; CREATE TABLE songs (id INTEGER) STRICT')
      open.close()
      bytes = readFileSync(victim)
      await plant({ id: 1, name: 'Fern' })
      trap = join(folder, '.plants.bak.plants-abcdef')
      mkdirSync(trap, { mode: 0o700 })
    })

    test.each<[string, () => void]>([
      ['one in which the lock is a link', () => symlinkSync(victim, join(trap, 'lock'))],
      ['one in which the lock has a second name', () => linkSync(victim, join(trap, 'lock'))],
      ['one that others can open', () => cpSync(victim, join(trap, 'lock'))],
      ['one that holds other files', () => writeFileSync(join(trap, 'notes.txt'), 'water the fern')],
    ])('%s', async (what, set) => {
      set()
      if (what.includes('others')) chmodSync(trap, 0o755)
      const before = readdirSync(trap)
      expect((await plants(['backup', file])).code).toBe(0)
      expect(readFileSync(victim).equals(bytes)).toBe(true)
      expect(readdirSync(trap)).toEqual(before)
      if (before.includes('lock')) expect(readFileSync(join(trap, 'lock')).equals(bytes)).toBe(true)
    })

    test.runIf(process.getuid?.() === 0)('one of another user', async () => {
      cpSync(victim, join(trap, 'lock'))
      chownSync(trap, 65_534, 65_534)
      expect((await plants(['backup', file])).code).toBe(0)
      expect(readFileSync(join(trap, 'lock')).equals(bytes)).toBe(true)
    })

    test('and removes one that is', async () => {
      writeFileSync(join(trap, 'copy.db'), 'half')
      expect((await plants(['backup', file])).code).toBe(0)
      expect(existsSync(trap)).toBe(false)
    })
  })

  test('leaves nothing behind when it is interrupted', async () => {
    await plant({ id: 1, name: 'Fern' })
    const signal = AbortSignal.abort(new PlantsError('interrupted', 'Interrupted'))
    expect(await plants(['backup', file], { signal })).toEqual({ code: 130, out: '', err: 'plants: Interrupted, nothing was changed\n' })
    expect(names()).toEqual(['plants.db'])
  })
})

describe('restore', () => {
  beforeEach(async () => {
    await plant({ id: 1, name: 'Fern', tag: 'shade' })
    await plants(['create', '--id=-9223372036854775808', '--name', 'Moss', '--idempotency-key', 'k'])
    await plants(['backup', file])
  })

  test('makes a store that is the same', async () => {
    const made = await plants(['restore', file, '--store', './new.db'])
    expect(made).toEqual({ code: 0, out: `{"file":"${file}","store":"${folder}/new.db","plants":2}\n`, err: '' })
    expect(await listOf('./new.db')).toBe(moss + fern)
    expect(look(join(folder, 'new.db'))).toEqual({ journal_mode: 'wal', integrity_check: 'ok' })
    const again = await plants(['create', '--store', './new.db', '--id=-9223372036854775808', '--name', 'Moss', '--idempotency-key', 'k'])
    expect(again).toEqual({ code: 0, out: '{"name":"Moss"}\n', err: '' })
  })

  test('brings back as many plants as there are', async () => {
    fill(file, 12_345)
    expect((await plants(['restore', file, '--store', './new.db'])).out).toContain('"plants":12346')
    expect(await listOf('./new.db')).toBe(await listOf(file))
  })

  test('refuses to replace plants without --force', async () => {
    await plants(['delete', '1', '--yes'])
    const hint = 'To replace what is there, which is then kept beside it, add --force'
    expect(await plants(['restore', file])).toEqual({ code: 1, out: '', err: `plants: The store ${store} has a plant\n  ${hint}\n` })
    await plant({ id: 2, name: 'Ivy' })
    expect(await plants(['restore', file])).toEqual({ code: 1, out: '', err: `plants: The store ${store} has 2 plants\n  ${hint}\n` })
    expect(await listOf(store)).toBe(`${moss}{"id":2,"name":"Ivy"}\n`)
    expect(names()).toEqual(['plants.bak', 'plants.db'])
  })

  test('replaces plants with --force, and keeps what was there, which can be restored in turn', async () => {
    await plant({ id: 2, name: 'Ivy' })
    const before = await listOf(store)
    const { code, out, err } = await plants(['restore', file, '--force', '--output', 'text'])
    const [, kept = ''] = /^Restored 2 plants from .*\/plants.bak to .*\/plants.db; what was there is kept in (.*)\n$/.exec(out) ?? []
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(kept.replace(store, '')).toMatch(/^\.before-restore-\d{8}T\d{6}Z$/)
    expect(await listOf(store)).toBe(moss + fern)
    expect(await listOf(kept)).toBe(before)
    expect((await plants(['restore', kept, '--force'])).code).toBe(0)
    expect(await listOf(store)).toBe(before)
  })

  test('never replaces what a restore has kept in the same second', async () => {
    const results = await Promise.all([1, 2, 3, 4].map(() => plants(['restore', file, '--force'])))
    const kept = results.map(({ out }) => (JSON.parse(out) as { kept: string }).kept)
    expect(new Set(kept).size).toBe(4)
    for (const path of kept) expect(await listOf(path)).toBe(moss + fern)
  })

  test('brings back the tokens, and keeps those of a store that has no plants', async () => {
    await plants(['tokens', 'create', '--note', 'new', '--store', './other.db'], { mayShowSecrets: true })
    const { out } = await plants(['restore', file, '--store', './other.db'])
    expect((await plants(['tokens', 'list', '--store', './other.db'])).out).toBe('')
    const { kept } = JSON.parse(out) as { kept: string }
    expect((await plants(['tokens', 'list', '--store', kept])).out).toContain('"note":"new"')
    await plants(['restore', kept, '--store', './third.db'])
    expect((await plants(['tokens', 'list', '--store', './third.db'])).out).toContain('"note":"new"')
  })

  test('lets others go on who have the store open', async () => {
    const open = closedAfterTest(await SqliteStore.open(fileAddress(store), openOptions()))
    await open.create({ id: 2n, name: 'Ivy' })
    expect((await plants(['restore', file, '--force'])).code).toBe(0)
    expect(await open.get(2n)).toBe(undefined)
    await open.create({ id: 3n, name: 'Oak' })
    expect(await listOf(store)).toBe(`${moss}${fern}{"id":3,"name":"Oak"}\n`)
  })

  test('waits for who is writing, as long as --timeout says', async () => {
    const other = connect(store)
    other.exec('BEGIN IMMEDIATE')
    const { code, err } = await plants(['restore', file, '--force', '--timeout', '10ms'])
    expect({ code, err }).toEqual({ code: 4, err: expect.stringMatching(/^plants: The store .* was in use by .* for 0.01 s\n/) })
    other.exec("INSERT INTO plants (id, name) VALUES (2, 'Ivy'); COMMIT")
    expect(await listOf(store)).toBe(`${moss}${fern}{"id":2,"name":"Ivy"}\n`)
  })

  test('takes another store as it is now', async () => {
    const open = closedAfterTest(await SqliteStore.open(fileAddress(join(folder, 'live.db')), openOptions()))
    await open.create({ id: 6n, name: 'Elm' })
    expect((await plants(['restore', 'live.db', '--force'])).code).toBe(0)
    expect(await listOf(store)).toBe('{"id":6,"name":"Elm"}\n')
  })

  test('refuses what is no backup, and changes nothing', async () => {
    writeFileSync(join(folder, 'notes.txt'), 'water the fern')
    writeFileSync(join(folder, 'empty'), '')
    connect(join(folder, 'songs.db')).exec('CREATE TABLE songs (id INTEGER) STRICT')
    await damagedCopy(store)
    writeFileSync(join(folder, 'short.db'), readFileSync(file))
    truncateSync(join(folder, 'short.db'), 8192)
    const at = (name: string) => join(folder, name)
    const reasons: Record<string, string | RegExp> = {
      gone: `There is no file ${at('gone')}`,
      empty: `${at('empty')} is empty, and no backup`,
      'notes.txt': `Not restored: ${at('notes.txt')} is not a store: it is no SQLite file`,
      'songs.db': `Not restored: ${at('songs.db')} is an SQLite file of another program, not a store`,
      'short.db': /^Not restored: The store .*\/short\.db is damaged: .*/,
      'damaged.db': /^Not restored: The store .*\/damaged\.db is damaged: .*/,
      'plants.db': `${store} is the store itself, or belongs to it`,
    }
    for (const [name, why] of Object.entries(reasons)) {
      const { code, out, err } = await plants(['restore', name, '--force', '--output', 'json'])
      const { message, hint, error } = JSON.parse(err) as Record<string, unknown>
      const said = { name, code, out, error, message, hint }
      expect(said).toEqual({
        ...{ name, code: 2, out: '', error: 400, hint: 'Choose a file that plants backup has made' },
        message: typeof why === 'string' ? why : expect.stringMatching(why),
      })
    }
    expect(await listOf(store)).toBe(moss + fern)
    expect((await plants(['restore', 'gone', '--store', './new.db'])).code).toBe(2)
    expect(existsSync(at('new.db'))).toBe(false)
  })

  test('says what to do with a store that is damaged', async () => {
    const damaged = await damagedCopy(store)
    const { code, err } = await plants(['restore', file, '--force', '--store', damaged])
    const hint = `\n  Move it aside, then restore again: mv ${damaged} ${damaged}.damaged\n`
    expect({ code, err }).toEqual({ code: 4, err: expect.stringContaining(hint) })
    expect(names()).toEqual(['damaged.db', 'plants.bak', 'plants.db'])
  })

  test('changes nothing when it is interrupted', async () => {
    await plant({ id: 2, name: 'Ivy' })
    const signal = AbortSignal.abort(new PlantsError('terminated', 'Terminated'))
    expect(await plants(['restore', file, '--force'], { signal })).toEqual({
      code: 143,
      out: '',
      err: 'plants: Terminated, nothing was changed\n',
    })
    expect(await listOf(store)).toBe(`${moss}${fern}{"id":2,"name":"Ivy"}\n`)
    expect(names()).toEqual(['plants.bak', 'plants.db'])
  })
})

/** What is in the folder, but for what SQLite keeps beside a store for as long as this process has statements of it. */
function names(): string[] {
  return readdirSync(folder)
    .filter((name) => !/-(wal|shm)$/.test(name))
    .toSorted()
}

/** Makes a store of many plants out of another, which stays as it is, and spoils pages in the middle. */
async function damagedCopy(path: string): Promise<string> {
  const damaged = join(folder, 'damaged.db')
  fill(path, 5000)
  await plants(['backup', damaged, '--store', path])
  connect(path).exec("DELETE FROM plants WHERE name LIKE 'Plant%'")
  const bytes = readFileSync(damaged)
  writeFileSync(damaged, bytes.fill(0xa5, 8 * 4096, 10 * 4096))
  return damaged
}

/** Another connection to a file, closed when the test is over. */
function connect(path: string): InstanceType<typeof DatabaseSync> {
  const db = new DatabaseSync(path)
  onTestFinished(() => db.close())
  return db
}

function look(path: string): object {
  const db = connect(path)
  return { ...db.prepare('PRAGMA journal_mode').get(), ...db.prepare('PRAGMA integrity_check').get() }
}
