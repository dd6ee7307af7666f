import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { pages } from '../../helpers/expect/documents.js'
import { hangLimitsMs } from '../../helpers/sandbox/hang.mjs'
import { execute } from '../../helpers/sandbox/process.js'
import { isInstalled } from '../../helpers/sandbox/programs.js'
import { isSoak, scaleRounds } from '../../helpers/sandbox/rounds.js'
import { runPlants } from '../../helpers/sandbox/run.js'
import { queryFile } from '../../helpers/sandbox/sqlite-file.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'
import { exchangeOnce } from '../../helpers/scripted-server/raw-http.js'
import { launchService, testToken } from '../../helpers/scripted-server/service.js'

// Litestream replicates the store of a service, with the configuration in deploy, but to a file.

const canReplicate = isSoak && isInstalled('litestream')
const need = '(needs Litestream, in a soak)'

test.skipIf(!canReplicate)(
  `the loss of a machine with its store loses only the last creates ${need}`,
  async () => {
    const machine = await Machine.start()
    const losses = scaleRounds(0.5)
    for (let loss = 0; loss < losses; loss += 1) {
      const load = new Load(machine)
      await machine.replicateMore(1)
      const before = load.countAcknowledged()
      await machine.replicateMore(4)
      const perFile = (load.countAcknowledged() - before) / 4
      // Each loss is at another time between two files of the replica.
      await load.acknowledgeMore(Math.floor((perFile * loss) / losses))
      // As when a machine loses its power, nothing is replicated after the last create.
      machine.litestream.kill('SIGKILL')
      machine.service.child.kill('SIGKILL')
      const lostAt = Date.now()
      await load.end()
      await machine.ended()
      const acknowledged = machine.creates.filter(isAcknowledged)
      machine.deleteStore()
      await machine.restore()

      const lost = await machine.findLost()
      const sinceMs = lostAt - Math.min(lostAt, ...lost.map(({ acknowledgedAt }) => acknowledgedAt))
      process.stdout.write(
        `Litestream: of ${acknowledged.length} acknowledged creates, the last ${lost.length}` +
          ` are lost, of ${sinceMs} ms\n`,
      )
      // Both intervals together are two seconds. The rest is for a machine that is busy.
      expect(sinceMs).toBeLessThan(10_000)
      machine.forget(lost)
      await machine.restart()
    }
  },
)

test.skipIf(!canReplicate)(
  `nothing is lost when Litestream was killed for a while, and stops after the service ${need}`,
  async () => {
    const machine = await Machine.start()
    for (let stop = 1; stop <= scaleRounds(0.2); stop += 1) {
      const load = new Load(machine)
      await machine.replicateMore(2)
      machine.litestream.kill('SIGKILL')
      await machine.litestream
      await load.acknowledgeMore(1000)
      machine.restartLitestream()
      await machine.replicateMore(2)
      machine.service.child.kill('SIGTERM')
      await load.end()
      expect(await machine.service.ended).toMatchObject({ code: 0 })
      machine.litestream.kill('SIGTERM')
      await machine.ended()
      machine.deleteStore()
      await machine.restore()

      expect(await machine.findLost()).toEqual([])
      await machine.restart()
    }
  },
)

let lastId = 0

interface Create {
  id: number
  sentAt: number
  acknowledgedAt: number | undefined
}

type AcknowledgedCreate = Create & { acknowledgedAt: number }

function isAcknowledged(create: Create): create is AcknowledgedCreate {
  return create.acknowledgedAt !== undefined
}

function buildPlant(id: number) {
  return { id, name: `Fern № ${id}`, tag: `Beet ${id % 7}` }
}

/** A service and the Litestream of its store. What the machine does not lose is the replica. */
class Machine {
  /** Each create that was sent, and that no loss has taken back. */
  creates: Create[] = []
  service: ReturnType<typeof launchService>
  litestream: ReturnType<typeof execute>
  readonly socket: string
  readonly #folder: string
  readonly #store: string
  readonly #replica: string
  readonly #config: string

  /** Starts with an empty store, which must exist before Litestream opens it. */
  static async start(): Promise<Machine> {
    const folder = createTemporaryFolder()
    const store = join(folder, 'data/plants.db')
    mkdirSync(join(folder, 'data'), { mode: 0o700 })
    expect(await runPlants(['tokens', 'create', '--store', store])).toMatchObject({ code: 0 })
    const machine = new Machine(folder, store)
    await machine.service.ready
    return machine
  }

  private constructor(folder: string, store: string) {
    this.#folder = folder
    this.#store = store
    this.#replica = join(folder, 'replica')
    this.#config = join(folder, 'litestream.yml')
    this.socket = join(folder, 'socket')
    const config = readFileSync(join(import.meta.dirname, '../../../deploy/litestream.yml'), 'utf8')
      .replace('/var/lib/plants/plants.db', store)
      .replace(/s3:\S+/, `file://${this.#replica}`)
    writeFileSync(this.#config, config)
    mkdirSync(this.#replica)
    this.service = this.#launchService()
    this.litestream = this.#launchLitestream()
  }

  async restart(): Promise<void> {
    this.service = this.#launchService()
    await this.service.ready
    this.restartLitestream()
  }

  restartLitestream(): void {
    this.litestream = this.#launchLitestream()
  }

  #launchService() {
    const service = launchService(['--socket', this.socket, '--log-level', 'error'], this.#folder)
    onTestFinished(async () => {
      service.child.kill('SIGKILL')
      await service.child
    })
    return service
  }

  #launchLitestream() {
    const command = ['litestream', 'replicate', '-config', this.#config]
    const litestream = execute(command, this.#folder, { forceKillAfterDelay: false })
    onTestFinished(async () => {
      litestream.kill('SIGKILL')
      await litestream
    })
    return litestream
  }

  async ended(): Promise<void> {
    await Promise.all([this.service.ended, this.litestream])
  }

  /** Resolves when that many more files with changes are in the replica. */
  async replicateMore(count: number): Promise<void> {
    const before = this.#countReplicaFiles()
    const pollOptions = { interval: 10, timeout: hangLimitsMs.wait }
    const countMore = () => this.#countReplicaFiles() - before
    await expect.poll(countMore, pollOptions).toBeGreaterThanOrEqual(count)
  }

  #countReplicaFiles(): number {
    const names = readdirSync(this.#replica, { recursive: true, encoding: 'utf8' })
    return names.filter((name) => /\.(?:wal\.lz4|ltx)$/.test(name)).length
  }

  /** Deletes the files of the store, and what Litestream keeps next to them. */
  deleteStore(): void {
    rmSync(join(this.#folder, 'data'), { recursive: true })
    expect(existsSync(this.#store)).toBe(false)
    mkdirSync(join(this.#folder, 'data'))
  }

  /** Runs the command of the page, which must not make the store readable for others. */
  async restore(): Promise<void> {
    const page = pages.get('docs/more-machines.md') ?? ''
    const [, command = ''] = /sh -c '(umask 077; litestream restore .*)'$/m.exec(page) ?? []
    const script = command
      .replace('/etc/litestream.yml', this.#config)
      .replace('/var/lib/plants/plants.db', this.#store)
    const { exitCode, stderr } = await execute(['sh', '-c', script], this.#folder)
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 })
    expect(statSync(this.#store).mode & 0o777).toBe(0o600)
    const doctor = await runPlants(['doctor', '--store', this.#store])
    expect(doctor, doctor.out).toMatchObject({ code: 0 })
  }

  /**
   * Returns the acknowledged creates that are not in the restored store. Each plant that is there
   * must be as it was sent, and what is lost must be an end of the commits: a plant that was sent
   * after a create was acknowledged cannot be there without it.
   */
  async findLost(): Promise<AcknowledgedCreate[]> {
    const rows = queryFile(this.#store, 'SELECT id, name, tag FROM plants')
    expect(rows).toEqual(rows.map(({ id }) => buildPlant(Number(id))))
    const restored = new Set(rows.map(({ id }) => Number(id)))
    const sent = new Set(this.creates.map(({ id }) => id))
    expect([...restored].filter((id) => !sent.has(id))).toEqual([])

    const lost = this.creates.filter(isAcknowledged).filter(({ id }) => !restored.has(id))
    const firstLoss = lost.reduce(
      (first, { acknowledgedAt }) => Math.min(first, acknowledgedAt),
      Infinity,
    )
    const sentLater = this.creates.filter(({ sentAt }) => sentAt > firstLoss)
    expect(sentLater.filter(({ id }) => restored.has(id))).toEqual([])
    return lost
  }

  forget(lost: readonly Create[]): void {
    const ids = new Set(lost.map(({ id }) => id))
    this.creates = this.creates.filter(({ id }) => !ids.has(id))
  }
}

const clientCount = 16

/** Clients that create plants, one after the other each, until the service does not answer. */
class Load {
  #isEnding = false
  readonly #machine: Machine
  readonly #clients: Promise<unknown>

  constructor(machine: Machine) {
    this.#machine = machine
    this.#clients = Promise.all(Array.from({ length: clientCount }, () => this.#createPlants()))
  }

  async #createPlants(): Promise<void> {
    const service = { endpoint: { path: this.#machine.socket }, token: testToken }
    while (!this.#isEnding) {
      lastId += 1
      const create: Create = { id: lastId, sentAt: Date.now(), acknowledgedAt: undefined }
      this.#machine.creates.push(create)
      const body = JSON.stringify(buildPlant(create.id))
      const response = await exchangeOnce(service, { body }).catch(() => undefined)
      if (response === undefined) return
      expect(response).toMatchObject({ status: 200 })
      create.acknowledgedAt = Date.now()
    }
  }

  countAcknowledged(): number {
    return this.#machine.creates.filter(isAcknowledged).length
  }

  /** Resolves when that many more creates were acknowledged. */
  async acknowledgeMore(count: number): Promise<void> {
    const wanted = this.countAcknowledged() + count
    const pollOptions = { interval: 10, timeout: hangLimitsMs.wait }
    await expect.poll(() => this.countAcknowledged(), pollOptions).toBeGreaterThanOrEqual(wanted)
  }

  async end(): Promise<void> {
    this.#isEnding = true
    await this.#clients
  }
}
