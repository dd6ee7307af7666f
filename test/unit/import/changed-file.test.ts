import { appendFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { run } from '../../../src/cli/program/run.js'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { CapturedOutput, createIo } from '../../helpers/sandbox/run.js'

// A file that another program changes during its import is never imported as if it were whole.

const rowCount = 60_000
const rows = Array.from({ length: rowCount }, (_, index) => `${index},Fern ${'x'.repeat(60)}\n`)
const csv = Buffer.from(`id,name\nbad,Fern\n${rows.join('')}`)
const ndjson = Buffer.from(
  `{"id":"bad"}\n${rows.map((_, index) => `{"id":${index},"name":"${'Fern '.repeat(10)}"}\n`).join('')}`,
)
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

test.each<[string, bytes: Buffer, options: string, change: (path: string) => void]>([
  ['CSV that is cut', csv, '', (path) => truncateSync(path, csv.length - 1000)],
  ['CSV that is written again', csv, '', (path) => writeFileSync(path, csv)],
  ['CSV to which rows are added', csv, '', (path) => appendFileSync(path, '60000,Moss\n')],
  ['NDJSON that is cut', ndjson, '', (path) => truncateSync(path, ndjson.length - 1000)],
  ['CSV in gzip that is written again', gzip, '', (path) => writeFileSync(path, gzip)],
  ['CSV with --id-from', csv, '--id-from 1', (path) => truncateSync(path, csv.length - 1000)],
])('an import of %s in the meantime fails, and says why', async (_, bytes, options, change) => {
  const user = new ImportSandbox()
  const path = join(user.home, 'plants')
  writeFileSync(path, bytes)
  const stderr = new WatchedOutput(() => change(path))
  const io = createIo({ cwd: user.home, env: user.env }, undefined, stderr)
  const code = await run(['import', 'plants', ...options.split(' ').filter(Boolean)], io)
  expect([code, stderr.isCalled]).toEqual([2, true])
  expect(stderr.text).toContain('plants was changed while it was read\n')
  expect(Number((await user.run('count')).out)).toBeLessThan(rowCount)
})

test('an import with --atomic of a file that is cut in the meantime stores nothing', async () => {
  const user = new ImportSandbox()
  const path = join(user.home, 'plants')
  writeFileSync(path, csv)
  const stderr = new WatchedOutput(() => truncateSync(path, csv.length - 1000))
  const io = createIo({ cwd: user.home, env: user.env }, undefined, stderr)
  expect(await run(['import', 'plants', '--atomic'], io)).toBe(2)
  expect(stderr.text).toContain('plants was changed while it was read\n')
  expect(Number((await user.run('count')).out)).toBe(0)
})
