import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { canTrace, isLinux } from '../../helpers/linux.js'
import { resultOf, startUnder } from '../../helpers/process.js'
import { isSoak, nextPlace, rounds } from '../../helpers/rounds.js'
import { holderOf, idsIn } from '../../helpers/sqlite-file.js'
import { endConnections } from '../../helpers/store.js'
import { answer, refusal, World } from '../../helpers/world.js'

const repeated = { repeats: rounds(1) - 1 }
const patience = { timeout: 20_000, interval: 5 }
const ids = Array.from({ length: isSoak ? 70 : 10 }, (_, index) => index)
const createFern = 'create --id 1 --name Fern'
const createOther = 'create --id 2 --name Fern'
const created = answer({ name: 'Fern' })
const plantsOf = (...numbers: number[]) => answer(...numbers.map((id) => ({ id, name: 'Fern' })))

describe('processes that make the store together', () => {
  test('give an id to one of them, make one plant of a key, and store every other plant', repeated, async () => {
    const world = new World()
    const create = (id: number) => `create --id ${id} --name Fern`
    const keyed = ids.map(() => world.spawn(`${create(-2)} --idempotency-key order-66`))
    const others = ids.map((id) => world.spawn(create(id)))
    const same = await Promise.all(ids.map(() => world.spawn(create(-1))))
    expect(await Promise.all([...keyed, ...others])).toEqual([...ids, ...ids].map(() => created))
    const rejected = refusal('A plant with id -1 already exists', 'Look at it with: plants get -1', 1)
    expect(same.toSorted((one, other) => Number(one.code) - Number(other.code))).toEqual([
      created,
      ...ids.slice(1).map(() => rejected),
    ])
    expect(await world.spawn('list')).toEqual(plantsOf(-2, -1, ...ids))
  })

  test.runIf(canTrace).each(['openat', 'fcntl'])(
    'go on when one was stopped before its first %s on the file, or a later one (needs strace)',
    async (call) => {
      for (let when = 1, isStopped = true; isStopped; when = nextPlace(when)) {
        const world = new World()
        const log = join(world.home, 'log')
        const inject = ['-e', `trace=${call}`, '-e', `inject=${call}:signal=STOP:when=${when}`, '-P', world.store]
        const strace = ['-D', '-o', log, ...inject]
        const program = startUnder('strace', strace, createFern.split(' '), world.home, { env: world.env })
        onTestFinished(() => void program.kill('SIGKILL'))
        const hasStopped = () => existsSync(log) && readFileSync(log, 'utf8').includes('stopped by SIGSTOP')
        await expect.poll(() => program.exitCode !== null || hasStopped(), patience).toBe(true)
        const other = await world.spawn(`${createOther} --timeout 50ms`)
        isStopped = program.exitCode === null
        program.kill('SIGCONT')
        expect({ when, ...(await resultOf(program)) }).toEqual({ when, ...created })
        expect(other.code).toBeOneOf([0, 4])
        expect(await world.spawn('list')).toEqual(other.code === 0 ? plantsOf(1, 2) : plantsOf(1))
      }
    },
  )
})

test('a plant that was answered stays when the processes around it are killed', {
  timeout: rounds(60_000),
}, async () => {
  const world = new World()
  const answered: number[] = []
  for (let round = 0; round < rounds(6); round += 1) {
    const ids = Array.from({ length: 6 }, (_, index) => round * 6 + index)
    const creates = ids.map((id) => world.start(`create --id ${id} --name Fern`))
    const enough = answered.length + 1 + (round % 6)
    for (const [index, create] of creates.entries()) {
      create.stdout?.once('data', () => {
        answered.push(ids[index] ?? -1)
        if (answered.length === enough) for (const each of creates) each.kill('SIGKILL')
      })
    }
    const results = await Promise.all(creates)
    expect(results.filter(({ exitCode, signal }) => exitCode !== 0 && signal !== 'SIGKILL')).toEqual([])
    const { code, out, err } = await world.spawn('list')
    const plants = idsIn(world.store).map((id) => `{"id":${id},"name":"Fern"}\n`)
    expect({ code, err, out }).toEqual({ code: 0, err: '', out: plants.join('') })
    expect(idsIn(world.store)).toEqual(expect.arrayContaining(answered))
    expect(Math.max(...idsIn(world.store))).toBeLessThan((round + 1) * 6)
  }
})

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
  const message = `The store ${world.store} was in use by another process for 0.3 s`
  const rejected = refusal(message, 'Try again, or wait longer with --timeout 2m', 4)
  expect(await world.spawn(`${createOther} --timeout 300ms`)).toEqual(rejected)
  expect(await world.spawn('list')).toEqual(plantsOf(1))
})

describe.runIf(isLinux)('a create that waits for the write lock (seen through /proc)', () => {
  async function waitingCreate() {
    const { world, holder } = await lockedStore()
    const waiting = world.start(`${createOther} --timeout 30s`)
    const files = () =>
      readdirSync(`/proc/${waiting.pid}/fd`).map((fd) => readlinkSync(`/proc/${waiting.pid}/fd/${fd}`))
    const sleeps = () =>
      Number(/^voluntary_ctxt_switches:\t(\d+)$/m.exec(readFileSync(`/proc/${waiting.pid}/status`, 'utf8'))?.[1])
    await expect.poll(files, patience).toContain(`${world.store}-wal`)
    const before = sleeps()
    await expect.poll(() => sleeps() - before, patience).toBeGreaterThan(5)
    return { world, holder, waiting }
  }

  test.each([undefined, 'SIGKILL'] as const)('gets its turn when the holder ends (by %s)', async (signal) => {
    const { holder, waiting } = await waitingCreate()
    await holder.end(signal)
    expect(await resultOf(waiting)).toEqual(created)
  })

  test.each([
    ['SIGINT', 130, 'Interrupted'],
    ['SIGTERM', 143, 'Terminated'],
  ] as const)('ends at once on %s with %i, and stores nothing', async (signal, code, message) => {
    const { world, waiting } = await waitingCreate()
    const sent = performance.now()
    waiting.kill(signal)
    expect(await resultOf(waiting)).toEqual(refusal(`${message}, nothing was changed`, undefined, code))
    expect(performance.now() - sent).toBeLessThan(2000)
    expect(await world.spawn('list')).toEqual(plantsOf(1))
  })

  test('says on a signal that the plant is stored, when it is', repeated, async () => {
    const { world, holder, waiting } = await waitingCreate()
    waiting.kill('SIGSTOP')
    await holder.end()
    waiting.kill('SIGINT')
    waiting.kill('SIGCONT')
    const result = await resultOf(waiting)
    const isStored = (await world.spawn('get 2')).code === 0
    const stored = 'The plant is stored. Show it with: plants get 2'
    const ends = isStored
      ? [refusal('Interrupted before the output was written', stored, 130), created]
      : [refusal('Interrupted, nothing was changed', undefined, 130)]
    expect(ends).toContainEqual(result)
  })
})
