import { expect, test } from 'vitest'
import type { NewPlant } from '../../../../src/plant/plant.js'
import type { RecordFormat } from '../../../../src/plant/records.js'
import type { ReadableStore, SnapshotQuery } from '../../../../src/stores/common/store.js'
import { newPlant } from '../../../helpers/any-plant.js'
import { batchOf, createAll } from '../../../helpers/bulk.js'
import { fc } from '../../../helpers/fast-check.js'
import { reusedDatabase } from '../../../helpers/postgres.js'
import { rounds } from '../../../helpers/rounds.js'
import { openEmbedded, openShared } from '../../../helpers/shared-store.js'

const database = reusedDatabase()
const kinds: RecordFormat[] = ['json', ',', ';', '|', '\t']
const ferns = (count: number) => Array.from({ length: count }, (_, id) => ({ id: BigInt(id), name: 'Fern' }))

test('writes every plant as an embedded store does, byte for byte', async () => {
  const place = await database()
  const shared = await openShared(place)
  const plants = fc.uniqueArray(newPlant(), { maxLength: 30, selector: ({ id }) => id })
  await fc.assert(
    fc.asyncProperty(plants, async (some) => {
      const file = await openEmbedded()
      await place.sql('DELETE FROM plant_store.plants')
      await Promise.all([createAll(shared, batchOf(some)), createAll(file, batchOf(some))])
      for (const record of kinds) expect(await written(shared, { record })).toBe(await written(file, { record }))
    }),
    { numRuns: rounds(6) },
  )
})

test('writes large plants and many as an embedded store does', async () => {
  const [shared, file] = [await openShared(await database()), await openEmbedded()]
  const name = (id: number) => (id % 100 === 7 ? '"🌿\t,'.repeat(20_000) : `Fern ${id}`)
  const some = Array.from({ length: 1500 }, (_, id): NewPlant => ({ id: BigInt(id), name: name(id), tag: `${id % 3}` }))
  await Promise.all([createAll(shared, batchOf(some)), createAll(file, batchOf(some))])
  for (const query of [{}, { limit: 1001 }, { after: 500n, tag: '1' }]) {
    const asked: SnapshotQuery = { record: 'json', ...query }
    expect((await written(shared, asked)) === (await written(file, asked))).toBe(true)
  }
})

test('reads many of the largest plants at once by their ids, but no endless record', async () => {
  const place = await database()
  const store = await openShared(place)
  const insert = 'INSERT INTO plant_store.plants (id, attempt, name)'
  await place.sql(`${insert} SELECT id, 0, repeat('x', 1000000) FROM generate_series(0, 69) AS id`)
  const found = await store.getMany(ferns(70).map(({ id }) => id))
  expect([...found.values()].reduce((sum, { name }) => sum + name.length, 0)).toBe(70_000_000)
  await place.sql(`${insert} SELECT 71, 0, repeat('x', 70000000)`)
  await expect(written(store, { record: 'json' })).rejects.toThrow('its response is too large')
})

test('gives its connection back when nobody reads on', async () => {
  const store = await openShared(await database(), { parameters: 'max=1' })
  await createAll(store, batchOf(ferns(3000)))
  for await (const _ of store.snapshot({ record: 'json' })) break
  expect(await store.get(2n)).toStrictEqual({ id: 2n, name: 'Fern' })
})

async function written(store: ReadableStore, query: SnapshotQuery): Promise<string> {
  const texts: string[] = []
  for await (const { text } of store.snapshot(query)) texts.push(text)
  return texts.join('\n')
}
