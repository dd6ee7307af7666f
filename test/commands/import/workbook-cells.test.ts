import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { buildPlantLine, ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import {
  buildInlineCell,
  buildPlantWorkbook,
  buildRows,
  buildSheetWorkbook,
  buildWorkbook,
  plantHeader,
  sampleSharedStrings,
  sampleStyles,
} from '../../helpers/sandbox/workbook.js'

// How a cell, a row and a header of a workbook become a plant.

let sandbox: ImportSandbox

beforeEach(() => {
  sandbox = new ImportSandbox()
})

test.each(['libreoffice.xlsx', 'libreoffice.ods'])(
  'a workbook that LibreOffice saved is imported, and its unreadable cells are rejected: %s',
  async (file) => {
    sandbox.write(file, readFileSync(join(import.meta.dirname, '../../data', file)))
    const { err, ...result } = await sandbox.import(`${file} --rejects rejected.csv`)
    expect(result).toMatchObject({ code: 6, created: 9, rejected: { 422: 2 } })
    expect(err).toContain('ignored columns "Price", "Bought"')
    const [head, ...rejected] = sandbox.read('rejected.csv').trimEnd().split('\n')
    expect(head).toBe('\ufeffrejected_line,rejected_reason,Id,Name,Tag,Price,Bought')
    expect(rejected).toEqual([
      expect.stringMatching(/^14,".*",2026-03-01,a date as id,t,,$/),
      expect.stringMatching(/^15,".*",1.5,half,t,,$/),
    ])
    expect((await sandbox.list()).split(/(?<=\n)/)).toEqual([
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
  },
)

test('a number that LibreOffice has rounded from 2^53 is rejected', async () => {
  const value = '9.00719925474099E+015'
  const rows = `<row><c><v>${value}</v></c>${buildInlineCell('a')}</row>`
  const { err, ...result } = await sandbox.import('', buildPlantWorkbook(rows))
  expect(result).toMatchObject({ code: 6, rejected: { 422: 1 } })
  expect(err).toContain('stdin:2: Invalid plant: the id is a number from 2^53 on')
})

test('ids in string cells of a workbook are read as in other tables', async () => {
  const ids = ['="00123"', "'0007", '8.0', '1.000']
  const table = buildRows(['id', 'name'], ...ids.map((id) => [id, 'a']))
  sandbox.write('ids.xlsx', buildSheetWorkbook(table))
  const { err, ...result } = await sandbox.import('ids.xlsx')
  expect(result).toMatchObject({ code: 6, created: 3, rejected: { 422: 1 } })
  expect(err).toContain('ids.xlsx:5: Invalid plant: the id "1.000" is not ')
  expect(await sandbox.list()).toBe([7, 8, 123].map((id) => buildPlantLine(id, 'a')).join(''))
})

const unnamed = [
  ['id', '', 'name', '', ' ', 'Note'],
  ['1', '', 'Fern', 'lost', '', 'x'],
  ['2', '', 'Moss', '', 'gone', ''],
]

test.each([
  ['workbook', 'stock.xlsx', buildSheetWorkbook(buildRows(...unnamed))],
  ['CSV', 'stock.csv', unnamed.map((row) => `${row.join()}\n`).join('')],
])(
  'an import ignores a column without a name, unless --map gives its number, in a %s',
  async (_, name, content) => {
    sandbox.write(name, content)
    const { err, ...result } = await sandbox.import(name)
    expect(result).toEqual({ code: 0, created: 2 })
    expect(err).toContain('warning: ignored column "Note"\n')
    const byNumber = await sandbox.import([name, '--map', 'tag=4', '--if-exists', 'update'])
    expect(byNumber).toMatchObject({ code: 0, updated: 1 })
  },
)

test('an import does not report columns that --columns leaves without a name', async () => {
  const { err, ...result } = await sandbox.import('--columns id,,name', '1,lost,Fern\n')
  expect(result).toMatchObject({ code: 0, created: 1 })
  expect(err).not.toContain('ignored')
})

test('an import finds the columns of a workbook by their numbers, below titles', async () => {
  const table = buildRows(['Stock 2026'], ['Nr', 'Beet', 'Sorte'], ['7', '1', 'Rosa'])
  sandbox.write('stock.xlsx', buildSheetWorkbook(table))
  const { created, err } = await sandbox.import('stock.xlsx --map id=1,name=3')
  expect(created).toBe(1)
  expect(err).toContain('Line 2 of stock.xlsx is read as the header: "Nr", "Beet", "Sorte".')
  expect(await sandbox.list()).toBe(buildPlantLine(7, 'Rosa'))
})

test('the value of a cell of any type becomes the string that a spreadsheet shows', async () => {
  const buildNumber = (value: string, style = 0) => `<c s="${style}"><v>${value}</v></c>`
  const small = `-0.${'0'.repeat(29)}15`
  const runs = '<r><t>a </t></r><rPh><t>x</t></rPh><r><t>b</t></r>'
  const markup = '<![CDATA[<a> &amp;]]> &lt;&#98;&#x63;>'
  const cells: { what: string; cell: string; name: string }[] = [
    { what: 'a whole number', cell: buildNumber('7.0'), name: '7' },
    {
      what: 'a number that its XML writes with an exponent',
      cell: buildNumber('1.0E7'),
      name: '10000000',
    },
    {
      what: 'a fraction that its XML writes with an exponent',
      cell: buildNumber('-1.5E-30'),
      name: small,
    },
    { what: 'a date', cell: buildNumber('46082', 1), name: '2026-03-01' },
    {
      what: 'a date and a time',
      cell: buildNumber('46082.604166666664', 1),
      name: '2026-03-01T14:30:00',
    },
    {
      what: 'a fraction of a second',
      cell: buildNumber('46082.60416666', 1),
      name: '2026-03-01T14:30:00',
    },
    {
      what: 'a millisecond',
      cell: buildNumber('46082.00000001157', 1),
      name: '2026-03-01T00:00:00.001',
    },
    { what: 'false', cell: '<c t="b"><v>0</v></c>', name: 'FALSE' },
    { what: 'a number with the zeros of its format', cell: buildNumber('123', 2), name: '123' },
    { what: 'a percentage', cell: buildNumber('0.5', 3), name: '0.5' },
    { what: 'the formula of a number', cell: '<c><f>6*7</f><v>42</v></c>', name: '42' },
    {
      what: 'the formula of a text',
      cell: '<c t="str"><f>A1&amp;"x"</f><v> x </v></c>',
      name: 'x',
    },
    {
      what: 'text in runs, with its reading',
      cell: `<c t="inlineStr"><is>${runs}</is></c>`,
      name: 'a b',
    },
    {
      what: 'markup in characters',
      cell: `<c t="str"><v>${markup}</v></c>`,
      name: '<a> &amp; <bc>',
    },
    {
      what: 'white space of Unicode',
      cell: buildInlineCell('\u00a0\u3000 a\u2003b\u2028'),
      name: 'a\u2003b',
    },
    {
      what: 'characters that XML cannot have',
      cell: buildInlineCell('a_x000D_b_x005F_x0041_'),
      name: 'a\rb_x0041_',
    },
    {
      what: 'an escape beside what only looks like one',
      cell: buildInlineCell('_x0061__X0061_'),
      name: 'a_X0061_',
    },
    { what: 'a text that cells share', cell: '<c t="s"><v>0</v></c>', name: 'bold plain' },
  ]
  const sheet = cells
    .map(({ what, cell }, id) => `<row><c><v>${id}</v></c>${cell}${buildInlineCell(what)}</row>`)
    .join('')
  const result = await sandbox.import(
    '',
    buildPlantWorkbook(sheet, { sharedStrings: sampleSharedStrings, styles: sampleStyles }),
  )
  expect(result).toEqual({ code: 0, created: cells.length, err: '' })
  expect((await sandbox.list()).split(/(?<=\n)/)).toEqual(
    cells.map(({ what, name }, id) => buildPlantLine(id, name, what)),
  )
})

test('an import rejects errors, numbers above 2^53 and exponents in strings in their fields', async () => {
  const buildError = (code: string) => `<c t="e"><v>${code}</v></c>`
  const formula = '<c t="e"><f>1/0</f><v>#DIV/0!</v></c>'
  const sheet = [
    `${buildError('#N/A')}${buildInlineCell('a')}<c/>`,
    `<c><v>2</v></c>${buildError('#REF!')}<c/>`,
    `<c><v>3</v></c>${buildInlineCell('c')}${formula}`,
    `<c><v>4</v></c>${buildInlineCell('d')}${buildInlineCell('t')}${buildError('#N/A')}`,
    `<c><v>5</v></c>${buildInlineCell('e')}${buildInlineCell('#N/A')}`,
    '<c><v>6</v></c><c><v>9007199254740993</v></c><c/>',
    `<c><v>-9007199254740993</v></c>${buildInlineCell('g')}<c/>`,
    `${buildInlineCell('1E3')}${buildInlineCell('h')}<c/>`,
    `<c><v>1.0E7</v></c>${buildInlineCell('i')}<c/>`,
  ]
  const stdin = buildSheetWorkbook(
    `${buildRows(['id', 'name', 'tag', 'note'])}<row>${sheet.join('</row><row>')}</row>`,
  )
  const { err: _, ...result } = await sandbox.import('--rejects rejected.csv', stdin)
  expect(result).toMatchObject({ code: 6, created: 3, rejected: { 422: 6 } })
  expect(sandbox.read('rejected.csv').split('\n').slice(1, -1)).toEqual([
    expect.stringMatching(/^2,[^,]*: the id .*#N\/A,#N\/A,a,,$/),
    expect.stringMatching(/^3,[^,]*: the name .*#REF!,2,#REF!,,$/),
    expect.stringMatching(/^4,[^,]*: the tag .*#DIV\/0!,3,c,#DIV\/0!,$/),
    expect.stringMatching(/^7,".*: the name .*",6,#NUM!,,$/),
    expect.stringMatching(/^8,".*: the id .*",-9\.007199254740992E\+15,g,,$/),
    expect.stringMatching(/^9,".*: the id .*",1E3,h,,$/),
  ])
  expect(await sandbox.list()).toBe(
    buildPlantLine(4, 'd', 't') + buildPlantLine(5, 'e', '#N/A') + buildPlantLine(10_000_000, 'i'),
  )
})

test('a number that has lost digits is rejected again when its rejects file is imported', async () => {
  const lost = '<c><v>12345678901234567890</v></c>'
  const sum = '<c><f>A1*10</f><v>1.2345678901234568E19</v></c>'
  const [a, b] = [buildInlineCell('a'), buildInlineCell('b')]
  const rows = [`${lost}${a}${b}${lost}`, `${sum}${a}${b}`, `${a}`, `<c><v>2</v></c>${lost}${b}`]
  const sheet = [...rows, `<c><v>3</v></c>${a}${sum}`]
  const stdin = buildSheetWorkbook(
    `${buildRows(['id', 'name', 'tag', 'note'])}<row>${sheet.join('</row><row>')}</row>`,
  )
  const { err } = await sandbox.import('--rejects first.csv', stdin)
  expect(err).not.toContain('--map id=')
  const { err: secondErr, ...result } = await sandbox.import('first.csv --rejects second.csv')
  expect(result).toMatchObject({ code: 6, rejected: { 422: 5 } })
  expect(secondErr).toContain(
    'first.csv:2: Invalid plant: the id is a number that a spreadsheet has rounded. ' +
      'Enter all its digits',
  )
  const readCells = (file: string) =>
    sandbox
      .read(file)
      .split('\n')
      .map((line) => line.replace(/^\d+,(?:"[^"]*"|[^,]*),/, ''))
  expect(readCells('second.csv')).toEqual(readCells('first.csv'))
  expect(readCells('first.csv')[1]).toBe('1.2345678901234567E+19,a,b,1.2345678901234567E+19')
  expect(await sandbox.list()).toBe('')
})

test('an import finds rows and cells by their names, in the first sheet that has the columns', async () => {
  const buildCellAt = (place: string, text: string) =>
    buildInlineCell(text).replace('<c', `<c r="${place}"`)
  const sheet = [
    `<row r="3000">${buildCellAt('B3000', 'name')}${buildCellAt('AA3000', 'id')}</row>`,
    `<row r="3003">${buildCellAt('B3003', 'Fern')}<c r="AA3003"><v>1</v></c></row>`,
    `<row r="3004">${buildCellAt('XFD3004', 'x')}</row>`,
    `<row r="3005">${buildCellAt('B3005', 'a&#10;b')}</row>`,
    '<row r="3006"><c r="AA3006"><v>2</v></c></row>',
  ]
  const { err } = await sandbox.import('', buildWorkbook({ sheets: { A: '', B: sheet.join('') } }))
  expect(err).toContain('stdin:3005: Invalid plant: the id ')
  expect(err).toContain('stdin:3006: Invalid plant: the name ')
  expect(err).toMatch(/Skipped 1 row without an id, a name and a tag/)
  expect(await sandbox.list()).toBe(buildPlantLine(1, 'Fern'))
})

test('an import rejects the record of a formula without a saved value, and keeps its tag', async () => {
  await sandbox.import('--format csv', 'id,name,tag\n1,Fern,keep\n')
  const empty = '<c t="str"><f>A1</f><v></v></c>'
  const sheet = [
    `<c><v>1</v></c>${buildInlineCell('Fern')}<c><f>A1</f></c>`,
    `<c><v>2</v></c>${buildInlineCell('b')}<c><f>A1</f><v/></c>`,
    `<c><v>3</v></c>${buildInlineCell('c')}${empty}`,
    `<c><f>A1</f></c>${buildInlineCell('d')}<c/>`,
    `<c><v>5</v></c><c t="str"><f>A1</f></c><c/>`,
  ]
  const stdin = buildPlantWorkbook(`<row>${sheet.join('</row><row>')}</row>`)
  const { err, ...result } = await sandbox.import(
    '--if-exists update --rejects rejected.csv',
    stdin,
  )
  expect(result).toMatchObject({ code: 6, created: 1, rejected: { 422: 4 } })
  expect(err).toContain(
    'stdin:2: Invalid plant: the tag is unknown because the formula has no saved value\n',
  )
  expect(await sandbox.list()).toBe(buildPlantLine(1, 'Fern', 'keep') + buildPlantLine(3, 'c'))
  // A rejects file that nobody corrects is rejected again.
  const again = await sandbox.import('rejected.csv --if-exists update')
  expect(again).toMatchObject({ code: 6, rejected: { 422: 4 } })
})

test('a rejected formula without a saved value is corrected in the workbook', async () => {
  const row = (id: number) => `<row><c><v>${id}</v></c><c><f>A1</f></c></row>`
  sandbox.write('list.xlsx', buildPlantWorkbook(row(1) + row(2)))
  const { err } = await sandbox.import('list.xlsx')
  expect(err).toContain(
    'plants: Rejected 2 plants\n' +
      '  Open the workbook in a spreadsheet, save it, and run the command again\n',
  )
})

test('a cell of a workbook without a value is empty, whatever its type', async () => {
  const types = ['s', 'n', 'b', 'd', 'str', 'inlineStr']
  const sheet = types.flatMap((type, id) => [
    `<row><c><v>${2 * id}</v></c>${buildInlineCell(type)}<c t="${type}"/></row>`,
    `<row><c><v>${2 * id + 1}</v></c>${buildInlineCell(type)}<c t="${type}"><v/></c></row>`,
  ])
  const result = await sandbox.import('', buildPlantWorkbook(sheet.join('')))
  expect(result).toEqual({ code: 0, created: 2 * types.length, err: '' })
  expect(await sandbox.list()).toBe(
    types
      .flatMap((type, id) => [buildPlantLine(2 * id, type), buildPlantLine(2 * id + 1, type)])
      .join(''),
  )
})

test('comments, CDATA, namespaces and white space between elements do not change how a row is read', async () => {
  const plain = buildRows(['1', 'Fern', 'shade'], ['2', 'Moss'])
  const variants = [
    plain.replaceAll('</row><row>', '</row>\r\n <!-- <row></row> --><row>'),
    plain.replaceAll('<row>', '<row><!-- -->'),
    plain.replaceAll('<c ', '<c  ').replaceAll('<row>', '<row/><row >'),
    plain.replaceAll('<t>', '<t><![CDATA[').replaceAll('</t>', ']]></t>'),
  ]
  const part = `<worksheet><sheetData>${plantHeader}${plain}</sheetData></worksheet>`
  const prefixedPart = Buffer.from(part.replaceAll(/<(\/?)/g, '<$1x:'))
  const workbooks = [plain, ...variants].map((rows) => buildPlantWorkbook(rows))
  for (const workbook of [...workbooks, buildSheetWorkbook(prefixedPart)]) {
    sandbox = new ImportSandbox()
    expect(await sandbox.import('', workbook)).toEqual({
      code: 0,
      created: 2,
      err: '',
    })
    expect(await sandbox.list()).toBe(
      buildPlantLine(1, 'Fern', 'shade') + buildPlantLine(2, 'Moss'),
    )
  }
})

test('an import ignores cells to the right of the header, and one line counts their rows', async () => {
  const sheet = buildRows(['1', 'a', '', 'surplus'], ['', '', '', 'note only'], ['2', 'b'])
  const stdin = buildPlantWorkbook(sheet)
  const err =
    'plants: Skipped 1 row without an id, a name and a tag\n' +
    'plants: Ignored the cells to the right of the header in 2 rows\n'
  expect(await sandbox.import('', stdin)).toEqual({ code: 0, created: 2, err })
})
