import { cpSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  buildPlantLines,
  ImportSandbox,
  parseCounts,
  writeLines,
} from '../../helpers/sandbox/import-sandbox.js'
import { canTrace } from '../../helpers/sandbox/linux.js'
import type { ProcessResult } from '../../helpers/sandbox/process.js'
import { findNextPosition, isSoak, listErrorsToInject } from '../../helpers/sandbox/rounds.js'
import { Sandbox, toTextResult } from '../../helpers/sandbox/sandbox.js'
import { holdLock, insertPlants, readIds } from '../../helpers/sandbox/sqlite-file.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'
import { exchangeOnce } from '../../helpers/scripted-server/raw-http.js'
import { serve, testToken } from '../../helpers/scripted-server/service.js'

// Kills and errors at system calls, one after the other, by strace: what a command leaves.

const store = ['', '/plants.db', '/plants.db-journal', '/plants.db-wal', '/plants.db-shm'].map(
  (name) => `data${name}`,
)
const renames = '?rename,renameat,renameat2'
const mkdirs = '?mkdir,mkdirat'
const syncs = 'fsync,fdatasync'
const writes = ['pwrite64', syncs, 'ftruncate', '?unlink,unlinkat']

interface Faults {
  /** as strace has it: a signal before the call, or an error instead of it */
  fault: string
  /** in strace's words; one that not every machine has is marked with "?" */
  calls: string[]
  /** what the calls must be about, if it matters */
  files?: string[]
  /** what each run starts with a copy of */
  before: Sandbox
  args: string
  /** for a command with few such calls: leaves out none */
  isWhole?: boolean
  /** uses the store of a run meanwhile; gives what ends that */
  meanwhile?: ((world: ImportSandbox) => Promise<() => Promise<void>>) | undefined
}

type Judge = (world: ImportSandbox, result: ProcessResult, isHit: boolean) => Promise<void>

/**
 * Runs a command with a fault at the first system call of a kind, then at a later one, until a run has so few that it
 * comes to its end; `nextPlace` says which are left out. Gives for each kind how many were hit.
 */
async function faultAtEach(
  { fault, calls, files = [], before, args, isWhole, meanwhile }: Faults,
  judge: Judge,
) {
  const hitAll = async (call: string) => {
    for (
      let [when, hits] = [1, 0];
      ;
      when = isWhole ? when + 1 : findNextPosition(when), hits += 1
    ) {
      const world = new ImportSandbox()
      cpSync(before.home, world.home, { recursive: true })
      const log = join(createTemporaryFolder(), 'log')
      const inject = `inject=${call}:${fault.replace(/\+?$/, (lasts) => `:when=${when}${lasts}`)}`
      const hasPath = call !== 'write' && call !== renames
      const paths = hasPath ? files.flatMap((name) => ['-P', join(world.home, name)]) : []
      const end = await meanwhile?.(world)
      const tracer = ['strace', '-f', '-o', log, '-e', `trace=${call},statfs`, '-e', inject]
      tracer.push(...paths)
      // A disk that fails to write does not tell how full it is either.
      if (fault.startsWith('error')) tracer.push('--seccomp-bpf', '-e', 'inject=statfs:error=EIO')
      const result = await world.spawn(args, {}, ...tracer)
      await end?.()
      const traced = readFileSync(log, 'utf8')
      const isHit = /^(?!.* statfs\().*(\(INJECTED\)|--- SIGINT |killed by SIGKILL)/m.test(traced)
      await judge(world, result, isHit).catch((error: unknown) => {
        throw new Error(`${args} with ${inject}: ${JSON.stringify(result)}`, { cause: error })
      })
      if (!isHit) return hits
    }
  }
  return allOf(calls.map(hitAll))
}

/** What all give, at the end of all: their folders must outlast them. */
async function allOf<T>(running: Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(running)
  return Promise.all(running)
}

/** A user with a store of some plants, written by processes that have ended. */
async function withStore(...ids: number[]): Promise<Sandbox> {
  const world = new Sandbox()
  for (const id of ids) await world.spawn(`create --id ${id} --name Fern`)
  return world
}

const all = Array.from({ length: 5000 }, (_, index) => index + 1)

/** With many plants, and a backup from when there was one. */
async function withOldBackup(): Promise<Sandbox> {
  const world = await withStore(1)
  await world.spawn('backup plants.bak')
  insertPlants(world.store, all.length)
  return world
}

/** With the plants 1 and 2, and a backup that has 3, 4 and 5. */
async function withOtherBackup(): Promise<Sandbox> {
  const [other, before] = [await withStore(3, 4, 5), await withStore(1, 2)]
  await other.spawn(['backup', join(before.home, 'plants.bak')])
  return before
}

const backup = 'backup plants.bak'
const restore = 'restore plants.bak --yes'

function keptBy(world: Sandbox): number[][] {
  const names = world.has('data') ? readdirSync(world.data) : []
  const kept = names.filter((name) => /\.before-restore-\w+$/.test(name))
  return kept.map((name) => readIds(join(world.data, name)))
}

function without(pattern: RegExp, folder: string): string[] {
  return readdirSync(folder).filter((name) => !pattern.test(name))
}

describe.runIf(canTrace)('killed before a system call, each in its turn (needs strace):', () => {
  const fault = 'signal=KILL'

  test.each([
    ['makes the store', []],
    ['finds a store', [0, 2]],
  ])('a create that %s leaves it whole, and can be repeated', async (_, ids) => {
    const args = 'create --id 1 --name Fern --idempotency-key order-66'
    const before = await withStore(...ids)
    const faults = { fault, calls: [...writes, 'openat'], files: store, before, args }
    const counts = await faultAtEach(faults, async (world, { out }) => {
      if (out !== '') expect((await world.run('get 1')).code).toBe(0)
      expect(await world.run(args)).toEqual(toTextResult('{"name":"Fern"}\n'))
      expect(readIds(world.store)).toEqual([1, ...ids].toSorted())
    })
    expect(Math.max(...counts)).toBeGreaterThan(1)
  })

  test('an import goes on with the same command', async () => {
    const before = await withStore(7)
    const long = `"name":"${'long '.repeat(14_000)}`
    const good = buildPlantLines(12).map((line, index) =>
      index % 3 === 1 ? line.replace('"name":"', long) : line,
    )
    const bad = ['bad 3', 'bad 7', 'bad 11']
    const lines = good.flatMap((line, index) => (index % 4 === 3 ? [line, `bad ${index}`] : [line]))
    writeLines(before.home, lines)
    const args = 'import plants.ndjson --rejects rejects.ndjson'
    const files = [...store, 'rejects.ndjson']
    const faults = { fault, calls: [...writes, 'openat', 'write'], files, before, args }
    const counts = await faultAtEach(faults, async (world, result, isHit) => {
      const { code, out, err } = isHit && result.out === '' ? await world.run(args) : result
      if (result.out === '' || !isHit) expect(code, err).toBe(6)
      expect(parseCounts(out)).toEqual({ created: good.length, rejected: { 400: bad.length } })
      expect(
        world.rejected('rejects.ndjson').map(({ line, record }) => [lines[line - 1], record]),
      ).toEqual(bad.map((text) => [text, text]))
      expect(without(/^(data|plants\.ndjson|rejects\.ndjson)$/, world.home)).toEqual([])
      readIds(world.store)
      const exported = (await world.run('export')).out.replace('{"id":7,"name":"Fern"}\n', '')
      expect(exported === good.map((line) => `${line}\n`).join('')).toBe(true)
    })
    expect(Math.min(...counts)).toBeGreaterThan(0)
  })

  test('a backup leaves the file that was there, or is there itself', async () => {
    const before = await withOldBackup()
    const faults = { fault, calls: [...writes, renames], before, args: backup }
    const counts = await faultAtEach(faults, async (world, { out }) => {
      expect(out === '' ? [[1], all] : [all]).toContainEqual(
        readIds(join(world.home, 'plants.bak')),
      )
      expect(await world.run(backup)).toMatchObject({ code: 0, err: '' })
      const known = /^(data|plants\.bak|\.plants-[\w-]{36}\.tmp(-journal)?)$/
      expect(without(known, world.home)).toEqual([])
    })
    expect(Math.min(...counts)).toBeGreaterThan(0)
  })

  test('a restore leaves the old store or the new one', async () => {
    const before = await withOtherBackup()
    const faults = { fault, calls: [...writes, renames, mkdirs], before, args: restore }
    const counts = await faultAtEach(faults, async (world, { out }) => {
      const listed = (await world.run('list')).out.match(/(?<="id":)\d+/g) ?? []
      const ends = [[3, 4, 5]]
      if (out === '') ends.push([1, 2])
      expect(ends).toContainEqual(listed.map(Number))
      for (const kept of keptBy(world)) expect(kept).toEqual([1, 2])
      expect(await world.run(restore)).toMatchObject({ code: 0, err: '' })
      expect(readIds(world.store)).toEqual([3, 4, 5])
      const known =
        /^(plants\.db(-wal|-shm|\.before-restore-[\w-]+)?|\.plants-[\w-]{36}\.tmp(-journal)?)$/
      expect(without(known, world.data)).toEqual([])
    })
    expect(Math.max(...counts)).toBeGreaterThan(3)
  })
})

describe.runIf(canTrace)('a sync that fails (needs strace)', () => {
  /** The exit codes of a command in whose runs each sync fails in its turn. */
  async function codesOf(before: Sandbox, args: string, judge: Judge, fault = 'error=EIO') {
    const codes = new Set<number | undefined>()
    const faults = { fault, calls: [syncs], isWhole: true, before, args }
    await faultAtEach(faults, (world, result, isHit) => {
      codes.add(result.code)
      return judge(world, result, isHit)
    })
    return codes
  }

  // The last sync is that of the new name.
  test('leaves a backup as it was, or new', async () => {
    const codes = await codesOf(await withOldBackup(), backup, async (world, { code }) => {
      const ends = code === 0 ? [all] : [all, [1]]
      expect(readIds(join(world.home, 'plants.bak'))).toBeOneOf(ends)
    })
    expect(codes).toEqual(new Set([0, 4]))
  })

  test('keeps what was there before a restore whose outcome is unknown', async () => {
    const before = await withOtherBackup()
    const judge: Judge = async (world, { code }) =>
      expect(keptBy(world)).toEqual(code === 0 || code === 5 ? [[1, 2]] : [])
    expect(await codesOf(before, restore, judge, 'error=EIO+')).toContain(5)
  })

  test('leaves an export as it was, or new', async () => {
    const before = await withStore(1, 2)
    before.write('out.ndjson', 'old')
    const plants = '{"id":1,"name":"Fern"}\n{"id":2,"name":"Fern"}\n'
    const codes = await codesOf(before, 'export out.ndjson --yes', async (world, { code }) => {
      expect(world.read('out.ndjson')).toBeOneOf(code === 0 ? [plants] : [plants, 'old'])
    })
    expect(codes).toEqual(new Set([0, 74]))
  })

  test('ends an import, which goes on with the same command', async () => {
    const before = await withStore(7)
    writeLines(before.home, [...buildPlantLines(3), 'bad'])
    const args = 'import plants.ndjson --rejects rejects.ndjson'
    const codes = await codesOf(before, args, async (world, result) => {
      const { code, out } = result.code === 6 ? result : await world.run(args)
      expect([code, parseCounts(out)]).toEqual([6, { created: 3, rejected: { 400: 1 } }])
      expect(world.rejected('rejects.ndjson')).toHaveLength(1)
    })
    expect([...codes].toSorted()).toEqual([5, 6, 74])
  })
})

const passing = ['pwrite64', syncs, 'openat', 'ftruncate', mkdirs].flatMap((call) =>
  listErrorsToInject(call).map((error) => ({ calls: [call], fault: `error=${error}` })),
)
const lasting = passing
  .filter(({ calls, fault }) => isSoak || (calls[0] === syncs && fault === 'error=EIO'))
  .map(({ calls, fault }) => ({ calls, fault: `${fault}+` }))

test.runIf(canTrace).each<[string, number[], Faults['meanwhile']]>([
  ['one that makes the store', [], undefined],
  ['one that finds a store', [1, 2], undefined],
  ['one that shares the store, even when both crash next', [1, 2], shareUntilCrash],
])(
  'a create that a system call fails tells whether it is stored: %s (needs strace)',
  async (_, ids, meanwhile) => {
    const before = await withStore(...ids)
    const args = 'create --id 42 --name Oak --output json'
    const judge: Judge = async (world, { code, out, err }) => {
      const isStored = (await world.run('get 42')).code === 0
      const [, error = err] = /^\{"error":(\d+),.*\}\n$/.exec(err) ?? []
      expect([
        { code: 0, out: '{"name":"Oak"}\n', error: '', isStored: true },
        { code: 4, out: '', error: '503', isStored: false },
        { code: 5, out: '', error: '500', isStored },
      ]).toContainEqual({ code, out, error, isStored })
      expect(await world.run('create --id 43 --name Yew')).toEqual(toTextResult('{"name":"Yew"}\n'))
      expect(readIds(world.store)).toEqual([...ids, ...(isStored ? [42] : []), 43])
    }
    const faults = [...passing, ...lasting].map((each) =>
      faultAtEach({ ...each, meanwhile, before, files: store, args }, judge),
    )
    expect(Math.max(...(await allOf(faults)).flat())).toBeGreaterThan(1)
  },
)

/** Opens a store in another process. Gives what kills that process and takes the memory that it shared. */
async function shareUntilCrash({ store: path }: Sandbox): Promise<() => Promise<void>> {
  const { end } = await holdLock(path, 'SELECT id FROM plants')
  return async () => {
    await end('SIGKILL')
    rmSync(`${path}-shm`)
  }
}

test.runIf(canTrace)(
  'each sync of COMMIT that fails leaves the outcome unknown, at a service too (needs strace)',
  async () => {
    const world = await withStore(1)
    const log = join(world.data, 'plants.db-wal')
    const inject = `inject=${syncs}:error=EIO:when=1+`
    // -D: the service is the child, and not strace
    const through = ['strace', '-D', '-f', '-o', '/dev/null', '-P', log, '-e', inject]
    const env = { ...world.env, PLANTS_SERVE_TOKEN: testToken }
    const service = await serve([], { folder: world.home, env, through })
    for (const id of [2, 3]) {
      const { status, headers } = await exchangeOnce(service, {
        body: `{"id":${id},"name":"Moss"}`,
      })
      expect([id, status, headers['retry-after']]).toEqual([id, 500, undefined])
    }
  },
)
