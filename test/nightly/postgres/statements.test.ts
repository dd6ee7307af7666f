import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import type { Change } from '../../../src/stores/change.js'
import {
  createDatabase,
  type Database,
  openPostgresStore,
} from '../../helpers/postgres/database.js'
import { createPlant, gather, toCreates } from '../../helpers/sandbox/store.js'

/** A proxy in front of a database that keeps what the client sends. */
async function recordStatements(database: Database) {
  const connections: Buffer[][] = []
  const server = createServer((client) => {
    const sent: Buffer[] = []
    connections.push(sent)
    const onward = connect(Number(new URL(database.url).port), '127.0.0.1')
    client.on('data', (chunk) => sent.push(chunk)).pipe(onward)
    onward.pipe(client)
    for (const socket of [client, onward]) socket.on('error', () => socket.destroy())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const url = Object.assign(new URL(database.url), { port }).href
  const readStatements = () =>
    connections.flatMap((sent) => {
      const text = Buffer.concat(sent).toString('latin1')
      return text.match(/(?:SELECT|INSERT|UPDATE|DELETE|COPY) [^;\0]*/g) ?? []
    })
  return { proxied: { ...database, url }, readStatements }
}

test('each statement changes or locks one id only, so that the table may be distributed by id', async () => {
  const { proxied, readStatements } = await recordStatements(await createDatabase())
  const store = await openPostgresStore(proxied)
  const plants = Array.from({ length: 1200 }, (_, id) => ({ id: BigInt(id), name: `Fern ${id}` }))
  await Promise.all(plants.slice(0, 100).map((plant) => createPlant(store, plant, `${plant.id}`)))
  await Promise.all(plants.slice(0, 100).map((plant) => createPlant(store, plant, `${plant.id}`)))
  await store.write(toCreates(plants))
  const updates = plants.map(
    ({ id }): Change => ({ type: 'update', patch: { id, tag: 'wet' }, ifMissing: 'create' }),
  )
  const deletes = plants.slice(0, 300).map(({ id }): Change => ({ type: 'delete', id }))
  await store.transaction(({ write }) => write([...updates, ...deletes]))
  expect(await gather(store.read())).toEqual(
    plants.slice(300).map((plant) => ({ ...plant, tag: 'wet' })),
  )
  const statements = readStatements()
  const countOf = (pattern: RegExp) => statements.filter((text) => pattern.test(text)).length
  expect(countOf(/unnest/)).toBe(0)
  // Those of the rows that are locked, replaced and deleted, in this order
  const ofPlants = '(?:FROM )?plant_store\\.plants'
  const locks = statements.filter((text) => /FOR UPDATE/.test(text))
  const changes = statements.filter((text) => RegExp(`^(?:UPDATE|DELETE) ${ofPlants}`).test(text))
  expect([locks.length, changes.length]).toEqual([1200, 1200])
  const ofOneId = / WHERE id = '\d+'(?: FOR UPDATE)?$/
  expect([...locks, ...changes].filter((text) => !ofOneId.test(text))).toEqual([])
  expect(countOf(/^COPY plant_store/)).toBeGreaterThan(0)
  expect(countOf(/^INSERT INTO plant_store\.plants .* VALUES /)).toBeGreaterThan(0)
})
