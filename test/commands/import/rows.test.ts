import { beforeEach, expect, test } from 'vitest'
import { buildPlantLine, ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { DatabaseSync } from '../../helpers/sandbox/sqlite-file.js'

// Files of several blocks, whose ordinary rows are created without a change for each.

const count = 24_000
let user: ImportSandbox

beforeEach(() => {
  user = new ImportSandbox()
})

/** The rows of a file in no order of ids, with one instead of some. */
function writeCsv(name: string, replaced: Record<number, string> = {}): void {
  const rows = Array.from({ length: count }, (_, row) => {
    const id = (row * 7919) % count
    return replaced[row] ?? `${id},"Fern ${id}","in the shade"\n`
  })
  user.write(name, `id,name,tag\n${rows.join('')}`)
}

const listIds = async () => {
  const { out } = await user.run('list --output csv')
  return out
    .split('\n')
    .slice(1, -1)
    .map((row) => Number(row.split(',')[0]))
}
const allIds = Array.from({ length: count }, (_, id) => id)

test('an import stores rows in any order once each', async () => {
  writeCsv('plants.csv')
  expect(await user.import('plants.csv')).toMatchObject({ code: 0, created: count })
  expect(await listIds()).toEqual(allIds)
  expect(await user.run('get 7919')).toMatchObject({
    out: buildPlantLine(7919, 'Fern 7919').replace('}', ',"tag":"in the shade"}'),
  })
  expect(await user.import('plants.csv')).toMatchObject({ code: 0, skipped: count })
})

test('an import rejects only rows that are invalid or whose id exists, and names their lines', async () => {
  await user.run('create --id 5 --name Oak')
  const replaced = { 11000: '5x,Fern,\n', 23000: '1,"two\nlines",\n' }
  writeCsv('plants.csv', replaced)
  const ids = [11_000, 23_000].map((row) => (row * 7919) % count)
  const lost = allIds.filter((id) => ids.includes(id))
  const result = await user.import('plants.csv --rejects bad')
  expect(result).toMatchObject({ code: 6, created: count - 3, rejected: { 409: 2, 422: 1 } })
  expect(await listIds()).toEqual(allIds.filter((id) => !lost.includes(id)))
  const lines = user
    .read('bad')
    .split('\n')
    .slice(1, -1)
    .map((row) => row.split(',')[0])
  expect(lines).toContain('11002')
})

test.each([
  ["RAISE(ABORT, 'no ferns')"],
  ["RAISE(FAIL, 'no ferns')"],
  ["RAISE(ROLLBACK, 'no ferns')"],
  ['RAISE(IGNORE)'],
])('an import rejects only the row for which a trigger calls %s', async (raise) => {
  await user.run('create --id -1 --name Oak')
  const db = new DatabaseSync(user.store)
  db.exec(`CREATE TRIGGER t BEFORE INSERT ON plants WHEN NEW.id = 20000 BEGIN SELECT ${raise}; END`)
  db.close()
  writeCsv('plants.csv')
  const isRolledBack = raise.includes('ROLLBACK')
  const result = await user.import('plants.csv')
  if (isRolledBack) expect(result.code).not.toBe(0)
  else expect(result).toMatchObject({ code: 6, created: count - 1 })
  const ids = await listIds()
  expect(ids).not.toContain(20_000)
  expect(new Set(ids).size).toBe(ids.length)
})

test('an import with --atomic stores nothing if a row is rejected', async () => {
  writeCsv('plants.csv', { 20000: 'x,Fern,\n' })
  expect((await user.import('plants.csv --atomic')).code).toBe(6)
  expect(await listIds()).toEqual([])
})
