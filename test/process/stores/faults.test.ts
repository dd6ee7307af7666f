import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { DatabaseSync } from '../../helpers/database.js'
import { canMount, canTrace, smallDisk } from '../../helpers/linux.js'
import { bin, type ProcessResult, plants } from '../../helpers/process.js'
import { errorsOf, isSoak, nextPlace } from '../../helpers/rounds.js'
import { temporaryFolder } from '../../helpers/temporary.js'

interface Fault {
  /** system calls in strace's words; one that not every machine has is marked with "?" */
  call: string
  error: string
  /** "+" when all that follow fail as well */
  lasts: '' | '+'
}

const calls = ['pwrite64', 'fsync,fdatasync', 'openat', 'ftruncate', '?mkdir,mkdirat']
const passing = calls.flatMap((call) => errorsOf(call).map((error): Fault => ({ call, error, lasts: '' })))
const lasting = passing
  .filter(({ call, error }) => isSoak || (call === 'fsync,fdatasync' && error === 'EIO'))
  .map((fault): Fault => ({ ...fault, lasts: '+' }))

describe.runIf(canTrace)(
  'a create stores its plant or says that it did not when a system call fails, each in its turn (needs strace):',
  () => {
    test('one that makes the store', { timeout: 300_000 }, async () => {
      const folder = temporaryFolder()
      mkdirSync(join(folder, 'before'))
      await failAll({ folder, names: [] })
    })

    test('one that finds a store', { timeout: 300_000 }, async () => {
      const folder = temporaryFolder()
      await storeTwo(join(folder, 'before'))
      await failAll({ folder, names: ['Fern', 'Moss'] })
    })

    test.runIf(isSoak)('one that finds a store as a crash has left it (in a soak)', { timeout: 600_000 }, async () => {
      const folder = temporaryFolder()
      await storeTwo(join(folder, 'running'))
      const db = new DatabaseSync(join(folder, 'running/data/plants.db'))
      db.exec("INSERT INTO plants (id, name) VALUES (3, 'Ivy')")
      cpSync(join(folder, 'running'), join(folder, 'before'), { recursive: true })
      db.close()
      await failAll({ folder, names: ['Fern', 'Moss', 'Ivy'] })
    })

    test('one that shares the store with another process, even when both crash next', {
      timeout: 300_000,
    }, async () => {
      const folder = temporaryFolder()
      await storeTwo(join(folder, 'before'))
      await failAll({ folder, names: ['Fern', 'Moss'], isShared: true })
    })
  },
)

describe.runIf(canTrace)('a create answers when its plant is on the disk (needs strace):', () => {
  test('the log, and every folder above a store that was just made, are synced before', async () => {
    const folder = temporaryFolder()
    const data = join(folder, 'new/data')
    const steps = await stepsOf(data)
    const synced = steps.slice(0, steps.indexOf('answer'))
    expect(synced.slice(-2)).toEqual([`write ${data}/plants.db-wal`, `sync ${data}/plants.db-wal`])
    expect(synced).toEqual(
      expect.arrayContaining([data, dirname(data), folder, dirname(folder)].map((path) => `sync ${path}`)),
    )
  })

  test('the log of a store that was there, and the folder that holds it, are synced before', async () => {
    const folder = temporaryFolder()
    const data = join(folder, 'before/data')
    await storeTwo(dirname(data))
    const steps = await stepsOf(data)
    const synced = steps.slice(0, steps.indexOf('answer'))
    expect(synced.slice(-2)).toEqual([`write ${data}/plants.db-wal`, `sync ${data}/plants.db-wal`])
    expect(synced).toContain(`sync ${data}`)
  })
})

/** What a create writes and syncs, in that order. */
async function stepsOf(data: string): Promise<string[]> {
  const log = join(temporaryFolder(), 'log')
  const create = [bin, 'create', '--id', '42', '--name', 'Oak']
  const env = { PATH: process.env['PATH'], PLANTS_DATA_DIR: data }
  await execa('strace', ['-y', '-o', log, '-e', 'trace=write,writev,pwrite64,fsync,fdatasync', ...create], {
    extendEnv: false,
    env,
  })
  // Of what else the runtime writes to, such as an eventfd that wakes a thread, there is no path.
  const calls = readFileSync(log, 'utf8').matchAll(/^(?:p?(write)v?(?:64)?|f(?:data)?(sync))\((1|\d+(?=<\/))<(.*?)>/gm)
  return [...calls].map(([, write, sync, fd, path]) => (fd === '1' ? 'answer' : `${write ?? sync} ${path}`))
}

interface Place {
  /** holds "before", which every run starts with a copy of */
  folder: string
  /** the plants in "before" */
  names: string[]
  isShared?: boolean
}

async function failAll(place: Place): Promise<void> {
  // the folder must outlast all
  const results = await Promise.allSettled([...passing, ...lasting].map((fault) => failEach(fault, place)))
  const counts = results.map((result) => {
    if (result.status === 'rejected') throw result.reason
    return result.value
  })
  expect(Math.max(...counts)).toBeGreaterThan(1)
}

/**
 * Lets the first call fail, then another in another run, until a run has so few that none fails. Gives at least how
 * many there are.
 */
async function failEach(fault: Fault, { folder, names, isShared = false }: Place): Promise<number> {
  for (let when = 1; ; when = nextPlace(when)) {
    const copy = join(folder, `${fault.call}:${fault.error}${fault.lasts}`, `${when}`)
    cpSync(join(folder, 'before'), copy, { recursive: true })
    const crash = isShared ? await shareUntilCrash(join(copy, 'data/plants.db')) : undefined
    const said = await createWith(fault, when, copy)
    await crash?.()
    await judge(said, copy, names)
    if (!readFileSync(join(copy, 'log'), 'utf8').includes('(INJECTED)')) return when - 1
  }
}

/** Opens a store in another process. Gives what kills that process and takes the memory that it shared. */
async function shareUntilCrash(path: string): Promise<() => Promise<void>> {
  const script = `
    const db = new (require('@photostructure/sqlite').DatabaseSync)(process.argv[1])
    db.prepare('SELECT id FROM plants').all()
    process.stdin.resume()
    process.stdout.write('open')`
  const holder = execa('node', ['--eval', script, path], { cwd: import.meta.dirname, stdin: 'pipe', reject: false })
  await once(holder.stdout, 'data')
  return async () => {
    holder.kill('SIGKILL')
    await holder
    rmSync(`${path}-shm`)
  }
}

async function createWith({ call, error, lasts }: Fault, when: number, folder: string): Promise<ProcessResult> {
  const data = join(folder, 'data')
  const files = ['', '/plants.db', '/plants.db-journal', '/plants.db-wal', '/plants.db-shm'].flatMap((name) => [
    '-P',
    data + name,
  ])
  // A disk that fails to write does not tell how full it is either.
  const inject = [
    '-e',
    `trace=${call},statfs`,
    '-e',
    `inject=${call}:error=${error}:when=${when}${lasts}`,
    '-e',
    'inject=statfs:error=EIO',
  ]
  const create = [bin, 'create', '--id', '42', '--name', 'Oak', '--output', 'json']
  const { exitCode, stdout, stderr } = await execa(
    'strace',
    ['--seccomp-bpf', '-f', '-o', join(folder, 'log'), ...inject, ...files, ...create],
    {
      reject: false,
      stripFinalNewline: false,
      stdin: 'ignore',
      extendEnv: false,
      env: { PATH: process.env['PATH'], PLANTS_DATA_DIR: data },
    },
  )
  return { code: exitCode, out: stdout, err: stderr }
}

/** Compares what a create has said with what is there now. */
async function judge({ code, out, err }: ProcessResult, folder: string, earlier: string[]): Promise<void> {
  const isStored = (await plants(['get', '42'], folder)).code === 0
  const [, error = err] = /^\{"error":(\d+),.*\}\n$/.exec(err) ?? []
  const allowed = [
    { folder, code: 0, out: '{"name":"Oak"}\n', error: '', isStored: true },
    { folder, code: 4, out: '', error: '503', isStored: false },
    { folder, code: 5, out: '', error: '500', isStored },
  ]
  expect(allowed, err).toContainEqual({ folder, code, out, error, isStored })
  const next = await plants(['create', '--id', '43', '--name', 'Yew'], folder)
  expect({ folder, next, ...look(join(folder, 'data/plants.db')) }).toEqual({
    folder,
    next: { code: 0, out: '{"name":"Yew"}\n', err: '' },
    integrity: 'ok',
    names: [...earlier, ...(isStored ? ['Oak'] : []), 'Yew'].join(),
  })
}

describe.runIf(canMount)('on a disk that fills up (a tmpfs, needs unshare)', () => {
  test('a create is stored or says why not; the store stays whole, and takes plants again when space is free', async () => {
    const disk = await smallStore()
    expect((await disk.plants(['create', '--id', '0', '--name', 'Fern'])).code).toBe(0)
    const names = ['Fern']
    const codes = new Set<number | undefined>()
    for (const left of [60, 56, 52, 48, 44, 40, 36, 32, 28, 16, 8, 4, 0]) {
      disk.fillUpTo(left)
      const { code, out, err } = await disk.plants([
        'create',
        '--id',
        `${100 - left}`,
        '--name',
        'Oak',
        '--output',
        'json',
      ])
      const listedFull = await disk.plants(['list'])
      disk.clear()
      codes.add(code)
      if (code === 0) names.push('Oak')
      const lists = [listedFull.code, (await disk.plants(['list'])).code]
      expect({ left, code, out, error: err && JSON.parse(err), lists, ...disk.look() }).toEqual({
        left,
        ...(code === 0 ? { code: 0, out: '{"name":"Oak"}\n', error: '' } : { code: 4, out: '', error: disk.fullError }),
        lists: [0, 0],
        integrity: 'ok',
        names: names.join(),
      })
    }
    expect(codes).toEqual(new Set([0, 4]))
    expect((await disk.plants(['create', '--id', '1', '--name', 'Yew'])).code).toBe(0)
  })
})

/** A store on a disk of 256 KiB, which programs reach by entering the mounts of the process that made it. */
async function smallStore() {
  const { folder, owner, inside } = await smallDisk()
  return {
    fullError: {
      error: 503,
      message: `No space left on the disk of ${join(folder, 'plants.db')}`,
      hint: 'Free some space, then try again',
      retryable: true,
    },
    async plants(args: string[]): Promise<ProcessResult> {
      const enter = ['-t', `${owner}`, '-U', '-m', '--preserve-credentials', bin]
      const env = { PATH: process.env['PATH'], PLANTS_DATA_DIR: folder }
      const options = { reject: false, stripFinalNewline: false, stdin: 'ignore', extendEnv: false, env } as const
      const { exitCode, stdout, stderr } = await execa('nsenter', [...enter, ...args], options)
      return { code: exitCode, out: stdout, err: stderr }
    },
    /** @param left how much stays free, in KiB */
    fillUpTo(left: number): void {
      const { bavail, bsize } = statfsSync(inside)
      writeFileSync(join(inside, 'filler'), Buffer.alloc(bavail * bsize - left * 1024))
    },
    clear(): void {
      rmSync(join(inside, 'filler'))
    },
    look() {
      const copy = temporaryFolder()
      cpSync(inside, copy, { recursive: true })
      return look(join(copy, 'plants.db'))
    },
  }
}

/** Makes a store of two plants. */
async function storeTwo(folder: string): Promise<void> {
  mkdirSync(folder)
  await plants(['create', '--id', '1', '--name', 'Fern'], folder)
  await plants(['create', '--id', '2', '--name', 'Moss'], folder)
}

/** What is in a file, past the program. */
function look(path: string): { integrity: unknown; names: unknown } {
  const db = new DatabaseSync(path)
  try {
    const { integrity_check: integrity } = db.prepare('PRAGMA integrity_check').get() ?? {}
    const { names } =
      db.prepare("SELECT group_concat(name, ',') AS names FROM (SELECT name FROM plants ORDER BY id)").get() ?? {}
    return { integrity, names }
  } finally {
    db.close()
  }
}
