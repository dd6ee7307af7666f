import * as zlib from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import { Importer, plant } from '../../../helpers/imports.js'

let user: Importer

beforeEach(() => {
  user = new Importer()
})

const all = [
  plant('-9223372036854775808', ' ', '"'),
  plant(1, 'Fern', 'shade'),
  plant(2, 'a, "b"\tc'),
  plant(3, 'two\r\nlines', '}]'),
  plant('9007199254740993', '\u5171\u{1f331}'),
].map((line) => line.trimEnd())

const ways: Record<string, string> = {
  NDJSON: all.join('\n'),
  'a JSON array over many lines': `[\n  ${all.join('\n  ,\n').replaceAll(/,"(name|tag)":/g, ',\n    "$1" : ')}\n]`,
  'CSV in another order':
    'tag,id,name\n"""",-9223372036854775808," "\nshade,1,Fern\n,2,"a, ""b""\tc"\n}],3,"two\r\nlines"\n,9007199254740993,\u5171\u{1f331}\n',
}

test.each(Object.entries(ways))(
  'imports %s, and with a mark, packed and with CRLF',
  async (_, text) => {
    const same = [text, `\ufeff${text}`, zlib.gzipSync(text), text.replaceAll(/\r?\n/g, '\r\n')]
    const files = ['first', 'marked', 'packed', 'returns'].map((name, index) =>
      user.write(name, same[index] ?? ''),
    )
    const other = user.write('other', all.join('\n'))
    const counts = { created: 5, skipped: 20 }
    expect(await user.import([...files, other, '--if-exists=same'])).toEqual({
      code: 0,
      ...counts,
      err: '',
    })
    expect(await user.list()).toBe(all.map((line) => `${line}\n`).join(''))
  },
)

test.each([
  ['headers', 'name,id\nC,y\n'],
  ['formats', '{"id":"y","name":"C"}\n'],
])('inputs with several %s have no common rejects file', async (_, other) => {
  user.write('one', 'id,name\nx,A\n')
  user.write('other', other)
  const differs = 'other has another header, so its rejected records need another file'
  const err = expect.stringContaining(
    `plants: ${differs}\n  Import it alone, with another --rejects\n`,
  )
  expect(await user.run('import one other --rejects bad')).toMatchObject({ code: 2, err })
  expect(user.rejected('bad')).toHaveLength(1)
})

test.each([plant(1, 'A'), `[${plant(1, 'A')}]`])('JSON in UTF-16 is decoded: %j', async (text) => {
  const stdin = utf16(`\ufeff${text}`).swap16()
  expect(await user.import('', stdin)).toEqual({ code: 0, created: 1, err: '' })
  expect(await user.import('', stdin.subarray(2))).toMatchObject({ code: 2 })
  expect(
    await user.import('--if-exists same --encoding utf-16be', stdin.subarray(2)),
  ).toMatchObject({ skipped: 1 })
})

const utf16 = (text: string) => Buffer.from(text, 'utf16le')
const latin1 = (text: string) => Buffer.from(text, 'latin1')

describe('what is not of its encoding late', () => {
  const rows = Array.from({ length: 200_000 }, (_, index) => `${index + 10},plain\n`).join('')
  const table = Buffer.concat([Buffer.from(`id,name\n${rows}`), latin1('2,Caf\xe9\n3,Z\n')])
  const array = latin1(`[{"id":1,"name":"A"},\n{"id":2,"name":"\xe9"}]`)
  const hint =
    '  If it is of an old spreadsheet, look at it with: --encoding windows-1252 --dry-run\n'
  const mistaken = latin1('id,name\n1,\x83\x56\n2,\x83\n')

  test.each<[string, Buffer, string, string?]>([
    ['mixed.csv', table, `mixed.csv is not UTF-8 in line 200002\n${hint}`],
    ['mixed.csv.gz', zlib.gzipSync(table), `mixed.csv.gz is not UTF-8 in line 200002\n${hint}`],
    ['mixed.json', array, `mixed.json is not UTF-8 in line 2\n${hint}`],
    [
      'mixed.csv',
      mistaken,
      'mixed.csv is not shift_jis in line 3\n  Correct that line, or save the file as UTF-8\n',
      '--encoding=shift_jis',
    ],
  ])('is found before anything is stored: %s', async (name, bytes, message, option = '') => {
    user.write('first.csv', 'id,name\n1,a\n')
    user.write(name, bytes)
    for (const flag of ['', '--dry-run'])
      expect(await user.import(`first.csv ${name} ${flag} ${option}`)).toEqual({
        code: 2,
        err: `plants: ${message}`,
      })
    expect([user.has('data'), user.journals]).toEqual([false, []])
  })

  test('ends an import from a pipe, and its chunk is not stored', async () => {
    const { out, ...end } = await user.run('import', { stdin: table })
    expect(end).toEqual({ code: 2, err: `plants: stdin is not UTF-8 in line 200002\n${hint}` })
    const { created } = JSON.parse(out)
    expect(created).toBeGreaterThan(0)
    expect(await user.list()).toBe(
      Array.from({ length: created }, (_, index) => plant(index + 10, 'plain')).join(''),
    )
  })

  test('a character may be split over blocks', async () => {
    const name = '\u{1f331}'.repeat(99)
    const text = Array.from(
      { length: 12_000 },
      (_, id) => `${id},${'x'.repeat(id % 7)}${name}\n`,
    ).join('')
    user.write('long.csv', `id,name\n${text}`)
    expect(await user.import('long.csv')).toEqual({ code: 0, created: 12_000, err: '' })
  })
})

test('a table has its columns and its delimiter where the options say', async () => {
  for (const [flags, content] of [
    [
      ['--columns', 'No,Plant,x', '--map', 'id=No,name=Plant,tag=x'],
      '1,Fern,shade\n2,Bärlauch; wild,\r\n',
    ],
    [['--columns', 'id,name,,tag', '--delimiter', ' '], '1 Fern x shade\n2 "Bärlauch; wild" y\n'],
  ] as const) {
    user = new Importer()
    expect(await user.import(flags, content)).toEqual({ code: 0, created: 2, err: '' })
    expect(await user.list()).toBe(plant(1, 'Fern', 'shade') + plant(2, 'Bärlauch; wild'))
  }
})

test('a header has at most 64 KiB', async () => {
  user.write('plants.csv', ','.repeat(1_040_000))
  const err = 'plants: plants.csv has no row in its first 64 KiB\n  Begin it with its header\n'
  expect(await user.import('plants.csv')).toEqual({ code: 2, err })
  expect([user.has('data'), user.journals]).toEqual([false, []])
})

test('a header may have many more columns than its rows', async () => {
  const header = `id,name,${Array.from({ length: 10_000 }, (_, index) => `c${index}`).join()}`
  const rows = Array.from({ length: 100_000 }, (_, id) => `${id},x\n`).join('')
  expect(await user.import('', `${header}\n${rows}`)).toEqual({
    code: 0,
    created: 100_000,
    err: '',
  })
})

test.each(['', 'a', 'ab'])(
  'a row that is too large ends the import, however it is cut: %j',
  async (begin) => {
    const table = (...rows: string[]) => utf16(['\ufeffid;name;tag', ...rows, ''].join('\r\n'))
    user.write('plants', table('1;Ivy;', `2;${begin}${'蕨'.repeat(3_000_000)};`, '3;Fern;'))
    const why = 'plants:3: The record is larger than 1 MiB (1048576 bytes)'
    const { code, out, err } = await user.run('import plants')
    expect([code, err]).toEqual([2, `plants: ${why}\n  Correct it, and run it again\n`])
    expect(JSON.parse(out)).toMatchObject({ created: 1 })
  },
)

test('a row of which the fields are empty is no record, and one line counts them', async () => {
  const table = 'note,id,name,tag\n,1,Fern,\nsum,,,\n,,,\n,,,x\nend, ,"", \n'
  expect(await user.import('', table)).toMatchObject({
    code: 6,
    created: 1,
    rejected: { 422: 1 },
    err: expect.stringContaining('plants: Rows without an id, a name and a tag: 2, left out\n'),
  })
})
