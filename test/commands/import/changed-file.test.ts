import { appendFileSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { run } from '../../../src/cli/program/run.js'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { CapturedOutput, createIo } from '../../helpers/sandbox/run.js'
import { queryFile } from '../../helpers/sandbox/sqlite-file.js'
import { buildPlantWorkbook, buildRows } from '../../helpers/sandbox/workbook.js'

// A file that another program changes during its import is never imported as if it were whole.

const rowCount = 60_000
const rows = Array.from({ length: rowCount }, (_, index) => `${index},Fern ${'x'.repeat(60)}\n`)
const csv = Buffer.from(`id,name\nbad,Fern\n${rows.join('')}`)
const ndjson = Buffer.from(
  `{"id":"bad"}\n${rows.map((_, index) => `{"id":${index},"name":"${'Fern '.repeat(10)}"}\n`).join('')}`,
)
const json = Buffer.from(`[${ndjson.toString().trimEnd().replaceAll('\n', ',\n')}]`)
const workbookRows = Array.from({ length: 20_000 }, (_, index) => [String(index), 'Fern'])
const workbook = buildPlantWorkbook(buildRows(['bad', 'Fern'], ...workbookRows))
// Without compression, the packed file is as large as the CSV.
const gzip = gzipSync(csv, { level: 0 })

/** Calls a function before the first rejected record is printed. */
class WatchedOutput extends CapturedOutput {
  readonly #onRejection: () => void
  isCalled = false

  constructor(onRejection: () => void) {
    super({}, 'stderr')
    this.#onRejection = onRejection
  }

  override async write(text: string | Uint8Array): Promise<void> {
    if (!this.isCalled && String(text).includes('plants:')) {
      this.isCalled = true
      this.#onRejection()
    }
    await super.write(text)
  }
}

/** Imports a file that is changed when the first of its chunks has been stored. */
async function importChanged(
  bytes: Buffer,
  change: (path: string) => void,
  { options = '', modifiedTime = Date.now() / 1000 } = {},
) {
  const user = new ImportSandbox()
  const path = join(user.home, 'plants')
  writeFileSync(path, bytes)
  utimesSync(path, modifiedTime, modifiedTime)
  const stderr = new WatchedOutput(() => change(path))
  const io = createIo({ cwd: user.home, env: user.env }, undefined, stderr)
  const code = await run(['import', 'plants', ...options.split(' ').filter(Boolean)], io)
  expect(stderr.isCalled).toBe(true)
  return { user, code, err: stderr.text }
}

const changedMessage = 'plants was changed while it was read\n'

test.each<[string, bytes: Buffer, options: string, change: (path: string) => void]>([
  ['CSV that is cut', csv, '', (path) => truncateSync(path, csv.length - 1000)],
  ['CSV that is written again', csv, '', (path) => writeFileSync(path, csv)],
  ['CSV to which rows are added', csv, '', (path) => appendFileSync(path, '60000,Moss\n')],
  ['NDJSON that is cut', ndjson, '', (path) => truncateSync(path, ndjson.length - 1000)],
  ['CSV in gzip that is written again', gzip, '', (path) => writeFileSync(path, gzip)],
  ['CSV by name', csv, '--by-name', (path) => truncateSync(path, csv.length - 1000)],
  ['JSON that is written again', json, '', (path) => writeFileSync(path, json)],
  ['a workbook that is written again', workbook, '', (path) => writeFileSync(path, workbook)],
])('an import of %s in the meantime fails, and says why', async (_, bytes, options, change) => {
  const { user, code, err } = await importChanged(bytes, change, { options })
  expect([code, err]).toEqual([2, expect.stringContaining(changedMessage)])
  expect(Number((await user.run('count')).out)).toBeLessThan(rowCount)
})

test.each([
  { format: 'CSV', content: csv },
  { format: 'CSV in gzip', content: gzip },
  { format: 'NDJSON', content: ndjson },
  { format: 'JSON', content: json },
])('an import stores nothing of $format that is written over its file', async (list) => {
  // A row is a few bytes longer, so that the rows of both lists begin at other bytes.
  const isPacked = list.content === gzip
  const text = (isPacked ? csv : list.content).toString().replaceAll('Fern', 'Mosses')
  const otherList = isPacked ? gzipSync(text, { level: 0 }) : text
  const { user, code, err } = await importChanged(list.content, (path) =>
    writeFileSync(path, otherList, { flag: 'r+' }),
  )
  expect([code, err]).toEqual([2, expect.stringContaining(changedMessage)])
  const names = 'SELECT DISTINCT name FROM plants'
  expect(queryFile(user.store, names)).toEqual([{ name: expect.stringMatching(/^Fern/) }])
})

test('an import notices a list of the same size and the same time in the place of its file', async () => {
  const modifiedTime = 1_700_000_000
  const change = (path: string) => {
    writeFileSync(path, csv.toString().replaceAll('Fern', 'Moss'))
    utimesSync(path, modifiedTime, modifiedTime)
  }
  const { code, err } = await importChanged(csv, change, { modifiedTime })
  expect([code, err]).toEqual([2, expect.stringContaining(changedMessage)])
})

test('an import with --atomic of a file that is cut in the meantime stores nothing', async () => {
  const change = (path: string) => truncateSync(path, csv.length - 1000)
  const { user, code, err } = await importChanged(csv, change, { options: '--atomic' })
  expect([code, err]).toEqual([2, expect.stringContaining(changedMessage)])
  expect(Number((await user.run('count')).out)).toBe(0)
})
