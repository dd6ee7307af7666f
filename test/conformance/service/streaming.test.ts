import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import type { NewPlant } from '../../../src/plant/plant.js'
import type { Block, ReadableStore } from '../../../src/stores/common/store.js'
import { exchange } from '../../helpers/raw-http.js'
import { runPlants } from '../../helpers/run.js'
import { placeOf, serve, serveStore, testCaller, testToken } from '../../helpers/service.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const created = async ({ name }: NewPlant) => ({ name })
const block: Block = { text: `{"id":1,"name":"${'F'.repeat(65_536)}"}`, plants: 1 }

/** A store whose snapshot gives blocks as `next` has them, and what has become of it. */
function storeWith(next: (count: number) => Promise<Block | undefined>) {
  const seen = { blocks: 0, isEnded: false }
  const store: Pick<ReadableStore, 'create' | 'snapshot' | 'close'> = {
    create: created,
    close: async () => undefined,
    async *snapshot() {
      try {
        for (let found = await next(0); found; found = await next(seen.blocks)) {
          seen.blocks += 1
          yield found
        }
      } finally {
        seen.isEnded = true
      }
    },
  }
  return { store, seen }
}

const endless = async () => block

/** Accepts each token, and calls its holder by its name. */
const namesTokens = async () => (name: string) => ({ ...testCaller, name })

/** Asks for all plants as a stream, of which nothing is read yet. */
async function streamFrom(address: string, query = '', token = testToken): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${token}`, accept: 'application/x-ndjson' }
  const sent = request(`${address}/plants${query}`, { headers, agent: false }).end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  onTestFinished(() => void response.destroy())
  return response
}

/** All of a stream; undefined when it is not complete. */
async function textOf(response: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of response) chunks.push(chunk)
  } catch {
    return undefined
  }
  return response.complete ? Buffer.concat(chunks).toString() : undefined
}

test('a stream has all plants of one moment, in the order of their ids, while others create and delete', async () => {
  const folder = temporaryFolder()
  const lines = Array.from({ length: 30_000 }, (_, index) => `{"id":${3 * (index - 15_000)},"name":"Fern ${index}"}`)
  const env = { PLANTS_DATA_DIR: `${folder}/data` }
  expect((await runPlants(['import'], { env, stdin: [...lines].toReversed().join('\n') })).code).toBe(0)
  const service = await serve(['--allow', 'create,read,delete'], { folder })
  const stream = await streamFrom(service.address, '?after=-45001')
  expect(stream.headers['content-type']).toBe('application/x-ndjson')
  expect((await exchange(service, { body: '{"id":-44999,"name":"Moss"}' })).status).toBe(200)
  expect((await exchange(service, { method: 'DELETE', target: '/plants/44997' })).status).toBe(200)
  expect(await textOf(stream)).toBe(lines.map((line) => `${line}\n`).join(''))
  expect((await textOf(await streamFrom(service.address, '?after=44000&limit=2')))?.split('\n').length).toBe(3)
})

test('a client that stops reading holds up nobody, and costs no more memory than what it did not read', async () => {
  const { store, seen } = storeWith(endless)
  const { address } = await serveStore(store)
  const stream = await streamFrom(address)
  const place = { place: placeOf(address), token: testToken }
  let before = -1
  await expect
    .poll(async () => {
      for (let id = 0; id < 20; id += 1)
        expect((await exchange(place, { body: `{"id":${id},"name":"Fern"}` })).status).toBe(200)
      const isStill = seen.blocks === before
      before = seen.blocks
      return isStill
    })
    .toBe(true)
  expect(seen.blocks).toBeLessThan(500)
  stream.destroy()
  await expect.poll(() => seen.isEnded).toBe(true)
})

test('a stream that fails in its middle is not complete, and the log says so', async () => {
  const { store } = storeWith(async (count) => (count < 3 ? block : Promise.reject(new Error('SECRET disk'))))
  const service = await serveStore(store)
  expect(await textOf(await streamFrom(service.address))).toBeUndefined()
  await expect.poll(() => service.log()).toMatch(/"outcome":"500"/)
})

test('a stream that fails at its start is an Error', async () => {
  const { store } = storeWith(() => Promise.reject(new Error('SECRET disk')))
  const stream = await streamFrom((await serveStore(store)).address)
  expect({ status: stream.statusCode, error: JSON.parse((await textOf(stream)) ?? '{}').error }).toEqual({
    status: 500,
    error: 500,
  })
})

test('a stream without plants is empty, and HEAD gives none', async () => {
  const { store, seen } = storeWith(async () => undefined)
  const { address } = await serveStore(store)
  expect(await textOf(await streamFrom(address))).toBe('')
  seen.isEnded = false
  const head = await fetch(`${address}/plants`, {
    method: 'HEAD',
    headers: { authorization: `Bearer ${testToken}`, accept: 'text/plain, application/x-ndjson;q=0.5' },
  })
  expect([head.status, head.headers.get('content-type'), seen.isEnded]).toEqual([200, 'application/x-ndjson', false])
})

test('a second stream of a token gets 503, until the first has ended, and so does a ninth of all', async () => {
  const { store } = storeWith(endless)
  const { address } = await serveStore(store, { openTokenSource: namesTokens })
  const ask = (token: string) => streamFrom(address, '', token)
  const first = await ask('0')
  const second = await ask('0')
  expect([second.statusCode, second.headers['retry-after'], JSON.parse((await textOf(second)) ?? '{}')]).toEqual([
    503,
    '1',
    { error: 503, message: 'This token is reading a stream already, and may read one at a time' },
  ])
  for (const token of '1234567') expect((await ask(token)).statusCode).toBe(200)
  const ninth = await ask('8')
  expect([ninth.statusCode, ninth.headers['retry-after']]).toEqual([503, '1'])
  first.destroy()
  await expect.poll(async () => (await ask('0')).statusCode).toBe(200)
})

test('a stream has a longest duration, after which a slow reader and a fast one are cut off, and export fails', async () => {
  const { store, seen } = storeWith(async (count) => ({
    text: `{"id":${count},"name":"${'F'.repeat(65_536)}"}`,
    plants: 1,
  }))
  const service = await serveStore(store, { openTokenSource: namesTokens, streamTimeout: 300 })
  const [slow, fast] = [await streamFrom(service.address, '', 'slow'), await streamFrom(service.address, '', 'fast')]
  expect(await textOf(fast)).toBeUndefined()
  await expect.poll(() => service.log().match(/"outcome":"503"/g)?.length).toBe(2)
  await expect.poll(() => seen.isEnded).toBe(true)
  expect(await textOf(slow)).toBeUndefined()
  const env = { PLANTS_TOKEN: 'slow' }
  const { code, err } = await runPlants(['export', '--store', service.address, '--timeout', '5s'], { env })
  expect({ code, err }).toEqual({ code: 4, err: expect.stringContaining('incomplete') })
})

test('two slow readers hold up no export of a third token, and no create', async () => {
  const folder = temporaryFolder()
  const env = { PLANTS_DATA_DIR: `${folder}/data` }
  const lines = Array.from({ length: 400 }, (_, id) => `{"id":${id},"name":"${'F'.repeat(65_536)}"}\n`).join('')
  expect((await runPlants(['import'], { env, stdin: lines })).code).toBe(0)
  const tokens: string[] = []
  for (let count = 0; count < 3; count += 1) tokens.push((await runPlants(['tokens', 'create'], { env })).out.trim())
  const [one = '', two = '', third = ''] = tokens
  const { address, place } = await serve([], { folder, env: {} })
  const readers = [await streamFrom(address, '', one), await streamFrom(address, '', two)]
  expect(readers.map(({ statusCode }) => statusCode)).toEqual([200, 200])
  expect(await textOf(await streamFrom(address, '', third))).toBe(lines)
  expect((await exchange({ place, token: third }, { body: '{"id":-1,"name":"Moss"}' })).status).toBe(200)
  expect(await textOf(await streamFrom(address, '?after=398', third))).toBe(lines.slice(-lines.length / 400 - 1))
})

test('HTTP/1.0, which does not tell the end of a stream, gets none', async () => {
  const { store } = storeWith(endless)
  const place = placeOf((await serveStore(store)).address)
  const { connectTo } = await import('../../helpers/raw-http.js')
  const connection = await connectTo(place)
  const lines = ['GET /plants HTTP/1.0', `Authorization: Bearer ${testToken}`, 'Accept: application/x-ndjson']
  const answer = await connection.send(`${lines.join('\r\n')}\r\n\r\n`).answer()
  expect(answer).toMatchObject({ status: 400, body: expect.stringContaining('use HTTP/1.1') })
})

test('a token that is revoked ends a stream, and so does one that has expired', async () => {
  let isRevoked = false
  let passed = 0
  const { store, seen } = storeWith(endless)
  const openTokenSource = async () => () => (isRevoked ? undefined : testCaller)
  const { address } = await serveStore(store, { openTokenSource, now: () => performance.now() + passed })
  const stream = await streamFrom(address)
  isRevoked = true
  passed = 1000
  expect(await textOf(stream)).toBeUndefined()
  expect(seen.isEnded).toBe(true)
})

test('a drain lets a stream come to its end', async () => {
  let finish = () => {}
  const isFinishing = new Promise<undefined>((resolve) => {
    finish = () => resolve(undefined)
  })
  const { store } = storeWith(async (count) => (count < 2 ? block : isFinishing))
  const service = await serveStore(store)
  const stream = await streamFrom(service.address)
  const drained = service.drain(20_000)
  await expect.poll(() => service.log()).toMatch(/draining/)
  finish()
  expect(await textOf(stream)).toBe(`${block.text}\n${block.text}\n`)
  await drained
})

test('a drain ends a stream that takes longer', async () => {
  const { store, seen } = storeWith(endless)
  const service = await serveStore(store)
  const stream = await streamFrom(service.address)
  await service.drain(100)
  expect(await textOf(stream)).toBeUndefined()
  await expect.poll(() => seen.isEnded).toBe(true)
})

test('clients that leave before their answers keep no place among streams, and none among lists', async () => {
  let waits: (() => void)[] = []
  const store = {
    ...storeWith(endless).store,
    async *list(): AsyncGenerator<NewPlant[]> {
      await new Promise<void>((resolve) => waits.push(resolve))
      yield [{ id: 1n, name: 'F'.repeat(8_388_608) }]
    },
  }
  const service = await serveStore(store, { openTokenSource: namesTokens })
  const { port, hostname } = new URL(service.address)
  const ask = (accept: string) =>
    `GET /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${testToken}\r\nAccept: ${accept}\r\n\r\n`
  // Connections that go away while they are answered: with a stream and another one that waits for it, and with a list.
  for (let round = 0; round < 12; round += 1) {
    const [streams, list] = [connect(Number(port), hostname), connect(Number(port), hostname)]
    streams.on('error', () => undefined).write(ask('application/x-ndjson').repeat(2))
    list.on('error', () => undefined).write(ask('application/json'))
    await once(streams, 'data')
    await expect.poll(() => waits.length, { interval: 5 }).toBe(1)
    for (const socket of [streams, list]) {
      socket.resetAndDestroy()
      await once(socket, 'close')
    }
    for (const resume of waits) resume()
    waits = []
    await expect.poll(() => service.log(), { interval: 5 }).toContain('aborted')
  }
  const stream = await streamFrom(service.address)
  const other = await streamFrom(service.address, '', 'other')
  expect([stream.statusCode, other.statusCode]).toEqual([200, 200])
  const list = exchange({ place: placeOf(service.address), token: testToken }, { method: 'GET', target: '/plants' })
  await expect.poll(() => waits.length, { interval: 5 }).toBe(1)
  for (const resume of waits) resume()
  expect((await list).status).toBe(200)
})
