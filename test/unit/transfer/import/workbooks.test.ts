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
const saved = (program: string) =>
  readFileSync(join(import.meta.dirname, `../../../data/${program}.xlsx`))
const book = (sheet: string, parts: Parts = {}) =>
  workbook({ sheets: { P: header + sheet }, ...parts })

test('a workbook of LibreOffice', async () => {
  user.write('stock.xlsx', saved('libreoffice'))
  const { err, ...result } = await user.import('stock.xlsx --rejects rejected.csv')
  expect(result).toMatchObject({ code: 6, created: 9, rejected: { 422: 2 } })
  expect(err.split('\n').slice(0, 4)).toEqual([
    'plants: Skipped 2 rows above the header of stock.xlsx in line 4',
    'plants: stock.xlsx:14: Invalid plant: id must be an integer, but was the date "2026-03-01"',
    'plants: stock.xlsx:15: Invalid plant: id must be an integer from -9223372036854775808 to 9223372036854775807, but was "1.5"',
    'plants: warning: ignored unknown fields "Price", "Bought"',
  ])
  expect(user.read('rejected.csv')).toBe(
    '\ufeffrejected_line,rejected_reason,Id,Name,Tag,Price,Bought\n' +
      '14,"Invalid plant: id must be an integer, but was the date ""2026-03-01""",2026-03-01,a date as id,t\n' +
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
  const advice = 'Open the workbook in a spreadsheet program, and save it'
  expect(err).toContain(
    `stdin:16: Invalid plant: name is a formula without a saved value. ${advice}\n`,
  )
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
    ['a time', number('0.5', 1), '12:00:00'],
    ['elapsed time', number('0.75', 2), '18:00:00'],
    ['false', '<c t="b"><v>0</v></c>', 'FALSE'],
    ['a text like an error', inline('#N/A'), '#N/A'],
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
    ['white space of Unicode', inline('\u00a0\u3000\u0085 a\u2003b\u2028'), 'a\u2003b'],
    ['a mark that is no white space', inline('\ufeffa'), '\ufeffa'],
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
  [
    'a number that no date can be',
    '<c s="1"><v>1e300</v></c>',
    'name is a date that is not in the years 1800 to 9999',
  ],
  [
    'a word for U+0000',
    inline('a_x0000_'),
    'name must be a string of Unicode text without U+0000, but was "a\\u0000"',
  ],
])('%s is rejected', async (_, cell, reason) => {
  const sheet = `<row><c><v>1</v></c>${cell}</row><row><c><v>2</v></c>${inline('Fern')}<c/></row>`
  const { err, ...result } = await user.import('', book(sheet, { styles }))
  expect(result).toEqual({ code: 6, created: 1, rejected: { 422: 1 } })
  expect(err).toContain(`stdin:2: Invalid plant: ${reason}`)
})

/** The styles of these formats: the codes, or the ids of those that need none. */
function stylesOf(...formats: (string | number)[]): string {
  const codes = formats.map((code, index) =>
    typeof code === 'string'
      ? `<numFmt numFmtId="${index + 200}" formatCode="${code.replaceAll('"', '&quot;')}"/>`
      : '',
  )
  const xfs = formats.map(
    (code, index) => `<xf numFmtId="${typeof code === 'number' ? code : index + 200}"/>`,
  )
  return `<numFmts>${codes.join('')}</numFmts><cellXfs>${xfs.join('')}</cellXfs>`
}

/** The names of plants whose cells have these values and formats. */
async function namesOf(
  cells: [value: string, format: string | number, type?: string | undefined][],
  properties = '',
) {
  const sheet = cells.map(
    ([value, , type = 'n'], id) =>
      `<row><c><v>${id}</v></c><c t="${type}" s="${id}"><v>${value}</v></c></row>`,
  )
  const parts = { styles: stylesOf(...cells.map(([, format]) => format)), properties }
  expect(await user.import('', book(sheet.join(''), parts))).toEqual({
    code: 0,
    created: cells.length,
    err: '',
  })
  return (await user.list())
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).name)
}

test('dates and times are alike, whatever the type of their cells', async () => {
  const cells: [string, string | number, string, string?][] = [
    ['46082', 14, '2026-03-01'],
    ['2026-03-01T00:00:00', 14, '2026-03-01', 'd'],
    ['2026-03-01', 0, '2026-03-01', 'd'],
    ['2026-03-01T14:30:00.000Z', 22, '2026-03-01T14:30:00', 'd'],
    ['46082.604166666664', 'yyyy\\-mm\\-dd;@', '2026-03-01T14:30:00'],
    ['46082.60416666', '[$-409]d-mmm-yy', '2026-03-01T14:30:00'],
    ['2026-03-01T14:30:00+02:00', 14, '2026-03-01T14:30:00+02:00', 'd'],
    ['2026-02-30', 14, '2026-02-30', 'd'],
    ['0.5', 'h:mm AM/PM', '12:00:00'],
    ['14:30:00', 21, '14:30:00', 'd'],
    ['1899-12-31T14:30:00', 21, '14:30:00', 'd'],
    ['0', 20, '00:00:00'],
    ['1', 14, '1900-01-01'],
    ['1900-01-01', 14, '1900-01-01', 'd'],
    ['59', 14, '1900-02-28'],
    ['61', 14, '1900-03-01'],
    ['1900-03-01T00:00:00', 14, '1900-03-01', 'd'],
    ['-36522', 14, '1800-01-01'], // as LibreOffice writes it
    ['1.5', '[h]:mm', '36:00:00'],
    ['1.5', 46, '36:00:00'],
    ['1.5', '[mm]:ss', '36:00:00'],
    ['1.5', '[Red][hh]:mm:ss;@', '36:00:00'],
    ['1900-01-01T12:00:00', '[h]:mm', '36:00:00', 'd'],
    ['-0.25', '[h]:mm', '-06:00:00'],
    ['60.5', '[h]:mm', '1452:00:00'],
    ['0.500001', 'hh:mm:ss.000', '12:00:00'],
    ['0.500001', 47, '12:00:00'],
    ['1', '0" d"', '1'],
    ['1', '0.0_d', '1'],
    ['1', '#,##0 [$USD]', '1'],
    ['1', 'General', '1'],
    ['1', '\\h0', '1'],
  ]
  const names = await namesOf(cells.map(([value, format, , type]) => [value, format, type]))
  expect(names).toEqual(cells.map(([, , name]) => name))
})

test('dates of every type that are counted from 1904', async () => {
  const cells: [string, string | number, string?][] = [
    ['44620', 14],
    ['2026-03-01T00:00:00', 14, 'd'],
    ['0.5', 20],
    ['14:30', 20, 'd'],
    ['1.5', '[h]:mm'],
    ['-1.5', '[h]:mm'],
  ]
  const expected = ['2026-03-01', '2026-03-01', '12:00:00', '14:30:00', '36:00:00', '-36:00:00']
  expect(await namesOf(cells, '<workbookPr date1904="1"/>')).toEqual(expected)
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
  expect(result).toMatchObject({ code: 6, created: 2, rejected: { 422: 3 } })
  expect(err.split('\n').slice(0, 3)).toEqual([
    'plants: stdin:2: Invalid plant: id has the error #N/A',
    'plants: stdin:3: Invalid plant: name has the error #REF!',
    'plants: stdin:4: Invalid plant: tag has the error #DIV/0!',
  ])
  expect(user.read('rejected.csv')).toContain(
    '\n3,Invalid plant: name has the error #REF!,2,#REF!\n',
  )
  expect(await user.list()).toBe(plant(4, 'd', 't') + plant(5, 'e', '#N/A'))
})

test.each([11, 48, '0.00E+00', '##0.0e-0', '[Red]0E+0;-0E+0'])(
  'a number that its cell shows with an exponent is no id: format %s',
  async (format) => {
    const number = (value: number, style: number) => `<c s="${style}"><v>${value}</v></c>`
    const cells = [number(1000, 0), number(1000, 1)].map(
      (id) => `<row>${id}${number(1000, 0)}${number(1000, 0)}</row>`,
    )
    const stdin = book(cells.join(''), { styles: stylesOf(format, '0"E+"') })
    const { err, ...result } = await user.import('--rejects rejected.csv', stdin)
    expect(result).toMatchObject({ code: 6, created: 1, rejected: { 422: 1 } })
    const reason =
      'id is 1000, shown with an exponent, as spreadsheets make of a text like 1E3. Format it as text'
    expect(err).toContain(`plants: stdin:2: Invalid plant: ${reason}\n`)
    // In a table, which has no formats, the id is no number either.
    expect(user.read('rejected.csv')).toContain(`,1E+3,`)
    expect(await user.list()).toBe(plant(1000, '1000', '1000'))
  },
)

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
  const plants = header + rows(['1', 'Fern', 'shade', 'beside the table'])
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
      const sheet =
        row(2, `<c r="C2">${formula}</c>`) + row(3, `<c r="C3" t="str"><f>B1</f><v></v></c>`)
      const { err, ...result } = await user.import(
        '',
        workbook({ sheets: { Other: row(2, ''), P: header + sheet } }),
      )
      expect(result).toEqual({ code: 6, created: 1, rejected: { 422: 1 } })
      expect(err).toContain('stdin:2: Invalid plant: tag is a formula without a saved value')
    },
  )

  const several = 'Several of the sheets of stdin have the columns of plants: "Plants", "Copy"'
  const none = 'None of the sheets of stdin have the columns of plants: "a", "b"'

  test.each<[string, Record<string, string>, string, string, string]>([
    [
      'is one of several',
      three,
      '',
      several,
      'Choose one with --sheet NAME, and its columns with --map',
    ],
    [
      'is not found',
      { a: rows(['x']), b: '' },
      '',
      none,
      'Choose one with --sheet NAME, and its columns with --map',
    ],
    [
      'is not there',
      two,
      '--sheet 3',
      'stdin has no sheet "3"',
      'Its sheets are "Our notes", "Plants"',
    ],
    [
      'needs no format',
      two,
      '--format csv',
      'stdin is a workbook, which has no format to choose',
      'Leave out --format',
    ],
  ])('%s', async (_, sheets, flags, message, hint) => {
    const err = `plants: ${message}\n  ${hint}\n`
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

/** Says that the directory has the places of another one, in ZIP64. */
function largerArchive(bytes: Buffer): Buffer {
  bytes.writeUInt16LE(0xffff, bytes.lastIndexOf('PK\x05\x06') + 10)
  return bytes
}

function withoutMiddle(bytes: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, 100), bytes.subarray(120)])
}

/** Says that the styles are where no byte is. */
function stylesElsewhere(bytes: Buffer): Buffer {
  bytes.writeUInt32LE(bytes.length, bytes.lastIndexOf('xl/styles.xml') - 4)
  return bytes
}

const sheetOf = (sheet: string, parts: Parts = {}) => workbook({ sheets: { P: sheet }, ...parts })
const many = (count: number, what: (index: number) => string = String) =>
  Array.from({ length: count }, (_, index) => what(index))
const damaged = 'stdin is damaged'
const incomplete =
  'stdin is incomplete: its end is missing, as after a download or a copy that did not finish'
const damagedSheet = 'Sheet "P" of stdin is damaged'
const unpacks = 'stdin unpacks to too much data\n  Save the sheet as CSV, and import that'
const large = ' '.repeat(201_326_592)
const size = 'xl/worksheets/sheet1.xml has another size or checksum than the archive says'
/** Says that the sizes of the sheet come after it, and so does its own header. */
const sizesLater = (bytes: Buffer) => {
  const place = bytes.lastIndexOf('xl/worksheets/sheet1.xml') - 46
  bytes.writeUInt16LE(8, place + 8)
  bytes.fill(0, place + 16, place + 28)
  return bytes
}

test.each<[message: string, stdin: Buffer]>([
  [unpacks, sheetOf('', { sharedStrings: ' '.repeat(68_000_000) })],
  [unpacks, sheetOf(large)],
  [
    unpacks,
    sheetOf(
      '<row><c r="IV1"><v>1</v></c></row><row r="1048576"><c r="A1048576"><v>1</v></c></row>',
    ),
  ],
  [
    `${damagedSheet}: Decompressed size exceeds limit of 100 bytes`,
    sheetOf(' '.repeat(100_000), { declared: 100 }),
  ],
  [`${damaged}: ${size}`, sheetOf(rows(['id', 'name'], ['1', 'Fern']), { declared: 0 })],
  [`${damaged}: ${size}`, sizesLater(sheetOf(rows(['id', 'name'], ['1', 'Fern'])))],
  [`${damaged}: its list of parts is that of a larger archive`, largerArchive(sheetOf(''))],
  [`${damagedSheet}: Unsupported compression method 9`, flipped(sheetOf(''), 10)],
  [
    'None of the sheets of stdin have the columns of plants',
    workbook({ sheets: Object.fromEntries(many(1001).map((name) => [name, ''])) }),
  ],
  [`${damaged}: Invalid XLSX: `, zip([['[Content_Types].xml', '<a/>']])],
  ['stdin is a ZIP archive without a sheet of Excel', workbook({})],
  ['Sheet "Chart" of stdin is damaged: ', workbook({ sheets: { Chart: undefined } })],
  [
    'stdin is an OpenDocument file (.ods)',
    zip([['mimetype', 'application/vnd.oasis.opendocument.spreadsheet']]),
  ],
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
  [`${damagedSheet}: CRC-32 mismatch for xl/worksheets/sheet1.xml`, flipped(book(''), 16)],
  [
    `${incomplete}\n  Fetch or copy it again, or save it again as .xlsx\n`,
    book('').subarray(0, 500),
  ],
  [incomplete, book('').subarray(0, -18)],
  [incomplete, Buffer.from('PK\x05\x06')],
  [
    `${damaged}: its list of parts is not where its end says\n  Save it again`,
    withoutMiddle(book('')),
  ],
  [`${damaged}: its list of parts is wrong`, stylesElsewhere(sheetOf('', { styles: '' }))],
  [
    'stdin is an old workbook (.xls), or has a password',
    Buffer.from('d0cf11e0a1b11ae10000000000000000', 'hex'),
  ],
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
  expect(await user.import('-q', book(sheet, { sharedStrings }))).toMatchObject({
    created: 2,
    rejected: { 413: 21 },
  })
})

test('rows that would become more than 1 GiB of text are refused while they are read', async () => {
  const large = 'y'.repeat(1_000_000)
  const cells = many(1100, (id) => `<row><c><v>${id}</v></c><c t="s"><v>0</v></c></row>`).join('')
  const stdin = book(cells, { sharedStrings: `<si><t>${large}</t></si>` })
  const { code, err } = await user.run('import --dry-run -q', { stdin })
  expect([code, err]).toEqual([2, `plants: ${unpacks}\n`])
})

test('cells far to the right of the table take no memory', async () => {
  const far = many(
    20_000,
    (row) => `<row r="${row + 3}"><c r="XFD${row + 3}"><v>1</v></c></row>`,
  ).join('')
  const sheet = `<row r="1">${inline('id').replace('<c', '<c r="A1"')}${inline('name').replace('<c', '<c r="B1"')}</row>`
  const plant1 = `<row r="2"><c r="A2"><v>1</v></c>${inline('Fern').replace('<c', '<c r="B2"')}</row>`
  expect(await user.import('', sheetOf(sheet + plant1 + far))).toEqual({
    code: 0,
    created: 1,
    err: '',
  })
})

test('formats of numbers are read in time', async () => {
  const formats = many(
    60,
    (id) => `<numFmt numFmtId="${id + 200}" formatCode="${'['.repeat(60_000)}"/>`,
  )
  const stdin = book(rows(['1', 'Fern']), { styles: formats.join('') })
  expect(await user.import('', stdin)).toEqual({ code: 0, created: 1, err: '' })
})

test('no thread is left when an import ends early, or with an error', async () => {
  const ports = () =>
    process.getActiveResourcesInfo().filter((name) => name === 'MessagePort').length
  await expect.poll(ports).toBe(0) // of the tests before
  const many = Array.from({ length: 5000 }, () => ['x', 'Fern'])
  user.write('many.xlsx', book(rows(...many)))
  user.write('none.xlsx', workbook({ sheets: { P: rows(['a', 'b']) } }))
  expect(await user.import('many.xlsx --max-errors 1')).toMatchObject({ code: 6 })
  expect(await user.import('none.xlsx')).toMatchObject({ code: 2 })
  expect(await user.import('many.xlsx none.xlsx --rejects rejected.csv')).toMatchObject({ code: 2 })
  await expect.poll(ports).toBe(0)
})
