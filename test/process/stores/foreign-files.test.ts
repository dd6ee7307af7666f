import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { journalOf, logOf } from '../../helpers/crafted-files.js'
import { type ProcessResult, resultOf, startUnder } from '../../helpers/process.js'
import { holderOf, query } from '../../helpers/sqlite-file.js'
import { canBecome, stranger } from '../../helpers/stranger.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { answer, World } from '../../helpers/world.js'

// What another user can put beside a store or a backup, in a folder where anybody can create files.

const [fern, moss] = ['{"id":1,"name":"Fern"}\n', '{"id":2,"name":"Moss"}\n']
const createFern = 'create --id 1 --name Fern'
const createMoss = 'create --id 2 --name Moss'

/** A folder below one that everybody can enter, where `s.db` is the store of the commands. */
class SharedFolder {
  readonly path = join(temporaryFolder(), 'shared')
  readonly store = join(this.path, 's.db')
  /** runs a command line as root */
  readonly run = this.as([])

  constructor(mode = 0o1777, owner = 0, group = owner) {
    chmodSync(join(this.path, '..'), 0o755)
    mkdirSync(this.path)
    chownSync(this.path, owner, group)
    chmodSync(this.path, mode)
  }

  /** Runs command lines as the user that these arguments of setpriv make. */
  as(become: string[]) {
    return (line: string): Promise<ProcessResult> => {
      const env = {
        PLANTS_CONFIG_DIR: '/nonexistent',
        PLANTS_STATE_DIR: '/nonexistent',
        PLANTS_STORE: './s.db',
      }
      return resultOf(
        startUnder('setpriv', become, line.split(' '), this.path, { env, cwd: this.path }),
      )
    }
  }

  put(name: string, bytes: Buffer, owner: number): string {
    const path = join(this.path, name)
    writeFileSync(path, bytes)
    chownSync(path, owner, owner)
    chmodSync(path, 0o666)
    return path
  }

  /** What SQLite makes of a copy of the store with a file beside it. */
  plantsWith(suffix: string, bytes: Buffer): unknown[] {
    const copy = join(temporaryFolder(), 'copy.db')
    copyFileSync(this.store, copy)
    writeFileSync(copy + suffix, bytes)
    return query(copy, 'SELECT name FROM plants')
  }
}

/** A rollback journal, or a write-ahead log, which turns any store into one of the attacker. */
async function evilFile(suffix: string): Promise<Buffer> {
  const world = new World()
  await world.run('create --id 666 --name Evil')
  await world.run('tokens create --note evil', { mayShowSecrets: true })
  await world.run('backup copy') // one file, without a log
  const copy = join(world.home, 'copy')
  return suffix === '-journal' ? journalOf(readFileSync(copy)) : logOf(copy)
}

test.each(['-journal', '-wal'])('a backup is not restored with a %s beside it', async (suffix) => {
  const world = new World()
  await world.spawn(createFern)
  await world.spawn('backup b.bak')
  const file = `${join(world.home, 'b.bak')}${suffix}`
  writeFileSync(file, await evilFile(suffix))
  const why = `is not a complete backup, because it has changes in ${file}`
  expect(await world.run('restore b.bak --yes --store ./made.db')).toMatchObject({
    code: 2,
    err: expect.stringContaining(why),
  })
  expect(world.has('made.db')).toBe(false)
})

test.runIf(canBecome)(
  'in the folder of a group, each member uses the log of the others (needs root and setpriv)',
  async () => {
    const folder = new SharedFolder(0o2770, 0, 7777)
    const member = (user: number) => [
      '--reuid',
      `${user}`,
      '--regid',
      `${user}`,
      '--groups',
      '7777',
    ]
    const [owner, other] = [folder.as(member(stranger)), folder.as(member(4321))]
    expect((await owner(createFern)).code).toBe(0)
    chmodSync(folder.store, 0o660)
    expect((await other(createMoss)).code).toBe(0)
    const insert = "INSERT INTO plants (id, name) VALUES (3, 'Ivy')"
    const holder = await holderOf(folder.store, insert, ['setpriv', ...member(stranger)])
    const all = { code: 0, out: `${fern}${moss}{"id":3,"name":"Ivy"}\n` }
    expect(await other('list')).toMatchObject(all)
    await holder.end()
    expect(readdirSync(folder.path)).toEqual(['s.db'])
  },
)

test.each(['-wal', '-shm', '-journal'])(
  'a %s that is a link is not followed: the store cannot be used',
  async (suffix) => {
    const world = new World()
    await world.spawn(createFern)
    world.write('precious', 'water the fern')
    symlinkSync(join(world.home, 'precious'), world.store + suffix)
    for (const line of ['list', createMoss])
      expect(await world.run(line)).toMatchObject({ code: 4, out: '' })
    expect(world.read('precious')).toBe('water the fern')
  },
)

test.each(['-journal', '-wal'])(
  'a %s of this user, in a folder of their own, is used',
  async (suffix) => {
    const world = new World()
    await world.spawn(createFern)
    writeFileSync(world.store + suffix, await evilFile(suffix))
    expect(await world.spawn('list')).toEqual(answer({ id: 666, name: 'Evil' }))
  },
)
