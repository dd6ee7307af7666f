import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createLineFormat } from '../../../../src/formats/lines.js'
import { largestId, smallestId } from '../../../../src/plant/fields.js'
import type { NewPlant } from '../../../../src/plant/plant.js'
import type { ReadQuery } from '../../../../src/stores/query.js'
import { SqliteStore } from '../../../../src/stores/sqlite/store.js'
import type { LineFormat } from '../../../../src/stores/store.js'
import { check, fc, generateNewPlant } from '../../../helpers/expect/arbitraries.js'
import { DatabaseSync } from '../../../helpers/sandbox/sqlite-file.js'
import {
  buildSqliteOptions,
  closeAfterTest,
  createFileAddress,
} from '../../../helpers/sandbox/store.js'
import { createTemporaryFolder } from '../../../helpers/sandbox/temporary-folder.js'

const formats = (['ndjson', 'csv', 'tsv'] as const).map((name) => {
  const format: LineFormat | undefined = createLineFormat(name)
  if (!format) throw new Error(`${name} has no lines`)
  return format
})

async function openStore(plants: readonly NewPlant[] = []) {
  const path = join(createTemporaryFolder(), 'plants.db')
  const store = closeAfterTest(
    await SqliteStore.openOrCreate(createFileAddress(path), buildSqliteOptions()),
  )
  await addPlants(store, plants)
  return { store, path }
}

/** An id that occurs twice keeps its first plant. */
async function addPlants(store: SqliteStore, plants: readonly NewPlant[]): Promise<void> {
  await store.write(plants.map((plant) => ({ type: 'create', plant, ifExists: 'skip' })))
}

/** Runs SQL through another connection, as another program does. */
function exec(path: string, sql: string): void {
  const db = new DatabaseSync(path)
  db.exec(sql)
  db.close()
}

async function collectLines(store: SqliteStore, query: ReadQuery, format: LineFormat) {
  let [text, length] = ['', 0]
  for await (const lines of store.readLines(query, format)) {
    text += Buffer.from(lines.content).toString()
    length += lines.length
  }
  return { text, length }
}

/** Formats the plants that `read` finds, one by one. */
async function formatPlants(store: SqliteStore, query: ReadQuery, format: LineFormat) {
  let [text, length] = ['', 0]
  for await (const plants of store.read(query))
    for (const plant of plants) {
      text += format.format(plant)
      length += 1
    }
  return { text, length }
}

async function expectEqualLines(store: SqliteStore, query: ReadQuery = {}): Promise<number> {
  let count = 0
  for (const format of formats) {
    const expected = await formatPlants(store, query, format)
    expect(await collectLines(store, query, format)).toEqual(expected)
    count = expected.length
  }
  return count
}

test('any plants are read as the same lines in a block as one by one', async () => {
  const { store, path } = await openStore()
  await check(60, [fc.array(generateNewPlant())], async (plants) => {
    exec(path, 'DELETE FROM plants')
    await addPlants(store, plants)
    await expectEqualLines(store)
  })
})

const oddTexts = [
  ...['', ' ', '#N/A', '"', '""', ',', '"a",', '\\N', '\\', '\\n', '\\N\t', 'a\tb', '\t', '\n'],
  ...['a\n5\tFern\t\\N', 'a\tb\n6\tMoss', 'Fern\n', '+', '\u0001', '\u2028', 'x'.repeat(300)],
]

test.each(oddTexts)(
  'the string %j is read as the same lines in a block as one by one',
  async (text) => {
    const { store } = await openStore([
      { id: smallestId, name: text, tag: text },
      { id: -1n, name: text },
      { id: 0n, name: 'Fern', tag: text },
      { id: 7n, name: text, tag: 'wet' },
      { id: largestId, name: 'Moss' },
    ])
    expect(await expectEqualLines(store)).toBe(5)
  },
)

test('each of many rows in steps is read once as a line, also if some rows are large', async () => {
  const { store } = await openStore(
    Array.from({ length: 12_000 }, (_, index) => {
      const isLarge = index % 4000 === 3999
      return { id: BigInt(index), name: isLarge ? 'x'.repeat(200_000) : `Fern ${index}` }
    }),
  )
  expect(await expectEqualLines(store)).toBe(12_000)
})

test('lines obey filters, orders and limits, also with an index of another order', async () => {
  const { store, path } = await openStore(
    Array.from({ length: 40 }, (_, index) => {
      const plant = { id: BigInt(index), name: `Fern ${40 - index}` }
      return index % 3 === 0 ? plant : { ...plant, tag: index % 2 === 0 ? 'wet' : 'shade' }
    }),
  )
  exec(path, 'CREATE INDEX by_tag ON plants (tag, name)')
  const queries: [ReadQuery, number][] = [
    [{ tag: 'wet' }, 13],
    [{ tag: false }, 14],
    [{ tag: 'dry' }, 0],
    [{ after: 29n }, 10],
    [{ after: 29n, tag: 'wet' }, 3],
    [{ limit: 7 }, 7],
    [{ desc: true, after: 30n }, 30],
    [{ sort: 'name', limit: 3 }, 3],
    [{ search: 'fern 1' }, 11],
  ]
  for (const [query, count] of queries) expect(await expectEqualLines(store, query)).toBe(count)
})

test('the lines of a read are of one snapshot', async () => {
  const { store } = await openStore(
    Array.from({ length: 12_000 }, (_, index) => ({ id: BigInt(index), name: 'Fern' })),
  )
  const [format] = formats
  if (!format) throw new Error('there is no format')
  let length = 0
  for await (const lines of store.readLines({}, format)) {
    length += lines.length
    await addPlants(store, [{ id: BigInt(1_000_000 + length), name: 'Moss' }])
  }
  expect(length).toBe(12_000)
})

/** Values that another program stored, in a table whose columns take any type. */
async function openDamaged(values: string): Promise<SqliteStore> {
  const { store, path } = await openStore([{ id: 1n, name: 'Fern' }])
  const sql = `DROP TABLE plants;
    CREATE TABLE plants (id INTEGER PRIMARY KEY, name, tag, idempotency_key);
    INSERT INTO plants (id, name, tag) VALUES (1, 'Fern', NULL), ${values}`
  exec(path, sql)
  return store
}

test.each([
  { values: "(2, CAST(x'46ff' AS TEXT), NULL)", count: 2 },
  { values: "(2, 'Fern', CAST(x'eda080' AS TEXT))", count: 2 },
  { values: "(2, 'a' || char(0) || 'b', char(0))", count: 2 },
])(
  'the strings $values of another program are read as the same lines in a block as one by one',
  async ({ values, count }) => {
    expect(await expectEqualLines(await openDamaged(values))).toBe(count)
  },
)

test.each([
  "(2, x'00ff', NULL)",
  "(2, x'', NULL)",
  '(2, 7, NULL)',
  '(2, NULL, NULL)',
  "(2, 'Fern', 7.5)",
  "(2, 'Fern', x'')",
  "(2, 7, NULL), (3, 'Fern', 'a' || char(10) || '5' || char(9) || 'x' || char(9) || 'y')",
])('the values %s of another program are not read as lines', async (values) => {
  const store = await openDamaged(values)
  for (const format of formats)
    await expect(collectLines(store, {}, format)).rejects.toMatchObject({
      kind: 'accessDenied',
      message: expect.stringContaining('is damaged'),
    })
})
