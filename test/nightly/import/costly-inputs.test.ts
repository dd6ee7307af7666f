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
const attributes = Array.from({ length: 100_000 }, (_, index) => ` a${index}=""`).join('')
/** A text that a parser gets in hundreds of thousands of parts. */
const parts = 'x<!---->'.repeat(400_000)

/** A workbook whose charts have the last ones of its relations. */
function buildChartWorkbook(): Buffer {
  const relationCount = 100_000
  const charts = Array.from({ length: 9999 }, (_, index) => {
    return `<sheet name="${index}" r:id="${relationCount - 1 - index}"/>`
  })
  const relations = Array.from({ length: relationCount }, (): [string, string] => {
    return ['chartsheet', 'chart']
  })
  return buildZip({
    '_rels/.rels': buildRelationships([['officeDocument', 'xl/workbook.xml']]),
    'xl/_rels/workbook.xml.rels': buildRelationships(relations),
    'xl/workbook.xml': `<workbook><sheets>${charts.join('')}</sheets></workbook>`,
    'xl/chart': '',
  })
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
    what: 'a row with 100,000 attributes',
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
    what: 'a value with 400,000 comments',
    input: buildPlantWorkbook(`<row><c><v>1</v></c><c t="str"><v>${parts}</v></c></row>`),
    result: created,
  },
  {
    what: 'an inline string with 400,000 comments',
    input: buildPlantWorkbook(buildRows(['1', parts])),
    result: created,
  },
  {
    what: 'a shared string with 400,000 comments',
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
    what: 'a table with 60,000 columns without names, and 100,000 short rows',
    input: `id,name${','.repeat(60_000)}\n${'1,Fern\n'.repeat(100_000)}`,
    flags: '--if-exists skip',
    result: { code: 0, created: 1, skipped: 99_999 },
  },
]

test.each([...workbooks, ...others])(
  'an import of $what takes no more than seconds',
  async ({ input, flags, result }) => {
    const sandbox = new ImportSandbox()
    const start = process.cpuUsage()
    expect(await sandbox.import(flags, input)).toMatchObject(result)
    const { user, system } = process.cpuUsage(start)
    // It is a fifth of this at most, and was more than this before.
    expect((user + system) / 1e6).toBeLessThan(10)
  },
)
