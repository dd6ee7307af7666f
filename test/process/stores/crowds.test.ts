import { once } from 'node:events'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Crowd } from '../../helpers/crowd.js'
import { DatabaseSync } from '../../helpers/database.js'
import { hasPatroni, patroniCluster, patroniDefaults } from '../../helpers/patroni.js'
import { Daemon, onFreePort } from '../../helpers/postgres/daemon.js'
import { serverFolder, writeOwned } from '../../helpers/postgres/identity.js'
import { installations } from '../../helpers/postgres/installation.js'
import type { Row } from '../../helpers/postgres/query.js'
import { type Database, ownServer } from '../../helpers/postgres.js'
import { isSoak, rounds } from '../../helpers/rounds.js'
import { runPlants } from '../../helpers/run.js'
import { type Ended, launch } from '../../helpers/service.js'
import { idsIn } from '../../helpers/sqlite-file.js'
import { temporaryFolder } from '../../helpers/temporary.js'

/** One of several services of one store, which is started again where it was when it has ended. */
class ServiceNode {
  readonly folder = temporaryFolder()
  readonly socket = join(this.folder, 'socket')
  readonly #args: string[]
  #run: ReturnType<typeof launch>

  private constructor(args: string[]) {
    this.#args = ['--socket', this.socket, '--log-level', 'error', ...args]
    this.#run = launch(this.#args, this.folder)
    onTestFinished(async () => void (await this.end()))
  }

  /** @param args of `plants serve` */
  static async start(...args: string[]): Promise<ServiceNode> {
    const node = new ServiceNode(args)
    await node.#run.ready
    return node
  }

  async startAgain(): Promise<void> {
    this.#run = launch(this.#args, this.folder)
    await this.#run.ready
  }

  /** Starts it again, and kills it meanwhile, or soon after. */
  async startInVain(): Promise<void> {
    this.#run = launch(this.#args, this.folder)
    this.#run.ready.catch(() => undefined)
    await once(AbortSignal.timeout(Math.ceil(Math.random() * 150)), 'abort')
    await this.end()
  }

  end(signal: NodeJS.Signals = 'SIGKILL'): Promise<Ended> {
    this.#run.child.kill(signal)
    return this.#run.ended
  }
}

const waysTo = (nodes: ServiceNode[]) => nodes.map(({ socket }) => ({ origin: 'http://node', socketPath: socket }))

const kills = rounds(2)
/** In a soak of 15 rounds there are a million of them, with 30 kills: a life as long as that takes a while. */
const many = rounds(10) > 10 ? rounds(66_667) : 3000

test(`of ${many} creates none is lost, changed or made twice when the service is killed ${kills} times`, {
  timeout: rounds(60_000),
}, async () => {
  const node = await ServiceNode.start()
  const crowd = new Crowd({ creates: many, atOnce: 100, ways: waysTo([node]) })
  const running = crowd.run()
  for (let kill = 0; kill < kills; kill += 1) {
    await crowd.until(() => crowd.done >= ((kill + Math.random()) * many * 0.9) / kills)
    expect(await node.end()).toMatchObject({ code: 137, err: '' })
    await node.startInVain()
    await node.startAgain()
  }
  await running
  expect(await node.end('SIGTERM')).toMatchObject({ code: 0, err: '' })
  const store = join(node.folder, 'data/plants.db')
  expect(idsIn(store).length).toBeGreaterThan(many * 0.8)
  const db = new DatabaseSync(store, { readBigInts: true })
  onTestFinished(() => db.close())
  await crowd.check([db.prepare(`SELECT ${columns} FROM plants`).iterate()])
  expect(crowd.wrong).toEqual([])
})

const creates = rounds(2000)
const nodeCount = isSoak ? 4 : 2
const restarts = 3
/** HAProxy is Debian's. */
const haproxy = '/usr/sbin/haproxy'
const hasBalancer = existsSync(haproxy)
const balanced = hasBalancer ? 'HAProxy and ' : ''

test(`of ${creates} creates over ${balanced}${nodeCount} nodes none is lost, changed or made twice when nodes are killed and their database crashes`, {
  timeout: rounds(60_000),
}, async () => {
  const database = await ownServer()
  const nodes = await startNodes(nodeCount, database.url, '--timeout', '2s')
  const ways = hasBalancer ? [{ origin: await balancer(nodes) }] : waysTo(nodes)
  const crowd = new Crowd({ creates, atOnce: 64 * nodeCount, ways })
  const began = performance.now()
  const running = crowd.run()

  for (const [at, event] of plan().entries()) {
    await crowd.until(() => crowd.done >= ((at + 0.5) / plan().length) * creates * 0.9)
    if (event === 'kill') {
      const node = nodes[at % nodeCount]
      await node?.end()
      await node?.startAgain()
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
  const events = Array<'kill' | 'crash' | 'outage'>(restarts + (isSoak ? Math.min(40, kills) : 2)).fill('kill')
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
    const crowd = new Crowd({ creates: rounds(500_000), atOnce: 16, ways: waysTo(nodes) })
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
  return Promise.all(Array.from({ length: count }, () => ServiceNode.start('--store', url, ...args)))
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

/**
 * Puts HAProxy before some services, which gives each request to the next of them that listens.
 *
 * @returns its address
 */
async function balancer(nodes: ServiceNode[]): Promise<string> {
  const folder = serverFolder({})
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  let address = ''
  await onFreePort('Address already in use', async (port) => {
    writeOwned(join(folder, 'haproxy.cfg'), [configuration(port, nodes)], {})
    const daemon = new Daemon([haproxy, '-db', '-f', 'haproxy.cfg'], folder, {})
    onTestFinished(() => daemon.end('SIGTERM'))
    await daemon.says(/nobody has no server/)
    address = `http://127.0.0.1:${port}`
    return daemon
  })
  return address
}

/** It says nothing when it listens; but it does when it then finds that nobody is there, where nobody is. */
function configuration(port: number, nodes: ServiceNode[]): string {
  const servers = nodes.map(({ socket }, at) => `  server node${at} unix@${socket} check inter 100ms fall 2 rise 1`)
  return `global
  log stderr format raw local0 notice
defaults
  mode http
  timeout connect 1s
  timeout client 1m
  timeout server 1m
  balance roundrobin
  option redispatch
frontend door
  bind 127.0.0.1:${port}
  default_backend nodes
backend nodes
${servers.join('\n')}
backend nobody
  log global
  server nobody unix@./nobody check inter 50ms`
}
