import * as fs from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { PlantsError } from '../../../src/platform/errors.js'
import { SqliteStore } from '../../../src/stores/sqlite/store.js'
import { fill } from '../../helpers/crafted-files.js'
import { open } from '../../helpers/sqlite-file.js'
import { closedAfterTest, createPlant, fileAddress, openOptions } from '../../helpers/store.js'
import { isWindows } from '../../helpers/windows.js'
import { answer, refusal, World } from '../../helpers/world.js'

// The messages about files that are no backups are in transcripts/backup.txt.

const fern = '{"id":1,"name":"Fern","tag":"shade"}\n'
const isRoot = process.getuid?.() === 0
const moss = '{"id":-9223372036854775808,"name":"Moss"}\n'
let user: World

beforeEach(async () => {
  user = new World()
  await user.run('create', { stdin: fern })
})

const at = (name: string) => join(user.home, name)
const listOf = async (path: string) => (await user.run(`list --store ${path}`)).out

/** What is in the folders, except for what SQLite keeps beside a store while this process has statements of it. */
const names = () =>
  fs
    .readdirSync(user.home, { recursive: true, encoding: 'utf8' })
    .filter((name) => !/-(wal|shm)$/.test(name))
    .toSorted()

/** Opens a store as another program has it open. */
const live = async (path: string) =>
  closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions()))

/** A copy of the store with many plants, whose pages in the middle are spoilt. */
async function damagedCopy(): Promise<string> {
  fill(user.store, 5000)
  await user.run('backup damaged.db')
  open(user.store).exec("DELETE FROM plants WHERE name LIKE 'Plant%'")
  fs.writeFileSync(
    at('damaged.db'),
    fs.readFileSync(at('damaged.db')).fill(0xa5, 8 * 4096, 10 * 4096),
  )
  return at('damaged.db')
}

function check(name: string): object {
  const db = open(at(name))
  return {
    ...db.prepare('PRAGMA journal_mode').get(),
    ...db.prepare('PRAGMA integrity_check').get(),
  }
}

test.each([
  ['backup', 'interrupted', 130, 'Interrupted'],
  ['restore --yes', 'terminated', 143, 'Terminated'],
] as const)('%s changes nothing when it is %s', async (command, type, code, message) => {
  if (command !== 'backup') await user.run('backup plants.bak')
  await user.run('create --id 2 --name Ivy')
  const before = names()
  const signal = AbortSignal.abort(new PlantsError(type, message))
  const err = `plants: ${message}\n`
  expect(await user.run(`${command} plants.bak`, { signal })).toEqual({ code, out: '', err })
  expect([await listOf('local'), names()]).toEqual([`${fern}{"id":2,"name":"Ivy"}\n`, before])
})

test('a damaged store is neither backed up nor replaced', async () => {
  await user.run('backup plants.bak')
  const damaged = await damagedCopy()
  const before = names()
  for (const [line, err] of [
    ['backup plants.bak', `plants: The store ${damaged} is damaged: `],
    ['restore plants.bak --yes', ' is damaged: '],
  ] as const)
    expect(await user.run(`${line} --store ${damaged}`)).toMatchObject({
      code: 4,
      err: expect.stringContaining(err),
    })
  expect([await listOf('./plants.bak'), names()]).toEqual([fern, before])
})

describe('backup', () => {
  test.skipIf(isWindows)(
    'copies all that is in a store into one file, for its owner alone (needs modes)',
    async () => {
      await user.run('create --id=-9223372036854775808 --name Moss')
      await user.run('tokens create --note ci')
      const made = await user.run('backup plants.bak')
      const { size, mode } = fs.statSync(at('plants.bak'))
      expect(made).toEqual(answer({ file: at('plants.bak'), plants: 2, bytes: size }))
      expect(mode & 0o777).toBe(0o600)
      expect(check('plants.bak')).toEqual({ journal_mode: 'delete', integrity_check: 'ok' })
      expect(fs.readdirSync(user.home)).toEqual(['data', 'plants.bak'])
      expect(await listOf('./plants.bak')).toBe(moss + fern)
      expect((await user.run('tokens list --store ./plants.bak')).out).toContain('"note":"ci"')
    },
  )

  test.skipIf(isWindows)(
    'replaces an older one, also through a link, and keeps its mode (needs links)',
    async () => {
      await user.run('backup plants.bak')
      fs.chmodSync(at('plants.bak'), 0o640)
      await user.run('create --id=-9223372036854775808 --name Moss')
      fs.symlinkSync('plants.bak', at('latest'))
      expect((await user.run('backup latest')).code).toBe(0)
      expect(await listOf('./plants.bak')).toBe(moss + fern)
      expect(fs.statSync(at('plants.bak')).mode & 0o777).toBe(0o640)
    },
  )

  test.skipIf(isWindows)(
    'does not replace the store itself, or another that is in use (needs links)',
    async () => {
      fs.symlinkSync(user.store, at('link'))
      fs.linkSync(user.store, at('name'))
      const err = expect.stringContaining('is the store itself')
      for (const name of ['link', 'name'])
        expect(await user.run(`backup ${name}`), name).toMatchObject({ code: 2, err })
      fs.rmSync(at('name'))
      await createPlant(await live(at('other.db')), { id: 2n, name: 'Ivy' })
      expect(await user.run('backup other.db')).toEqual(
        refusal(
          `${at('other.db')} cannot be replaced: it is not a backup, or is damaged or in use`,
          'Choose another file for the backup',
        ),
      )
      expect([await listOf('local'), await listOf('./other.db')]).toEqual([
        fern,
        '{"id":2,"name":"Ivy"}\n',
      ])
    },
  )

  test('replaces one that has more than twice the plants only with --yes', async () => {
    await user.run('create --id 3 --name Ivy')
    await user.run('create --id 4 --name Oak')
    await user.run('backup plants.bak')
    await user.run('create --id 2 --name Moss --store ./other.db')
    const message = `The backup ${at('plants.bak')} has 3 plants, and ${at('other.db')} has 1 plant`
    expect(await user.run('backup plants.bak --store ./other.db')).toEqual(
      refusal(message, 'To replace it, add --yes'),
    )
    expect((await user.run('count --store ./plants.bak')).out).toBe('3\n')
    await user.run('delete 3 --yes')
    expect(await user.run('backup plants.bak')).toMatchObject({ code: 0, err: '' })
    await user.run('create --id 5 --name Elm')
    await user.run('backup plants.bak')
    expect(await user.run('backup plants.bak --store ./other.db --yes')).toMatchObject({
      code: 0,
      err: '',
    })
    expect(await listOf('./plants.bak')).toBe('{"id":2,"name":"Moss"}\n')
  })

  test('replaces no damaged file, and names it as the user knows it', async () => {
    await user.run('backup plants.bak')
    const bytes = fs.readFileSync(at('plants.bak'))
    fs.writeFileSync(at('plants.bak'), bytes.fill(0x78, 100, 120))
    expect(await user.run('backup plants.bak --yes')).toEqual(
      refusal(
        `${at('plants.bak')} cannot be replaced: it is not a backup, or is damaged or in use`,
        'Choose another file for the backup',
      ),
    )
  })

  test.runIf(isRoot)('never replaces a file of another user (needs root)', async () => {
    user.write('empty', '')
    fs.chownSync(at('empty'), 65_534, 65_534)
    const why = `${at('empty')} belongs to another user (uid 65534)`
    expect(await user.run('backup empty')).toEqual(
      refusal(why, 'Choose another file for the backup'),
    )
    expect([user.read('empty'), fs.statSync(at('empty')).uid]).toEqual(['', 65_534])
  })
})

describe('restore', () => {
  beforeEach(async () => {
    await user.run('create --id=-9223372036854775808 --name Moss')
    await user.run('backup plants.bak')
  })

  test('replaces plants with --yes, and keeps what was there', async () => {
    await user.run('create --id 2 --name Ivy')
    const before = await listOf('local')
    const { code, out, err } = await user.run('restore plants.bak --yes --output text')
    const pattern =
      /^Restored 2 plants from .*[\\/]plants.bak to .*[\\/]plants.db; the previous contents are kept in (.*)\n$/
    const [, kept = ''] = pattern.exec(out) ?? []
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(kept.replace(user.store, '')).toMatch(/^\.before-restore-\d{8}T\d{6}Z$/)
    expect([await listOf('local'), await listOf(kept)]).toEqual([moss + fern, before])
    expect((await user.run(['restore', kept, '--yes'])).code).toBe(0)
    expect(await listOf('local')).toBe(before)
  })

  test('never replaces what a restore has kept in the same second', async () => {
    const results = await Promise.all([1, 2, 3, 4].map(() => user.run('restore plants.bak --yes')))
    const kept = results.map(({ out }) => JSON.parse(out).kept)
    expect(new Set(kept).size).toBe(4)
    for (const path of kept) expect(await listOf(path)).toBe(moss + fern)
  })

  test('brings back the tokens, and keeps those of a store without plants', async () => {
    await user.run('tokens create --note new --store ./other.db')
    const { kept } = JSON.parse((await user.run('restore plants.bak --store ./other.db')).out)
    expect((await user.run('tokens list --store ./other.db')).out).toBe('')
    expect((await user.run(`tokens list --store ${kept}`)).out).toContain('"note":"new"')
  })

  test('waits for a writer, as long as --timeout says', async () => {
    const other = open(user.store)
    other.exec('BEGIN IMMEDIATE')
    const err = expect.stringMatching(
      /^plants: The store .* is in use by another process: database is locked\n/,
    )
    expect(await user.run('restore plants.bak --yes --timeout 10ms')).toMatchObject({
      code: 4,
      err,
    })
    other.exec("INSERT INTO plants (id, name) VALUES (2, 'Ivy'); COMMIT")
    expect(await listOf('local')).toBe(`${moss}${fern}{"id":2,"name":"Ivy"}\n`)
  })

  test('takes no store with changes beside its file', async () => {
    const other = at('live.db')
    await createPlant(await live(other), { id: 6n, name: 'Elm' })
    const hint = 'Choose a file that plants backup has created'
    expect(await user.run('restore live.db --yes')).toEqual(
      refusal(
        `Not restored: ${other} is not a complete backup, because it has changes in ${other}-wal`,
        hint,
      ),
    )
    expect(await listOf('local')).toBe(moss + fern)
  })

  test('rejects what is no backup or is damaged, and changes nothing', async () => {
    open(at('songs.db')).exec('CREATE TABLE songs (id INTEGER) STRICT')
    await damagedCopy()
    const reasons = {
      'songs.db': `${at('songs.db')} is an SQLite file of another program, not a store\n`,
      'damaged.db': `The store ${at('damaged.db')} is damaged: `,
    }
    for (const [name, why] of Object.entries(reasons))
      for (const flag of ['--yes', '--dry-run']) {
        const { code, err } = await user.run(`restore ${name} ${flag}`)
        expect([code, err]).toEqual([4, expect.stringContaining(`plants: ${why}`)])
      }
    expect(await listOf('local')).toBe(moss + fern)
  })
})
