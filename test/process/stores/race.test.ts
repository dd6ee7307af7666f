import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { canTrace, isLinux } from '../../helpers/sandbox/linux.js'
import { waitForResult } from '../../helpers/sandbox/process.js'
import { isSoak, scaleRounds } from '../../helpers/sandbox/rounds.js'
import { Sandbox, toJsonResult } from '../../helpers/sandbox/sandbox.js'
import { holdLock } from '../../helpers/sandbox/sqlite-file.js'
import { endConnections } from '../../helpers/sandbox/store.js'

const repeated = { repeats: scaleRounds(1) - 1 }
const pollOptions = { interval: 5 }
const ids = Array.from({ length: isSoak ? 70 : 8 }, (_, index) => index)
const create = (id: number) => `create --id ${id} --name Fern`
const created = toJsonResult({ name: 'Fern' })
const plantsOf = (...numbers: number[]) =>
  toJsonResult(...numbers.map((id) => ({ id, name: 'Fern' })))

test(
  'processes that create the store at the same time assign each id and each key once',
  repeated,
  async () => {
    const sandbox = new Sandbox()
    const keyed = ids.map(() => sandbox.spawn(`${create(-2)} --idempotency-key order-66`))
    const others = ids.map((id) => sandbox.spawn(create(id)))
    const same = await Promise.all(ids.map(() => sandbox.spawn(create(-1))))
    expect(await Promise.all([...keyed, ...others])).toEqual([...ids, ...ids].map(() => created))
    expect(same.map(({ code }) => code).toSorted()).toEqual(ids.map((at) => (at === 0 ? 0 : 1)))
    expect(await sandbox.spawn('list')).toEqual(plantsOf(-2, -1, ...ids))
  },
)

test.runIf(canTrace)(
  'a store is opened although its journal disappears while it is examined (needs strace)',
  async () => {
    const sandbox = new Sandbox()
    expect(await sandbox.run(create(1))).toEqual(created)
    await endConnections()
    const journal = `${sandbox.store}-journal`
    writeFileSync(journal, Buffer.alloc(16))
    const missingOnce = ['-e', 'trace=openat', '-e', 'inject=openat:error=ENOENT:when=1']
    const through = ['strace', '-f', '-o', '/dev/null', '-P', journal, ...missingOnce]
    expect(await sandbox.spawn(create(2), {}, ...through)).toEqual(created)
  },
)

/** A user with one plant, and a process that holds the lock of the store. */
async function lockedStore() {
  const sandbox = new Sandbox()
  expect(await sandbox.run(create(1))).toEqual(created)
  await endConnections()
  return { sandbox, holder: await holdLock(sandbox.store, 'BEGIN IMMEDIATE') }
}

test('a read works while another process holds the write lock, and a create fails at its timeout', async () => {
  const { sandbox } = await lockedStore()
  expect(await sandbox.spawn('get 1')).toEqual(plantsOf(1))
  const late = await sandbox.spawn(`${create(2)} --timeout 300ms`)
  expect(late).toEqual({ code: 4, out: '', err: expect.stringContaining('in use') })
})

describe.runIf(isLinux)('a create that waits for the write lock (seen through /proc)', () => {
  async function waitingCreate() {
    const { sandbox, holder } = await lockedStore()
    const waiting = sandbox.start(`${create(2)} --timeout 1h`)
    const folder = `/proc/${waiting.pid}`
    const files = () => readdirSync(`${folder}/fd`).map((fd) => readlinkSync(`${folder}/fd/${fd}`))
    const sleeps = () => {
      const status = readFileSync(`${folder}/status`, 'utf8')
      return Number(/^voluntary_ctxt_switches:\t(\d+)$/m.exec(status)?.[1])
    }
    await expect.poll(files, pollOptions).toContain(`${sandbox.store}-wal`)
    const before = sleeps()
    await expect.poll(() => sleeps() - before, pollOptions).toBeGreaterThan(5)
    return { sandbox, holder, waiting }
  }

  test.each([
    { way: 'ends by itself', signal: undefined },
    { way: 'is killed', signal: 'SIGKILL' },
  ] as const)('continues when the process with the lock $way', async ({ signal }) => {
    const { holder, waiting } = await waitingCreate()
    await holder.end(signal)
    expect(await waitForResult(waiting)).toEqual(created)
  })

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('ends at once on %s with exit code %i, and stores nothing', async (signal, code) => {
    const { sandbox, waiting } = await waitingCreate()
    waiting.kill(signal)
    expect(await waitForResult(waiting)).toMatchObject({ code, out: '' })
    expect(await sandbox.spawn('list')).toEqual(plantsOf(1))
  })
})
