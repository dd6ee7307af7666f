import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { Importer, plant } from '../../../helpers/imports.js'
import { inline, type Parts, rows, workbook, zip } from '../../../helpers/workbook.js'

let user: Importer

beforeEach(() => {
  user = new Importer()
})

const header = rows(['id', 'name', 'tag'])
const saved = (program: string) => readFileSync(join(import.meta.dirname, `../../../data/${program}.xlsx`))
const book = (sheet: string, parts: Parts = {}) => workbook({ sheets: { P: header + sheet }, ...parts })

test('a workbook of LibreOffice', async () => {
  user.write('stock.xlsx', saved('libreoffice'))
  const { err, ...result } = await user.import('stock.xlsx --rejects rejected.csv')
  expect(result).toMatchObject({ code: 6, created: 9, rejected: { 422: 2 } })
  expect(err.split('\n').slice(0, 4)).toEqual([
    'plants: Skipped 2 rows above the header of stock.xlsx in line 4',
    'plants: stock.xlsx:14: Invalid plant: id must be an integer, but was the date "2026-03-01"',
    'plants: stock.xlsx:15: Invalid plant: id must be an integer, but was "1.5"',
    'plants: warning: ignored unknown fields "Price", "Bought"',
  ])
  expect(user.read('rejected.csv')).toBe(
    '\ufeffrejected_line,rejected_reason,Id,Name,Tag,Price,Bought\n' +
      '14,"Invalid plant: id must be an integer, but was the date ""2026-03-01""",2026-03-01,a date as id,t\n' +
      '15,"Invalid plant: id must be an integer, but was ""1.5""",1.5,half,t\n',
  )
  expect((await user.list()).split(/(?<=\n)/)).toEqual([
    plant(1, 'Fern', 'shade'),
    plant(2, 'Moss, wet', 'bog'),
    plant(3, 'Röse "Klimt"'),
    plant(7, 'two\nlines', 't'),
    plant(8, 'float id', '2026'),
    plant(9, 'TRUE', '1.25'),
    plant(11, 'Id', 't'),
    plant('9007199254740990', 'rounded'), // by LibreOffice
    plant('9007199254740993', 'exact', 'x'),
  ])
})

test('a workbook of openpyxl', async () => {
  const { err, ...counts } = await user.import('', saved('openpyxl'))
  expect(counts).toEqual({ code: 6, created: 7, rejected: { 422: 4 } })
  const advice = 'Open the workbook in a spreadsheet program, and save it'
  expect(err).toContain(`stdin:16: Invalid plant: a formula has no saved value. ${advice}\n`)
  expect(err).toContain(
    'stdin:9: Invalid plant: a number above 2^53 has lost digits in the workbook. Format it as text\n',
  )
})

const cellXfs = [0, 14, 164].map((id) => `<xf numFmtId="${id}"/>`).join('')
const styles = `<numFmts><numFmt numFmtId="164" formatCode="[hh]:mm"/></numFmts><cellXfs>${cellXfs}</cellXfs>`
const sharedStrings = '<si><r><t>bold </t></r><r><t>plain</t></r></si>'

test('an id with an exponent is a number in a cell of a number, and none in a text', async () => {
  const number = (value: string) => `<row><c><v>${value}</v></c>${inline('a')}</row>`
  const rows = `${number('1.0E7')}${number('2E3')}${number('7.0')}<row>${inline('1E3')}${inline('b')}</row>`
  const { err, ...counts } = await user.import('', book(rows))
  expect(counts).toEqual({ code: 6, created: 3, rejected: { 422: 1 } })
  expect(err).toContain('Invalid plant: id must be an integer without an exponent, but was "1E3"')
  expect(await user.list()).toBe(plant(7, 'a') + plant(2000, 'a') + plant(10_000_000, 'a'))
})

test('values of cells', async () => {
  const number = (value: string, style = 0) => `<c s="${style}"><v>${value}</v></c>`
  const cells: [what: string, cell: string, name: string][] = [
    ['a whole number', number('7.0'), '7'],
    ['a number that its XML writes with an exponent', number('1.0E7'), '10000000'],
    ['a number with many zeros', number('1e-7'), '0.0000001'],
    ['a date', number('46082', 1), '2026-03-01'],
    ['a date and a time', number('46082.604166666664', 1), '2026-03-01T14:30:00'],
    ['a time', number('0.5', 1), '12:00:00'],
    ['a duration', number('0.75', 2), '18:00:00'],
    ['false', '<c t="b"><v>0</v></c>', 'FALSE'],
    ['an error', '<c t="e"><v>#N/A</v></c>', '#N/A'],
    ['the value of a formula', '<c t="str"><f>A1&amp;"x"</f><v> x </v></c>', 'x'],
    ['characters that XML cannot have', inline('a_x000D_b_x005F_x0041_'), 'a\rb_x0041_'],
    ['a text that cells share', '<c t="s"><v>0</v></c>', 'bold plain'],
  ]
  const sheet = cells.map(([what, cell], id) => `<row><c><v>${id}</v></c>${cell}${inline(what)}</row>`).join('')
  const result = await user.import('', book(sheet, { sharedStrings, styles }))
  expect(result).toEqual({ code: 0, created: cells.length, err: '' })
  expect((await user.list()).split(/(?<=\n)/)).toEqual(cells.map(([what, , name], id) => plant(id, name, what)))
})

test.each([
  ['a number above 2^53', '<c><v>9007199254740993</v></c>', 'a number above 2^53 has lost digits in the workbook'],
  ['a number that no date can be', '<c s="1"><v>1e300</v></c>', 'a date is not in the years 1800 to 9999'],
  ['a word for U+0000', inline('a_x0000_'), 'name must be text without U+0000'],
])('%s is rejected', async (_, cell, reason) => {
  const sheet = `<row><c><v>1</v></c>${cell}</row><row><c><v>2</v></c>${inline('Fern')}<c/></row>`
  const { err, ...result } = await user.import('', book(sheet, { styles }))
  expect(result).toEqual({ code: 6, created: 1, rejected: { 422: 1 } })
  expect(err).toContain(`stdin:2: Invalid plant: ${reason}`)
})

test('dates that are counted from 1904', async () => {
  const sheet = '<row><c><v>1</v></c><c s="1"><v>44620</v></c></row>'
  await user.import('', book(sheet, { styles, properties: '<workbookPr date1904="1"/>' }))
  expect(await user.list()).toBe(plant(1, '2026-03-01'))
})

test('rows and cells that say where they are', async () => {
  const cell = (place: string, text: string) => inline(text).replace('<c', `<c r="${place}"`)
  const sheet = [
    `<row r="3">${cell('B3', 'name')}${cell('AA3', 'id')}</row>`,
    `<row r="7">${cell('B7', 'Fern')}<c r="AA7"><v>1</v></c></row>`,
    `<row r="9">${cell('B9', 'a&#10;b')}</row>`,
    '<row r="10"><c r="AA10"><v>2</v></c></row>',
  ]
  const { err } = await user.import('', workbook({ sheets: { Plants: sheet.join('') } }))
  expect(err).toContain('stdin:9: Invalid plant: id must be')
  expect(err).toContain('stdin:10: Invalid plant: name must be')
  expect(await user.list()).toBe(plant(1, 'Fern'))
})

describe('the sheet', () => {
  const plants = header + rows(['1', 'Fern', 'shade', 'beside the table'])
  const two = { 'Our notes': rows(['water on Mondays']), Plants: plants }
  const three = { ...two, '2027': rows(['No', 'Name'], ['5', 'Rose']), Copy: header + rows(['9', 'Copy']) }
  const unsaved = '<row><c><f>1+1</f></c><c><f>2+2</f></c></row>'
  const chart = { Chart: undefined, Sum: unsaved, Plants: plants }

  test.each<[string, Parts['sheets'], string, number]>([
    ['that has the columns of --map', three, '--map id=No', 5],
    ['of a name', three, '--sheet copy', 9],
    ['whose name is a number', three, '--sheet 2027 --map id=No', 5],
    ['after a chart, which counts', chart, '--sheet 3', 1],
    ['beside unsaved formulas', chart, '', 1],
  ])('%s', async (_, sheets = {}, flags, id) => {
    expect(await user.import(flags, workbook({ sheets }))).toEqual({ code: 0, created: 1, err: '' })
    expect(await user.list()).toContain(`{"id":${id},`)
  })

  test.each(['<f>B1</f>', '<f t="shared" si="0"/>', '<f>B1</f><v/>'])(
    'with a formula without a saved value: %s',
    async (formula) => {
      const row = (line: number, cell: string) =>
        `<row r="${line}"><c r="A${line}"><v>${line}</v></c>${inline('Fern').replace('<c', `<c r="B${line}"`)}${cell}</row>`
      const sheet = row(2, `<c r="C2">${formula}</c>`) + row(3, `<c r="C3" t="str"><f>B1</f><v></v></c>`)
      const { err, ...result } = await user.import('', workbook({ sheets: { Other: row(2, ''), P: header + sheet } }))
      expect(result).toEqual({ code: 6, created: 1, rejected: { 422: 1 } })
      expect(err).toContain('stdin:2: Invalid plant: a formula has no saved value')
    },
  )

  const several = 'Several of the sheets of stdin have the columns of plants: "Plants", "Copy"'
  const none = 'None of the sheets of stdin have the columns of plants: "a", "b"'

  test.each<[string, Record<string, string>, string, string, string]>([
    ['is one of several', three, '', several, 'Choose one with --sheet NAME, and its columns with --map'],
    ['is not found', { a: rows(['x']), b: '' }, '', none, 'Choose one with --sheet NAME, and its columns with --map'],
    ['is not there', two, '--sheet 3', 'stdin has no sheet "3"', 'Its sheets are "Our notes", "Plants"'],
    ['needs no format', two, '--format csv', '--format does not apply to a workbook, as stdin is', 'Leave it out'],
  ])('%s', async (_, sheets, flags, message, hint) => {
    const err = `plants: ${message}\n  ${hint}\n`
    expect(await user.import(flags, workbook({ sheets }))).toEqual({ code: 2, err })
    expect(user.has('data')).toBe(false)
  })
})

/** Changes the checksum of a sheet in the directory of a workbook. */
function flipped(bytes: Buffer): Buffer {
  const place = bytes.lastIndexOf('xl/worksheets/sheet1.xml') - 30
  bytes.writeUInt32LE((bytes.readUInt32LE(place) ^ 1) >>> 0, place)
  return bytes
}

const sheetOf = (sheet: string, parts: Parts = {}) => workbook({ sheets: { P: sheet }, ...parts })
const many = (count: number, what: (index: number) => string = String) =>
  Array.from({ length: count }, (_, index) => what(index))
const damaged = 'stdin is damaged'
const damagedSheet = 'Sheet "P" of stdin is damaged'
const unpacks = 'stdin unpacks to more than'
const large = ' '.repeat(268_435_457)
const size = 'xl/worksheets/sheet1.xml has another size or checksum than the archive says'

test.each<[message: string, stdin: Buffer]>([
  [`${unpacks} 50331648 bytes of xl/sharedStrings.xml`, sheetOf('', { sharedStrings: ' '.repeat(68_000_000) })],
  [`${unpacks} 536870912 bytes`, workbook({ sheets: { P: large, Q: large } })],
  [`${damagedSheet}: Decompressed size exceeds limit of 100 bytes`, sheetOf(' '.repeat(100_000), { declared: 100 })],
  [`${damaged}: ${size}`, sheetOf(rows(['id', 'name'], ['1', 'Fern']), { declared: 0 })],
  [
    'None of the sheets of stdin have the columns of plants',
    workbook({ sheets: Object.fromEntries(many(1001).map((name) => [name, ''])) }),
  ],
  [`${damaged}: Invalid XLSX: `, zip([['[Content_Types].xml', '<a/>']])],
  ['stdin is a ZIP archive without a sheet of Excel', workbook({})],
  ['Sheet "Chart" of stdin is damaged: ', workbook({ sheets: { Chart: undefined } })],
  ['stdin is an OpenDocument file (.ods)', zip([['mimetype', 'application/vnd.oasis.opendocument.spreadsheet']])],
  ['stdin is a binary workbook (.xlsb)', zip([['xl/workbook.bin', 'x']])],
  ['stdin is a ZIP archive\n  Unpack it first', zip([['plants.csv', 'id,name\n1,a\n']])],
  [
    'stdin is a ZIP archive\n  Unpack it first',
    zip([
      ['list/', ''],
      ['list/Sträucher', 'id,name\n'],
    ]),
  ],
  [
    'stdin is a Word document (.docx)\n  Save its',
    zip([
      ['[Content_Types].xml', '<Types/>'],
      ['word/document.xml', 'x'],
    ]),
  ],
  ['stdin is a file of Apple Numbers\n  Export it', zip([['Index/Document.iwa', 'x']])],
  [`${damagedSheet}: CRC-32 mismatch for xl/worksheets/sheet1.xml`, flipped(book(''))],
  [`${damaged}: it has no directory`, book('').subarray(0, 500)],
  [`${damaged}: its directory is cut off`, book('').subarray(0, -18)],
  [`${damaged}: its directory is cut off`, Buffer.from('PK\x05\x06')],
  ['stdin is an old workbook (.xls), or has a password', Buffer.from('d0cf11e0a1b11ae10000000000000000', 'hex')],
])('a workbook is rejected: %s', async (message, stdin) => {
  const { code, err } = await user.import('', stdin)
  expect([code, err.slice(0, message.length + 8)]).toEqual([2, `plants: ${message}`])
  expect(user.has('data')).toBe(false)
})

test('large texts that cells share, or in many parts, are rejected records', async () => {
  const large = 'y'.repeat(1_100_000)
  const cell = (index: number) => `<c t="s"><v>${index}</v></c>`
  const cells = [...many(20, () => cell(0)), cell(1).repeat(16_000)] // of which two are in columns
  cells.push(`<c t="inlineStr"><is>${`<t>${large}</t>`.repeat(3)}</is></c>`, inline('Fern'))
  const sheet = cells.map((row, id) => `<row><c><v>${id}</v></c>${row}</row>`).join('')
  const sharedStrings = `<si><t>${large}</t></si><si><t>${'y'.repeat(32_767)}</t></si>`
  expect(await user.import('-q', book(sheet, { sharedStrings }))).toMatchObject({ created: 2, rejected: { 413: 21 } })
})

test('rows that would become more than 1 GiB of text are refused while they are read', async () => {
  const large = 'y'.repeat(1_000_000)
  const cells = many(1100, (id) => `<row><c><v>${id}</v></c><c t="s"><v>0</v></c></row>`).join('')
  const stdin = book(cells, { sharedStrings: `<si><t>${large}</t></si>` })
  const { code, err } = await user.run('import --dry-run -q', { stdin })
  expect([code, err]).toEqual([2, expect.stringContaining('unpacks to more than 1 GiB of text')])
})

test('cells far to the right of the table take no memory', async () => {
  const far = many(20_000, (row) => `<row r="${row + 3}"><c r="XFD${row + 3}"><v>1</v></c></row>`).join('')
  const sheet = `<row r="1">${inline('id').replace('<c', '<c r="A1"')}${inline('name').replace('<c', '<c r="B1"')}</row>`
  const plant1 = `<row r="2"><c r="A2"><v>1</v></c>${inline('Fern').replace('<c', '<c r="B2"')}</row>`
  expect(await user.import('', sheetOf(sheet + plant1 + far))).toEqual({ code: 0, created: 1, err: '' })
})

test('formats of numbers are read in time', async () => {
  const formats = many(60, (id) => `<numFmt numFmtId="${id + 200}" formatCode="${'['.repeat(60_000)}"/>`)
  const stdin = book(rows(['1', 'Fern']), { styles: formats.join('') })
  expect(await user.import('', stdin)).toEqual({ code: 0, created: 1, err: '' })
})
