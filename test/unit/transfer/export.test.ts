import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { text as contentOf } from 'node:stream/consumers'
import * as zlib from 'node:zlib'
import { parse } from 'csv-parse/sync'
import { beforeEach, describe, expect, test } from 'vitest'
import { fromBufferPromise } from 'yauzl'
import { parseJson } from '../../../src/plant/exact-json.js'
import type { NewPlant } from '../../../src/plant/plant.js'
import { PlantsError } from '../../../src/platform/errors.js'
import { SqliteStore } from '../../../src/stores/sqlite/sqlite-store.js'
import { text as anyText, int64 } from '../../helpers/any-plant.js'
import { DatabaseSync } from '../../helpers/database.js'
import { fc } from '../../helpers/fast-check.js'
import { rounds } from '../../helpers/rounds.js'
import { type Result, type RunOptions, runPlants } from '../../helpers/run.js'
import { fileAddress, openOptions } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temporary.js'

let folder: string
let store: string

beforeEach(() => {
  folder = temporaryFolder()
  store = join(folder, 'plants.db')
})

function plants(argv: string[], world: RunOptions = {}): Promise<Result> {
  return runPlants([...argv, '--store', store], { cwd: folder, ...world })
}

async function plant(...all: NewPlant[]): Promise<void> {
  const sqlite = await SqliteStore.open(fileAddress(store), openOptions())
  await Promise.all(all.map((each) => sqlite.create(each)))
  await sqlite.close()
}

const read = (name: string) => readFileSync(join(folder, name), 'utf8')

const fern = { id: 1n, name: 'Fern', tag: 'shade' }
const moss = { id: 2n, name: 'Moss' }
const awkward = [
  { id: -3n, name: 'a "b", c', tag: '' },
  { id: 5n, name: '', tag: 'two\r\nlines\tand a tab' },
  { ...moss, id: 9007199254740993n },
]

const exports: Record<string, string> = {
  ndjson:
    '{"id":-3,"name":"a \\"b\\", c","tag":""}\n{"id":5,"name":"","tag":"two\\r\\nlines\\tand a tab"}\n{"id":9007199254740993,"name":"Moss"}\n',
  json: '[\n{"id":-3,"name":"a \\"b\\", c","tag":""},\n{"id":5,"name":"","tag":"two\\r\\nlines\\tand a tab"},\n{"id":9007199254740993,"name":"Moss"}\n]\n',
  csv: 'id,name,tag\n-3,"a ""b"", c",""\n5,"","two\r\nlines\tand a tab"\n9007199254740993,Moss,\n',
  tsv: 'id\tname\ttag\n-3\t"a ""b"", c"\t""\n5\t""\t"two\r\nlines\tand a tab"\n9007199254740993\tMoss\t\n',
}

describe('export prints', () => {
  test.each(Object.entries(exports))('all plants in the order of their ids, as %s', async (format, out) => {
    await plant(...awkward.toReversed())
    expect(await plants(['export', '--output', format])).toEqual({ code: 0, out, err: '' })
  })

  test.each([
    ['ndjson', ''],
    ['json', '[\n]\n'],
    ['csv', 'id,name,tag\n'],
    ['tsv', 'id\tname\ttag\n'],
  ])('a whole text also when there are no plants, as %s', async (format, out) => {
    await plant()
    expect(await plants(['export', '--output', format])).toEqual({ code: 0, out, err: '' })
  })

  test('the same as list, NDJSON, when nothing else is said', async () => {
    await plant(...awkward)
    expect(await plants(['export'])).toEqual(await plants(['list']))
    expect(await plants(['export', '--out', '-'])).toEqual(await plants(['list']))
    expect(await plants(['export', '--out', '/dev/stdout'])).toEqual(await plants(['list']))
  })

  test('only what was asked for', async () => {
    await plant(...[1, 2, 3, 4, 5, 6].map((id) => ({ id: BigInt(id), name: `F${id}`, tag: id % 2 ? 'odd' : 'even' })))
    expect((await plants(['export', '--limit', '2', '--after=1', '--tag', 'even'])).out).toBe(
      '{"id":2,"name":"F2","tag":"even"}\n{"id":4,"name":"F4","tag":"even"}\n',
    )
    expect((await plants(['export', '--tag', 'none', '--output', 'json'])).out).toBe('[\n]\n')
  })

  test('the smallest and the largest id, and nothing behind that', async () => {
    const [smallest, largest] = [-(2n ** 63n), 2n ** 63n - 1n]
    await plant({ ...fern, id: largest }, { ...fern, id: smallest })
    expect((await plants(['export', '--output', 'csv'])).out).toBe(
      `id,name,tag\n${smallest},Fern,shade\n${largest},Fern,shade\n`,
    )
    expect((await plants(['export', `--after=${smallest}`])).out).toBe(
      `{"id":${largest},"name":"Fern","tag":"shade"}\n`,
    )
    expect((await plants(['export', `--after=${largest}`])).out).toBe('')
  })

  test.each([
    ['more than a block of rows', 2500, 1],
    ['more than a block of bytes', 30, 200_000],
    ['plants that are a block of their own', 3, 1_040_000],
  ])('the same as list, for %s', async (_, count, length) => {
    const name = '\u0001é"'.repeat(Math.ceil(length / 4))
    await plant(
      ...Array.from({ length: count }, (__, id) => ({
        id: BigInt(id * 7),
        name: name.slice(0, length / 2),
        tag: id % 3 ? 'x' : 'y',
      })),
    )
    for (const flags of [
      [],
      ['--limit', `${count - 1}`],
      ['--tag', 'x'],
      ['--tag', 'x', '--limit', '2', '--after', '1'],
    ]) {
      const [exported, listed] = [await plants(['export', ...flags]), await plants(['list', ...flags])]
      expect(exported.out === listed.out && exported.out.length > length).toBe(true)
    }
  })

  test('nothing to a terminal that could drive it', async () => {
    await plant({ id: 1n, name: 'a\u001b[31m\u009b\u202e,\tb\nc' })
    expect((await plants(['export'], { terminals: ['stdout'] })).out).toBe(
      '{"id":1,"name":"a\\u001b[31m\\u009b\\u202e,\\tb\\nc"}\n',
    )
    expect((await plants(['export', '--output', 'csv'], { terminals: ['stdout'] })).out).toBe(
      'id,name,tag\n1,"a\\u{1b}[31m\\u{9b}\\u{202e},\tb\nc",\n',
    )
  })
})

const valueIn = (text: string) => (parseJson(text) as { value: unknown }).value

const readers: Record<string, (text: string) => unknown[]> = {
  ndjson: (text) => text.split('\n').slice(0, -1).map(valueIn),
  json: (text) => {
    expect(Array.isArray(JSON.parse(text))).toBe(true)
    return text
      .split('\n')
      .slice(1, -2)
      .map((line) => valueIn(line.replace(/,$/, '')))
  },
  csv: (text) => parseCells(text, ','),
  tsv: (text) => parseCells(text, '\t'),
}

test.each(Object.entries(readers))(
  'any plants come out of %s as they were',
  { timeout: rounds(60_000) },
  async (format, readBack) => {
    const trip = async (all: NewPlant[]) => {
      store = join(temporaryFolder(), 'plants.db')
      await plant(...all)
      const { code, out, err } = await plants(['export', '--output', format])
      const expected = all.toSorted((one, other) => (one.id < other.id ? -1 : 1))
      expect({ code, plants: readBack(out), err }).toEqual({ code: 0, plants: expected, err: '' })
    }
    const id = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
    const anyPlant = fc.record({ id, name: text(), tag: text() }, { requiredKeys: ['id', 'name'] })
    await fc.assert(fc.asyncProperty(fc.uniqueArray(anyPlant, { selector: (each) => each.id, maxLength: 20 }), trip), {
      numRuns: rounds(40),
    })
  },
)

test('a table for a German Excel is imported again as it was', async () => {
  await plant({ ...fern, name: 'Größe; "XL" | a, b' }, moss)
  await plants(['export', '--out', 'all.csv', '--delimiter', ';', '--bom'])
  expect(read('all.csv')).toBe('\ufeffid;name;tag\n1;"Größe; ""XL"" | a, b";shade\n2;Moss;\n')
  const { code } = await plants(['import', 'all.csv', '--if-exists', 'same'])
  expect(code).toBe(0)
})

test.each(['csv', 'tsv'])(
  'an import of %s makes the store that was exported',
  { timeout: rounds(60_000) },
  async (format) => {
    const odd = fc.string({ unit: fc.constantFrom(...' \t\r\n",0\u00a0a'), maxLength: 5 })
    const anyPlant = fc.record(
      { id: fc.bigInt({ min: -9n, max: 99n }), name: odd, tag: odd },
      { requiredKeys: ['id', 'name'] },
    )
    const trip = async (all: NewPlant[]) => {
      const copy = join(temporaryFolder(), 'copy.db')
      store = join(temporaryFolder(), 'plants.db')
      await plant(...all)
      const { out } = await plants(['export', '--output', format])
      const { out: before } = await plants(['export'])
      store = copy
      expect(await plants(['import', '--format', format], { stdin: out })).toMatchObject({ code: 0 })
      expect((await plants(['export'])).out).toBe(before)
    }
    const some = fc.uniqueArray(anyPlant, { selector: ({ id }) => id, minLength: 1, maxLength: 20 })
    await fc.assert(fc.asyncProperty(some, trip), { numRuns: rounds(20) })
  },
)

test('what another program has stored against the contract spoils nothing else', async () => {
  await plant(fern, moss)
  const db = new DatabaseSync(store)
  db.exec(
    `INSERT INTO plants (id, name, tag) VALUES (-1, CAST(x'41004222' AS TEXT), CAST(x'002c' AS TEXT)), (0, CAST(x'41ff42' AS TEXT), CAST(x'eda080' AS TEXT))`,
  )
  db.close()
  const rest = readers['ndjson']?.((await plants(['export'])).out)
  expect(rest).toEqual([
    { id: -1n, name: 'A\0B"', tag: '\0,' },
    { id: 0n, name: 'A\ufffdB', tag: '\ufffd\ufffd\ufffd' },
    fern,
    moss,
  ])
  expect((await plants(['export', '--output', 'csv'])).out).toBe(
    'id,name,tag\n-1,"A\0B""","\0,"\n0,A\ufffdB,\ufffd\ufffd\ufffd\n1,Fern,shade\n2,Moss,\n',
  )
})

describe('export --out', () => {
  test.each(Object.entries(exports))(
    'writes a file whose name ends in .%s in that format, and says so',
    async (format, text) => {
      await plant(...awkward)
      const [path, bytes] = [join(folder, `out.${format}`), Buffer.byteLength(text)]
      expect(await plants(['export', '--out', `out.${format}`])).toEqual({
        code: 0,
        out: `{"file":"${path}","plants":3,"bytes":${bytes}}\n`,
        err: '',
      })
      expect(read(`out.${format}`)).toBe(text)
      expect(
        await plants(['export', '--limit', '1', '--out', `./out.${format}`], { env: { PLANTS_OUTPUT: 'text' } }),
      ).toEqual({
        code: 0,
        out: `Exported 1 plant to ./out.${format}\n`,
        err: '',
      })
    },
  )

  test('writes the format that was asked for, whatever the name', async () => {
    await plant(...awkward)
    await plants(['export', '--out', 'out.csv', '--output', 'json'])
    await plants(['export', '--out', 'out.jsonl'])
    expect([read('out.csv'), read('out.jsonl')]).toEqual([exports['json'], exports['ndjson']])
  })

  test.each(['.cvs', '.xlsx.gz', '.txt', '.db'])(
    'rejects a file whose name ends in %s, unless its format is given',
    async (end) => {
      await plant(fern)
      const hint =
        'Choose a name that ends with .ndjson, .json, .csv, .tsv or .xlsx, or a format, such as: --output csv'
      const err = `plants: ${end} is not an export format\n  ${hint}\n`
      expect(await plants(['export', '--out', `out.csv${end}`])).toEqual({ code: 2, out: '', err })
      expect(existsSync(join(folder, `out.csv${end}`))).toBe(false)
      expect((await plants(['export', '--out', `out.csv${end}`, '--output', 'csv'])).err).toBe('')
    },
  )

  test('writes a workbook, which is imported as it was, but for spaces at the ends of a text', async () => {
    const trimmed = anyText()
      .map((one) => one.trim())
      .filter((one) => one !== '')
    const all = fc.record({ id: int64(), name: trimmed, tag: trimmed }, { requiredKeys: ['id', 'name'] })
    const lists = fc.uniqueArray(all, { selector: ({ id }) => id, maxLength: 20 })
    const compare = async (list: NewPlant[]) => {
      store = join(temporaryFolder(), 'plants.db')
      await plant({ id: 1n, name: '=1+1', tag: '_x0041_' }, { id: 2n ** 53n, name: '\uffff\ufffe\r\n\u0001.' })
      await plant(...list.filter(({ id }) => id !== 1n && id !== 2n ** 53n))
      const { out } = await plants(['export'])
      await plants(['export', '--out', 'out.xlsx'])
      store = join(temporaryFolder(), 'plants.db')
      expect((await plants(['import', 'out.xlsx', '-q'])).err).toBe('')
      expect((await plants(['export'])).out).toBe(out)
    }
    await fc.assert(fc.asyncProperty(lists, compare), { numRuns: rounds(20) })
  })

  test('writes a workbook of numbers and texts, with a header that stays in view', async () => {
    const large = [10n ** 15n - 1n, 10n ** 15n, -(10n ** 15n)]
    await plant({ id: 1n, name: '=1+1' }, ...large.map((id) => ({ id, name: '<a>', tag: ' b ' })))
    const { out } = await plants(['export', '--out', 'out.xlsx'])
    expect(JSON.parse(out)).toMatchObject({ plants: 4, bytes: statSync(join(folder, 'out.xlsx')).size })
    const zip = await fromBufferPromise(readFileSync(join(folder, 'out.xlsx')), { lazyEntries: true })
    let sheet = ''
    for await (const entry of zip.eachEntry())
      if (/sheet1/.test(entry.fileName)) sheet = await contentOf(await zip.openReadStreamPromise(entry))
    expect(sheet).toContain('<pane ySplit="1" topLeftCell="A2" state="frozen"')
    expect(sheet).toContain('<c r="A3"><v>1</v></c><c r="B3" t="inlineStr"><is><t>=1+1</t></is></c>')
    expect(sheet).toContain('<c r="A4"><v>999999999999999</v></c>')
    expect(sheet).toContain('<c r="A5" t="inlineStr"><is><t>1000000000000000</t></is></c>')
    expect(sheet).toContain('<c r="A2" t="inlineStr"><is><t>-1000000000000000</t></is></c>')
    expect(sheet).toContain('<t xml:space="preserve"> b </t>')
  })

  test('writes no workbook with a text that is too long for a cell, and keeps the old file', async () => {
    writeFileSync(join(folder, 'out.xlsx'), 'old')
    await plant({ id: 7n, name: 'a', tag: 'b'.repeat(32_768) })
    expect(await plants(['export', '--out', 'out.xlsx'])).toEqual({
      code: 2,
      out: '',
      err: 'plants: The tag of the plant with id 7 has 32768 characters, but a cell has at most 32767\n  Use a .csv file\n',
    })
    expect(read('out.xlsx')).toBe('old')
  })

  test.each(Object.entries(exports))('compresses %s with gzip by name', async (format, text) => {
    await plant(...awkward)
    const { out } = await plants(['export', '--out', `out.${format}.gz`])
    const bytes = readFileSync(join(folder, `out.${format}.gz`))
    expect(zlib.gunzipSync(bytes).toString()).toBe(text)
    expect(JSON.parse(out)).toEqual({ file: join(folder, `out.${format}.gz`), plants: 3, bytes: bytes.length })
  })

  test('compresses with zstd by name where Node can, and else says what to do', async () => {
    await plant(...awkward)
    const result = await plants(['export', '--out', 'out.csv.zst', '--limit', '3'])
    const { zstdDecompressSync } = zlib as { zstdDecompressSync?: (bytes: Uint8Array) => Buffer } // since Node 22.15
    if (zstdDecompressSync)
      expect(zstdDecompressSync(readFileSync(join(folder, 'out.csv.zst'))).toString()).toBe(exports['csv'])
    else {
      const hint = 'Use Node 22.15 or newer, or a name that ends with .gz'
      expect(result).toEqual({
        code: 2,
        out: '',
        err: `plants: This version of Node cannot compress with zstd\n  ${hint}\n`,
      })
      expect(existsSync(join(folder, 'out.csv.zst'))).toBe(false)
    }
  })

  test('makes a file for its owner alone, and keeps the mode of an old one', async () => {
    await plant(fern)
    await plants(['export', '--out', 'new.csv'])
    writeFileSync(join(folder, 'old.csv'), 'old')
    chmodSync(join(folder, 'old.csv'), 0o664)
    await plants(['export', '--out', 'old.csv'])
    expect(['new.csv', 'old.csv'].map((name) => statSync(join(folder, name)).mode & 0o777)).toEqual([0o600, 0o664])
    expect(readdirSync(folder).filter((name) => !name.startsWith('plants.db'))).toEqual(['new.csv', 'old.csv'])
  })

  test.each([
    ['a file', 'old'],
    ['nothing yet', undefined],
  ])('writes through a link that leads to %s', async (_, old) => {
    await plant(fern)
    const target = join(temporaryFolder(), 'target')
    if (old !== undefined) writeFileSync(target, old)
    symlinkSync(target, join(folder, 'link.csv'))
    expect((await plants(['export', '--out', 'link.csv'])).code).toBe(0)
    expect(lstatSync(join(folder, 'link.csv')).isSymbolicLink()).toBe(true)
    expect(readFileSync(target, 'utf8')).toBe('id,name,tag\n1,Fern,shade\n')
  })

  test('writes to a device as it is', async () => {
    await plant(fern)
    expect((await plants(['export', '--out', '/dev/null'])).out).toBe('{"file":"/dev/null","plants":1,"bytes":37}\n')
    expect(lstatSync('/dev/null').isCharacterDevice()).toBe(true)
  })

  test.skipIf(process.platform === 'win32')('can be interrupted while a pipe has no reader', async () => {
    await plant(fern)
    expect(spawnSync('mkfifo', [join(folder, 'pipe')]).status).toBe(0)
    const stop = new AbortController()
    const run = plants(['export', '--out', 'pipe'], { signal: stop.signal })
    stop.abort(new PlantsError('interrupted', 'Interrupted'))
    expect(await run).toEqual({ code: 130, out: '', err: 'plants: Interrupted\n' })
  })

  test.runIf(existsSync('/dev/full'))('says so when there is no space', async () => {
    await plant(fern)
    for (const out of ['/dev/full', 'full.csv.gz']) {
      if (out !== '/dev/full') symlinkSync('/dev/full', join(folder, out))
      const path = out === '/dev/full' ? out : join(folder, out)
      const err = `plants: ${path} could not be written: no space left on the disk\n  Free some space, or choose another file with --out FILE\n`
      expect(await plants(['export', '--out', out])).toEqual({ code: 74, out: '', err })
    }
  })

  test.each([
    ['.', 'it is a directory'],
    ['none/out.csv', 'there is no such directory'],
    ['plants.db/out.csv', 'a part of its path is not a directory'],
    [`${'x'.repeat(300)}`, 'its name is too long'],
  ])('says why %j could not be written', async (out, why) => {
    await plant(fern)
    const path = join(folder, out).replace(/\/$/, '')
    const err = `plants: ${path} could not be written: ${why}\n  Choose another file with --out FILE\n`
    expect(await plants(['export', '--out', out])).toEqual({ code: 74, out: '', err })
  })

  test.each(['plants.db', 'plants.db-wal', 'plants.db-journal', './x/../plants.db', 'link', 'here/plants.db-shm'])(
    'rejects the store itself: %s',
    async (out) => {
      await plant(fern)
      symlinkSync(store, join(folder, 'link'))
      symlinkSync('.', join(folder, 'here'))
      const err = `plants: ${join(folder, out)} is the store itself\n  Choose another file with --out FILE\n`
      expect(await plants(['export', '--out', out])).toEqual({ code: 2, out: '', err })
      expect((await plants(['get', '1'])).code).toBe(0)
    },
  )

  test('leaves an old file as it was when there is no store', async () => {
    writeFileSync(join(folder, 'old.csv'), 'old')
    const err = `plants: There is no store at ${store}\n  Check the address. plants create creates a missing store\n`
    expect(await plants(['export', '--out', 'old.csv'])).toEqual({ code: 4, out: '', err })
    expect(read('old.csv')).toBe('old')
  })

  test('is empty where the default store is missing, as a list is, but replaces no file', async () => {
    const data = join(folder, 'data')
    const run = (...argv: string[]) => runPlants(argv, { cwd: folder, env: { PLANTS_DATA_DIR: data } })
    const err = `plants: There is no store at ${data}/plants.db yet: plants create creates it\n`
    expect(await run('export', '--output', 'csv')).toEqual({ code: 0, out: 'id,name,tag\n', err })
    expect(await run('export')).toEqual(await run('list'))
    const out = `{"file":"${folder}/new.json","plants":0,"bytes":4}\n`
    expect(await run('export', '--out', 'new.json')).toEqual({ code: 0, out, err })
    expect(read('new.json')).toBe('[\n]\n')
    const message = `There is no store at ${data}/plants.db yet, and an empty export would replace new.json`
    const rejected = { code: 4, out: '', err: `plants: ${message}\n  List the stores with: plants stores list\n` }
    expect(await run('export', '--out', 'new.json')).toEqual(rejected)
    expect((await run('export', '--out', '/dev/null', '--output', 'csv')).code).toBe(0)
  })
})

test.each([
  [['--output', 'xml'], '--output must be one of ndjson, json, csv, tsv, but was "xml"\n  See: plants help formats\n'],
  [['--out', ''], '--out is empty\n  Give it a value, or leave it out\n'],
  [
    ['--limit', '0'],
    '--limit must be a whole number from 1 to 9007199254740991, but was "0"\n  For example: --limit 10\n',
  ],
])('export rejects %j', async (flags, err) => {
  await plant(fern)
  expect(await plants(['export', ...flags])).toEqual({ code: 2, out: '', err: `plants: ${err}` })
})

/** Rows of cells, of which an empty one without quotes is none. */
function parseCells(text: string, delimiter: string): unknown[] {
  const cast = (value: string, { quoting }: { quoting: boolean }) => (value === '' && !quoting ? undefined : value)
  const [header, ...rows] = parse(text, { delimiter, cast, record_delimiter: '\n' }) as (string | undefined)[][]
  expect(header).toEqual(['id', 'name', 'tag'])
  return rows.map(([id = '', name, tag]) => ({ id: BigInt(id), name, ...(tag === undefined ? {} : { tag }) }))
}

/** Well-formed texts without U+0000, many of them with what means something to a format. */
function text(): fc.Arbitrary<string> {
  const special = '\u0001\b\t\n\f\r\u001b\u007f\u0085\u2028\u2029\u202e\ufeff\uffff\u{1f331}"\'\\,;/ '
  const anyText = fc.string({ unit: 'binary', size: 'medium' }).map((characters) => characters.replaceAll('\0', ''))
  return fc.oneof(anyText, fc.string({ unit: fc.constantFrom(...special) }), fc.constant(''))
}
