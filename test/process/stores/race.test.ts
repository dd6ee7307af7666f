import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { isLinux } from '../../helpers/sandbox/linux.js'
import { waitForResult } from '../../helpers/sandbox/process.js'
import { countRounds, isSoak } from '../../helpers/sandbox/rounds.js'
import { Sandbox, toJsonResult } from '../../helpers/sandbox/sandbox.js'
import { holdLock } from '../../helpers/sandbox/sqlite-file.js'
import { endConnections } from '../../helpers/sandbox/store.js'

const repeated = { repeats: countRounds(1) - 1 }
const patience = { interval: 5 }
const ids = Array.from({ length: isSoak ? 70 : 8 }, (_, index) => index)
const create = (id: number) => `create --id ${id} --name Fern`
const created = toJsonResult({ name: 'Fern' })
const plantsOf = (...numbers: number[]) =>
  toJsonResult(...numbers.map((id) => ({ id, name: 'Fern' })))

test(
  'processes that make the store together give an id to one, a key one plant, and store all others',
  repeated,
  async () => {
    const world = new Sandbox()
    const keyed = ids.map(() => world.spawn(`${create(-2)} --idempotency-key order-66`))
    const others = ids.map((id) => world.spawn(create(id)))
    const same = await Promise.all(ids.map(() => world.spawn(create(-1))))
    expect(await Promise.all([...keyed, ...others])).toEqual([...ids, ...ids].map(() => created))
    expect(same.map(({ code }) => code).toSorted()).toEqual(ids.map((at) => (at === 0 ? 0 : 1)))
    expect(await world.spawn('list')).toEqual(plantsOf(-2, -1, ...ids))
  },
)

/** A user with one plant, and a process that holds the lock of the store. */
async function lockedStore() {
  const world = new Sandbox()
  expect(await world.run(create(1))).toEqual(created)
  await endConnections()
  return { world, holder: await holdLock(world.store, 'BEGIN IMMEDIATE') }
}

test('while another process holds the write lock, plants are read, and a create ends with its time', async () => {
  const { world } = await lockedStore()
  expect(await world.spawn('get 1')).toEqual(plantsOf(1))
  const late = await world.spawn(`${create(2)} --timeout 300ms`)
  expect(late).toEqual({ code: 4, out: '', err: expect.stringContaining('in use') })
})

describe.runIf(isLinux)('a create that waits for the write lock (seen through /proc)', () => {
  async function waitingCreate() {
    const { world, holder } = await lockedStore()
    const waiting = world.start(`${create(2)} --timeout 1h`)
    const folder = `/proc/${waiting.pid}`
    const files = () => readdirSync(`${folder}/fd`).map((fd) => readlinkSync(`${folder}/fd/${fd}`))
    const sleeps = () => {
      const status = readFileSync(`${folder}/status`, 'utf8')
      return Number(/^voluntary_ctxt_switches:\t(\d+)$/m.exec(status)?.[1])
    }
    await expect.poll(files, patience).toContain(`${world.store}-wal`)
    const before = sleeps()
    await expect.poll(() => sleeps() - before, patience).toBeGreaterThan(5)
    return { world, holder, waiting }
  }

  test.each([undefined, 'SIGKILL'] as const)(
    'gets its turn when the holder ends (by %s)',
    async (signal) => {
      const { holder, waiting } = await waitingCreate()
      await holder.end(signal)
      expect(await waitForResult(waiting)).toEqual(created)
    },
  )

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('ends at once on %s with %i, and stores nothing', async (signal, code) => {
    const { world, waiting } = await waitingCreate()
    waiting.kill(signal)
    expect(await waitForResult(waiting)).toMatchObject({ code, out: '' })
    expect(await world.spawn('list')).toEqual(plantsOf(1))
  })
})
