import { chownSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { PlantsError } from '../../../../src/platform/errors.js'
import {
  complaints,
  existsHint,
  Importing,
  imported,
  keepHint,
  lines,
  repeatsHint,
  summary,
} from '../../../helpers/importing.js'

let user: Importing

beforeEach(() => {
  user = new Importing()
})

const limit = 1_048_576
const long = `{"id":40,"name":"${'x'.repeat(limit)}"}`
const range = 'an integer from -9223372036854775808 to 9223372036854775807'

/** Records that are rejected: each with its error, and what the message says. */
const bad: [record: string | Buffer, error: number, message: string][] = [
  ['Fern', 400, 'Not JSON: unexpected "F" at column 1'],
  ['{"id":50,"name":"Fern" "tag":""}', 400, 'Not JSON: unexpected "\\"" at column 24'],
  ['{"id":50,"name":"Fern"},', 400, 'Not JSON: unexpected "," at column 24'],
  [
    '{"id":50,"name":"Fern"}{"id":51,"name":"Moss"}',
    400,
    'Not JSON: more than one JSON value, the second at column 24',
  ],
  ["{'id':50}", 400, 'Not JSON: unexpected "\'" at column 2'],
  ['{"id":50,"name":"a\tb"}', 400, 'Not JSON: unexpected U+0009 at column 19'],
  ['{"id":50,"name":"\\x"}', 400, 'Not JSON: invalid escape at column 18'],
  ['{"id":007,"name":"Fern"}', 400, 'Not JSON: unexpected "0" at column 8'],
  [
    Buffer.from('{"id":50,"name":"F\xe4rn"}', 'latin1'),
    400,
    'Not UTF-8. If the input has another encoding, name it with --encoding',
  ],
  [
    Buffer.from('{"id":50,"name":"\xed\xa0\x80"}', 'latin1'),
    400,
    'Not UTF-8. If the input has another encoding, name it with --encoding',
  ],
  [
    Buffer.from('{"id":50,"name":"\xc0\x80"}', 'latin1'),
    400,
    'Not UTF-8. If the input has another encoding, name it with --encoding',
  ],
  ['null', 422, 'Invalid plant: it must be an object, but was null'],
  ['42', 422, 'Invalid plant: it must be an object, but was a number'],
  ['"Fern"', 422, 'Invalid plant: it must be an object, but was "Fern"'],
  ['[{"id":50,"name":"Fern"}]', 422, 'Invalid plant: it must be an object, but was an array'],
  ['{}', 422, `Invalid plant: id must be an integer, but is missing; name must be a string, but is missing`],
  ['{"name":"Fern"}', 422, `Invalid plant: id must be an integer, but is missing`],
  ['{"id":50}', 422, 'Invalid plant: name must be a string, but is missing'],
  ['{"id":"50","name":"Fern"}', 422, `Invalid plant: id must be an integer, not a string, but was "50"`],
  ['{"id":1.5,"name":"Fern"}', 422, `Invalid plant: id must be an integer, but was 1.5`],
  ['{"id":9223372036854775808,"name":"Fern"}', 422, `Invalid plant: id must be ${range}, but was 9223372036854775808`],
  ['{"id":true,"name":"Fern"}', 422, `Invalid plant: id must be an integer, but was true`],
  ['{"id":50,"name":7}', 422, 'Invalid plant: name must be a string, but was a number'],
  ['{"id":50,"name":"\\ud800"}', 422, 'Invalid plant: name must be well-formed Unicode, but contains a lone surrogate'],
  ['{"id":50,"name":"Fern","tag":"a\\u0000"}', 422, 'Invalid plant: tag must be text without U+0000, but contains it'],
  ['{"id":50,"name":null,"tag":null}', 422, 'Invalid plant: name must be a string, but was null'],
  ['{"id":50,"name":"Fern","id":"50"}', 422, `Invalid plant: id must be an integer, not a string, but was "50"`],
  ['{"id":50,"name":"Fern","name":null}', 422, 'Invalid plant: name must be a string, but was null'],
  // before the long one, after which another chunk begins
  ['{"id":1,"name":"Twice"}', 409, 'The id 1 is in the input twice, also in line 1'],
  [long, 413, `The record is larger than 1 MiB (${limit} bytes)`],
  ['{"id":99,"name":"Taken"}', 409, 'A plant with id 99 already exists'],
]

/** Good records, each with a bad one behind it, and blank lines here and there. */
function mixed(breakAs: string) {
  const parts: Buffer[] = []
  const rejected: { file: string; line: number; error: number; message: string }[] = []
  let line = 0
  const add = (record: string | Buffer, end = breakAs) => {
    parts.push(Buffer.from(record), Buffer.from(end))
    line += 1
    return line
  }
  for (const [index, [record, error, message]] of bad.entries()) {
    add(good(index))
    if (index % 4 === 0) add(index % 8 ? '' : ' ')
    rejected.push({ file: 'mixed', line: add(record), error, message })
  }
  add(good(bad.length), '')
  return {
    content: Buffer.concat(parts),
    rejected,
    rejects: Buffer.concat(
      bad.flatMap(([record, error]) => (error === 413 ? [] : [Buffer.from(record), Buffer.from(breakAs)])),
    ),
  }
}

const good = (index: number) => `{"id":${index + 1},"name":"Good ${index}"}`
const allGood = Array.from({ length: bad.length + 1 }, (_, index) => `${good(index)}\n`)

function counted(rejected: { error: number }[]) {
  const reasons: Record<number, number> = {}
  for (const { error } of rejected) reasons[error] = (reasons[error] ?? 0) + 1
  return { rejected: rejected.length, reasons }
}

describe.each([
  ['LF', '\n', ''],
  ['CRLF', '\r\n', ''],
  ['LF and a byte order mark', '\n', '\ufeff'],
  ['CRLF and a byte order mark', '\r\n', '\ufeff'],
])('every kind of bad record among good ones, with %s:', (_, breakAs, mark) => {
  beforeEach(async () => {
    await user.run(['create', '--id', '99', '--name', 'Here first'])
  })

  test('the good are in, the bad are told of in their order, and kept byte for byte', async () => {
    const { content, rejected, rejects } = mixed(breakAs)
    user.write('mixed', Buffer.concat([Buffer.from(mark), content]))
    const result = await user.import(['mixed', '--rejects', 'bad', '--output', 'json'])
    const path = join(user.folder, 'bad')
    expect(result).toEqual({
      code: 6,
      summary: summary({ created: allGood.length, ...counted(rejected), rejects: path }),
      err: expect.any(String),
    })
    const told = lines(result.err).map((line) => JSON.parse(line))
    expect(told).toEqual([
      ...rejected.map(({ error, message, file, line }) => ({ error, message, file, line })),
      {
        error: 422,
        message: `${rejected.length} plants were rejected`,
        hint: `${repeatsHint}${existsHint}Fix them in ${path} (1 larger than 1 MiB is not in it), then: plants import ${path}`,
      },
    ])
    expect(user.reasons('bad')).toEqual(rejected)
    expect(user.bytes('bad').equals(Buffer.concat([Buffer.from(mark), rejects]))).toBe(true)
    expect(lines(await user.list())).toEqual([...lines(allGood.join('')), '{"id":99,"name":"Here first"}'])
  })

  test('what --dry-run rejects is the same, and it creates nothing', async () => {
    const { content, rejected } = mixed(breakAs)
    user.write('mixed', Buffer.concat([Buffer.from(mark), content]))
    const { code, summary: told, err } = await user.import(['mixed', '--dry-run', '--output', 'json'])
    expect({ code, told }).toEqual({ code: 6, told: checked({ created: allGood.length, ...counted(rejected) }) })
    const places = lines(err)
      .slice(0, -1)
      .map((line) => JSON.parse(line))
    expect(places.map(({ line, error }) => [line, error])).toEqual(rejected.map(({ line, error }) => [line, error]))
    expect(await user.list()).toBe('{"id":99,"name":"Here first"}\n')
  })

  test('the first twenty are told of in text, and how many there are besides', async () => {
    const { content, rejected } = mixed(breakAs)
    user.write('mixed', Buffer.concat([Buffer.from(mark), content]))
    const { err } = await user.import(['mixed'])
    const told = rejected.slice(0, 20).map(({ line, message }) => `mixed:${line}: ${message}`)
    expect(err).toBe(
      complaints(
        [...told, `Rejected records that are not shown: ${rejected.length - 20}`],
        `${rejected.length} plants were rejected`,
        `${repeatsHint}${existsHint}${keepHint}`,
      ),
    )
  })
})

function checked({ created, ...counts }: { created: number; rejected: number; reasons: object }) {
  return { dryRun: true, created, updated: 0, skipped: 0, unknown: 0, ...counts }
}

describe('a rejects file', () => {
  test('imports when it is mended in place', async () => {
    user.write(
      'plants',
      '{"id":1,"name":"A"}\n{"id":2,"nmae":"B"}\r\nx{"id":3,"name":"C"}\n{"id":4,"name":"D"}\n{"id":"5","name":"E"}',
    )
    expect(await user.import(['plants', '--rejects', 'bad'])).toMatchObject({
      code: 6,
      summary: { created: 2, rejected: 3 },
    })
    expect(user.read('bad')).toBe('{"id":2,"nmae":"B"}\r\nx{"id":3,"name":"C"}\n{"id":"5","name":"E"}')
    user.write('bad', user.read('bad').replace('nmae', 'name').replace('x{', '{').replace('"5"', '5'))
    expect(await user.import(['bad', '--rejects', 'worse'])).toEqual(imported({ created: 3 }))
    expect([user.has('worse'), user.has('worse.reasons')]).toEqual([false, false])
    expect(await user.list()).toBe([1, 2, 3, 4, 5].map((id) => `{"id":${id},"name":"${'ABCDE'[id - 1]}"}\n`).join(''))
  })

  test('of several inputs has a line for each record, also of one without a line break', async () => {
    user.write('one', '{"id":1}')
    user.write('other', '{"id":2}\n')
    expect(await user.import(['one', 'other', '-', '--rejects', 'bad'], { stdin: '{"id":3}' })).toMatchObject({
      code: 6,
      summary: { rejected: 3 },
    })
    expect(user.read('bad')).toBe('{"id":1}\n{"id":2}\n{"id":3}')
    expect(user.reasons('bad').map(({ file, line }) => [file, line])).toEqual([
      ['one', 1],
      ['other', 1],
      ['stdin', 1],
    ])
  })

  test('leaves out a record of many MiB', async () => {
    const huge = `{"id":2,"name":"${'y'.repeat(9_000_000)}"}`
    user.write('plants', `{"id":1,"name":"A"}\n${huge}\r\n{"id":3}\n{"id":4,"name":"D"}\n`)
    expect(await user.import(['plants', '--rejects', 'bad'])).toMatchObject({
      code: 6,
      summary: { created: 2, reasons: { 413: 1, 422: 1 } },
    })
    expect(user.read('bad')).toBe('{"id":3}\n')
    expect(user.reasons('bad').map(({ line, error }) => [line, error])).toEqual([
      [2, 413],
      [3, 422],
    ])
  })

  test.each(['bad', 'bad.reasons'])('is not written over %s, nor is anything imported', async (name) => {
    user.write('plants', '{"id":1,"name":"A"}\n{"id":2}\n')
    user.write(name, 'mine\n')
    const { code, summary: told, err } = await user.import(['plants', '--rejects', 'bad'])
    expect({ code, told }).toEqual({ code: 2, told: undefined })
    expect(err).toContain(`${join(user.folder, name)} already exists, and would be overwritten`)
    expect(user.read(name)).toBe('mine\n')
    expect(await user.list()).toBe('')
  })

  test('is replaced by that of the next import, which removes it when nothing is rejected', async () => {
    user.write('plants', '{"id":1,"name":"A"}\n{"id":2}\n')
    const argv = ['plants', '--if-exists', 'same', '--rejects', 'bad']
    expect(await user.import(argv)).toMatchObject({ code: 6, summary: { created: 1 } })
    const [bad, reasons] = [user.read('bad'), user.read('bad.reasons')]
    expect(await user.import(argv)).toMatchObject({ code: 6, summary: { skipped: 1 } })
    expect([user.read('bad'), user.read('bad.reasons')]).toEqual([bad, reasons])
    user.write('plants', '{"id":2,"name":"B"}\n')
    expect(await user.import(argv)).toMatchObject({ code: 0 })
    expect([user.has('bad'), user.has('bad.reasons')]).toEqual([false, false])
  })

  test.each<[string, (user: Importing) => void]>([
    ['corrected', () => user.write('bad', '{"id":2,"name":"B"}\n')],
    ['replaced by another one', () => user.write('bad', 'mine\n')],
    [
      'given notes beside its reasons',
      () => user.write('bad.reasons', user.read('bad.reasons').replace('name', 'my name')),
    ],
  ])('is not replaced after it was %s', async (_, change) => {
    user.write('plants', '{"id":1,"name":"A"}\n{"id":2}\n')
    const argv = ['plants', '--if-exists', 'same', '--rejects', 'bad']
    expect(await user.import(argv)).toMatchObject({ code: 6 })
    change(user)
    const [bad, reasons] = [user.read('bad'), user.read('bad.reasons')]
    expect(await user.import(argv)).toEqual({
      ...{ code: 2, summary: undefined },
      err: `plants: ${join(user.folder, 'bad')} was changed since an import wrote it, and would be overwritten\n  Choose another file with --rejects, or remove it\n`,
    })
    expect([user.read('bad'), user.read('bad.reasons')]).toEqual([bad, reasons])
  })

  test.runIf(process.getuid?.() === 0).each(['bad', 'bad.reasons'])(
    'of another user is rejected: %s (needs root)',
    async (name) => {
      user.write('plants', '{"id":1,"name":"A"}\n{"id":2}\n')
      user.write(name, '')
      chownSync(join(user.folder, name), 65_534, 65_534)
      const { code, summary: told, err } = await user.import(['plants', '--rejects', 'bad'])
      expect({ code, told }).toEqual({ code: 2, told: undefined })
      expect(err).toContain(
        `${join(user.folder, name)} belongs to another user (uid 65534)\n  Choose another file with --`,
      )
      expect(['bad', 'bad.reasons'].filter((one) => user.has(one))).toEqual([name])
      expect(user.read(name)).toBe('')
    },
  )

  test('may be there when it is empty', async () => {
    user.write('bad', '')
    expect(await user.import(['--rejects', 'bad'], { stdin: '{"id":1,"name":"A"}\n{"id":2}\n' })).toMatchObject({
      code: 6,
    })
    expect(user.read('bad')).toBe('{"id":2}\n')
  })

  test.each([
    ['no/bad', 'there is no such directory'],
    ['folder', 'it is a directory'],
  ])('that cannot be made is told of before anything is created: %s', async (path, why) => {
    mkdirSync(join(user.folder, 'folder'))
    const { code, err } = await user.import(['--rejects', path], { stdin: '{"id":1,"name":"A"}\n' })
    expect({ code, told: err.includes(why) }).toEqual({ code: 74, told: true })
    expect(await user.list()).toBe('')
  })

  test('whose name was wrong can be named again', async () => {
    user.write('plants', '{"id":1,"name":"A"}\n{"id":2}\n')
    expect(await user.import(['plants', '--rejects', 'no/bad'])).toMatchObject({ code: 74 })
    expect(await user.import(['plants', '--rejects', 'bad'])).toMatchObject({
      code: 6,
      summary: { created: 1, rejected: 1 },
    })
  })

  test('that is the input is rejected', async () => {
    user.write('plants', '')
    expect(await user.import(['plants', '--rejects', 'plants'])).toMatchObject({ code: 2 })
    expect(user.has('plants')).toBe(true)
  })

  test('that is a device is written to, or rejected with words', async () => {
    symlinkSync('/dev/null', join(user.folder, 'null'))
    const { code } = await user.import(['--rejects', 'null'], { stdin: '{"id":1,"name":"A"}\n{"id":2}\n' })
    expect([2, 6, 74]).toContain(code)
  })
})

test.each(['{"id":2,"name":"B"', '{"id":2,"name":"B'])(
  'a carriage return is no part of a record: %s',
  async (record) => {
    const [unix, dos] = await Promise.all(
      ['\n', '\r\n'].map((end) => new Importing().import(['--format', 'ndjson'], { stdin: record + end })),
    )
    expect(dos).toEqual(unix)
  },
)

test.each([
  [limit - 1, 0],
  [limit, 0],
  [limit + 1, 1],
])('a line of %i bytes', async (length, rejected) => {
  const head = '{"id":1,"name":"'
  const record = `${head}${'x'.repeat(length - head.length - 2)}"}`
  for (const end of ['\n', '', '\n{"id":2,"name":"B"}\n']) {
    const fresh = new Importing()
    const { code, summary: told } = await fresh.import(['--format', 'ndjson'], { stdin: `${record}${end}` })
    const created = (end.length > 1 ? 2 : 1) - rejected
    expect({ code, told }).toEqual({
      code: rejected ? 6 : 0,
      told: summary({ created, rejected, reasons: rejected ? { 413: 1 } : {} }),
    })
  }
})

test('of ids that are twice in the input, also in several files, one record is to be kept', async () => {
  user.write('one', '{"id":1,"name":"A"}\n')
  user.write('other', '{"id":1,"name":"B"}\n')
  for (const flag of ['--dry-run', '--atomic']) {
    const { err } = await user.import(['one', 'other', flag])
    expect(err).toContain('\n  Of records with the same id, keep one. Fix ')
  }
})

test('a checkpoint of which nothing is created does not bind the next import to its options', async () => {
  user.write('plants', '{"id":1,"name":"A"}\n')
  const stop = new AbortController()
  stop.abort(new PlantsError('interrupted', 'Interrupted'))
  expect(await user.run(['import', 'plants', '--rejects', 'bad'], { signal: stop.signal })).toMatchObject({ code: 130 })
  expect(await user.import(['plants', '--if-exists', 'skip'])).toEqual(imported({ created: 1 }))
})

test('of which all are too large for the rejects file, that is said', async () => {
  user.write('plants', `{"id":1,"name":"${'x'.repeat(1_048_577)}"}\n`)
  const { summary: told, err } = await user.import(['plants', '--rejects', 'bad'])
  expect(told).not.toHaveProperty('rejects')
  expect(err).toContain('\n  Records larger than 1 MiB are not in the rejects file: correct the input\n')
  expect(user.has('bad')).toBe(false)
})
