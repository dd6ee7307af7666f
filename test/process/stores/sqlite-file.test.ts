import { chmodSync, copyFileSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { resultOf } from '../../helpers/process.js'
import { open } from '../../helpers/sqlite-file.js'
import { canDropRights, startWithoutRights } from '../../helpers/stranger.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { answer, refusal, World } from '../../helpers/world.js'

const fern = { id: 1, name: 'Fern' }
const moss = { id: 2, name: 'Moss' }
const createMoss = 'create --id 2 --name Moss'
const insertMoss = "INSERT INTO plants (id, name) VALUES (2, 'Moss')"

/** A user without the rights of root. */
class Unprivileged extends World {
  /** With a store of one plant, written by a process that has ended: no log is left beside it. */
  static async withStore(): Promise<Unprivileged> {
    const user = new Unprivileged()
    await user.spawn('create --id 1 --name Fern')
    return user
  }

  do(line: string) {
    return resultOf(startWithoutRights(this, line))
  }

  /** A mode that ends with the test. */
  close(path: string, mode = 0o500): void {
    chmodSync(path, mode)
    onTestFinished(() => chmodSync(path, 0o700))
  }
}

/** The words are those of SQLite or the system. */
const unusable = (path: string) => {
  const why = /permission denied|attempt to write a readonly database|unable to open database file/
  const hint = 'Change the permissions of the file and its directory'
  const lines = `^plants: The store ${path} could not be used: .*(${why.source})\n {2}${hint}\n$`
  return { code: 4, out: '', err: expect.stringMatching(lines) }
}

describe.runIf(canDropRights)('a place that may not be written', () => {
  test('can still be read and exported, and takes no plant', async () => {
    const user = await Unprivileged.withStore()
    user.close(user.data)
    expect(await user.do('list')).toEqual(answer(fern))
    expect(await user.do('export')).toEqual(answer(fern))
    const file = join(user.data, 'out.csv')
    const denied = `${file} could not be written: permission denied`
    const hint = 'Choose another file, or free some space'
    expect(await user.do(`export ${file} --yes`)).toEqual(refusal(denied, hint, 74))
    for (const path of [user.store, join(user.data, 'new.db')])
      expect(await user.do(`${createMoss} --store ${path}`)).toEqual(unusable(path))
    expect(readdirSync(user.data)).toEqual(['plants.db'])
  })

  test('can be read while its owner has it open, also by a link', async () => {
    const user = await Unprivileged.withStore()
    const link = join(temporaryFolder(), 'link.db')
    symlinkSync(user.store, link)
    open(user.store).exec(insertMoss)
    user.close(user.data)
    for (const path of [user.store, link])
      expect(await user.do(`list --store ${path}`)).toEqual(answer(fern, moss))
  })

  test('is rejected when its log was left there by a crash', async () => {
    const [source, user] = [await Unprivileged.withStore(), await Unprivileged.withStore()]
    open(source.store).exec(insertMoss)
    for (const suffix of ['', '-wal']) copyFileSync(source.store + suffix, user.store + suffix)
    user.close(user.data)
    expect(await user.do('list')).toEqual(unusable(user.store))
  })

  test.each([0o400, 0o000])('may be the file itself, with mode %o', async (mode) => {
    const user = await Unprivileged.withStore()
    chmodSync(user.store, mode)
    expect(await user.do(createMoss)).toEqual(unusable(user.store))
  })

  test.each(['list', createMoss])(
    'is closed to %s, and not read-only, where a folder or the log is',
    async (line) => {
      const [hidden, inUse] = [await Unprivileged.withStore(), await Unprivileged.withStore()]
      hidden.close(hidden.data, 0o000)
      open(inUse.store).exec(insertMoss)
      for (const suffix of ['-wal', '-shm']) chmodSync(inUse.store + suffix, 0o000)
      for (const path of [
        hidden.store,
        `${hidden.data}/missing.db`,
        `${hidden.data}/missing/plants.db`,
        inUse.store,
      ])
        expect(await inUse.do(`${line} --store ${path}`)).toEqual(unusable(path))
    },
  )
})
