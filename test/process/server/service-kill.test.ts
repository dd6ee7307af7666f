import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Caller } from '../../helpers/caller.js'
import { DatabaseSync } from '../../helpers/database.js'
import { rounds } from '../../helpers/rounds.js'
import { launch, testToken } from '../../helpers/service.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const kills = rounds(2)
/** In a soak of 15 rounds there are a million of them, with 30 kills: a life as long as that takes a while. */
const creates = rounds(10) > 10 ? rounds(66_667) : 3000
const atOnce = 100
/** by the last kill, at most: each kill leaves some without an answer */
const answered = creates - kills * atOnce
const whole = { lost: [], strange: [], integrity: 'ok' }
const name = `of ${creates} creates none is lost, changed or made twice when the service is killed ${kills} times`

test(name, { timeout: rounds(60_000) }, async () => {
  const folder = temporaryFolder()
  let port = '0'
  const start = () => {
    const service = launch(['--port', port, '--log-level', 'warn'], folder)
    onTestFinished(() => void service.child.kill('SIGKILL'))
    service.ready.catch(() => undefined) // it may be killed before
    return service
  }
  let service = start()
  const { address } = await service.ready
  port = new URL(address).port
  const client = new Client(address)

  for (let kill = 0; kill < kills; kill += 1) {
    await client.createUntilKilled(service, ((kill + Math.random()) * answered) / (kills + 1))
    const early = start()
    const fate = AbortSignal.timeout(Math.ceil(Math.random() * 150)) // as it starts, or soon after
    fate.addEventListener('abort', () => early.child.kill('SIGKILL'))
    await early.ended
    service = start()
    await service.ready
  }
  await client.createTheRest()
  expect(look(folder, client)).toEqual(whole)

  await client.repeat((number) => !client.isAnswered(number))
  await client.repeat(() => true)
  service.child.kill('SIGTERM')
  expect(await service.ended).toMatchObject({ code: 0, err: '' })
  expect(look(folder, client)).toEqual(whole)
})

const leastId = -(2n ** 63n)

/** What the create of a number sends, and what answers it. All creates differ, and their ids need all 64 bits. */
function createOf(number: number) {
  const plant = { name: `Fern № ${number}`, ...(number % 3 > 0 && { tag: `Beet ${number % 7}` }) }
  return { id: leastId + BigInt(number), plant, key: `create-${number}`, answer: `200 ${JSON.stringify(plant)}` }
}

/** Sends creates, and keeps in mind which of them were answered. */
class Client {
  answers = 0
  readonly #isAnswered = new Uint8Array(creates)
  readonly #pool: Caller
  #next = 0

  constructor(address: string) {
    this.#pool = new Caller(address, atOnce)
    onTestFinished(() => this.#pool.destroy())
  }

  isSent(number: number): boolean {
    return number < this.#next
  }

  isAnswered(number: number): boolean {
    return this.#isAnswered[number] === 1
  }

  /** Creates and goes on creating; kills the service when so many creates were answered, with others under way. */
  async createUntilKilled({ child, ended }: ReturnType<typeof launch>, answers: number): Promise<void> {
    await inLanes(async () => {
      const number = this.#next
      this.#next += 1
      const answer = await this.#send(number).catch((error: unknown) => {
        if (!child.killed) throw error
      })
      if (answer !== undefined) this.#take(number, answer)
      if (this.answers >= answers) child.kill('SIGKILL')
      return answer !== undefined
    })
    expect(await ended).toMatchObject({ code: 137, err: '' })
  }

  async createTheRest(): Promise<void> {
    const first = this.#next
    this.#next = creates
    await this.repeat((number) => number >= first)
  }

  async repeat(isMeant: (number: number) => boolean): Promise<void> {
    let next = 0
    await inLanes(async () => {
      while (next < creates && !isMeant(next)) next += 1
      const number = next
      next += 1
      if (number >= creates) return false
      this.#take(number, await this.#send(number))
      return true
    })
  }

  async #send(number: number): Promise<string> {
    const { id, plant, key } = createOf(number)
    const headers = {
      authorization: `Bearer ${testToken}`,
      'content-type': 'application/json',
      'idempotency-key': key,
    }
    const body = `{"id":${id},${JSON.stringify(plant).slice(1)}`
    const answer = await this.#pool.request({ method: 'POST', path: '/plants', headers, body })
    return `${answer.status} ${answer.text}`
  }

  #take(number: number, answer: string): void {
    if (answer !== createOf(number).answer) throw new Error(`Create ${number} was answered with ${answer}`)
    if (!this.isAnswered(number)) this.answers += 1
    this.#isAnswered[number] = 1
  }
}

/** Does work again and again, in many lanes, until it says that there is no more. */
async function inLanes(work: () => Promise<boolean>): Promise<void> {
  const lane = async () => {
    while (await work());
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
}

/** Holds what is in the store, past the program, against what was sent and answered. */
function look(folder: string, client: Client) {
  const db = new DatabaseSync(join(folder, 'data/plants.db'), { readBigInts: true })
  try {
    const isStored = new Uint8Array(creates)
    const strange: unknown[] = []
    for (const row of db.prepare('SELECT id, name, tag, idempotency_key AS key FROM plants').iterate()) {
      const number = Number(row.id - leastId)
      if (isStored[number] !== 0 || !client.isSent(number) || !isAsSent(row, number)) strange.push(row)
      isStored[number] = 1
    }
    const lost = Array.from(isStored.keys()).filter((number) => client.isAnswered(number) && isStored[number] === 0)
    const { integrity_check: integrity } = db.prepare('PRAGMA integrity_check').get()
    return { lost, strange, integrity }
  } finally {
    db.close()
  }
}

function isAsSent(row: Record<string, unknown>, number: number): boolean {
  const { id, plant, key } = createOf(number)
  return row['id'] === id && row['name'] === plant.name && row['tag'] === (plant.tag ?? null) && row['key'] === key
}
