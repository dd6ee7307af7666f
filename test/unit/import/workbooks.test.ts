import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32, deflateRawSync } from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import { PlantsError } from '../../../src/errors.js'
import { Importer, plant } from '../../helpers/import.js'

const office = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'

let user: Importer

beforeEach(() => {
  user = new Importer()
})

const header = rows(['id', 'name', 'tag'])
const sheetOf = (sheet: string | Buffer, parts: Parts = {}) =>
  workbook({ sheets: { P: sheet }, ...parts })
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
    ['false', '<c t="b"><v>0</v></c>', 'FALSE'],
    ['a number with the zeros of its format', number('123', 2), '123'],
    ['a percentage', number('0.5', 3), '0.5'],
    ['the formula of a number', '<c><f>6*7</f><v>42</v></c>', '42'],
    ['the formula of a text', '<c t="str"><f>A1&amp;"x"</f><v> x </v></c>', 'x'],
    ['text in runs, with its reading', `<c t="inlineStr"><is>${runs}</is></c>`, 'a b'],
    ['markup in characters', `<c t="str"><v>${markup}</v></c>`, '<a> &amp; <bc>'],
    ['white space of Unicode', inline('\u00a0\u3000 a\u2003b\u2028'), 'a\u2003b'],
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

test('an error, a number above 2^53, and an exponent in a text are rejected in their fields', async () => {
  const error = (code: string) => `<c t="e"><v>${code}</v></c>`
  const formula = '<c t="e"><f>1/0</f><v>#DIV/0!</v></c>'
  const sheet = [
    `${error('#N/A')}${inline('a')}<c/>`,
    `<c><v>2</v></c>${error('#REF!')}<c/>`,
    `<c><v>3</v></c>${inline('c')}${formula}`,
    `<c><v>4</v></c>${inline('d')}${inline('t')}${error('#N/A')}`,
    `<c><v>5</v></c>${inline('e')}${inline('#N/A')}`,
    '<c><v>6</v></c><c><v>9007199254740993</v></c><c/>',
    `<c><v>-9007199254740993</v></c>${inline('g')}<c/>`,
    `${inline('1E3')}${inline('h')}<c/>`,
    `<c><v>1.0E7</v></c>${inline('i')}<c/>`,
  ]
  const stdin = sheetOf(
    `${rows(['id', 'name', 'tag', 'note'])}<row>${sheet.join('</row><row>')}</row>`,
  )
  const { err: _, ...result } = await user.import('--rejects rejected.csv', stdin)
  expect(result).toMatchObject({ code: 6, created: 2, rejected: { 422: 7 } })
  expect(user.read('rejected.csv').split('\n').slice(1, -1)).toEqual([
    expect.stringMatching(/^2,[^,]*: id .*#N\/A,#N\/A,a,$/),
    expect.stringMatching(/^3,[^,]*: name .*#REF!,2,#REF!,$/),
    expect.stringMatching(/^4,[^,]*: tag .*#DIV\/0!,3,c,#DIV\/0!$/),
    expect.stringMatching(/^6,[^,]*: tag .*#N\/A,5,e,#N\/A$/),
    expect.stringMatching(/^7,".*: name .*",6,900719925474099\d,$/),
    expect.stringMatching(/^8,".*: id .*",-900719925474099\d,g,$/),
    expect.stringMatching(/^9,".*: id .*",1E3,h,$/),
  ])
  expect(await user.list()).toBe(plant(4, 'd', 't') + plant(10_000_000, 'i'))
})

test('rows and cells that say where they are', async () => {
  const cell = (place: string, text: string) => inline(text).replace('<c', `<c r="${place}"`)
  const sheet = [
    `<row r="3000">${cell('B3000', 'name')}${cell('AA3000', 'id')}</row>`,
    `<row r="3003">${cell('B3003', 'Fern')}<c r="AA3003"><v>1</v></c></row>`,
    `<row r="3004">${cell('XFD3004', 'x')}</row>`,
    `<row r="3005">${cell('B3005', 'a&#10;b')}</row>`,
    '<row r="3006"><c r="AA3006"><v>2</v></c></row>',
  ]
  const { err } = await user.import('', workbook({ sheets: { A: '', B: sheet.join('') } }))
  expect(err).toContain('stdin:3005: Invalid plant: id ')
  expect(err).toContain('stdin:3006: Invalid plant: name ')
  expect(err).toMatch(/Rows .*: 1, left out/)
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
  const empty = { empty: '', a: rows(['x', 'y']), b: '' }
  const unsaved = '<row><c><f>1+1</f></c><c><f>2+2</f></c></row>'
  const accented = { Notes: rows(['x']), 'Scho\u0308n': plants }
  const chart = { Chart: undefined, Sum: unsaved, Plants: plants }

  test.each<[string, Parts['sheets'], string, number]>([
    ['that is the first of several with the columns', three, '', 1],
    ['that has the columns of --map', three, '--map id=No', 5],
    ['of a name', three, '--sheet copy', 9],
    ['whose name is a number', three, '--sheet 2027 --map id=No', 5],
    ['after a chart, which counts', chart, '--sheet 3', 1],
    ['of a name with an accent', accented, '--sheet SCHON', 1],
  ])('%s', async (_, sheets = {}, flags, id) => {
    expect(await user.import(flags, workbook({ sheets }))).toEqual({ code: 0, created: 1, err: '' })
    expect(await user.list()).toContain(`{"id":${id},`)
  })

  test.each<[string, Parts['sheets'], string, string]>([
    ['has not the columns', two, '--sheet 1', 'stdin has no column "id", "name"'],
    ['that is not empty has not the columns', empty, '', 'line 1 has only "x", "y"'],
    ['is not there', two, '--sheet 3', 'There is no sheet "3"'],
  ])('%s', async (_, sheets = {}, flags, message) => {
    const err = expect.stringContaining(message)
    expect(await user.import(flags, workbook({ sheets }))).toEqual({ code: 2, err })
    expect(user.has('data')).toBe(false)
  })
})

/** A workbook whose directory gives this size of its sheet (PKWARE's APPNOTE, 4.3.12). */
function declared(size: number, bytes: Buffer): Buffer {
  bytes.writeUInt32LE(size, bytes.lastIndexOf('xl/worksheets/sheet1.xml') - 22)
  return bytes
}

/** A workbook whose directory says that the size of its sheet is elsewhere. */
function streamed(bytes: Buffer): Buffer {
  const name = bytes.lastIndexOf('xl/worksheets/sheet1.xml')
  bytes.writeUInt16LE(8, name - 38)
  bytes.writeUInt32LE(0, name - 26)
  return declared(0, bytes)
}

/** A workbook with the place of another directory (ZIP64). */
function redirected(bytes: Buffer): Buffer {
  const place = Buffer.from('PK\x06\x07'.padEnd(20, '\0'))
  return Buffer.concat([bytes.subarray(0, -22), place, bytes.subarray(-22)])
}

const binary = relationships([['sharedStrings', 'sharedStrings.dat']])
const fern = rows(['1', 'Fern'])
const unpacks = 'stdin unpacks to too much data'

const shared = (value: string) => `<row><c><v>1</v></c><c t="s">${value}</c></row>`

test.each<[what: string, stdin: Buffer, message?: string]>([
  ['texts that unpack to gigabytes', book('', { sharedStrings: ' '.repeat(68_000_000) }), unpacks],
  ['too many formats', book('', { styles: '<xf/>'.repeat(100_001) }), unpacks],
  ['too many cells in a row', book(`<row>${'<c/>'.repeat(16_385)}</row>`), unpacks],
  ['a sheet that says so of itself', declared(268_435_457, sheetOf('')), unpacks],
  ['a sheet that unpacks to more than it says', declared(100, sheetOf(' '.repeat(100_000)))],
  ['a sheet that says it is empty', declared(0, book(fern))],
  ['a sheet that says its size elsewhere', streamed(book(fern))],
  ['another directory', redirected(book(fern)), unpacks],
  ['texts that are not checked', zip({ 'xl/_rels/workbook.xml.rels': binary }), unpacks],
  ['no sheet', workbook({}), 'stdin is damaged: it has no sheet'],
  ['an archive of a table', zip({ 'plants.csv': 'id,name\n1,a\n' })],
  ['the start of a workbook', book('').subarray(0, 500)],
  ['a text that is not there', book(shared('<v>1</v>'), { sharedStrings })],
  ['bytes that are not UTF-8', sheetOf(Buffer.from(header + rows(['1', 'F\xe4rn']), 'latin1'))],
  ['an element that is not closed', book(`${fern}<row>`)],
  ['an entity that does not exist', book(rows(['1', '&fern;']))],
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
  expect(await user.list()).toBe(plant(1, 'bold plain'))
})

test('a cell beyond the header rejects its row, which is left out without fields', async () => {
  const sheet = rows(['1', 'a', '', 'surplus'], ['', '', '', 'note only'], ['2', 'b'])
  const err = expect.stringMatching(/^plants: stdin:2: .*\nplants: Rows .*: 1, left out\n/)
  const result = { code: 6, created: 1, rejected: { 400: 1 }, err }
  expect(await user.import('', book(sheet))).toEqual(result)
})

test('a row above 1 MiB ends the import with its line', async () => {
  const err = expect.stringContaining('plants: stdin:2: The record is larger than 1 MiB')
  const stdin = book(rows(['1', 'y'.repeat(1_100_000)]))
  expect(await user.import('', stdin)).toEqual({ code: 2, err })
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

interface Parts {
  /** The content of `sheetData` by name, or the bytes of the part; a chart has none. */
  sheets?: Record<string, string | Buffer | undefined>
  sharedStrings?: string
  styles?: string
}

function workbook({ sheets = {}, sharedStrings, styles }: Parts): Buffer {
  const contents = Object.entries(sheets)
  const list = contents.map(
    ([name], id) => `<sheet name="${name}" sheetId="${id + 1}" r:id="${id}"/>`,
  )
  const parts = contents.map(([, content], index): [type: string, target: string] => [
    content === undefined ? 'chartsheet' : 'worksheet',
    `worksheets/sheet${index + 1}.xml`,
  ])
  parts.push(['styles', 'styles.xml'], ['sharedStrings', '/xl/sharedStrings.xml'])
  const files: Record<string, string | Buffer> = {
    '[Content_Types].xml': '<Types/>',
    '_rels/.rels': relationships([['officeDocument', 'xl/workbook.xml']]),
    'xl/_rels/workbook.xml.rels': relationships(parts),
    'xl/workbook.xml': `<workbook xmlns:r="${office}"><sheets>${list.join('')}</sheets></workbook>`,
  }
  for (const [index, [, content]] of contents.entries())
    files[`xl/worksheets/sheet${index + 1}.xml`] = Buffer.isBuffer(content)
      ? content
      : `<worksheet><sheetData>${content}</sheetData></worksheet>`
  if (styles !== undefined) files['xl/styles.xml'] = `<styleSheet>${styles}</styleSheet>`
  if (sharedStrings !== undefined) files['xl/sharedStrings.xml'] = `<sst>${sharedStrings}</sst>`
  return zip(files)
}

function relationships(relations: [type: string, target: string][]): string {
  const all = relations.map(
    ([type, target], id) =>
      `<Relationship Id="${id}" Type="${office}/${type}" Target="${target}"/>`,
  )
  return `<?xml version="1.0" encoding="UTF-8"?><Relationships>${all.join('')}</Relationships>`
}

/** An archive of files by their names (PKWARE's APPNOTE, 4.3). */
function zip(files: Record<string, string | Buffer>): Buffer {
  const locals: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const [path, content] of Object.entries(files)) {
    const name = Buffer.from(path)
    const packed = deflateRawSync(content)
    const common = Buffer.alloc(26)
    common.writeUInt16LE(20, 0)
    common.writeUInt16LE(8, 4) // deflate
    common.writeUInt32LE(crc32(content), 10)
    common.writeUInt32LE(packed.length, 14)
    common.writeUInt32LE(Buffer.byteLength(content), 18)
    common.writeUInt16LE(name.length, 22)
    const place = Buffer.alloc(14)
    place.writeUInt32LE(offset, 10)
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, name, packed])
    locals.push(local)
    directory.push(Buffer.from('PK\x01\x02\x14\0'), common, place, name)
    offset += local.length
  }
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06')
  end.writeUInt16LE(locals.length, 8)
  end.writeUInt16LE(locals.length, 10)
  end.writeUInt32LE(Buffer.concat(directory).length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...locals, ...directory, end])
}

function rows(...cells: string[][]): string {
  return cells.map((row) => `<row>${row.map(inline).join('')}</row>`).join('')
}

function inline(text: string): string {
  return `<c t="inlineStr"><is><t>${text}</t></is></c>`
}
