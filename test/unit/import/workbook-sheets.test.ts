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

describe('an import names the sheets that it has not read', () => {
  const plants = plantHeader + buildRows(['1', 'Fern'])
  const other = buildRows(['Nr.', 'Name', 'Ort'], ['1', 'Rose', 'north'])
  const many = Object.fromEntries(['B', 'C', 'D', 'E', 'F', 'G', 'H'].map((name) => [name, other]))
  const again = 'run the command again with'

  test.each<{ which: string; parts: Parts; flags: string; warning: string }>([
    {
      which: 'none if the others are empty, or are charts',
      parts: { sheets: { A: plants, B: '', Chart: undefined } },
      flags: '',
      warning: '',
    },
    {
      which: 'one that has the columns',
      parts: { sheets: { A: plants, 'B c': plants } },
      flags: '',
      warning: `The sheet "B c" of stdin has rows, but was not read. To read it, ${again} --sheet 'B c'`,
    },
    {
      which: 'one that has other columns',
      parts: { sheets: { Nord: other, Alt: plants } },
      flags: '',
      warning: `The sheet "Nord" of stdin has rows, but was not read. To read it, ${again} --sheet Nord, and name its columns with --map`,
    },
    {
      which: 'those next to the one of --sheet, some of them hidden',
      parts: { sheets: { A: plants, B: plants, Old: other }, hidden: ['Old'] },
      flags: '--sheet B',
      warning: `The sheets "A" and "Old" (hidden) of stdin have rows, but were not read. To read one of them, ${again} --sheet NAME, and name other columns with --map`,
    },
    {
      which: 'the first five of many',
      parts: { sheets: { A: plants, ...many } },
      flags: '',
      warning: `The sheets "B", "C", "D", "E", "F" and 2 more of stdin have rows, but were not read. To read one of them, ${again} --sheet NAME, and name its columns with --map`,
    },
    {
      which: 'one that is damaged',
      parts: { sheets: { A: plants, B: '<row r="2"/><row r="1"/>' } },
      flags: '',
      warning: `The sheet "B" of stdin has rows, but was not read. To read it, ${again} --sheet B, and name its columns with --map`,
    },
    {
      which: 'one with a control character, which the command cannot repeat',
      parts: { sheets: { A: plants, 'B\u202e': plants } },
      flags: '',
      warning: `The sheet "B\\u{202e}" of stdin has rows, but was not read. To read it, ${again} --sheet NAME`,
    },
    {
      which: 'one with a name that is too long for a command',
      parts: { sheets: { A: plants, ['B'.repeat(9000)]: plants } },
      flags: '',
      warning: `The sheet "${'B'.repeat(39)}…" of stdin has rows, but was not read. To read it, ${again} --sheet NAME`,
    },
  ])('$which', async ({ parts, flags, warning }) => {
    const err = warning && `plants: ${warning}\n`
    const result = await sandbox.import(flags, buildWorkbook(parts))
    expect(result).toEqual({ code: 0, created: 1, err })
  })

  test('and the command that it proposes reads the sheet', async () => {
    sandbox.write('stock.xlsx', buildWorkbook({ sheets: { Nord: other, Alt: plants } }))
    await sandbox.import('stock.xlsx')
    const flags = '--sheet Nord --map id=Nr. --if-exists update'
    expect(await sandbox.import(`stock.xlsx ${flags}`)).toMatchObject({ code: 0, updated: 1 })
  })

  test('also if it has read several files', async () => {
    sandbox.write('a.xlsx', buildWorkbook({ sheets: { A: plants } }))
    sandbox.write('b.xlsx', buildWorkbook({ sheets: { A: plants, B: plants } }))
    const { err } = await sandbox.import('a.xlsx b.xlsx')
    expect(err).toContain('To read it, import only this file with --sheet B\n')
  })

  test('also if the import has generated ids', async () => {
    const sheets = { A: buildRows(['name'], ['Fern']), B: buildRows(['name'], ['Rose']) }
    sandbox.write('stock.xlsx', buildWorkbook({ sheets }))
    const flags = '--sheet B'
    const { err } = await sandbox.import('stock.xlsx --by-name')
    expect(err).toContain(`${again} ${flags}\n`)
    const result = await sandbox.import(`stock.xlsx --by-name ${flags}`)
    expect(result).toMatchObject({ code: 0, created: 1 })
  })
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
    const err = expect.stringContaining('The sheet "Old" (hidden) of stdin has rows')
    expect(await sandbox.import('', stdin)).toEqual({ code: 0, created: 1, err })
    expect(await sandbox.import('--sheet 1', stdin)).toMatchObject({ skipped: 1 })
    expect(await sandbox.import('--sheet 2', stdin)).toEqual({
      code: 2,
      err: expect.stringContaining(
        'Choose one of its sheets with --sheet: "Old" (hidden), "New", "Z" (hidden). A number counts only the visible sheets',
      ),
    })
    expect(await sandbox.import('--sheet old', stdin)).toMatchObject({ code: 0, created: 1 })
  },
)
