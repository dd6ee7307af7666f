import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { NewPlant } from '../../../../src/plant/plant.js'
import type { RecordFormat } from '../../../../src/plant/records.js'
import type { ReadableStore, SnapshotQuery } from '../../../../src/stores/common/store.js'
import { SqliteStore } from '../../../../src/stores/sqlite/sqlite-store.js'
import { newPlant } from '../../../helpers/any-plant.js'
import { batchOf, createAll } from '../../../helpers/bulk.js'
import { fc } from '../../../helpers/fast-check.js'
import { reusedDatabase } from '../../../helpers/postgres.js'
import { rounds } from '../../../helpers/rounds.js'
import { openShared } from '../../../helpers/shared-store.js'
import { closedAfterTest, fileAddress, openOptions } from '../../../helpers/store.js'
import { temporaryFolder } from '../../../helpers/temporary.js'

const database = reusedDatabase()
const kinds: RecordFormat[] = ['json', ',', ';', '|', '\t']

test('writes every plant as an embedded store does, byte for byte', async () => {
  const place = await database()
  const shared = await openShared(place)
  const plants = fc.uniqueArray(newPlant(), { maxLength: 30, selector: ({ id }) => id })
  await fc.assert(
    fc.asyncProperty(plants, async (some) => {
      const file = await SqliteStore.open(fileAddress(join(temporaryFolder(), 'plants.db')), openOptions())
      await place.sql('DELETE FROM plant_store.plants')
      await Promise.all([createAll(shared, batchOf(some)), createAll(file, batchOf(some))])
      for (const record of kinds) expect(await written(shared, { record })).toBe(await written(file, { record }))
      await file.close()
    }),
    { numRuns: rounds(6) },
  )
})

test('writes large plants and many as an embedded store does', async () => {
  const file = closedAfterTest(await SqliteStore.open(fileAddress(join(temporaryFolder(), 'plants.db')), openOptions()))
  const shared = await openShared(await database())
  const plant = (id: number): NewPlant => ({
    id: BigInt(id),
    name: id % 100 === 7 ? '"🌿\t,'.repeat(20_000) : `Fern ${id}`,
    tag: String(id % 3),
  })
  const some = Array.from({ length: 1500 }, (_, id) => plant(id))
  await Promise.all([createAll(shared, batchOf(some)), createAll(file, batchOf(some))])
  for (const query of [{}, { limit: 1001 }, { after: 500n, tag: '1' }]) {
    const asked: SnapshotQuery = { record: 'json', ...query }
    expect((await written(shared, asked)) === (await written(file, asked))).toBe(true)
  }
})

test('reads many of the largest plants at once by their ids, but no record that is endless', async () => {
  const place = await database()
  const store = await openShared(place)
  const insert = 'INSERT INTO plant_store.plants (id, attempt, name)'
  await place.sql(`${insert} SELECT id, 0, repeat('x', 1000000) FROM generate_series(1, 70) AS id`)
  const found = await store.getMany(Array.from({ length: 70 }, (_, index) => BigInt(index + 1)))
  expect([...found.values()].reduce((sum, { name }) => sum + name.length, 0)).toBe(70_000_000)
  await place.sql(`${insert} SELECT 71, 0, repeat('x', 70000000)`)
  await expect(written(store, { record: 'json' })).rejects.toThrow('its response is too large')
})

test('shows plants as they all were at one moment, while others write', async () => {
  const place = await database()
  const store = await openShared(place)
  await createAll(store, batchOf(Array.from({ length: 3000 }, (_, id) => ({ id: BigInt(id), name: 'Fern' }))))
  const blocks = store.snapshot({ record: '\t' })[Symbol.asyncIterator]()
  const first = await blocks.next()
  await store.delete(2999n)
  await store.create({ id: 5000n, name: 'Moss' })
  await place.sql("UPDATE plant_store.plants SET name = 'Ivy' WHERE id > 2000")
  const texts = [first.value?.text]
  for (let block = await blocks.next(); !block.done; block = await blocks.next()) texts.push(block.value.text)
  expect(texts.join('\n').split('\n')).toEqual(Array.from({ length: 3000 }, (_, id) => `${id}\tFern\t`))
})

test('gives its connection back when nobody reads on', async () => {
  const store = await openShared(await database(), { parameters: 'max=1' })
  await createAll(store, batchOf(Array.from({ length: 3000 }, (_, id) => ({ id: BigInt(id), name: 'Fern' }))))
  for await (const _ of store.snapshot({ record: 'json' })) break
  expect(await store.get(2n)).toStrictEqual({ id: 2n, name: 'Fern' })
})

async function written(store: ReadableStore, query: SnapshotQuery): Promise<string> {
  const texts: string[] = []
  for await (const { text } of store.snapshot(query)) texts.push(text)
  return texts.join('\n')
}
