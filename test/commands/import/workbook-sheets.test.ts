import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { buildPlantLine, ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import {
  buildRows,
  buildWorkbook,
  type Parts,
  plantHeader,
} from '../../helpers/sandbox/workbook.js'

type Sheets = NonNullable<Parts['sheets']>

let sandbox: ImportSandbox

beforeEach(() => {
  sandbox = new ImportSandbox()
})

describe('an import of a workbook with several sheets', () => {
  const plants = plantHeader + buildRows(['1', 'Fern', 'shade'])
  const two = { 'Our notes': buildRows(['water on Mondays']), Plants: plants }
  const three = { ...two, '2027': buildRows(['No', 'Name'], ['5', 'Rose']), Copy: buildRows(['x']) }
  const empty = { empty: '', a: buildRows(['title'], ['x', 'y']), b: buildRows(['z']) }
  const unsaved = '<row><c><f>1+1</f></c><c><f>2+2</f></c></row>'
  const accented = { Notes: buildRows(['x']), 'Scho\u0308n': plants }
  const chart = { Chart: undefined, Sum: unsaved, Plants: plants }

  test.each<{ which: string; sheets: Sheets; flags: string; id: number }>([
    { which: 'the first with the columns', sheets: three, flags: '', id: 1 },
    { which: 'the first with the columns of --map', sheets: three, flags: '--map id=No', id: 5 },
    { which: 'the one of a name, in any case', sheets: three, flags: '--sheet PLANTS', id: 1 },
    {
      which: 'the one of a number as its name',
      sheets: three,
      flags: '--sheet 2027 --map id=No',
      id: 5,
    },
    { which: 'the one of a number, which counts charts', sheets: chart, flags: '--sheet 3', id: 1 },
    {
      which: 'the one of a name without its accent',
      sheets: accented,
      flags: '--sheet SCHON',
      id: 1,
    },
  ])('reads the sheet: $which', async ({ sheets, flags, id }) => {
    const result = await sandbox.import(flags, buildWorkbook({ sheets }))
    expect(result).toMatchObject({ code: 0, created: 1 })
    expect(await sandbox.list()).toContain(`{"id":${id},`)
  })

  test.each<{ why: string; sheets: Sheets; flags: string; message: string }>([
    {
      why: 'the named sheet has not the columns',
      sheets: two,
      flags: '--sheet 1',
      message: 'stdin has no columns "id", "name"',
    },
    {
      why: 'no sheet has the columns',
      sheets: empty,
      flags: '',
      message: 'line 2 of the sheet "a": "x", "y"\n  sheets: "empty", "a", "b"\n',
    },
    {
      why: 'the named sheet does not exist',
      sheets: two,
      flags: '--sheet 3',
      message: 'stdin has no sheet "3"',
    },
  ])('reads nothing if $why', async ({ sheets, flags, message }) => {
    const err = expect.stringContaining(message)
    expect(await sandbox.import(flags, buildWorkbook({ sheets }))).toEqual({ code: 2, err })
    expect(sandbox.has('data')).toBe(false)
  })
})

const plants = plantHeader + buildRows(['1', 'Fern'])
const other = buildRows(['Nr.', 'Name', 'Ort'], ['1', 'Rose', 'north'])

test.each<{ which: string; parts: Parts; flags?: string; sheet?: string }>([
  { which: 'no sheet without rows', parts: { sheets: { A: plants, B: '', Chart: undefined } } },
  { which: 'no sheet with other columns', parts: { sheets: { Nord: other, A: plants } } },
  { which: 'no hidden sheet', parts: { sheets: { A: plants, B: plants }, hidden: ['B'] } },
  {
    which: 'no sheet beside that of --sheet',
    parts: { sheets: { A: plants, B: plants } },
    flags: '--sheet B',
  },
  {
    which: 'the first other sheet with the columns',
    parts: { sheets: { A: plants, B: other, C: plants, D: plants } },
    sheet: 'C',
  },
])('an import names $which', async ({ parts, flags = '', sheet }) => {
  const result = await sandbox.import(flags, buildWorkbook(parts))
  const warning = `plants: The sheet "${sheet}" of stdin has the columns, too. To import it, add --sheet "${sheet}"\n`
  expect(result).toEqual({ code: 0, created: 1, err: sheet === undefined ? '' : warning })
})

test('an import without the columns shows the sheet that looks most like a list', async () => {
  const wide = Array.from({ length: 40 }, () => 'x')
  const list = buildRows(['Plant', 'Bed'], ['Fern', 'north'], ['Moss', 'south'])
  const sheets = { Notes: buildRows(['Stock of 2026']), Plants: list, Wide: buildRows(wide, wide) }
  const { code, err } = await sandbox.import('', buildWorkbook({ sheets }))
  expect([code, err]).toEqual([2, expect.stringContaining('of the sheet "Plants"')])
})

test.each([
  { name: 'f15-cells-out-of-order', plants: buildPlantLine(1, 'Fern') },
  {
    name: 'f15b-rows-out-of-order',
    plants: buildPlantLine(1, 'Fern') + buildPlantLine(2, 'Moss'),
  },
])('a workbook is read as its references say: $name', async ({ name, plants: expected }) => {
  const file = readFileSync(join(import.meta.dirname, `../../data/lists/${name}.xlsx`))
  expect(await sandbox.import('', file)).toMatchObject({ code: 0, err: '' })
  expect(await sandbox.list()).toBe(expected)
})

test('the header of a workbook is found although its row comes after the records', async () => {
  const sheet =
    '<row r="3"><c r="B3"><v>7</v></c><c r="A3"><v>2</v></c></row>' +
    '<row r="2"><c><v>1</v></c><c><v>6</v></c></row>' +
    '<row r="1"><c t="str"><v>id</v></c><c t="str"><v>name</v></c></row>'
  const file = buildWorkbook({ sheets: { P: sheet } })
  expect(await sandbox.import('', file)).toEqual({ code: 0, created: 2, err: '' })
  expect(await sandbox.list()).toBe(buildPlantLine(1, '6') + buildPlantLine(2, '7'))
})

test.each(['hidden', 'veryHidden'] as const)(
  'an import reads a sheet that is %s only if --sheet names it',
  async (hiddenState) => {
    const sheets = {
      Old: plantHeader + buildRows(['1', 'Old']),
      New: plantHeader + buildRows(['2', 'New']),
      Z: '',
    }
    const stdin = buildWorkbook({ sheets, hidden: ['Old', 'Z'], hiddenState })
    expect(await sandbox.import('', stdin)).toEqual({ code: 0, created: 1, err: '' })
    expect(await sandbox.import('--sheet 1', stdin)).toMatchObject({ skipped: 1 })
    expect(await sandbox.import('--sheet 2', stdin)).toEqual({
      code: 2,
      err: expect.stringContaining(
        'Choose one of its sheets with --sheet: "Old" (hidden), "New", "Z" (hidden)',
      ),
    })
    expect(await sandbox.import('--sheet old', stdin)).toMatchObject({ code: 0, created: 1 })
  },
)
