import * as zlib from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import { Importing, imported, lines, summary } from '../../../helpers/importing.js'

let user: Importing

beforeEach(() => {
  user = new Importing()
})

const all = [
  '{"id":-9223372036854775808,"name":"","tag":""}',
  '{"id":1,"name":"Fern","tag":"shade"}',
  '{"id":2,"name":"a, \\"b\\"\\tc"}',
  '{"id":3,"name":"two\\r\\nlines","tag":"}]"}',
  '{"id":9007199254740993,"name":"\u5171\u{1f331}"}',
]
const csv = [
  'id,name,tag\n-9223372036854775808,"",""\n1,Fern,shade\n2,"a, ""b""\tc",\n3,"two\r\nlines",}]\n9007199254740993,\u5171\u{1f331},\n',
  'tag,id,name\n"",-9223372036854775808,""\nshade,1,Fern\n,2,"a, ""b""\tc"\n}],3,"two\r\nlines"\n,9007199254740993,\u5171\u{1f331}\n',
]

/** The same plants, written in many ways. */
const ways: [name: string, text: string][] = [
  ['NDJSON', all.join('\n')],
  ['a JSON array', `[${all.join(',')}]`],
  ['a JSON array, one a line', `[\n${all.join(',\n')}\n]\n`],
  ['a JSON array, over many lines', `[\n  ${all.join('\n  ,\n').replaceAll(/,"(name|tag)":/g, ',\n    "$1" : ')}\n]`],
  ['values one behind another', all.join(' ')],
  ['values one right behind another', all.join('')],
  [
    'values over many lines',
    all
      .join('\n')
      .replaceAll('{"', '{\n  "')
      .replaceAll(/,"(name|tag)":/g, ',\n  "$1": '),
  ],
  ['CSV', csv[0] ?? ''],
  ['CSV in another order', csv[1] ?? ''],
  [
    'TSV',
    'id\tname\ttag\n-9223372036854775808\t""\t""\n1\tFern\tshade\n2\t"a, ""b""\tc"\t\n3\t"two\r\nlines"\t}]\n9007199254740993\t\u5171\u{1f331}\t',
  ],
]

describe('the same plants are imported from', () => {
  test.each(
    ways.flatMap(
      ([name, text]) =>
        [
          [name, text],
          [`${name}, with a byte order mark`, `\ufeff${text}`],
          [`${name}, packed`, zlib.gzipSync(text)],
        ] as const,
    ),
  )('%s', async (_, text) => {
    user.write('plants', text)
    expect(await user.import(['plants'])).toEqual(imported({ created: all.length }))
    expect(lines(await user.list())).toEqual(all)
    expect(await user.import(['--if-exists', 'same'], { stdin: text })).toEqual(imported({ skipped: all.length }))
  })

  test.each(ways.filter(([name]) => !name.includes('many lines')))('%s, with CRLF', async (_, text) => {
    const stdin = text.replaceAll(/\r?\n/g, '\r\n')
    expect(await user.import([], { stdin })).toEqual(imported({ created: all.length }))
    expect(lines(await user.list())).toEqual(all)
  })

  test('files of several formats', async () => {
    const files = ways.map(([, text], index) => user.write(`plants-${index}`, text))
    expect(await user.import([...files, '--if-exists', 'same'])).toEqual(
      imported({ created: all.length, skipped: all.length * (ways.length - 1) }),
    )
  })
})

describe('what is rejected of', () => {
  test.each([
    [
      'CSV',
      'id,name\n1,A\nx,B\n3,C,D\n4,D\n5\n',
      [3, 4, 6],
      [422, 400, 422],
      'id,name\nx,B\n3,C,D\n5\n',
      (text: string) => text.replace('x', '2').replace(',D', '').replace(/5$/m, '5,E'),
    ],
    [
      'a JSON array',
      '[{"id":1,"name":"A"},\n {"id":"2","name":"B"}, {"id":3,"nmae":"C"},\n {"id":4,"name":"D"},\n\n {"name":"E"}]',
      [2, 2, 5],
      [422, 422, 422],
      undefined,
      (text: string) => text.replace('"2"', '2').replace('nmae', 'name').replace('{"name', '{"id":5,"name'),
    ],
    [
      'values over many lines',
      '{\n"id":1,"name":"A"}\n{\n"id":"2",\n"name":"B"}\n{"id":4,"name":"D"}{\n"id":3\n}\n{"id":5,"name":"E"}',
      [3, 6],
      [422, 422],
      undefined,
      (text: string) => text.replace('"2"', '2').replace('"id":3', '"id":3,"name":"C"'),
    ],
  ])('%s has its line, and imports when it is mended', async (_, text, places, errors, kept, mend) => {
    user.write('plants', text)
    expect(await user.import(['plants', '--rejects', 'bad'])).toMatchObject({
      code: 6,
      summary: { rejected: places.length },
    })
    expect(user.reasons('bad').map(({ file, line, error }) => [file, line, error])).toEqual(
      places.map((line, index) => ['plants', line, errors[index]]),
    )
    if (kept !== undefined) expect(user.read('bad')).toBe(kept)
    user.write('bad', mend(user.read('bad')))
    expect(await user.import(['bad'])).toEqual(imported({ created: places.length }))
    expect(lines(await user.list())).toEqual(
      ['A', 'B', 'C', 'D', 'E'].map((name, index) => `{"id":${index + 1},"name":"${name}"}`),
    )
  })

  test('an array that has records of one line and of several imports when it is mended', async () => {
    user.write('plants', '[{"id":"1","name":"A"},\n{"id":"2",\n"name":"B"}]')
    await user.import(['plants', '--rejects', 'bad'])
    user.write('bad', user.read('bad').replaceAll(/"(\d)"/g, '$1'))
    expect(await user.import(['bad', '--format', 'json'])).toEqual(imported({ created: 2 }))
  })

  test.each([
    ['CSV files with other headers', 'id,name,tag\nx,A,B\n', 'name,id\nC,y\n'],
    ['CSV and NDJSON', 'id,name,tag\nx,A,B\n', '{"id":"y","name":"C"}\n'],
    ['NDJSON and CSV', '{"id":"x","name":"A","tag":"B"}\n', 'name,id\nC,y\n'],
  ])('%s is kept so that it is right when mended, or is rejected', async (_, one, other) => {
    user.write('one', one)
    user.write('other', other)
    const { code } = await user.import(['one', 'other', '--rejects', 'bad'])
    if (code === 2) return
    user.write(
      'bad',
      user
        .read('bad')
        .replace(/"?x"?/, '1')
        .replace(/(?<!\w)"?y"?(?!\w)/, '2'),
    )
    expect(await user.import(['bad'])).toMatchObject({ code: 0 })
    expect(lines(await user.list())).toEqual(['{"id":1,"name":"A","tag":"B"}', '{"id":2,"name":"C"}'])
  })
})

describe.each([
  ['a JSON array', (name: string) => `[{"id":1,"name":"A"},\n{"id":2,"${name}":"B"},\n{"id":3,"name":"C"}]`],
  ['values over many lines', (name: string) => `{\n"id":1,"name":"A"}\n{"id":2,\n"${name}":"B"}\n{"id":3,"name":"C"}`],
])('--max-errors in %s', (_, text) => {
  test('stops after what is wrong, and resumes there', async () => {
    user.write('plants', text('nmae'))
    const stopped = await user.import(['plants', '--max-errors', '1'])
    expect(stopped).toMatchObject({ code: 6, summary: summary({ created: 1, rejected: 1, reasons: { 422: 1 } }) })
    expect(await user.import(['plants', '--max-errors', '1'])).toMatchObject({
      code: 6,
      summary: { created: 2, rejected: 1 },
    })
    expect(lines(await user.list())).toEqual(['{"id":1,"name":"A"}', '{"id":3,"name":"C"}'])
  })
})

describe('--max-errors in CSV', () => {
  test('stops after what is wrong, and resumes there', async () => {
    const flags = ['plants', '--max-errors', '1', '--rejects', 'bad']
    user.write('plants', 'id,name\n1,A\nx,B\n3,C\n')
    expect(await user.import(flags)).toMatchObject({
      code: 6,
      summary: { created: 1, rejected: 1, reasons: { 422: 1 } },
    })
    expect(user.read('bad')).toBe('id,name\nx,B\n')
    expect(await user.import(flags)).toMatchObject({ code: 6, summary: { created: 2, rejected: 1 } })
    expect(lines(await user.list())).toEqual(['{"id":1,"name":"A"}', '{"id":3,"name":"C"}'])
  })

  test('counts one record at a time, also where the next one is invalid', async () => {
    const flags = ['plants', '--max-errors', '1', '--rejects', 'bad']
    user.write('plants', 'id,name\n2,A\n2,B\nx,C\n3,D\n')
    expect(await user.import(flags)).toMatchObject({
      code: 6,
      summary: { created: 1, rejected: 1, reasons: { 409: 1 } },
    })
    expect(await user.import(flags)).toMatchObject({ code: 6, summary: { created: 1, rejected: 2 } })
    expect(await user.import(flags)).toMatchObject({ code: 6, summary: { created: 2, rejected: 2 } })
    expect(user.read('bad')).toBe('id,name\n2,B\nx,C\n')
  })

  test('makes no plant of the header', async () => {
    user.write('plants', 'Common,Family\nFern,x\n,z\nRose,y\n')
    await user.import(['plants', '--max-errors', '1', '--id-from', '1', '--map', 'name=Common,tag=Family'])
    expect(await user.list()).toBe('{"id":1,"name":"Fern","tag":"x"}\n')
  })
})

describe('a table', () => {
  test('has its columns named, and its rows numbered', async () => {
    const stdin = 'CommonName,Family,Remark\nFern,shade,\nMoss,,soft\n'
    const { code, err } = await user.import(['--map', 'name=CommonName,tag=Family', '--id-from', '1'], { stdin })
    expect({ code, err }).toEqual({
      code: 0,
      err: 'plants: warning: ignored unknown field "Remark" of 1 plant\n',
    })
    expect(await user.list()).toBe('{"id":1,"name":"Fern","tag":"shade"}\n{"id":2,"name":"Moss"}\n')
  })

  test.each([
    ['without ids', 'name\nFern\n', ['id', '--id-from next']],
    ['without names', 'id,CommonName\n1,Fern\n', ['name', '"CommonName"', '--map name=COLUMN']],
    ['with a column twice', 'id,name,id\n1,Fern,2\n', ['"id"', 'twice']],
  ])('%s is rejected with words, and nothing is kept of it', async (_, content, words) => {
    user.write('plants.csv', content)
    const { code, summary: told, err } = await user.import(['plants.csv', '--format', 'csv'])
    expect({ code, told, missing: words.filter((word) => !err.includes(word)) }).toEqual({
      code: 2,
      told: undefined,
      missing: [],
    })
    expect([user.has('plants.db'), user.journals()]).toEqual([false, []])
  })

  test('takes ids by the grammar of JSON numbers, without what a spreadsheet may have rounded', async () => {
    const ids = [
      '1e3',
      '1E+03',
      '-5',
      '2.0',
      '9223372036854775807',
      '" 1"',
      '+1',
      '"007"',
      '0x10',
      '1_000',
      '1.5',
      '',
      '"7"',
      '9223372036854775808',
    ]
    const { summary: told, err } = await user.import([], { stdin: `id,name\n${ids.map((id) => `${id},x\n`).join('')}` })
    expect(told).toMatchObject({ created: 5, rejected: 9, reasons: { 422: 9 } })
    expect(Array.from(err.matchAll(/stdin:(\d+): /g), ([, line]) => Number(line))).toEqual([
      3, 7, 8, 9, 10, 11, 12, 13, 15,
    ])
    expect(lines(await user.list()).map((line) => /-?\d+/.exec(line)?.[0])).toEqual([
      '-5',
      '2',
      '7',
      '1000',
      '9223372036854775807',
    ])
  })
})

describe('an array that was cut', () => {
  const whole = '[\n{"id":1,"name":"A"},\n{"id":2,"name":"B"},\n{"id":3,"name":"C"}\n]\n'

  test.each([
    [whole.length - 2, 3],
    [whole.length - 5, 2],
    [whole.indexOf('},\n{"id":3') + 3, 2],
    [whole.indexOf('},\n{"id":3') + 1, 2],
    [whole.indexOf('},\n{"id":3'), 1],
    [1, 0],
  ])('after %i bytes is told of, and what is whole is in', async (length, created) => {
    const { code, summary: told } = await user.import(['--format', 'json'], { stdin: whole.slice(0, length) })
    expect({ code, told }).toMatchObject({ code: 6, told: { created } })
  })
})

describe.each([
  [
    'an array',
    (bad: string) => `[{"id":1,"name":"A"},\n{"id":2},\n${bad},\n{"id":4,"name":"D"}]`,
    3,
    'unexpected "{" at line 4, column 1',
  ],
  [
    'a stream of values',
    (bad: string) => `{\n"id":1,"name":"A"}{"id":2}\n${bad}\n{"id":4,"name":"D"}`,
    3,
    'unexpected "{" at line 4, column 1',
  ],
])('%s that is broken', (_, text, line, unexpected) => {
  const broken = text('{"id":3,"name":"C"')
  const whole = text('{"id":3,"name":"C"}')
  const reason = `Not JSON: ${unexpected}`

  test('is imported up to there, and resumed when it is fixed', async () => {
    user.write('plants', broken)
    const flags = ['plants', '--format', 'json', '--rejects', 'bad']
    const { code, summary: told, err } = await user.import(flags)
    expect({ code, told }).toMatchObject({ code: 6, told: { created: 1, rejected: 2, reasons: { 400: 1, 422: 1 } } })
    expect(err).toContain(`plants: plants:${line}: ${reason}\n`)
    expect(err).toContain(
      '2 plants were rejected, and the import stopped there\n  Fix it, then run the same command again to resume from it\n',
    )
    expect(user.reasons('bad').map((one) => one.line)).toEqual([2, line])
    expect(user.read('bad')).toBe('{"id":2}\n')
    user.write('plants', whole)
    expect(await user.import(flags)).toMatchObject({
      code: 6,
      summary: { created: 3, rejected: 1, reasons: { 422: 1 } },
    })
    expect(lines(await user.list())).toEqual(['{"id":1,"name":"A"}', '{"id":3,"name":"C"}', '{"id":4,"name":"D"}'])
    expect(user.journals()).toEqual([])
  })

  test.each([['--dry-run'], ['--atomic']])('creates nothing with %s', async (flag) => {
    const { code, err } = await user.import([flag, '--format', 'json'], { stdin: broken })
    expect({ code, told: err.includes(`stdin:${line}: ${reason}`) }).toEqual({ code: 6, told: true })
    expect(await user.list()).toBe('')
  })
})

test('a document that is no plant at all is reported with its line and column', async () => {
  const {
    code,
    summary: told,
    err,
  } = await user.import(['--output', 'json', '--format', 'json'], { stdin: '\n[nothing]' })
  expect({ code, told }).toEqual({ code: 6, told: summary({ rejected: 1, reasons: { 400: 1 } }) })
  expect(lines(err).map((one) => JSON.parse(one))).toEqual([
    { error: 400, message: 'Not JSON: unexpected "n" at line 2, column 2', file: 'stdin', line: 2 },
    {
      error: 400,
      message: '1 plant was rejected, and the import stopped there',
      hint: 'Fix it. The records before it were imported',
    },
  ])
})
