import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { execa, type Result } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { canTrace, isLinux } from '../../helpers/linux.js'
import { bin, type ProcessResult, plants, start } from '../../helpers/process.js'
import { isSoak, nextPlace, rounds } from '../../helpers/rounds.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const repeated = { repeats: rounds(1) - 1 }
const patience = { timeout: 20_000, interval: 5 }
const ids = Array.from({ length: isSoak ? 200 : 30 }, (_, index) => index)
const fern = ['create', '--id', '1', '--name', 'Fern']
const created = { code: 0, out: '{"name":"Fern"}\n', err: '' }
const onlyFern = { code: 0, out: '{"id":1,"name":"Fern"}\n', err: '' }

describe('processes that make the store together', () => {
  test('give an id to one of them, and refuse all others', repeated, async () => {
    const folder = temporaryFolder()
    const results = await Promise.all(ids.map(() => plants([...fern, '--output', 'json'], folder)))
    const refused = {
      code: 1,
      out: '',
      err: { error: 409, message: 'A plant with id 1 already exists', hint: 'Look at it with: plants get 1' },
    }
    expect(results.toSorted((a, b) => Number(a.code) - Number(b.code)).map(withParsedError)).toEqual([
      created,
      ...ids.slice(1).map(() => refused),
    ])
    expect(await plants(['list'], folder)).toEqual(onlyFern)
  })

  test('store every plant', repeated, async () => {
    const folder = temporaryFolder()
    const results = await Promise.all(ids.map((id) => plants(['create', '--id', `${id}`, '--name', 'Fern'], folder)))
    expect(results).toEqual(ids.map(() => created))
    expect(await plants(['list'], folder)).toEqual({
      code: 0,
      out: ids.map((id) => `{"id":${id},"name":"Fern"}\n`).join(''),
      err: '',
    })
  })

  test('make one plant of an idempotency key, and all answer the same', repeated, async () => {
    const folder = temporaryFolder()
    const results = await Promise.all(
      ids.slice(0, 20).map(() => plants([...fern, '--idempotency-key', 'order-66'], folder)),
    )
    expect(results).toEqual(results.map(() => created))
    expect(await plants(['list'], folder)).toEqual(onlyFern)
  })

  describe.runIf(canTrace)('one of them stopped on the way (needs strace)', () => {
    test.each(['openat', 'fcntl'])(
      'before its first %s on the file, or a later one, then goes on as if alone',
      async (call) => {
        const base = temporaryFolder()
        for (let when = 1, isStopped = true; isStopped; when = nextPlace(when)) {
          const folder = join(base, `${when}`)
          const { stopped } = await stopAt(call, when, folder)
          const other = await plants(['create', '--id', '2', '--name', 'Fern', '--timeout', '50ms'], folder)
          isStopped = stopped.exitCode === null
          stopped.kill('SIGCONT')
          const results = {
            stopped: await resultOf(stopped),
            other: other.code,
            list: (await plants(['list'], folder)).out,
          }
          const list =
            other.code === 0 ? '{"id":1,"name":"Fern"}\n{"id":2,"name":"Fern"}\n' : '{"id":1,"name":"Fern"}\n'
          expect({ when, ...results }).toEqual({ when, stopped: created, other: other.code && 4, list })
        }
      },
    )
  })
})

describe('while another process holds the write lock', () => {
  test('a plant and the list can be read', async () => {
    const { folder } = await lockedStore()
    expect(await plants(['get', '1'], folder)).toEqual(onlyFern)
    expect(await plants(['list'], folder)).toEqual(onlyFern)
  })

  test('a create ends when its time is over, and names the holder', async () => {
    const { folder, path, holder } = await lockedStore()
    const result = await plants(
      ['create', '--id', '2', '--name', 'Moss', '--timeout', '300ms', '--output', 'json'],
      folder,
    )
    const who = isLinux ? `process ${holder.pid} (node)` : 'another process'
    const message = `The store ${path} was in use by ${who} for 0.3 s`
    const err = { error: 503, message, hint: 'Try again, or wait longer with --timeout 2m', retryable: true }
    expect(withParsedError(result)).toEqual({ code: 4, out: '', err })
    expect(await plants(['list'], folder)).toEqual(onlyFern)
  })
})

describe.runIf(isLinux)('a create that waits for the write lock (seen through /proc)', () => {
  test.each([
    ['lets go', 'SIGUSR1'],
    ['is killed', 'SIGKILL'],
  ] as const)('gets its turn when the holder %s', async (_, signal) => {
    const { folder, path, holder } = await lockedStore()
    const waiting = start(['create', '--id', '2', '--name', 'Fern'], folder)
    await waits(waiting.pid, path)
    holder.kill(signal)
    expect(await resultOf(waiting)).toEqual(created)
  })

  test.each([
    ['SIGINT', 130, 'Interrupted'],
    ['SIGTERM', 143, 'Terminated'],
  ] as const)('ends at once on %s with %s, and stores nothing', async (signal, code, message) => {
    const { folder, path } = await lockedStore()
    const waiting = start(['create', '--id', '2', '--name', 'Moss', '--timeout', '30s'], folder)
    await waits(waiting.pid, path)
    const sent = performance.now()
    waiting.kill(signal)
    expect(await resultOf(waiting)).toEqual({ code, out: '', err: `plants: ${message}, nothing was changed\n` })
    expect(performance.now() - sent).toBeLessThan(2000)
    expect(await plants(['list'], folder)).toEqual(onlyFern)
  })

  test('says on a signal that the plant is stored, when it is', repeated, async () => {
    const { folder, path, holder } = await lockedStore()
    const waiting = start(['create', '--id', '2', '--name', 'Fern'], folder)
    await waits(waiting.pid, path)
    waiting.kill('SIGSTOP')
    holder.kill('SIGUSR1')
    await once(holder, 'exit')
    waiting.kill('SIGINT')
    waiting.kill('SIGCONT')
    const result = await resultOf(waiting)
    const isStored = (await plants(['get', '2'], folder)).code === 0
    const stored =
      'plants: Interrupted before the output was written\n  The plant is stored. Show it with: plants get 2\n'
    expect([
      { code: 130, out: '', err: isStored ? stored : 'plants: Interrupted, nothing was changed\n' },
      isStored ? created : {},
    ]).toContainEqual(result)
  })
})

/** Takes the write lock of the store that its argument names, and lets it go on SIGUSR1. */
const holderScript = `
  const { DatabaseSync } = require('@photostructure/sqlite')
  const db = new DatabaseSync(process.argv[1])
  db.exec('BEGIN IMMEDIATE')
  process.on('SIGUSR1', () => process.exit())
  process.stdin.resume()
  process.stdout.write('locked')
`

/** A store with one plant, and a process that holds its lock until the test is over. */
async function lockedStore() {
  const folder = temporaryFolder()
  const path = join(folder, 'data/plants.db')
  expect(await plants(fern, folder)).toEqual(created)
  const holder = execa('node', ['--eval', holderScript, path], {
    cwd: import.meta.dirname,
    stdin: 'pipe',
    reject: false,
  })
  onTestFinished(async () => {
    holder.kill('SIGKILL')
    await holder
  })
  await once(holder.stdout, 'data')
  return { folder, path, holder }
}

/** Resolves when a process has the store's log open and has slept several times since: it waits for its turn. */
async function waits(pid: number | undefined, path: string): Promise<void> {
  const files = () => readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))
  await expect.poll(files, patience).toContain(`${path}-wal`)
  const before = sleepsOf(pid)
  await expect.poll(() => sleepsOf(pid) - before, patience).toBeGreaterThan(5)
}

function sleepsOf(pid: number | undefined): number {
  return Number(/^voluntary_ctxt_switches:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}

/** Starts a create, and stops it before a system call on the file, or lets it end when there are not so many. */
async function stopAt(call: string, when: number, folder: string) {
  const log = join(folder, 'log')
  const data = join(folder, 'data')
  mkdirSync(folder)
  const inject = ['-e', `trace=${call}`, '-e', `inject=${call}:signal=STOP:when=${when}`, '-P', join(data, 'plants.db')]
  const env = { PATH: process.env['PATH'], PLANTS_DATA_DIR: data }
  const stopped = execa('strace', ['-D', '-o', log, ...inject, bin, ...fern], {
    reject: false,
    stripFinalNewline: false,
    env,
    extendEnv: false,
  })
  const isStopped = () => existsSync(log) && readFileSync(log, 'utf8').includes('stopped by SIGSTOP')
  await expect.poll(() => stopped.exitCode !== null || isStopped(), patience).toBe(true)
  onTestFinished(() => void stopped.kill('SIGKILL'))
  return { stopped }
}

async function resultOf(started: PromiseLike<Pick<Result, 'exitCode' | 'stdout' | 'stderr'>>): Promise<ProcessResult> {
  const { exitCode, stdout, stderr } = await started
  return { code: exitCode, out: String(stdout), err: String(stderr) }
}

function withParsedError({ code, out, err }: ProcessResult) {
  return { code, out, err: err === '' ? '' : JSON.parse(err) }
}
