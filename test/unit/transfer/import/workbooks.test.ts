import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Importing, imported, summary } from '../../../helpers/importing.js'
import { inline, rows, workbook, zip } from '../../../helpers/workbook.js'

const saved = (program: string) => readFileSync(join(import.meta.dirname, `../../../data/${program}.xlsx`))
const header = rows(['id', 'name', 'tag'])

test('a workbook of LibreOffice, with titles, blank rows, other columns, dates and formulas', async () => {
  const user = new Importing()
  user.write('stock.xlsx', saved('libreoffice'))
  const { code, summary: result, err } = await user.import(['stock.xlsx', '--rejects', 'rejected.csv'])
  expect({ code, result }).toMatchObject({ code: 6, result: { created: 9, rejected: 2 } })
  expect(err.split('\n').slice(0, 4)).toEqual([
    'plants: stock.xlsx:14: Invalid plant: id must be an integer, in digits only, but was "2026-03-01"',
    'plants: stock.xlsx:15: Invalid plant: id must be an integer, but was "1.5"',
    'plants: warning: ignored unknown field "Price" of 3 plants',
    'plants: warning: ignored unknown field "Bought" of 2 plants',
  ])
  expect(user.read('rejected.csv')).toBe(
    '\ufeffNursery stock\r\nas of March\r\n\r\nId,Name,Tag,Price,Bought\r\n2026-03-01,a date as id,t\r\n1.5,half,t\r\n',
  )
  expect((await user.list()).split('\n')).toEqual([
    '{"id":1,"name":"Fern","tag":"shade"}',
    '{"id":2,"name":"Moss, wet","tag":"bog"}',
    '{"id":3,"name":"Röse \\"Klimt\\""}',
    '{"id":7,"name":"two\\nlines","tag":"t"}',
    '{"id":8,"name":"float id","tag":"2026"}',
    '{"id":9,"name":"TRUE","tag":"1.25"}',
    '{"id":11,"name":"Id","tag":"t"}',
    '{"id":9007199254740990,"name":"rounded"}', // by LibreOffice
    '{"id":9007199254740993,"name":"exact","tag":"x"}',
    '',
  ])
})

test('a workbook of openpyxl, in which a name is a formula without a saved value', async () => {
  const user = new Importing()
  user.write('stock.xlsx', saved('openpyxl'))
  const { summary: result, err } = await user.import(['stock.xlsx'])
  expect(result).toMatchObject({ created: 7, rejected: 4 })
  expect(err).toContain(
    'stock.xlsx:16: Invalid plant: a formula has no saved value. Open the workbook in a spreadsheet program, and save it',
  )
  expect(err).toContain('stock.xlsx:9: Invalid plant: id must have all its digits, but was "9.007199254740992e+15"')
})

const dates =
  '<numFmts><numFmt numFmtId="164" formatCode="[Red]0 &quot;days&quot;"/><numFmt numFmtId="165" formatCode="[hh]:mm"/><numFmt numFmtId="166" formatCode="_-* #,##0.00\\ _R_S_D_-"/></numFmts>' +
  '<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>' +
  '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="165"/><xf numFmtId="166"/></cellXfs>'

test.each<[string, string, string]>([
  ['a whole number', '<c><v>7.0</v></c>', '7'],
  ['a fraction of a binary number', '<c><v>0.10000000000000001</v></c>', '0.1'],
  ['a number above 2^53', '<c><v>9007199254740993</v></c>', '9.007199254740992e+15'],
  ['a date', '<c s="1"><v>46082</v></c>', '2026-03-01'],
  ['a date and a time', '<c s="1"><v>46082.604166666664</v></c>', '2026-03-01T14:30:00'],
  ['a time', '<c s="1"><v>0.5</v></c>', '12:00:00'],
  ['a day before the leap day that Excel invents', '<c s="1"><v>1</v></c>', '1900-01-01'],
  ['a number that no date can be', '<c s="1"><v>1e300</v></c>', '1e+300'],
  ['a number with a unit', '<c s="2"><v>3</v></c>', '3'],
  ['a duration', '<c s="3"><v>0.75</v></c>', '18:00:00'],
  ['a date as text', '<c t="d"><v>2026-03-01</v></c>', '2026-03-01'],
  ['a logical value', '<c t="b"><v>0</v></c>', 'FALSE'],
  ['another logical value', '<c t="b"><v>true</v></c>', 'TRUE'],
  ['a number with a space as wide as a letter', '<c s="4"><v>1234.5</v></c>', '1234.5'],
  ['a date before the first one', '<c s="1"><v>-1.5</v></c>', '1899-12-29T12:00:00'],
  ['a number that is too large', '<c><v>1e400</v></c>', '1e400'],
  ['an error', '<c t="e"><v>#N/A</v></c>', '#N/A'],
  ['the value of a formula', '<c t="str"><f>A1&amp;"x"</f><v> x </v></c>', 'x'],
  ['a text with quotes and a comma', inline('"a", b'), '"a", b'],
  ['a text that looks like a formula', inline('=1+1'), '=1+1'],
  ['characters that XML cannot have', inline('a_x000D_b_x005F_x0041__xD800_'), 'a\rb_x0041__xD800_'],
  ['a text that cells share', '<c t="s"><v>0</v></c>', 'bold plain'],
  ['a text with a reading', '<c t="s"><v>1</v></c>', '山'],
  ['a text in two parts', '<c t="inlineStr"><is><r><t>a </t></r><r><t>b</t></r></is></c>', 'a b'],
  ['a word for U+0000', inline('a_x0000_'), 'a_x0000_'],
  ['marked text', '<c t="inlineStr"><is><t><![CDATA[<b>]]></t></is></c>', '<b>'],
  ['names with prefixes', '<x:c t="inlineStr"><x:is><x:t>a</x:t></x:is></x:c>', 'a'],
])('%s in a cell', async (_, cell, name) => {
  const sharedStrings =
    '<si><r><t>bold </t></r><r><t>plain</t></r></si><si><t>山</t><rPh sb="0" eb="1"><t>ヤマ</t></rPh></si>'
  const stdin = workbook({
    sheets: { Plants: `${header}<row><c><v>1</v></c>${cell}</row>` },
    sharedStrings,
    styles: dates,
  })
  const user = new Importing()
  expect(await user.import([], { stdin })).toEqual(imported({ created: 1 }))
  expect(JSON.parse(await user.list())).toEqual({ id: 1, name })
})

test('dates that are counted from 1904', async () => {
  const sheet = `${header}<row><c><v>1</v></c><c s="1"><v>44620</v></c></row>`
  const properties = '<workbookPr date1904="1"/>'
  const user = new Importing()
  await user.import([], { stdin: workbook({ sheets: { Plants: sheet }, styles: dates, properties }) })
  expect(await user.list()).toBe('{"id":1,"name":"2026-03-01"}\n')
})

test('rows and cells that say where they are', async () => {
  const sheet =
    '<row r="3"><c r="B3" t="inlineStr"><is><t>name</t></is></c><c r="AA3" t="inlineStr"><is><t>id</t></is></c></row>' +
    `<row r="7"><c r="B7" t="inlineStr"><is><t>Fern</t></is></c><c r="AA7"><v>1</v></c></row>` +
    `<row r="9"><c r="B9" t="inlineStr"><is><t>a&#10;b</t></is></c></row>` +
    `<row r="10"><c r="AA10"><v>2</v></c></row>`
  const user = new Importing()
  const { err } = await user.import([], { stdin: workbook({ sheets: { Plants: sheet } }) })
  expect(err).toContain('stdin:9: Invalid plant: id must be')
  expect(err).toContain('stdin:10: Invalid plant: name must be')
  expect(await user.list()).toBe('{"id":1,"name":"Fern"}\n')
})

test('an id above 2^53 is exact as a text, and rejected as a number', async () => {
  const [text, number] = ['<c t="str"><v>9007199254740993</v></c>', '<c><v>9007199254740993</v></c>']
  const sheet = `${header}<row>${text}${inline('a')}</row><row>${number}${inline('b')}</row>`
  const user = new Importing()
  const { code, err } = await user.import([], { stdin: workbook({ sheets: { Plants: sheet } }) })
  expect(code).toBe(6)
  expect(err).toContain(
    'stdin:3: Invalid plant: id must have all its digits, but was "9.007199254740992e+15": a spreadsheet may have rounded it',
  )
  expect(await user.list()).toBe('{"id":9007199254740993,"name":"a"}\n')
})

test('the hint for the rejects of a sheet imports them', async () => {
  const user = new Importing()
  user.write(
    'stock.xlsx',
    workbook({ sheets: { Stock: rows(['No', 'Name'], ['x', 'Fern']), Other: rows(['id', 'name']) } }),
  )
  const { err } = await user.import(['stock.xlsx', '--sheet', 'Stock', '--map', 'id=No', '--rejects', 'bad.csv'])
  const [, command = ''] = /then: plants (.*)\n$/.exec(err) ?? []
  expect(command).toBe(`import ${user.folder}/bad.csv --map id=No`)
  user.write('bad.csv', user.read('bad.csv').replace('x', '1'))
  expect(await user.run(command.split(' '))).toMatchObject({ code: 0 })
})

describe('the sheet', () => {
  const two = { 'Our notes': rows(['water on Mondays']), Plants: header + rows(['1', 'Fern', 'shade']) }
  const three = { ...two, '2027': rows(['No', 'Name'], ['5', 'Rose']), Copy: header + rows(['9', 'Copy']) }

  test.each<[string, Record<string, string>, string[], string]>([
    ['that has the columns', two, [], '{"id":1,"name":"Fern","tag":"shade"}\n'],
    ['that has the columns of --map', three, ['--map', 'id=No'], '{"id":5,"name":"Rose"}\n'],
    ['of a name', three, ['--sheet', 'copy'], '{"id":9,"name":"Copy"}\n'],
    ['of a number', three, ['--sheet', '3'], '{"id":1,"name":"Fern","tag":"shade"}\n'],
    ['whose name is a number', three, ['--sheet', '2027', '--map', 'id=No'], '{"id":5,"name":"Rose"}\n'],
  ])('%s', async (_, sheets, flags, plants) => {
    const user = new Importing()
    expect(await user.import(flags, { stdin: workbook({ sheets }) })).toEqual(imported({ created: 1 }))
    expect(await user.list()).toBe(plants)
  })

  test('is counted with the charts before it, and unsaved formulas of others do not matter', async () => {
    const unsaved = '<row><c><f>1+1</f></c><c><f>2+2</f></c></row>'
    const sheets = { Chart: undefined, Sum: unsaved, Plants: header + rows(['1', 'Fern']) }
    const [user, other] = [new Importing(), new Importing()]
    expect(await user.import(['--sheet', '3'], { stdin: workbook({ sheets }) })).toEqual(imported({ created: 1 }))
    expect(await other.import([], { stdin: workbook({ sheets }) })).toEqual(imported({ created: 1 }))
  })

  test('has formulas whose results are out of date', async () => {
    const sheet = `${header}<row><c><v>1</v></c><c><f>A1</f><v>0</v></c></row>`
    const stdin = workbook({ sheets: { P: sheet }, properties: '<calcPr fullCalcOnLoad="1"/>' })
    const { err } = await new Importing().import([], { stdin })
    expect(err).toContain('stdin:2: Invalid plant: a formula has no saved value')
  })

  test.each<[string, Record<string, string>, string[], string]>([
    [
      'is one of several',
      three,
      [],
      'stdin has several sheets with plants: "Plants", "Copy"\n  Choose one with --sheet NAME',
    ],
    [
      'is not found',
      { a: rows(['x']), b: '' },
      [],
      'None of the sheets of stdin has the columns of plants: "a", "b"\n  Choose one with --sheet NAME, and its columns with --map',
    ],
    ['is not there', two, ['--sheet', '3'], 'stdin has no sheet "3"\n  Its sheets are "Our notes", "Plants"'],
    [
      'has no header',
      { a: rows(['x', 'y']) },
      [],
      'stdin: The header in line 1 has no columns id and name, only "x", "y"\n  Choose the columns with --map id=COLUMN,name=COLUMN',
    ],
    ['needs no format', two, ['--format', 'csv'], '--format does not apply to a workbook, as stdin is\n  Leave it out'],
    [
      'needs no encoding',
      two,
      ['--encoding', 'latin1'],
      '--encoding does not apply to a workbook, as stdin is\n  Leave it out',
    ],
  ])('%s', async (_, sheets, flags, message) => {
    const user = new Importing()
    const err = `plants: ${message}\n`
    expect(await user.import(flags, { stdin: workbook({ sheets }) })).toEqual({ code: 2, summary: undefined, err })
    expect(user.has('plants.db')).toBe(false)
  })

  test('of what is no workbook', async () => {
    const user = new Importing()
    user.write('plants.csv', 'id,name\n1,Fern\n')
    expect(await user.import(['plants.csv', '--sheet', '1'])).toEqual({
      code: 2,
      summary: undefined,
      err: 'plants: plants.csv is no workbook, and has no sheets\n  Leave out --sheet\n',
    })
  })
})

test('an import that was stopped resumes in the same workbook', async () => {
  const user = new Importing()
  const book = (name: string) => workbook({ sheets: { P: header + rows(['1', 'Fern'], ['x', 'Moss'], ['3', name]) } })
  user.write('stock.xlsx', book('Oak'))
  expect(await user.import(['stock.xlsx', '--max-errors', '1'])).toMatchObject({ summary: { created: 1, rejected: 1 } })
  user.write('stock.xlsx', book('Elm'))
  const { err } = await user.import(['stock.xlsx', '--max-errors', '1'])
  expect(err).toContain('plants: Resuming an interrupted import: 2 plants are done\n')
  expect(await user.list()).toBe('{"id":1,"name":"Fern"}\n{"id":3,"name":"Elm"}\n')
})

test('a workbook whose shared texts are damaged is rejected, whichever sheet is looked at first', async () => {
  const sheets = { Notes: rows(['x']), Plants: `${header}<row><c><v>1</v></c><c t="s"><v>0</v></c></row>` }
  const stdin = flipped(workbook({ sheets, sharedStrings: '<si><t>Fern</t></si>' }), 'xl/sharedStrings.xml')
  const { code, err } = await new Importing().import([], { stdin })
  expect({ code, err }).toMatchObject({ code: 2, err: expect.stringContaining('another checksum') })
})

test('records before a header are not passed over', async () => {
  const stdin = '1,Fern,shade\n2,Moss,wet\nid,name,tag\n3,Oak,\n'
  const { code, err } = await new Importing().import([], { stdin })
  expect({ code, err }).toMatchObject({ code: 2, err: expect.stringContaining('There is no header: line 1 is "1"') })
  const title = 'Stand,1 March\n\nid,name,tag\n3,Oak,\n'
  expect(await new Importing().import([], { stdin: title })).toEqual(imported({ created: 1 }))
})

/** Changes the checksum of a part in the directory of a workbook. */
function flipped(bytes = workbook({ sheets: { P: header } }), part = 'xl/worksheets/sheet1.xml'): Buffer {
  const place = bytes.lastIndexOf(part) - 30
  bytes.writeUInt32LE((bytes.readUInt32LE(place) ^ 1) >>> 0, place)
  return bytes
}

const deep = '<a>'.repeat(200)
const attributes = Array.from({ length: 9000 }, (_, index) => ` a${index}="1"`).join('')
const damaged = 'Sheet "P" of stdin is damaged'

test.each<[string, Buffer, string]>([
  [
    'that unpacks to a lot',
    workbook({ sheets: { P: '' }, sharedStrings: ' '.repeat(68_000_000) }),
    'stdin unpacks to more than 50331648 bytes of xl/sharedStrings.xml',
  ],
  [
    'that says it unpacks to a lot',
    workbook({ sheets: { P: '' }, declared: 2 ** 30 }),
    'stdin unpacks to more than 536870912 bytes of xl/worksheets/sheet1.xml',
  ],
  [
    'that says it unpacks to little',
    workbook({ sheets: { P: ' '.repeat(100_000) }, declared: 100 }),
    `${damaged}: too many bytes in the stream. expected 100. got at least`,
  ],
  [
    'of many files',
    zip(Array.from({ length: 10_001 }, (_, index) => [`${index}`, ''])),
    'stdin unpacks to more than 10000 files',
  ],
  [
    'of many sheets',
    workbook({ sheets: Object.fromEntries(Array.from({ length: 1001 }, (_, index) => [`s${index}`, ''])) }),
    'stdin unpacks to more than 1000 sheets',
  ],
  ['without its sheet', zip([['_rels/.rels', '<a/>']]), 'stdin is a ZIP archive without a sheet of Excel'],
  ['with an attribute of JavaScript', workbook({ sheets: { P: '<row hasOwnProperty="1" a="2"/>' } }), `${damaged}: `],
  ['with deep elements', workbook({ sheets: { P: deep } }), `${damaged}: elements nested too deeply`],
  ['with many attributes', workbook({ sheets: { P: `<row${attributes}/>` } }), `${damaged}: too many attributes`],
  [
    'with a row that is too far down',
    workbook({ sheets: { P: '<row r="4294967295"/>' } }),
    `${damaged}: 4294967295 is misplaced`,
  ],
  ['with a row twice', workbook({ sheets: { P: '<row r="2"/><row r="2"/>' } }), `${damaged}: 2 is misplaced`],
  [
    'with a cell that is too far right',
    workbook({ sheets: { P: '<row><c r="XFE1"/></row>' } }),
    `${damaged}: XFE1 is misplaced`,
  ],
  [
    'with a text that is not there',
    workbook({ sheets: { P: '<row><c t="s"><v>1</v></c></row>' } }),
    `${damaged}: no text 1`,
  ],
  ['that is not XML', workbook({ sheets: { P: '<row></c>' } }), `${damaged}: Unexpected close tag`],
  ['with an entity of its own', workbook({ sheets: { P: '<row>&a;</row>' } }), `${damaged}: Invalid character entity`],
  [
    'whose checksum differs',
    flipped(),
    `${damaged}: xl/worksheets/sheet1.xml has another checksum than the archive says`,
  ],
  [
    'that is cut',
    workbook({ sheets: { P: header } }).subarray(0, 500),
    'stdin is damaged: End of central directory record',
  ],
  ['that is another archive', zip([['content.xml', '<a/>']]), 'stdin is a ZIP archive without a sheet of Excel'],
  [
    'of an old Excel',
    Buffer.from('d0cf11e0a1b11ae10000000000000000', 'hex'),
    'stdin is a workbook of an old Excel (.xls), or has a password',
  ],
])('a workbook %s is rejected', async (_, stdin, message) => {
  const user = new Importing()
  const { code, err } = await user.import([], { stdin })
  expect({ code, err: err.slice(0, message.length + 8) }).toEqual({ code: 2, err: `plants: ${message}` })
  expect(user.has('plants.db')).toBe(false)
})

test('a row whose cells share a large text is one rejected record', async () => {
  const cells = '<c t="s"><v>0</v></c>'.repeat(16_000)
  const sheet = `${header}<row><c><v>1</v></c>${cells}</row><row><c><v>2</v></c>${inline('Fern')}</row>`
  const stdin = workbook({ sheets: { P: sheet }, sharedStrings: `<si><t>${'y'.repeat(32_767)}</t></si>` })
  const { summary: result } = await new Importing().import(['-q'], { stdin })
  expect(result).toEqual(summary({ created: 1, rejected: 1, reasons: { 413: 1 } }))
})

test('formats of numbers are read in time', async () => {
  const codes = Array.from(
    { length: 60 },
    (_, id) => `<numFmt numFmtId="${id + 200}" formatCode="${'['.repeat(60_000)}"/>`,
  )
  const stdin = workbook({ sheets: { P: header + rows(['1', 'Fern']) }, styles: codes.join('') })
  expect(await new Importing().import([], { stdin })).toEqual(imported({ created: 1 }))
})

test('line breaks in cells do not count as rows', async () => {
  const sheet = header + rows(['1', 'a_x000D_\nb'], ['2', 'a&#13;&#10;b'], ['x', 'Fern'])
  const { err } = await new Importing().import([], { stdin: workbook({ sheets: { P: sheet } }) })
  expect(err).toContain('stdin:4: Invalid plant')
})

test('a large text that rows share, and one in many parts, are rejected records', async () => {
  const large = 'y'.repeat(1_100_000)
  const shared = `${header}${'<row><c><v>1</v></c><c t="s"><v>0</v></c></row>'.repeat(20)}`
  const parts = `<row><c><v>1</v></c><c t="inlineStr"><is>${`<t>${large}</t>`.repeat(3)}</is></c></row>`
  const stdin = workbook({ sheets: { P: shared + parts }, sharedStrings: `<si><t>${large}</t></si>` })
  const { summary: result } = await new Importing().import(['-q'], { stdin })
  expect(result).toEqual(summary({ rejected: 21, reasons: { 413: 21 } }))
})
