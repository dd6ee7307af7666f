import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { buildPlantLines, parseCounts, writeLines } from '../../helpers/sandbox/import-sandbox.js'
import { canTrace } from '../../helpers/sandbox/linux.js'
import { isSoak, listErrorsToInject } from '../../helpers/sandbox/rounds.js'
import { Sandbox, toTextResult } from '../../helpers/sandbox/sandbox.js'
import { holdLock, insertPlants, readIds } from '../../helpers/sandbox/sqlite-file.js'
import { exchangeOnce } from '../../helpers/scripted-server/raw-http.js'
import { serve, testToken } from '../../helpers/scripted-server/service.js'
import {
  type Fault,
  type FaultyRun,
  fileCalls,
  injectFaults,
  mkdirCalls,
  renameCalls,
  type Scenario,
  settleAll,
  syncCalls,
} from './injected-faults.js'

const storeFiles = [
  'data',
  'data/plants.db',
  'data/plants.db-journal',
  'data/plants.db-wal',
  'data/plants.db-shm',
]

const backup = 'backup plants.bak'
const restore = 'restore plants.bak --yes'
const importWithRejects = 'import plants.ndjson --rejects rejects.ndjson'

/** A user whose store has some plants, written by processes that have ended. */
async function createStore(...ids: number[]): Promise<Sandbox> {
  const sandbox = new Sandbox()
  for (const id of ids) await sandbox.spawn(`create --id ${id} --name Fern`)
  return sandbox
}

const manyIds = Array.from({ length: 5000 }, (_, index) => index + 1)

/** A user with the plants of `manyIds`, and with a backup from when there was only plant 1. */
async function createStoreWithOldBackup(): Promise<Sandbox> {
  const sandbox = await createStore(1)
  await sandbox.spawn(backup)
  insertPlants(sandbox.store, manyIds.length)
  return sandbox
}

/** A user with the plants 1 and 2, and with a backup of the plants 3, 4 and 5. */
async function createStoreWithOtherBackup(): Promise<Sandbox> {
  const other = await createStore(3, 4, 5)
  const sandbox = await createStore(1, 2)
  await other.spawn(['backup', join(sandbox.home, 'plants.bak')])
  return sandbox
}

/** The ids in each store that a restore has kept. */
function readKeptStores(sandbox: Sandbox): number[][] {
  const names = sandbox.has('data') ? readdirSync(sandbox.data) : []
  const kept = names.filter((name) => /\.before-restore-\w+$/.test(name))
  return kept.map((name) => readIds(join(sandbox.data, name)))
}

function listUnexpectedFiles(folder: string, expected: RegExp): string[] {
  return readdirSync(folder).filter((name) => !expected.test(name))
}

describe.runIf(canTrace)('killed before any system call (needs strace)', () => {
  const fault = 'kill'

  test.each<{ store: string; ids: number[] }>([
    { store: 'that it makes', ids: [] },
    { store: 'that it finds', ids: [0, 2] },
  ])('a create leaves an intact store, and can be repeated, in a store $store', async ({ ids }) => {
    const command = 'create --id 1 --name Fern --idempotency-key order-66'
    const initial = await createStore(...ids)
    const calls = [...fileCalls, 'openat']
    const scenario = { fault, calls, files: storeFiles, initial, command } as const
    const hits = await injectFaults(scenario, async ({ sandbox, result }) => {
      if (result.out !== '') expect((await sandbox.run('get 1')).code).toBe(0)
      expect(await sandbox.run(command)).toEqual(toTextResult('{"name":"Fern"}\n'))
      expect(readIds(sandbox.store)).toEqual([1, ...ids].toSorted())
    })
    expect(Math.max(...hits)).toBeGreaterThan(1)
  })

  test('an import is repeated by the same command', async () => {
    const initial = await createStore(7)
    const longName = `"name":"${'long '.repeat(14_000)}`
    const good = buildPlantLines(12).map((line, index) =>
      index % 3 === 1 ? line.replace('"name":"', longName) : line,
    )
    const bad = ['bad 3', 'bad 7', 'bad 11']
    const lines = good.flatMap((line, index) => (index % 4 === 3 ? [line, `bad ${index}`] : [line]))
    writeLines(initial.home, lines)
    const calls = [...fileCalls, 'openat', 'write']
    const files = [...storeFiles, 'rejects.ndjson']
    const command = importWithRejects
    const scenario = { fault, calls, files, initial, command } as const
    const hits = await injectFaults(scenario, async ({ sandbox, result, isHit }) => {
      const isInterrupted = isHit && result.out === ''
      const { code, out, err } = isInterrupted ? await sandbox.run(command) : result
      // A kill after the end of the import, but before its summary, leaves the rejects file. The
      // store and this file are complete, as the checks below show.
      const isAfterEnd = isInterrupted && err.includes('already exists, and would be overwritten')
      if (isAfterEnd) expect(code).toBe(2)
      else {
        // A kill after the summary leaves no exit code.
        if (result.out === '' || !isHit) expect(code, err).toBe(6)
        const { created = 0, skipped = 0, rejected } = parseCounts(out)
        expect([created + skipped, rejected]).toEqual([good.length, { 400: bad.length }])
      }
      const rejected = sandbox.readRejected('rejects.ndjson')
      expect(rejected.map(({ record }) => record)).toEqual(bad)
      expect(rejected.map(({ line }) => lines[line - 1])).toEqual(bad)
      const expectedFiles = /^(data|plants\.ndjson|rejects\.ndjson|\.plants-.*\.tmp)$/
      expect(listUnexpectedFiles(sandbox.home, expectedFiles)).toEqual([])
      readIds(sandbox.store)
      const exported = (await sandbox.run('export')).out.replace('{"id":7,"name":"Fern"}\n', '')
      // The lines are too long to be shown.
      expect(exported === good.map((line) => `${line}\n`).join('')).toBe(true)
    })
    expect(Math.min(...hits)).toBeGreaterThan(0)
  })

  test('a backup leaves the old file or a complete new one', async () => {
    const initial = await createStoreWithOldBackup()
    const calls = [...fileCalls, renameCalls]
    const scenario = { fault, calls, initial, command: backup } as const
    const hits = await injectFaults(scenario, async ({ sandbox, result }) => {
      const possible = result.out === '' ? [[1], manyIds] : [manyIds]
      expect(possible).toContainEqual(readIds(join(sandbox.home, 'plants.bak')))
      expect(await sandbox.run(backup)).toMatchObject({ code: 0, err: '' })
      const expectedFiles = /^(data|plants\.bak|\.plants-[\w-]{36}\.tmp(-journal)?)$/
      expect(listUnexpectedFiles(sandbox.home, expectedFiles)).toEqual([])
    })
    expect(Math.min(...hits)).toBeGreaterThan(0)
  })

  test('a restore leaves the old store or the new one', async () => {
    const initial = await createStoreWithOtherBackup()
    const calls = [...fileCalls, renameCalls, mkdirCalls]
    const scenario = { fault, calls, initial, command: restore } as const
    const hits = await injectFaults(scenario, async ({ sandbox, result }) => {
      const listed = (await sandbox.run('list')).out.match(/(?<="id":)\d+/g) ?? []
      const restored = [3, 4, 5]
      const possible = result.out === '' ? [[1, 2], restored] : [restored]
      expect(possible).toContainEqual(listed.map(Number))
      for (const kept of readKeptStores(sandbox)) expect(kept).toEqual([1, 2])
      expect(await sandbox.run(restore)).toMatchObject({ code: 0, err: '' })
      expect(readIds(sandbox.store)).toEqual(restored)
      const expectedFiles =
        /^(plants\.db(-wal|-shm|\.before-restore-[\w-]+)?|\.plants-[\w-]{36}\.tmp(-journal)?)$/
      expect(listUnexpectedFiles(sandbox.data, expectedFiles)).toEqual([])
    })
    expect(Math.max(...hits)).toBeGreaterThan(2)
  })
})

describe.runIf(canTrace)('when any sync fails (needs strace)', () => {
  const oneSyncFails: Fault = { error: 'EIO', isLasting: false }

  /** Runs a command with the fault at each of its syncs. @returns the exit codes of the runs */
  async function failSyncs(
    scenario: Pick<Scenario, 'fault' | 'initial' | 'command'>,
    check: (run: FaultyRun) => Promise<void>,
  ): Promise<Set<number | undefined>> {
    const codes = new Set<number | undefined>()
    const atEachSync = { ...scenario, calls: [syncCalls], isExhaustive: true }
    await injectFaults(atEachSync, (run) => {
      codes.add(run.result.code)
      return check(run)
    })
    return codes
  }

  // The last sync is that of the new name.
  test('a backup leaves the old file or a complete new one', async () => {
    const initial = await createStoreWithOldBackup()
    const scenario = { fault: oneSyncFails, initial, command: backup }
    const codes = await failSyncs(scenario, async ({ sandbox, result }) => {
      const possible = result.code === 0 ? [manyIds] : [manyIds, [1]]
      expect(readIds(join(sandbox.home, 'plants.bak'))).toBeOneOf(possible)
    })
    expect(codes).toEqual(new Set([0, 4]))
  })

  test('a restore keeps the old store if it succeeds or its outcome is unknown', async () => {
    const fault: Fault = { error: 'EIO', isLasting: true }
    const initial = await createStoreWithOtherBackup()
    const scenario = { fault, initial, command: restore }
    const codes = await failSyncs(scenario, async ({ sandbox, result }) => {
      const mayBeRestored = result.code === 0 || result.code === 5
      expect(readKeptStores(sandbox)).toEqual(mayBeRestored ? [[1, 2]] : [])
    })
    expect(codes).toContain(5)
  })

  test('an export leaves the old file or a complete new one', async () => {
    const initial = await createStore(1, 2)
    initial.write('out.ndjson', 'old')
    const exported = '{"id":1,"name":"Fern"}\n{"id":2,"name":"Fern"}\n'
    const scenario = { fault: oneSyncFails, initial, command: 'export out.ndjson --yes' }
    const codes = await failSyncs(scenario, async ({ sandbox, result }) => {
      const possible = result.code === 0 ? [exported] : [exported, 'old']
      expect(sandbox.read('out.ndjson')).toBeOneOf(possible)
    })
    expect(codes).toEqual(new Set([0, 74]))
  })

  test('an import ends, and is repeated by the same command', async () => {
    const initial = await createStore(7)
    writeLines(initial.home, [...buildPlantLines(3), 'bad'])
    const scenario = { fault: oneSyncFails, initial, command: importWithRejects }
    const codes = await failSyncs(scenario, async ({ sandbox, result }) => {
      const isComplete = result.code === 6
      const { code, out } = isComplete ? result : await sandbox.run(importWithRejects)
      expect(code).toBe(6)
      const { created = 0, skipped = 0, rejected } = parseCounts(out)
      expect([created + skipped, rejected]).toEqual([3, { 400: 1 }])
      expect(sandbox.readRejected('rejects.ndjson')).toHaveLength(1)
    })
    expect([...codes].toSorted()).toEqual([5, 6, 74])
  })
})

describe.runIf(canTrace)('when any system call fails (needs strace)', () => {
  test.each<{ store: string; ids: number[]; useStore?: Scenario['useStore'] }>([
    { store: 'makes the store', ids: [] },
    { store: 'finds a store', ids: [1, 2] },
    {
      store: 'shares the store with one that crashes',
      ids: [1, 2],
      useStore: shareUntilCrash,
    },
  ])('a create reports whether its plant is stored if it $store', async ({ ids, useStore }) => {
    const initial = await createStore(...ids)
    const command = 'create --id 42 --name Oak --output json'
    const series = listCreateFaults().map(({ call, fault }) =>
      injectFaults({ calls: [call], fault, useStore, initial, files: storeFiles, command }, (run) =>
        expectKnownOutcome(run, ids),
      ),
    )
    expect(Math.max(...(await settleAll(series)).flat())).toBeGreaterThan(1)
  })

  test('a service reports an unknown outcome after each failed sync of a COMMIT', async () => {
    const sandbox = await createStore(1)
    const log = join(sandbox.data, 'plants.db-wal')
    const injection = `inject=${syncCalls}:error=EIO:when=1+`
    // With -D, the service is the child of this process, and strace is not.
    const through = ['strace', '-D', '-f', '-o', '/dev/null', '-P', log, '-e', injection]
    const env = { ...sandbox.env, PLANTS_SERVE_TOKEN: testToken }
    const service = await serve([], { folder: sandbox.home, env, through })
    for (const id of [2, 3]) {
      const body = `{"id":${id},"name":"Moss"}`
      const { status, headers } = await exchangeOnce(service, { body })
      const retryAfter = headers['retry-after']
      expect({ id, status, retryAfter }).toEqual({ id, status: 500, retryAfter: undefined })
    }
  })
})

/**
 * A call fails once. In a soak, all calls after it fail in other runs, too; otherwise only syncs.
 */
function listCreateFaults(): { call: string; fault: Fault }[] {
  const calls = ['pwrite64', syncCalls, 'openat', 'ftruncate', mkdirCalls]
  return calls.flatMap((call) =>
    listErrorsToInject(call).flatMap((error) => {
      const once = { call, fault: { error, isLasting: false } }
      const lasting = { call, fault: { error, isLasting: true } }
      const isFailedSync = call === syncCalls && error === 'EIO'
      return isSoak || isFailedSync ? [once, lasting] : [once]
    }),
  )
}

/** After a create of plant 42 in a store with plants of these ids. */
async function expectKnownOutcome({ sandbox, result }: FaultyRun, ids: number[]): Promise<void> {
  const { code, out, err } = result
  const isStored = (await sandbox.run('get 42')).code === 0
  const [, error = err] = /^\{"error":(\d+),.*\}\n$/.exec(err) ?? []
  expect([
    { code: 0, out: '{"name":"Oak"}\n', error: '', isStored: true },
    { code: 4, out: '', error: '503', isStored: false },
    { code: 5, out: '', error: '500', isStored },
  ]).toContainEqual({ code, out, error, isStored })
  expect(await sandbox.run('create --id 43 --name Yew')).toEqual(toTextResult('{"name":"Yew"}\n'))
  expect(readIds(sandbox.store)).toEqual([...ids, ...(isStored ? [42] : []), 43])
}

/**
 * Opens a store in another process.
 *
 * @returns what kills that process, and takes the memory that it shared
 */
async function shareUntilCrash({ store }: Sandbox): Promise<() => Promise<void>> {
  const { end } = await holdLock(store, 'SELECT id FROM plants')
  return async () => {
    await end('SIGKILL')
    rmSync(`${store}-shm`)
  }
}
