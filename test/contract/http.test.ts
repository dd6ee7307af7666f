import { join } from 'node:path'
import { expect, test } from 'vitest'
import { version } from '../../package.json'
import { runPlants } from '../helpers/sandbox/run.js'
import { queryFile } from '../helpers/sandbox/sqlite-file.js'
import { createPlant, gather, openFile, toCreates } from '../helpers/sandbox/store.js'
import { createTemporaryFolder } from '../helpers/sandbox/temporary-folder.js'
import { buildJsonResponse, ScriptedServer } from '../helpers/scripted-server/scripted-server.js'
import { serveFile, token } from '../helpers/scripted-server/service.js'
import { createAt, openHttp } from '../service/client/steps.js'
import { describeStore } from './contract.js'

describeStore('the service store', async () => {
  const path = join(createTemporaryFolder(), 'plants.db')
  const readBack = async (id: bigint) => {
    const file = await openFile(path)
    try {
      return (await file.get([id])).get(id)
    } finally {
      await file.close()
    }
  }
  return { store: await openHttp(await serveFile(path)), readBack }
})

test('a rejection by a constraint of the service is not reported as an existing id', async () => {
  const path = join(createTemporaryFolder(), 'plants.db')
  const store = await openHttp(await serveFile(path))
  await createPlant(store, { id: 1n, name: 'Fern' })
  queryFile(path, 'CREATE UNIQUE INDEX names ON plants (name)')
  const plant = { id: 2n, name: 'Fern' }
  const outcomes = await store.write([
    { type: 'create', plant, ifExists: 'skip' },
    { type: 'create', plant, ifExists: 'same' },
    { type: 'update', patch: plant, ifMissing: 'create' },
  ])
  const message = expect.stringMatching(/ plant 2: .*plants\.name$/)
  const rejected = { type: 'rejected', problem: { kind: 'rejected', error: 422, message } }
  expect(outcomes).toMatchObject([rejected, rejected, rejected])
})

test('the largest page of a service is listed, in which each letter has six bytes', async () => {
  const path = join(createTemporaryFolder(), 'plants.db')
  const file = await openFile(path)
  const plants = Array.from({ length: 1000 }, (_, index) => {
    // The page ends with the plant with which it has 500,000 letters.
    return { id: BigInt(index), name: '\u0001'.repeat(index === 499 ? 174_000 : 1000) }
  })
  await file.write(toCreates(plants))
  await file.close()
  expect(await gather((await openHttp(await serveFile(path))).read())).toEqual(plants)
})

const posts = [buildJsonResponse(200, { name: 'Fern' })]

// All that the specification asks for, and nothing that it does not know.
test('the request for a create has exactly the bytes of the specification', async () => {
  const service = await ScriptedServer.listen({ posts })
  const argv = ['create', '--store', `${service.url}/v1/`]
  const stdin =
    '{"tag":"sha\\u0064e","id":9223372036854775807,"name":"Caf\u00e9 \\"x\\" \\ud83c\\udf31"}'
  await runPlants(argv, { env: { PLANTS_TOKEN: token }, stdin })
  const key = service.keys[0] ?? ''
  expect(key).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/)
  const body = '{"id":9223372036854775807,"name":"Caf\u00e9 \\"x\\" \u{1f331}","tag":"shade"}'
  const [head, sent] = service.bytes.toString().split('\r\n\r\n')
  expect(sent).toBe(body)
  const [line, ...fields] = head?.split('\r\n') ?? []
  expect(line).toBe('POST /v1/plants HTTP/1.1')
  const named = fields.map((field) => field.replace(/^[^:]*/, (name) => name.toLowerCase()))
  expect(named.toSorted()).toEqual([
    'accept-encoding: identity',
    'accept: application/json',
    `authorization: Bearer ${token}`,
    'connection: keep-alive',
    `content-length: ${Buffer.byteLength(body)}`,
    'content-type: application/json',
    `host: 127.0.0.1:${service.port}`,
    `idempotency-key: ${key}`,
    `user-agent: plants/${version}`,
  ])
})

test.each(['serve', 'backup plants.bak', 'restore plants.bak', 'tokens create'])(
  'plants %s, which works with direct stores only, sends nothing to a service',
  async (line) => {
    const service = await ScriptedServer.listen({ posts })
    const env = { PLANTS_TOKEN: token }
    const { code } = await runPlants([...line.split(' '), '--store', service.url], { env })
    expect({ code, connections: service.connections }).toEqual({ code: 2, connections: 0 })
  },
)

test('a client sends nothing for an invalid plant or key', async () => {
  const service = await ScriptedServer.listen({ posts })
  expect((await createAt(service, ['--id', '1.5'])).code).toBe(2)
  expect((await createAt(service, ['--idempotency-key', 'a b'])).code).toBe(2)
  expect(service.connections).toBe(0)
})
