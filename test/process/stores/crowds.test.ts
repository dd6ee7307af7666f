import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Crowd } from '../../helpers/crowd.js'
import { hasPatroni, patroniCluster, patroniDefaults } from '../../helpers/patroni.js'
import { installations } from '../../helpers/postgres/installation.js'
import type { Row } from '../../helpers/postgres/query.js'
import { type Database, ownServer } from '../../helpers/postgres.js'
import { isSoak, rounds } from '../../helpers/rounds.js'
import { runPlants } from '../../helpers/run.js'
import { type Ended, launch } from '../../helpers/service.js'
import { temporaryFolder } from '../../helpers/temporary.js'

/** One of several services of one store, which is started again where it was when it has ended. */
class ServiceNode {
  readonly folder = temporaryFolder()
  readonly socket = join(this.folder, 'socket')
  readonly #args: string[]
  #run: ReturnType<typeof launch> | undefined

  /** @param args of `plants serve` */
  constructor(args: string[]) {
    this.#args = ['--socket', this.socket, '--log-level', 'error', ...args]
    onTestFinished(async () => void (await this.end()))
  }

  async start(): Promise<this> {
    this.#run = launch(this.#args, this.folder)
    await this.#run.ready
    return this
  }

  async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<Ended | undefined> {
    this.#run?.child.kill(signal)
    return this.#run?.ended
  }
}

const creates = rounds(2000)
const nodeCount = isSoak ? 4 : 2
const restarts = 3

test(`of ${creates} creates over ${nodeCount} nodes none is lost, changed or made twice when nodes are killed and their database crashes`, {
  timeout: rounds(60_000),
}, async () => {
  const database = await ownServer()
  const nodes = await startNodes(nodeCount, database.url, '--timeout', '2s')
  const crowd = new Crowd({ creates, atOnce: 64 * nodeCount, nodes })
  const began = performance.now()
  const running = crowd.run()

  for (const [at, event] of plan().entries()) {
    await crowd.until(() => crowd.done >= ((at + 0.5) / plan().length) * creates * 0.9)
    if (event === 'kill') {
      const node = nodes[at % nodeCount]
      await node?.end()
      await node?.start()
    } else {
      await database.stop('immediate')
      const before = crowd.count('500', '503')
      if (event === 'outage') await crowd.until(() => crowd.count('500', '503') > before)
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
    events[Math.floor(((restart + 0.5) * events.length) / restarts)] = isSoak && restart === 1 ? 'outage' : 'crash'
  return events
}

const installation = installations.find(({ isPacked }) => !isPacked)

test.skipIf(!isSoak || installation === undefined || !hasPatroni())(
  'over two nodes with Patroni, none is lost when the primary is killed (needs Patroni and etcd) (in a soak)',
  { timeout: rounds(120_000) },
  async () => {
    let [primary, standby] = await patroniCluster(installation?.bin ?? '')
    const url = `postgres://plants@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/plants?target_session_attrs=read-write`
    expect(await runPlants(['stores', 'init', url])).toMatchObject({ code: 0 })
    const nodes = await startNodes(2, url)
    const crowd = new Crowd({ creates: rounds(500_000), atOnce: 16, nodes })
    const running = crowd.run()
    const more = (count: number) => {
      const due = crowd.done + count
      return crowd.until(() => crowd.done >= due)
    }
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
  return Promise.all(Array.from({ length: count }, () => new ServiceNode(['--store', url, ...args]).start()))
}

async function judge(crowd: Crowd, database: Pick<Database, 'admin'>, figures: object): Promise<void> {
  await crowd.check(pagesOf(database))
  expect(crowd.wrong).toEqual([])
  if (isSoak) process.stdout.write(`${JSON.stringify({ ...figures, ...crowd.answers })}\n`)
}

const columns = 'id, name, tag, idempotency_key AS key'

/** All plants of a database, past the program. */
async function* pagesOf(database: Pick<Database, 'admin'>): AsyncGenerator<Row[]> {
  for (let after = 'true'; ; ) {
    const page = await database.admin(
      `SELECT ${columns} FROM plant_store.plants WHERE ${after} ORDER BY id LIMIT 20000`,
    )
    yield page
    const end = page.at(-1)
    if (!end) return
    after = `id > ${end['id']}`
  }
}
