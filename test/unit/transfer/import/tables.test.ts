import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Importing, imported, lines, summary } from '../../../helpers/importing.js'

type Encode = (text: string) => Buffer
const encodings: [name: string, flags: string[], encode: Encode][] = [
  ['UTF-8 with a mark', [], (text) => Buffer.from(`\ufeff${text}`)],
  ['UTF-16', [], (text) => Buffer.from(`\ufeff${text}`, 'utf16le')],
  ['UTF-16 from the other end', [], (text) => Buffer.from(`\ufeff${text}`, 'utf16le').swap16()],
  ['UTF-16 without a mark', ['--encoding', 'utf-16be'], (text) => Buffer.from(text, 'utf16le').swap16()],
  ['Latin 1, which is not named', [], (text) => Buffer.from(text, 'latin1')],
  ['Latin 1', ['--encoding', 'latin1'], (text) => Buffer.from(text, 'latin1')],
]

/** The words of a command line, which may be in single quotes. */
function wordsOf(command: string): string[] {
  return Array.from(command.matchAll(/'([^']*)'|(\S+)/g), ([, quoted, bare]) => quoted ?? bare ?? '')
}

describe.each(encodings)('a table in %s', (_, flags, encode) => {
  const rows = ['1;Bärlauch;Blüte', 'x;Fern;', '3;"Moos\nund Gras"', '4;Ü;;;é', '5;Ähre']
  const table = (some: string[], header = 'id;name;tag') => [header, ...some, ''].join('\r\n')

  test('keeps its rejected rows as they came, and the command of the hint imports them when they are fixed', async () => {
    const user = new Importing()
    user.write('plants', encode(table(rows, 'sep=;\r\nid;name;tag')))
    const argv = ['plants', ...flags, '--rejects', 'bad']
    const { code, summary: told, err } = await user.import(argv)
    expect({ code, told }).toMatchObject({ code: 6, told: { created: 3, rejected: 2 } })
    expect(user.bytes('bad')).toEqual(encode(table([rows[1] ?? '', rows[3] ?? ''], 'sep=;\r\nid;name;tag')))
    user.write('bad', encode(table(['2;Fern;', '4;Ü'], 'sep=;\r\nid;name;tag')))
    const [, command = ''] = /then: plants (.*)\n/.exec(err) ?? []
    expect(await user.run(wordsOf(command))).toMatchObject({ code: 0, err: '' })
    expect(lines(await user.list())).toEqual([
      '{"id":1,"name":"Bärlauch","tag":"Blüte"}',
      '{"id":2,"name":"Fern"}',
      '{"id":3,"name":"Moos\\nund Gras"}',
      '{"id":4,"name":"Ü"}',
      '{"id":5,"name":"Ähre"}',
    ])
  })

  test('is resumed where it stopped', async () => {
    const user = new Importing()
    const many = Array.from({ length: 20_000 }, (__, id) => `${id + 10};Bärlauch ${id}`)
    user.write('plants', encode(table([...many, ...rows])))
    const argv = ['plants', ...flags, '--max-errors', '1']
    expect(await user.import(argv)).toMatchObject({ code: 6, summary: { created: 20_001, rejected: 1 } })
    user.write('plants', encode(table([...many, ...rows.slice(0, 2), '3;é'])))
    expect(await user.import(argv)).toMatchObject({ code: 6, summary: { created: 20_002, rejected: 1 } })
    expect(lines(await user.list()).slice(0, 3)).toEqual([
      '{"id":1,"name":"Bärlauch","tag":"Blüte"}',
      '{"id":3,"name":"é"}',
      '{"id":10,"name":"Bärlauch 0"}',
    ])
  })
})

test.each([[''], ['{"id":1,"name":"A"}\n'], ['[{"id":1,"name":"A"}]']])(
  'UTF-16 is decoded, whatever it holds: %j',
  async (text) => {
    const user = new Importing()
    const err = text === '' ? 'plants: warning: stdin contains no records\n' : ''
    for (const stdin of [Buffer.from(`\ufeff${text}`, 'utf16le'), Buffer.from(`\ufeff${text}`, 'utf16le').swap16()])
      expect(await user.import(['--if-exists', 'same'], { stdin })).toMatchObject({ code: 0, err })
    expect(await user.list()).toBe(text === '' ? '' : '{"id":1,"name":"A"}\n')
  },
)

test.each([
  ['latin1', 'Caf\xe9 \x80', 'Café €'],
  ['cp1252', 'Caf\xe9', 'Café'],
  ['ISO-8859-1', 'Caf\xe9', 'Café'],
  ['utf8', 'Caf\xc3\xa9', 'Café'],
  ['iso-8859-2', 'L\xedpa \xb9', 'Lípa š'],
  ['macintosh', 'Caf\x8e', 'Café'],
  ['koi8-r', '\xc4\xd5\xc2', 'дуб'],
  ['sjis', '\x83\x56\x83\x5f', 'シダ'],
])(
  'a table is read with --encoding %s, and the command of the hint imports its rejected rows',
  async (label, bytes, name) => {
    const user = new Importing()
    user.write('plants', Buffer.from(`id,name\r\n1,${bytes}\r\nx,${bytes}\r\n`, 'latin1'))
    const { code, err } = await user.import(['plants', '--encoding', label, '--rejects', 'bad'])
    expect({ code, list: await user.list() }).toEqual({ code: 6, list: `{"id":1,"name":"${name}"}\n` })
    const kept = label === 'sjis' ? Buffer.from(name) : Buffer.from(bytes, 'latin1') // the runtime cannot encode it
    expect(user.bytes('bad')).toEqual(Buffer.concat([Buffer.from('id,name\r\nx,'), kept, Buffer.from('\r\n')]))
    user.write('bad', Buffer.from(user.bytes('bad').toString('latin1').replace('x', '2'), 'latin1'))
    const [, command = ''] = /then: plants (.*)\n/.exec(err) ?? []
    expect(await user.run(wordsOf(command))).toMatchObject({ code: 0, err: '' })
    expect(await user.list()).toBe(`{"id":1,"name":"${name}"}\n{"id":2,"name":"${name}"}\n`)
  },
)

test('a table with a byte order mark of UTF-8 is read as UTF-8, and its other rows are rejected', async () => {
  const user = new Importing()
  const stdin = Buffer.from('\xef\xbb\xbfid,name\n1,Fern\n2,Caf\xe9\n', 'latin1')
  expect(await user.import([], { stdin })).toMatchObject({ code: 6, summary: { created: 1, reasons: { 400: 1 } } })
})

test('--encoding utf-16 goes by the byte order mark', async () => {
  for (const swap of [false, true]) {
    const user = new Importing()
    const bytes = Buffer.from('\ufeffid,name\n1,Fern\n', 'utf16le')
    expect(await user.import(['--encoding', 'utf-16'], { stdin: swap ? bytes.swap16() : bytes })).toEqual(
      imported({ created: 1 }),
    )
  }
})

test('an unknown --encoding is answered with a few names', async () => {
  const user = new Importing()
  const { code, err } = await user.import(['--encoding', 'latin-9'], { stdin: 'id,name\n' })
  const message =
    '--encoding must be an encoding such as utf-8, utf-16le, windows-1252, iso-8859-2, shift_jis, but was "latin-9"'
  const hint = 'Its names are at https://encoding.spec.whatwg.org/#names-and-labels'
  expect({ code, err }).toEqual({ code: 2, err: `plants: ${message}\n  ${hint}\n` })
})

describe('an input that another program converts is named, with the command:', () => {
  const table = 'id,name\n1,Fern\n'
  const utf32 = (text: string) =>
    Buffer.concat(Array.from(text, (one) => Buffer.from([one.charCodeAt(0) & 0xff, one.charCodeAt(0) >> 8, 0, 0])))
  const swapped = (text: string) => utf32(text).swap32()

  test.each<[string, Buffer, string, string]>([
    ['UTF-32 with a mark', utf32(`\ufeff${table}`), 'is UTF-32', 'iconv -f UTF-32LE -t UTF-8'],
    ['UTF-32', utf32(table), 'is UTF-32', 'iconv -f UTF-32LE -t UTF-8'],
    ['UTF-32 from the other end, with a mark', swapped(`\ufeff${table}`), 'is UTF-32', 'iconv -f UTF-32BE -t UTF-8'],
    ['UTF-32 from the other end', swapped(table), 'is UTF-32', 'iconv -f UTF-32BE -t UTF-8'],
    ['xz', Buffer.from('fd377a585a000004e6d6b446', 'hex'), 'is compressed with xz', 'xz -dc'],
    ['bzip2', Buffer.from('425a6839314159265359aabb', 'hex'), 'is compressed with bzip2', 'bzip2 -dc'],
  ])('%s', async (_, bytes, what, command) => {
    const user = new Importing()
    user.write('plants', bytes)
    const { code, err } = await user.import(['plants', '--if-exists', 'same'])
    const hint = `Instead, import the output of: ${command} plants`
    expect({ code, err }).toEqual({ code: 2, err: `plants: plants ${what}, which plants does not read\n  ${hint}\n` })
    expect((await user.import([], { stdin: bytes })).err).toContain(`\n  Instead, import the output of: ${command}\n`)
  })
})

test.each([
  ['half of a surrogate pair', Buffer.from('\ufeffid,name\n1,\ud800x\n', 'utf16le')],
  ['half of a character', Buffer.from('\ufeffid,name\n1,x\n', 'utf16le').subarray(0, -1)],
])('UTF-16 with %s is rejected, and nothing is created', async (_, stdin) => {
  const user = new Importing()
  expect(await user.import([], { stdin })).toEqual({
    code: 2,
    summary: undefined,
    err: 'plants: stdin is not utf-16le\n  Set its encoding with --encoding, such as utf-8, utf-16le, windows-1252, iso-8859-2, shift_jis\n',
  })
  expect(await user.list()).toBe('')
})

test('rejected rows of files in several encodings, or with several delimiters, are not kept in one', async () => {
  const user = new Importing()
  user.write('one', 'x;Fern\n')
  user.write('two', 'x,Fern\n')
  user.write('three', Buffer.from('\ufeffx;Fern\n', 'utf16le'))
  for (const other of ['two', 'three']) {
    const { code, err } = await user.import(['one', other, '--columns', 'id,name', '--rejects', `bad-${other}`])
    const what = `The format, header or encoding of ${other} differs, so its rejected records cannot be in the same file`
    expect({ code, err }).toMatchObject({
      code: 2,
      err: expect.stringContaining(`plants: ${what}\n  Convert it, or import it alone`),
    })
  }
})

test.each([
  ['--columns', ['--columns', 'name,,id'], 'Fern,x,1\nMoss,,2\n'],
  ['--columns and --map', ['--columns', 'No,Plant', '--map', 'id=No,name=Plant'], '1\tFern\n2\tMoss\n'],
  ['--delimiter', ['--delimiter', '/'], 'id/name\n1/Fern\n2/Moss\n'],
  ['--delimiter tab', ['--delimiter', 'tab'], 'id\tname\n1\tFern\n2\tMoss\n'],
  ['--columns and --delimiter', ['--columns', 'id,name', '--delimiter', ' '], '1 Fern\n2 Moss\n'],
  ['--map id=, which numbers the plants', ['--map', 'id=', '--id-from', '1'], 'ID,Name\nA-1,Fern\n,Moss\n'],
  ['--map of names in other case', ['--map', 'id=nO,name=Common name'], 'No, common Name \n1,Fern\n2,Moss\n'],
])('%s', async (_, flags, stdin) => {
  const user = new Importing()
  expect(await user.import(flags, { stdin })).toEqual(imported({ created: 2 }))
  expect(await user.list()).toBe('{"id":1,"name":"Fern"}\n{"id":2,"name":"Moss"}\n')
})

test('--map id= leaves the id of JSON, too', async () => {
  const user = new Importing()
  const stdin = '{"id":"A-1","name":"Fern"}\n'
  expect(await user.import(['--map', 'id=', '--id-from', '7'], { stdin })).toEqual(imported({ created: 1 }))
  expect(await user.list()).toBe('{"id":7,"name":"Fern"}\n')
})

test.each([
  ['a line without an end, just below the limit of a record', ','.repeat(1_040_000)],
  ['a quote that is not closed', `"${'\n'.repeat(1_040_000)}`],
])('a file that is only %s is an error at once, and nothing is created', async (_, content) => {
  const user = new Importing()
  user.write('plants.csv', content)
  const { code, summary: told, err } = await user.import(['plants.csv'])
  expect({ code, told, isHeader: err.startsWith('plants: plants.csv: The header ') }).toEqual({
    code: 2,
    told: undefined,
    isHeader: true,
  })
  expect(user.has('plants.db')).toBe(false)
})

test('a header may have many more columns than its rows', async () => {
  const user = new Importing()
  const header = `id,name,${Array.from({ length: 140_000 }, (_, index) => `c${index}`).join()}`
  user.write('plants.csv', `${header}\n${Array.from({ length: 100_000 }, (_, id) => `${id},x\n`).join('')}`)
  expect(await user.import(['plants.csv'])).toEqual(imported({ created: 100_000 }))
})

test('rejected rows of a table with CR are kept as they came', async () => {
  const user = new Importing()
  user.write('plants', 'id,name\rx,Fern\r2,Oak\ry,"Moss"\rz,Ivy')
  expect(await user.import(['plants', '--rejects', 'bad'])).toMatchObject({
    code: 6,
    summary: { created: 1, rejected: 3 },
  })
  expect(user.read('bad')).toBe('id,name\rx,Fern\ry,"Moss"\rz,Ivy')
  expect(user.reasons('bad').map(({ line }) => line)).toEqual([2, 4, 5])
})

test('--columns without a column that is needed is rejected', async () => {
  const user = new Importing()
  const { code, err } = await user.import(['--columns', 'name,tag'], { stdin: 'Fern,shade\n' })
  const hint = 'Choose the column with --map id=COLUMN, or number the plants with --id-from next'
  expect({ code, err }).toEqual({
    code: 2,
    err: `plants: stdin: --columns has no column id, only "name", "tag"\n  ${hint}\n`,
  })
})

test('an empty name is missing, unless it is in quotes', async () => {
  const user = new Importing()
  const { summary: told, err } = await user.import([], { stdin: 'id,name,tag\n1,,x\n2,"",x\n3,"",\n' })
  expect(told).toEqual(summary({ created: 2, rejected: 1, reasons: { 422: 1 } }))
  expect(err).toContain('plants: stdin:2: Invalid plant: name must be a string, but is missing\n')
})

test('the hint after rejected plants is the whole command', async () => {
  const user = new Importing()
  user.write('plants.csv', 'No;Common name;Family\n;Fern;x\n;;y\n;Moss;\n')
  const map = 'id=No,name=Common name,tag=Family'
  const flags = [
    '--store',
    './a b.db',
    '--format',
    'csv',
    '--delimiter',
    ';',
    '--map',
    map,
    '--id-from=-5',
    '--if-exists',
    'skip',
  ]
  const { err } = await user.import(['plants.csv', ...flags, '--rejects', 'bad.csv'])
  const bad = `${user.folder}/bad.csv`
  const given = `--store './a b.db' --format csv --delimiter ';' --map '${map}' --id-from=-2 --if-exists skip`
  expect(err).toContain(`  Fix them in ${bad}, then: plants import ${bad} ${given}\n`)
  user.write('bad.csv', user.read('bad.csv').replace(';;', ';Rose;'))
  expect(await user.run(wordsOf(`import ${bad} ${given}`))).toMatchObject({ code: 0 })
  expect((await user.run(['list', '--store', './a b.db'])).out).toBe(
    '{"id":-5,"name":"Fern","tag":"x"}\n{"id":-3,"name":"Moss"}\n{"id":-2,"name":"Rose","tag":"y"}\n',
  )
})

test('the place of an element in a line is its index', async () => {
  const user = new Importing()
  const stdin = '[{"id":1,"name":"A"},{"id":"2"},{"id":1,"name":"C"},5,\n{"id":1,"name":"D"}]'
  const { err } = await user.import(['--output', 'json'], { stdin })
  expect(lines(err).map((line) => [JSON.parse(line).line, JSON.parse(line).element])).toEqual([
    [1, 1],
    [1, 2],
    [1, 3],
    [2, 4],
    [undefined, undefined],
  ])
  const places = lines((await user.import([], { stdin })).err).map((line) => /^plants: (stdin.*?): /.exec(line)?.[1])
  expect(places).toEqual(['stdin[0]', 'stdin[1]', 'stdin[2]', 'stdin[3]', 'stdin:2', undefined, undefined])
})

describe('--max-errors', () => {
  const bad = 'x,Bad\n'
  const row = (id: number) => `${id},Plant\n`
  const ids = async (user: Importing) => lines(await user.list()).map((line) => Number(/-?\d+/.exec(line)?.[0]))

  test.each<[string, number, string[], number[]]>([
    ['invalid records', 2, [row(1), bad, row(2), bad, row(3), bad], [1, 2]],
    ['ids that exist', 2, [row(5), row(1), row(5), row(2), row(5), row(3)], [1, 2, 5]],
    ['both', 3, [row(5), bad, row(5), row(2), '9,"open\n', row(1), bad], [2, 5]],
    ['the first record', 1, [bad, row(1)], []],
  ])('stops at %s, and the same command resumes after it', async (_, count, records, created) => {
    const user = new Importing()
    user.write('plants', `id,name\n${records.join('')}${row(100)}`)
    const flags = ['plants', '--max-errors', `${count}`, '--rejects', 'bad']
    const { summary: told, err } = await user.import(flags)
    expect(told).toMatchObject({ created: created.length, rejected: count })
    expect(err).toContain('rejected, and the import stopped there\n  Run the same command again to resume after them\n')
    expect(await ids(user)).toEqual(created)
    let code = 6
    for (let runs = 0; !(await ids(user)).includes(100) && runs < 9; runs += 1) ({ code } = await user.import(flags))
    expect(code).toBe(6)
    const all = await user.import(['--if-exists', 'same', '--rejects', 'other'], { stdin: user.read('plants') })
    expect(all.summary).toMatchObject({ created: 0 })
    expect(lines(user.read('bad')).length).toBe(1 + records.length + 1 - (await ids(user)).length)
  })

  test.each([['--dry-run'], ['--atomic']])('stops at a record with %s, too', async (flag) => {
    const user = new Importing()
    const stdin = `id,name\n${row(1)}${row(1)}${bad}${row(2)}${bad}${row(3)}`
    const { summary: told } = await user.import([flag, '--max-errors', '2'], { stdin })
    expect(told).toMatchObject({ rejected: 2, reasons: { 409: 1, 422: 1 } })
  })
})

test.each(['', 'a', 'ab'])(
  'a record that is too large is not in the rejects file, wherever it was cut: %j',
  async (begin) => {
    const user = new Importing()
    const large = ['1', begin + '蕨'.repeat(3_000_000), '']
    const table = Buffer.from(['\ufeffid;name;tag', large.join(';'), 'x;Moss;', '3;Fern;', ''].join('\r\n'), 'utf16le')
    user.write('plants', table)
    const { code, summary: told } = await user.import(['plants', '--rejects', 'bad'])
    expect({ code, told }).toMatchObject({ code: 6, told: { created: 1, rejected: 2 } })
    const expected = Buffer.from(['\ufeffid;name;tag', 'x;Moss;', ''].join('\r\n'), 'utf16le')
    expect(user.bytes('bad').equals(expected)).toBe(true)
  },
)

test('a table that is taken for windows-1252 ends where it is UTF-8', async () => {
  const rows = Array.from({ length: 200_000 }, (_, index) => `${index + 10},plain\n`).join('')
  const user = new Importing()
  writeFileSync(
    join(user.folder, 'mixed.csv'),
    Buffer.concat([Buffer.from('id,name\n1,Caf\xe9\n', 'latin1'), Buffer.from(`${rows}2,Zürich\n`)]),
  )
  const { code, err } = await user.import(['mixed.csv'])
  expect(code).toBe(2)
  expect(err).toContain('plants: mixed.csv is not UTF-8 at first, but is later\n')
  expect(await user.list()).not.toContain('rich')
})
