import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { journalOf, logOf } from '../../helpers/journal.js'
import { type ProcessResult, resultOf, startUnder } from '../../helpers/process.js'
import { holderOf, query } from '../../helpers/sqlite-file.js'
import { becomeStranger, canBecome, stranger } from '../../helpers/stranger.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { answer, refusal, World } from '../../helpers/world.js'

// What another user can put beside a store or a backup, in a folder where anybody can create files.

const attacker = 4321
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

describe.runIf(canBecome)('a file of another user beside a store (needs root and setpriv)', () => {
  test.each([
    ['-journal', 0],
    ['-shm', 0],
    ['-wal', stranger],
  ])('as %s is not used by user %i', async (suffix, victim) => {
    const folder = new SharedFolder()
    const run = folder.as(victim === stranger ? becomeStranger : [])
    await run(createFern)
    expect((await run('backup b.bak')).code).toBe(0)
    const bytes = await evilFile(suffix)
    if (suffix !== '-shm') expect(folder.plantsWith(suffix, bytes)).toEqual([{ name: 'Evil' }])
    const file = folder.put(`s.db${suffix}`, bytes, attacker)
    const before = readFileSync(folder.store)
    const message = `${folder.store} cannot be used with ${file}, which belongs to another user (uid ${attacker})`
    const hint = `If you trust this user, change its owner: chown ${victim} ${file}. Otherwise remove it: rm ${file}`
    const refused = [
      'list',
      createMoss,
      'tokens list',
      'backup made.bak',
      'restore b.bak --yes',
      'serve --port 0',
    ]
    const lines = [...refused, 'doctor']
    const results = await Promise.all(lines.map(run))
    for (const [index, { code, out, err }] of results.entries()) {
      expect([lines[index], code]).toEqual([lines[index], lines[index] === 'doctor' ? 1 : 4])
      for (const text of [message, hint]) expect(out + err).toContain(text)
    }
    expect(readFileSync(folder.store).equals(before)).toBe(true)
    expect(readdirSync(folder.path).toSorted()).toEqual(['b.bak', 's.db', `s.db${suffix}`])
  })

  test.each(['-journal', '-wal', '-shm'])(
    'or a backup, as %s, is not used by restore',
    async (suffix) => {
      const folder = new SharedFolder()
      await folder.run(createFern)
      await folder.run('backup b.bak')
      const file = folder.put(`b.bak${suffix}`, await evilFile(suffix), attacker)
      const why =
        suffix === '-shm'
          ? 'cannot be used with'
          : 'is not a complete backup, because it has changes in'
      const restored = await folder.run('restore b.bak --yes --store ./made.db')
      expect(restored).toMatchObject({
        code: 2,
        err: expect.stringContaining(`${folder.path}/b.bak ${why} ${file}`),
      })
      expect(existsSync(join(folder.path, 'made.db'))).toBe(false)
    },
  )
})

test.runIf(canBecome)(
  'in the folder of a group, the log of the owner of a store is used, that of another user is not (needs root and setpriv)',
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
    const [owner, other] = [folder.as(member(stranger)), folder.as(member(attacker))]
    expect((await owner(createFern)).code).toBe(0)
    chmodSync(folder.store, 0o660)
    expect((await other(createMoss)).code).toBe(0)
    const insert = "INSERT INTO plants (id, name) VALUES (3, 'Ivy')"
    const holder = await holderOf(folder.store, insert, ['setpriv', ...member(stranger)])
    const all = { code: 0, out: `${fern}${moss}{"id":3,"name":"Ivy"}\n` }
    expect(await other('list')).toMatchObject(all)
    await holder.end()
    expect(readdirSync(folder.path)).toEqual(['s.db'])
    folder.put('s.db-wal', Buffer.alloc(0), attacker)
    const err = expect.stringContaining('s.db-wal, which belongs to another user (uid 4321)')
    expect(await owner('list')).toMatchObject({ code: 4, err })
    expect(await other('list')).toMatchObject(all)
  },
)

test.each<[string, string, (path: string) => void]>([
  ['-wal', 'a link', (path) => symlinkSync('/dev/null', path)],
  ['-shm', 'a link', (path) => symlinkSync('/dev/null', path)],
  ['-journal', 'a directory', (path) => mkdirSync(path)],
])('a %s that is %s is not used beside a store or a backup', async (suffix, _, make) => {
  const world = new World()
  await world.spawn(createFern)
  await world.spawn('backup b.bak')
  for (const path of [world.store, join(world.home, 'b.bak')]) make(path + suffix)
  const why = `${world.store} cannot be used with ${world.store}${suffix}, which is not a regular file`
  const hint = `Remove it: rm ${world.store}${suffix}`
  for (const line of ['list', createMoss])
    expect(await world.run(line)).toEqual(refusal(why, hint, 4))
  const restored = await world.run('restore b.bak --store ./new.db')
  expect(restored).toMatchObject({
    code: 2,
    err: expect.stringContaining(`${join(world.home, 'b.bak')}${suffix}`),
  })
  expect(world.has('new.db')).toBe(false)
})

test.each(['-journal', '-wal'])(
  'a %s of this user, in a folder of their own, is used',
  async (suffix) => {
    const world = new World()
    await world.spawn(createFern)
    writeFileSync(world.store + suffix, await evilFile(suffix))
    expect(await world.spawn('list')).toEqual(answer({ id: 666, name: 'Evil' }))
  },
)
