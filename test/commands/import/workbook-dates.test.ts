import { beforeEach, expect, test } from 'vitest'
import { buildPlantLine, ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { buildPlantWorkbook, buildRows } from '../../helpers/sandbox/workbook.js'

// Days are counted from 1900, as if there had been a February 29 in that year, or from 1904.

let sandbox: ImportSandbox

beforeEach(() => {
  sandbox = new ImportSandbox()
})

test('an import reads dates and times in both calendars, by the formats of their cells', async () => {
  const codes = ['yyyy\\-mm\\-dd', 'h:mm', '[h]:mm:ss', '[$-411]ggge', 'General', '0.0E+0', '0" d"']
  const formats = codes.map((code, index) => {
    const escaped = code.replaceAll('"', '&quot;')
    return `<numFmt numFmtId="${200 + index}" formatCode="${escaped}"/>`
  })
  const xfs = codes.map((_, index) => `<xf numFmtId="${200 + index}"/>`)
  const styles = `<numFmts>${formats.join('')}</numFmts><cellXfs>${xfs.join('')}</cellXfs>`
  // `format` is an index of `codes`.
  const cells: { value: string; format: number; in1900: string; in1904: string }[] = [
    { value: '46082', format: 0, in1900: '2026-03-01', in1904: '2030-03-02' },
    { value: '0', format: 0, in1900: '00:00:00', in1904: '1904-01-01' },
    { value: '0.5', format: 0, in1900: '12:00:00', in1904: '1904-01-01T12:00:00' },
    { value: '1', format: 0, in1900: '1900-01-01', in1904: '1904-01-02' },
    { value: '59', format: 0, in1900: '1900-02-28', in1904: '1904-02-29' },
    { value: '61', format: 0, in1900: '1900-03-01', in1904: '1904-03-02' },
    { value: '2957003', format: 0, in1900: '9995-12-30', in1904: '9999-12-31' },
    { value: '0', format: 1, in1900: '00:00:00', in1904: '00:00:00' },
    { value: '0.5', format: 1, in1900: '12:00:00', in1904: '12:00:00' },
    { value: '1.5', format: 1, in1900: '1900-01-01T12:00:00', in1904: '1904-01-02T12:00:00' },
    { value: '1.5', format: 2, in1900: '36:00:00', in1904: '36:00:00' },
    { value: '0.75', format: 2, in1900: '18:00:00', in1904: '18:00:00' },
    { value: '46082', format: 3, in1900: '2026-03-01', in1904: '2030-03-02' },
    { value: '46082', format: 4, in1900: '46082', in1904: '46082' },
    { value: '46082', format: 5, in1900: '46082', in1904: '46082' },
    { value: '46082', format: 6, in1900: '46082', in1904: '46082' },
  ]
  const sheet = cells.map(
    ({ value, format }, id) =>
      `<row><c s="4"><v>${id}</v></c><c s="${format}"><v>${value}</v></c></row>`,
  )
  for (const { calendar, properties } of [
    { calendar: 'in1900', properties: '' },
    { calendar: 'in1904', properties: '<workbookPr date1904="1"/>' },
  ] as const) {
    sandbox = new ImportSandbox()
    const result = await sandbox.import(
      '',
      buildPlantWorkbook(sheet.join(''), { styles, properties }),
    )
    expect(result).toEqual({ code: 0, created: cells.length, err: '' })
    expect(await sandbox.list()).toBe(
      cells.map((cell, id) => buildPlantLine(id, cell[calendar])).join(''),
    )
  }
})

// The formats that a workbook names by an id alone (ECMA-376 part 1, 18.8.30).
const dates = ['1904-01-02T12:00:00', '1904-01-01T12:00:00']
const times = ['1904-01-02T12:00:00', '12:00:00']
const durations = ['36:00:00', '12:00:00']
const numbers = ['1.5', '0.5']

test.each([
  { first: 0, last: 13, expected: numbers },
  { first: 14, last: 17, expected: dates },
  { first: 18, last: 21, expected: times },
  { first: 22, last: 22, expected: dates },
  { first: 23, last: 26, expected: numbers },
  { first: 27, last: 36, expected: dates },
  { first: 37, last: 44, expected: numbers },
  { first: 45, last: 45, expected: times },
  { first: 46, last: 46, expected: durations },
  { first: 47, last: 47, expected: times },
  { first: 48, last: 49, expected: numbers },
  { first: 50, last: 58, expected: dates },
  { first: 59, last: 70, expected: numbers },
  { first: 71, last: 81, expected: dates },
  { first: 82, last: 90, expected: numbers },
])(
  'an import reads 1.5 and 0.5 with the formats $first to $last as $expected',
  async ({ first, last, expected }) => {
    const ids = Array.from({ length: last - first + 1 }, (_, index) => first + index)
    const xfs = ids.map((id) => `<xf numFmtId="${id}"/>`)
    const rows = ids.map((id, style) => {
      const cells = numbers.map((value) => `<c s="${style}"><v>${value}</v></c>`)
      return `<row><c t="str"><v>${id}</v></c>${cells.join('')}</row>`
    })
    const stdin = buildPlantWorkbook(rows.join(''), {
      styles: `<cellXfs>${xfs.join('')}</cellXfs>`,
      properties: '<workbookPr date1904="1"/>',
    })
    expect(await sandbox.import('', stdin)).toEqual({ code: 0, created: ids.length, err: '' })
    const [name, tag] = expected
    expect(await sandbox.list()).toBe(ids.map((id) => buildPlantLine(id, name, tag)).join(''))
  },
)

test.each([
  { calendar: '1900', date1904: '0', days: ['60', '60.5', '-1', '2958466'] },
  { calendar: '1904', date1904: 'true', days: ['-1', '-0.5', '2957004'] },
])(
  'an import rejects the record of a day that the calendar of $calendar does not have',
  async ({ date1904, days }) => {
    const styles = '<cellXfs><xf numFmtId="14"/><xf numFmtId="0"/></cellXfs>'
    const values = [...days, 'x']
    const sheet = values.map(
      (value, id) => `<row><c s="1"><v>${id}</v></c><c><v>${value}</v></c></row>`,
    )
    const properties = `<workbookPr date1904="${date1904}"/>`
    const result = await sandbox.import(
      '',
      buildPlantWorkbook(sheet.join(''), { styles, properties }),
    )
    expect(result).toMatchObject({ code: 6, rejected: { 422: values.length } })
    expect(result.err).toContain('stdin:2: Invalid plant: the name is a date that does not exist')
    expect(result.err).toContain(
      `stdin:${values.length + 1}: Invalid plant: the name is not a number, although its cell`,
    )
  },
)

test.each([
  { fault: 'neither 1900 nor 1904', properties: '<workbookPr date1904="x"/>' },
  { fault: 'named twice', properties: '<workbookPr date1904="1"/><workbookPr/>' },
])('a workbook is damaged if its calendar is $fault', async ({ properties }) => {
  const stdin = buildPlantWorkbook(buildRows(['1', 'Fern']), { properties })
  const result = await sandbox.import('', stdin)
  expect(result).toMatchObject({ code: 2, err: expect.stringContaining('stdin is damaged: ') })
})

test('only the properties of the workbook itself choose its calendar', async () => {
  const styles = '<cellXfs><xf numFmtId="14"/></cellXfs>'
  const properties = '<x><workbookPr date1904="1"/></x>'
  const stdin = buildPlantWorkbook('<row><c t="str"><v>1</v></c><c><v>46082</v></c></row>', {
    styles,
    properties,
  })
  expect(await sandbox.import('', stdin)).toMatchObject({ code: 0, created: 1 })
  expect(await sandbox.list()).toBe(buildPlantLine(1, '2026-03-01'))
})
