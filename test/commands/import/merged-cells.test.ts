import { beforeEach, expect, test } from 'vitest'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
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

function buildWarning(range: string, file = 'stdin'): string {
  return `plants: ${file} has merged cells, such as ${range}. Only the first cell of each has a value\n`
}

test('an import says that only the first of merged cells has a value', async () => {
  sandbox.write('m.xlsx', buildMerged(['C2:C4', 'B5:C5']))
  const err = buildWarning('C2:C4', 'm.xlsx')
  expect(await sandbox.import('m.xlsx --dry-run')).toMatchObject({ code: 0, created: 4, err })
  expect(await sandbox.import('m.xlsx')).toEqual({ code: 0, created: 4, err })
  expect(await sandbox.import('m.xlsx --quiet')).toEqual({ code: 0, skipped: 4, err: '' })
  const headerless = buildMerged(['C1:C3'], rows.slice(1))
  expect(await sandbox.import('--columns id,name,tag', headerless)).toMatchObject({
    err: buildWarning('C1:C3'),
  })
})

test.each([
  { title: 'in a column that is not read', ranges: ['D2:D4'] },
  { title: 'in the header', ranges: ['A1:B1'] },
  { title: 'with an invalid reference', ranges: ['', 'C2', 'C2:', 'c2:c4'] },
])('merged cells $title need no warning', async ({ ranges }) => {
  const { code, err } = await sandbox.import('', buildMerged(ranges))
  expect([code, err]).toEqual([0, ''])
})

test('the merged cells of a sheet that is not read need no warning', async () => {
  const unread = buildMergedSheet(['C2:C4'])
  const sheets = { P: buildRows(header, ['1', 'Fern', 'x']), Old: unread }
  const { err } = await sandbox.import('', buildWorkbook({ sheets }))
  expect(err).not.toContain('merged')
})
