import { expect, test } from 'vitest'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { buildRows, buildWorkbook } from '../../helpers/sandbox/workbook.js'

test.each([
  { file: 'plants.csv', options: '--sheet Stock' },
  { file: 'plants.xlsx', options: '--encoding latin1 --format csv --delimiter ; --no-quotes' },
  { file: 'plants.json', options: '--columns id,name --sheet 1' },
  { file: 'semicolons.tsv', options: '--delimiter ;' },
])('an import of $file with $options ignores what is for other formats', async (example) => {
  const sandbox = new ImportSandbox()
  const rows = buildRows(['id', 'name'], ['1', 'Fern'])
  sandbox.write('plants.xlsx', buildWorkbook({ sheets: { Stock: rows } }))
  sandbox.write('plants.csv', 'id,name\n1,Fern\n')
  sandbox.write('semicolons.tsv', 'id;name\n1;Fern\n')
  sandbox.write('plants.json', '[{"id":1,"name":"Fern"}]')
  const result = await sandbox.import(`${example.file} ${example.options}`)
  expect(result).toEqual({ code: 0, created: 1, err: '' })
})
