import { expect, test } from 'vitest'
import { buildPlantLine, ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'

// What a record claims by its id. Which plant a record without an id stands for is tested with
// random lists: random-months.test.ts.

test.each([
  { format: 'csv', list: 'id,name,tag\n7,Rose,a,b\n,Iris,\n' },
  { format: 'ndjson', list: '{"id":7,"name":"Rose","Tag":"a","TAG":"b"}\n{"name":"Iris"}\n' },
])('a record of $format that is rejected when it is read claims its id', async (row) => {
  const user = new ImportSandbox()
  const flags = `- --format ${row.format} --by-name`
  const iris = (id: number) => buildPlantLine(id, 'Iris')
  expect(await user.import(flags, row.list)).toMatchObject({ code: 6, created: 1 })
  expect(await user.list()).toBe(iris(8))
  const other = new ImportSandbox()
  await other.import('--format ndjson', iris(7))
  expect(await other.import(`${flags} --if-exists update`, row.list)).toMatchObject({ created: 1 })
  expect(await other.list()).toBe(iris(7) + iris(8))
})

test('with --if-exists update, the last of two records with one id counts, also if the first is equal', async () => {
  const user = new ImportSandbox()
  await user.run('create --id 7 --name Rose')
  const list = buildPlantLine(7, 'Rose') + buildPlantLine(7, 'Iris')
  expect(await user.import('--by-name --if-exists update', list)).toMatchObject({ updated: 1 })
  expect(await user.list()).toBe(buildPlantLine(7, 'Iris'))
})
