import * as zlib from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import { Importer, nextChunk, plant } from '../../../helpers/imports.js'

let user: Importer

beforeEach(() => {
  user = new Importer()
})

const [fern, moss, rose] = [plant(1, 'Fern', 'shade'), plant(2, 'Moss'), plant(3, 'Rose', '')]
const three = fern + moss + rose
const [many, spaces, blank] = ['\n'.repeat(10_000), ' '.repeat(2000), ' \t\r\n'.repeat(1000)]

test('reads many blank lines, also compressed in parts, and stdin', async () => {
  const parts = [`\ufeff${many}${fern}${blank}`, `${moss.trim()}${spaces}\n${rose}${spaces}\n\r`]
  expect(await user.import(user.write('plants', parts.join('')))).toEqual({
    code: 0,
    created: 3,
    err: '',
  })
  expect([await user.list(), user.journals]).toEqual([three, []])
  user.write('packed', Buffer.concat(parts.map((part) => zlib.gzipSync(part))))
  for (const file of ['packed --restart --rejects bad', '-'])
    expect(await user.import(`${file} --if-exists same`, parts.join(''))).toEqual({
      code: 0,
      skipped: 3,
      err: '',
    })
  expect(user.has('bad')).toBe(false)
})

test('warns of compressed nothing', async () => {
  expect((await user.import('', zlib.gzipSync(''))).err).toBe(
    'plants: warning: The input contains no records\n',
  )
})

describe('damaged gzip', () => {
  const packed = zlib.gzipSync(three)
  const wrongSum = Buffer.from(packed)
  wrongSum.writeUInt8(0x55, packed.length - 8)

  test.each([
    ['cut to its first bytes', packed.subarray(0, 2)],
    ['with a wrong checksum', wrongSum],
  ])('%s is rejected', async (_, content) => {
    user.write('plants.gz', content)
    for (const name of ['plants.gz', 'stdin']) {
      const err = `plants: ${name} is damaged or incomplete\n  Fetch or compress it again\n`
      expect(await user.import(name.replace('stdin', '-'), content)).toEqual({ code: 2, err })
    }
    expect([user.has('data'), user.journals]).toEqual([false, []])
  })

  test('ends the import of a pipe in the middle, which says what is stored', async () => {
    const all = Array.from({ length: 100_000 }, (_, id) => plant(id, `Plant ${id * 7919}`)).join('')
    const whole = zlib.gzipSync(all)
    const stdin = whole.subarray(0, whole.length * 0.9)
    const { code, out, err } = await user.run('import', { stdin })
    expect([code, err]).toEqual([2, expect.stringContaining('stdin is damaged or incomplete')])
    expect(JSON.parse(out).created).toBe((await user.list()).split('\n').length - 1)
  })
})

test.each([
  ['--map', ['', '=x', 'name=a,name=b', 'Name=x']],
  ['--delimiter', ['', '"', '\n', '7', '\u00a7']],
])('%s rejects %j', async (flag, values) => {
  for (const value of values)
    expect(await user.import([`${flag}=${value}`], fern)).toEqual({
      code: 2,
      err: expect.stringMatching(`^plants: ${flag} must `),
    })
  expect(user.has('data')).toBe(false)
})

test('the summary is text on a terminal, and groups digits', async () => {
  const stdin = Array.from(
    { length: 12_345 },
    (_, id) => `{"id":${id},"name":"x","f${id % 150}":1}\n`,
  ).join('')
  const { out, err } = await user.run('import', { stdin, terminals: ['stdout'] })
  expect(out).toBe('Read 12,345 plants: 12,345 created\n')
  const names = Array.from({ length: 20 }, (_, index) => `"f${index}"`).join(', ')
  expect(err).toBe(`plants: warning: ignored unknown fields ${names} and 130 more\n`)
})

test('the first twenty rejected records are shown, and the first twenty changes of a dry run', async () => {
  const { err } = await user.import('', '{"id":2,"name":2}\n'.repeat(21))
  expect(err.match(/stdin:/g)).toHaveLength(20)
  const stdin = Array.from({ length: 25 }, (_, id) => plant(id)).join('')
  const dry = await user.run('import --dry-run -o text', { stdin })
  expect(dry.out.match(/Would create Plant/g)).toHaveLength(20)
})

const largest = '9223372036854775807'

test('ids are exact, also of another field', async () => {
  const ids = ['-9223372036854775808', '9007199254740993', '922337203685477580.7e1']
  const stdin = ids.map((id) => `{"nr":${id},"name":"Fern"}\n`).join('')
  expect(await user.import('--map id=nr', stdin)).toEqual({ code: 0, created: 3, err: '' })
  expect(await user.list()).toBe(
    [...ids.slice(0, 2), largest].map((id) => plant(id, 'Fern')).join(''),
  )
})

test.each([
  [' name = CommonName , tag = Family ', '{"id":1,"CommonName":"Fern","Family":"x"}'],
  ['name=tag,tag=name', '{"id":1,"name":"x","tag":"Fern"}'],
  ['tag=__proto__', '{"id":1,"name":"Fern","__proto__":"x"}'],
  ['name=x,tag=x', '{"id":1,"x":"Fern"}', 'Fern'],
])('--map %s', async (map, record, tag = 'x') => {
  expect(await user.import(['--map', map], record)).toEqual({ code: 0, created: 1, err: '' })
  expect(await user.list()).toBe(plant(1, 'Fern', tag))
})

describe('--id-from', () => {
  test('numbers the plants of several inputs, up to the largest id', async () => {
    user.write('one', '{"name":"A"}\n\n')
    const flags = '--id-from=9223372036854775806'
    const result = await user.import(`one - ${flags}`, '{"name":"B"}\n{"name":"C"}\n')
    expect(result).toMatchObject({ code: 6, created: 2, rejected: { 422: 1 } })
    expect(await user.list()).toBe(plant('9223372036854775806', 'A') + plant(largest, 'B'))
  })

  test('keeps ids of plants, and corrects no wrong ones', async () => {
    const stdin =
      '{"name":"A"}\n{"id":10,"name":"B"}\n{"name":"C"}\n{"id":null,"name":"D"}\n{"id":"5","name":"E"}\n'
    expect(await user.import('--id-from=-1', stdin)).toMatchObject({
      created: 3,
      rejected: { 422: 2 },
    })
    expect(await user.list()).toBe(plant(-1, 'A') + plant(0, 'C') + plant(10, 'B'))
  })

  test('rejects a plant whose number another one has, also with --if-exists skip', async () => {
    await user.run('create --id 2 --name Z')
    const result = await user.import('--id-from 1 --if-exists skip', '{"name":"A"}\n{"name":"B"}\n')
    expect(result).toMatchObject({ code: 6, created: 1, rejected: { 409: 1 } })
    expect(await user.list()).toBe(plant(1, 'A') + plant(2, 'Z'))
  })
})

describe('--id-from next', () => {
  test.each(['', '--atomic', '--dry-run'])(
    'is the greatest id of the store plus 1 %s',
    async (flag) => {
      const stdin = '{"name":"A"}\n{"id":3,"name":"B"}\n{"name":"C"}\n'
      await user.run('create --id 7 --name Z')
      const isDry = flag === '--dry-run'
      const err = ''
      expect(await user.import(`--id-from next ${flag}`, stdin)).toMatchObject({
        code: 0,
        created: 3,
        err,
      })
      const all = [plant(3, 'B'), plant(7, 'Z'), plant(8, 'A'), plant(9, 'C')].join('')
      expect(await user.list()).toBe(isDry ? plant(7, 'Z') : all)
    },
  )

  test('updates the plants that have an id, and creates those that have none', async () => {
    await user.run('create --id 7 --name Z --tag old')
    const stdin =
      '{"name":"A"}\n{"id":7,"tag":"new"}\n{"id":3,"name":"B"}\n{"name":"C"}\n{"tag":"x"}\n'
    const result = await user.import('--id-from next --if-exists update', stdin)
    expect(result).toMatchObject({ code: 6, created: 3, updated: 1, rejected: { 422: 1 } })
    expect(await user.list()).toBe(
      plant(3, 'B') + plant(7, 'Z', 'new') + plant(8, 'A') + plant(9, 'C'),
    )
  })

  test('stays the same when the import is resumed', async () => {
    user.write('plants', `{"name":"A"}\nx\n${nextChunk}{"name":"B"}\n`)
    const args = 'plants --id-from next --max-errors 1'
    expect(await user.import(args)).toMatchObject({ created: 1, rejected: { 400: 1 } })
    await user.run('create --id 9 --name Z')
    expect(await user.import(args)).toMatchObject({ created: 2, rejected: { 400: 1 } })
    expect(await user.list()).toBe(plant(1, 'A') + plant(2, 'B') + plant(9, 'Z'))
  })

  test('is above all ids of the files, which keep theirs', async () => {
    user.write('plants.csv', 'id,name\n,A\n0007,B\n,C\n2,D\n')
    const { code, err } = await user.import('plants.csv --id-from next --if-exists skip')
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(await user.list()).toBe(plant(2, 'D') + plant(7, 'B') + plant(8, 'A') + plant(9, 'C'))
  })

  test('is not above the ids of stdin, which are rejected from the first number on', async () => {
    await user.run('create --id 7 --name Z')
    const stdin = `${plant(6, 'B')}${plant(8, 'C')}${plant(9, 'D')}{"name":"A"}\n`
    const { code, err } = await user.import('--id-from next', stdin)
    const why = (id: number) => `The id ${id} must be below 8, the first number`
    expect([code, err.split('\n').slice(0, 2)]).toEqual([
      6,
      [`plants: stdin:2: ${why(8)}`, `plants: stdin:3: ${why(9)}`],
    ])
    expect(await user.list()).toBe(plant(6, 'B') + plant(7, 'Z') + plant(8, 'A'))
  })

  test('is none after the largest id', async () => {
    await user.run(`create --id ${largest} --name Z`)
    const message = `No id is left: a plant has the largest one, ${largest}`
    const err = `plants: ${message}\n  Choose a number that no plant has\n`
    expect(await user.import('--id-from next', '{"name":"A"}\n')).toEqual({ code: 1, err })
  })
})
