import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { PlantsError } from '../../../src/errors.js'
import { check, fc } from '../../helpers/expect/arbitraries.js'
import { buildPlantLine, ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import {
  buildInlineCell,
  buildRows,
  buildWorkbook,
  buildZip,
  type Parts,
} from '../../helpers/sandbox/workbook.js'

let user: ImportSandbox

beforeEach(() => {
  user = new ImportSandbox()
})

const header = buildRows(['id', 'name', 'tag'])
const sheetOf = (sheet: string | Buffer, parts: Parts = {}) =>
  buildWorkbook({ sheets: { P: sheet }, ...parts })
const book = (sheet: string, parts: Parts = {}) => sheetOf(header + sheet, parts)

test('a workbook of LibreOffice', async () => {
  const saved = join(import.meta.dirname, '../../data/libreoffice.xlsx')
  user.write('stock.xlsx', readFileSync(saved))
  const { err, ...result } = await user.import('stock.xlsx --rejects rejected.csv')
  expect(result).toMatchObject({ code: 6, created: 9, rejected: { 422: 2 } })
  expect(err).toContain('ignored unknown fields "Price", "Bought"')
  const [head, ...rejected] = user.read('rejected.csv').trimEnd().split('\n')
  expect(head).toBe('\ufeffrejected_line,rejected_reason,Id,Name,Tag,Price,Bought')
  expect(rejected).toEqual([
    expect.stringMatching(/^14,".*",2026-03-01,a date as id,t$/),
    expect.stringMatching(/^15,".*",1.5,half,t$/),
  ])
  expect((await user.list()).split(/(?<=\n)/)).toEqual([
    buildPlantLine(1, 'Fern', 'shade'),
    buildPlantLine(2, 'Moss, wet', 'bog'),
    buildPlantLine(3, 'Röse "Klimt"'),
    buildPlantLine(7, 'two\nlines', 't'),
    buildPlantLine(8, 'float id', '2026'),
    buildPlantLine(9, 'TRUE', '1.25'),
    buildPlantLine(11, 'Id', 't'),
    buildPlantLine('9007199254740990', 'rounded'), // by LibreOffice
    buildPlantLine('9007199254740993', 'exact', 'x'),
  ])
})

test('ids that are texts are read as in other tables', async () => {
  const ids = ['="00123"', "'0007", '8.0', '1.000']
  const table = buildRows(['id', 'name'], ...ids.map((id) => [id, 'a']))
  user.write('ids.xlsx', sheetOf(table))
  const { err, ...result } = await user.import('ids.xlsx')
  expect(result).toMatchObject({ code: 6, created: 3, rejected: { 422: 1 } })
  expect(err).toContain('ids.xlsx:5: Invalid plant: the id must be')
  expect(await user.list()).toBe([7, 8, 123].map((id) => buildPlantLine(id, 'a')).join(''))
})

test('columns of a workbook are found by their numbers, below titles', async () => {
  const table = buildRows(['Stock 2026'], ['Nr', 'Beet', 'Sorte'], ['7', '1', 'Rosa'])
  user.write('stock.xlsx', sheetOf(table))
  const { created, err } = await user.import('stock.xlsx --map id=1,name=3')
  expect(created).toBe(1)
  expect(err).toContain('Line 2 of stock.xlsx is read as the header: "Nr", "Beet", "Sorte".')
  expect(await user.list()).toBe(buildPlantLine(7, 'Rosa'))
})

const cellXfs = [0, 14, 164, 9].map((id) => `<xf numFmtId="${id}"/>`).join('')
const numFmts = '<numFmt numFmtId="164" formatCode="000000"/>'
const styles = `<numFmts>${numFmts}</numFmts><cellXfs>${cellXfs}</cellXfs>`
const sharedStrings = '<si><r><t>bold </t></r><r><t>plain</t></r></si>'

test('values of cells', async () => {
  const number = (value: string, style = 0) => `<c s="${style}"><v>${value}</v></c>`
  const small = `-0.${'0'.repeat(29)}15`
  const runs = '<r><t>a </t></r><rPh><t>x</t></rPh><r><t>b</t></r>'
  const markup = '<![CDATA[<a> &amp;]]> &lt;&#98;&#x63;>'
  const cells: [what: string, cell: string, name: string][] = [
    ['a whole number', number('7.0'), '7'],
    ['a number that its XML writes with an exponent', number('1.0E7'), '10000000'],
    ['a fraction that its XML writes with an exponent', number('-1.5E-30'), small],
    ['a date', number('46082', 1), '2026-03-01'],
    ['a date and a time', number('46082.604166666664', 1), '2026-03-01T14:30:00'],
    ['a fraction of a second', number('46082.60416666', 1), '2026-03-01T14:30:00'],
    ['a millisecond', number('46082.00000001157', 1), '2026-03-01T00:00:00.001'],
    ['false', '<c t="b"><v>0</v></c>', 'FALSE'],
    ['a number with the zeros of its format', number('123', 2), '123'],
    ['a percentage', number('0.5', 3), '0.5'],
    ['the formula of a number', '<c><f>6*7</f><v>42</v></c>', '42'],
    ['the formula of a text', '<c t="str"><f>A1&amp;"x"</f><v> x </v></c>', 'x'],
    ['text in runs, with its reading', `<c t="inlineStr"><is>${runs}</is></c>`, 'a b'],
    ['markup in characters', `<c t="str"><v>${markup}</v></c>`, '<a> &amp; <bc>'],
    ['white space of Unicode', buildInlineCell('\u00a0\u3000 a\u2003b\u2028'), 'a\u2003b'],
    ['characters that XML cannot have', buildInlineCell('a_x000D_b_x005F_x0041_'), 'a\rb_x0041_'],
    ['an escape beside what only looks like one', buildInlineCell('_x0061__X0061_'), 'a_X0061_'],
    ['a text that cells share', '<c t="s"><v>0</v></c>', 'bold plain'],
  ]
  const sheet = cells
    .map(([what, cell], id) => `<row><c><v>${id}</v></c>${cell}${buildInlineCell(what)}</row>`)
    .join('')
  const result = await user.import('', book(sheet, { sharedStrings, styles }))
  expect(result).toEqual({ code: 0, created: cells.length, err: '' })
  expect((await user.list()).split(/(?<=\n)/)).toEqual(
    cells.map(([what, , name], id) => buildPlantLine(id, name, what)),
  )
})

test('an error, a number above 2^53, and an exponent in a text are rejected in their fields', async () => {
  const error = (code: string) => `<c t="e"><v>${code}</v></c>`
  const formula = '<c t="e"><f>1/0</f><v>#DIV/0!</v></c>'
  const sheet = [
    `${error('#N/A')}${buildInlineCell('a')}<c/>`,
    `<c><v>2</v></c>${error('#REF!')}<c/>`,
    `<c><v>3</v></c>${buildInlineCell('c')}${formula}`,
    `<c><v>4</v></c>${buildInlineCell('d')}${buildInlineCell('t')}${error('#N/A')}`,
    `<c><v>5</v></c>${buildInlineCell('e')}${buildInlineCell('#N/A')}`,
    '<c><v>6</v></c><c><v>9007199254740993</v></c><c/>',
    `<c><v>-9007199254740993</v></c>${buildInlineCell('g')}<c/>`,
    `${buildInlineCell('1E3')}${buildInlineCell('h')}<c/>`,
    `<c><v>1.0E7</v></c>${buildInlineCell('i')}<c/>`,
  ]
  const stdin = sheetOf(
    `${buildRows(['id', 'name', 'tag', 'note'])}<row>${sheet.join('</row><row>')}</row>`,
  )
  const { err: _, ...result } = await user.import('--rejects rejected.csv', stdin)
  expect(result).toMatchObject({ code: 6, created: 3, rejected: { 422: 6 } })
  expect(user.read('rejected.csv').split('\n').slice(1, -1)).toEqual([
    expect.stringMatching(/^2,[^,]*: the id .*#N\/A,#N\/A,a$/),
    expect.stringMatching(/^3,[^,]*: the name .*#REF!,2,#REF!$/),
    expect.stringMatching(/^4,[^,]*: the tag .*#DIV\/0!,3,c,#DIV\/0!$/),
    expect.stringMatching(/^7,".*: the name .*",6,900719925474099\d$/),
    expect.stringMatching(/^8,".*: the id .*",-900719925474099\d,g$/),
    expect.stringMatching(/^9,".*: the id .*",1E3,h$/),
  ])
  expect(await user.list()).toBe(
    buildPlantLine(4, 'd', 't') + buildPlantLine(5, 'e', '#N/A') + buildPlantLine(10_000_000, 'i'),
  )
})

test('rows and cells that say where they are', async () => {
  const cell = (place: string, text: string) =>
    buildInlineCell(text).replace('<c', `<c r="${place}"`)
  const sheet = [
    `<row r="3000">${cell('B3000', 'name')}${cell('AA3000', 'id')}</row>`,
    `<row r="3003">${cell('B3003', 'Fern')}<c r="AA3003"><v>1</v></c></row>`,
    `<row r="3004">${cell('XFD3004', 'x')}</row>`,
    `<row r="3005">${cell('B3005', 'a&#10;b')}</row>`,
    '<row r="3006"><c r="AA3006"><v>2</v></c></row>',
  ]
  const { err } = await user.import('', buildWorkbook({ sheets: { A: '', B: sheet.join('') } }))
  expect(err).toContain('stdin:3005: Invalid plant: the id ')
  expect(err).toContain('stdin:3006: Invalid plant: the name ')
  expect(err).toMatch(/Skipped 1 row without an id, a name and a tag/)
  expect(await user.list()).toBe(buildPlantLine(1, 'Fern'))
})

describe('the sheet', () => {
  const plants = header + buildRows(['1', 'Fern', 'shade'])
  const two = { 'Our notes': buildRows(['water on Mondays']), Plants: plants }
  const three = { ...two, '2027': buildRows(['No', 'Name'], ['5', 'Rose']), Copy: buildRows(['x']) }
  const empty = { empty: '', a: buildRows(['title'], ['x', 'y']), b: buildRows(['z']) }
  const unsaved = '<row><c><f>1+1</f></c><c><f>2+2</f></c></row>'
  const accented = { Notes: buildRows(['x']), 'Scho\u0308n': plants }
  const chart = { Chart: undefined, Sum: unsaved, Plants: plants }

  test.each<[string, Parts['sheets'], string, number]>([
    ['that is the first of several with the columns', three, '', 1],
    ['that has the columns of --map', three, '--map id=No', 5],
    ['of a name', three, '--sheet PLANTS', 1],
    ['whose name is a number', three, '--sheet 2027 --map id=No', 5],
    ['after a chart, which counts', chart, '--sheet 3', 1],
    ['of a name with an accent', accented, '--sheet SCHON', 1],
  ])('%s', async (_, sheets = {}, flags, id) => {
    expect(await user.import(flags, buildWorkbook({ sheets }))).toEqual({
      code: 0,
      created: 1,
      err: '',
    })
    expect(await user.list()).toContain(`{"id":${id},`)
  })

  test.each<[string, Parts['sheets'], string, string]>([
    ['has not the columns', two, '--sheet 1', 'stdin has no columns "id", "name"'],
    [
      'with the most cells in a row has not the columns',
      empty,
      '',
      'line 2 of the sheet "a" has only "x", "y" (its sheets: "empty", "a", "b")',
    ],
    ['is not there', two, '--sheet 3', 'stdin has no sheet "3"'],
  ])('%s', async (_, sheets = {}, flags, message) => {
    const err = expect.stringContaining(message)
    expect(await user.import(flags, buildWorkbook({ sheets }))).toEqual({ code: 2, err })
    expect(user.has('data')).toBe(false)
  })
})

/** A workbook whose directory gives this size of its sheet (PKWARE's APPNOTE, 4.3.12). */
function declared(size: number, bytes: Buffer): Buffer {
  bytes.writeUInt32LE(size, bytes.lastIndexOf('xl/worksheets/sheet1.xml') - 22)
  return bytes
}

/** A workbook whose directory gives this checksum of its sheet. */
function withChecksum(checksum: number, bytes: Buffer): Buffer {
  bytes.writeUInt32LE(checksum, bytes.lastIndexOf('xl/worksheets/sheet1.xml') - 30)
  return bytes
}

/** A workbook that has a part by another name. */
function without(path: string, bytes: Buffer): Buffer {
  const other = path.replace(/.$/, '_')
  return Buffer.from(bytes.toString('latin1').replaceAll(path, other), 'latin1')
}

/** A compound file with a stream (MS-CFB 2.6.1). */
function compoundFile(stream: string): Buffer {
  const entry = Buffer.alloc(128)
  entry.write(stream, 'utf16le')
  entry.writeUInt16LE(2 * stream.length + 2, 64)
  entry[66] = 2
  return Buffer.concat([Buffer.from('\xd0\xcf\x11\xe0'.padEnd(512, '\0'), 'latin1'), entry])
}

/** A workbook whose directory says that the size of its sheet is elsewhere. */
function streamed(bytes: Buffer): Buffer {
  const name = bytes.lastIndexOf('xl/worksheets/sheet1.xml')
  bytes.writeUInt16LE(8, name - 38)
  bytes.writeUInt32LE(0, name - 26)
  return declared(0, bytes)
}

const fern = buildRows(['1', 'Fern'])
const unpacks = 'stdin unpacks to too much data'

const shared = (value: string) => `<row><c><v>1</v></c><c t="s">${value}</c></row>`

test.each<[what: string, stdin: Buffer, message?: string]>([
  ['texts that unpack to gigabytes', book('', { sharedStrings: ' '.repeat(68_000_000) }), unpacks],
  ['formats that unpack to gigabytes', book('', { styles: ' '.repeat(68_000_000) }), unpacks],
  ['too many cells in a row', book(`<row>${'<c/>'.repeat(16_385)}</row>`)],
  ['a sheet that says so of itself', declared(268_435_457, sheetOf('')), unpacks],
  ['a sheet that unpacks to more than it says', declared(100, sheetOf(' '.repeat(100_000)))],
  ['a sheet that says it is empty', declared(0, book(fern))],
  ['a sheet that says its size elsewhere', streamed(book(fern))],
  ['no relations', buildZip({ 'xl/workbook.xml': '<workbook/>' })],
  ['no sheet', buildWorkbook({}), 'stdin has no visible sheet with cells'],
  ['a missing part', without('xl/styles.xml', book(fern, { styles: '' }))],
  ['a wrong checksum', withChecksum(0, book(fern))],
  ['the start of a workbook', book('').subarray(0, 500)],
  ['a text that is not there', book(shared('<v>1</v>'), { sharedStrings })],
  [
    'bytes that are not UTF-8',
    sheetOf(Buffer.from(header + buildRows(['1', 'F\xe4rn']), 'latin1')),
  ],
  ['an element that is not closed', book(`${fern}<row>`)],
  ['an entity that does not exist', book(buildRows(['1', '&fern;']))],
  ['a raw U+FFFE', book(buildRows(['1', 'a\ufffe']))],
  ['a document type', sheetOf(Buffer.from('<!DOCTYPE a><worksheet/>'))],
  ['another encoding', sheetOf(Buffer.from('<?xml version="1.0" encoding="latin1"?><worksheet/>'))],
  [
    'an attribute twice',
    book(`<row ht="1" ht="1">${buildInlineCell('1')}${buildInlineCell('a')}</row>`),
  ],
  ['elements without end', book('<a>'.repeat(101))],
  ['an unknown type of a cell', book('<row><c t="z"><v>1</v></c></row>')],
  ['a negative index', book(shared('<v>-1</v>'), { sharedStrings })],
  ['an element in a value', book('<row><c><v>1<extLst><v>2</v></extLst></v></c></row>')],
  ['a format that is not there', book('<row><c s="1"><v>1</v></c></row>')],
  ['two values', book('<row><c><v>1</v><v>2</v></c></row>')],
  ['two cells in one place', book('<row><c r="A2"><v>1</v></c><c r="A2"><v>2</v></c></row>')],
  ['a cell of another row', book('<row r="2"><c r="A3"><v>1</v></c></row>')],
  ['two rows in one place', book('<row r="2"><c/></row><row r="2"><c/></row>')],
])('a workbook is rejected: %s', async (_, stdin, message = 'stdin is damaged') => {
  const { code, err } = await user.import('', stdin)
  expect([code, err.slice(0, message.length + 8)]).toEqual([2, `plants: ${message}`])
  expect(user.has('data')).toBe(false)
})

test.each([
  ['xl/sharedStrings.xml', 'xl/SharedStrings.xml'],
  ['xl/workbook.xml', 'xl\\Workbook.xml'],
])('the part %s is found as %s', async (path, other) => {
  const bytes = book(shared('<v>0</v>'), { sharedStrings }).toString('latin1')
  const stdin = Buffer.from(bytes.replaceAll(path, other), 'latin1')
  expect(await user.import('', stdin)).toEqual({ code: 0, created: 1, err: '' })
  expect(await user.list()).toBe(buildPlantLine(1, 'bold plain'))
})

test('cells to the right of the header are ignored, and one line says in how many rows', async () => {
  const sheet = buildRows(['1', 'a', '', 'surplus'], ['', '', '', 'note only'], ['2', 'b'])
  const stdin = book(sheet)
  const err =
    'plants: Skipped 1 row without an id, a name and a tag\n' +
    'plants: Ignored the cells to the right of the header in 2 rows\n'
  expect(await user.import('', stdin)).toEqual({ code: 0, created: 2, err })
})

test('a formula without a saved value rejects its record, which keeps its tag', async () => {
  await user.import('--format csv', 'id,name,tag\n1,Fern,keep\n')
  const empty = '<c t="str"><f>A1</f><v></v></c>'
  const sheet = [
    `<c><v>1</v></c>${buildInlineCell('Fern')}<c><f>A1</f></c>`,
    `<c><v>2</v></c>${buildInlineCell('b')}<c><f>A1</f><v/></c>`,
    `<c><v>3</v></c>${buildInlineCell('c')}${empty}`,
    `<c><f>A1</f></c>${buildInlineCell('d')}<c/>`,
    `<c><v>5</v></c><c t="str"><f>A1</f></c><c/>`,
  ]
  const stdin = book(`<row>${sheet.join('</row><row>')}</row>`)
  const { err, ...result } = await user.import('--if-exists update --rejects rejected.csv', stdin)
  expect(result).toMatchObject({ code: 6, created: 1, rejected: { 422: 4 } })
  expect(err).toContain(
    'stdin:2: Invalid plant: the tag is unknown because the formula has no saved value: ' +
      'open the workbook in a spreadsheet, and save it\n',
  )
  expect(await user.list()).toBe(buildPlantLine(1, 'Fern', 'keep') + buildPlantLine(3, 'c'))
  // A rejects file that nobody corrects is rejected again.
  const again = await user.import('rejected.csv --if-exists update')
  expect(again).toMatchObject({ code: 6, rejected: { 422: 4 } })
})

test('empty cells of every type are empty', async () => {
  const types = ['s', 'n', 'b', 'd', 'str', 'inlineStr']
  const sheet = types.flatMap((type, id) => [
    `<row><c><v>${2 * id}</v></c>${buildInlineCell(type)}<c t="${type}"/></row>`,
    `<row><c><v>${2 * id + 1}</v></c>${buildInlineCell(type)}<c t="${type}"><v/></c></row>`,
  ])
  const result = await user.import('', book(sheet.join('')))
  expect(result).toEqual({ code: 0, created: 2 * types.length, err: '' })
  expect(await user.list()).toBe(
    types
      .flatMap((type, id) => [buildPlantLine(2 * id, type), buildPlantLine(2 * id + 1, type)])
      .join(''),
  )
})

test('dates and times of both calendars and of custom formats', async () => {
  const codes = ['yyyy\\-mm\\-dd', 'h:mm', '[h]:mm:ss', '[$-411]ggge', 'General', '0.0E+0', '0" d"']
  const formats = codes.map((code, index) => {
    const escaped = code.replaceAll('"', '&quot;')
    return `<numFmt numFmtId="${200 + index}" formatCode="${escaped}"/>`
  })
  const xfs = codes.map((_, index) => `<xf numFmtId="${200 + index}"/>`)
  const styles = `<numFmts>${formats.join('')}</numFmts><cellXfs>${xfs.join('')}</cellXfs>`
  const cells: [value: string, format: number, in1900: string, in1904: string][] = [
    ['46082', 0, '2026-03-01', '2030-03-02'],
    ['0', 0, '00:00:00', '1904-01-01'],
    ['0.5', 0, '12:00:00', '1904-01-01T12:00:00'],
    ['1', 0, '1900-01-01', '1904-01-02'],
    ['59', 0, '1900-02-28', '1904-02-29'],
    ['61', 0, '1900-03-01', '1904-03-02'],
    ['2957003', 0, '9995-12-30', '9999-12-31'],
    ['0', 1, '00:00:00', '00:00:00'],
    ['0.5', 1, '12:00:00', '12:00:00'],
    ['1.5', 1, '1900-01-01T12:00:00', '1904-01-02T12:00:00'],
    ['1.5', 2, '36:00:00', '36:00:00'],
    ['0.75', 2, '18:00:00', '18:00:00'],
    ['46082', 3, '2026-03-01', '2030-03-02'],
    ['46082', 4, '46082', '46082'],
    ['46082', 5, '46082', '46082'],
    ['46082', 6, '46082', '46082'],
  ]
  const sheet = cells.map(
    ([value, format], id) =>
      `<row><c s="4"><v>${id}</v></c><c s="${format}"><v>${value}</v></c></row>`,
  )
  for (const [column, properties] of [
    [2, ''],
    [3, '<workbookPr date1904="1"/>'],
  ] as const) {
    user = new ImportSandbox()
    const result = await user.import('', book(sheet.join(''), { styles, properties }))
    expect(result).toEqual({ code: 0, created: cells.length, err: '' })
    expect(await user.list()).toBe(cells.map((row, id) => buildPlantLine(id, row[column])).join(''))
  }
})

test.each([
  ['1900', '0', ['60', '60.5', '-1', '2958466']],
  ['1904', 'true', ['-1', '-0.5', '2957004']],
])('days that the calendar of %s does not have reject their records', async (_, date1904, days) => {
  const styles = '<cellXfs><xf numFmtId="14"/><xf numFmtId="0"/></cellXfs>'
  const values = [...days, 'x']
  const sheet = values.map(
    (value, id) => `<row><c s="1"><v>${id}</v></c><c><v>${value}</v></c></row>`,
  )
  const properties = `<workbookPr date1904="${date1904}"/>`
  const result = await user.import('', book(sheet.join(''), { styles, properties }))
  expect(result).toMatchObject({ code: 6, rejected: { 422: values.length } })
  expect(result.err).toContain('stdin:2: Invalid plant: the name is a date that does not exist')
  expect(result.err).toContain(
    `stdin:${values.length + 1}: Invalid plant: the name is not a number, although its cell`,
  )
})

test.each([
  ['is neither 1900 nor 1904', '<workbookPr date1904="x"/>'],
  ['is told twice', '<workbookPr date1904="1"/><workbookPr/>'],
])('a workbook whose calendar %s is damaged', async (_, properties) => {
  const stdin = book(buildRows(['1', 'Fern']), { properties })
  const result = await user.import('', stdin)
  expect(result).toMatchObject({ code: 2, err: expect.stringContaining('stdin is damaged: ') })
})

test('only the properties of the workbook itself choose its calendar', async () => {
  const styles = '<cellXfs><xf numFmtId="14"/></cellXfs>'
  const properties = '<x><workbookPr date1904="1"/></x>'
  const stdin = book('<row><c t="str"><v>1</v></c><c><v>46082</v></c></row>', {
    styles,
    properties,
  })
  expect(await user.import('', stdin)).toMatchObject({ code: 0, created: 1 })
  expect(await user.list()).toBe(buildPlantLine(1, '2026-03-01'))
})

test('a second sheet with the columns is named', async () => {
  const plants = header + buildRows(['1', 'Fern'])
  const result = await user.import('', buildWorkbook({ sheets: { A: plants, 'B c': plants } }))
  const err =
    'plants: The sheet "B c" of stdin also has the columns, but was not read. ' +
    "To read it, add --sheet 'B c'\n"
  expect(result).toEqual({ code: 0, created: 1, err })
  expect(
    (await user.import(['--sheet', 'B c'], buildWorkbook({ sheets: { 'B c': plants } }))).err,
  ).toBe('')
})

test('a hidden sheet is read by its name alone', async () => {
  const sheets = {
    Old: header + buildRows(['1', 'Old']),
    New: header + buildRows(['2', 'New']),
    Z: '',
  }
  const stdin = buildWorkbook({ sheets, hidden: ['Old', 'Z'] })
  expect(await user.import('', stdin)).toEqual({ code: 0, created: 1, err: '' })
  expect(await user.import('--sheet 1', stdin)).toMatchObject({ skipped: 1 })
  expect(await user.import('--sheet 2', stdin)).toEqual({
    code: 2,
    err: expect.stringContaining(
      'Choose one of its sheets with --sheet: "Old" (hidden), "New", "Z" (hidden)',
    ),
  })
  expect(await user.import('--sheet old', stdin)).toMatchObject({ code: 0, created: 1 })
})

test.each<[what: string, stdin: Buffer, hint: string]>([
  ['a ZIP archive', buildZip({ 'plants.csv': 'id,name\n' }), 'Unpack it'],
  ['a ZIP archive', Buffer.from('PK\x05\x06'.padEnd(22, '\0')), 'Unpack it'],
  [
    'an OpenDocument spreadsheet (.ods)',
    buildZip({ mimetype: 'application/vnd.oasis.opendocument.spreadsheet' }),
    'Save it as .xlsx or CSV',
  ],
  ['a Word document (.docx)', buildZip({ 'word/document.xml': '<a/>' }), 'Save the list in it'],
  ['an Excel binary workbook (.xlsb)', buildZip({ 'xl/workbook.bin': '' }), 'Save it as .xlsx'],
  ['a document of Apple', buildZip({ 'Index/Document.iwa': '' }), 'In Numbers, export it as Excel'],
  ['protected by a password', compoundFile('EncryptedPackage'), 'Remove the password'],
  ['an old workbook (.xls)', compoundFile('Workbook'), 'Save it as .xlsx or CSV'],
  ['an old Word document (.doc)', compoundFile('WordDocument'), 'Save the list in it'],
])('a file is named as what it is: %s', async (what, stdin, hint) => {
  const { code, err } = await user.import('', stdin)
  expect([code, err]).toEqual([2, expect.stringContaining(`plants: stdin is ${what}`)])
  expect(err).toContain(`\n  ${hint}`)
})

test('a workbook in the 64-bit form of ZIP is read', async () => {
  user.write('stock.xlsx', readFileSync(join(import.meta.dirname, '../../data/zip64.xlsx')))
  expect(await user.import('stock.xlsx')).toEqual({ code: 0, created: 1, err: '' })
  expect(await user.list()).toBe(buildPlantLine(1, '\u00e4', 't'))
})

test('damage of the second file is found before the first one is stored', async () => {
  user.write('a.xlsx', book(buildRows(['1', 'a'])))
  user.write('b.xlsx', book(`${buildRows(['2', 'b']).repeat(30)}<row>`))
  const { code, err } = await user.import('a.xlsx b.xlsx')
  expect([code, err]).toEqual([
    2,
    expect.stringMatching(/^plants: b\.xlsx is damaged: in the sheet "P", /),
  ])
  expect(user.has('data')).toBe(false)
})

test('a row reads the same, whatever is between it and the next one', async () => {
  const plain = buildRows(['1', 'Fern', 'shade'], ['2', 'Moss'])
  const variants = [
    plain.replaceAll('</row><row>', '</row>\r\n <!-- <row></row> --><row>'),
    plain.replaceAll('<row>', '<row><!-- -->'),
    plain.replaceAll('<c ', '<c  ').replaceAll('<row>', '<row/><row >'),
    plain.replaceAll('<t>', '<t><![CDATA[').replaceAll('</t>', ']]></t>'),
    plain.replaceAll(/<(\/?)(row|c|is|t)\b/g, '<$1x:$2'),
  ]
  for (const sheet of [plain, ...variants]) {
    user = new ImportSandbox()
    expect(await user.import('', book(sheet))).toEqual({ code: 0, created: 2, err: '' })
    expect(await user.list()).toBe(buildPlantLine(1, 'Fern', 'shade') + buildPlantLine(2, 'Moss'))
  }
})

test('a row above 1 MiB ends the import with its line', async () => {
  const err = expect.stringContaining('plants: stdin:2: The record is larger than 1 MiB')
  const stdin = book(buildRows(['1', 'y'.repeat(1_100_000)]))
  expect(await user.import('', stdin)).toEqual({ code: 2, err })
})

test('a workbook with any byte changed is read as it was, or rejected', async () => {
  const bytes = book(buildRows(['1', 'Fern', 'shade']) + shared('<v>0</v>').replace('>1<', '>2<'), {
    sharedStrings,
    styles,
  })
  const plants = buildPlantLine(1, 'Fern', 'shade') + buildPlantLine(2, 'bold plain')
  const place = fc.record({ at: fc.nat(bytes.length - 1), value: fc.nat(255) })
  await check(100, [place], async ({ at, value }) => {
    const changed = Buffer.from(bytes)
    changed[at] = value
    user = new ImportSandbox()
    const { code } = await user.import('', changed)
    expect([0, 2]).toContain(code)
    if (code === 0) expect(await user.list()).toBe(plants)
  })
})

test('an import ends on a signal while it reads a sheet of blank cells', async () => {
  const blank = book(`<row>${'<c><v/></c>'.repeat(1000)}</row>`.repeat(1000))
  const stop = new AbortController()
  const before = process.cpuUsage()
  const result = user.import('', blank, { signal: stop.signal })
  await expect.poll(() => process.cpuUsage(before).user, { interval: 5 }).toBeGreaterThan(300_000)
  stop.abort(new PlantsError('interrupted', 'Interrupted'))
  expect((await result).code).toBe(130)
})
