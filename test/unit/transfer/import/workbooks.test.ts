import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { Importer, plant } from '../../../helpers/imports.js'
import { inline, type Parts, packedBytes, rows, workbook, zip } from '../../../helpers/workbook.js'

let user: Importer

beforeEach(() => {
  user = new Importer()
})

const header = rows(['id', 'name', 'tag'])
const saved = (program: string) =>
  readFileSync(join(import.meta.dirname, `../../../data/${program}.xlsx`))
const book = (sheet: string, parts: Parts = {}) =>
  workbook({ sheets: { P: header + sheet }, ...parts })

test('a workbook of LibreOffice', async () => {
  user.write('stock.xlsx', saved('libreoffice'))
  const { err, ...result } = await user.import('stock.xlsx --rejects rejected.csv')
  expect(result).toMatchObject({ code: 6, created: 9, rejected: { 422: 2 } })
  expect(err.split('\n').slice(0, 3)).toEqual([
    'plants: stock.xlsx:14: Invalid plant: id must be an integer from -9223372036854775808 to 9223372036854775807, but was "2026-03-01"',
    'plants: stock.xlsx:15: Invalid plant: id must be an integer from -9223372036854775808 to 9223372036854775807, but was "1.5"',
    'plants: warning: ignored unknown fields "Price", "Bought"',
  ])
  expect(user.read('rejected.csv')).toBe(
    '\ufeffrejected_line,rejected_reason,Id,Name,Tag,Price,Bought\n' +
      '14,"Invalid plant: id must be an integer from -9223372036854775808 to 9223372036854775807, but was ""2026-03-01""",2026-03-01,a date as id,t\n' +
      '15,"Invalid plant: id must be an integer from -9223372036854775808 to 9223372036854775807, but was ""1.5""",1.5,half,t\n',
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
  expect(err).toContain(
    'stdin:9: Invalid plant: id is a number above 2^53, which has lost digits. Format it as text\n',
  )
})

const cellXfs = [0, 14, 164, 165, 9, 11, 49].map((id) => `<xf numFmtId="${id}"/>`).join('')
const numFmts =
  '<numFmt numFmtId="164" formatCode="[hh]:mm"/><numFmt numFmtId="165" formatCode="000000"/>'
const styles = `<numFmts>${numFmts}</numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs><cellXfs>${cellXfs}</cellXfs>`
const sharedStrings = '<si><r><t>bold </t></r><r><t>plain</t></r></si>'

test('an id with an exponent is a number in a cell of a number, and none in a text', async () => {
  const number = (value: string) => `<row><c><v>${value}</v></c>${inline('a')}</row>`
  const rows = `${number('1.0E7')}${number('2E3')}${number('7.0')}<row>${inline('1E3')}${inline('b')}</row>`
  const { err, ...counts } = await user.import('', book(rows))
  expect(counts).toEqual({ code: 6, created: 3, rejected: { 422: 1 } })
  expect(err).toContain(
    'Invalid plant: id must be an integer from -9223372036854775808 to 9223372036854775807, but was "1E3"',
  )
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
    ['a fraction of a second', number('46082.60416666', 1), '2026-03-01T14:30:00'],
    ['the text of a date', '<c t="d"><v>2026-03-01</v></c>', '2026-03-01'],
    ['false', '<c t="b"><v>0</v></c>', 'FALSE'],
    [
      'a fraction that its XML writes with an exponent',
      number('-1.5E-30'),
      `-0.${'0'.repeat(29)}15`,
    ],
    ['a number with the zeros of its format', number('123', 3), '123'],
    ['a percentage', number('0.5', 4), '0.5'],
    ['a number that shows an exponent, as a name', number('1000', 5), '1000'],
    ['the formula of a number', '<c><f>6*7</f><v>42</v></c>', '42'],
    ['the formula of a truth value', '<c t="b"><f>1=1</f><v>1</v></c>', 'TRUE'],
    ['a number with a format of text', number('7', 6), '7'],
    [
      'text in runs, with its reading',
      '<c t="inlineStr"><is><r><t>a </t></r><rPh><t>x</t></rPh><r><t>b</t></r></is></c>',
      'a b',
    ],
    [
      'markup in characters',
      '<c t="str"><v><![CDATA[<a> &amp;]]> &lt;&#98;&#x63;></v></c>',
      '<a> &amp; <bc>',
    ],
    ['an element with a prefix', '<x:c t="inlineStr"><x:is><x:t>p</x:t></x:is></x:c>', 'p'],
    ['white space of Unicode', inline('\u00a0\u3000 a\u2003b\u2028'), 'a\u2003b'],
    ['the value of a formula', '<c t="str"><f>A1&amp;"x"</f><v> x </v></c>', 'x'],
    ['characters that XML cannot have', inline('a_x000D_b_x005F_x0041_'), 'a\rb_x0041_'],
    ['a text that cells share', '<c t="s"><v>0</v></c>', 'bold plain'],
  ]
  const sheet = cells
    .map(([what, cell], id) => `<row><c><v>${id}</v></c>${cell}${inline(what)}</row>`)
    .join('')
  const result = await user.import('', book(sheet, { sharedStrings, styles }))
  expect(result).toEqual({ code: 0, created: cells.length, err: '' })
  expect((await user.list()).split(/(?<=\n)/)).toEqual(
    cells.map(([what, , name], id) => plant(id, name, what)),
  )
})

test.each([
  [
    'a number above 2^53',
    '<c><v>9007199254740993</v></c>',
    'name is a number above 2^53, which has lost digits',
  ],
  ['a word for U+0000', inline('a_x0000_'), 'name must be a string of Unicode text without U+0000'],
])('%s is rejected', async (_, cell, reason) => {
  const sheet = `<row><c><v>1</v></c>${cell}</row><row><c><v>2</v></c>${inline('Fern')}<c/></row>`
  const { err, ...result } = await user.import('', book(sheet, { styles }))
  expect(result).toEqual({ code: 6, created: 1, rejected: { 422: 1 } })
  expect(err).toContain(`stdin:2: Invalid plant: ${reason}`)
})

test('dates that are counted from 1904', async () => {
  const parts = { styles, properties: '<workbookPr date1904="1"/>' }
  const sheet = `<row><c><v>1</v></c><c s="1"><v>44620</v></c></row>`
  expect(await user.import('', book(sheet, parts))).toMatchObject({ code: 0, created: 1 })
  expect(await user.list()).toBe(plant(1, '2026-03-01'))
})

test('an error in the cell of a field is a rejected record that names it, and elsewhere is ignored', async () => {
  const error = (code: string) => `<c t="e"><v>${code}</v></c>`
  const formula = '<c t="e"><f>1/0</f><v>#DIV/0!</v></c>'
  const sheet = [
    `${error('#N/A')}${inline('a')}<c/>`,
    `<c><v>2</v></c>${error('#REF!')}<c/>`,
    `<c><v>3</v></c>${inline('c')}${formula}`,
    `<c><v>4</v></c>${inline('d')}${inline('t')}${error('#N/A')}`,
    `<c><v>5</v></c>${inline('e')}${inline('#N/A')}`,
  ]
  const rows = `<row>${inline('id')}${inline('name')}${inline('tag')}${inline('note')}</row>`
  const stdin = workbook({ sheets: { P: `${rows}<row>${sheet.join('</row><row>')}</row>` } })
  const { err, ...result } = await user.import('--rejects rejected.csv', stdin)
  expect(result).toMatchObject({ code: 6, created: 1, rejected: { 422: 4 } })
  expect(err.split('\n').slice(0, 4)).toEqual([
    'plants: stdin:2: Invalid plant: id has the error #N/A',
    'plants: stdin:3: Invalid plant: name has the error #REF!',
    'plants: stdin:4: Invalid plant: tag has the error #DIV/0!',
    'plants: stdin:6: Invalid plant: tag has the error #N/A',
  ])
  expect(user.read('rejected.csv')).toContain(
    '\n3,Invalid plant: name has the error #REF!,2,#REF!,\n',
  )
  expect(await user.list()).toBe(plant(4, 'd', 't'))
})

test('an archive that is not compressed', async () => {
  const stdin = book(rows(['1', 'Fern', 'shade']), { isStored: true })
  expect(await user.import('', stdin)).toEqual({ code: 0, created: 1, err: '' })
})

test('a table after more blank rows than are searched for a header', async () => {
  const place = (row: number, content: string) => content.replace('<row>', `<row r="${row}">`)
  const sheet = place(3000, header) + place(3001, rows(['1', 'Fern']))
  expect(await user.import('', workbook({ sheets: { P: sheet } }))).toMatchObject({
    code: 0,
    created: 1,
  })
  expect(
    await user.import('--if-exists skip', workbook({ sheets: { Q: '', P: sheet } })),
  ).toMatchObject({ skipped: 1 })
  expect(await user.list()).toBe(plant(1, 'Fern'))
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
  const plants = header + rows(['1', 'Fern', 'shade'])
  const two = { 'Our notes': rows(['water on Mondays']), Plants: plants }
  const three = {
    ...two,
    '2027': rows(['No', 'Name'], ['5', 'Rose']),
    Copy: header + rows(['9', 'Copy']),
  }
  const unsaved = '<row><c><f>1+1</f></c><c><f>2+2</f></c></row>'
  const chart = { Chart: undefined, Sum: unsaved, Plants: plants }

  test.each<[string, Parts['sheets'], string, number]>([
    ['that has the columns of --map', three, '--map id=No', 5],
    ['of a name', three, '--sheet copy', 9],
    ['whose name is a number', three, '--sheet 2027 --map id=No', 5],
    ['after a chart, which counts', chart, '--sheet 3', 1],
  ])('%s', async (_, sheets = {}, flags, id) => {
    expect(await user.import(flags, workbook({ sheets }))).toEqual({ code: 0, created: 1, err: '' })
    expect(await user.list()).toContain(`{"id":${id},`)
  })

  test('is the first of several that have the columns', async () => {
    expect(await user.import('', workbook({ sheets: three }))).toMatchObject({ created: 1 })
    expect(await user.list()).toBe(plant(1, 'Fern', 'shade'))
  })

  test.each([
    ['accents and case', 'SORTE SCHON', 'Sorte schön'],
    ['decomposed letters', 'Sorte schön', 'Sorte scho\u0308n'],
  ])('is found without regard to %s', async (_, wanted, sheet) => {
    const stdin = workbook({ sheets: { Notes: rows(['x']), [sheet]: plants } })
    expect(await user.import(['--sheet', wanted], stdin)).toMatchObject({ code: 0, created: 1 })
  })

  test.each<[string, Record<string, string>, string, string, string]>([
    [
      'has not the columns',
      { empty: '', a: rows(['x', 'y']), b: '' },
      '',
      'stdin has no column "id", "name": line 1 has only "x", "y"',
      'Choose columns with --map',
    ],
    [
      'is not there',
      two,
      '--sheet 3',
      'There is no sheet "3"',
      'The sheets are "Our notes", "Plants"',
    ],
  ])('%s', async (_, sheets, flags, message, hint) => {
    const err = expect.stringContaining(`plants: ${message}\n  ${hint}`)
    expect(await user.import(flags, workbook({ sheets }))).toEqual({ code: 2, err })
    expect(user.has('data')).toBe(false)
  })
})

/** Changes a byte of what the directory of a workbook says about its sheet (PKWARE's APPNOTE, 4.3.12). */
function flipped(bytes: Buffer, offset: number): Buffer {
  const place = bytes.lastIndexOf('xl/worksheets/sheet1.xml') - 46 + offset
  bytes.writeUInt8(bytes.readUInt8(place) ^ 1, place)
  return bytes
}

const sheetOf = (sheet: string, parts: Parts = {}) => workbook({ sheets: { P: sheet }, ...parts })
const many = (count: number, what: (index: number) => string = String) =>
  Array.from({ length: count }, (_, index) => what(index))
const damaged = 'stdin is damaged'
const damagedSheet = 'Sheet "P" of stdin is damaged'
const unpacks = 'stdin unpacks to too much data\n  Save the sheet as CSV, and import that'
const incomplete = `${damaged}: its end is missing\n  Save it again as .xlsx`
/** Says that the sizes of the sheet come after it, and so does its own header. */
const sizesLater = (bytes: Buffer) => {
  const place = bytes.lastIndexOf('xl/worksheets/sheet1.xml') - 46
  bytes.writeUInt16LE(8, place + 8)
  bytes.fill(0, place + 24, place + 28)
  return bytes
}
const isEmpty = `${damaged}: the archive says that xl/worksheets/sheet1.xml is empty`

test.each<[message: string, stdin: Buffer]>([
  [unpacks, sheetOf('', { sharedStrings: ' '.repeat(68_000_000) })],
  [unpacks, sheetOf('', { declared: 268_435_457 })],
  [
    `${damaged}: Cannot create a Buffer larger than 101 bytes`,
    sheetOf(' '.repeat(100_000), { declared: 100 }),
  ],
  [isEmpty, sheetOf(rows(['id', 'name'], ['1', 'Fern']), { declared: 0 })],
  [isEmpty, sizesLater(sheetOf(rows(['id', 'name'], ['1', 'Fern'])))],
  [`${damagedSheet}: Unsupported compression method 9`, flipped(sheetOf(''), 10)],
  [`${damaged}: it has no sheet`, zip([['[Content_Types].xml', '<a/>']])],
  [`${damaged}: it has no sheet`, workbook({})],
  ['Sheet "Chart" of stdin is damaged: ', workbook({ sheets: { Chart: undefined } })],
  [damaged, zip([['mimetype', 'application/vnd.oasis.opendocument.spreadsheet']])],
  [damaged, zip([['plants.csv', 'id,name\n1,a\n']])],
  [incomplete, book('').subarray(0, 500)],
  [incomplete, book('').subarray(0, -18)],
])('a workbook is rejected: %s', async (message, stdin) => {
  const { code, err } = await user.import('', stdin)
  expect([code, err.slice(0, message.length + 8)]).toEqual([2, `plants: ${message}`])
  expect(user.has('data')).toBe(false)
})

const fern = rows(['1', 'Fern', 'shade'])
const shared = (index: string) => `<row><c><v>1</v></c><c t="s">${index}</c></row>`
const missing = `${damaged}: texts of its cells are missing`
const notUtf8 = `${damaged}: The encoded data was not valid for encoding utf-8`
const sheetIn = (encoding: BufferEncoding) => {
  const text = `\ufeff<worksheet><sheetData>${header}${rows(['1', 'F\xe4rn'])}</sheetData></worksheet>`
  return workbook({ sheets: { P: packedBytes(Buffer.from(text, encoding)) } })
}

test.each<[what: string, message: string, stdin: Buffer]>([
  ['a text that is not there', missing, book(shared('<v>1</v>'), { sharedStrings })],
  ['no texts at all', missing, book(shared('<v>0</v>'))],
  ['a cell that names no text', missing, book(shared(''), { sharedStrings })],
  ['a negative text', missing, book(shared('<v>-1</v>'), { sharedStrings })],
  ['bytes that are not UTF-8', notUtf8, sheetIn('latin1')],
  ['a part in UTF-16', notUtf8, sheetIn('utf16le')],
  ['an element that is not closed', damaged, sheetOf(`${header}${fern}<row>`)],
  ['an entity that does not exist', damaged, sheetOf(header + rows(['1', '&fern;']))],
  ['an ampersand', damaged, book(fern, { sharedStrings: '<si><t>a & b</t></si>' })],
])('nothing is stored of a workbook with %s', async (_, message, stdin) => {
  const { code, err } = await user.import('', stdin)
  expect([code, err.slice(0, message.length + 8)]).toEqual([2, `plants: ${message}`])
  expect(err).toContain('\n  Save it again as .xlsx, or as CSV\n')
  expect(user.has('data')).toBe(false)
})

test.each([
  ['xl/sharedStrings.xml', 'xl/SharedStrings.xml'],
  ['xl/worksheets/sheet1.xml', 'xl/worksheets/Sheet1.XML'],
  ['xl/workbook.xml', 'xl\\Workbook.xml'],
  ['_rels/.rels', '_RELS\\.rels'],
  ['[Content_Types].xml', '[content_types].xml'],
])('the part %s is found as %s', async (path, other) => {
  const stdin = book(shared('<v>0</v>'), { sharedStrings, renamed: { [path]: other } })
  expect(await user.import('', stdin)).toEqual({ code: 0, created: 1, err: '' })
  expect(await user.list()).toBe(plant(1, 'bold plain'))
})

test('cells beyond the header reject their row, as in a table', async () => {
  const rows3 = [
    ['1', 'a', '', 'surplus'],
    ['', '', '', 'note only'],
    ['2', 'b'],
  ]
  const { err, ...result } = await user.import('', book(rows(...rows3)))
  expect(result).toEqual({ code: 6, created: 1, rejected: { 400: 1 } })
  expect(err.split('\n').slice(0, 2)).toEqual([
    'plants: stdin:2: The row has 4 cells, but the header has 3',
    'plants: Rows without an id, a name and a tag: 1, left out',
  ])
})

test('a row above 1 MiB ends the import with its line', async () => {
  const cell = `<c t="inlineStr"><is><t>${'y'.repeat(1_100_000)}</t></is></c>`
  const sheet = `<row><c><v>1</v></c>${cell}</row>`
  const why = 'plants: stdin:2: The record is larger than 1 MiB (1048576 bytes)\n'
  expect(await user.import('', book(sheet))).toEqual({
    code: 2,
    err: expect.stringContaining(why),
  })
})

test('rows with a cell far to the right of the table are left out, and take little time', async () => {
  const far = many(
    2000,
    (row) => `<row r="${row + 3}"><c r="XFD${row + 3}"><v>1</v></c></row>`,
  ).join('')
  const sheet = `<row r="1">${inline('id').replace('<c', '<c r="A1"')}${inline('name').replace('<c', '<c r="B1"')}</row>`
  const plant1 = `<row r="2"><c r="A2"><v>1</v></c>${inline('Fern').replace('<c', '<c r="B2"')}</row>`
  expect(await user.import('', sheetOf(sheet + plant1 + far))).toEqual({
    code: 0,
    created: 1,
    err: 'plants: Rows without an id, a name and a tag: 2,000, left out\n',
  })
})
