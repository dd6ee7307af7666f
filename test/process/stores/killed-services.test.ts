import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { wait } from '../../../src/platform/runtime.js'
import { Caller } from '../../helpers/caller.js'
import { DatabaseSync } from '../../helpers/database.js'
import { hang } from '../../helpers/hang.mjs'
import { ownServer, type Row } from '../../helpers/postgres.js'
import { isSoak, randomOf, rounds, seed } from '../../helpers/rounds.js'
import { type Ended, launch, testToken } from '../../helpers/service.js'
import { idsIn } from '../../helpers/sqlite-file.js'
import { temporaryFolder } from '../../helpers/temporary.js'

// Callers create plants with keys, and come again until they know, while services are killed and
// databases crash: in the end each plant is there once, as it was sent.

const random = randomOf(seed)
const withSeed = `the seed is ${seed}`
const columns = 'id, name, tag, idempotency_key AS key'

/** A service that is started again where it was when it has ended. */
class ServiceNode {
  readonly folder = temporaryFolder()
  readonly socket = join(this.folder, 'socket')
  readonly #args: string[]
  #run: ReturnType<typeof launch> | undefined

  constructor(args: string[]) {
    this.#args = ['--socket', this.socket, '--log-level', 'error', ...args]
    onTestFinished(async () => void (await this.end()))
  }

  async start(): Promise<this> {
    rmSync(this.socket, { force: true }) // as systemd empties its directory
    this.#run = launch(this.#args, this.folder)
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

  async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<Ended | undefined> {
    this.#run?.child.kill(signal)
    return this.#run?.ended
  }
}

const kills = rounds(2)
/** A million in a soak of 15 rounds, which has 30 kills: a life as long as that takes a while. */
const many = isSoak ? rounds(66_667) : 2000

test(`of ${many} creates none is lost, changed or made twice when the service is killed ${kills} times`, async () => {
  const node = await new ServiceNode([]).start()
  const crowd = new Crowd(many, 100, [node])
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
  expect(idsIn(store)).toHaveLength(many)
  const db = new DatabaseSync(store, { readBigInts: true })
  onTestFinished(() => db.close())
  crowd.check(db.prepare(`SELECT ${columns} FROM plants`).iterate())
  expect(crowd.wrong, withSeed).toEqual([])
})

const creates = rounds(1000)
const nodeCount = isSoak ? 4 : 2
const crashes = Math.min(100, rounds(2))

test(`of ${creates} creates over ${nodeCount} nodes none is lost, changed or made twice when nodes are killed and their database crashes`, async () => {
  const database = await ownServer()
  const args = ['--store', database.url, '--timeout', '1h']
  const starting = Array.from({ length: nodeCount }, () => new ServiceNode(args).start())
  const nodes = await Promise.all(starting)
  const crowd = new Crowd(creates, 64 * nodeCount, nodes)
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
  const stored = await database.admin(`SELECT ${columns} FROM plant_store.plants`)
  crowd.check(stored)
  expect(crowd.wrong, withSeed).toEqual([])
  for (const node of nodes) expect(await node.end('SIGTERM')).toMatchObject({ code: 0 })
})

type Answer = Awaited<ReturnType<Caller['request']>>

/**
 * Callers who create plants, each with a key, and come again with the same one until they know. Of 20 creates three are
 * sent twice at the same moment, and one repeats another that was answered with 200.
 */
class Crowd {
  /** what should not be, the first hundred of it */
  readonly wrong: string[] = []
  /** creates that were answered for good */
  #done = 0
  readonly #creates: number
  readonly #atOnce: number
  readonly #pools: Caller[]
  /** the numbers of creates that were answered with 200 */
  readonly #created: number[] = []
  #next = 0
  #turn = 0

  /** @param nodes which are asked in turn */
  constructor(creates: number, atOnce: number, nodes: ServiceNode[]) {
    this.#creates = creates
    this.#atOnce = atOnce
    this.#pools = nodes.map(({ socket }) => {
      const pool = new Caller('http://node', atOnce, socket)
      onTestFinished(() => pool.destroy())
      return pool
    })
  }

  async run(): Promise<void> {
    const lane = async () => {
      while (this.#next < this.#creates && this.wrong.length < 100) await this.#finish(this.#next++)
    }
    await Promise.all(Array.from({ length: this.#atOnce }, lane))
  }

  /** Resolves when so many creates were answered for good. */
  async until(done: number): Promise<void> {
    const patience = { interval: 1, timeout: rounds(hang.wait) }
    await expect.poll(() => this.#done >= done, patience).toBe(true)
  }

  /** Notes what is wrong with all that is stored: ids, names, tags and keys. */
  check(rows: Iterable<Row>): void {
    const stored = new Set<number>()
    for (const { id, name, tag, key } of rows) {
      const number = Number(/^create-(\d+)$/.exec(String(key))?.[1] ?? -1)
      const plant = plantOf(number)
      const isAsSent = id === plant.id && name === plant.name && tag === (plant.tag ?? null)
      if (!isAsSent || stored.has(number) || number >= this.#next)
        this.#blame(`There is ${[id, name, tag, key]}`)
      stored.add(number)
    }
    for (const number of this.#created)
      if (!stored.has(number)) this.#blame(`Create ${number} is lost`)
  }

  async #finish(number: number): Promise<void> {
    const copies = [4, 10, 14].includes(number % 20) ? [number, number] : [number]
    await Promise.all(copies.map((each) => this.#settle(each)))
    if (number % 20 === 7) await this.#settle(this.#created.at(random() * -100) ?? number)
    this.#created.push(number)
    this.#done += 1
  }

  /** Sends a create until it is answered for good. */
  async #settle(number: number): Promise<void> {
    const { id, name, tag } = plantOf(number)
    const text = JSON.stringify({ name, tag })
    while (this.wrong.length < 100) {
      const answer = await this.#send(`{"id":${id},${text.slice(1)}`, `create-${number}`)
      if (answer?.status === 200 && answer.text === text) return
      if (!mayComeAgain(answer))
        return this.#blame(`Create ${number}: ${answer?.status} ${answer?.text}`)
      await wait(1000 * Number(answer?.headers['retry-after'] ?? 0.02), [])
    }
  }

  async #send(body: string, key: string): Promise<Answer | undefined> {
    const pool = this.#pools[this.#turn++ % this.#pools.length]
    const headers = {
      authorization: `Bearer ${testToken}`,
      'content-type': 'application/json',
      'idempotency-key': key,
    }
    try {
      return await pool?.request({ method: 'POST', path: '/plants', headers, body })
    } catch (error) {
      if (lostCodes.has(String((error as NodeJS.ErrnoException).code))) return undefined
      throw error
    }
  }

  #blame(what: string): void {
    if (this.wrong.length < 100) this.wrong.push(what)
  }
}

const lostCodes = new Set(['ECONNRESET', 'ECONNREFUSED', 'ENOENT', 'EPIPE', 'EAGAIN'])

/** What the create of a number has of its own. The ids need all 64 bits, and come in no order. */
function plantOf(number: number) {
  const id = BigInt.asIntN(64, BigInt(number) * 0x9e3779b97f4a7c15n)
  const tag = number % 3 > 0 ? `Beet ${number % 7}` : undefined
  return { id, name: `Fern № ${number}`, tag }
}

/** Whether an answer, or none, leaves open what became of it, as the contract has it. */
function mayComeAgain(answer: Answer | undefined): boolean {
  if (answer?.status === 503) return answer.headers['retry-after'] !== undefined
  return !answer || (answer.status === 500 && answer.text.includes('unknown'))
}
