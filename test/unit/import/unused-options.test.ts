import { gzipSync } from 'node:zlib'
import { beforeEach, expect, test } from 'vitest'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { buildRows, buildWorkbook } from '../../helpers/sandbox/workbook.js'

let sandbox: ImportSandbox

beforeEach(() => {
  sandbox = new ImportSandbox()
  const rows = buildRows(['id', 'name'], ['1', 'Fern'])
  sandbox.write('plants.xlsx', buildWorkbook({ sheets: { Stock: rows } }))
  sandbox.write('plants.csv', 'id,name\n1,Fern\n')
  sandbox.write('plants.csv.gz', gzipSync('id,name\n1,Fern\n'))
  sandbox.write('plants.tsv', 'id\tname\n1\tFern\n')
  sandbox.write('plants.json', '[{"id":1,"name":"Fern"}]')
  sandbox.write('plants.ndjson', '{"id":1,"name":"Fern"}\n')
})

test.each([
  ['plants.csv', '--sheet Stock', '--sheet does'],
  ['plants.csv.gz', '--sheet Stock', '--sheet does'],
  ['plants.tsv', '--delimiter ;', '--delimiter does'],
  ['plants.xlsx', '--encoding latin1', '--encoding does'],
  ['plants.xlsx', '--format csv --delimiter ; --no-quotes', '--format and --delimiter and --no'],
  ['plants.json', '--format json --columns id,name --sheet 1', '--sheet and --columns do'],
  ['plants.ndjson', '--no-quotes', '--no-quotes does'],
])('an import of %s with %s says that it does not apply', async (file, options, start) => {
  const { code, err } = await sandbox.run(`import ${file} ${options} -o text`)
  expect(code).toBe(0)
  expect(err).toMatch(RegExp(`^plants: ${start}.* not apply to ${file}, and w(as|ere) ignored\n$`))
})

test.each([
  ['plants.csv', '--delimiter , --no-quotes --encoding latin1 --format csv'],
  ['plants.tsv', '--delimiter tab'],
  ['plants.xlsx', '--sheet Stock'],
  ['plants.json', '--format json --encoding latin1'],
])('an import of %s with %s says nothing', async (file, options) => {
  expect(await sandbox.run(`import ${file} ${options} -o text`)).toMatchObject({ code: 0, err: '' })
})

test('a rejects file is imported with the options of its input', async () => {
  const rows = buildRows(['id', 'name'], ['x', 'Fern'])
  sandbox.write('stock.xlsx', buildWorkbook({ sheets: { Stock: rows } }))
  await sandbox.run('import stock.xlsx --sheet Stock --rejects rejected.csv')
  const { err } = await sandbox.run('import rejected.csv --sheet Stock -o text')
  expect(err).not.toContain('--sheet')
})
