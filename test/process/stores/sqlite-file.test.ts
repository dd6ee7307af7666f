import { chmodSync, copyFileSync, existsSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { open } from '../../helpers/sqlite-file.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { answer, objectsOf, World } from '../../helpers/world.js'

const fern = { id: 1, name: 'Fern' }
const moss = { id: 2, name: 'Moss' }
const createMoss = 'create --id 2 --name Moss'
const insertMoss = "INSERT INTO plants (id, name) VALUES (2, 'Moss')"

const isRoot = process.getuid?.() === 0

/** Under what a program has not the rights of root, who may write anywhere. */
const withoutRights = isRoot ? ['setpriv', '--bounding-set', '-all', '--inh-caps', '-all'] : []
const canDropRights = process.platform !== 'win32' && (!isRoot || existsSync('/usr/bin/setpriv'))

/** A user without the rights of root. */
class Unprivileged extends World {
  /** With a store of one plant, written by a process that has ended: no log is left beside it. */
  static async withStore(): Promise<Unprivileged> {
    const user = new Unprivileged()
    await user.spawn('create --id 1 --name Fern')
    return user
  }

  do(line: string) {
    return this.spawn(line, {}, ...withoutRights)
  }

  /** Gives the data directory a mode, until the end of the test. */
  close(mode = 0o500): void {
    chmodSync(this.data, mode)
    onTestFinished(() => chmodSync(this.data, 0o700))
  }

  /** Expects that a command line cannot use a store, whose path and whose permissions the message names. */
  async cannotUse(path: string, line: string): Promise<void> {
    const { code, out, err } = await this.do(`${line} --store ${path}`)
    expect([path, code, out]).toEqual([path, 4, ''])
    expect(err).toContain(path)
    expect(err).toContain('its disk')
  }
}

test.each(['-journal', '-wal', '-shm'])('a %s that is a link is not followed', async (suffix) => {
  const world = new World()
  await world.spawn('create --id 1 --name Fern')
  world.write('precious', 'water the fern')
  symlinkSync(join(world.home, 'precious'), world.store + suffix)
  for (const line of ['list', createMoss])
    expect(await world.run(line)).toMatchObject({ code: 4, out: '' })
  expect(world.read('precious')).toBe('water the fern')
})

describe.runIf(canDropRights)('a place that may not be written', () => {
  test('can still be read and exported, and takes no plant', async () => {
    const user = await Unprivileged.withStore()
    user.close()
    expect(await user.do('list')).toEqual(answer(fern))
    expect(await user.do('export')).toEqual(answer(fern))
    const denied = { code: 74, out: '', err: expect.stringContaining('permission denied') }
    expect(await user.do(`export ${join(user.data, 'out.csv')} --yes`)).toEqual(denied)
    for (const path of [user.store, join(user.data, 'new.db')])
      await user.cannotUse(path, createMoss)
    expect(readdirSync(user.data)).toEqual(['plants.db'])
  })

  test('can be read while its owner has it open, also by a link', async () => {
    const user = await Unprivileged.withStore()
    const link = join(temporaryFolder(), 'link.db')
    symlinkSync(user.store, link)
    open(user.store).exec(insertMoss)
    user.close()
    for (const path of [user.store, link])
      expect(await user.do(`list --store ${path}`)).toEqual(answer(fern, moss))
  })

  test('is rejected when its log was left there by a crash', async () => {
    const [source, user] = [await Unprivileged.withStore(), await Unprivileged.withStore()]
    open(source.store).exec(insertMoss)
    for (const suffix of ['', '-wal']) copyFileSync(source.store + suffix, user.store + suffix)
    user.close()
    await user.cannotUse(user.store, 'list')
  })

  test.each([
    [0o400, 'warning', 'gives no right to create, update or delete plants'],
    [0o000, 'failed', 'could not be used'],
  ])('may be the file itself, with mode %o, which doctor calls a %s', async (mode, state, why) => {
    const user = await Unprivileged.withStore()
    chmodSync(user.store, mode)
    await user.cannotUse(user.store, createMoss)
    const { code, out } = await user.do('doctor --output ndjson')
    const [message, hint] = [expect.stringContaining(why), expect.any(String)]
    const found = { check: 'store local', state, message, hint }
    expect(objectsOf(out).filter((each) => each['state'] !== 'ok')).toEqual([found])
    expect(code).toBe(state === 'failed' ? 1 : 0)
  })

  test.each(['list', createMoss])('may be a folder or the log, closed to %s', async (line) => {
    const [hidden, inUse] = [await Unprivileged.withStore(), await Unprivileged.withStore()]
    hidden.close(0o000)
    open(inUse.store).exec(insertMoss)
    for (const suffix of ['-wal', '-shm']) chmodSync(inUse.store + suffix, 0o000)
    const missing = join(hidden.data, 'missing/plants.db')
    for (const path of [hidden.store, missing, inUse.store]) await inUse.cannotUse(path, line)
  })
})
