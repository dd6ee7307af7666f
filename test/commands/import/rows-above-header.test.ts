import { gzipSync } from 'node:zlib'
import { beforeEach, expect, test } from 'vitest'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { buildRows, buildSheetWorkbook } from '../../helpers/sandbox/workbook.js'

// Rows above the header are not read. If they may be plants, a warning says how many there are.

let sandbox: ImportSandbox

beforeEach(() => {
  sandbox = new ImportSandbox()
})

const rows = [
  ['10', 'A', 't'],
  ['11', 'B', 't'],
  ['id', 'name', 'tag'],
  ['12', 'C', 't'],
]
const format = (delimiter: string) => rows.map((row) => `${row.join(delimiter)}\n`).join('')
const warning = (file: string) =>
  `plants: The header is in line 3 of ${file}. Not read above it: 2 rows. ` +
  'If plants are there, move the header to line 1, and run the command again\n'

test.each([
  { file: 'late.csv', content: format(',') },
  { file: 'semicolons.csv', content: format(';') },
  { file: 'late.tsv', content: format('\t') },
  { file: 'late.csv.gz', content: gzipSync(format(',')) },
  { file: 'late.xlsx', content: buildSheetWorkbook(buildRows(...rows)) },
])('an import of $file says that two rows above the header were not read', async (example) => {
  const { file, content } = example
  sandbox.write(file, content)
  const dryRun = await sandbox.import(`${file} --dry-run`)
  expect(dryRun).toEqual({ code: 0, dryRun: true, created: 1, err: warning(file) })
  expect(await sandbox.import(file)).toEqual({ code: 0, created: 1, err: warning(file) })
  expect(await sandbox.import(`${file} --quiet`)).toMatchObject({ code: 0, err: '' })
  const fromPipe = await sandbox.import('', content)
  expect(fromPipe).toEqual({ code: 0, skipped: 1, err: warning('stdin') })
})

test('an import stores the rows above the header after what its warning says', async () => {
  sandbox.write('late.csv', format(','))
  await sandbox.import('late.csv')
  const [first = '', second = '', header = '', last = ''] = format(',').split(/(?<=\n)/)
  sandbox.write('late.csv', header + first + second + last)
  expect(await sandbox.import('late.csv')).toEqual({ code: 0, created: 2, skipped: 1, err: '' })
})

test('rows above the header that have only one cell are titles, which need no warning', async () => {
  const title = 'Stock of 2026,,\n\n"Oak & Sons, Kew",,\n'
  const table = 'id,name,tag\n1,Fern,\n'
  expect(await sandbox.import('', title + table)).toEqual({ code: 0, created: 1, err: '' })
  const { err } = await sandbox.import('', `${title}10,A,\n${table}`)
  expect(err).toBe(
    'plants: The header is in line 5 of stdin. Not read above it: 1 row. ' +
      'If plants are there, move the header to line 1, and run the command again\n',
  )
})

test('an import with --map says that rows above the header were not read', async () => {
  sandbox.write('late.csv', '10,A\n11,B\nNr,Kind\n12,C\n')
  const { code, err } = await sandbox.import('late.csv --map id=Nr,name=Kind')
  expect([code, err]).toEqual([0, warning('late.csv')])
})

test('an import says that rows above a header it has guessed were not read', async () => {
  sandbox.write('late.csv', 'Stock,2026\nNr,Kind,Bed\n12,C,x\n')
  const { err } = await sandbox.import('late.csv --map id=1,name=2')
  expect(err).toContain('The header is in line 2 of late.csv. Not read above it: 1 row.')
})

test('an import with --columns reads all rows', async () => {
  const { err, created } = await sandbox.import('--columns id,name,tag', '10,A,t\n11,B,t\n')
  expect([err, created]).toEqual(['', 2])
})

test('an import by name finds the plants when the header has moved', async () => {
  sandbox.write('late.csv', 'A,t\nB,t\nname,tag\nC,t\n')
  const { err } = await sandbox.import('late.csv --by-name')
  expect(err).toBe(warning('late.csv'))
  sandbox.write('late.csv', 'name,tag\nA,t\nB,t\nC,t\n')
  const again = await sandbox.import('late.csv --by-name')
  expect(again).toMatchObject({ code: 0, created: 2, skipped: 1 })
})

test('an import of several files names each file with rows above its header', async () => {
  const table = 'id,name,tag\n1,Fern,\n'
  sandbox.write('one.csv', format(','))
  sandbox.write('two.csv', table)
  sandbox.write('three.tsv', format('\t'))
  const { err } = await sandbox.import('one.csv two.csv three.tsv')
  expect(err).toBe(warning('one.csv') + warning('three.tsv'))
})
