import { beforeEach, describe, expect, test } from 'vitest'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
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
    expect(result).toEqual({ code: 0, created: 1, err: '' })
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
      message: 'line 2 of the sheet "a" has only "x", "y" (its sheets: "empty", "a", "b")',
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

test('an import warns of a second sheet that has the columns', async () => {
  const plants = plantHeader + buildRows(['1', 'Fern'])
  const result = await sandbox.import('', buildWorkbook({ sheets: { A: plants, 'B c': plants } }))
  const err =
    'plants: The sheet "B c" of stdin also has the columns, but was not read. ' +
    "To read it, add --sheet 'B c'\n"
  expect(result).toEqual({ code: 0, created: 1, err })
  expect(
    (await sandbox.import(['--sheet', 'B c'], buildWorkbook({ sheets: { 'B c': plants } }))).err,
  ).toBe('')
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
