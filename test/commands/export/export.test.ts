import {
  appendFileSync,
  chmodSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import * as zlib from 'node:zlib'
import { parse } from 'csv-parse/sync'
import { execa } from 'execa'
import { beforeEach, describe, expect, test } from 'vitest'
import { writeWorkbook } from '../../../src/export/workbook.js'
import { parseJson, toWireJson } from '../../../src/plant/json.js'
import type { NewPlant } from '../../../src/plant/plant.js'
import { check, fc, generateInt64, generateText } from '../../helpers/expect/arbitraries.js'
import { isInstalled } from '../../helpers/sandbox/programs.js'
import { isSoak } from '../../helpers/sandbox/rounds.js'
import { isWindows, Sandbox } from '../../helpers/sandbox/sandbox.js'
import { insertPlants } from '../../helpers/sandbox/sqlite-file.js'
import { endConnections } from '../../helpers/sandbox/store.js'
import { unzip } from '../../helpers/sandbox/workbook.js'

let user: Sandbox

beforeEach(() => {
  user = new Sandbox()
})

async function plant(...all: NewPlant[]): Promise<void> {
  const stdin = all.map((one) => `${toWireJson(one)}\n`).join('')
  expect((await user.run('import --format ndjson', { stdin })).code).toBe(0)
}

const bytesOf = (name: string) => readFileSync(join(user.home, name))
const fern = { id: 1n, name: 'Fern', tag: 'shade' }
const valueIn = (line: string) => (parseJson(line) as { value: unknown }).value

/** Independent of the readers of an import. */
const readers: Record<string, (content: string) => unknown[]> = {
  ndjson: (content) => content.split('\n').slice(0, -1).map(valueIn),
  json: (content) => {
    expect(Array.isArray(JSON.parse(content))).toBe(true)
    const lines = content.split('\n').slice(1, -2)
    return lines.map((line) => valueIn(line.replace(/,$/, '')))
  },
  csv: (content) => parseCells(content, ','),
  tsv: (content) => parseCells(content, '\t'),
}

/** Rows of cells, of which an empty one is none. */
function parseCells(content: string, delimiter: string): unknown[] {
  const [header, ...rows]: string[][] = parse(content, { delimiter, record_delimiter: '\n' })
  expect(header).toEqual(['id', 'name', 'tag'])
  return rows.map(([id = '', name, tag]) => ({ id: BigInt(id), name, ...(tag && { tag }) }))
}

const odd = fc.oneof(
  generateText(),
  fc.string({
    unit: fc.constantFrom(...' \t\r\n",;|\f\\/0\u0085\u00a0\u2028\u3000\ufeffa'),
    maxLength: 6,
  }),
)
// A table keeps no empty text and no line ends at the ends of a text, and an import of a workbook
// no white space there.
const filled = odd.map((one) => one.replace(/^[\r\n]+|[\r\n]+$/g, '')).filter((one) => one !== '')
const lookalikes = fc.string({
  unit: fc.constantFrom(...'_x0041\u0001\r\ufffe\uffff'),
  maxLength: 20,
})
const trimmed = fc
  .oneof(odd, lookalikes)
  .map((one) => one.trim())
  .filter((one) => one !== '')

test.each([
  ['ndjson', odd],
  ['json', odd],
  ['csv', filled],
  ['tsv', filled],
  ['xlsx', trimmed],
])('an import of %s makes the store that was exported', async (format, texts) => {
  const any = fc.record(
    { id: generateInt64(), name: texts, tag: texts },
    { requiredKeys: ['id', 'name'] },
  )
  const selector = ({ id }: NewPlant) => id
  const plants = fc.uniqueArray(any, { selector, minLength: 150, maxLength: 150 })
  const trip = async (some: NewPlant[]) => {
    const all = some.toSorted((one, other) => (one.id < other.id ? -1 : 1))
    user = new Sandbox()
    await plant(...some)
    await user.run(`export ${format}.${format}`)
    const readBack = readers[format]
    if (readBack) expect(readBack(user.read(`${format}.${format}`))).toEqual(all)
    await user.run(`import ${format}.${format} --store ./copy.db`)
    expect((await user.run('export --store ./copy.db')).out).toBe((await user.run('export')).out)
  }
  await trip([
    { id: 1n, name: '=1+1', tag: '#N/A' },
    { id: 2n ** 53n, name: 'a\r\n\u0001.' },
  ])
  await check(2, [plants], trip)
})

test('a table quotes a string that an import would trim, or take for an error', async () => {
  await plant({ id: 1n, name: '\ufeffFern', tag: 'wet\u3000' }, { id: 2n, name: '#REF!' })
  await plant({ id: 3n, name: 'a\u3000b', tag: '#REF' })
  expect((await user.run('export -o csv')).out).toBe(
    'id,name,tag\n1,"\ufeffFern","wet\u3000"\n2,"#REF!",\n3,a\u3000b,#REF\n',
  )
})

test('an export to a .gz file is compressed, and a table does not keep empty tags', async () => {
  await plant({ id: 2n, name: 'A', tag: '' }, { id: 4n, name: 'Fern' })
  const { out } = await user.run('export out.CSV.GZ')
  const bytes = bytesOf('out.CSV.GZ')
  expect(JSON.parse(out)).toMatchObject({ plants: 2, bytes: bytes.length })
  expect(zlib.gunzipSync(bytes).toString()).toBe('id,name,tag\n2,A,""\n4,Fern,\n')
  expect((await user.run('import out.CSV.GZ --store ./copy.db')).code).toBe(0)
  expect((await user.run('export --store ./copy.db')).out).toBe(
    '{"id":2,"name":"A"}\n{"id":4,"name":"Fern"}\n',
  )
})

test('a workbook has numbers and strings that keep all their digits', async () => {
  const large = [10n ** 15n - 1n, 10n ** 15n, -(10n ** 15n)]
  await plant({ id: 1n, name: '=1+1' }, ...large.map((id) => ({ id, name: '<a>', tag: ' b ' })))
  const { out } = await user.run('export out.xlsx')
  expect(JSON.parse(out)).toMatchObject({ plants: 4, bytes: bytesOf('out.xlsx').length })
  const sheet = unzip(bytesOf('out.xlsx'))['xl/worksheets/sheet1.xml'] ?? ''
  const cells = sheet.matchAll(/<c r="(\w+)"(?: t="(\w+)")?>(?:<v>|<is><t[^>]*>)([^<]*)/g)
  expect(Array.from(cells, ([, place, type = 'n', text]) => `${place} ${type} ${text}`)).toEqual([
    ...['A1 inlineStr id', 'B1 inlineStr name', 'C1 inlineStr tag'],
    ...['A2 inlineStr -1000000000000000', 'B2 inlineStr &lt;a&gt;', 'C2 inlineStr  b '],
    ...['A3 n 1', 'B3 inlineStr =1+1'],
    ...['A4 n 999999999999999', 'B4 inlineStr &lt;a&gt;', 'C4 inlineStr  b '],
    ...['A5 inlineStr 1000000000000000', 'B5 inlineStr &lt;a&gt;', 'C5 inlineStr  b '],
  ])
})

test('the summary of a workbook counts every plant, however many blocks the file has', async () => {
  await plant(fern)
  insertPlants(user.store, 50_000)
  const { out } = await user.run('export out.xlsx')
  expect(JSON.parse(out)).toMatchObject({ plants: 50_000 })
})

test('a workbook escapes what XML cannot contain, and strings that look like an escape', async () => {
  await plant({ id: 1n, name: 'a_x0041_\r_X0041_', tag: '_x0041\ufffe_x0041_x0042_' })
  await user.run('export out.xlsx')
  const sheet = unzip(bytesOf('out.xlsx'))['xl/worksheets/sheet1.xml']
  expect(sheet).toContain('>a_x005F_x0041__x000D__X0041_<')
  expect(sheet).toContain('>_x005F_x0041_xFFFE__x005F_x0041_x005F_x0042_<')
})

test('a workbook escapes strings that LibreOffice takes for an escape with fewer digits', async () => {
  await plant({ id: 1n, name: '_x1_ _xD\u0001 _x41 _x_', tag: '_x00041_' })
  await user.run('export out.xlsx')
  const sheet = unzip(bytesOf('out.xlsx'))['xl/worksheets/sheet1.xml']
  expect(sheet).toContain('>_x005F_x1_ _x005F_xD_x0001_ _x41 _x_<')
  expect(sheet).toContain('>_x00041_<')
})

test.skipIf(!(isSoak && isInstalled('soffice')))(
  'LibreOffice saves the strings of an export as they are (needs LibreOffice, in a soak)',
  { timeout: 600_000 },
  async () => {
    // It replaces a CR, and does not escape the second of two texts that overlap.
    const kept = trimmed.filter((one) => !/\r|_x[\da-f]{1,4}_x/i.test(one))
    const names = fc.array(kept, { minLength: 1000, maxLength: 1000 })
    await check(1, [names], async (all) => {
      user = new Sandbox()
      await plant(...all.map((name, index) => ({ id: BigInt(index), name, tag: name })))
      await user.run('export plants.xlsx')
      const profile = `-env:UserInstallation=file://${join(user.home, 'profile')}`
      const convert = ['--convert-to', 'xlsx', '--outdir', 'saved', 'plants.xlsx']
      await execa('soffice', ['--headless', profile, ...convert], { cwd: user.home })
      await user.run('import saved/plants.xlsx --store ./copy.db')
      const copy = (await user.run('export --store ./copy.db')).out
      expect(copy).toBe((await user.run('export')).out)
    })
  },
)

test.each([
  ['stock.xls', 'stock.xlsx'],
  ['my stock.ods', 'my stock.xlsx'],
  ['stock.2026.numbers', 'stock.2026.xlsx'],
  ['stock.xlsx.gz', 'stock.xlsx'],
  ['STOCK.XLS.GZ', 'STOCK.xlsx'],
])('the error of an export to %s proposes the workbook %s', async (name, workbook) => {
  await plant(fern)
  expect(await user.run(['export', name])).toMatchObject({
    code: 2,
    err:
      `plants: The file name "${name}" does not show the format\n` +
      `  For a workbook, use the name "${workbook}"\n`,
  })
  expect(await user.run(['export', workbook])).toMatchObject({ code: 0 })
})

test('two exports of the same plants have the same bytes', async () => {
  await plant(fern)
  await user.run('export one.xlsx')
  await user.run('export two.xlsx')
  expect(bytesOf('one.xlsx').equals(bytesOf('two.xlsx'))).toBe(true)
})

test.each<[what: string, unfit: Omit<NewPlant, 'id'>, reason: string]>([
  [
    'an empty name',
    { name: '' },
    'its name is empty or only white space, which a cell does not keep',
  ],
  ['a name of white space', { name: '\u3000\n' }, 'its name is empty or only white space'],
  [
    'a name that is too long',
    { name: '\u{1f335}'.repeat(16_384) },
    'its name is 32,768 UTF-16 units long, and a cell holds at most 32,767',
  ],
  ['a tag that is too long', { name: 'a', tag: 'a'.repeat(32_768) }, 'its tag is 32,768 UTF-16'],
])('an export rejects %s in a workbook, and leaves the old file', async (_, unfit, reason) => {
  await plant(fern, { id: 7n, ...unfit })
  user.write('out.xlsx', 'old')
  const { code, err } = await user.run('export out.xlsx --yes')
  expect([code, err]).toEqual([
    2,
    expect.stringContaining(`plants: Plant 7 does not fit in a workbook: ${reason}`),
  ])
  expect(err).toContain('\n  Export to another format, such as .ndjson\n')
  expect(user.read('out.xlsx')).toBe('old')
  expect(readdirSync(user.home).toSorted()).toEqual(['data', 'out.xlsx'])
  expect((await user.run('export out.ndjson')).code).toBe(0)
})

test('a workbook holds strings of 32,767 UTF-16 units, and leaves out an empty tag', async () => {
  const name = `${'\u{1f335}'.repeat(16_383)}a`
  await plant({ id: 1n, name, tag: '' })
  expect((await user.run('export out.xlsx')).code).toBe(0)
  await user.run('import out.xlsx --store ./copy.db')
  const { out } = await user.run('export --store ./copy.db')
  expect(out).toBe(`{"id":1,"name":"${name}"}\n`)
})

test.each([
  ['an empty name', { name: '' }, 'its name is empty'],
  [
    'a name with a line feed at its end',
    { name: 'Fern\n' },
    'its name begins or ends with a line end',
  ],
  [
    'a tag with CR at its start',
    { name: 'a', tag: '\rb' },
    'its tag begins or ends with a line end',
  ],
])('an export rejects %s in a table, and NDJSON keeps it', async (_, unfit, reason) => {
  await plant(fern, { id: 7n, ...unfit })
  for (const file of ['out.csv', 'out.tsv']) {
    user.write(file, 'old')
    const { code, err } = await user.run(`export ${file} --yes`)
    const message = `plants: Plant 7 does not fit in a table: ${reason}`
    expect([code, err]).toEqual([2, expect.stringContaining(message)])
    expect(user.read(file)).toBe('old')
  }
  const { out } = await user.run('export')
  await user.run('import --store ./copy.db', { stdin: out })
  expect((await user.run('export --store ./copy.db')).out).toBe(out)
})

test('an export to a workbook ends at the first plant that the sheet cannot hold', async () => {
  const page = Array.from({ length: 65_536 }, (_, id) => ({ id: BigInt(id), name: 'a' }))
  async function* readPages() {
    for (let index = 0; index < 16; index += 1) yield page
  }
  const write = async () => {
    for await (const _ of writeWorkbook(readPages()));
  }
  await expect(write()).rejects.toMatchObject({
    kind: 'input',
    message: 'Plant 65535 does not fit in a workbook: a sheet has at most 1,048,575 plants',
  })
})

describe('export to a file', () => {
  beforeEach(() => plant(fern))

  test.skipIf(isWindows)(
    'replaces what a link leads to, with --yes only, and keeps its mode (needs links)',
    async () => {
      user.write('old.csv', 'old')
      chmodSync(join(user.home, 'old.csv'), 0o664)
      symlinkSync('old.csv', join(user.home, 'link.csv'))
      expect((await user.run('export link.csv')).code).toBe(2)
      expect(user.read('old.csv')).toBe('old')
      expect((await user.run('export link.csv --yes')).code).toBe(0)
      expect(user.read('old.csv')).toBe('id,name,tag\n1,Fern,shade\n')
      expect(statSync(join(user.home, 'old.csv')).mode & 0o777).toBe(0o664)
      expect(readlinkSync(join(user.home, 'link.csv'))).toBe('old.csv')
      expect(readdirSync(user.home)).toEqual(['data', 'link.csv', 'old.csv'])
    },
  )

  test.skipIf(isWindows).each(['../link', '../here/plants.db-wal'])(
    'rejects the store itself: %s (needs links)',
    async (out) => {
      symlinkSync(user.store, join(user.home, 'link'))
      symlinkSync('data', join(user.home, 'here'))
      await endConnections() // after the last, SQLite removes the log
      const err = expect.stringContaining(' is a file of the store\n')
      const command = `export data/${out} --output csv`
      expect(await user.run(command)).toMatchObject({ code: 2, err })
      appendFileSync(`${user.store}-wal`, '')
      expect(await user.run(command)).toMatchObject({ code: 2, err })
      expect((await user.run('get 1')).code).toBe(0)
    },
  )
})
