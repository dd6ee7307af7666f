import { expect, test } from 'vitest'
import { reusedServer } from '../../../helpers/postgres.js'
import { settled } from '../../../helpers/settled.js'
import { openShared, othersWait } from '../../../helpers/shared-store.js'

const server = reusedServer({ settings: ['max_connections = 10', 'superuser_reserved_connections = 3'] })
const ids = (count: number, first = 0) => Array.from({ length: count }, (_, index) => BigInt(first + index))
const fern = { id: 1n, name: 'Fern' }
const stored = 'SELECT id, idempotency_key AS key FROM plant_store.plants ORDER BY id'

test.each([
  ['is restarted as if it had crashed', 'restart'],
  ['ends every connection', 'terminate'],
])('loses and doubles nothing when the server %s under load', async (_, how) => {
  const place = await server()
  const store = await openShared(place, { timeout: 30_000 })
  const keyOf = (id: bigint) => (id % 2n === 0n ? `key-${id}` : undefined)
  const calls = ids(3000).map((id) => store.create({ id, name: `Fern ${id}` }, { idempotencyKey: keyOf(id) }))
  const answers = settled(calls)
  await Promise.race(calls) // the other batches are in flight
  if (how === 'terminate')
    await place.admin("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'plants'")
  else {
    await place.stop('immediate')
    await place.start()
  }
  expect(await answers).toStrictEqual(ids(3000).map((id) => ({ name: `Fern ${id}` })))
  expect(await place.sql(stored)).toEqual(ids(3000).map((id) => ({ id, key: keyOf(id) ?? null })))
})

test('says in time that nothing was stored when the server does not come back, and goes on when it does', async () => {
  const place = await server()
  const [hasty, patient] = [await openShared(place, { timeout: 1000 }), await openShared(place)]
  await place.stop('fast')
  const start = performance.now()
  const [kind] = await settled([hasty.create(fern)])
  expect(kind).toMatch(/^unavailable: Could not reach postgres:/)
  expect(performance.now() - start).toBeLessThan(2700)
  const moss = patient.create({ id: 2n, name: 'Moss' })
  await place.start()
  expect(await moss).toStrictEqual({ name: 'Moss' })
})

test('stores nothing of what has waited too long for a lock', async () => {
  const place = await server()
  const store = await openShared(place, { timeout: 1000 })
  const release = await place.hold('LOCK TABLE plant_store.plants IN EXCLUSIVE MODE')
  const calls = settled([store.create(fern), store.create({ id: 2n, name: 'Moss' }, { idempotencyKey: 'two' })])
  const late = expect.stringMatching(/^unavailable: .* did not finish in time$/)
  expect(await calls).toEqual([late, late])
  await release()
  expect(await place.sql(stored)).toEqual([])
  expect(await store.create(fern)).toStrictEqual({ name: 'Fern' })
})

test('stores nothing of creates that have waited too long for others with the same id, and says so in time', async () => {
  const place = await server()
  const store = await openShared(place, { timeout: 1000 })
  const release = await place.hold("INSERT INTO plant_store.plants (id, attempt, name) VALUES (1, 1, 'Moss')")
  const start = performance.now()
  const late = expect.stringMatching(/^unavailable: /)
  expect(await settled(Array.from({ length: 5 }, () => store.create(fern)))).toEqual(
    Array.from({ length: 5 }, () => late),
  )
  expect(performance.now() - start).toBeLessThan(2900)
  await release()
  expect(await place.sql(stored)).toEqual([])
})

test('creates the others while one waits for a lock', async () => {
  const place = await server()
  const store = await openShared(place)
  const release = await place.hold("INSERT INTO plant_store.plants (id, attempt, name) VALUES (1, 1, 'Moss')")
  const blocked = settled([store.create(fern)])
  await othersWait(place, 1)
  expect(await store.create({ id: 2n, name: 'Moss' })).toStrictEqual({ name: 'Moss' })
  await release()
  expect(await blocked).toStrictEqual([{ name: 'Fern' }])
})

test('waits while the database is read-only, says so in time, and goes on', async () => {
  const place = await server()
  const notNow = expect.stringMatching(/^unavailable: .* is not read-write now$/)
  const [hasty, patient] = [await openShared(place, { timeout: 1000 }), await openShared(place)]
  const set = async (value: string) => {
    await place.admin(`ALTER SYSTEM SET default_transaction_read_only = ${value}`)
    await place.admin('SELECT pg_reload_conf()')
  }
  await hasty.check()
  await set('on')
  await expect.poll(() => settled([hasty.check()]), { interval: 5 }).toEqual([notNow])
  await expect.poll(() => settled([hasty.create(fern)]), { interval: 5 }).toEqual([notNow])
  const moss = patient.create({ id: 2n, name: 'Moss' })
  await set('off')
  expect(await Promise.all([moss, patient.create({ id: 3n, name: 'Fern' })])).toStrictEqual([
    { name: 'Moss' },
    { name: 'Fern' },
  ])
})

test('waits for a connection while others have them all, says so in time, and goes on', async () => {
  const place = await server()
  const tries = { hasty: 0, patient: 0 }
  const clockOf = (who: keyof typeof tries) => {
    const random = () => {
      tries[who] += 1 // each is followed by a pause of random length
      return 0
    }
    return { signal: new AbortController().signal, now: () => performance.now(), random }
  }
  const [hasty, patient] = [
    await openShared(place, { timeout: 1000, clock: clockOf('hasty') }),
    await openShared(place, { clock: clockOf('patient') }),
  ]
  await place.admin("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'plants'")
  const others = await Promise.all(ids(7).map(() => openShared(place, { parameters: 'application_name=other' })))
  const noneLeft = expect.stringMatching(/^unavailable: .* has no free connection$/)
  await expect.poll(() => settled([hasty.create(fern)]), { interval: 5 }).toEqual([noneLeft])
  const before = tries.hasty
  const moss = patient.create({ id: 2n, name: 'Moss' })
  await expect.poll(() => tries.patient, { interval: 5 }).toBeGreaterThan(6)
  expect(tries.hasty).toBeLessThanOrEqual(before + 1) // nobody waits for a connection any more
  await hasty.close()
  await others[0]?.close()
  expect(await moss).toStrictEqual({ name: 'Moss' })
})
