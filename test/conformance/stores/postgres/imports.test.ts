import { expect, test } from 'vitest'
import { reuseDatabase } from '../../../helpers/postgres/database.js'
import { ImportSandbox } from '../../../helpers/sandbox/import-sandbox.js'

const getDatabase = reuseDatabase()
/** Of several chunks, each of which is stored by COPY. */
const recordCount = 20_000

test('an import that stops has generated no id for the chunk that it read ahead', async () => {
  const database = await getDatabase()
  const user = new ImportSandbox()
  const names = Array.from({ length: recordCount }, (_, index) => `{"name":"Fern ${index}"}\n`)
  names[1] = '{"name":1}\n'
  user.write('plants', names.join(''))
  const command = `plants --id-from 1 --max-errors 1 --store ${database.url}`
  const first = await user.import(command, undefined, { env: database.env })
  expect(first).toMatchObject({ code: 6, rejected: { 422: 1 } })
  expect(first.created).toBeLessThan(recordCount - 1)
  expect(await user.import(command, undefined, { env: database.env })).toMatchObject({
    code: 6,
    created: recordCount - 1,
    err: expect.stringContaining('Resuming an interrupted import'),
  })
  const range = 'SELECT min(id)::int, max(id)::int, count(*)::int FROM plant_store.plants'
  expect(await database.sql(range)).toEqual([
    { min: 1, max: recordCount - 1, count: recordCount - 1 },
  ])
})

test('a line that is too large ends an import after the chunk before it', async () => {
  const database = await getDatabase()
  const user = new ImportSandbox()
  const rows = Array.from({ length: recordCount }, (_, id) => `${id},Fern\n`)
  user.write('plants.csv', `id,name\n${rows.join('')}1,${'long '.repeat(300_000)}\n`)
  const command = `plants.csv --store ${database.url}`
  const { code, err } = await user.import(command, undefined, { env: database.env })
  expect([code, err]).toEqual([2, expect.stringContaining(`plants.csv:${recordCount + 2}`)])
  const count = async () => {
    const [row] = await database.sql('SELECT count(*)::int FROM plant_store.plants')
    return Number(row?.['count'])
  }
  const stored = await count()
  expect(stored).toBeGreaterThan(0)
  user.write('plants.csv', `id,name\n${rows.join('')}`)
  const again = await user.import(`${command} --restart`, undefined, { env: database.env })
  expect(again).toMatchObject({ code: 0, skipped: stored })
  expect(await count()).toBe(recordCount)
})
