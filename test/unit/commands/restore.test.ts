import { existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import { PlantsError } from '../../../src/platform/errors.js'
import { SqliteStore } from '../../../src/stores/sqlite/sqlite-store.js'
import { commandsIn, damagedCopy, look, namesIn } from '../../helpers/backups.js'
import { fill } from '../../helpers/fill.js'
import { open } from '../../helpers/sqlite-file.js'
import { closedAfterTest, endConnections, fileAddress, openOptions } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { refusal } from '../../helpers/world.js'

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

describe('restore', () => {
  beforeEach(async () => {
    await plant({ id: 1, name: 'Fern', tag: 'shade' })
    await plants(['create', '--id=-9223372036854775808', '--name', 'Moss', '--idempotency-key', 'k'])
    await plants(['backup', file])
  })

  test('with --dry-run checks the backup, and restores nothing', async () => {
    await plant({ id: 3, name: 'Ivy' })
    const shown = await plants(['restore', file, '--dry-run'])
    expect(shown).toEqual({ code: 0, out: `{"dryRun":true,"file":"${file}","store":"${store}","plants":2}\n`, err: '' })
    const absent = await plants(['restore', file, '--dry-run', '--store', './new.db', '--output', 'text'])
    expect(absent).toEqual({ code: 0, out: `Would restore 2 plants from ${file} to ${folder}/new.db\n`, err: '' })
    expect([await listOf(store), existsSync(join(folder, 'new.db'))]).toEqual([
      `${moss}${fern}{"id":3,"name":"Ivy"}\n`,
      false,
    ])
    truncateSync(file, 5000)
    expect((await plants(['restore', file, '--dry-run'])).code).toBe(2)
  })

  test('makes a store that is the same', async () => {
    const made = await plants(['restore', file, '--store', './new.db'])
    expect(made).toEqual({ code: 0, out: `{"file":"${file}","store":"${folder}/new.db","plants":2}\n`, err: '' })
    expect(await listOf('./new.db')).toBe(moss + fern)
    expect(look(join(folder, 'new.db'))).toEqual({ journal_mode: 'wal', integrity_check: 'ok' })
    const again = await plants([
      'create',
      '--store',
      './new.db',
      '--id=-9223372036854775808',
      '--name',
      'Moss',
      '--idempotency-key',
      'k',
    ])
    expect(again).toEqual({ code: 0, out: '{"name":"Moss"}\n', err: '' })
  })

  test('brings back as many plants as there are', async () => {
    fill(file, 12_345)
    expect((await plants(['restore', file, '--store', './new.db'])).out).toContain('"plants":12346')
    expect(await listOf('./new.db')).toBe(await listOf(file))
  })

  test('refuses to replace plants without --yes', async () => {
    await plants(['delete', '1', '--yes'])
    const hint = 'To replace it, and keep a copy beside it, add --yes'
    expect(await plants(['restore', file])).toEqual({
      code: 2,
      out: '',
      err: `plants: The store ${store} has 1 plant\n  ${hint}\n`,
    })
    await plant({ id: 2, name: 'Ivy' })
    expect(await plants(['restore', file])).toEqual({
      code: 2,
      out: '',
      err: `plants: The store ${store} has 2 plants\n  ${hint}\n`,
    })
    expect(await listOf(store)).toBe(`${moss}{"id":2,"name":"Ivy"}\n`)
    expect(namesIn(folder)).toEqual(['plants.bak', 'plants.db'])
  })

  test('replaces plants with --yes, and keeps what was there, which can be restored in turn', async () => {
    await plant({ id: 2, name: 'Ivy' })
    const before = await listOf(store)
    const { code, out, err } = await plants(['restore', file, '--yes', '--output', 'text'])
    const [, kept = ''] =
      /^Restored 2 plants from .*\/plants.bak to .*\/plants.db; the previous contents are kept in (.*)\n$/.exec(out) ??
      []
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(kept.replace(store, '')).toMatch(/^\.before-restore-\d{8}T\d{6}Z$/)
    expect(await listOf(store)).toBe(moss + fern)
    expect(await listOf(kept)).toBe(before)
    expect((await plants(['restore', kept, '--yes'])).code).toBe(0)
    expect(await listOf(store)).toBe(before)
  })

  test('never replaces what a restore has kept in the same second', async () => {
    const results = await Promise.all([1, 2, 3, 4].map(() => plants(['restore', file, '--yes'])))
    const kept = results.map(({ out }) => (JSON.parse(out) as { kept: string }).kept)
    expect(new Set(kept).size).toBe(4)
    for (const path of kept) expect(await listOf(path)).toBe(moss + fern)
  })

  test('brings back the tokens, and keeps those of a store that has no plants', async () => {
    await plants(['tokens', 'create', '--note', 'new', '--store', './other.db'], { mayShowSecrets: true })
    const { out } = await plants(['restore', file, '--store', './other.db'])
    expect((await plants(['tokens', 'list', '--store', './other.db'])).out).toBe('')
    const { kept } = JSON.parse(out) as { kept: string }
    const withNew = { code: 0, out: expect.stringContaining('"note":"new"'), err: '' }
    expect(await plants(['tokens', 'list', '--store', kept])).toEqual(withNew)
    await endConnections() // those of this process, which belong to other processes outside of a test
    expect(await plants(['restore', kept, '--store', './third.db'])).toMatchObject({ code: 0 })
    expect(await plants(['tokens', 'list', '--store', './third.db'])).toEqual(withNew)
  })

  test('lets others go on who have the store open', async () => {
    const live = closedAfterTest(await SqliteStore.open(fileAddress(store), openOptions()))
    await live.create({ id: 2n, name: 'Ivy' })
    expect((await plants(['restore', file, '--yes'])).code).toBe(0)
    expect(await live.get(2n)).toBe(undefined)
    await live.create({ id: 3n, name: 'Oak' })
    expect(await listOf(store)).toBe(`${moss}${fern}{"id":3,"name":"Oak"}\n`)
  })

  test('waits for who is writing, as long as --timeout says', async () => {
    const other = open(store)
    other.exec('BEGIN IMMEDIATE')
    const { code, err } = await plants(['restore', file, '--yes', '--timeout', '10ms'])
    expect({ code, err }).toEqual({
      code: 4,
      err: expect.stringMatching(/^plants: The store .* was in use by .* for 0.01 s\n/),
    })
    other.exec("INSERT INTO plants (id, name) VALUES (2, 'Ivy'); COMMIT")
    expect(await listOf(store)).toBe(`${moss}${fern}{"id":2,"name":"Ivy"}\n`)
  })

  test('takes another store from a copy, not from its file while changes are beside it', async () => {
    const other = join(folder, 'live.db')
    const live = closedAfterTest(await SqliteStore.open(fileAddress(other), openOptions()))
    await live.create({ id: 6n, name: 'Elm' })
    const hint = `If it is a store, restore a copy of it: plants help backup. If it is a backup, remove that file: rm ${other}-wal`
    expect(await plants(['restore', 'live.db', '--yes'])).toEqual(
      refusal(`Not restored: ${other} is no complete backup, because it has changes in ${other}-wal`, hint),
    )
    expect(await listOf(store)).toBe(moss + fern)
    expect((await plants(['backup', 'copy.bak', '--store', other])).code).toBe(0)
    expect((await plants(['restore', 'copy.bak', '--yes'])).code).toBe(0)
    expect(await listOf(store)).toBe('{"id":6,"name":"Elm"}\n')
  })

  test('refuses what is no backup, and changes nothing', async () => {
    writeFileSync(join(folder, 'notes.txt'), 'water the fern')
    writeFileSync(join(folder, 'empty'), '')
    open(join(folder, 'songs.db')).exec('CREATE TABLE songs (id INTEGER) STRICT')
    await damagedCopy(store, folder)
    writeFileSync(join(folder, 'short.db'), readFileSync(file))
    truncateSync(join(folder, 'short.db'), 8192)
    const at = (name: string) => join(folder, name)
    const reasons: Record<string, string | RegExp> = {
      gone: `There is no file ${at('gone')}`,
      empty: `${at('empty')} is empty, not a backup`,
      'notes.txt': `Not restored: ${at('notes.txt')} is not a store: it is not an SQLite file`,
      'songs.db': `Not restored: ${at('songs.db')} is an SQLite file of another program, not a store`,
      'short.db': /^Not restored: The store .*\/short\.db is damaged: .*/,
      'damaged.db': /^Not restored: The store .*\/damaged\.db is damaged: .*/,
      'plants.db': `${store} is the store itself, or belongs to it`,
    }
    for (const [name, why] of Object.entries(reasons)) {
      const { code, out, err } = await plants(['restore', name, '--yes', '--output', 'json'])
      const { message, hint, error } = JSON.parse(err) as Record<string, unknown>
      const said = { name, code, out, error, message, hint }
      expect(said).toEqual({
        ...{ name, code: 2, out: '', error: 400, hint: 'Choose a file that plants backup has created' },
        message: typeof why === 'string' ? why : expect.stringMatching(why),
      })
    }
    expect(await listOf(store)).toBe(moss + fern)
    expect((await plants(['restore', 'gone', '--store', './new.db'])).code).toBe(2)
    expect(existsSync(at('new.db'))).toBe(false)
  })

  test.each([
    ['gzip', gzipSync('{"id":1,"name":"Fern"}')],
    ['zstd', Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x00])],
  ])('says that a file is compressed with %s', async (compression, bytes) => {
    const packed = join(folder, 'my plants.gz')
    writeFileSync(packed, bytes)
    expect(await plants(['restore', 'my plants.gz', '--store', './new.db', '--yes'])).toEqual(
      refusal(
        `Not restored: ${packed} is not a store: it is compressed with ${compression}`,
        'Choose a file that plants backup has created',
      ),
    )
    const hint = 'For a compressed backup: plants help restore. For compressed plants: plants help import'
    expect(await plants(['list', '--store', packed])).toEqual(
      refusal(`${packed} is not a store: it is compressed with ${compression}`, hint, 4),
    )
    expect(existsSync(join(folder, 'new.db'))).toBe(false)
  })

  test('says what to do with a store that is damaged', async () => {
    const damaged = await damagedCopy(store, folder)
    const { code, err } = await plants(['restore', file, '--yes', '--store', damaged])
    const hint = '\n  Move the file aside, then restore a backup'
    expect({ code, err }).toEqual({ code: 4, err: expect.stringContaining(hint) })
    expect(namesIn(folder)).toEqual(['damaged.db', 'plants.bak', 'plants.db'])
  })

  test('changes nothing when it is interrupted', async () => {
    await plant({ id: 2, name: 'Ivy' })
    const signal = AbortSignal.abort(new PlantsError('terminated', 'Terminated'))
    expect(await plants(['restore', file, '--yes'], { signal })).toEqual({
      code: 143,
      out: '',
      err: 'plants: Terminated, nothing was changed\n',
    })
    expect(await listOf(store)).toBe(`${moss}${fern}{"id":2,"name":"Ivy"}\n`)
    expect(namesIn(folder)).toEqual(['plants.bak', 'plants.db'])
  })
})
