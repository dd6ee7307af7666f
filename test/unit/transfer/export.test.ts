import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import * as zlib from 'node:zlib'
import { parse } from 'csv-parse/sync'
import { beforeEach, describe, expect, test } from 'vitest'
import { parseJson, toWireJson } from '../../../src/plant/exact-json.js'
import type { NewPlant } from '../../../src/plant/plant.js'
import { describeDriver } from '../../../src/platform/sqlite.js'
import { check, fc, int64, text } from '../../helpers/fast-check.js'
import { query } from '../../helpers/sqlite-file.js'
import { partOf } from '../../helpers/workbook.js'
import { isWindows, refusal, World } from '../../helpers/world.js'

let user: World

beforeEach(() => {
  user = new World()
})

async function plant(...all: NewPlant[]): Promise<void> {
  const lines = all.map((one) => `${toWireJson(one)}\n`)
  expect(await user.run('import --format ndjson', { stdin: lines.join('') })).toMatchObject({
    code: 0,
  })
}

const bytesOf = (name: string) => readFileSync(join(user.home, name))
const fern = { id: 1n, name: 'Fern', tag: 'shade' }
const moss = { id: 2n, name: 'Moss' }

test('a file is compressed by its name', async () => {
  await plant(fern)
  const { out } = await user.run('export out.csv.gz')
  const bytes = bytesOf('out.csv.gz')
  expect(zlib.gunzipSync(bytes).toString()).toBe('id,name,tag\n1,Fern,shade\n')
  expect(JSON.parse(out)).toEqual({
    file: join(user.home, 'out.csv.gz'),
    plants: 1,
    bytes: bytes.length,
  })
})

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

/** Rows of cells, of which an empty one without quotes is none. */
function parseCells(content: string, delimiter: string): unknown[] {
  const cast = (value: string, { quoting }: { quoting: boolean }) =>
    value === '' && !quoting ? undefined : value
  const [header, ...rows] = parse(content, { delimiter, cast, record_delimiter: '\n' }) as (
    | string
    | undefined
  )[][]
  expect(header).toEqual(['id', 'name', 'tag'])
  return rows.map(([id = '', name, tag]) => ({
    id: BigInt(id),
    name,
    ...(tag === undefined ? {} : { tag }),
  }))
}

const odd = fc.oneof(
  text(),
  fc.string({
    unit: fc.constantFrom(...' \t\r\n",;|\f\\/0\u0085\u00a0\u2028\u3000\ufeffa'),
    maxLength: 6,
  }),
)
// A table keeps no empty text, and an import of a workbook no white space at its ends.
const filled = odd.filter((one) => one !== '')
const trimmed = odd
  .map((one) => one.trim())
  .filter((one) => one !== '' && !/[\ufffe\uffff]|_x[\da-f]{4}_/i.test(one))
const textsOf = (format: string) =>
  format === 'xlsx' ? trimmed : /^[ct]sv$/.test(format) ? filled : odd

test.each(['ndjson', 'json', 'csv', 'tsv', 'xlsx'])(
  'an import of %s makes the store that was exported',
  async (format) => {
    const texts = textsOf(format)
    const any = fc.record(
      { id: int64(), name: texts, tag: texts },
      { requiredKeys: ['id', 'name'] },
    )
    const trip = async (some: NewPlant[]) => {
      const all = some.toSorted((one, other) => (one.id < other.id ? -1 : 1))
      user = new World()
      await plant(...some)
      await user.run(`export ${format}.${format}`)
      const readBack = readers[format]
      if (readBack) expect(readBack(user.read(`${format}.${format}`))).toEqual(all)
      await user.run(`import ${format}.${format} --store ./copy.db`)
      expect((await user.run('export --store ./copy.db')).out).toBe((await user.run('export')).out)
    }
    await trip([
      { id: 1n, name: '=1+1', tag: format === 'xlsx' ? 'N/A' : '#N/A' },
      { id: 2n ** 53n, name: 'a\r\n\u0001.' },
    ])
    await check(
      2,
      [fc.uniqueArray(any, { selector: ({ id }) => id, minLength: 150, maxLength: 150 })],
      trip,
    )
  },
)

test('a table quotes a text that an import would trim, or take for an error', async () => {
  await plant({ id: 1n, name: '\ufeffFern', tag: 'wet\u3000' }, { id: 2n, name: '#REF!' })
  await plant({ id: 3n, name: 'a\u3000b', tag: '#REF' })
  expect((await user.run('export -o csv')).out).toBe(
    'id,name,tag\n1,"\ufeffFern","wet\u3000"\n2,"#REF!",\n3,a\u3000b,#REF\n',
  )
})

test('a table does not keep empty texts', async () => {
  await plant(
    { id: 1n, name: '' },
    { id: 2n, name: 'A', tag: '' },
    { id: 3n, name: '', tag: '' },
    { id: 4n, name: 'Fern' },
  )
  await user.run('export out.csv.gz')
  expect((await user.run('import out.csv.gz --store ./copy.db')).code).toBe(6)
  expect((await user.run('export --store ./copy.db')).out).toBe(
    '{"id":2,"name":"A"}\n{"id":4,"name":"Fern"}\n',
  )
})

test('a workbook has numbers and texts, and a header that stays in view', async () => {
  const large = [10n ** 15n - 1n, 10n ** 15n, -(10n ** 15n)]
  await plant({ id: 1n, name: '=1+1' }, ...large.map((id) => ({ id, name: '<a>', tag: ' b ' })))
  const { out } = await user.run('export out.xlsx')
  expect(JSON.parse(out)).toMatchObject({ plants: 4, bytes: bytesOf('out.xlsx').length })
  const sheet = partOf(bytesOf('out.xlsx'), 'xl/worksheets/sheet1.xml')
  for (const part of [
    '<pane ySplit="1" topLeftCell="A2" state="frozen"',
    '<c r="A3"><v>1</v></c><c r="B3" t="inlineStr"><is><t>=1+1</t></is></c>',
    '<c r="A4"><v>999999999999999</v></c>',
    '<c r="A5" t="inlineStr"><is><t>1000000000000000</t></is></c>',
    '<c r="A2" t="inlineStr"><is><t>-1000000000000000</t></is></c>',
    '<t xml:space="preserve"> b </t>',
  ])
    expect(sheet).toContain(part)
})

test('what other programs have stored against the contract spoils nothing else', async () => {
  await plant(fern, moss)
  const text = (hex: string) => `CAST(x'${hex}' AS TEXT)`
  const rows = `(-1, ${text('41004222')}, ${text('002c')}), (0, ${text('41ff42')}, ${text('eda080')})`
  query(user.store, `INSERT INTO plants (id, name, tag) VALUES ${rows}`)
  // the packaged driver ends a text at U+0000
  const isWhole = describeDriver().driver === 'node:sqlite'
  const [name, tag, first] = isWhole ? ['A\0B"', '\0,', '-1,"A\0B""","\0,"'] : ['A', '', '-1,A,""']
  expect(readers['ndjson']?.((await user.run('export')).out)).toEqual([
    { id: -1n, name, tag },
    { id: 0n, name: 'A\ufffdB', tag: '\ufffd\ufffd\ufffd' },
    fern,
    moss,
  ])
  expect((await user.run('export -o csv')).out).toBe(
    `id,name,tag\n${first}\n0,A\ufffdB,\ufffd\ufffd\ufffd\n1,Fern,shade\n2,Moss,\n`,
  )
})

describe('export to a file', () => {
  beforeEach(() => plant(fern))

  test.skipIf(isWindows)(
    'keeps the mode of an old file, and leaves nothing else (needs modes)',
    async () => {
      user.write('old.csv', 'old')
      chmodSync(join(user.home, 'old.csv'), 0o664)
      for (const name of ['new.csv', 'old.csv']) await user.run(`export ${name} --yes`)
      expect(statSync(join(user.home, 'old.csv')).mode & 0o777).toBe(0o664)
      expect(readdirSync(user.home)).toEqual(['data', 'new.csv', 'old.csv'])
    },
  )

  test.skipIf(isWindows).each(['old.csv', 'link.csv'])(
    'replaces %s with --yes only (needs links)',
    async (name) => {
      user.write('old.csv', 'old')
      symlinkSync('old.csv', join(user.home, 'link.csv'))
      expect(await user.run(`export ${name}`)).toEqual(
        refusal(`${name} already exists`, 'To replace it, add --yes'),
      )
      expect(user.read('old.csv')).toBe('old')
      expect(await user.run(`export ${name} --yes`)).toMatchObject({ code: 0 })
      expect(user.read('old.csv')).toBe('id,name,tag\n1,Fern,shade\n')
      expect(readlinkSync(join(user.home, 'link.csv'))).toBe('old.csv')
    },
  )

  test('says that a file exists before the store is opened', async () => {
    user.write('old.csv', 'old')
    const unreachable = ['export', 'old.csv', '--store', 'http://127.0.0.1:1', '--timeout', '0']
    expect(await user.run(unreachable)).toEqual(
      refusal('old.csv already exists', 'To replace it, add --yes'),
    )
  })

  test.runIf(existsSync('/dev/full')).each(['/dev/full', 'full.csv.gz'])(
    'has no space in %s',
    async (out) => {
      symlinkSync('/dev/full', join(user.home, 'full.csv.gz'))
      const message = `${out.startsWith('/') ? out : join(user.home, out)} could not be written: no space left on device`
      const hint = 'Choose another file, or free some space'
      expect(await user.run(`export ${out}`)).toEqual(refusal(message, hint, 74))
    },
  )

  test.skipIf(isWindows).each(['../link', '../here/plants.db-wal'])(
    'rejects the store itself: %s (needs links)',
    async (out) => {
      symlinkSync(user.store, join(user.home, 'link'))
      symlinkSync('data', join(user.home, 'here'))
      const err = expect.stringContaining(' is the store itself\n')
      expect(await user.run(`export data/${out}`)).toMatchObject({ code: 2, err })
      expect((await user.run('get 1')).code).toBe(0)
    },
  )
})
