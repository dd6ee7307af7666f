import { cpSync, mkdirSync, readdirSync, readFileSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { SqliteStore } from '../../../src/stores/sqlite/sqlite-store.js'
import { DatabaseSync } from '../../helpers/database.js'
import { fill } from '../../helpers/fill.js'
import { canMount, canTrace, smallDisk } from '../../helpers/linux.js'
import { bin, type ProcessResult, plants, start, startUnder } from '../../helpers/process.js'
import { nextPlace } from '../../helpers/rounds.js'
import { addressOf, startService } from '../../helpers/service-process.js'
import { closedAfterTest, fileAddress, openOptions } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const calls = [
  'pwrite64',
  'fsync,fdatasync',
  '?rename,renameat,renameat2',
  'ftruncate',
  '?unlink,unlinkat',
  '?mkdir,mkdirat',
]

const all = Array.from({ length: 5000 }, (_, index) => index + 1)

/** A store of many plants, and a backup of it from when it had one. */
async function grownStore(): Promise<string> {
  const folder = temporaryFolder()
  await create(folder, 1)
  await plants(['backup', join(folder, 'plants.bak')], folder)
  fill(join(folder, 'data/plants.db'), all.length)
  return folder
}

describe.runIf(canTrace)('killed before a system call, each in its turn (needs strace):', () => {
  test('a backup leaves the file that was there, or is there itself', { timeout: 300_000 }, async () => {
    const counts = await forEachCall(
      { signal: 'KILL', calls, before: await grownStore() },
      ['backup', 'plants.bak'],
      judgeBackup,
    )
    expect(Math.min(...counts)).toBeGreaterThan(0)
  })

  test.each([
    ['replaces a store', [1, 2]],
    ['makes a store', []],
  ])('a restore that %s leaves the old one or the new one', { timeout: 300_000 }, async (_, old) => {
    const [other, before] = [temporaryFolder(), temporaryFolder()]
    await create(other, 3, 4, 5)
    await plants(['backup', join(before, 'plants.bak')], other)
    await create(before, ...old)
    const counts = await forEachCall(
      { signal: 'KILL', calls, before },
      ['restore', 'plants.bak', '--yes'],
      (folder, result) => judgeRestore(folder, result, old),
    )
    expect(Math.max(...counts)).toBeGreaterThan(3)
  })
})

async function judgeBackup(folder: string, { out }: ProcessResult): Promise<void> {
  const file = join(folder, 'plants.bak')
  const { plants: kept, integrity } = look(file)
  expect(out === '' ? [[1], all] : [all]).toContainEqual(kept)
  const { code, err } = await plants(['backup', file], folder)
  // What was killed just as it made a folder for itself has left no more than that.
  const left = readdirSync(folder).filter((name) => !/^(data|plants\.bak|\.plants\.bak\.plants-new-\w{6})$/.test(name))
  const now = look(file).plants.length
  expect({ integrity, code, err, left, now }).toEqual({ integrity: 'ok', code: 0, err: '', left: [], now: all.length })
}

async function judgeRestore(folder: string, { out }: ProcessResult, old: number[]): Promise<void> {
  const restored = [3, 4, 5]
  expect(out === '' ? [old, restored] : [restored]).toContainEqual(await listOf(folder))
  const kept = readdirSync(join(folder, 'data')).filter((name) => /\.before-restore-\w+$/.test(name))
  for (const name of kept) expect(look(join(folder, 'data', name))).toEqual({ plants: old, integrity: 'ok' })
  const { code, err } = await plants(['restore', join(folder, 'plants.bak'), '--yes'], folder)
  const now = look(join(folder, 'data/plants.db'))
  const left = readdirSync(join(folder, 'data')).filter((name) => /^\.plants\.db\.plants-\w{6}$/.test(name))
  expect({ code, err, now, left }).toEqual({ code: 0, err: '', now: { plants: restored, integrity: 'ok' }, left: [] })
}

describe.runIf(canTrace)('interrupted before a write, each in its turn (needs strace):', () => {
  // A signal that comes before anything is made ends the process at once.
  const ends = [
    { code: 130, out: '', err: 'plants: Interrupted, nothing was changed\n' },
    { code: undefined, out: '', err: '' },
  ]

  test('a backup leaves all as it was', { timeout: 300_000 }, async () => {
    const before = await grownStore()
    const bytes = readFileSync(join(before, 'plants.bak'))
    const codes = new Set<number | undefined>()
    await forEachCall(
      { signal: 'INT', calls: ['pwrite64'], before },
      ['backup', 'plants.bak'],
      async (folder, result, isHit) => {
        if (!isHit) return
        codes.add(result.code)
        expect(ends).toContainEqual(result)
        expect(readFileSync(join(folder, 'plants.bak')).equals(bytes)).toBe(true)
        expect(readdirSync(folder).toSorted()).toEqual(['data', 'plants.bak'])
      },
    )
    expect(codes).toContain(130)
  })

  test('a restore leaves all as it was, unless all is done', { timeout: 300_000 }, async () => {
    const before = await grownStore()
    const codes = new Set<number | undefined>()
    await forEachCall(
      { signal: 'INT', calls: ['pwrite64'], before },
      ['restore', 'plants.bak', '--yes'],
      async (folder, result) => {
        codes.add(result.code)
        const isDone = result.out !== '' || result.err.includes('The command succeeded')
        if (!isDone) expect(ends).toContainEqual(result)
        expect(await listOf(folder)).toEqual(isDone ? [1] : all)
        const left = readdirSync(join(folder, 'data')).filter((name) => !/-(wal|shm)$/.test(name))
        expect(left).toHaveLength(isDone ? 2 : 1)
      },
    )
    expect(codes).toContain(130)
  })
})

test('a backup has what was there at one moment while others write', async () => {
  const folder = temporaryFolder()
  await create(folder, 0)
  const path = join(folder, 'data/plants.db')
  const store = closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions()))
  let isDone = false
  let last = 0n
  const write = async () => {
    for (; !isDone; last += 1n) await store.create({ id: last + 1n, name: 'Fern' })
  }
  const writing = write()
  for (let round = 0; round < 5; round += 1) {
    const first = last
    const { code, err } = await plants(['backup', join(folder, 'plants.bak')], folder)
    const ids = look(join(folder, 'plants.bak')).plants
    expect({ code, err, ids }).toEqual({ code: 0, err: '', ids: ids.map((__, index) => index) })
    expect(ids.length).toBeGreaterThan(Number(first))
    expect(ids.length).toBeLessThanOrEqual(Number(last) + 2)
  }
  isDone = true
  await writing
})

test('no plant that was acknowledged is lost while a restore replaces the store: it is kept, or there', async () => {
  const folder = temporaryFolder()
  const path = join(folder, 'data/plants.db')
  await create(folder, 0)
  fill(path, 20_000)
  await plants(['backup', join(folder, 'plants.bak')], folder)
  const store = closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions()))
  let isDone = false
  const answered: number[] = []
  const write = async () => {
    for (let id = 1_000_000; !isDone; id += 1) {
      await store.create({ id: BigInt(id), name: 'Fern' })
      answered.push(id)
    }
  }
  const writing = write()
  const { code, out, err } = await plants(['restore', join(folder, 'plants.bak'), '--yes'], folder)
  isDone = true
  await writing
  const { kept, plants: restored } = JSON.parse(out) as { kept: string; plants: number }
  expect({ code, err, restored }).toEqual({ code: 0, err: '', restored: 20_001 })
  const old = look(kept).plants.filter((id) => id >= 1_000_000)
  const now = look(path).plants.filter((id) => id >= 1_000_000)
  expect([...old, ...now]).toEqual(answered)
  expect(look(path).plants.length - now.length).toBe(20_001)
})

test('a service goes on with what was restored', async () => {
  const folder = temporaryFolder()
  await create(folder, 1)
  await plants(['backup', join(folder, 'plants.bak')], folder)
  await create(folder, 2)
  const service = startService(['--port', '0'], folder, { env: { PLANTS_SERVE_TOKEN: 's3cret-of-this-test' } })
  const address = await addressOf(service)
  const env = { PLANTS_TOKEN: 's3cret-of-this-test' }
  const send = (id: string) => plants(['create', '--store', address, '--id', id, '--name', 'Fern'], folder, { env })
  expect((await send('3')).code).toBe(0)
  expect((await plants(['restore', join(folder, 'plants.bak'), '--yes'], folder)).code).toBe(0)
  expect((await send('1')).err).toContain('A plant with id 1 already exists')
  expect(await send('2')).toEqual({ code: 0, out: '{"name":"Fern"}\n', err: '' })
  expect(await listOf(folder)).toEqual([1, 2])
})

test('two backups to one file at once leave one that is whole, and nothing else', async () => {
  const folder = temporaryFolder()
  await create(folder, 1, 2)
  const results = await Promise.all(
    Array.from({ length: 6 }, () => start(['backup', join(folder, 'plants.bak')], folder)),
  )
  expect(results.map(({ exitCode, stderr }) => ({ exitCode, stderr }))).toEqual(
    results.map(() => ({ exitCode: 0, stderr: '' })),
  )
  expect(look(join(folder, 'plants.bak'))).toEqual({ plants: [1, 2], integrity: 'ok' })
  expect(readdirSync(folder).toSorted()).toEqual(['data', 'plants.bak'])
})

describe.runIf(canMount)('on a disk that is full (a tmpfs, needs unshare)', () => {
  test('a backup leaves the older one, and a restore the store', async () => {
    const { folder, owner, inside } = await smallDisk()
    const on = async (...args: string[]): Promise<ProcessResult> => {
      const enter = ['-t', `${owner}`, '-U', '-m', '--preserve-credentials', bin]
      const env = { PATH: process.env['PATH'], PLANTS_DATA_DIR: elsewhere }
      const { exitCode, stdout, stderr } = await execa('nsenter', [...enter, ...args], {
        ...{ reject: false, stripFinalNewline: false, stdin: 'ignore', extendEnv: false, env },
      })
      return { code: exitCode, out: stdout, err: stderr }
    }
    const elsewhere = join(temporaryFolder(), 'data')
    await on('create', '--id', '1', '--name', 'Fern')
    const [backup, store] = [join(folder, 'plants.bak'), join(folder, 'plants.db')]
    expect((await on('backup', backup)).code).toBe(0)
    await on('create', '--id', '2', '--name', 'Moss', '--store', store)
    fill(join(elsewhere, 'plants.db'), 20_000)
    const bytes = readFileSync(join(inside, 'plants.bak'))
    const hint = 'Fix this, or choose another directory. Nothing was changed'
    const err = `plants: The copy ${backup} could not be written: no space left on the disk\n  ${hint}\n`
    expect(await on('backup', backup)).toEqual({ code: 74, out: '', err })
    expect(readFileSync(join(inside, 'plants.bak')).equals(bytes)).toBe(true)
    const large = join(elsewhere, 'large.bak')
    await on('backup', large)
    expect((await on('restore', large, '--store', store, '--yes')).err).toContain('No space left on the disk of ')
    const { bavail, bsize } = statfsSync(inside)
    writeFileSync(join(inside, 'filler'), Buffer.alloc(bavail * bsize))
    expect((await on('restore', backup, '--store', store, '--yes')).code).toBeOneOf([4, 74])
    expect((await on('list', '--store', store)).out).toBe('{"id":2,"name":"Moss"}\n')
    expect(
      readdirSync(inside)
        .filter((name) => !/-(wal|shm)$/.test(name))
        .toSorted(),
    ).toEqual(['filler', 'plants.bak', 'plants.db'])
  })
})

interface Stopping {
  signal: 'KILL' | 'INT'
  /** system calls in strace's words; one that not every machine has is marked with "?" */
  calls: string[]
  /** the folder that every run starts with a copy of */
  before: string
}

type Judge = (folder: string, result: ProcessResult, isHit: boolean) => Promise<void>

/**
 * Runs the program with a signal before the first system call of a kind, then before the second, until one run has so
 * few that it comes to its end; `nextPlace` says which are left out. Gives for each kind how many were hit.
 */
async function forEachCall(stopping: Stopping, args: string[], judge: Judge): Promise<number[]> {
  const base = temporaryFolder()
  const hitAll = async (call: string, index: number) => {
    let hits = 0
    for (let when = 1; ; when = nextPlace(when)) {
      const folder = join(base, `${index}-${when}`)
      const isHit = await hit({ ...stopping, call, when }, folder, args, judge)
      if (!isHit) return hits
      hits += 1
    }
  }
  const results = await Promise.allSettled(stopping.calls.map(hitAll)) // the folder must outlast all
  return results.map((result) => {
    if (result.status === 'rejected') throw result.reason
    return result.value
  })
}

type Hit = Omit<Stopping, 'calls'> & { call: string; when: number }

async function hit(
  { signal, before, call, when }: Hit,
  folder: string,
  args: string[],
  judge: Judge,
): Promise<boolean> {
  cpSync(before, folder, { recursive: true })
  mkdirSync(join(folder, 'data'), { recursive: true })
  const log = `${folder}.log`
  const strace = ['-f', '-o', log, '-e', `trace=${call}`, '-e', `inject=${call}:signal=${signal}:when=${when}`]
  const { exitCode, stdout, stderr } = await startUnder('strace', strace, args, folder, { cwd: folder })
  const isHit = RegExp(`--- SIG${signal} |killed by SIG${signal}`).test(readFileSync(log, 'utf8'))
  await judge(folder, { code: exitCode, out: String(stdout), err: String(stderr) }, isHit)
  return isHit
}

async function create(folder: string, ...ids: number[]): Promise<void> {
  for (const id of ids) await plants(['create', '--id', `${id}`, '--name', 'Fern'], folder)
}

async function listOf(folder: string): Promise<number[]> {
  const { out } = await plants(['list'], folder)
  return out
    .split('\n')
    .slice(0, -1)
    .map((line) => (JSON.parse(line) as { id: number }).id)
}

/** What is in a file, past the program. */
function look(path: string): { plants: number[]; integrity: unknown } {
  const db = new DatabaseSync(path)
  try {
    const { integrity_check: integrity } = db.prepare('PRAGMA integrity_check').get() ?? {}
    const rows = db.prepare('SELECT id FROM plants ORDER BY id').all()
    return { plants: rows.map(({ id }) => Number(id)), integrity }
  } finally {
    db.close()
  }
}

test.each([
  [
    'echo notes',
    'Not restored: stdin is not a store: it is not an SQLite file\n  Choose a file that plants backup has created',
  ],
  ['true', 'stdin is empty, not a backup\n  Choose a file that plants backup has created'],
  [
    'echo notes | gzip',
    'Not restored: stdin is not a store: it is compressed with gzip\n  Choose a file that plants backup has created',
  ],
])('what is piped to restore is called stdin: %s', async (command, message) => {
  const folder = temporaryFolder()
  const env = { HOME: folder, PATH: process.env['PATH'] }
  const through = `${command} | "${bin}" restore - --store ./other.db`
  const { exitCode, stderr } = await execa('sh', ['-c', through], { cwd: folder, env, extendEnv: false, reject: false })
  expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: `plants: ${message}` })
})

test('a backup goes through a pipe both ways', async () => {
  const folder = temporaryFolder()
  await create(folder, 1, 2)
  const env = { PLANTS_DATA_DIR: join(folder, 'data'), HOME: folder, PATH: process.env['PATH'] }
  const through = `"${bin}" backup - | gzip | gunzip | "${bin}" restore - --store ./other.db`
  const { stdout, stderr } = await execa('sh', ['-c', through], { cwd: folder, env, extendEnv: false })
  expect({ stdout, stderr }).toEqual({
    stdout: JSON.stringify({ file: '-', store: join(folder, 'other.db'), plants: 2 }),
    stderr: '',
  })
  const left = await execa('sh', ['-c', `"${bin}" backup - | head -c 10 | wc -c`], {
    cwd: folder,
    env,
    extendEnv: false,
  })
  expect(left).toMatchObject({ stdout: '10', stderr: '' })
})
