import * as fs from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { copyBeforeImport } from '../../src/stores/sqlite/import-copy.js'
import { isRoot, stranger } from '../helpers/sandbox/linux.js'
import { isWindows, readMode, Sandbox } from '../helpers/sandbox/sandbox.js'
import { buildSqliteOptions, createFileAddress } from '../helpers/sandbox/store.js'

// The copy with which an import can be undone. The dialogue that asks for it is in
// process/cli/import-undo.test.ts.

let user: Sandbox

beforeEach(async () => {
  user = new Sandbox()
  await user.run('create --id 1 --name Fern')
})

const copyAt = (second: number, store = user.store) =>
  copyBeforeImport(
    createFileAddress(store),
    new Date(2026, 0, 2, 3, 4, second),
    buildSqliteOptions(),
  )

const listCopies = (folder = user.data) =>
  fs.readdirSync(folder).filter((name) => name.includes('.before-import'))

test('a copy before an import gets its name when it is kept, and has the plants of before', async () => {
  const copy = await copyAt(0)
  expect(listCopies()).toEqual([`plants.db.before-import.${process.pid}.tmp`])
  await user.run('create --id 2 --name Moss')
  const path = copy?.keep() ?? ''
  expect(path.replace(user.store, '')).toMatch(/^\.before-import-\d{8}T\d{6}Z$/)
  expect(listCopies()).toHaveLength(1)
  if (!isWindows) expect(readMode(path)).toBe('600')
  expect((await user.run(`list --store ${path}`)).out).toBe('{"id":1,"name":"Fern"}\n')
  copy?.discard()
  expect(listCopies()).toEqual([])
})

test('a store without plants, and one that does not exist, are not copied before an import', async () => {
  await user.run('delete 1 --yes')
  expect([await copyAt(0), await copyAt(0, join(user.data, 'gone.db'))]).toEqual([
    undefined,
    undefined,
  ])
  expect(listCopies()).toEqual([])
})

test('the newest five copies of a store are kept, and those of other stores', async () => {
  const ending = 'before-import-20200101T000000Z'
  const others = ['plants.db.before-import-mine', `other.db.${ending}`]
  others.push(`plants.db.before-import-20200101T000000Z.${ending}`) // the copy of a copy
  for (const name of others) user.write(join(user.data, name), '')
  const paths: string[] = []
  for (const second of [0, 1, 2, 3, 4, 4, 5]) {
    const copy = await copyAt(second)
    paths.push(copy?.keep() ?? '')
    copy?.deleteOlder()
  }
  expect(new Set(paths).size).toBe(7)
  const copies = listCopies().map((name) => join(user.data, name))
  expect(copies.toSorted()).toEqual(
    [...others.map((name) => join(user.data, name)), ...paths.slice(2)].toSorted(),
  )
})

test('a temporary copy is deleted if its process is gone', async () => {
  const [gone, running] = [2 ** 22 + 1, process.ppid].map((pid) => {
    user.write(join(user.data, `plants.db.before-import.${pid}.tmp`), '')
    return `plants.db.before-import.${pid}.tmp`
  })
  const copy = await copyAt(0)
  copy?.keep()
  copy?.deleteOlder()
  expect(listCopies()).toContain(running)
  expect(listCopies()).not.toContain(gone)
})

test.skipIf(!isRoot)('the files of another user stay beside five copies (needs root)', async () => {
  const name = 'plants.db.before-import-20200101T000000Z'
  user.write(join(user.data, name), '')
  fs.chownSync(join(user.data, name), stranger, stranger)
  for (const second of [0, 1, 2, 3, 4, 5]) {
    const copy = await copyAt(second)
    copy?.keep()
    copy?.deleteOlder()
  }
  expect(listCopies()).toHaveLength(6)
  expect(listCopies()).toContain(name)
})

test.skipIf(isWindows)(
  'a copy before an import is next to the file to which a link leads (needs links)',
  async () => {
    fs.symlinkSync(user.store, join(user.home, 'link.db'))
    const path = (await copyAt(0, join(user.home, 'link.db')))?.keep()
    expect([path?.startsWith(`${user.store}.before-import-`), listCopies(user.home)]).toEqual([
      true,
      [],
    ])
  },
)

test('a copy before an import does not replace a file that has its name', async () => {
  const copy = await copyAt(0)
  const name = (await copyAt(0))?.keep() ?? ''
  fs.writeFileSync(name, 'of another program')
  expect(() => copy?.keep()).toThrow()
  const second = await copyAt(0)
  expect(second?.keep()).toBe(`${name}-2`)
  expect(fs.readFileSync(name, 'utf8')).toBe('of another program')
})
