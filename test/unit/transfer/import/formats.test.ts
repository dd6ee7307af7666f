import * as zlib from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import { Importer, plant } from '../../../helpers/imports.js'

let user: Importer

beforeEach(() => {
  user = new Importer()
})

const all = [
  plant('-9223372036854775808', '', ''),
  plant(1, 'Fern', 'shade'),
  plant(2, 'a, "b"\tc'),
  plant(3, 'two\r\nlines', '}]'),
  plant('9007199254740993', '\u5171\u{1f331}'),
].map((line) => line.trimEnd())

const ways: Record<string, string> = {
  NDJSON: all.join('\n'),
  'a JSON array over many lines': `[\n  ${all.join('\n  ,\n').replaceAll(/,"(name|tag)":/g, ',\n    "$1" : ')}\n]`,
  'values over many lines': all
    .join('\n')
    .replaceAll('{"', '{\n  "')
    .replaceAll(/,"(name|tag)":/g, ',\n  "$1": '),
  'CSV in another order':
    'tag,id,name\n"",-9223372036854775808,""\nshade,1,Fern\n,2,"a, ""b""\tc"\n}],3,"two\r\nlines"\n,9007199254740993,\u5171\u{1f331}\n',
}

test.each(Object.entries(ways))('imports %s, and with a mark, packed and with CRLF', async (_, text) => {
  const same = [text, `\ufeff${text}`, zlib.gzipSync(text), text.replaceAll(/\r?\n/g, '\r\n')]
  const files = ['first', 'marked', 'packed', 'returns'].map((name, index) => user.write(name, same[index] ?? ''))
  const other = user.write('other', all.join('\n'))
  const counts = { created: 5, skipped: 20 }
  expect(await user.import([...files, other, '--if-exists=same'])).toEqual({ code: 0, ...counts, err: '' })
  expect(await user.list()).toBe(all.map((line) => `${line}\n`).join(''))
})

test.each<[string, string, (text: string) => string, string[], string?]>([
  [
    'CSV',
    'id,name\n1,A\nx,B\n3,C,D\n4,D\n5\n',
    (text) => text.replace('x', '2').replace(',D', '').replace(/5$/m, '5,E'),
    ['3:422', '4:400', '6:422'],
    'id,name\nx,B\n3,C,D\n5\n',
  ],
  [
    'CSV with CR',
    'id,name\r1,A\r2,B\rx,C\r4,D\ry,"E"',
    (text) => text.replace('x', '3').replace('y', '5'),
    ['4:422', '6:422'],
    'id,name\rx,C\ry,"E"',
  ],
  [
    'a JSON array',
    '[{"id":1,"name":"A"},\n {"id":"2","name":"B"}, {"id":3,"nmae":"C"},\n {"id":4,"name":"D"},\n\n {"name":\n"E"}]',
    (text) => text.replace('"2"', '2').replace('nmae', 'name').replace('{"name', '{"id":5,"name'),
    ['2:422', '2:422', '5:422'],
  ],
  [
    'values over many lines',
    '{\n"id":1,"name":"A"}\n{\n"id":"2",\n"name":"B"}\n{"id":4,"name":"D"}{"id":3\n}\n{"id":5,"name":"E"}',
    (text) => text.replace('"2"', '2').replace('"id":3', '"id":3,"name":"C"'),
    ['3:422', '6:422'],
  ],
])('rejected records of %s can be corrected', async (_, text, correct, places, kept) => {
  user.write('plants', text)
  const { err } = await user.import('plants --rejects bad')
  expect(user.reasons('bad').map(({ line, error }) => `${line}:${error}`)).toEqual(places)
  if (kept !== undefined) expect(user.read('bad')).toBe(kept)
  user.write('bad', correct(user.read('bad')))
  expect(await user.follow(err)).toMatchObject({ code: 0, err: '' })
  expect(await user.list()).toBe([...'ABCDE'].map((name, index) => plant(index + 1, name)).join(''))
})

test.each<[string, string | Buffer]>([
  ['headers', 'name,id\nC,y\n'],
  ['encodings', Buffer.from('\ufeffid,name\nx,A\n', 'utf16le')],
  ['formats', '{"id":"y","name":"C"}\n'],
])('inputs with several %s have no common rejects file', async (_, other) => {
  user.write('one', 'id,name\nx,A\n')
  user.write('other', other)
  const differs = 'The format, header or encoding of other differs, so its rejected records cannot be in the same file'
  const err = expect.stringContaining(`plants: ${differs}\n  Convert it, or import it alone`)
  expect(await user.import('one other --rejects bad')).toMatchObject({ code: 2, err })
})

test.each([plant(1, 'A'), `[${plant(1, 'A')}]`])('JSON in UTF-16 is decoded: %j', async (text) => {
  const little = utf16(`\ufeff${text}`)
  for (const stdin of [little, Buffer.from(little).swap16()]) {
    for (const flags of ['', ' --encoding utf-16'])
      expect(await user.import(`--if-exists same${flags}`, stdin)).toMatchObject({ code: 0, err: '' })
    const { err } = await user.import('', stdin.subarray(2))
    const [, flag = ''] = /again with: (.*)\n/.exec(err) ?? []
    expect(await user.import(`--if-exists same ${flag}`, stdin.subarray(2))).toMatchObject({ code: 0, skipped: 1 })
  }
  expect(await user.list()).toBe(plant(1, 'A'))
})

const utf16 = (text: string) => Buffer.from(text, 'utf16le')
const latin1 = (text: string) => Buffer.from(text, 'latin1')

test.each<[string, string, (text: string) => Buffer]>([
  ['UTF-8 with a mark', '', (text) => Buffer.from(`\ufeff${text}`)],
  ['UTF-16', '', (text) => utf16(`\ufeff${text}`)],
  ['big-endian UTF-16 without a mark', '--encoding utf-16be', (text) => utf16(text).swap16()],
  ['Latin 1 that is not named', '', latin1],
])('a table in %s is resumed, with its rejected rows as they came', async (_, flags, encode) => {
  const table = (rows: string[], write = encode) => write(['sep=;', 'id;name;tag', ...rows, ''].join('\r\n'))
  const many = Array.from({ length: 7000 }, (__, id) => `${id + 10};Bärlauch ${id}`)
  const rows = ['1;Bärlauch;Blüte', 'x;Fern;', '3;"Moos\nund Gras"', '4;Ü;;;é', '5;Ähre']
  user.write('plants', table([...many, ...rows]))
  const args = `plants ${flags} --max-errors 1 --rejects bad`
  for (const created of [7001, 7002]) expect(await user.import(args)).toMatchObject({ created, rejected: { 422: 1 } })
  const done = await user.import(args)
  expect(done).toMatchObject({ code: 6, created: 7003, rejected: { 400: 1, 422: 1 } })
  expect(user.bytes('bad')).toEqual(table([rows[1] ?? '', rows[3] ?? '']))
  user.write('bad', table(['2;Fern;', '4;Ü'], encode === latin1 ? Buffer.from : encode)) // as an editor may save it
  expect(await user.follow(done.err)).toMatchObject({ code: 0, err: '' })
  const texts = [plant(1, 'Bärlauch', 'Blüte'), plant(2, 'Fern'), plant(3, 'Moos\nund Gras'), plant(4, 'Ü')]
  expect((await user.list()).startsWith([...texts, plant(5, 'Ähre'), plant(10, 'Bärlauch 0')].join(''))).toBe(true)
})

test.each([
  ['latin1', 'Caf\xe9 \x80', 'Café €'],
  ['iso-8859-2', 'L\xedpa \xb9', 'Lípa š'],
  ['sjis', '\x83\x56\x83\x5f', 'シダ'],
])('--encoding %s, also of rejected rows', async (label, text, name) => {
  user.write('plants', latin1(`id,name\r\n1,${text}\r\nx,${text}\r\n`))
  const { err } = await user.import(`plants --encoding ${label} --rejects bad`)
  const kept = label === 'sjis' ? Buffer.from(name) : latin1(text) // the runtime cannot encode it
  expect(user.bytes('bad')).toEqual(Buffer.concat([latin1('id,name\r\nx,'), kept, latin1('\r\n')]))
  user.write('bad', latin1(user.bytes('bad').toString('latin1').replace('x', '2')))
  expect(await user.follow(err)).toMatchObject({ code: 0, err: '' })
  expect(await user.list()).toBe(plant(1, name) + plant(2, name))
})

test('a byte order mark of UTF-8 excludes other encodings', async () => {
  const stdin = latin1('\xef\xbb\xbfid,name\n1,Fern\n2,Caf\xe9\n')
  expect(await user.import('', stdin)).toMatchObject({ created: 1, rejected: { 400: 1 } })
})

test('a table that is taken for windows-1252 ends where it is UTF-8', async () => {
  const rows = Array.from({ length: 200_000 }, (_, index) => `${index + 10},plain\n`).join('')
  user.write('mixed.csv', Buffer.concat([latin1('id,name\n1,Caf\xe9\n'), Buffer.from(`${rows}2,Zürich\n`)]))
  const message = 'mixed.csv is not UTF-8 at first, but is later\n'
  expect(await user.import('mixed.csv')).toEqual({ code: 2, err: expect.stringContaining(message) })
  expect(await user.list()).not.toContain('rich')
})

test('half of a pair, or of a character, in UTF-16 is rejected', async () => {
  const hint = 'Set its encoding with --encoding, such as utf-8, utf-16le, windows-1252, iso-8859-2, shift_jis'
  for (const stdin of [utf16('\ufeffid,name\n1,\ud800x\n'), utf16('\ufeffid,name\n1,x\n').subarray(0, -1)])
    expect(await user.import('', stdin)).toEqual({ code: 2, err: `plants: stdin is not utf-16le\n  ${hint}\n` })
})

const utf32 = (text: string) => Buffer.from(Uint32Array.from(text, (one) => one.charCodeAt(0)).buffer)

test.each<[string, string, ...Buffer[]]>([
  ['is UTF-32', 'iconv -f UTF-32LE -t UTF-8', utf32('\ufeffid,name\n'), utf32('id,name\n')],
  ['is UTF-32', 'iconv -f UTF-32BE -t UTF-8', utf32('\ufeffid,name\n').swap32(), utf32('id,name\n').swap32()],
  ['is compressed with xz', 'xz -dc', Buffer.from('fd377a585a000004e6d6b446', 'hex')],
  ['is compressed with bzip2', 'bzip2 -dc', Buffer.from('425a6839314159265359aabb', 'hex')],
])('an input that %s is converted with %s', async (what, command, ...inputs) => {
  for (const bytes of inputs) {
    user.write('plants', bytes)
    const hint = `Instead, import the output of: ${command}`
    const err = `plants: plants ${what}, which plants does not read\n  ${hint} plants\n`
    expect(await user.import('plants')).toEqual({ code: 2, err })
    expect((await user.import('', bytes)).err).toContain(`\n  ${hint}\n`)
  }
})

describe('a spreadsheet', () => {
  const quoted = '1;Fern;shade\r\n2;"Bärlauch; wild"'
  const plain = '1,Fern,shade\n2,Bärlauch; wild'
  const note = 'plants: stdin is not UTF-8, and is read as windows-1252. For another encoding: --encoding NAME\n'

  test.each<[string, string | Uint8Array, string?, string?]>([
    ['of a German Excel', `\ufeffID;Name;Tag\r\n${quoted};\r\n`],
    ['of a French Excel, with a line that names the delimiter', `sep=;\r\nid;name;tag\r\n${quoted}\r\n`],
    ['as Unicode text', utf16(`\ufeffid\tname\ttag\r\n${plain.replaceAll(',', '\t')}\t\r\n`)],
    ['in Windows-1252', latin1(`id;name;tag\r\n${quoted};\r\n`), '', note],
    ['with titles', `My plants 2024;;\r\n;;\r\nStand,1 March\r\nid;name;tag\r\n${quoted};\r\n`],
    ['without a header, with --map', `${plain},\r\n`, '--columns No,Plant,x --map id=No,name=Plant,tag=x'],
    [
      'with spaces and a column that is not read',
      '1 Fern x shade\n2 "Bärlauch; wild" y\n',
      '--delimiter ^ --columns id,name,,tag',
    ],
  ])('%s', async (_, content, flags = '', err = '') => {
    const words = flags === '' ? [] : flags.split(' ').map((word) => word.replace('^', ' '))
    expect(await user.import(words, content)).toEqual({ code: 0, created: 2, err })
    expect(await user.list()).toBe(plant(1, 'Fern', 'shade') + plant(2, 'Bärlauch; wild'))
  })
})

test('a line just below the limit of a record is soon found to be no header', async () => {
  user.write('plants.csv', ','.repeat(1_040_000))
  const err = expect.stringMatching('^plants: plants.csv: The header ')
  expect(await user.import('plants.csv')).toEqual({ code: 2, err })
  expect([user.has('data'), user.journals]).toEqual([false, []])
})

test('a header may have many more columns than its rows', async () => {
  const header = `id,name,${Array.from({ length: 140_000 }, (_, index) => `c${index}`).join()}`
  const rows = Array.from({ length: 100_000 }, (_, id) => `${id},x\n`).join('')
  expect(await user.import('', `${header}\n${rows}`)).toEqual({ code: 0, created: 100_000, err: '' })
})

test('the hint after rejected plants is the whole command', async () => {
  user.write('plants.csv', 'No;Common name;Family\n;Fern;x\n;;y\n;Moss;\n')
  const map = 'id=No,name=Common name,tag=Family'
  const flags = ['--store', './a b.db', '--format', 'csv', '--delimiter', ';', '--map', map]
  const { err } = await user.import(['plants.csv', ...flags, '--id-from=-5', '--if-exists=skip', '--rejects=bad.csv'])
  const bad = `${user.home}/bad.csv`
  const given = `--store './a b.db' --format csv --delimiter ';' --map '${map}' --id-from=-2 --if-exists skip`
  expect(err).toContain(`  Fix them in ${bad}, then: plants import ${bad} ${given}\n`)
  user.write('bad.csv', user.read('bad.csv').replace(';;', ';Rose;'))
  expect(await user.follow(err)).toMatchObject({ code: 0 })
  expect((await user.run(['list', '--store', './a b.db'])).out).toBe(
    plant(-5, 'Fern', 'x') + plant(-3, 'Moss') + plant(-2, 'Rose', 'y'),
  )
})

test.each(['', 'a', 'ab'])('a row that is too large is not kept, however it is cut: %j', async (begin) => {
  const table = (...rows: string[]) => utf16(['\ufeffid;name;tag', ...rows, ''].join('\r\n'))
  user.write('plants', table(`1;${begin}${'蕨'.repeat(3_000_000)};`, 'x;Moss;', '3;Fern;'))
  expect(await user.import('plants --rejects bad')).toMatchObject({ created: 1, rejected: { 413: 1, 422: 1 } })
  expect(user.bytes('bad').equals(table('x;Moss;'))).toBe(true)
})
