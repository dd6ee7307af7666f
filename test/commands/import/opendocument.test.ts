import { beforeEach, expect, test } from 'vitest'
import { buildPlantLine, ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import {
  buildOpenDocumentCell as buildCell,
  buildOpenDocument,
  buildOpenDocumentRow as buildRow,
} from '../../helpers/sandbox/opendocument.js'
import { buildZip } from '../../helpers/sandbox/workbook.js'

// OpenDocument spreadsheets (.ods), of which one part has all sheets.

let sandbox: ImportSandbox

beforeEach(() => {
  sandbox = new ImportSandbox()
})

const header = buildRow(['id', 'name', 'tag'].map(buildCell))

/** Builds a spreadsheet with one sheet, which has the columns of a plant above these rows. */
function buildPlants(...rows: string[]): Buffer {
  return buildOpenDocument([{ name: 'P', rows: header + rows.join('') }])
}

/** Builds a row with an id and the element of a name. */
function buildPlantRow(id: number, name: string): string {
  return buildRow([buildNumber(String(id)), name])
}

function buildNumber(value: string): string {
  return `<table:table-cell office:value-type="float" office:value="${value}"/>`
}

/** Builds a cell with a text and these attributes. */
function buildTyped(type: string, attributes = '', text = 'shown'): string {
  return `<table:table-cell office:value-type="${type}" ${attributes}><text:p>${text}</text:p></table:table-cell>`
}

test.each<{ title: string; cell: string; name: string }>([
  { title: 'a number', cell: buildTyped('float', 'office:value="1.50"'), name: '1.5' },
  {
    title: 'a small number',
    cell: buildTyped('float', 'office:value="1E-007"'),
    name: '0.0000001',
  },
  { title: 'a percentage', cell: buildTyped('percentage', 'office:value="0.25"'), name: '0.25' },
  { title: 'a currency', cell: buildTyped('currency', 'office:value="7"'), name: '7' },
  {
    title: 'a truth value',
    cell: buildTyped('boolean', 'office:boolean-value="true"'),
    name: 'TRUE',
  },
  {
    title: 'a formula with a truth value',
    cell: buildTyped('float', 'table:formula="of:=1=2" office:value="0"', 'FALSCH'),
    name: 'FALSE',
  },
  {
    title: 'a date',
    cell: buildTyped('date', 'office:date-value="2026-03-01"'),
    name: '2026-03-01',
  },
  {
    title: 'a date and time with nanoseconds',
    cell: buildTyped('date', 'office:date-value="1899-12-31T14:29:59.999999997"'),
    name: '1899-12-31T14:30:00',
  },
  {
    title: 'midnight',
    cell: buildTyped('date', 'office:date-value="2026-03-01T00:00:00"'),
    name: '2026-03-01',
  },
  {
    title: 'a time',
    cell: buildTyped('time', 'office:time-value="PT14H30M00.5S"'),
    name: '14:30:00.500',
  },
  {
    title: 'a duration',
    cell: buildTyped('time', 'office:time-value="PT36H00M07,0000S"'),
    name: '36:00:07',
  },
  {
    title: 'a formula with a string',
    cell: buildTyped('string', 'table:formula="of:=A1" office:string-value="Fern"'),
    name: 'Fern',
  },
  {
    title: 'a text without a type',
    cell: '<table:table-cell><text:p>Fern</text:p></table:table-cell>',
    name: 'Fern',
  },
  { title: 'the text of an error', cell: buildCell('#N/A'), name: '#N/A' },
  { title: 'what is an escape in Excel', cell: buildCell('_x0041_'), name: '_x0041_' },
  {
    title: 'paragraphs with parts, links, spaces and an annotation',
    cell: `<table:table-cell office:value-type="string"><office:annotation><text:p>note</text:p></office:annotation><text:p> a<text:s/><text:span>b<text:span>c</text:span></text:span></text:p><text:p/><text:p><text:a>d</text:a><text:s text:c="2"/>e<text:tab/>f<text:line-break/>g</text:p></table:table-cell>`,
    name: 'a bc\n\nd  e\tf\ng',
  },
])('an import reads a cell of an .ods: $title', async ({ cell, name }) => {
  const result = await sandbox.import('', buildPlants(buildPlantRow(1, cell)))
  expect(result).toEqual({ code: 0, created: 1, err: '' })
  expect(await sandbox.list()).toBe(buildPlantLine(1, name))
})

const lostDigits = 'the name is a number from 2^53 on, which has lost digits'
const noNumber = 'the name is not a number, although its cell in the workbook has that type'
const noDate = 'the name is a date that does not exist in the calendar'
const unsaved = 'the name is unknown because the formula has no saved value'

test.each<{ title: string; cell: string; reason: string }>([
  {
    title: 'a number above 2^53',
    cell: buildTyped('float', 'office:value="12345678901234567"'),
    reason: lostDigits,
  },
  {
    title: '2^53 with 15 digits, as LibreOffice saves it',
    cell: buildTyped('float', 'office:value="9.00719925474099E+015"'),
    reason: lostDigits,
  },
  { title: 'a number without a value', cell: buildTyped('float'), reason: noNumber },
  { title: 'no number', cell: buildTyped('currency', 'office:value="5x"'), reason: noNumber },
  {
    title: 'no truth value',
    cell: buildTyped('boolean', 'office:boolean-value="yes"'),
    reason: 'the name is neither true nor false in the workbook',
  },
  {
    title: '30 February',
    cell: buildTyped('date', 'office:date-value="2026-02-30"'),
    reason: noDate,
  },
  {
    title: '25 o’clock',
    cell: buildTyped('date', 'office:date-value="2026-03-01T25:00:00"'),
    reason: noDate,
  },
  { title: 'no time', cell: buildTyped('time', 'office:time-value="PT"'), reason: noDate },
  {
    title: 'an error',
    cell: buildTyped(
      'string',
      'table:formula="of:=1/0" office:string-value="" calcext:value-type="error"',
      '#DIV/0!',
    ),
    reason: 'the name is the error value #DIV/0!',
  },
  {
    title: 'an error of LibreOffice alone',
    cell: buildTyped('string', 'calcext:value-type="error"', 'Err:502'),
    reason: 'the name is the error value #VALUE!',
  },
  {
    title: 'an error that an old program saved as a number',
    cell: buildTyped('float', 'table:formula="oooc:=NA()" office:value="0"', '#N/A'),
    reason: 'the name is the error value #N/A',
  },
  {
    title: 'a formula without a type',
    cell: '<table:table-cell table:formula="of:=1+1"><text:p>2</text:p></table:table-cell>',
    reason: unsaved,
  },
  {
    title: 'a formula without a value',
    cell: buildTyped('float', 'table:formula="of:=1+1"'),
    reason: unsaved,
  },
  {
    title: 'a formula without a string',
    cell: '<table:table-cell table:formula="of:=A1" office:value-type="string"/>',
    reason: unsaved,
  },
  {
    title: 'a formula with the empty string',
    cell: '<table:table-cell table:formula="of:=&quot;&quot;"><text:p/></table:table-cell>',
    reason: 'the name is missing',
  },
  {
    title: 'a text with a field',
    cell: buildTyped('string', '', '<text:title>a</text:title>'),
    reason: 'the name contains the element text:title, which is not read',
  },
  {
    title: 'a text with a list',
    cell: '<table:table-cell office:value-type="string"><text:list/><text:p>a</text:p></table:table-cell>',
    reason: 'the name contains the element text:list, which is not read',
  },
])('an import rejects a cell of an .ods: $title', async ({ cell, reason }) => {
  const { err, ...result } = await sandbox.import('', buildPlants(buildPlantRow(1, cell)))
  expect(result).toMatchObject({ code: 6, rejected: { 422: 1 } })
  expect(err).toContain(`plants: stdin:2: Invalid plant: ${reason}`)
})

test('equal cells and rows of an .ods are read as often as it says, and empty ones cost nothing', async () => {
  const empty = '<table:table-cell table:number-columns-repeated="16384"/>'
  const equalCells = buildRow([
    buildNumber('1'),
    '<table:table-cell table:number-columns-repeated="2" office:value-type="string"><text:p>Fern</text:p></table:table-cell>',
  ])
  const file = buildPlants(
    buildRow([empty], 1000),
    equalCells,
    buildRow([buildNumber('2'), buildCell('Moss')], 3),
    buildRow([buildNumber('x'), buildCell('Oak')]),
    buildRow([empty], 1_048_575),
  )
  const { err, ...result } = await sandbox.import('', file)
  expect(result).toMatchObject({ code: 6, created: 2, skipped: 2, rejected: { 422: 1 } })
  expect(err).toContain('plants: stdin:1006: Invalid plant: the id')
  expect(await sandbox.list()).toBe(buildPlantLine(1, 'Fern', 'Fern') + buildPlantLine(2, 'Moss'))
})

test('an import of an .ods says that only the first of merged cells has a value', async () => {
  const merged = buildTyped('string', 'table:number-rows-spanned="2"', 'Fern')
  const file = buildPlants(
    buildPlantRow(1, merged),
    buildRow([buildNumber('2'), '<table:covered-table-cell/>', buildCell('shade')]),
    buildRow([buildNumber('3'), buildCell('Moss'), '<table:covered-table-cell/>', buildCell('x')]),
  )
  const { err, ...result } = await sandbox.import('', file)
  expect(result).toMatchObject({ code: 6, created: 2, rejected: { 422: 1 } })
  expect(err).toContain('stdin has merged cells, such as B2:B3. Only the first cell of each')
  expect(err).toContain('Ignored the cells to the right of the header in 1 row\n')
})

test('the sheets of an .ods are chosen as those of other workbooks', async () => {
  const build = (id: number) => header + buildPlantRow(id, buildCell('Fern'))
  const grouped = `<table:table-header-rows>${header}</table:table-header-rows><table:table-row-group>${buildPlantRow(3, buildCell('Fern'))}</table:table-row-group>`
  const file = buildOpenDocument([
    { name: 'Notes', rows: buildRow([buildCell('x')]) },
    { name: 'Old', rows: build(1), isHidden: true },
    { name: 'A', rows: build(2) },
    { name: 'B', rows: grouped },
  ])
  const first = await sandbox.import('', file)
  expect(first).toMatchObject({ code: 0, created: 1, err: expect.stringContaining('"B"') })
  expect(await sandbox.import('--sheet 3', file)).toMatchObject({ code: 0, created: 1 })
  expect(await sandbox.import('--sheet old', file)).toMatchObject({ code: 0, created: 1 })
  expect(await sandbox.list()).toBe([1, 2, 3].map((id) => buildPlantLine(id, 'Fern')).join(''))
  const { code, err } = await sandbox.import('--sheet C', file)
  expect(code).toBe(2)
  expect(err).toContain('Choose one of its sheets with --sheet: "Notes", "Old" (hidden), "A", "B"')
})

test('an .ods is read although it does not declare a prefix that it does not use', async () => {
  const content = `<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:spreadsheet><table:table table:name="P">${header}${buildPlantRow(1, buildCell('Fern'))}</table:table></office:spreadsheet></office:body></office:document-content>`
  const file = buildOpenDocument([], '', { 'content.xml': content })
  expect(await sandbox.import('', file)).toEqual({ code: 0, created: 1, err: '' })
})

test('tables of an .ods that are no sheets are not read', async () => {
  const linked = `<table:dde-links><table:dde-link><table:table table:name="D">${header}</table:table></table:dde-link></table:dde-links>`
  const shapes = `<table:shapes><table:table-row>${buildCell('x')}</table:table-row></table:shapes>`
  const rows = shapes + header + buildPlantRow(1, buildCell('Fern'))
  const file = buildOpenDocument([{ name: 'P', rows }], linked)
  expect(await sandbox.import('', file)).toEqual({ code: 0, created: 1, err: '' })
})

const long = buildRow([buildNumber('1'), buildCell('x'.repeat(1000))], 1_000_000)

test.each<{ title: string; file: Buffer; message: string }>([
  {
    title: 'a password',
    file: buildOpenDocument([], '', {
      'META-INF/manifest.xml': '<manifest:encryption-data manifest:checksum="x"/>',
    }),
    message: 'is protected by a password',
  },
  {
    title: 'a type of a megabyte',
    file: buildOpenDocument([], '', {
      mimetype: `application/vnd.oasis.opendocument.spreadsheet${' '.repeat(1e6)}`,
    }),
    message: 'is an OpenDocument file, but no spreadsheet',
  },
  {
    title: 'a manifest of 49 MiB',
    file: buildOpenDocument([], '', { 'META-INF/manifest.xml': ' '.repeat(49 * 1_048_576) }),
    message: 'unpacks to too much data',
  },
  {
    title: 'no sheets',
    file: buildOpenDocument([]),
    message: 'has no visible sheet with cells',
  },
  {
    title: 'no content',
    file: buildZip({ mimetype: 'application/vnd.oasis.opendocument.spreadsheet' }),
    message: 'is damaged: content.xml is missing',
  },
  {
    title: 'a document type',
    file: buildOpenDocument([], '', { 'content.xml': '<!DOCTYPE a [<!ENTITY b "c">]><a/>' }),
    message: 'is damaged: content.xml has a document type declaration',
  },
  {
    title: 'another root',
    file: buildOpenDocument([], '', { 'content.xml': '<a:b xmlns:a="c"/>' }),
    message: 'is damaged: content.xml has not the root element of OpenDocument',
  },
  {
    title: 'an element between its cells',
    file: buildPlants(buildRow(['<table:tablecell/>'])),
    message: 'is damaged: row 2 contains the element table:tablecell',
  },
  {
    title: 'an unknown type',
    file: buildPlants(buildPlantRow(1, buildTyped('flost'))),
    message: 'is damaged: a cell has the unknown type flost',
  },
  {
    title: 'two types of a cell',
    file: buildPlants(buildPlantRow(1, buildTyped('float', 'calcext:value-type="date"'))),
    message: 'is damaged: a cell has two types',
  },
  {
    title: 'two values of a cell',
    file: buildPlants(
      buildPlantRow(1, buildTyped('float', 'office:value="1" office:boolean-value="true"')),
    ),
    message: 'is damaged: a cell has two types',
  },
  {
    title: 'a number of repetitions that is none',
    file: buildPlants(buildPlantRow(1, buildTyped('string', 'table:number-columns-repeated="2x"'))),
    message: 'is damaged: table:number-columns-repeated has the invalid value "2x"',
  },
  {
    title: 'too many columns',
    file: buildPlants(
      buildPlantRow(1, buildTyped('string', 'table:number-columns-repeated="16384"')),
    ),
    message: 'is damaged: row 2 has more than 16384 cells',
  },
  {
    title: 'too many rows',
    file: buildPlants(buildRow([buildNumber('1'), buildCell('a')], 1_048_576)),
    message: 'is damaged: in the sheet "P", it has more than 1048576 rows',
  },
  { title: 'a million long rows', file: buildPlants(long), message: 'unpacks to too much data' },
  {
    title: 'a million spaces',
    file: buildPlants(buildPlantRow(1, buildCell('a<text:s text:c="2000000"/>'))),
    message: 'The record is larger than 1 MiB',
  },
  {
    title: 'thousands of sheets with wide heads',
    file: buildOpenDocument(
      Array.from({ length: 400 }, (_, index) => ({
        name: `s${index}`,
        rows: buildRow([buildTyped('string', 'table:number-columns-repeated="16384"', 'a')], 20),
      })),
    ),
    message: 'unpacks to too much data',
  },
])('an import rejects an .ods with $title', async ({ file, message }) => {
  const { code, err } = await sandbox.import('', file)
  expect(code).toBe(2)
  expect(err).toContain(message)
  expect(sandbox.has('data')).toBe(false)
})
