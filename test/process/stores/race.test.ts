import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { isLinux } from '../../helpers/linux.js'
import { resultOf } from '../../helpers/process.js'
import { isSoak, rounds } from '../../helpers/rounds.js'
import { holderOf } from '../../helpers/sqlite-file.js'
import { endConnections } from '../../helpers/store.js'
import { answer, refusal, World } from '../../helpers/world.js'

const repeated = { repeats: rounds(1) - 1 }
const patience = { interval: 5 }
const ids = Array.from({ length: isSoak ? 70 : 10 }, (_, index) => index)
const createFern = 'create --id 1 --name Fern'
const createOther = 'create --id 2 --name Fern'
const created = answer({ name: 'Fern' })
const plantsOf = (...numbers: number[]) => answer(...numbers.map((id) => ({ id, name: 'Fern' })))

test(
  'processes that make the store together give an id to one, a key one plant, and store all others',
  repeated,
  async () => {
    const world = new World()
    const create = (id: number) => `create --id ${id} --name Fern`
    const keyed = ids.map(() => world.spawn(`${create(-2)} --idempotency-key order-66`))
    const others = ids.map((id) => world.spawn(create(id)))
    const same = await Promise.all(ids.map(() => world.spawn(create(-1))))
    expect(await Promise.all([...keyed, ...others])).toEqual([...ids, ...ids].map(() => created))
    const rejected = refusal(
      'A plant with id -1 already exists',
      'Look at it with: plants get -1',
      1,
    )
    expect(same.toSorted((one, other) => Number(one.code) - Number(other.code))).toEqual([
      created,
      ...ids.slice(1).map(() => rejected),
    ])
    expect(await world.spawn('list')).toEqual(plantsOf(-2, -1, ...ids))
  },
)

/** A user with one plant, and a process that holds the lock of the store. */
async function lockedStore() {
  const world = new World()
  expect(await world.run(createFern)).toEqual(created)
  await endConnections()
  return { world, holder: await holderOf(world.store, 'BEGIN IMMEDIATE') }
}

test('while another process holds the write lock, plants are read, and a create ends with its time', async () => {
  const { world } = await lockedStore()
  expect(await world.spawn('get 1')).toEqual(plantsOf(1))
  const message = `The store ${world.store} is in use by another process: database is locked`
  const rejected = refusal(message, 'Try again, or wait longer with --timeout 2m', 4)
  expect(await world.spawn(`${createOther} --timeout 300ms`)).toEqual(rejected)
})

describe.runIf(isLinux)('a create that waits for the write lock (seen through /proc)', () => {
  async function waitingCreate() {
    const { world, holder } = await lockedStore()
    const waiting = world.start(`${createOther} --timeout 1h`)
    const files = () =>
      readdirSync(`/proc/${waiting.pid}/fd`).map((fd) =>
        readlinkSync(`/proc/${waiting.pid}/fd/${fd}`),
      )
    const sleeps = () =>
      Number(
        /^voluntary_ctxt_switches:\t(\d+)$/m.exec(
          readFileSync(`/proc/${waiting.pid}/status`, 'utf8'),
        )?.[1],
      )
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
      expect(await resultOf(waiting)).toEqual(created)
    },
  )

  test.each([
    ['SIGINT', 130, 'Interrupted'],
    ['SIGTERM', 143, 'Terminated'],
  ] as const)('ends at once on %s with %i, and stores nothing', async (signal, code, message) => {
    const { world, waiting } = await waitingCreate()
    waiting.kill(signal)
    expect(await resultOf(waiting)).toEqual(refusal(message, undefined, code))
    expect(await world.spawn('list')).toEqual(plantsOf(1))
  })
})
