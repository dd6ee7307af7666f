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
  { file: 'plants.csv', options: '--sheet Stock', start: '--sheet does' },
  { file: 'plants.csv.gz', options: '--sheet Stock', start: '--sheet does' },
  { file: 'plants.tsv', options: '--delimiter ;', start: '--delimiter does' },
  { file: 'plants.xlsx', options: '--encoding latin1', start: '--encoding does' },
  {
    file: 'plants.xlsx',
    options: '--format csv --delimiter ; --no-quotes',
    start: '--format and --delimiter and --no',
  },
  {
    file: 'plants.json',
    options: '--format json --columns id,name --sheet 1',
    start: '--sheet and --columns do',
  },
  { file: 'plants.json', options: '--delimiter ;', start: '--delimiter does' },
  { file: 'plants.ndjson', options: '--columns id,name', start: '--columns does' },
  { file: 'plants.ndjson', options: '--no-quotes', start: '--no-quotes does' },
])(
  'an import of $file with $options warns that the option does not apply',
  async ({ file, options, start }) => {
    const { code, err } = await sandbox.run(`import ${file} ${options} -o text`)
    expect(code).toBe(0)
    expect(err).toMatch(
      RegExp(`^plants: ${start}.* not apply to ${file}, and w(as|ere) ignored\n$`),
    )
  },
)

test.each([
  { file: 'plants.csv', options: '--delimiter , --no-quotes --encoding latin1 --format csv' },
  { file: 'plants.tsv', options: '--delimiter tab' },
  { file: 'plants.xlsx', options: '--sheet Stock' },
  { file: 'plants.json', options: '--format json --encoding latin1' },
])('an import of $file with $options warns of nothing', async ({ file, options }) => {
  expect(await sandbox.run(`import ${file} ${options} -o text`)).toMatchObject({ code: 0, err: '' })
})

test('a rejects file is imported with the options of its input', async () => {
  const rows = buildRows(['id', 'name'], ['x', 'Fern'])
  sandbox.write('stock.xlsx', buildWorkbook({ sheets: { Stock: rows } }))
  await sandbox.run('import stock.xlsx --sheet Stock --rejects rejected.csv')
  const { err } = await sandbox.run('import rejected.csv --sheet Stock -o text')
  expect(err).not.toContain('--sheet')
})
