import { beforeEach, describe, expect, test } from 'vitest'
import { Importing, imported, lines } from '../../../helpers/importing.js'
import { query } from '../../../helpers/sqlite-file.js'
import { refusal } from '../../../helpers/world.js'

let user: Importing

beforeEach(() => {
  user = new Importing()
  user.write('plants', good)
})

const good = '{"id":1,"name":"Fern"}\n'

describe('a command line that is wrong is rejected, and nothing is made:', () => {
  const count = 'a whole number from 1 to 9007199254740991'
  const mapHint = 'For example: --map name=CommonName,tag=Family'
  const map = (text: string): Row => [
    ['plants', '--map', text],
    `--map must map a field of the input to id, name or tag, but was ${JSON.stringify(text)}`,
    mapHint,
  ]
  const counts = (flag: string): Row[] =>
    ['', '0', '-1', '1.5', 'x', ' 1', '1e3', '9007199254740992'].map((text) => [
      ['plants', `${flag}=${text}`],
      `${flag} must be ${count}, but was ${JSON.stringify(text)}`,
      `For example: ${flag} 10`,
    ])
  const choices = (flag: string, words: string, first: string): Row[] =>
    ['', 'x', first.toUpperCase(), ` ${first}`].map((text) => [
      ['plants', `${flag}=${text}`],
      `${flag} must be one of ${words}, but was ${JSON.stringify(text)}`,
      undefined,
    ])
  const empty = (...argv: string[]): Row => [
    argv,
    `${argv.at(-2)?.startsWith('-') ? argv.at(-2) : 'file'} is empty`,
    'Give it a value, or leave it out',
  ]
  const together = (one: string, other: string): Row => [
    ['plants', other, one],
    `${one} cannot be used with ${other}`,
    'Leave out one of them',
  ]

  type Row = [argv: string[], message: string, hint: string | undefined]
  const rows: Row[] = [
    ...['', 'name', 'name=', '=x', 'name=a,name=b', 'nmae=x', 'name=a,', ',', 'Name=x'].map(map),
    ...counts('--max-errors'),
    ...['', '0', '-1', '1.5', 'x', ' 1', '1025', '1e3'].map(
      (text): Row => [
        ['plants', `--concurrency=${text}`],
        `--concurrency must be a whole number from 1 to 1024, but was ${JSON.stringify(text)}`,
        'For example: --concurrency 64',
      ],
    ),
    ...['', '-1', 'x', '61m', '2h'].map(
      (text): Row => [
        ['plants', `--retry=${text}`],
        `--retry must be a duration from 0 to 1h, but was ${JSON.stringify(text)}`,
        'For example: --retry 10s',
      ],
    ),
    ...choices('--format', 'ndjson, json, csv, tsv', 'ndjson'),
    ...choices('--if-exists', 'error, skip, same, update', 'error'),
    ...[
      ['', 'an integer'],
      ['x', 'an integer, in digits only'],
      ['1.5', 'an integer'],
      ['007', 'an integer without leading zeros'],
      ['9223372036854775808', 'an integer from -9223372036854775808 to 9223372036854775807'],
    ].map(
      ([text = '', rule]): Row => [
        ['plants', `--id-from=${text}`],
        `--id-from must be ${rule}, but was ${JSON.stringify(text)}`,
        'For example: --id-from 1',
      ],
    ),
    ...['', 'ab', '"', '\n', '7', '\u00a7'].map(
      (text): Row => [
        ['plants', `--delimiter=${text}`],
        `--delimiter must be one character such as ; or |, or the word tab, but was ${JSON.stringify(text)}`,
        "For example: --delimiter ';'",
      ],
    ),
    ...['', 'x', 'latin-1', 'utf-32'].map(
      (text): Row => [
        ['plants', `--encoding=${text}`],
        `--encoding must be an encoding such as utf-8, utf-16le, windows-1252, iso-8859-2, shift_jis, but was ${JSON.stringify(text)}`,
        'Its names are at https://encoding.spec.whatwg.org/#names-and-labels',
      ],
    ),
    [
      ['plants', '--columns=id,name', '--format=json'],
      '--columns applies to csv and tsv, but not to json',
      'Leave out one of them',
    ],
    [
      ['plants', '--format=ndjson', '--delimiter=;'],
      '--delimiter applies to csv and tsv, but not to ndjson',
      'Leave out one of them',
    ],
    [['plants', '--map', 'id='], '--map id= leaves the plants without ids', 'Assign ids: --id-from next'],
    empty('plants', '--rejects', ''),
    empty('plants', ''),
    together('--dry-run', '--atomic'),
    together('--dry-run', '--restart'),
    together('--atomic', '--restart'),
    [['-', 'plants', '-'], 'Stdin can be read only once', 'Use "-" only once'],
    [[], 'import needs a file, or plants on stdin', 'For example: plants import plants.ndjson'],
  ]

  test.each(rows)('import %j', async (argv, message, hint) => {
    expect(await user.run(['import', ...argv])).toEqual(refusal(message, hint))
    const asJson = await user.run(['import', ...argv, '--output', 'json'])
    expect({ ...asJson, err: JSON.parse(asJson.err) }).toEqual({ code: 2, out: '', err: { error: 400, message, hint } })
    expect([user.has('plants.db'), user.journals()]).toEqual([false, []])
  })

  test('--atomic for a service', async () => {
    const { code, out, err } = await user.run(['import', 'plants', '--atomic', '--store', 'http://127.0.0.1:9'])
    expect({ code, out, told: err.startsWith('plants: --atomic is not supported at http://127.0.0.1:9') }).toEqual({
      code: 2,
      out: '',
      told: true,
    })
  })
})

describe('flags that go together', () => {
  test.each([
    [['--format', 'ndjson', '--map', 'name=name,tag=tag']],
    [['--max-errors', '1']],
    [['--max-errors', '1', '--if-exists', 'same', '--rejects', 'bad']],
    [['--atomic', '--max-errors', '1', '--rejects', 'bad']],
    [['--atomic', '--id-from', '5', '--map', 'tag=x']],
    [['--restart']],
    [['--verbose', '--no-input', '--no-color']],
  ])('%j', async (flags) => {
    const { code, summary, err } = await user.import(['plants', ...flags])
    expect({ code, summary, err: flags.includes('--verbose') ? '' : err }).toEqual(imported({ created: 1 }))
    expect(await user.list()).toBe(good)
    expect([user.has('bad'), user.has('bad.reasons'), user.journals()]).toEqual([false, false, []])
  })

  test.each([
    ['--concurrency', ['--concurrency=5', '--retry=5s']],
    ['--retry', ['--retry', '5s']],
  ])('%s is said to mean nothing for a file', async (flag, flags) => {
    const { code, summary, err } = await user.import(['plants', ...flags])
    const warning = `plants: ${flag} applies only to services, and has no effect on a file\n`
    expect({ code, summary, err }).toEqual(imported({ created: 1 }, warning))
  })

  test('other flags than those it was begun with are rejected, until it is begun again', async () => {
    user.write('plants', `${good}{"id":2}\n{"id":3,"name":"Rose"}\n`)
    const flags = ['plants', '--max-errors', '1']
    await user.import(flags)
    for (const other of [
      ['--map', 'tag=x'],
      ['--id-from', '1'],
      ['--rejects', 'bad'],
      ['--format', 'json'],
      ['--encoding', 'latin1'],
    ]) {
      const { code, err } = await user.import([...flags, ...other])
      expect({ code, err }).toEqual({
        code: 2,
        err: expect.stringMatching(
          new RegExp(
            `^plants: This import was started without ${other[0]}\n {2}Use the same flags, or start again with --restart\n$`,
          ),
        ),
      })
    }
    expect(await user.import(['plants', '--if-exists', 'same', '--restart'])).toMatchObject({
      code: 6,
      summary: { created: 1, skipped: 1, rejected: 1 },
    })
    expect(user.journals()).toEqual([])
  })

  test('what was done is not done again, and an input that was changed there is rejected', async () => {
    user.write('plants', `${good}{"id":-1}\n{"id":2,"name":"B"}\n`)
    const flags = ['plants', '--max-errors', '1']
    await user.import(flags)
    user.write('plants', '{"id":1,"name":"Moss"}\n{"id":-1}\n{"id":2,"name":"B"}\n')
    expect(await user.import(flags)).toMatchObject({
      code: 2,
      summary: undefined,
      err: expect.stringMatching(/^plants: plants was changed since its import was interrupted\n/),
    })
    user.write('plants', `${good}{"id":-1}\n{"id":2,"name":"B"}\n`)
    expect((await user.import(flags)).err).toContain('plants: Resuming an interrupted import: 2 plants are done\n')
    expect(await user.list()).toBe(`${good}{"id":2,"name":"B"}\n`)
  })
})

test('--restart begins again although the checkpoint is broken', async () => {
  user.write('plants', `${good}{"id":2}\n{"id":3,"name":"C"}\n`)
  await user.import(['plants', '--max-errors', '1'])
  for (const broken of ['{"version":1,', '{"version":2}', '']) {
    query(user.store, `UPDATE imports SET state = '${broken}'`)
    expect(await user.import(['plants', '--max-errors', '1'])).toEqual({
      ...{ code: 2, summary: undefined },
      err: 'plants: The checkpoint of this import is damaged\n  Start again with --restart\n',
    })
  }
  expect(await user.import(['plants', '--restart', '--if-exists', 'same'])).toMatchObject({
    code: 6,
    summary: { created: 1, skipped: 1, rejected: 1 },
  })
  expect(query(user.store, 'SELECT * FROM imports')).toEqual([])
})

test.each([
  ['a store that is none', ['--store', './plants']],
  ['a rejects file that cannot be made', ['--rejects', 'no/bad']],
])('an import that could not begin leaves no journal: %s', async (_, flags) => {
  expect((await user.import(['plants', ...flags])).code).not.toBe(0)
  expect(user.journals()).toEqual([])
})

test('how many other fields there are besides those that are named is told', async () => {
  const stdin = Array.from({ length: 150 }, (_, id) => `{"id":${id},"name":"x","f${id}":1}\n`).join('')
  expect((await user.import([], { stdin })).err).toMatch(/\b130 more\b/)
})

describe('the summary', () => {
  const told = async (argv: string[], world = {}) =>
    (await user.run(['import', ...argv, '--output', 'text'], world)).out
  const time = '\\d+(?:\\.\\d)? s(?: \\([\\d,]+/s\\))?'

  test.each([
    [0, [], '', 'Read 0 plants in TIME: 0 created'],
    [1, [], good, 'Read 1 plant in TIME: 1 created'],
    [2, [], `${good}{"id":2,"name":"Moss"}\n`, 'Read 2 plants in TIME: 2 created'],
    [
      3,
      ['--if-exists', 'skip'],
      `${good}${good}{"id":2}\n`,
      'Read 3 plants in TIME: 1 created, 1 skipped, 1 rejected \\(1 invalid\\)',
    ],
    [
      4,
      [],
      `${good}${good}x\n{"id":2}\n`,
      'Read 4 plants in TIME: 1 created, 3 rejected \\(1 not JSON, 1 id exists, 1 invalid\\)',
    ],
    [
      4,
      [],
      'id,name\n1,A\n1,B\n1,"C"\n1,"D"x\n',
      'Read 4 plants in TIME: 1 created, 3 rejected \\(1 not CSV, 2 ids exist\\)',
    ],
    [1, ['--dry-run'], good, 'Would create 1 plant: checked 1 plant in TIME'],
    [
      4,
      ['--dry-run', '--if-exists', 'skip'],
      `${good}${good}{"id":2,"name":"y"}\nx\n`,
      'Would create 2 plants, skip 1 and reject 1 \\(1 not JSON\\): checked 4 plants in TIME',
    ],
    [0, ['--dry-run'], '', 'Would create 0 plants: checked 0 plants in TIME'],
  ])('counts %i for people', async (_, flags, stdin, expected) => {
    expect(await told([...flags], { stdin })).toMatch(
      new RegExp(`^(Would create .* \\(id .*\n)*${expected.replace('TIME', time)}\n$`),
    )
  })

  test.each([
    ['of an empty input', [], '', 'plants: warning: stdin is empty\n'],
    ['of a blank line', [], '\n', 'plants: warning: stdin contains no records\n'],
    ['of an empty file', ['empty'], '', 'plants: warning: empty is empty\n'],
    ['of a header alone', [], 'id,name\n', 'plants: warning: stdin contains no records\n'],
    ['of two empty inputs', ['empty', '-'], ' \n', 'plants: warning: the inputs contain no records\n'],
    ['without a warning', ['--quiet'], '', ''],
  ])('%s counts nothing', async (_, flags, stdin, err) => {
    user.write('empty', '')
    const result = await user.run(['import', ...flags], { stdin })
    expect({ code: result.code, err: result.err }).toEqual({ code: 0, err })
  })

  test('groups the digits of what is many', async () => {
    const stdin = Array.from({ length: 12_345 }, (_, id) => `{"id":${id},"name":"x"}\n`).join('')
    expect(await told([], { stdin })).toMatch(new RegExp(`^Read 12,345 plants in ${time}: 12,345 created\n$`))
  })

  test('is text on a terminal, and JSON elsewhere', async () => {
    expect((await user.run(['import', 'plants'], { terminals: ['stdout'] })).out).toMatch(/^Read 1 plant in /)
    expect(JSON.parse((await user.run(['import', 'plants', '--if-exists', 'skip'])).out)).toMatchObject({ skipped: 1 })
  })

  test('has one rejected plant in the singular', async () => {
    const { err } = await user.run(['import'], { stdin: `${good}x\n` })
    expect(lines(err)).toContain('plants: 1 plant was rejected')
  })

  test('has one more rejected plant in the singular', async () => {
    const { err } = await user.run(['import'], { stdin: good + '{"id":2}\n'.repeat(21) })
    expect(err).toContain('plants: Rejected records that are not shown: 1\n')
  })

  test('has an error only where all were rejected for the same reason', async () => {
    const errorOf = async (stdin: string) => {
      const { err } = await user.run(['import', '--output', 'json'], { stdin })
      return JSON.parse(lines(err).at(-1) ?? '').error
    }
    expect([await errorOf(good.repeat(3)), await errorOf(`${good}x\n`)]).toEqual([409, 422])
    const { err: mixed } = await user.run(['import', '--output', 'json'], { stdin: `${good}\u001b[2J\n` })
    expect(mixed).not.toContain('\u001b')
    expect(JSON.parse(lines(mixed).at(-1) ?? '').error).toBe(422)
  })

  test('and what is told drive no terminal', async () => {
    const stdin = `${good}{"id":2,"name":5,"\\u001b[2J\u009b":1}\n\u001b[31m\n{"id":"\\u001b[2J","name":"x"}\n`
    for (const output of ['text', 'json']) {
      const { out, err } = await user.run(['import', '--output', output], { stdin })
      expect(out + err).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
    }
  })
})
