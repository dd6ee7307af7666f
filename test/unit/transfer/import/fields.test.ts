import { beforeEach, describe, expect, test } from 'vitest'
import { complaints, Importing, imported, keepHint, lines, summary } from '../../../helpers/importing.js'

let user: Importing

beforeEach(() => {
  user = new Importing()
})

describe('an id is exact', () => {
  test.each([
    ['0', '0'],
    ['-0', '0'],
    ['-1', '-1'],
    ['999999999', '999999999'],
    ['1000000000', '1000000000'],
    ['4294967295', '4294967295'],
    ['4294967296', '4294967296'],
    ['-4294967296', '-4294967296'],
    ['9007199254740993', '9007199254740993'],
    ['-9007199254740993', '-9007199254740993'],
    ['281474976710656', '281474976710656'],
    ['9223372036854775807', '9223372036854775807'],
    ['-9223372036854775808', '-9223372036854775808'],
    ['-9223372036854775807', '-9223372036854775807'],
    ['1.0', '1'],
    ['1e3', '1000'],
    ['1E+3', '1000'],
    ['1500e-2', '15'],
    ['-12.50e1', '-125'],
    ['0e999999999', '0'],
    ['0.0', '0'],
    ['9223372036854775807.0', '9223372036854775807'],
    ['922337203685477580.7e1', '9223372036854775807'],
  ])('%s', async (written, id) => {
    expect(await user.import([], { stdin: `{"id":${written},"name":"Fern"}\n` })).toEqual(imported({ created: 1 }))
    expect(await user.list()).toBe(`{"id":${id},"name":"Fern"}\n`)
  })

  test.each([
    '9223372036854775808',
    '-9223372036854775809',
    '18446744073709551616',
    '1.5',
    '1.0000000000000000001',
    '1e19',
    '1e-1',
    '1e999999999',
    '99999999999999999999999999999999',
  ])('%s is none', async (id) => {
    const {
      code,
      summary: told,
      err,
    } = await user.import(['--format', 'ndjson'], { stdin: `{"id":${id},"name":"Fern"}\n` })
    expect({ code, told }).toEqual({ code: 6, told: summary({ rejected: 1, reasons: { 422: 1 } }) })
    const rule = /^1(\.|e-)/.test(id) ? 'an integer' : 'an integer from -9223372036854775808 to 9223372036854775807'
    expect(err).toContain(`id must be ${rule}, but was ${id}`)
  })

  test.each(['01', '+1', '.5', '1.', '0x10', '1_000', 'NaN', '-', '1e'])('%s is not JSON', async (id) => {
    const stdin = `{"id":${id},"name":"Fern"}\n`
    expect(await user.import(['--format', 'ndjson'], { stdin })).toMatchObject({
      code: 6,
      summary: { rejected: 1, reasons: { 400: 1 } },
    })
  })
})

test('ids in any order come out in theirs', async () => {
  const ids = Array.from(
    { length: 5000 },
    (_, index) => ((BigInt(index) * 0x9e3779b97f4a7c15n) & 0xffffffffffffffffn) - 2n ** 63n,
  )
  const stdin = ids.map((id) => `{"id":${id},"name":"${id}"}\n`).join('')
  expect(await user.import([], { stdin })).toEqual(imported({ created: 5000 }))
  const expected = ids.toSorted((one, other) => (one < other ? -1 : 1)).map((id) => `{"id":${id},"name":"${id}"}`)
  expect(lines(await user.list())).toEqual(expected)
})

describe('texts', () => {
  test.each([
    ['""', '""'],
    ['"\\u0046ern"', '"Fern"'],
    ['"\\"\\\\\\/\\b\\f\\n\\r\\t"', '"\\"\\\\/\\b\\f\\n\\r\\t"'],
    ['"\\ud83c\\udf31"', '"\u{1f331}"'],
    ['"\u{1f331}\u5171"', '"\u{1f331}\u5171"'],
    ['"}\\n{"', '"}\\n{"'],
    ['"\uffff\ufeff"', '"\uffff\ufeff"'],
    ['"\\u0001"', '"\\u0001"'],
  ])('as %s are stored as they mean', async (written, told) => {
    expect(await user.import([], { stdin: `{"id":1,"name":${written},"tag":${written}}\n` })).toEqual(
      imported({ created: 1 }),
    )
    expect(await user.list()).toBe(`{"id":1,"name":${told},"tag":${told}}\n`)
  })
})

describe('of fields', () => {
  test.each([
    ['{"tag":"shade","name":"Fern","id":1}', '{"id":1,"name":"Fern","tag":"shade"}'],
    ['{ "id" : 1 , "name" : "Fern" }', '{"id":1,"name":"Fern"}'],
    ['{"id":1,"name":"Moss","name":"Fern"}', '{"id":1,"name":"Fern"}'],
    ['{"id":7,"name":"Fern","id":1}', '{"id":1,"name":"Fern"}'],
    ['{"id":null,"name":"Fern","\\u0069d":1}', '{"id":1,"name":"Fern"}'],
    ['{"id":1,"name":"Fern","tag":null,"tag":"shade"}', '{"id":1,"name":"Fern","tag":"shade"}'],
    [
      '{"id":9007199254740993,"name":"Fern","tag":"\\"id\\":5"}',
      '{"id":9007199254740993,"name":"Fern","tag":"\\"id\\":5"}',
    ],
  ])('%s: order, spaces and repetition do not matter', async (written, told) => {
    expect(await user.import([], { stdin: written })).toEqual(imported({ created: 1 }))
    expect(await user.list()).toBe(`${told}\n`)
  })

  test('those that no plant has are counted, each name once', async () => {
    const stdin =
      '{"id":1,"name":"A","nmae":1}\n{"id":2,"name":"B","nmae":2,"__proto__":{"x":1},"":0}\n{"id":3,"tags":[]}\n{"id":4,"name":"C","x":{"id":9}}\n'
    const of = (name: string, count: string, alike = '') =>
      `plants: warning: ignored unknown field ${name} of ${count}${alike}\n`
    const { code, summary: told, err } = await user.import([], { stdin })
    expect({ code, told }).toEqual({ code: 6, told: summary({ created: 3, rejected: 1, reasons: { 422: 1 } }) })
    for (const line of [
      of('"nmae"', '2 plants', '. Did you mean "name"?'),
      of('"__proto__"', '1 plant'),
      of('""', '1 plant'),
      of('"tags"', '1 plant', '. Did you mean "tag"?'),
      of('"x"', '1 plant'),
      'plants: If so: --map name=nmae,tag=tags\n',
    ])
      expect(err.split(line)).toHaveLength(2)
    expect(await user.list()).toBe('{"id":1,"name":"A"}\n{"id":2,"name":"B"}\n{"id":4,"name":"C"}\n')
  })

  test.each([
    [['--map', 'id=nr'], "--map 'id=nr,name=na me'"],
    [['--map', 'id=nr,name=other'], undefined],
  ])('one --map is suggested, with what %j maps', async (flags, hint) => {
    const { err } = await user.import(flags, { stdin: '{"nr":1,"na me":"A"}\n' })
    expect(/If so: (.*)/.exec(err)?.[1]).toBe(hint)
  })

  test('those that no plant has are a line of JSON each when that is asked for', async () => {
    const { code, err } = await user.import(['--output', 'json'], { stdin: '{"id":1,"name":"A","b\\u001b":1}\n' })
    expect(code).toBe(0)
    expect(lines(err).map((line) => JSON.parse(line))).toEqual([
      { warning: 'ignored unknown field "b\\u001b" of 1 plant' },
    ])
  })
})

describe('--map', () => {
  test.each([
    [
      'name=CommonName,tag=Family',
      '{"id":1,"CommonName":"Fern","Family":"shade"}',
      '{"id":1,"name":"Fern","tag":"shade"}',
    ],
    [
      ' name = CommonName , tag = Family ',
      '{"id":1,"CommonName":"Fern","Family":"shade"}',
      '{"id":1,"name":"Fern","tag":"shade"}',
    ],
    ['name=tag,tag=name', '{"id":1,"name":"shade","tag":"Fern"}', '{"id":1,"name":"Fern","tag":"shade"}'],
    ['tag=A B', '{"id":1,"name":"Fern","A B":"x"}', '{"id":1,"name":"Fern","tag":"x"}'],
    ['tag=a=b', '{"id":1,"name":"Fern","a=b":"x"}', '{"id":1,"name":"Fern","tag":"x"}'],
    ['tag=Family', '{"id":1,"name":"Fern"}', '{"id":1,"name":"Fern"}'],
    ['tag=__proto__', '{"id":1,"name":"Fern","__proto__":"x"}', '{"id":1,"name":"Fern","tag":"x"}'],
  ])('%s', async (map, record, told) => {
    expect(await user.import(['--map', map], { stdin: record })).toEqual(imported({ created: 1 }))
    expect(await user.list()).toBe(`${told}\n`)
  })

  test('keeps an id exact that has another name, also beyond 2^53', async () => {
    const ids = ['9007199254740993', '9223372036854775807', '-9223372036854775808', '1.0']
    const stdin = ids.map((id, index) => `{"nr":${id},"name":"${index}"}\n`).join('')
    expect(await user.import(['--map', 'id=nr'], { stdin })).toEqual(imported({ created: 4 }))
    expect(await user.list()).toBe(
      '{"id":-9223372036854775808,"name":"2"}\n{"id":1,"name":"3"}\n{"id":9007199254740993,"name":"0"}\n{"id":9223372036854775807,"name":"1"}\n',
    )
  })

  test('gives one field of the input to two of a plant', async () => {
    expect(await user.import(['--map', 'name=x,tag=x'], { stdin: '{"id":1,"x":"A"}' })).toEqual(
      imported({ created: 1 }),
    )
    expect(await user.list()).toBe('{"id":1,"name":"A","tag":"A"}\n')
  })

  test('takes the named field, and warns of the one whose name is taken', async () => {
    const { code, err } = await user.import(['--map', 'name=x'], { stdin: '{"id":1,"name":"A","x":"B"}' })
    expect({ code, told: err.includes('"name') }).toEqual({ code: 0, told: true })
    expect(await user.list()).toBe('{"id":1,"name":"B"}\n')
  })

  test('of a field that a record lacks rejects the record', async () => {
    expect(await user.import(['--map', 'name=x'], { stdin: '{"id":1,"name":"A"}' })).toMatchObject({
      code: 6,
      summary: { created: 0, reasons: { 422: 1 } },
    })
  })
})

describe('--id-from', () => {
  test.each([
    ['1', '{"id":1,"name":"A"}\n{"id":2,"name":"B"}\n'],
    ['-1', '{"id":-1,"name":"A"}\n{"id":0,"name":"B"}\n'],
    ['1e3', '{"id":1000,"name":"A"}\n{"id":1001,"name":"B"}\n'],
    ['9007199254740992', '{"id":9007199254740992,"name":"A"}\n{"id":9007199254740993,"name":"B"}\n'],
    ['9223372036854775806', '{"id":9223372036854775806,"name":"A"}\n{"id":9223372036854775807,"name":"B"}\n'],
  ])('%s numbers plants', async (from, all) => {
    expect(await user.import([`--id-from=${from}`], { stdin: '{"name":"A"}\n\n{"name":"B"}\n' })).toEqual(
      imported({ created: 2 }),
    )
    expect(await user.list()).toBe(all)
  })

  test('leaves ids that are there, and none of a wrong kind', async () => {
    const stdin = '{"name":"A"}\n{"id":10,"name":"B"}\n{"name":"C"}\n{"id":null,"name":"D"}\n{"id":"5","name":"E"}\n'
    expect(await user.import(['--id-from', '1'], { stdin })).toMatchObject({
      code: 6,
      summary: { created: 3, reasons: { 422: 2 } },
    })
    expect(await user.list()).toBe('{"id":1,"name":"A"}\n{"id":2,"name":"C"}\n{"id":10,"name":"B"}\n')
  })

  test('rejects what comes behind the largest id', async () => {
    expect(
      await user.import(['--id-from', '9223372036854775807'], { stdin: '{"name":"A"}\n{"name":"B"}\n' }),
    ).toMatchObject({
      code: 6,
      summary: { created: 1, rejected: 1, reasons: { 422: 1 } },
    })
    expect(await user.list()).toBe('{"id":9223372036854775807,"name":"A"}\n')
  })

  describe('next', () => {
    const stdin = '{"name":"A"}\n{"id":3,"name":"B"}\n{"name":"C"}\n'

    test.each<[string[], object, string[]]>([
      [[], { created: 3 }, ['{"id":3,"name":"B"}', '{"id":8,"name":"A"}', '{"id":9,"name":"C"}']],
      [['--atomic'], { created: 3 }, ['{"id":3,"name":"B"}', '{"id":8,"name":"A"}', '{"id":9,"name":"C"}']],
      [['--dry-run'], { dryRun: true, created: 3 }, []],
    ])('is the greatest id of the store plus 1, with %j', async (flags, counts, created) => {
      await user.run(['create', '--id', '7', '--name', 'Z'])
      const err = `plants: Plants without an id ${flags.includes('--dry-run') ? 'would get' : 'got'} 8 to 9\n`
      expect(await user.import(['--id-from', 'next', ...flags], { stdin })).toEqual(imported(counts, err))
      expect(lines(await user.list()).toSorted()).toEqual([...created, '{"id":7,"name":"Z"}'].toSorted())
    })

    test.each([[], ['--atomic']])('is 1 in a new store, %s', async (...flags) => {
      expect((await user.import(['--id-from', 'next', ...flags], { stdin: '{"name":"A"}\n' })).code).toBe(0)
      expect(await user.list()).toBe('{"id":1,"name":"A"}\n')
    })

    test('is kept when the import is resumed, or begins again', async () => {
      user.write('plants', '{"name":"A"}\nx\n{"name":"B"}\n')
      const argv = ['plants', '--id-from', 'next', '--max-errors', '1']
      await user.import(argv)
      await user.run(['create', '--id', '9', '--name', 'Z'])
      await user.import([...argv, '--restart', '--if-exists', 'same'])
      expect(await user.list()).toBe('{"id":1,"name":"A"}\n{"id":9,"name":"Z"}\n')
      expect((await user.import([...argv, '--if-exists', 'same'])).summary).toMatchObject({ created: 1, skipped: 1 })
      expect(await user.list()).toBe('{"id":1,"name":"A"}\n{"id":2,"name":"B"}\n{"id":9,"name":"Z"}\n')
    })

    const mixed = 'id,name\n,A\n0007,B\n,C\n2,D\n'

    test('is above all ids of the files, which keep theirs', async () => {
      user.write('plants.csv', mixed)
      const { code, err } = await user.import(['plants.csv', '--id-from', 'next', '--if-exists', 'skip'])
      expect({ code, err }).toEqual({ code: 0, err: 'plants: Plants without an id got 8 to 9\n' })
      const names = lines(await user.list()).map((line) => /"id":(\d+),"name":"(.)"/.exec(line)?.slice(1).join(' '))
      expect(names).toEqual(['2 D', '7 B', '8 A', '9 C'])
    })

    test('rejects ids of stdin that it could assign, and says so', async () => {
      const { code, err } = await user.import(['--id-from', 'next', '--format', 'csv', '--if-exists', 'skip'], {
        stdin: mixed,
      })
      expect(code).toBe(6)
      const rule = 'must be below 1, the first that --id-from next assigns: name a greater one with --id-from'
      expect(err).toContain(`plants: stdin:3: The id 7 ${rule}\nplants: stdin:5: The id 2 ${rule}\n`)
      expect(err).toContain('run it again with: --id-from 1 --if-exists same --rejects rejected.txt\n')
    })

    test('is a number in a hint that repeats the import, and next in one that imports other records', async () => {
      const flags = ['--id-from', 'next']
      const { err } = await user.import(flags, { stdin: '{"name":"A"}\nx\n' })
      expect(err).toContain('run it again with: --id-from 1 --if-exists same --rejects rejected.txt\n')
      const { err: other } = await user.import([...flags, '--rejects', 'bad'], { stdin: '{"name":"A"}\nx\n' })
      expect(other).toContain(`/bad --id-from next\n`)
    })

    test('is none after the largest id', async () => {
      await user.run(['create', '--id', '9223372036854775807', '--name', 'Z'])
      expect(await user.import(['--id-from', 'next'], { stdin })).toEqual({
        ...{ code: 1, summary: undefined },
        err: 'plants: There is no id after 9223372036854775807, which a plant has\n  Choose one with --id-from NUMBER\n',
      })
    })
  })

  test('counts on over several files', async () => {
    user.write('one', '{"name":"A"}\n{"name":"B"}\n')
    user.write('other', '{"name":"C"}\n')
    expect(await user.import(['one', 'other', '--id-from', '1'])).toEqual(imported({ created: 3 }))
    expect(await user.list()).toBe('{"id":1,"name":"A"}\n{"id":2,"name":"B"}\n{"id":3,"name":"C"}\n')
  })

  test('goes with --map', async () => {
    const stdin = '{"id":"x-1","CommonName":"A"}\n{"id":"x-2","CommonName":"B"}\n'
    const { code } = await user.import(['--map', 'name=CommonName,id=nr', '--id-from', '1'], { stdin })
    expect(code).toBe(0)
    expect(await user.list()).toBe('{"id":1,"name":"A"}\n{"id":2,"name":"B"}\n')
  })

  test('says of a plant that has an id that is taken', async () => {
    const stdin = '{"id":1,"name":"A"}\n{"name":"B"}\n'
    expect(await user.import(['--id-from', '1'], { stdin })).toEqual({
      code: 6,
      summary: summary({ created: 1, rejected: 1, reasons: { 409: 1 } }),
      err: complaints(['stdin:2: The id 1 is in the input twice, also in line 1'], '1 plant was rejected', keepHint),
    })
    expect((await user.import(['--id-from', '1', '--dry-run'], { stdin })).err).toContain(
      '\n  For ids that exist, use --id-from next. Fix the input: nothing was created\n',
    )
  })
})
