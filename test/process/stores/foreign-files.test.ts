import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { describeDriver } from '../../../src/platform/sqlite.js'
import { journalOf, logOf } from '../../helpers/journal.js'
import { type ProcessResult, plants, resultOf, startUnder } from '../../helpers/process.js'
import { runPlants } from '../../helpers/run.js'
import { addressOf, startService } from '../../helpers/service-process.js'
import { query } from '../../helpers/sqlite-file.js'
import { endConnections } from '../../helpers/store.js'
import { becomeStranger, canBecome, stranger } from '../../helpers/stranger.js'
import { temporaryFolder } from '../../helpers/temporary.js'

// What another user can put beside a store or a backup, in a folder where anybody can create files.

const attacker = 4321
const evil = '{"id":666,"name":"Evil"}\n'
const fern = '{"id":1,"name":"Fern"}\n'

/** A folder that everybody can enter, with a mode and an owner. */
function folderFor(mode: number, owner = 0): string {
  const parent = temporaryFolder()
  chmodSync(parent, 0o755)
  const folder = join(parent, 'shared')
  mkdirSync(folder)
  chmodSync(folder, mode)
  chownSync(folder, owner, owner)
  return folder
}

/** The files of an attacker: the store of which they are made, a rollback journal and a write-ahead log. */
async function filesOf(superJournal?: string) {
  const path = join(temporaryFolder(), 'evil.db')
  await runPlants(['create', '--id', '666', '--name', 'Evil', '--store', path])
  await runPlants(['tokens', 'create', '--note', 'evil', '--store', path], { mayShowSecrets: true })
  const copy = `${path}.bak` // one file, without a log
  await runPlants(['backup', copy, '--store', path])
  return { journal: journalOf(readFileSync(copy), superJournal), log: logOf(copy) }
}

function putBeside(path: string, bytes: Buffer, owner: number): void {
  writeFileSync(path, bytes)
  chownSync(path, owner, owner)
  chmodSync(path, 0o666)
}

describe.runIf(canBecome)('a file of another user beside a store (needs root and setpriv)', () => {
  const commands: [line: string, code: number][] = [
    ['list --store s.db', 4],
    ['create --id 2 --name Moss --store s.db', 4],
    ['tokens list --store s.db', 4],
    ['backup made.bak --store s.db', 4],
    ['restore b.bak --yes --store s.db', 4],
    ['serve --port 0 --store s.db', 4],
    ['doctor --store s.db', 1],
  ]

  test.each([
    ['-journal', 'root', 0],
    ['-wal', 'root', 0],
    ['-shm', 'root', 0],
    ['-journal', 'an ordinary user', stranger],
    ['-wal', 'an ordinary user', stranger],
  ])('as %s is not used by %s', async (suffix, _, victim) => {
    const folder = folderFor(0o1777)
    const run = commandsOf(victim, folder)
    expect((await run('create --id 1 --name Fern --store s.db')).code).toBe(0)
    expect((await run('backup b.bak --store s.db')).code).toBe(0)
    const files = await filesOf()
    const bytes = suffix === '-journal' ? files.journal : files.log
    if (suffix !== '-shm') expect(namesWith(folder, suffix, bytes)).toEqual([{ name: 'Evil' }])
    putBeside(join(folder, `s.db${suffix}`), bytes, attacker)
    const before = readFileSync(join(folder, 's.db'))
    const file = join(folder, `s.db${suffix}`)
    const message = `${join(folder, 's.db')} cannot be used with ${file}, which belongs to another user (uid ${attacker})`
    const hint = `If you trust this user, change its owner: chown ${victim} ${file}. Otherwise remove it: rm ${file}`
    const results = await Promise.all(commands.map(async ([line]) => [line, await run(line)] as const))
    for (const [line, { code, out, err }] of results) {
      expect({ line, code, said: out + err }).toEqual({
        line,
        code: commands.find(([each]) => each === line)?.[1],
        said: expect.stringContaining(message),
      })
      expect(out + err).toContain(hint)
    }
    expect(readFileSync(join(folder, 's.db')).equals(before)).toBe(true)
    expect(readdirSync(folder).toSorted()).toEqual(['b.bak', 's.db', `s.db${suffix}`])
  })

  test.each(['-journal', '-wal'])('and a backup, as %s, is not used by restore', async (suffix) => {
    const folder = folderFor(0o1777)
    const run = commandsOf(0, folder)
    await run('create --id 1 --name Fern --store s.db')
    await run('backup b.bak --store s.db')
    const files = await filesOf()
    const bytes = suffix === '-journal' ? files.journal : files.log
    const file = join(folder, `b.bak${suffix}`)
    for (const owner of [attacker, 0]) {
      putBeside(file, bytes, owner)
      const { code, err } = await run('restore b.bak --yes --store made.db')
      const message = `Not restored: ${join(folder, 'b.bak')} is no complete backup, because it has changes in ${file}`
      expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(message) })
      expect(existsSync(join(folder, 'made.db'))).toBe(false)
    }
  })
})

/** What SQLite makes of a copy of the store with a file beside it. */
function namesWith(folder: string, suffix: string, bytes: Buffer): unknown[] {
  const copy = join(temporaryFolder(), 'copy.db')
  copyFileSync(join(folder, 's.db'), copy)
  writeFileSync(copy + suffix, bytes)
  return query(copy, 'SELECT name FROM plants')
}

/** Runs command lines as a user, in a folder. */
function commandsOf(user: number, folder: string) {
  return commandsAs(user === stranger ? becomeStranger : [], folder)
}

/** @param become the arguments of setpriv */
function commandsAs(become: string[], folder: string) {
  return (line: string): Promise<ProcessResult> => {
    const env = { PLANTS_CONFIG_DIR: join(folder, 'none'), PLANTS_STATE_DIR: join(folder, 'none') }
    return resultOf(
      startUnder('setpriv', become, line.replaceAll('--store ', '--store ./').split(' '), folder, { env, cwd: folder }),
    )
  }
}

describe.runIf(canBecome)('a store where other users can create files (needs root and setpriv)', () => {
  const lines: [line: string, out: string][] = [
    ['create --id 1 --name Fern', '{"name":"Fern"}\n'],
    ['create --id 2 --name Moss', '{"name":"Moss"}\n'],
    ['update 2 --name Ivy', '{"id":2,"name":"Ivy"}\n'],
    ['list', `${fern}{"id":2,"name":"Ivy"}\n`],
    ['export --tag none', ''],
    ['backup s.bak', '"plants":2'],
    ['delete 2 --yes', '{"id":2,"name":"Ivy"}\n'],
    ['restore s.bak --yes', '"plants":2'],
    ['tokens list', ''],
    ['count', '2\n'],
  ]

  test.each([
    ['a sticky folder', 0o1777, 0, 0],
    ['a folder that is open to all, by an ordinary user', 0o777, 0, stranger],
    ['a folder of another user', 0o755, attacker, 0],
  ])('is used with a warning, in %s', async (_, mode, owner, user) => {
    const folder = folderFor(mode, owner)
    const run = commandsOf(user, folder)
    const why =
      mode === 0o755
        ? `belongs to another user (uid ${owner})`
        : `can be written by other users (mode ${mode.toString(8)})`
    const warning = `The store ${folder}/s.db is exposed to other users: ${folder} ${why}. Move it to a directory that only you can write to`
    const isRedirected = owner === attacker
    for (const [line, out] of isRedirected ? lines.slice(0, 5) : lines) {
      const result = await run(`${line} --store s.db`)
      const warnings = result.err.split('\n').filter((text) => !/^$|Created store|No tokens/.test(text))
      expect({ line, ...result, err: warnings }).toEqual({
        line,
        code: 0,
        out: expect.stringContaining(out),
        err: [`plants: ${warning}`],
      })
    }
    if (isRedirected) {
      const message = `plants: ${folder} ${why}, who could redirect what root writes there\n`
      const backup = await run('backup s.bak --store s.db')
      expect(backup).toMatchObject({ code: 74, out: '', err: expect.stringContaining(message) })
    }
    // restore may leave its own log
    const left = readdirSync(folder).filter((name) => !/before-restore|-wal$|-shm$/.test(name))
    expect(left).toEqual(isRedirected ? ['s.db'] : ['s.bak', 's.db'])
  })

  test('is made by one of many processes, and gets the plants of all', async () => {
    const folder = folderFor(0o1777)
    const ids = Array.from({ length: 12 }, (_, index) => index)
    const run = commandsOf(0, folder)
    const results = await Promise.all(ids.map((id) => run(`create --id ${id} --name Fern --store s.db`)))
    expect(results.map(({ code, out }) => ({ code, out }))).toEqual(
      ids.map(() => ({ code: 0, out: '{"name":"Fern"}\n' })),
    )
    expect((await run('count --store s.db')).out).toBe('12\n')
  })

  test('is served, and read and written by others meanwhile', async () => {
    const folder = folderFor(0o1777)
    const env = { PLANTS_SERVE_TOKEN: 's3cret-token-of-a-service' }
    await addressOf(startService(['--port', '0', '--store', './s.db'], folder, { env, cwd: folder }))
    const run = commandsOf(0, folder)
    expect((await run('create --id 1 --name Fern --store s.db')).code).toBe(0)
    expect((await run('list --store s.db')).out).toBe(fern)
  })

  test('is not opened with a journal, not even with one of this user', async () => {
    const folder = folderFor(0o1777)
    const run = commandsOf(0, folder)
    await run('create --id 1 --name Fern --store s.db')
    const journal = join(folder, 's.db-journal')
    putBeside(journal, (await filesOf()).journal, 0)
    const message = `${folder}/s.db cannot be used with ${journal}, where other users can create files`
    const hint =
      'If the journal is yours, move both files to a directory that only you can write to. Otherwise remove it: rm '
    for (const line of ['list --store s.db', 'create --id 2 --name Moss --store s.db']) {
      const { code, out, err } = await run(line)
      expect({ code, out, err }).toEqual({
        code: 4,
        out: '',
        err: expect.stringContaining(`plants: ${message}\n  ${hint}${journal}\n`),
      })
    }
    const own = temporaryFolder()
    for (const name of ['s.db', 's.db-journal']) renameSync(join(folder, name), join(own, name))
    expect(await commandsOf(0, own)('list --store s.db')).toEqual({ code: 0, out: evil, err: '' })
  })

  test('is not written when it is a backup, which SQLite opens with a journal', async () => {
    const folder = folderFor(0o1777)
    const run = commandsOf(0, folder)
    await run('create --id 1 --name Fern --store s.db')
    await run('backup b.bak --store s.db')
    expect((await run('list --store b.bak')).out).toBe(fern)
    const { code, err } = await run('create --id 2 --name Moss --store b.bak')
    const why = `plants: ${folder}/b.bak is not in WAL mode, like a backup, and is not written where other users can create files`
    const hint = `Make a store of it elsewhere: plants restore ${folder}/b.bak --store PATH`
    expect({ code, err }).toEqual({ code: 4, err: expect.stringContaining(`${why}\n  ${hint}\n`) })
  })

  test('is shared by a group: the log of its owner is used, that of another user is not', async () => {
    const folder = folderFor(0o2770)
    chownSync(folder, 0, 7777)
    chmodSync(folder, 0o2770)
    const asMember = (user: number) => ['--reuid', `${user}`, '--regid', `${user}`, '--groups', '7777']
    const [owner, other] = [stranger, attacker].map((user) => commandsAs(asMember(user), folder))
    expect((await owner?.('create --id 1 --name Fern --store s.db'))?.code).toBe(0)
    chmodSync(join(folder, 's.db'), 0o660)
    expect(await other?.('create --id 2 --name Moss --store s.db')).toMatchObject({ code: 0, out: '{"name":"Moss"}\n' })
    const { program: holder } = await holdOpen(asMember(stranger), join(folder, 's.db'))
    const all = `${fern}{"id":2,"name":"Moss"}\n{"id":3,"name":"Ivy"}\n`
    expect(await other?.('list --store s.db')).toMatchObject({ code: 0, out: all })
    holder.stdin.end()
    await holder
    expect(readdirSync(folder)).toEqual(['s.db'])
    putBeside(join(folder, 's.db-wal'), Buffer.alloc(0), attacker)
    const { code, err } = (await owner?.('list --store s.db')) ?? {}
    expect({ code, err }).toEqual({
      code: 4,
      err: expect.stringContaining('s.db-wal, which belongs to another user (uid 4321)'),
    })
    expect(await other?.('list --store s.db')).toMatchObject({ code: 0, out: all })
  })
})

/** Opens a store as a user, past the program, and adds a plant. */
async function holdOpen(become: string[], path: string) {
  const script = `
    const db = new (require('@photostructure/sqlite').DatabaseSync)(process.argv[1])
    db.exec("INSERT INTO plants (id, name) VALUES (3, 'Ivy')")
    process.stdin.on('end', () => db.close()).resume()
    process.stdout.write('done')`
  return started(['setpriv', ...become, 'node', '--eval', script, path])
}

/** Moves a file of the attacker to another name and back, again and again. */
function moveInAndOut(from: string, to: string) {
  const script = `
    const { renameSync } = require('node:fs')
    const [from, to] = process.argv.slice(1)
    const move = (...names) => {
      try { renameSync(...names) } catch {}
      for (const end = performance.now() + Math.random(); performance.now() < end;);
    }
    process.stdout.write('ready')
    for (;;) {
      move(from, to)
      move(to, from)
    }`
  return started(['setpriv', '--reuid', `${attacker}`, '--clear-groups', 'node', '--eval', script, from, to])
}

/** Starts a program, which ends with the test, and waits until it writes something. */
async function started([command = '', ...args]: string[]) {
  const program = execa(command, args, { cwd: import.meta.dirname, stdin: 'pipe', reject: false })
  onTestFinished(async () => {
    program.kill('SIGKILL')
    await program
  })
  await once(program.stdout, 'data')
  return { program }
}

describe.runIf(canBecome)(
  'a file of another user that comes and goes deletes nothing, and adds no plants (needs root and setpriv)',
  () => {
    test.each([
      ['-journal', 200, 'a folder of another user', 0o755, attacker],
      ['-wal', 50, 'a sticky folder', 0o1777, 0],
    ] as const)('%s, %i tries in %s', { timeout: 120_000 }, async (suffix, tries, _, mode, owner) => {
      const folder = folderFor(mode, owner)
      const precious = join(temporaryFolder(), 'precious')
      writeFileSync(precious, 'water the fern')
      const run = commandsAs([], folder)
      await run('create --id 1 --name Fern --store s.db')
      const files = await filesOf(precious)
      const theirs = join(folder, 'theirs')
      const bytes = suffix === '-wal' ? files.log : files.journal
      expect(namesWith(folder, suffix, bytes)).toEqual([{ name: 'Evil' }])
      // which no longer deletes it
      expect(existsSync(precious)).toBe(suffix === '-wal' || describeDriver().version >= '3.53.4')
      writeFileSync(precious, 'water the fern')
      putBeside(theirs, bytes, attacker)
      const { program: mover } = await moveInAndOut(theirs, join(folder, `s.db${suffix}`))
      const codes = new Set<number>()
      const created = [1]
      for (let id = 2; id < tries + 2; id += 1) {
        const argv = id % 2 === 0 ? ['list'] : ['create', '--id', `${id}`, '--name', 'Fern']
        const { code, out, err } = await runPlants([...argv, '--store', './s.db', '--timeout', '2s'], { cwd: folder })
        codes.add(code)
        if (id % 2 === 1 && code === 0) created.push(id)
        expect({ id, isPreciousThere: existsSync(precious), said: out + err }).toEqual({
          id,
          isPreciousThere: true,
          said: expect.not.stringContaining('Evil'),
        })
        await endConnections()
      }
      mover.kill('SIGKILL')
      await mover
      expect(codes).toEqual(new Set([0, 4])) // it was there, and it was not
      rmSync(join(folder, `s.db${suffix}`), { force: true })
      const plants = created.map((id) => `{"id":${id},"name":"Fern"}\n`)
      expect((await run('list --store s.db')).out).toBe(plants.join(''))
    })
  },
)

test('a journal of this user is rolled back, and a log read, in a folder of their own', async () => {
  const files = await filesOf()
  for (const [suffix, bytes] of [
    ['-journal', files.journal],
    ['-wal', files.log],
  ] as const) {
    const folder = temporaryFolder()
    await plants(['create', '--id', '1', '--name', 'Fern', '--store', './s.db'], folder, { cwd: folder })
    writeFileSync(join(folder, `s.db${suffix}`), bytes)
    expect(await plants(['list', '--store', './s.db'], folder, { cwd: folder })).toEqual({
      code: 0,
      out: evil,
      err: '',
    })
  }
})
