import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { open } from '../../../helpers/sqlite-file.js'
import { refusal, World } from '../../../helpers/world.js'

const create = 'create --id 1 --name Fern'
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
    [
      'an empty database of another program',
      sql('PRAGMA application_id=7; CREATE TABLE t (x); DROP TABLE t'),
      ofAnother,
    ],
    ['a newer store', sql(`${mark}; PRAGMA user_version=99; CREATE TABLE t (x)`), newer, 'Update plants'],
    ['another schema', sql(`${mark}; PRAGMA user_version=5`), changed, 'Undo that, or restore a backup'],
    ['a folder', (path) => mkdirSync(path), 'The store {} could not be opened: it is a directory'],
  ])('%s', async (_, make, message, hint = elsewhere) => {
    const user = new World()
    mkdirSync(user.data)
    make(user.store)
    const before = contents(user.store)
    for (const line of [create, 'list', 'get 1', 'delete 1 --yes'])
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
    expect(await user.run(`${create} --store ${at(path)}`)).toEqual(refusal(at(message), at(hint), 4))
  })

  test('a data directory that is a file, or that cannot be made', async () => {
    const user = new World()
    user.write('data', '')
    expect(await user.run(create)).toEqual(refusal(noPart.replace('{}', user.store), elsewhere, 4))
    if (process.platform !== 'linux') return
    const message = 'There is no directory /proc/none for the store /proc/none/plants.db'
    const rejected = refusal(message, 'Make it with: mkdir -p /proc/none', 4)
    expect(await user.run(create, { env: { PLANTS_DATA_DIR: '/proc/none' } })).toEqual(rejected)
  })

  test('a path that is not UTF-8', async () => {
    const addresses = '"local", a path such as ./plants.db, sqlite:PATH, http(s)://…, unix:PATH or postgres://…'
    expect(await new World().run('list', { env: { PLANTS_STORE: '/\ufffd.db' } })).toEqual(
      refusal(
        'PLANTS_STORE is a path that is not UTF-8, or holds U+FFFD: /\ufffd.db',
        `A store is a saved name, ${addresses}`,
      ),
    )
  })
})
