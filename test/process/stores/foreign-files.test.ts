import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { describeDriver } from '../../../src/platform/sqlite.js'
import { journalOf, logOf } from '../../helpers/journal.js'
import { type ProcessResult, resultOf, startUnder } from '../../helpers/process.js'
import { serve } from '../../helpers/service.js'
import { holderOf, query } from '../../helpers/sqlite-file.js'
import { endConnections } from '../../helpers/store.js'
import { becomeStranger, canBecome, stranger } from '../../helpers/stranger.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { answer, World } from '../../helpers/world.js'

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
      const env = { PLANTS_CONFIG_DIR: '/nonexistent', PLANTS_STATE_DIR: '/nonexistent', PLANTS_STORE: './s.db' }
      return resultOf(startUnder('setpriv', become, line.split(' '), this.path, { env, cwd: this.path }))
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
async function evilFile(suffix: string, superJournal?: string): Promise<Buffer> {
  const world = new World()
  await world.run('create --id 666 --name Evil')
  await world.run('tokens create --note evil', { mayShowSecrets: true })
  await world.run('backup copy') // one file, without a log
  const copy = join(world.home, 'copy')
  return suffix === '-journal' ? journalOf(readFileSync(copy), superJournal) : logOf(copy)
}

describe.runIf(canBecome)('a file of another user beside a store (needs root and setpriv)', () => {
  test.each([
    ['-journal', 0],
    ['-wal', 0],
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
    const refused = ['list', createMoss, 'tokens list', 'backup made.bak', 'restore b.bak --yes', 'serve --port 0']
    const lines = [...refused, 'doctor']
    const results = await Promise.all(lines.map(run))
    for (const [index, { code, out, err }] of results.entries()) {
      expect([lines[index], code]).toEqual([lines[index], lines[index] === 'doctor' ? 1 : 4])
      for (const text of [message, hint]) expect(out + err).toContain(text)
    }
    expect(readFileSync(folder.store).equals(before)).toBe(true)
    expect(readdirSync(folder.path).toSorted()).toEqual(['b.bak', 's.db', `s.db${suffix}`])
  })

  test.each(['-journal', '-wal'])('or a backup, as %s, is not used by restore', async (suffix) => {
    const folder = new SharedFolder()
    await folder.run(createFern)
    await folder.run('backup b.bak')
    const bytes = await evilFile(suffix)
    for (const owner of [attacker, 0]) {
      const file = folder.put(`b.bak${suffix}`, bytes, owner)
      const message = `Not restored: ${folder.path}/b.bak is no complete backup, because it has changes in ${file}`
      const restored = await folder.run('restore b.bak --yes --store ./made.db')
      expect(restored).toMatchObject({ code: 2, err: expect.stringContaining(message) })
      expect(existsSync(join(folder.path, 'made.db'))).toBe(false)
    }
  })
})

describe.runIf(canBecome)('a store where other users can create files (needs root and setpriv)', () => {
  test('is used with a warning, here by an ordinary user', async () => {
    const folder = new SharedFolder(0o777)
    const run = folder.as(becomeStranger)
    const why = `${folder.path} can be written by other users (mode 777)`
    const advice = 'Move it to a directory that only you can write to'
    const warning = `plants: The store ${folder.store} is exposed to other users: ${why}. ${advice}`
    const lines = [createFern, createMoss, 'update 2 --name Ivy', 'list', 'backup s.bak', 'delete 2 --yes']
    for (const line of [...lines, 'restore s.bak --yes']) {
      const { code, err } = await run(line)
      const said = err.split('\n').filter((text) => !/^$|Created store/.test(text))
      expect({ line, code, said }).toEqual({ line, code: 0, said: [warning] })
    }
    expect((await run('list')).out).toBe(`${fern}{"id":2,"name":"Ivy"}\n`)
    // restore may leave its own log
    const left = readdirSync(folder.path).filter((name) => !/before-restore|-wal$|-shm$/.test(name))
    expect(left).toEqual(['s.bak', 's.db'])
  })

  test('is no place for a backup of root, when it is a folder of another user', async () => {
    const folder = new SharedFolder(0o755, attacker)
    for (const line of [createFern, createMoss]) expect((await folder.run(line)).code).toBe(0)
    const why = `${folder.path} belongs to another user (uid ${attacker}), who could redirect what root writes there`
    const refused = { code: 74, out: '', err: expect.stringContaining(`plants: ${why}\n`) }
    expect(await folder.run('backup s.bak')).toMatchObject(refused)
    expect(readdirSync(folder.path)).toEqual(['s.db'])
  })

  test('is made by one of many processes, and gets the plants of all, also while it is served', async () => {
    const folder = new SharedFolder()
    const ids = Array.from({ length: 12 }, (_, index) => index)
    const results = await Promise.all(ids.map((id) => folder.run(`create --id ${id} --name Fern`)))
    expect(results).toEqual(ids.map(() => expect.objectContaining({ code: 0, out: '{"name":"Fern"}\n' })))
    expect((await folder.run('count')).out).toBe('12\n')
    await serve(['--store', folder.store])
    expect((await folder.run('create --id 12 --name Fern')).code).toBe(0)
    expect((await folder.run('count')).out).toBe('13\n')
  })

  test('is not opened with a journal, not even with one of this user', async () => {
    const folder = new SharedFolder()
    await folder.run(createFern)
    const journal = folder.put('s.db-journal', await evilFile('-journal'), 0)
    const message = `${folder.store} cannot be used with ${journal}, where other users can create files`
    const hint = 'If the journal is yours, move both files to a directory that only you can write to. Otherwise remove'
    const err = expect.stringContaining(`plants: ${message}\n  ${hint} it: rm ${journal}\n`)
    for (const line of ['list', createMoss]) expect(await folder.run(line)).toEqual({ code: 4, out: '', err })
  })

  test('is not written when it is a backup, which SQLite opens with a journal', async () => {
    const folder = new SharedFolder()
    await folder.run(createFern)
    await folder.run('backup b.bak')
    expect((await folder.run('list --store ./b.bak')).out).toBe(fern)
    const why = 'is not in WAL mode, like a backup, and is not written where other users can create files'
    const hint = `Make a store of it elsewhere: plants restore ${folder.path}/b.bak --store PATH`
    const err = expect.stringContaining(`plants: ${folder.path}/b.bak ${why}\n  ${hint}\n`)
    expect(await folder.run(`${createMoss} --store ./b.bak`)).toMatchObject({ code: 4, err })
  })

  test('is shared by a group: the log of its owner is used, that of another user is not', async () => {
    const folder = new SharedFolder(0o2770, 0, 7777)
    const member = (user: number) => ['--reuid', `${user}`, '--regid', `${user}`, '--groups', '7777']
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
  })

  test.each([
    ['-journal', 200, 'a folder of another user', 0o755, attacker],
    ['-wal', 50, 'a sticky folder', 0o1777, 0],
  ] as const)(
    'loses and gains nothing by a %s that comes and goes, %i times in %s',
    { timeout: 120_000 },
    async (suffix, tries, _, mode, owner) => {
      const folder = new SharedFolder(mode, owner)
      const precious = join(temporaryFolder(), 'precious')
      writeFileSync(precious, 'water the fern')
      await folder.run(createFern)
      const bytes = await evilFile(suffix, precious)
      expect(folder.plantsWith(suffix, bytes)).toEqual([{ name: 'Evil' }])
      // which no longer deletes it
      expect(existsSync(precious)).toBe(suffix === '-wal' || describeDriver().version >= '3.53.4')
      writeFileSync(precious, 'water the fern')
      const theirs = folder.put('theirs', bytes, attacker)
      const script = `
        const { renameSync } = require('node:fs')
        const [from, to] = process.argv.slice(1)
        const move = (...names) => {
          try { renameSync(...names) } catch {}
          for (const end = performance.now() + Math.random(); performance.now() < end;);
        }
        process.stdout.write('ready')
        for (;;) { move(from, to); move(to, from) }`
      const become = ['--reuid', `${attacker}`, '--clear-groups', 'node', '--eval', script]
      const mover = execa('setpriv', [...become, theirs, folder.store + suffix], { reject: false })
      onTestFinished(() => void mover.kill('SIGKILL'))
      await once(mover.stdout, 'data')
      const world = new World()
      const codes = new Set<number>()
      let created = fern
      for (let id = 2; id < tries + 2; id += 1) {
        const command = id % 2 === 0 ? 'list' : `create --id ${id} --name Fern`
        const { code, out, err } = await world.run(`${command} --store ${folder.store} --timeout 2s`)
        codes.add(code)
        if (id % 2 === 1 && code === 0) created += `{"id":${id},"name":"Fern"}\n`
        expect([id, existsSync(precious), out + err]).toEqual([id, true, expect.not.stringContaining('Evil')])
        await endConnections()
      }
      mover.kill('SIGKILL')
      await mover
      expect(codes).toEqual(new Set([0, 4])) // it was there, and it was not
      rmSync(folder.store + suffix, { force: true })
      expect((await folder.run('list')).out).toBe(created)
    },
  )
})

test.each(['-journal', '-wal'])('a %s of this user, in a folder of their own, is used', async (suffix) => {
  const world = new World()
  await world.spawn(createFern)
  writeFileSync(world.store + suffix, await evilFile(suffix))
  expect(await world.spawn('list')).toEqual(answer({ id: 666, name: 'Evil' }))
})
