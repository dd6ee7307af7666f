import { statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { wait } from '../../../src/platform/runtime.js'
import type { Row } from '../../helpers/postgres/database.js'
import { hangLimitsMs } from '../../helpers/sandbox/hang.mjs'
import { scaleRounds, seed } from '../../helpers/sandbox/rounds.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'
import { exchangeOnce } from '../../helpers/scripted-server/raw-http.js'
import { launchService, testToken } from '../../helpers/scripted-server/service.js'

// Callers create plants with keys, and come again until they know, while services are killed and
// databases crash: in the end each plant is there once, as it was sent.

let state = seed
/** In [0, 1), as MINSTD has it. */
export const random = () => {
  state = (state * 48_271) % 2_147_483_647
  return state / 2_147_483_647
}
export const withSeed = `the seed is ${seed}`
export const columns = 'id, name, tag, idempotency_key AS key'

/** A service that is started again where it was when it has ended. */
export class ServiceNode {
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

/**
 * Callers who create plants at nodes in turn, each with a key, and come again until they know. Of 20
 * creates three are sent twice at the same moment, and one repeats another that was answered with 200.
 */
export function crowdOf(wanted: number, atOnce: number, nodes: ServiceNode[]) {
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
