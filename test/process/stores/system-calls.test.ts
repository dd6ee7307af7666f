import { cpSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { fill } from '../../helpers/crafted-files.js'
import { allCreated, countsOf, plantLines, rejectedIn, writeLines } from '../../helpers/import.js'
import { canTrace } from '../../helpers/linux.js'
import { type ProcessResult, resultOf, startUnder } from '../../helpers/process.js'
import { exchange } from '../../helpers/raw-http.js'
import { errorsOf, isSoak, nextPlace } from '../../helpers/rounds.js'
import { serve, testToken } from '../../helpers/service.js'
import { holderOf, idsIn } from '../../helpers/sqlite-file.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { World } from '../../helpers/world.js'

const store = ['', '/plants.db', '/plants.db-journal', '/plants.db-wal', '/plants.db-shm'].map(
  (name) => `data${name}`,
)
const renames = '?rename,renameat,renameat2'
const unlinks = '?unlink,unlinkat'
const mkdirs = '?mkdir,mkdirat'

interface Faults {
  /** as strace has it: a signal before the call, or an error instead of it */
  fault: string
  /** in strace's words; one that not every machine has is marked with "?" */
  calls: string[]
  /** what the calls must be about, if it matters */
  files?: string[]
  /** what each run starts with a copy of */
  before: World
  args: string
  /** for a command with few such calls: leaves out none */
  isWhole?: boolean
  /** uses the store of a run meanwhile; gives what ends that */
  meanwhile?: (world: World) => Promise<() => Promise<void>>
}

type Row = [string, number[], Pick<Faults, 'meanwhile'>?]
type Judge = (world: World, result: ProcessResult, isHit: boolean) => Promise<void>

/**
 * Runs a command with a fault at the first system call of a kind, then at a later one, until a run has so few that it
 * comes to its end; `nextPlace` says which are left out. Gives for each kind how many were hit.
 */
async function faultAtEach(
  { fault, calls, files = [], before, args, isWhole, meanwhile }: Faults,
  judge: Judge,
) {
  const hitAll = async (call: string) => {
    for (let [when, hits] = [1, 0]; ; when = isWhole ? when + 1 : nextPlace(when), hits += 1) {
      const world = new World()
      cpSync(before.home, world.home, { recursive: true })
      const log = join(temporaryFolder(), 'log')
      const inject = `inject=${call}:${fault.replace(/\+?$/, (lasts) => `:when=${when}${lasts}`)}`
      // A disk that fails to write does not tell how full it is either.
      const ofDisk = fault.startsWith('error')
        ? ['--seccomp-bpf', '-e', 'inject=statfs:error=EIO']
        : []
      const paths =
        call === 'write' || call === renames
          ? []
          : files.flatMap((name) => ['-P', join(world.home, name)])
      const strace = [
        '-f',
        '-o',
        log,
        '-e',
        `trace=${call},statfs`,
        '-e',
        inject,
        ...ofDisk,
        ...paths,
      ]
      const end = await meanwhile?.(world)
      const started = startUnder('strace', strace, args.split(' '), world.home, {
        cwd: world.home,
        env: world.env,
      })
      const result = await resultOf(started)
      await end?.()
      const isHit = /^(?!.* statfs\().*(\(INJECTED\)|--- SIGINT |killed by SIGKILL)/m.test(
        readFileSync(log, 'utf8'),
      )
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
async function withStore(...ids: number[]): Promise<World> {
  const world = new World()
  for (const id of ids) await world.spawn(`create --id ${id} --name Fern`)
  return world
}

/** With many plants, and a backup from when there was one. */
async function withOldBackup(): Promise<World> {
  const world = await withStore(1)
  await world.spawn('backup plants.bak')
  fill(world.store, all.length)
  return world
}

const all = Array.from({ length: 5000 }, (_, index) => index + 1)

function without(pattern: RegExp, folder: string): string[] {
  return readdirSync(folder).filter((name) => !pattern.test(name))
}

describe.runIf(canTrace)('killed before a system call, each in its turn (needs strace):', () => {
  const fault = 'signal=KILL'
  const calls = ['pwrite64', 'fsync,fdatasync', 'ftruncate', unlinks]

  test.each([
    ['makes the store', []],
    ['finds a store', [0, 2]],
  ])('a create that %s leaves it whole, and can be repeated', async (_, ids) => {
    const args = 'create --id 1 --name Fern --idempotency-key order-66'
    const faults = {
      fault,
      calls: [...calls, 'openat'],
      files: store,
      before: await withStore(...ids),
      args,
    }
    const counts = await faultAtEach(faults, async (world, { out }) => {
      if (out !== '') expect((await world.run('get 1')).code).toBe(0)
      expect(await world.run(args)).toEqual({ code: 0, out: '{"name":"Fern"}\n', err: '' })
      expect(idsIn(world.store)).toEqual([1, ...ids].toSorted())
    })
    expect(Math.max(...counts)).toBeGreaterThan(1)
  })

  test('an import goes on with the same command', async () => {
    const before = await withStore(7)
    const long = `"name":"${'long '.repeat(14_000)}`
    const good = plantLines(12).map((line, index) =>
      index % 3 === 1 ? line.replace('"name":"', long) : line,
    )
    const bad = ['bad 3', 'bad 7', 'bad 11']
    const lines = good.flatMap((line, index) => (index % 4 === 3 ? [line, `bad ${index}`] : [line]))
    writeLines(before.home, lines)
    const args = 'import plants.ndjson --rejects rejects.ndjson'
    const files = [...store, 'rejects.ndjson']
    const faults = { fault, calls: [...calls, 'openat', 'write'], files, before, args }
    const counts = await faultAtEach(faults, async (world, result, isHit) => {
      const { code, out, err } = isHit && result.out === '' ? await world.spawn(args) : result
      if (result.out === '' || !isHit) expect(code, err).toBe(6)
      const rejected = { rejected: bad.length, reasons: { 400: bad.length } }
      expect(countsOf(out)).toEqual({ ...allCreated(good.length), ...rejected })
      const found = rejectedIn(world, 'rejects.ndjson').map(({ line, record }) => [
        lines[line - 1],
        record,
      ])
      expect(found).toEqual(bad.map((text) => [text, text]))
      expect(without(/^(data|plants\.ndjson|rejects\.ndjson)$/, world.home)).toEqual([])
      idsIn(world.store)
      const exported = (await world.run('export')).out.replace('{"id":7,"name":"Fern"}\n', '')
      expect(exported === good.map((line) => `${line}\n`).join('')).toBe(true)
    })
    expect(Math.min(...counts)).toBeGreaterThan(0)
  })

  test('a backup leaves the file that was there, or is there itself', async () => {
    const before = await withOldBackup()
    const faults = { fault, calls: [...calls, renames], before, args: 'backup plants.bak' }
    const counts = await faultAtEach(faults, async (world, { out }) => {
      expect(out === '' ? [[1], all] : [all]).toContainEqual(idsIn(join(world.home, 'plants.bak')))
      expect(await world.run('backup plants.bak')).toMatchObject({ code: 0, err: '' })
      expect(
        without(/^(data|plants\.bak|\.plants-[\w-]{36}\.tmp(-journal)?)$/, world.home),
      ).toEqual([])
    })
    expect(Math.min(...counts)).toBeGreaterThan(0)
  })

  test('a restore leaves the old store or the new one', async () => {
    const old = [1, 2]
    const [other, before] = [await withStore(3, 4, 5), await withStore(...old)]
    await other.spawn(['backup', join(before.home, 'plants.bak')])
    const args = 'restore plants.bak --yes'
    const faults = { fault, calls: [...calls, renames, mkdirs], before, args }
    const counts = await faultAtEach(faults, async (world, { out }) => {
      const listed = (await world.run('list')).out.match(/(?<="id":)\d+/g) ?? []
      expect(out === '' ? [old, [3, 4, 5]] : [[3, 4, 5]]).toContainEqual(listed.map(Number))
      const names = world.has('data') ? readdirSync(world.data) : []
      for (const name of names.filter((each) => /\.before-restore-\w+$/.test(each)))
        expect(idsIn(join(world.data, name))).toEqual(old)
      expect(await world.run(args)).toMatchObject({ code: 0, err: '' })
      expect(idsIn(world.store)).toEqual([3, 4, 5])
      const known =
        /^(plants\.db(-wal|-shm|\.before-restore-[\w-]+)?|\.plants-[\w-]{36}\.tmp(-journal)?)$/
      expect(without(known, world.data)).toEqual([])
    })
    expect(Math.max(...counts)).toBeGreaterThan(3)
  })
})

test.runIf(canTrace)(
  'a backup that is interrupted before a write leaves all as it was (needs strace)',
  async () => {
    const before = await withOldBackup()
    const codes = new Set<number | undefined>()
    const faults = { fault: 'signal=INT', calls: ['pwrite64'], before, args: 'backup plants.bak' }
    // A signal that comes before anything is made ends the process at once.
    const interrupted = { code: 130, out: '', err: 'plants: Interrupted\n' }
    const ends = [interrupted, { code: undefined, out: '', err: '' }]
    await faultAtEach(faults, async (world, result) => {
      codes.add(result.code)
      const isDone = result.out !== '' || result.err.includes('The command succeeded')
      if (!isDone) expect(ends).toContainEqual(result)
      expect(idsIn(join(world.home, 'plants.bak'))).toEqual(isDone ? all : [1])
      expect(readdirSync(world.home).toSorted()).toEqual(['data', 'plants.bak'])
    })
    expect(codes).toContain(130)
  },
)

test.runIf(canTrace)(
  'a restore whose outcome is unknown keeps the contents before it (needs strace)',
  async () => {
    const [other, before] = [await withStore(3, 4, 5), await withStore(1, 2)]
    await other.spawn(['backup', join(before.home, 'plants.bak')])
    const syncs = { fault: 'error=EIO+', calls: ['fsync,fdatasync'], isWhole: true }
    const codes = new Set<number | undefined>()
    await faultAtEach(
      { ...syncs, before, args: 'restore plants.bak --yes' },
      async (world, { code }) => {
        codes.add(code)
        const copies = readdirSync(world.data).filter((name) => /\.before-restore-\w+$/.test(name))
        expect(copies.map((name) => idsIn(join(world.data, name)))).toEqual(
          code === 0 || code === 5 ? [[1, 2]] : [],
        )
      },
    )
    expect(codes).toContain(5)
  },
)

describe.runIf(canTrace)(
  'what a sync that fails leaves is as the message says (needs strace):',
  () => {
    const faults = { fault: 'error=EIO', calls: ['fsync,fdatasync'], isWhole: true }
    test('a backup', async () => {
      const codes = new Set<number | undefined>()
      const args = 'backup plants.bak'
      await faultAtEach(
        { ...faults, before: await withOldBackup(), args },
        async (world, result) => {
          codes.add(result.code)
          const ends = result.code === 0 ? [all] : [all, [1]] // the last sync is that of the new name
          expect(idsIn(join(world.home, 'plants.bak'))).toBeOneOf(ends)
        },
      )
      expect(codes).toEqual(new Set([0, 4]))
    })

    test('an export', async () => {
      const before = await withStore(1, 2)
      before.write('out.ndjson', 'old')
      const why = 'i/o error\n'
      const errors = new Set<string>()
      await faultAtEach(
        { ...faults, before, args: 'export out.ndjson --yes' },
        async (world, result) => {
          const plants = '{"id":1,"name":"Fern"}\n{"id":2,"name":"Fern"}\n'
          const ends = result.code === 0 ? [plants] : [plants, 'old'] // the last sync is that of the new name
          expect(world.read('out.ndjson')).toBeOneOf(ends)
          expect(result.code).toBe(result.err.includes(why) ? 74 : 0)
          errors.add(result.err.replace(world.home, '~'))
        },
      )
      expect([...errors]).toEqual([
        `plants: ~/out.ndjson could not be written: ${why}  Choose another file, or free some space\n`,
        expect.not.stringContaining(why),
      ])
    })

    test('an import, which goes on with the same command', async () => {
      const before = await withStore(7)
      writeLines(before.home, [...plantLines(3), 'bad'])
      const args = 'import plants.ndjson --rejects rejects.ndjson'
      const codes = new Set<number | undefined>()
      await faultAtEach({ ...faults, before, args }, async (world, result) => {
        codes.add(result.code)
        const { code, out } = result.code === 6 ? result : await world.spawn(args)
        expect([code, countsOf(out)]).toEqual([
          6,
          { ...allCreated(3), rejected: 1, reasons: { 400: 1 } },
        ])
        expect(rejectedIn(world, 'rejects.ndjson')).toHaveLength(1)
      })
      expect([...codes]).toEqual(expect.arrayContaining([5, 6, 74]))
      expect(codes).not.toContain(70)
    })
  },
)

describe.runIf(canTrace)(
  'a create that a system call fails tells whether it is stored (needs strace):',
  () => {
    const passing = ['pwrite64', 'fsync,fdatasync', 'openat', 'ftruncate', mkdirs].flatMap((call) =>
      errorsOf(call).map((error) => ({ calls: [call], fault: `error=${error}` })),
    )
    const lasting = passing
      .filter(
        ({ calls, fault }) => isSoak || (calls[0] === 'fsync,fdatasync' && fault === 'error=EIO'),
      )
      .map(({ calls, fault }) => ({ calls, fault: `${fault}+` }))

    test.each<Row>([
      ['one that makes the store', []],
      ['one that finds a store', [1, 2]],
      [
        'one that shares the store, even when both crash next',
        [1, 2],
        { meanwhile: shareUntilCrash },
      ],
    ])('%s', async (_, ids, options) => {
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
        expect(await world.run('create --id 43 --name Yew')).toEqual({
          code: 0,
          out: '{"name":"Yew"}\n',
          err: '',
        })
        expect(idsIn(world.store)).toEqual([...ids, ...(isStored ? [42] : []), 43])
      }
      const faults = [...passing, ...lasting].map((each) => ({
        ...each,
        ...options,
        before,
        files: store,
        args,
      }))
      const hits = await allOf(faults.map((each) => faultAtEach(each, judge)))
      expect(Math.max(...hits.flat())).toBeGreaterThan(1)
    })
  },
)

test.runIf(canTrace).each([
  [
    'each sync of COMMIT that fails leaves the outcome unknown',
    'fsync,fdatasync:error=EIO',
    'data/plants.db-wal',
    500,
  ],
  ['a full disk stores nothing', 'pwrite64:error=ENOSPC', 'data/plants.db-wal', 503],
] as const)('%s, at a service too (needs strace)', async (_, fault, file, status) => {
  const world = await withStore(1)
  const tracer = [
    '-f',
    '-o',
    '/dev/null',
    '-P',
    join(world.home, file),
    '-e',
    `inject=${fault}:when=1+`,
  ]
  const through = ['strace', '-D', ...tracer] // the service is the child, and not strace
  const env = { ...world.env, PLANTS_SERVE_TOKEN: testToken }
  const service = await serve([], { folder: world.home, env, through })
  for (const id of [2, 3]) {
    const { text, headers } = await exchange(service, { body: `{"id":${id},"name":"Moss"}` })
    expect([id, parseInt(text, 10), headers['retry-after'] !== undefined]).toEqual([
      id,
      status,
      status === 503,
    ])
  }
})

/** Opens a store in another process. Gives what kills that process and takes the memory that it shared. */
async function shareUntilCrash({ store: path }: World): Promise<() => Promise<void>> {
  const { end } = await holderOf(path, 'SELECT id FROM plants')
  return async () => {
    await end('SIGKILL')
    rmSync(`${path}-shm`)
  }
}
