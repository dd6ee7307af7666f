import { expect, test } from 'vitest'
import { pages } from '../../helpers/expect/documents.js'
import {
  createDatabase,
  openPostgresStore,
  partitionPlants,
} from '../../helpers/postgres/database.js'
import { createPlant, gather } from '../../helpers/sandbox/store.js'

test.each(['one table', 'partitions'])(
  'lists and counts by tag use the index that the page about more machines creates, with %s',
  async (layout) => {
    const database = await createDatabase()
    if (layout === 'partitions') await partitionPlants(database)
    const page = pages.get('docs/more-machines.md') ?? ''
    const [, statement = ''] = /^```text\n(CREATE INDEX [^`]*)```$/m.exec(page) ?? []
    await database.query(statement)
    const store = await openPostgresStore(database)
    await createPlant(store, { id: 1n, name: 'Fern', tag: 'shade' })
    await createPlant(store, { id: 2n, name: 'Moss' })

    expect(await gather(store.read({ tag: 'shade' }))).toMatchObject([{ id: 1n }])
    expect(await store.count({ tag: 'shade' })).toBe(1n)
    // Of few plants, PostgreSQL would read the whole table.
    const plan = await database.query(`
      SET enable_seqscan = off;
      EXPLAIN SELECT count(*) FROM plant_store.plants WHERE tag IN ('shade')`)
    expect(JSON.stringify(plan)).toMatch(/Index.*(?:by_tag|tag_id_idx)/)
  },
)
