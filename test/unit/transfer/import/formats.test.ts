import * as zlib from 'node:zlib'
import { beforeEach, expect, test } from 'vitest'
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

/** The same plants, written in many ways. */
const ways: Record<string, string> = {
  NDJSON: all.join('\n'),
  'a JSON array over many lines': `[\n  ${all.join('\n  ,\n').replaceAll(/,"(name|tag)":/g, ',\n    "$1" : ')}\n]`,
  'values without spaces': all.join(''),
  'values over many lines': all
    .join('\n')
    .replaceAll('{"', '{\n  "')
    .replaceAll(/,"(name|tag)":/g, ',\n  "$1": '),
  'CSV in another order':
    'tag,id,name\n"",-9223372036854775808,""\nshade,1,Fern\n,2,"a, ""b""\tc"\n}],3,"two\r\nlines"\n,9007199254740993,\u5171\u{1f331}\n',
  TSV: 'id\tname\ttag\n-9223372036854775808\t""\t""\n1\tFern\tshade\n2\t"a, ""b""\tc"\t\n3\t"two\r\nlines"\t}]\n9007199254740993\t\u5171\u{1f331}\t',
}

test.each(Object.entries(ways))('imports %s', async (_, text) => {
  expect(await user.import(user.write('plants', text))).toEqual({ code: 0, created: 5, err: '' })
  expect(await user.list()).toBe(all.map((line) => `${line}\n`).join(''))
  const withReturns = text.replaceAll(/\r?\n/g, '\r\n')
  for (const same of [`\ufeff${text}`, zlib.gzipSync(text), withReturns])
    expect(await user.import('--if-exists same', same)).toEqual({ code: 0, skipped: 5, err: '' })
})

test('imports files of several formats', async () => {
  const files = Object.values(ways).map((text, index) => user.write(`plants-${index}`, text))
  const skipped = 5 * (files.length - 1)
  expect(await user.import([...files, '--if-exists=same'])).toEqual({ code: 0, created: 5, skipped, err: '' })
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
])('rejected records of %s have their lines, and can be corrected', async (_, text, correct, places, kept) => {
  user.write('plants', text)
  const { err } = await user.import('plants --rejects bad')
  expect(user.reasons('bad').map(({ line, error }) => `${line}:${error}`)).toEqual(places)
  if (kept !== undefined) expect(user.read('bad')).toBe(kept)
  user.write('bad', correct(user.read('bad')))
  expect(await user.follow(err)).toMatchObject({ code: 0, err: '' })
  expect(await user.list()).toBe([...'ABCDE'].map((name, index) => plant(index + 1, name)).join(''))
})

test.each<[string, string | Buffer, string | Buffer]>([
  ['headers', 'id,name,tag\nx,A,B\n', 'name,id\nC,y\n'],
  ['delimiters', 'id;name\nx;A\n', 'id,name\nx,A\n'],
  ['encodings', 'id;name\nx;A\n', Buffer.from('\ufeffid;name\nx;A\n', 'utf16le')],
  ['formats, a table first', 'id,name,tag\nx,A,B\n', '{"id":"y","name":"C"}\n'],
  ['formats, a table last', '{"id":"x","name":"A","tag":"B"}\n', 'name,id\nC,y\n'],
])('rejected records of inputs with several %s are not kept in one file', async (_, one, other) => {
  user.write('one', one)
  user.write('other', other)
  const differs = 'The format, header or encoding of other differs, so its rejected records cannot be in the same file'
  const err = expect.stringContaining(`plants: ${differs}\n  Convert it, or import it alone`)
  expect(await user.import('one other --rejects bad')).toMatchObject({ code: 2, err })
})

test.each([
  ['CSV', 'id,name\n1,A\n'],
  ['NDJSON', plant(1, 'A')],
  ['a JSON array', `[${plant(1, 'A')}]`],
])('UTF-16 is decoded: %s', async (_, text) => {
  const little = Buffer.from(`\ufeff${text}`, 'utf16le')
  for (const stdin of [little, Buffer.from(little).swap16()]) {
    expect(await user.import('--if-exists same', stdin)).toMatchObject({ code: 0, err: '' })
    expect(await user.import('--if-exists same --encoding utf-16', stdin)).toMatchObject({ code: 0, err: '' })
    const { err } = await user.import('--if-exists same', stdin.subarray(2))
    const [, flag = ''] = /again with: (.*)\n/.exec(err) ?? []
    expect(await user.import(`--if-exists same ${flag}`, stdin.subarray(2))).toMatchObject({ code: 0, skipped: 1 })
  }
  expect(await user.list()).toBe(plant(1, 'A'))
})
