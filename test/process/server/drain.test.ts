import { spawnSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { DatabaseSync } from '../../helpers/database.js'
import { draining, endedIn } from '../../helpers/draining.js'
import { isLinux } from '../../helpers/linux.js'
import { plants } from '../../helpers/process.js'
import { connectTo, exchange, requestBytes } from '../../helpers/raw-http.js'
import { rounds } from '../../helpers/rounds.js'
import { type RunningService, serve, testToken } from '../../helpers/service.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const repeated = { repeats: rounds(1) - 1 }
const patience = { timeout: 10_000, interval: 10 }
const fern = '{"id":1,"name":"Fern"}'

describe.each(['SIGTERM', 'SIGINT'] as const)('%s', (signal) => {
  test('under load: every request that was sent is answered, and every plant is stored', repeated, async () => {
    const service = await serve()
    const { load, clients } = loadOf(service, { clients: 50, atOnce: 1 })
    await expect.poll(() => Math.min(...load.answers), patience).toBeGreaterThan(5)
    expect(await endedIn(5000, service.stop(signal))).toMatchObject({ code: 0 })
    const answered = await clients
    expect(answered).toEqual(Array.from({ length: load.last }, (_, at) => at + 1))
    expect(await idsIn(service)).toEqual(answered)
  })

  test('under load of clients that send several at once: no plant is stored without an answer', repeated, async () => {
    const service = await serve()
    const { load, clients } = loadOf(service, { clients: 20, atOnce: 5 })
    await expect.poll(() => Math.min(...load.answers), patience).toBeGreaterThan(25)
    expect(await endedIn(5000, service.stop(signal))).toMatchObject({ code: 0 })
    expect(await idsIn(service)).toEqual(await clients)
  })

  test('a second time ends it at once', async () => {
    const service = await serve()
    await draining(service, signal)
    // Two that come within a tenth of a second are taken for one.
    const again = setInterval(() => service.kill(signal), 50)
    const { code } = await endedIn(3000, service.ended)
    clearInterval(again)
    expect(code).toBe(signal === 'SIGINT' ? 130 : 143)
  })

  test('right behind the line with the address drains as well', { repeats: 2 }, async () => {
    const service = await serve()
    const { code, out } = await service.stop(signal)
    expect({ code, out }).toEqual({ code: 0, out: `${service.address}\n` })
  })
})

describe('while it drains, a service', () => {
  test.each([[[]], [['--drain-timeout', '24d']]])(
    'answers what it has received, and lets no one in any more (%j)',
    async (args) => {
      const service = await serve(args)
      const connection = await draining(service)
      await expect.poll(() => isRefused(service), patience).toBe(true)
      connection.send(' '.repeat(99 - fern.length))
      const answer = await connection.answer()
      expect(answer).toMatchObject({ status: 200, headers: { connection: 'close' }, body: '{"name":"Fern"}' })
      expect((await service.ended).code).toBe(0)
      expect(await idsIn(service)).toEqual([1])
    },
  )

  test('answers all requests that it has received on one connection, in their turn', async () => {
    const service = await serve()
    const unlock = lock(service)
    const connection = await connectTo(service.place)
    connection.send(
      Buffer.concat([1, 2, 3].map((id) => requestBytes(testToken, { body: `{"id":${id},"name":"Fern ${id}"}` }))),
    )
    // the three came before
    await expect.poll(() => exchange(service, { target: '/nope' }).then(({ status }) => status)).toBe(404)
    service.kill('SIGTERM')
    await expect.poll(() => service.log.map(({ msg }) => msg), patience).toContain('draining')
    unlock()
    const answers = await connection.answers()
    expect(answers.map(({ status, body }) => [status, body])).toEqual(
      [1, 2, 3].map((id) => [200, `{"name":"Fern ${id}"}`]),
    )
    expect((await service.ended).code).toBe(0)
    expect(await idsIn(service)).toEqual([1, 2, 3])
  })

  test.runIf(isLinux)('answers those who stood in the queue of its socket when it was told', async () => {
    const service = await serve()
    service.kill('SIGSTOP')
    const ids = Array.from({ length: 50 }, (_, at) => at + 1)
    const connections = await Promise.all(ids.map(() => connectTo(service.place)))
    for (const id of ids) connections[id - 1]?.send(requestBytes(testToken, { body: `{"id":${id},"name":"Fern"}` }))
    service.kill('SIGTERM')
    service.kill('SIGCONT')
    const answers = await Promise.all(connections.map((connection) => connection.answer()))
    expect(answers.map((answer) => answer?.status)).toEqual(ids.map(() => 200))
    expect((await service.ended).code).toBe(0)
    expect(await idsIn(service)).toEqual(ids)
  })

  test('waits for a client that sends a byte now and then, but not beyond --drain-timeout', async () => {
    const service = await serve(['--drain-timeout', '700ms'])
    const connection = await draining(service)
    const sent = performance.now()
    let isEnded = false
    void service.ended.then(() => {
      isEnded = true
    })
    const drip = () => {
      connection.socket.write(' ')
      return isEnded
    }
    await expect.poll(drip, { timeout: 5000, interval: 100 }).toBe(true)
    expect((await service.ended).code).toBe(0)
    expect(performance.now() - sent).toBeLessThan(4000)
    expect(await idsIn(service)).toEqual([])
  })

  test('does not wait beyond --drain-timeout for a store that is locked either, and stores nothing then', async () => {
    const service = await serve(['--drain-timeout', '500ms'])
    const unlock = lock(service)
    const connection = await connectTo(service.place)
    connection.send(requestBytes(testToken, { body: fern }))
    expect((await exchange(service, { target: '/nope' })).status).toBe(404) // by now the other has come as well
    const { code } = await endedIn(3000, service.stop())
    unlock()
    expect(code).toBe(0)
    expect((await connection.answers()).map(({ status }) => status)).toEqual((await idsIn(service)).map(() => 200))
  })

  test.runIf(isLinux)('is told, and ends, though nobody reads its log', async () => {
    const folder = temporaryFolder()
    const path = join(folder, 'pipe')
    expect(spawnSync('mkfifo', [path]).status).toBe(0)
    const reader = openSync(path, 'r+')
    onTestFinished(() => closeSync(reader))
    const service = await serve(['--drain-timeout', '1s'], { folder, through: ['sh', '-c', 'exec "$@" 2> "$0"', path] })
    const connection = await connectTo(service.place)
    const requests = Buffer.concat(Array.from({ length: 30 }, () => requestBytes(testToken, { target: '/nope' })))
    for (let round = 0; round < 34; round += 1) {
      connection.send(requests)
      for (let count = 0; count < 30; count += 1) expect((await connection.answer())?.status).toBe(404)
    }
    expect((await endedIn(4000, service.stop())).code).toBeOneOf([0, 143])
  })

  test('does not wait for connections that are idle, or never brought a byte', async () => {
    const service = await serve(['--drain-timeout', '9s'])
    await connectTo(service.place)
    const used = await connectTo(service.place)
    expect((await used.send(requestBytes(testToken, { body: fern })).answer())?.status).toBe(200)
    expect(await endedIn(3000, service.stop())).toMatchObject({ code: 0 })
  })
})

interface Load {
  /** the last id that was given away; the first is 1 */
  last: number
  /** how many each client has got */
  answers: number[]
}

/**
 * Many clients, each of which creates so many plants at once on a connection of its own, until the service closes it.
 */
function loadOf(service: RunningService, { clients, atOnce }: { clients: number; atOnce: number }) {
  const load: Load = { last: 0, answers: Array.from({ length: clients }, () => 0) }
  const work = Promise.all(load.answers.map((_, client) => createUntilClosed(service, load, { client, atOnce })))
  work.catch(() => undefined) // it is looked at when the service has ended
  return { load, clients: work.then((ids) => ids.flat().toSorted((a, b) => a - b)) }
}

/**
 * @returns the ids that were answered with 200. Any other answer is an error, and so is none at all to a lone request.
 */
async function createUntilClosed(
  service: RunningService,
  load: Load,
  { client, atOnce }: { client: number; atOnce: number },
): Promise<number[]> {
  const connection = await connectTo(service.place)
  const answered: number[] = []
  for (let isOpen = true; isOpen; ) {
    const sent = Array.from({ length: atOnce }, () => {
      load.last += 1
      return load.last
    })
    connection.send(Buffer.concat(sent.map((id) => requestBytes(testToken, { body: `{"id":${id},"name":"Fern"}` }))))
    for (const id of sent) {
      const answer = await connection.answer()
      if (!answer && atOnce > 1) return answered
      if (answer?.status !== 200) throw new Error(`${id} was sent, and the answer was ${answer?.status}`)
      answered.push(id)
      load.answers[client] = answered.length
      isOpen = answer.headers['connection'] !== 'close'
    }
  }
  return answered
}

/** Takes the write lock of the store, and gives what lets it go. */
function lock({ folder }: RunningService): () => void {
  const db = new DatabaseSync(join(folder, 'data/plants.db'))
  onTestFinished(() => db.close())
  db.exec('BEGIN IMMEDIATE')
  return () => db.exec('ROLLBACK')
}

function isRefused({ place }: RunningService): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(place)
    socket.once('connect', () => resolve(false)).once('error', () => resolve(true))
    socket.once('connect', () => socket.destroy())
  })
}

async function idsIn({ folder }: RunningService): Promise<number[]> {
  const { code, out } = await plants(['list'], folder)
  expect(code).toBe(0)
  return [...out.matchAll(/^\{"id":(\d+),/gm)].map((match) => parseInt(match[1] ?? '', 10))
}
