import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runPlants } from '../../../helpers/run.js'
import { create, list, open, storeIn } from '../../../helpers/sqlite-file.js'
import { temporaryFolder } from '../../../helpers/temporary.js'

describe('a file that cannot be a store is refused, and left as it is:', () => {
  const elsewhere = 'Choose another file with --store PATH'

  test.each<[string, (path: string) => void, string, string]>([
    [
      'a text',
      (path) =>
        writeFileSync(
          path,
          'not a database, but longer than a header of one hundred bytes, so that SQLite reads it and wonders',
        ),
      '{} is not a store: it is not an SQLite file',
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
      '{} was written by a newer version of plants (schema 99, this one supports 5)',
      'Update plants',
    ],
    ['a folder', (path) => mkdirSync(path), 'The store {} could not be opened: it is a directory', elsewhere],
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
    [
      'a link to nowhere',
      (path) => symlinkSync('nowhere', path),
      'The store {} could not be opened: there is no such file',
    ],
  ])('%s', async (_, make, message) => {
    const path = join(temporaryFolder(), 'plants.db')
    make(path)
    expect(await create(path, '1')).toEqual({
      code: 4,
      out: '',
      err: `plants: ${message.replace('{}', path)}\n  ${elsewhere}\n`,
    })
  })

  const undo = 'Undo that, or restore a backup'

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

  test('a path that is not UTF-8', async () => {
    const err =
      'plants: PLANTS_STORE is a path that is not UTF-8, or holds U+FFFD: /\ufffd.db\n  A store is a saved name, "local", a path such as ./plants.db, sqlite:PATH, http(s)://…, unix:PATH or postgres://…\n'
    expect(await runPlants(['list'], { env: { PLANTS_STORE: '/\ufffd.db' } })).toEqual({ code: 2, out: '', err })
  })

  test.runIf(process.platform === 'linux')('one in a folder where none can be made', async () => {
    const err =
      'plants: There is no directory /proc/none for the store /proc/none/plants.db\n  Make it with: mkdir -p /proc/none\n'
    expect(
      await runPlants(['create', '--id', '1', '--name', 'Fern'], { env: { PLANTS_DATA_DIR: '/proc/none' } }),
    ).toEqual({
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
      err: `plants: The store ${file}/plants.db could not be opened: a part of its path is not a directory\n  ${elsewhere}\n`,
    })
  })

  test('one in a folder that is not there', async () => {
    const folder = temporaryFolder()
    expect(await create(join(folder, 'no/plants.db'), '1')).toEqual({
      code: 4,
      out: '',
      err: `plants: There is no directory ${folder}/no for the store ${folder}/no/plants.db\n  Make it with: mkdir -p ${folder}/no\n`,
    })
  })

  test('one below a file', async () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'file'), '')
    const err = `plants: The store ${folder}/file/plants.db could not be opened: a part of its path is not a directory\n  ${elsewhere}\n`
    expect(await create(join(folder, 'file/plants.db'), '1')).toEqual({ code: 4, out: '', err })
    expect(await list(join(folder, 'file/plants.db'))).toEqual({ code: 4, out: '', err })
  })
})

function contents(path: string): string {
  return statSync(path).isDirectory() ? readdirSync(path).join() : readFileSync(path).toString('base64')
}
