import { statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { wait } from '../../../src/platform/runtime.js'
import { type Row, startOwnServer } from '../../helpers/postgres/database.js'
import { hasPatroni, startPatroniCluster } from '../../helpers/postgres/patroni.js'
import { hangLimitsMs } from '../../helpers/sandbox/hang.mjs'
import { isSoak, scaleRounds, seed } from '../../helpers/sandbox/rounds.js'
import { runPlants } from '../../helpers/sandbox/run.js'
import { DatabaseSync, readIds } from '../../helpers/sandbox/sqlite-file.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'
import { exchangeOnce } from '../../helpers/scripted-server/raw-http.js'
import { launchService, testToken } from '../../helpers/scripted-server/service.js'

// Callers create plants with keys, and come again until they know, while services are killed and
// databases crash: in the end each plant is there once, as it was sent.

let state = seed
/** In [0, 1), as MINSTD has it. */
const random = () => {
  state = (state * 48_271) % 2_147_483_647
  return state / 2_147_483_647
}
const withSeed = `the seed is ${seed}`
const columns = 'id, name, tag, idempotency_key AS key'

/** A service that is started again where it was when it has ended. */
class ServiceNode {
  readonly folder = createTemporaryFolder()
  readonly socket = join(this.folder, 'socket')
  readonly #args: string[]
  #run: ReturnType<typeof launchService> | undefined

  constructor(args: string[]) {
    this.#args = ['--socket', this.socket, '--log-level', 'error', ...args]
    onTestFinished(async () => void (await this.end()))
  }

  async start(): Promise<this> {
    this.#run = launchService(this.#args, this.folder)
    await this.#run.ready
    return this
  }

  /** Starts it again, and kills it when it uses its store, when it listens, or when it is ready. */
  async startInVain(): Promise<void> {
    const file = join(this.folder, random() < 0.5 ? 'data/plants.db-shm' : 'socket')
    const changed = () => statSync(file, { throwIfNoEntry: false })?.ctimeMs
    const before = changed()
    let isReady = false
    const started = this.start().then(
      () => (isReady = true),
      () => undefined,
    )
    await expect.poll(() => isReady || changed() !== before, { interval: 1 }).toBe(true)
    await this.end()
    await started
  }

  async end(signal: NodeJS.Signals = 'SIGKILL') {
    this.#run?.child.kill(signal)
    return this.#run?.ended
  }
}

const kills = scaleRounds(2)
/** A million in a soak of 15 rounds, which has 30 kills: a life as long as that takes a while. */
const many = isSoak ? scaleRounds(66_667) : 1500

test(`of ${many} creates none is lost, changed or made twice when the service is killed ${kills} times`, async () => {
  const node = await new ServiceNode([]).start()
  const crowd = crowdOf(many, 100, [node])
  const running = crowd.run()
  for (let kill = 0; kill < kills; kill += 1) {
    await crowd.until(((kill + random()) * many * 0.9) / kills)
    expect(await node.end()).toMatchObject({ code: 137, err: '' })
    await node.startInVain()
    await node.start()
  }
  await running
  expect(await node.end('SIGTERM')).toMatchObject({ code: 0, err: '' })
  const store = join(node.folder, 'data/plants.db')
  expect(readIds(store)).toHaveLength(many)
  const db = new DatabaseSync(store, { readBigInts: true })
  onTestFinished(() => db.close())
  crowd.check(db.prepare(`SELECT ${columns} FROM plants`).iterate())
  expect(crowd.wrong, withSeed).toEqual([])
})

const creates = scaleRounds(700)
const nodeCount = isSoak ? 4 : 2
const crashes = Math.min(100, scaleRounds(2))

test(`of ${creates} creates over ${nodeCount} nodes none is lost, changed or made twice when nodes are killed and their database crashes`, async () => {
  const database = await startOwnServer()
  const args = ['--store', database.url, '--timeout', '1h']
  const starting = Array.from({ length: nodeCount }, () => new ServiceNode(args).start())
  const nodes = await Promise.all(starting)
  const crowd = crowdOf(creates, 64 * nodeCount, nodes)
  const running = crowd.run()
  for (let at = 0; at < 2 * crashes; at += 1) {
    await crowd.until(((at + 0.5) / (2 * crashes)) * creates * 0.9)
    if (at % 2 === 0) {
      const node = nodes[(at / 2) % nodeCount]
      await node?.end()
      await node?.start()
    } else {
      await database.stop('immediate')
      await database.start()
    }
  }
  await running
  const stored = await database.queryAsSuperuser(`SELECT ${columns} FROM plant_store.plants`)
  crowd.check(stored)
  expect(crowd.wrong, withSeed).toEqual([])
  for (const node of nodes) expect(await node.end('SIGTERM')).toMatchObject({ code: 0 })
})

test.skipIf(!isSoak || !hasPatroni())(
  'of creates over two nodes none is lost, changed or made twice when the primary is killed twice (needs Patroni and etcd, in a soak)',
  async () => {
    let [primary, standby] = await startPatroniCluster()
    const url = `postgres://plants@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/plants`
    const init = ['stores', 'init', `postgres://plants@127.0.0.1:${primary.port}/plants`]
    expect(await runPlants(init)).toMatchObject({ code: 0 })
    const args = ['--store', url, '--timeout', '1h']
    const nodes = await Promise.all([1, 2].map(() => new ServiceNode(args).start()))
    const crowd = crowdOf(Infinity, 16, nodes)
    const running = crowd.run()
    for (let kill = 1; kill <= 2; kill += 1) {
      await crowd.until(crowd.done() + 1000)
      await primary.kill()
      await standby.waitForRole('primary')
      await crowd.until(crowd.done() + 1000)
      await primary.start()
      await primary.waitForRole('synchronous')
      const replaced = primary
      primary = standby
      standby = replaced
    }
    crowd.end()
    await running
    crowd.check(await primary.queryAsSuperuser(`SELECT ${columns} FROM plant_store.plants`))
    expect(crowd.wrong, withSeed).toEqual([])
    process.stdout.write(`Patroni: ${crowd.done()} creates, and none is lost\n`)
    for (const node of nodes) expect(await node.end('SIGTERM')).toMatchObject({ code: 0 })
  },
)

/**
 * Callers who create plants at nodes in turn, each with a key, and come again until they know. Of 20
 * creates three are sent twice at the same moment, and one repeats another that was answered with 200.
 */
function crowdOf(wanted: number, atOnce: number, nodes: ServiceNode[]) {
  let creates = wanted
  /** what should not be */
  const wrong: string[] = []
  const created: number[] = []
  let [next, turn] = [0, 0]

  const settle = async (number: number): Promise<unknown> => {
    const { id, name, tag } = plantOf(number)
    const text = JSON.stringify({ name, tag })
    const headers = { 'Idempotency-Key': `create-${number}` }
    const request = { headers, body: `{"id":${id},${text.slice(1)}` }
    while (wrong.length === 0) {
      turn += 1
      const service = {
        endpoint: { path: nodes[turn % nodes.length]?.socket ?? '' },
        token: testToken,
      }
      const answer = await exchangeOnce(service, request).catch(() => undefined)
      if (answer?.text === `200 ${text}`) return
      if (!mayComeAgain(answer)) return wrong.push(`Create ${number}: ${answer?.text}`)
      await wait(1000 * Number(answer?.headers['retry-after'] ?? 0.02), [])
    }
    return
  }

  const lane = async () => {
    while (next < creates && wrong.length === 0) {
      const number = next++
      const copies = [4, 10, 14].includes(number % 20) ? [number, number] : [number]
      await Promise.all(copies.map(settle))
      if (number % 20 === 7) await settle(created.at(random() * -100) ?? number)
      created.push(number)
    }
  }

  return {
    wrong,
    run: () => Promise.all(Array.from({ length: atOnce }, lane)),
    /** How many creates were answered for good. */
    done: () => created.length,
    /** Begins no more creates. */
    end: () => {
      creates = next
    },
    /** Resolves when so many creates were answered for good. */
    until: async (done: number) => {
      const pollOptions = { interval: 1, timeout: scaleRounds(hangLimitsMs.wait) }
      await expect.poll(() => created.length >= done || wrong.length > 0, pollOptions).toBe(true)
    },
    /** Notes what is wrong with all that is stored: ids, names, tags and keys. */
    check: (rows: Iterable<Row>) => {
      const stored = new Set<number>()
      for (const { id, name, tag, key } of rows) {
        const number = Number(/^create-(\d+)$/.exec(String(key))?.[1] ?? -1)
        const plant = plantOf(number)
        const isAsSent = id === plant.id && name === plant.name && tag === (plant.tag ?? null)
        if (!isAsSent || stored.has(number) || number >= next)
          wrong.push(`There is ${[id, name, tag, key]}`)
        stored.add(number)
      }
      const lost = created.filter((number) => !stored.has(number))
      wrong.push(...lost.map((number) => `Create ${number} is lost`))
    },
  }
}

/** What the create of a number has of its own. The ids need all 64 bits, and come in no order. */
function plantOf(number: number) {
  const id = BigInt.asIntN(64, BigInt(number) * 0x9e3779b97f4a7c15n)
  const tag = number % 3 > 0 ? `Beet ${number % 7}` : undefined
  return { id, name: `Fern № ${number}`, tag }
}

/** Whether an answer, or none, leaves open what became of it, as the contract has it. */
function mayComeAgain(answer: Awaited<ReturnType<typeof exchangeOnce>> | undefined): boolean {
  if (answer?.status === 503) return answer.headers['retry-after'] !== undefined
  return !answer || (answer.status === 500 && answer.text.includes('unknown'))
}
