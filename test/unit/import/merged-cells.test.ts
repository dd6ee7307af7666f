import { beforeEach, expect, test } from 'vitest'
import { MergedCells } from '../../../src/formats/workbook/merged-cells.js'
import { buildPlantLine, ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { buildRows, buildWorkbook } from '../../helpers/sandbox/workbook.js'

// Only the first of several merged cells has a value in the file of a workbook.

let sandbox: ImportSandbox

beforeEach(() => {
  sandbox = new ImportSandbox()
})

const header = ['id', 'name', 'tag']
const rows = [
  header,
  ['1', 'Fern', 'Schatten'],
  ['2', 'Moss', ''],
  ['3', 'Ivy', ''],
  ['4', 'Rose', 'sun'],
]

/** Builds the part of a sheet. The schema has the merged cells after the rows. */
function buildMergedSheet(ranges: string[], sheetRows = rows): Buffer {
  const cells = ranges.map((range) => `<mergeCell ref="${range}"/>`).join('')
  const filledRows = sheetRows.map((row, index) => {
    const filledCells = row.map((text, column) =>
      text === ''
        ? ''
        : `<c r="${'ABCDE'[column]}${index + 1}" t="inlineStr"><is><t>${text}</t></is></c>`,
    )
    return `<row r="${index + 1}">${filledCells.join('')}</row>`
  })
  const merged = `<mergeCells count="${ranges.length}">${cells}</mergeCells>`
  return Buffer.from(
    `<worksheet><sheetData>${filledRows.join('')}</sheetData>${merged}</worksheet>`,
  )
}

const buildMerged = (ranges: string[], sheetRows?: string[][]) =>
  buildWorkbook({ sheets: { P: buildMergedSheet(ranges, sheetRows) } })

const warning = (columns: string, file: string, repeat: string) =>
  `plants: The ${columns} of ${file} ${columns.startsWith('columns') ? 'have' : 'has'} merged ` +
  'cells, and only the first row of each has a value. To fill the other rows, unmerge the cells ' +
  `in a spreadsheet, enter a value in each row, and ${repeat}\n`
const again = 'run the command again'
const update = `${again} with --if-exists update`

test('an import says that only the first of merged cells has a value', async () => {
  sandbox.write('m.xlsx', buildMerged(['C2:C4']))
  const dryRun = await sandbox.import('m.xlsx --dry-run')
  const dryRunWarning = warning('column "tag"', 'm.xlsx', again)
  expect(dryRun).toEqual({ code: 0, dryRun: true, created: 4, err: dryRunWarning })
  const err = warning('column "tag"', 'm.xlsx', update)
  expect(await sandbox.import('m.xlsx')).toEqual({ code: 0, created: 4, err })
  const quiet = await sandbox.import('m.xlsx --quiet')
  expect(quiet).toEqual({ code: 0, skipped: 4, err: '' })
  const fromPipe = await sandbox.import('--if-exists update', buildMerged(['C2:C4']))
  expect(fromPipe.err).toBe(warning('column "tag"', 'stdin', again))
})

test('an import stores the tags of merged cells after what its warning says', async () => {
  sandbox.write('m.xlsx', buildMerged(['C2:C4']))
  await sandbox.import('m.xlsx')
  const filledRows = rows.map(([id = '', name = '', tag]) => [id, name, tag || 'Schatten'])
  sandbox.write('m.xlsx', buildMerged([], filledRows))
  expect(await sandbox.import('m.xlsx --if-exists update')).toMatchObject({
    code: 0,
    updated: 2,
    err: '',
  })
  expect((await sandbox.list()).split('\n').slice(1, 2)).toEqual([
    buildPlantLine(2, 'Moss', 'Schatten').trimEnd(),
  ])
})

test('an import names the merged columns by their names or their numbers', async () => {
  const wide = rows.slice(1).map(([id = '', name = '', tag = '']) => [id, tag, name])
  sandbox.write('m.xlsx', buildMerged(['B2:B4'], [['Nr', '', 'Kind'], ...wide]))
  const { err } = await sandbox.import('m.xlsx --map id=Nr,name=Kind,tag=2')
  expect(err).toContain(warning('column "column 2"', 'm.xlsx', update))
  const headerless = buildMerged(['C1:C3'], rows.slice(1))
  const { err: headerlessErr } = await sandbox.import('--columns id,name,tag', headerless)
  expect(headerlessErr).toBe(warning('column "tag"', 'stdin', update))
})

test.each([
  { title: 'of one row', ranges: ['B5:C5'] },
  { title: 'in a column that is not read', ranges: ['D2:D4'] },
  { title: 'in the header', ranges: ['A1:A2', 'C1:C4'] },
  { title: 'below the last record', ranges: ['C5:C9', 'C7:C1048576'] },
  { title: 'without a value', ranges: ['C3:C4'] },
  { title: 'with an invalid reference', ranges: ['', 'C2', 'C2:', 'c2:c4', 'C9999999:C9999999'] },
])('merged cells $title need no warning', async ({ ranges }) => {
  const { code, err } = await sandbox.import('', buildMerged(ranges))
  expect([code, err]).toEqual([0, ''])
})

test('an import names each column that merged cells cover', async () => {
  const wide = [header, ['1', 'Fern', ''], ['2', '', ''], ['3', 'Ivy', 'x'], ['', 'Rose', '']]
  const { code, err } = await sandbox.import('', buildMerged(['B2:C3', 'A4:A5'], wide))
  expect(code).toBe(6)
  expect(err).toContain(warning('columns "id", "name", "tag"', 'stdin', update))
})

test('an import of several workbooks names each one with merged cells', async () => {
  const plain = buildWorkbook({ sheets: { P: buildRows(header, ['9', 'Oak', '']) } })
  sandbox.write('one.xlsx', buildMerged(['C2:C4']))
  sandbox.write('two.xlsx', plain)
  sandbox.write('three.xlsx', buildMerged(['C2:C4']))
  const repeat = 'import only this file with --if-exists update'
  const { err } = await sandbox.import('one.xlsx two.xlsx three.xlsx')
  expect(err).toBe(
    warning('column "tag"', 'one.xlsx', repeat) + warning('column "tag"', 'three.xlsx', repeat),
  )
})

test('the merged cells of a sheet that is not read need no warning', async () => {
  const unread = buildMergedSheet(['C2:C4'])
  const sheets = { P: buildRows(header, ['1', 'Fern', 'x']), Old: unread }
  const { err } = await sandbox.import('', buildWorkbook({ sheets }))
  expect(err).not.toContain('merged')
})

test('a million merged ranges that overlap are compared with few rows', () => {
  const mergedCells = new MergedCells()
  const columns = new Map([['id', 0] as const, ['name', 1] as const])
  mergedCells.setHeader({ names: ['id', 'name'], columns, unreadNames: [], unnamedColumns: [] })
  for (const rowNumber of [1, 1_048_576]) mergedCells.addRow(rowNumber, ['1', 'Fern'])
  for (let count = 0; count < 1_000_000; count += 1) mergedCells.addRange('A1:B1048576')
  expect(mergedCells.fields).toEqual(new Set())
})
