import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { PlantsError } from '../../../src/errors.js'
import { check, fc } from '../../helpers/expect/arbitraries.js'
import { changeHeader, renameFile, streamedFlag } from '../../helpers/sandbox/damaged-archive.js'
import { buildPlantLine, ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import {
  buildInlineCell,
  buildPlantWorkbook,
  buildRows,
  buildSheetWorkbook,
  buildWorkbook,
  buildZip,
  plantHeader,
  sampleSharedStrings,
  sampleStyles,
} from '../../helpers/sandbox/workbook.js'

// Workbooks that are damaged, hostile or too large.

let sandbox: ImportSandbox

beforeEach(() => {
  sandbox = new ImportSandbox()
})

const sheetPath = 'xl/worksheets/sheet1.xml'
const fern = buildRows(['1', 'Fern'])
const unpacksTooMuch = 'stdin unpacks to too much data'

/** A row with an id and a cell that refers to a shared string. */
function buildSharedRow(index: string): string {
  return `<row><c><v>1</v></c><c t="s">${index}</c></row>`
}

/** Builds a workbook with a cell that has an inline string with this content. */
function buildInlineWorkbook(content: string): Buffer {
  return buildPlantWorkbook(`<row><c><v>1</v></c><c t="inlineStr"><is>${content}</is></c></row>`)
}

/** What a damaged or hostile workbook has, and how the message begins if it is another one. */
interface Damage {
  damage: string
  workbook: Buffer
  message?: string
}

const damagedArchives: Damage[] = [
  {
    damage: 'shared strings that unpack to gigabytes',
    workbook: buildPlantWorkbook('', { sharedStrings: ' '.repeat(68_000_000) }),
    message: unpacksTooMuch,
  },
  {
    damage: 'formats that unpack to gigabytes',
    workbook: buildPlantWorkbook('', { styles: ' '.repeat(68_000_000) }),
    message: unpacksTooMuch,
  },
  {
    damage: 'a sheet whose own size is above the limit',
    workbook: changeHeader(buildSheetWorkbook(''), sheetPath, { size: 268_435_457 }),
    message: unpacksTooMuch,
  },
  {
    damage: 'a sheet that unpacks to more than its size',
    workbook: changeHeader(buildSheetWorkbook(' '.repeat(100_000)), sheetPath, { size: 100 }),
  },
  {
    damage: 'a sheet whose size is 0',
    workbook: changeHeader(buildPlantWorkbook(fern), sheetPath, { size: 0 }),
  },
  {
    damage: 'a sheet whose size stands behind its data',
    workbook: changeHeader(buildPlantWorkbook(fern), sheetPath, {
      flags: streamedFlag,
      packedSize: 0,
      size: 0,
    }),
  },
  {
    damage: 'a wrong checksum',
    workbook: changeHeader(buildPlantWorkbook(fern), sheetPath, { checksum: 0 }),
  },
  {
    damage: 'no end',
    workbook: buildPlantWorkbook('').subarray(0, 500),
    message: 'stdin is damaged: its list of parts cannot be read\n',
  },
  { damage: 'no relations', workbook: buildZip({ 'xl/workbook.xml': '<workbook/>' }) },
  {
    damage: 'no sheet',
    workbook: buildWorkbook({}),
    message: 'stdin has no visible sheet with cells',
  },
  {
    damage: 'a missing part',
    workbook: renameFile(
      buildPlantWorkbook(fern, { styles: '' }),
      'xl/styles.xml',
      'xl/styles.xm_',
    ),
  },
]

const damagedXml: Damage[] = [
  {
    damage: 'bytes that are not UTF-8',
    workbook: buildSheetWorkbook(Buffer.from(plantHeader + buildRows(['1', 'F\xe4rn']), 'latin1')),
  },
  {
    damage: 'another encoding',
    workbook: buildSheetWorkbook(
      Buffer.from('<?xml version="1.0" encoding="latin1"?><worksheet/>'),
    ),
  },
  {
    damage: 'a document type',
    workbook: buildSheetWorkbook(Buffer.from('<!DOCTYPE a><worksheet/>')),
  },
  { damage: 'an element that is not closed', workbook: buildPlantWorkbook(`${fern}<row>`) },
  { damage: 'elements without end', workbook: buildPlantWorkbook('<a>'.repeat(101)) },
  {
    damage: 'an entity that does not exist',
    workbook: buildPlantWorkbook(buildRows(['1', '&fern;'])),
  },
  { damage: 'a raw U+FFFE', workbook: buildPlantWorkbook(buildRows(['1', 'a\ufffe'])) },
  {
    damage: 'an attribute twice',
    workbook: buildPlantWorkbook(
      `<row ht="1" ht="1">${buildInlineCell('1')}${buildInlineCell('a')}</row>`,
    ),
  },
]

const damagedCells: Damage[] = [
  { damage: 'a text in a text', workbook: buildInlineWorkbook('<t>a<t>b</t></t>') },
  { damage: 'two texts of a string', workbook: buildInlineWorkbook('<t>a</t><t>b</t>') },
  { damage: 'two inline strings', workbook: buildInlineWorkbook('<t>a</t></is><is><t>b</t>') },
  { damage: 'a string in a string', workbook: buildInlineWorkbook('<is><t>a</t></is>') },
  {
    damage: 'a text of another namespace',
    workbook: buildInlineWorkbook('<t xmlns="urn:a">a</t>'),
  },
  {
    damage: 'a text with another prefix',
    workbook: buildInlineWorkbook('<a:t xmlns:a="urn:a">a</a:t>'),
  },
  {
    damage: 'a value of an inline string',
    workbook: buildPlantWorkbook('<row><c t="inlineStr"><v>1</v></c></row>'),
  },
  {
    damage: 'a cell in a cell',
    workbook: buildPlantWorkbook('<row><c><c><v>1</v></c></c></row>'),
  },
  {
    damage: 'a shared string in a shared string',
    workbook: buildPlantWorkbook(fern, { sharedStrings: '<si><si><t>a</t></si></si>' }),
  },
  {
    damage: 'a format in a format',
    workbook: buildPlantWorkbook(fern, { styles: '<cellXfs><xf><xf/></xf></cellXfs>' }),
  },
  {
    damage: 'too many cells in a row',
    workbook: buildPlantWorkbook(`<row>${'<c/>'.repeat(16_385)}</row>`),
  },
  {
    damage: 'a shared string that does not exist',
    workbook: buildPlantWorkbook(buildSharedRow('<v>1</v>'), {
      sharedStrings: sampleSharedStrings,
    }),
  },
  {
    damage: 'a shared string before the first',
    workbook: buildPlantWorkbook(buildSharedRow('<v>-1</v>'), {
      sharedStrings: sampleSharedStrings,
    }),
  },
  {
    damage: 'an unknown type of a cell',
    workbook: buildPlantWorkbook('<row><c t="z"><v>1</v></c></row>'),
  },
  {
    damage: 'a format that does not exist',
    workbook: buildPlantWorkbook('<row><c s="1"><v>1</v></c></row>'),
  },
  {
    damage: 'an element in a value',
    workbook: buildPlantWorkbook('<row><c><v>1<extLst><v>2</v></extLst></v></c></row>'),
  },
  { damage: 'two values', workbook: buildPlantWorkbook('<row><c><v>1</v><v>2</v></c></row>') },
  {
    damage: 'two cells in one place',
    workbook: buildPlantWorkbook('<row><c r="A2"><v>1</v></c><c r="A2"><v>2</v></c></row>'),
  },
  {
    damage: 'a cell of another row',
    workbook: buildPlantWorkbook('<row r="2"><c r="A3"><v>1</v></c></row>'),
  },
  {
    damage: 'two rows in one place',
    workbook: buildPlantWorkbook('<row r="2"><c/></row><row r="2"><c/></row>'),
  },
]

test.each([...damagedArchives, ...damagedXml, ...damagedCells])(
  'an import rejects a workbook with $damage',
  async ({ workbook, message = 'stdin is damaged' }) => {
    const { code, err } = await sandbox.import('', workbook)
    expect([code, err.slice(0, message.length + 8)]).toEqual([2, `plants: ${message}`])
    expect(sandbox.has('data')).toBe(false)
  },
)

test.each([
  { path: 'xl/sharedStrings.xml', storedAs: 'xl/SharedStrings.xml' },
  { path: 'xl/workbook.xml', storedAs: 'xl\\Workbook.xml' },
])(
  'an import finds the part $path of a workbook that is stored as $storedAs',
  async ({ path, storedAs }) => {
    const workbook = buildPlantWorkbook(buildSharedRow('<v>0</v>'), {
      sharedStrings: sampleSharedStrings,
    })
    const result = await sandbox.import('', renameFile(workbook, path, storedAs))
    expect(result).toEqual({ code: 0, created: 1, err: '' })
    expect(await sandbox.list()).toBe(buildPlantLine(1, 'bold plain'))
  },
)

test('an import reads a workbook in the 64-bit form of ZIP', async () => {
  sandbox.write('stock.xlsx', readFileSync(join(import.meta.dirname, '../../data/zip64.xlsx')))
  expect(await sandbox.import('stock.xlsx')).toEqual({ code: 0, created: 1, err: '' })
  expect(await sandbox.list()).toBe(buildPlantLine(1, '\u00e4', 't'))
})

test('an import finds damage of its second file before it stores the first file', async () => {
  sandbox.write('a.xlsx', buildPlantWorkbook(buildRows(['1', 'a'])))
  sandbox.write('b.xlsx', buildPlantWorkbook(`${buildRows(['2', 'b']).repeat(30)}<row>`))
  const { code, err } = await sandbox.import('a.xlsx b.xlsx')
  expect([code, err]).toEqual([
    2,
    expect.stringMatching(/^plants: b\.xlsx is damaged: in the sheet "P", /),
  ])
  expect(sandbox.has('data')).toBe(false)
})

test('an import ends at a row of a workbook above 1 MiB, and names its line', async () => {
  const err = expect.stringContaining('plants: stdin:2: The record is larger than 1 MiB')
  const stdin = buildPlantWorkbook(buildRows(['1', 'y'.repeat(1_100_000)]))
  expect(await sandbox.import('', stdin)).toEqual({ code: 2, err })
})

test('an import reads a workbook with a changed byte as it was, or rejects it', async () => {
  const bytes = buildPlantWorkbook(
    buildRows(['1', 'Fern', 'shade']) + buildSharedRow('<v>0</v>').replace('>1<', '>2<'),
    {
      sharedStrings: sampleSharedStrings,
      styles: sampleStyles,
    },
  )
  const plants = buildPlantLine(1, 'Fern', 'shade') + buildPlantLine(2, 'bold plain')
  const anyChange = fc.record({ offset: fc.nat(bytes.length - 1), value: fc.nat(255) })
  await check(100, [anyChange], async ({ offset, value }) => {
    const changed = Buffer.from(bytes)
    changed[offset] = value
    sandbox = new ImportSandbox()
    const { code } = await sandbox.import('', changed)
    expect([0, 2]).toContain(code)
    if (code === 0) expect(await sandbox.list()).toBe(plants)
  })
})

test('an import ends on a signal while it reads a sheet of blank cells', async () => {
  const blank = buildPlantWorkbook(`<row>${'<c><v/></c>'.repeat(1000)}</row>`.repeat(1000))
  const stop = new AbortController()
  const before = process.cpuUsage()
  const result = sandbox.import('', blank, { signal: stop.signal })
  await expect.poll(() => process.cpuUsage(before).user, { interval: 5 }).toBeGreaterThan(300_000)
  stop.abort(new PlantsError('interrupted', 'Interrupted'))
  expect((await result).code).toBe(130)
})
