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
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { PlantsError } from '../../../src/platform/errors.js'
import { SqliteStore } from '../../../src/stores/sqlite/sqlite-store.js'
import { commandsIn, damagedCopy, look, namesIn } from '../../helpers/backups.js'
import { DatabaseSync } from '../../helpers/database.js'
import { open } from '../../helpers/sqlite-file.js'
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

const { plants, plant, listOf } = commandsIn(() => folder)

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
    const again = await plants([
      'create',
      '--store',
      file,
      '--id=-9223372036854775808',
      '--name',
      'Moss',
      '--idempotency-key',
      'k',
    ])
    expect(again).toEqual({ code: 0, out: '{"name":"Moss"}\n', err: '' })
  })

  test('says in text what it did', async () => {
    await plant({ id: 1, name: 'Fern' })
    const result = await plants(['backup', file, '--output', 'text'])
    expect(result).toEqual({ code: 0, out: `Backed up 1 plant from ${store} to ${file}\n`, err: '' })
  })

  test('has what is in the log, and not what somebody is just writing', async () => {
    const live = closedAfterTest(await SqliteStore.open(fileAddress(store), openOptions()))
    await live.create({ id: 1n, name: 'Fern', tag: 'shade' })
    const other = open(store)
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
    expect(namesIn(folder)).toEqual(['link', 'plants.db'])
  })

  test('refuses to replace what is no backup, and leaves it as it was', async () => {
    await plant({ id: 1, name: 'Fern' })
    writeFileSync(join(folder, 'notes.txt'), 'water the fern')
    open(join(folder, 'songs.db')).exec('CREATE TABLE songs (id INTEGER) STRICT')
    await plants(['backup', 'linked.bak'])
    linkSync(join(folder, 'linked.bak'), join(folder, 'second.bak'))
    mkdirSync(join(folder, 'folder'))
    const reasons = {
      'notes.txt': 'is not a store: it is not an SQLite file',
      'songs.db': 'is an SQLite file of another program, not a store',
      'linked.bak': 'has more than one hard link, and each would have its own write-ahead log',
    }
    for (const [name, why] of Object.entries(reasons)) {
      const before = readFileSync(join(folder, name))
      const hint = 'Choose another file for the backup'
      const err = `plants: A backup would replace a file that is not a backup: ${join(folder, name)} ${why}\n  ${hint}\n`
      expect(await plants(['backup', name])).toEqual({ code: 2, out: '', err })
      expect(readFileSync(join(folder, name))).toEqual(before)
    }
    const err = `plants: ${folder}/folder cannot be replaced by a backup: it is not a regular file\n  Choose another file for the backup\n`
    expect(await plants(['backup', 'folder'])).toEqual({ code: 2, out: '', err })
    expect((await plants(['backup', '/dev/full'])).err).toContain('it is not a regular file\n')
  })

  test('refuses to replace another store that is in use', async () => {
    await plant({ id: 1, name: 'Fern' })
    const other = closedAfterTest(await SqliteStore.open(fileAddress(file), openOptions()))
    await other.create({ id: 2n, name: 'Ivy' })
    const why = 'it is in use, or was not closed: it has a write-ahead log or a journal'
    const err = `plants: ${file} cannot be replaced by a backup: ${why}\n  Choose another file for the backup\n`
    expect(await plants(['backup', file])).toEqual({ code: 2, out: '', err })
    expect(await listOf(file)).toBe('{"id":2,"name":"Ivy"}\n')
  })

  test('says where there is no store, and where there is no place', async () => {
    const err = `plants: There is no store at ${store}\n  Check the address. plants create creates a missing store\n`
    expect(await plants(['backup', file])).toEqual({ code: 4, out: '', err })
    expect(readdirSync(folder)).toEqual([])
    await plant({ id: 1, name: 'Fern' })
    const hint = 'Fix this, or choose another directory. Nothing was changed'
    expect(await plants(['backup', 'gone/plants.bak'])).toEqual({
      code: 74,
      out: '',
      err: `plants: The copy ${folder}/gone/plants.bak could not be written: there is no such directory\n  ${hint}\n`,
    })
    expect(await plants(['backup', 'plants.db/plants.bak'])).toEqual({
      code: 74,
      out: '',
      err: `plants: The copy ${store}/plants.bak could not be written: a part of its path is not a directory\n  ${hint}\n`,
    })
  })

  test('is refused for a remote store', async () => {
    const { code, err } = await plants(['backup', file, '--store', 'https://plants.example.com'])
    expect({ code, err }).toEqual({
      code: 2,
      err: 'plants: https://plants.example.com is a service, but this command needs direct access to the store\n  Run the command on the host of the service, or select another store with --store\n',
    })
  })

  test('keeps the older backup when the store is damaged', async () => {
    await plant({ id: 1, name: 'Fern', tag: 'shade' })
    await plants(['backup', file])
    const damaged = await damagedCopy(store, folder)
    const { code, err } = await plants(['backup', file, '--store', damaged])
    expect({ code, err }).toEqual({
      code: 4,
      err: expect.stringContaining(`plants: The store ${damaged} is damaged: `),
    })
    expect(await listOf(file)).toBe(fern)
    expect(namesIn(folder)).toEqual(['damaged.db', 'plants.bak', 'plants.db'])
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
    expect(await plants(['backup', file], { signal })).toEqual({
      code: 130,
      out: '',
      err: 'plants: Interrupted, nothing was changed\n',
    })
    expect(namesIn(folder)).toEqual(['plants.db'])
  })
})
