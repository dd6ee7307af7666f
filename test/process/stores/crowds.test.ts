import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { wait } from '../../../src/platform/runtime.js'
import { Caller } from '../../helpers/caller.js'
import { DatabaseSync } from '../../helpers/database.js'
import { hang } from '../../helpers/hang.mjs'
import { hasPatroni, patroniCluster, patroniDefaults } from '../../helpers/patroni.js'
import { installations } from '../../helpers/postgres/installation.js'
import type { Row } from '../../helpers/postgres/query.js'
import { type Database, ownServer } from '../../helpers/postgres.js'
import { isSoak, randomOf, rounds, seed } from '../../helpers/rounds.js'
import { runPlants } from '../../helpers/run.js'
import { type Ended, launch, testToken } from '../../helpers/service.js'
import { idsIn } from '../../helpers/sqlite-file.js'
import { temporaryFolder } from '../../helpers/temporary.js'

/** One of several services of one store, which is started again where it was when it has ended. */
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

  /** Starts it again, and kills it meanwhile: at once, when it uses its store, when it listens, or when it is ready. */
  async startInVain(random: number): Promise<void> {
    const moments = [[], ['data/plants.db-shm', 'data/plants.db-wal'], ['socket'], ['none']]
    const files = moments[Math.floor(random * moments.length)] ?? []
    const before = this.#changesOf(files)
    let isReady = false
    const started = this.start().then(
      () => (isReady = true),
      () => undefined,
    )
    const isDue = () => isReady || files.length === 0 || this.#changesOf(files) !== before
    await expect.poll(isDue, { interval: 1 }).toBe(true)
    await this.end()
    await started
  }

  /** What changes with these files. */
  #changesOf(files: string[]): string {
    const stats = files.map((name) => statSync(join(this.folder, name), { throwIfNoEntry: false }))
    return stats.map((each) => `${each?.ino} ${each?.ctimeMs}`).join()
  }

  async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<Ended | undefined> {
    this.#run?.child.kill(signal)
    return this.#run?.ended
  }
}

const random = randomOf(seed)
const withSeed = `the seed is ${seed}`
const kills = rounds(2)
/** A million in a soak of 15 rounds, which has 30 kills: a life as long as that takes a while. */
const many = isSoak ? rounds(66_667) : 2000

test(`of ${many} creates none is lost, changed or made twice when the service is killed ${kills} times`, async () => {
  const node = await new ServiceNode([]).start()
  const crowd = new Crowd({ creates: many, atOnce: 100, nodes: [node] })
  const running = crowd.run()
  for (let kill = 0; kill < kills; kill += 1) {
    await crowd.until(((kill + random()) * many * 0.9) / kills)
    expect(await node.end()).toMatchObject({ code: 137, err: '' })
    await node.startInVain(random())
    await node.start()
  }
  await running
  expect(await node.end('SIGTERM')).toMatchObject({ code: 0, err: '' })
  const store = join(node.folder, 'data/plants.db')
  expect(idsIn(store).length).toBeGreaterThan(many * 0.8)
  const db = new DatabaseSync(store, { readBigInts: true })
  onTestFinished(() => db.close())
  await crowd.check([db.prepare(`SELECT ${columns} FROM plants`).iterate()])
  expect(crowd.wrong, withSeed).toEqual([])
})

const creates = rounds(1000)
const nodeCount = isSoak ? 4 : 2
const restarts = Math.min(100, rounds(3))

test(`of ${creates} creates over ${nodeCount} nodes none is lost, changed or made twice when nodes are killed and their database crashes`, async () => {
  const database = await ownServer()
  const nodes = await startNodes(nodeCount, database.url, '--timeout', isSoak ? '2s' : '1h')
  const crowd = new Crowd({ creates, atOnce: 64 * nodeCount, nodes })
  const began = performance.now()
  const running = crowd.run()

  for (const [at, event] of plan().entries()) {
    await crowd.until(((at + 0.5) / plan().length) * creates * 0.9)
    if (event === 'kill') {
      const node = nodes[at % nodeCount]
      await node?.end()
      await node?.start()
    } else {
      await database.stop('immediate')
      const before = crowd.count('500', '503')
      if (event === 'outage') await crowd.sees(() => crowd.count('500', '503') > before)
      await database.start()
    }
  }
  await running
  const seconds = (performance.now() - began) / 1000
  await judge(crowd, database, { creates, seconds, gap: crowd.gap })
  for (const node of nodes) expect(await node.end('SIGTERM')).toMatchObject({ code: 0 })
})

/**
 * What happens, one after the other, while the creates go on. In a soak the database is away once for longer than a
 * request waits.
 */
function plan(): ('kill' | 'crash' | 'outage')[] {
  const events = Array<'kill' | 'crash' | 'outage'>(restarts + Math.min(40, rounds(2))).fill('kill')
  for (let restart = 0; restart < restarts; restart += 1)
    events[Math.floor(((restart + 0.5) * events.length) / restarts)] =
      isSoak && restart === 1 ? 'outage' : 'crash'
  return events
}

const installation = installations.find(({ isPacked }) => !isPacked)

test.skipIf(!isSoak || installation === undefined || !hasPatroni())(
  'over two nodes with Patroni, none is lost when the primary is killed (needs Patroni and etcd) (in a soak)',
  async () => {
    let [primary, standby] = await patroniCluster(installation?.bin ?? '')
    const url = `postgres://plants@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/plants`
    const alone = `postgres://plants@127.0.0.1:${primary.port}/plants`
    expect(await runPlants(['stores', 'init', alone])).toMatchObject({ code: 0 })
    const nodes = await startNodes(2, url)
    const crowd = new Crowd({ creates: rounds(500_000), atOnce: 16, nodes })
    const running = crowd.run()
    const more = (count: number) => crowd.until(crowd.done + count)
    const gaps: number[] = []
    for (let kill = 0; kill < rounds(0.5); kill += 1) {
      await more(1000)
      crowd.gap = 0
      await primary.kill()
      await standby.becomes('primary')
      await more(1000)
      gaps.push(Math.round(crowd.gap))
      primary.start()
      await primary.becomes('synchronous')
      ;[primary, standby] = [standby, primary]
    }
    crowd.end()
    await running
    await judge(crowd, primary, { what: 'Patroni', ...patroniDefaults, creates: crowd.done, gaps })
    for (const node of nodes) expect(await node.end('SIGTERM')).toMatchObject({ code: 0 })
  },
)

function startNodes(count: number, url: string, ...args: string[]): Promise<ServiceNode[]> {
  return Promise.all(
    Array.from({ length: count }, () => new ServiceNode(['--store', url, ...args]).start()),
  )
}

async function judge(
  crowd: Crowd,
  database: Pick<Database, 'admin'>,
  figures: object,
): Promise<void> {
  await crowd.check(pagesOf(database))
  expect(crowd.wrong, withSeed).toEqual([])
  if (isSoak) process.stdout.write(`${JSON.stringify({ ...figures, ...crowd.answers })}\n`)
}

const columns = 'id, name, tag, idempotency_key AS key'

/** All plants of a database, past the program. */
async function* pagesOf(database: Pick<Database, 'admin'>): AsyncGenerator<Row[]> {
  for (let after = 'true'; ; ) {
    const select = `SELECT ${columns} FROM plant_store.plants`
    const page = await database.admin(`${select} WHERE ${after} ORDER BY id LIMIT 20000`)
    yield page
    const end = page.at(-1)
    if (!end) return
    after = `id > ${end['id']}`
  }
}

/**
 * What a create is: one of its own, sent once or twice at the same moment; or one of a plant that was answered with 200
 * before.
 */
type Kind = 'alone' | 'twin' | 'again' | 'taken' | 'stolen'

function isNew(kind: Kind | undefined): boolean {
  return kind === 'alone' || kind === 'twin'
}

type Answer = Awaited<ReturnType<Caller['request']>>

interface Options {
  /** how many are sent, unless it is ended before */
  creates: number
  atOnce: number
  /** which are asked in turn */
  nodes: ServiceNode[]
}

/**
 * Callers who create plants, each with a key, and come again with the same one until they know. Of 20 creates
 * three are sent twice at the same moment, one repeats a key that was answered, one has an id that is taken; of 200 one has the
 * key of another plant.
 */
class Crowd {
  /** how often there was each answer: its `error` value, "200", or "lost" without any */
  readonly answers: Record<string, number> = {}
  /** what should not be, the first hundred of it */
  readonly wrong: string[] = []
  /** the longest time without a 200, in milliseconds */
  gap = 0
  /** creates that were answered for good */
  done = 0
  readonly #options: Options
  readonly #pools: Caller[]
  readonly #sent: { kind: Kind; target: number }[] = []
  /** the numbers of creates that were answered with 200 */
  readonly #created: number[] = []
  #next = 0
  #turn = 0
  #lastCreated = performance.now()

  constructor(options: Options) {
    this.#options = options
    this.#pools = options.nodes.map(({ socket }) => {
      const pool = new Caller('http://node', options.atOnce, socket)
      onTestFinished(() => pool.destroy())
      return pool
    })
  }

  async run(): Promise<void> {
    const lane = async () => {
      while (this.#next < this.#options.creates && this.wrong.length < 100)
        await this.#finish(this.#next++)
    }
    this.#lastCreated = performance.now()
    await Promise.all(Array.from({ length: this.#options.atOnce }, lane))
  }

  end(): void {
    this.#next = this.#options.creates
  }

  /** Resolves when so many creates were answered for good. */
  async until(done: number): Promise<void> {
    await this.sees(() => this.done >= done)
  }

  async sees(isDue: () => boolean): Promise<void> {
    await expect.poll(isDue, { interval: 1, timeout: rounds(hang.wait) }).toBe(true)
  }

  count(...answers: string[]): number {
    return answers.reduce((sum, answer) => sum + (this.answers[answer] ?? 0), 0)
  }

  /** Notes what is wrong with all that is stored: ids, names, tags and keys. */
  async check(pages: Iterable<Iterable<Row>> | AsyncIterable<Row[]>): Promise<void> {
    const stored = new Set<number>()
    for await (const page of pages) {
      for (const { id, name, tag, key } of page) {
        const number = Number(/^create-(\d+)$/.exec(String(key))?.[1] ?? -1)
        const { plant } = createOf(number)
        const isMeant = isNew(this.#sent[number]?.kind) && !stored.has(number)
        if (!isMeant || id !== plant.id || name !== plant.name || tag !== (plant.tag ?? null))
          this.#blame(`There is ${[id, name, tag, key]}`)
        stored.add(number)
      }
    }
    for (const number of this.#created)
      if (!stored.has(number)) this.#blame(`Create ${number} is lost`)
  }

  async #finish(number: number): Promise<void> {
    const kind = this.#choose(number)
    const copies = kind === 'twin' ? 2 : 1
    await Promise.all(Array.from({ length: copies }, () => this.#settle(number, kind)))
    if (isNew(kind)) this.#created.push(number)
    this.done += 1
  }

  #choose(number: number): Kind {
    const byNumber: Record<number, Kind> = {
      0: 'taken',
      4: 'twin',
      7: 'again',
      10: 'twin',
      14: 'twin',
    }
    const chosen = number % 200 === 101 ? 'stolen' : (byNumber[number % 20] ?? 'alone')
    const kind = this.#created.length === 0 ? 'alone' : chosen
    this.#sent[number] = {
      kind,
      target: this.#created[Math.floor(random() * this.#created.length)] ?? 0,
    }
    return kind
  }

  /** Sends a create until it is answered for good. */
  async #settle(number: number, kind: Kind): Promise<void> {
    const request = this.#requestOf(number, kind)
    while (this.wrong.length < 100) {
      const answer = await this.#send(request.body, request.key)
      const name = nameOf(answer)
      this.#count(name)
      if (name === request.wanted && (name === '409' || answer?.text === request.text)) return
      if (!mayComeAgain(name, answer))
        return this.#blame(
          `Create ${number}, ${kind}, was answered with ${answer?.status} ${answer?.text}`,
        )
      await wait(1000 * Number(answer?.headers['retry-after'] ?? 0.02), [])
    }
  }

  #count(name: string): void {
    this.answers[name] = (this.answers[name] ?? 0) + 1
    const now = performance.now()
    if (name === '200') this.gap = Math.max(this.gap, now - this.#lastCreated)
    if (name === '200') this.#lastCreated = now
  }

  #requestOf(
    number: number,
    kind: Kind,
  ): { body: string; key: string; wanted: string; text: string } {
    const target = this.#sent[number]?.target ?? 0
    const { plant } = createOf(kind === 'again' ? target : number)
    const { id } = kind === 'taken' ? createOf(target).plant : plant
    const key = `create-${kind === 'again' || kind === 'stolen' ? target : number}`
    const { name, tag } = plant
    const text = JSON.stringify({ name, ...(tag !== undefined && { tag }) })
    return {
      body: `{"id":${id},${text.slice(1)}`,
      key,
      wanted: kind === 'taken' || kind === 'stolen' ? '409' : '200',
      text,
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
function createOf(number: number): {
  plant: { id: bigint; name: string; tag: string | undefined }
} {
  const id = BigInt.asIntN(64, BigInt(number) * 0x9e3779b97f4a7c15n)
  return {
    plant: { id, name: `Fern № ${number}`, tag: number % 3 > 0 ? `Beet ${number % 7}` : undefined },
  }
}

function nameOf(answer: Answer | undefined): string {
  if (!answer) return 'lost'
  return answer.status === 200 ? '200' : String(JSON.parse(answer.text).error)
}

/** Whether an answer leaves open what became of it, as the contract has it. */
function mayComeAgain(name: string, answer: Answer | undefined): boolean {
  if (name === '503') return answer?.headers['retry-after'] !== undefined
  if (name === '500')
    return answer?.text.includes('Whether the plant is stored is unknown') === true
  return name === 'lost'
}
