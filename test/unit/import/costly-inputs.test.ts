import { expect, test } from 'vitest'
import { buildRepeatedEntries } from '../../helpers/sandbox/damaged-archive.js'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import {
  buildPlantWorkbook,
  buildRelationships,
  buildRows,
  buildZip,
} from '../../helpers/sandbox/workbook.js'

// Small inputs whose import would take minutes if its time grew with the square of their size.

const fern = buildRows(['1', 'Fern'])
const attributes = Array.from({ length: 30_000 }, (_, index) => ` a${index}=""`).join('')
/** A text that a parser gets in hundreds of thousands of parts. */
const parts = 'x<!---->'.repeat(600_000)

function buildChartWorkbook(): Buffer {
  const charts = Array.from(
    { length: 9999 },
    (_, index) => `<sheet name="${index}" r:id="${index}"/>`,
  )
  const relations = Array.from({ length: 100_000 }, (): [string, string] => ['chartsheet', 'chart'])
  return buildZip({
    '_rels/.rels': buildRelationships([['officeDocument', 'xl/workbook.xml']]),
    'xl/_rels/workbook.xml.rels': buildRelationships(relations),
    'xl/workbook.xml': `<workbook><sheets>${charts.toReversed().join('')}</sheets></workbook>`,
    'xl/chart': '',
  })
}

function buildKeys(count: number): string {
  // A key with invisible characters has the same name as one without them.
  const digits = ['\u00ad', '\u200b']
  const keys = Array.from({ length: count }, (_, index) =>
    (index + 2).toString(2).replace(/\d/g, (digit) => digits[Number(digit)] ?? ''),
  )
  return keys.map((key) => `"i${key}d":1`).join()
}

interface CostlyInput {
  what: string
  input: Buffer | string
  flags?: string
  result: object
}

const created = { code: 0, created: 1 }
const rejected = { code: 6, rejected: { 422: 1 } }

const workbooks: CostlyInput[] = [
  {
    what: 'a number with 200,000 digits and a letter',
    input: buildPlantWorkbook(`<row><c><v>1</v></c><c><v>${'1'.repeat(200_000)}x</v></c></row>`),
    result: rejected,
  },
  {
    what: 'a format with 200,000 opening brackets',
    input: buildPlantWorkbook(fern, {
      styles: `<numFmts><numFmt numFmtId="164" formatCode="${'['.repeat(200_000)}"/></numFmts>`,
    }),
    result: created,
  },
  {
    what: 'a row with 30,000 attributes',
    input: buildPlantWorkbook(`<row${attributes}/>${fern}`),
    result: created,
  },
  {
    what: '9,999 charts and 100,000 relations',
    input: buildChartWorkbook(),
    result: { code: 2, err: expect.stringContaining('stdin has no visible sheet with cells') },
  },
  {
    what: '65,535 parts with one name',
    input: buildRepeatedEntries(65_535),
    result: { code: 2, err: expect.stringContaining('stdin is a ZIP archive') },
  },
  {
    what: 'a value with 600,000 comments',
    input: buildPlantWorkbook(`<row><c><v>1</v></c><c t="str"><v>${parts}</v></c></row>`),
    result: created,
  },
  {
    what: 'an inline string with 600,000 comments',
    input: buildPlantWorkbook(buildRows(['1', parts])),
    result: created,
  },
  {
    what: 'a shared string with 600,000 comments',
    input: buildPlantWorkbook('<row><c><v>1</v></c><c t="s"><v>0</v></c></row>', {
      sharedStrings: `<si><t>${parts}</t></si>`,
    }),
    result: created,
  },
]

const others: CostlyInput[] = [
  {
    what: 'a table with 20,000 columns without names',
    input: `id,name${','.repeat(20_000)}\n1,Fern${',x'.repeat(20_000)}\n`,
    result: created,
  },
  {
    what: 'a table with 60,000 columns without names, and 300,000 short rows',
    input: `id,name${','.repeat(60_000)}\n${'1,Fern\n'.repeat(300_000)}`,
    flags: '--if-exists skip',
    result: { code: 0, created: 1, skipped: 299_999 },
  },
  {
    what: 'objects with 20,000 keys that may be the id',
    input: `{"name":"Fern",${buildKeys(20_000)}}\n`.repeat(10),
    result: { code: 2, err: expect.stringContaining('could be the id') },
  },
]

test.each([...workbooks, ...others])(
  'an import of $what takes no more than seconds',
  async ({ what, input, flags, result }) => {
    const sandbox = new ImportSandbox()
    const start = process.cpuUsage()
    expect(await sandbox.import(flags, input)).toMatchObject(result)
    const { user, system } = process.cpuUsage(start)
    // It is a tenth of this, and was ten times as much.
    process.stderr.write(`CPU ${what} ${(user + system) / 1e6}\n`)
    expect((user + system) / 1e6).toBeLessThan(10)
  },
)
