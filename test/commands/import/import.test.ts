import * as zlib from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import { buildPlantLine, ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { parseObjects } from '../../helpers/sandbox/sandbox.js'

let user: ImportSandbox

beforeEach(() => {
  user = new ImportSandbox()
})

const largest = '9223372036854775807'
const latin1 = (text: string) => Buffer.from(text, 'latin1')

const all = [
  buildPlantLine('-9223372036854775808', ' ', '"'),
  buildPlantLine(1, 'Fern', 'shade'),
  buildPlantLine(2, 'a, "b"\tc'),
  buildPlantLine(3, 'two\r\nlines', '}]'),
  buildPlantLine('9007199254740993', '\u5171\u{1f331}'),
].map((line) => line.trimEnd())
const packedInParts = (text: string) =>
  Buffer.concat([text.slice(0, 50), text.slice(50)].map((part) => zlib.gzipSync(part)))
const listed = all.map((line) => `${line}\n`).join('')

test.each<[string, string]>([
  ['NDJSON', all.join(' \t\r\n\n')],
  [
    'a JSON array over many lines',
    `[\n  ${all.join('\n  ,\n').replaceAll(/,"(name|tag)":/g, ',\n    "$1" : ')}\n]`,
  ],
  [
    'CSV in another order',
    'tag,id,name\n"""",-9223372036854775808," "\nshade,1,Fern\n,2,"a, ""b""\tc"\n}],3,"two\r\nlines"\n,9007199254740993,\u5171\u{1f331}\n',
  ],
])(
  'an import reads %s, and that with a mark, compressed, with CRLF, and from stdin',
  async (_, text) => {
    const same = [text, `\ufeff${text}`, packedInParts(text), text.replaceAll(/\r?\n/g, '\r\n')]
    const files = same.map((content, index) => user.write(`file${index}`, content))
    const counts = { code: 0, created: 5, skipped: 20, err: '' }
    expect(await user.import([...files, '-'], text)).toEqual(counts)
    expect(await user.list()).toBe(listed)
  },
)

describe('an import of damaged gzip', () => {
  const packed = zlib.gzipSync(listed)
  const wrongSum = Buffer.from(packed)
  wrongSum.writeUInt8(0x55, packed.length - 8)

  test.each([
    ['cut to its first bytes', packed.subarray(0, 2)],
    ['with a wrong checksum', wrongSum],
  ])('%s is rejected', async (_, content) => {
    user.write('plants.gz', content)
    const err = expect.stringContaining(' is damaged or incomplete\n')
    for (const name of ['plants.gz', '-'])
      expect(await user.import(name, content)).toEqual({ code: 2, err })
    expect(user.has('data')).toBe(false)
  })

  test('ends the import of a pipe in the middle, which says what is stored', async () => {
    const lines = Array.from({ length: 40_000 }, (_, id) =>
      buildPlantLine(id, `Plant ${id * 7919}`),
    )
    const whole = zlib.gzipSync(lines.join(''))
    const stdin = whole.subarray(0, whole.length * 0.9)
    const { code, out, err } = await user.run('import', { stdin })
    expect([code, err]).toEqual([2, expect.stringContaining('stdin is damaged or incomplete')])
    expect(JSON.parse(out).created).toBe((await user.list()).split('\n').length - 1)
  })
})

describe('an import with a late byte that is not in its encoding', () => {
  const rows = Array.from({ length: 100_000 }, (_, index) => `${index + 10},plain\n`).join('')
  const table = Buffer.concat([Buffer.from(`id,name\n${rows}`), latin1('2,Caf\xe9\n3,Z\n')])
  const err = expect.stringMatching(/ is not UTF-8 \(line \d+\)\n {2}line \d+ in windows-1252: /)

  test.each<[string, Buffer]>([
    ['mixed.csv.gz', zlib.gzipSync(table)],
    ['mixed.json', latin1(`[${buildPlantLine(1)},\n{"id":2,"name":"\xe9"}]`)],
    ['mixed.ndjson', latin1(`${buildPlantLine(1)}{"id":2,"name":"\xe9"}\n`)],
  ])('stores nothing of the file %s', async (name, bytes) => {
    user.write('first.csv', 'id,name\n1,a\n')
    user.write(name, bytes)
    for (const flag of ['', '--by-name'])
      expect(await user.import(`first.csv ${name} ${flag}`)).toEqual({ code: 2, err })
    expect(user.has('data')).toBe(false)
  })

  test('ends at it in a pipe, and does not store its chunk', async () => {
    const { out, ...end } = await user.run('import', { stdin: table })
    expect(end).toEqual({ code: 2, err })
    const { created } = JSON.parse(out)
    expect(created).toBeGreaterThan(0)
    const stored = Array.from({ length: created }, (_, index) =>
      buildPlantLine(index + 10, 'plain'),
    )
    expect(await user.list()).toBe(stored.join(''))
  })
})

test('an import reads a table with the columns and the delimiter that the options name', async () => {
  for (const [flags, content] of [
    ['--columns No,Plant,x --map id=No,name=Plant,tag=x', '1,Fern,shade\n2,Moss; wild,\r\n'],
    ['--columns id,name,,tag --delimiter tab', '1\tFern\tx\tshade\n2\t"Moss; wild"\ty\n'],
  ] as const) {
    user = new ImportSandbox()
    expect(await user.import(flags, content)).toEqual({ code: 0, created: 2, err: '' })
    expect(await user.list()).toBe(
      buildPlantLine(1, 'Fern', 'shade') + buildPlantLine(2, 'Moss; wild'),
    )
  }
})

test('an import rejects a header of more than 64 KiB', async () => {
  const err = expect.stringContaining('stdin has no row in its first 64 KiB')
  for (const text of [','.repeat(1_040_000), `"${'\n,'.repeat(500_000)}`])
    expect(await user.import('', text)).toEqual({ code: 2, err })
  expect(user.has('data')).toBe(false)
})

test('an import skips rows with empty fields, and counts them in one line', async () => {
  const table = 'note,id,name,tag\n,1,Fern,\nsum,,,\n,,,\n,,,x\nend, ,"", \n'
  const err = expect.stringMatching(/^plants: Skipped 2 rows without an id, a name and a tag$/m)
  expect(await user.import('', table)).toEqual({ code: 6, created: 1, rejected: { 422: 1 }, err })
})

test('an import stores each id exactly, also an id of another field', async () => {
  const ids = ['-9223372036854775808', '9007199254740993', '922337203685477580.7e1']
  const stdin = ids.map((id) => `{"nr":${id},"name":"Fern"}\n`).join('')
  expect(await user.import('--map id=nr', stdin)).toEqual({ code: 0, created: 3, err: '' })
  const stored = [...ids.slice(0, 2), largest].map((id) => buildPlantLine(id, 'Fern'))
  expect(await user.list()).toBe(stored.join(''))
})

test.each([
  {
    map: ' name = CommonName , tag = Family ',
    record: '{"id":1,"CommonName":"Fern","Family":"x"}',
  },
  { map: 'name=tag,tag=name', record: '{"id":1,"name":"x","tag":"Fern"}' },
  { map: 'tag=__proto__', record: '{"id":1,"name":"Fern","__proto__":"x"}' },
  { map: 'name=x,tag=x', record: '{"id":1,"x":"Fern"}', tag: 'Fern' },
])('an import with --map $map maps the record $record', async ({ map, record, tag = 'x' }) => {
  expect(await user.import(['--map', map], record)).toEqual({ code: 0, created: 1, err: '' })
  expect(await user.list()).toBe(buildPlantLine(1, 'Fern', tag))
})

describe('an import of records without ids', () => {
  const [a, b, c] = ['A', 'B', 'C'].map((name) => `{"name":"${name}"}\n`)
  const z7 = buildPlantLine(7, 'Z')
  const one = (error: number) => ({ rejected: { [error]: 1 } })
  const onTop = buildPlantLine(3, 'B') + z7 + buildPlantLine(8, 'A') + buildPlantLine(9, 'C')

  test.each<
    [what: string, flags: string, before: string, input: string, counts: object, after: string]
  >([
    [
      'generates ids for new names, and updates others',
      '--by-name --if-exists update',
      z7,
      `${a}{"id":7,"tag":"new"}\n${buildPlantLine(3, 'B')}${c}{"tag":"x"}\n`,
      { created: 3, updated: 1, ...one(422) },
      onTop.replace('"Z"', '"Z","tag":"new"'),
    ],
    [
      'generates ids above all ids of a file, whose plants keep theirs',
      '--by-name plants',
      '',
      'id,name\n,A\n0007,Z\n,C\n3,B\n',
      { created: 4 },
      onTop,
    ],
    [
      'generates ids above those of rejected records, and finds names that are stored',
      '--by-name plants',
      z7,
      'id,name\n,A\n9,\n,Z\n',
      { created: 1, skipped: 1, ...one(422) },
      z7 + buildPlantLine(10, 'A'),
    ],
    [
      'generates ids above all ids of stdin, too',
      '--by-name',
      z7,
      `${buildPlantLine(6, 'B')}${a}${buildPlantLine(8, 'C')}${buildPlantLine(9, 'D')}`,
      { created: 4 },
      buildPlantLine(6, 'B') +
        z7 +
        ['C', 'D', 'A'].map((name, index) => buildPlantLine(index + 8, name)).join(''),
    ],
    [
      'rejects a new name if the store has the largest id',
      '--by-name',
      buildPlantLine(largest, 'B'),
      `${a}${b}`,
      { skipped: 1, ...one(422) },
      buildPlantLine(largest, 'B'),
    ],
  ])('%s: %s', async (_, flags, before, input, counts, after) => {
    if (before !== '') await user.import('', before)
    user.write('plants', input)
    const { err: _err, ...result } = await user.import(flags, input)
    expect(result).toEqual({ code: 'rejected' in counts ? 6 : 0, ...counts })
    expect(await user.list()).toBe(after)
  })

  test.each(['one two', 'two one'])(
    'generates ids above all ids of the files %s',
    async (files) => {
      user.write('one', 'id,name\n7,Z\n,A\n')
      user.write('two', 'id,name\n3,B\n,C\n')
      expect(await user.import(`${files} --by-name`)).toMatchObject({ code: 0, created: 4 })
      const ids = parseObjects(await user.list()).map(({ id }) => id)
      expect(ids).toEqual([3, 7, 8, 9])
    },
  )
})

test('an import examines the files behind a pipe before it stores anything', async () => {
  user.write('names.csv', 'name\nMoss\n')
  const err = expect.stringContaining('names.csv has no column "id"')
  expect(await user.import('- names.csv', 'id,name\n1,Fern\n')).toEqual({ code: 2, err })
  expect(user.has('data')).toBe(false)
})

test.each([
  ['a table whose first column has brackets', '--map id=[no]', '[no],name\n1,Fern\n'],
  ['a title like a line of YAML', '--format csv', '- Stock: spring 2026\nid,name\n1,Fern\n'],
  ['a header like a tag', '--format csv --map id=<id>', '<id>,name\n1,Fern\n'],
])('an import reads %s', async (_, flags, table) => {
  expect(await user.import(flags, table)).toMatchObject({ code: 0, created: 1 })
})

test('the error about an encoding names the line of a file whose rows end with CR', async () => {
  user.write('mac.csv', latin1('id,name\r1,Fern\r2,Moss\r3,Fr\x9fhling\r'))
  const { code, err } = await user.import('mac.csv')
  expect([code, err]).toEqual([2, expect.stringContaining('is not UTF-8 (line 4)')])
  expect(err).toContain('line 4 in macintosh: 3,Frühling')
  expect(await user.import('mac.csv --encoding macintosh')).toMatchObject({ created: 3 })
})

test('an import creates the store if only a later file has a valid record', async () => {
  user.write('one.csv', 'id,name\nx,Fern\n')
  user.write('two.csv', 'id,name\n2,Moss\n')
  expect(await user.import('one.csv two.csv')).toMatchObject({ code: 6, created: 1 })
  expect(await user.list()).toBe(buildPlantLine(2, 'Moss'))
})
