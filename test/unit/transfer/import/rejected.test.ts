import { execFileSync } from 'node:child_process'
import { statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { Rejects } from '../../../../src/transfer/import/rejects.js'
import { Importer, nextChunk, plant } from '../../../helpers/imports.js'
import { query } from '../../../helpers/sqlite-file.js'
import { rows, workbook } from '../../../helpers/workbook.js'
import { isWindows, objectsOf } from '../../../helpers/world.js'

let user: Importer

beforeEach(() => {
  user = new Importer()
})

const limit = 1_048_576

test('records are rejected in their order', async () => {
  await user.run('create --id 99 --name First')
  const large = `{"id":40,"name":"${'x'.repeat(limit)}"}\r\n`
  const bad = ['x\r\n', plant(1, 'Twice'), '{"id":1.5}\n', large, plant(99, 'Taken'), '[]\r\n']
  const all = bad.flatMap((record, index) => [
    Buffer.from(plant(index + 1)),
    Buffer.from(record, 'latin1'),
  ])
  user.write('mixed', Buffer.concat([Buffer.from('\ufeff'), ...all, Buffer.from(' \t\r\n\n{}')]))
  const errors = [400, 409, 422, 413, 409, 422, 422]
  const expected = errors.map((error, index) => ({ error, line: index === 6 ? 15 : 2 * index + 2 }))
  const counts = { code: 6, created: 6, rejected: { 400: 1, 409: 2, 413: 1, 422: 3 } }
  const result = await user.import('mixed --rejects bad --output json')
  expect(result).toMatchObject({ ...counts, rejects: join(user.home, 'bad') })
  const hint = expect.stringMatching(/^Correct them in .*bad, and import that/)
  const end = { error: 422, message: 'Rejected 7 plants', hint }
  expect(objectsOf(result.err)).toEqual([
    ...expected.map((one) => expect.objectContaining(one)),
    end,
  ])
  const records = [
    'x',
    { id: 1, name: 'Twice' },
    { id: 1.5 },
    {},
    { id: 99, name: 'Taken' },
    '[]',
    {},
  ]
  const lines = expected.map(({ line }) => line)
  const kept = user.rejected('bad').map(({ line, record }) => ({ line, record }))
  expect(kept).toEqual(records.map((record, index) => ({ line: lines[index], record })))
  expect(user.rejected('bad')[1]?.reason).toBe('A different plant with id 1 already exists')
})

test('what a constraint of the user refuses is not called a repeated id', async () => {
  await user.run('create --id 2 --name Taken')
  query(user.store, 'CREATE UNIQUE INDEX names ON plants (name)')
  const input = plant(1, 'A') + plant(1, 'Taken')
  const { code } = await user.import('--if-exists update --rejects bad', input)
  expect({ code, reason: user.rejected('bad')[0]?.reason }).toEqual({
    code: 6,
    reason: expect.stringMatching(
      /^The store does not accept plant 1: UNIQUE constraint failed: plants\.name$/,
    ),
  })
})

describe('a rejects file', () => {
  test.each(isWindows ? ['plants/x'] : ['plants/x', 'x'.repeat(300)])(
    '%s cannot be made, and no plant is created',
    async (path) => {
      const { code, err } = await user.import(`${user.write('plants', plant(1))} --rejects ${path}`)
      expect([code, err]).toEqual([
        74,
        expect.stringMatching(/The rejects file .* could not be written: /),
      ])
      expect(await user.list()).toBe('')
    },
  )

  const input = `${plant(1, 'A')}{"id":2}\n`

  test('of several inputs has a line for each record', async () => {
    user.write('one', '{"id":1,"name":1}')
    user.write('other', '{"id":2,"name":1}\n')
    await user.import('one other - --rejects bad', '{"id":3,"name":1}')
    expect(user.rejected('bad').map(({ line, record }) => [line, record])).toEqual(
      [1, 2, 3].map((id) => [1, { id, name: 1 }]),
    )
  })

  test.skipIf(isWindows)(
    'is not kept if it is empty, and readable for its user alone (needs modes)',
    async () => {
      user.write('plants', plant(2))
      expect(await user.import('plants --rejects bad')).toMatchObject({ code: 0 })
      expect(user.has('bad')).toBe(false)
      await user.import('--rejects bad', input)
      expect(statSync(join(user.home, 'bad')).mode & 0o777).toBe(0o600)
    },
  )

  test('can have another name after a wrong one, which must be new', async () => {
    user.write('plants', input)
    user.write('empty', ' ')
    expect(await user.import('plants --rejects no/bad')).toMatchObject({ code: 74 })
    expect(await user.import('plants --rejects empty')).toMatchObject({ code: 2 })
    expect(await user.import('plants --rejects bad')).toMatchObject({
      code: 6,
      created: 1,
      rejected: { 422: 1 },
    })
    expect(user.rejected('bad')).toMatchObject([{ record: { id: 2 } }])
  })
})

test('a second run of an import leaves the rejects file of the first, although it is empty', () => {
  const path = join(user.home, 'bad')
  const first = new Rejects(path, 'import', undefined)
  first.publish()
  new Rejects(path, 'import', first.start).close(true)
  first.write(0, Buffer.from('a row\n'))
  first.close(false)
  expect(user.read('bad')).toBe('a row\n')
})

describe('a corrected rejects file changes only what its records name:', () => {
  test.each<[string, string, Record<string, string>]>([
    ['a table', 'id,name\nx,Moss 2\n1,Fern,é\n', { ',x,': ',2,', ',é': '' }],
    ['a table with a column without a name', 'id,name,\nx,Moss 2,in pot\n', { ',x,': ',2,' }],
    ['a table whose rows end with CR', 'id,name,note\rx,Moss 2,"a\r"\r', { ',x,': ',2,' }],
    ['NDJSON', '{"id":"2","name":"Moss 2"}\n', { '"2"': '2' }],
    ['an object over several lines', '{\n"id":"2",\n"name":"Moss 2"\n}', { '"2"': '2' }],
    ['a JSON array', '[{"id":"2",\n"name":"Moss 2"}]', { '"2"': '2' }],
  ])('%s', async (_, text, corrections) => {
    await user.import('', plant(1, 'Fern', 'shade') + plant(2, 'Moss', 'bog'))
    user.write('plants', text)
    expect(await user.import('plants --if-exists update --rejects bad')).toMatchObject({ code: 6 })
    let corrected = user.read('bad')
    for (const [wrong, right] of Object.entries(corrections))
      corrected = corrected.replace(wrong, right)
    user.write('bad', corrected)
    expect(await user.import('bad --if-exists update')).toMatchObject({ code: 0, updated: 1 })
    expect(await user.list()).toBe(plant(1, 'Fern', 'shade') + plant(2, 'Moss 2', 'bog'))
  })

  test('also as a spreadsheet saves it', async () => {
    user.write('plants', Buffer.from('x;M\xe4rz\n', 'latin1'))
    const options = '--encoding windows-1252 --columns id,name'
    await user.import(`plants ${options} --rejects bad.csv`)
    const [, record = ''] = user.read('bad.csv').trimEnd().split('\n')
    const [line, reason, , name] = record.split(';')
    user.write(
      'quoted.csv',
      `"rejected_line";"rejected_reason";"id";"name"\n${line};${reason};1;"${name}"\n`,
    )
    const cells = [line, reason, '2', name].map((cell) => cell ?? '')
    const header = ['rejected_line', 'rejected_reason', 'id', 'name']
    user.write('bad.xlsx', workbook({ sheets: { bad: rows(header, cells) } }))
    expect(await user.import(`quoted.csv ${options}`)).toMatchObject({ code: 0, created: 1 })
    expect(await user.import('bad.xlsx')).toMatchObject({ code: 0, created: 1 })
    expect(await user.list()).toBe(plant(1, 'März') + plant(2, 'März'))
  })

  test('again and again', async () => {
    user.write('plants', '{"id":"x","name":"A"}\n{}\n[]\n')
    await user.import('plants --rejects bad')
    await user.import('bad --rejects worse')
    const records = user.rejected('worse').map(({ line, record }) => [line, record])
    expect(records).toEqual([
      [1, { id: 'x', name: 'A' }],
      [2, {}],
      [3, {}],
    ])
  })
})

test('a rejects file is left alone once another process has taken over', async () => {
  user.write('plants', `{"id":1,"name":1}\n${nextChunk}{"id":2}\n`)
  let before: string | undefined
  // The clock is asked after each chunk.
  const now = () => {
    if (before === undefined && user.has('bad') && user.read('bad') !== '') {
      before = user.read('bad')
      query(user.store, "UPDATE imports SET state = 'another'")
    }
    return performance.now()
  }
  const err = expect.stringContaining('Another plants process is importing the same inputs')
  expect(await user.run('import plants --rejects bad', { now })).toMatchObject({ code: 4, err })
  expect(user.read('bad')).toBe(before)
})

test.skipIf(isWindows)('a rejects file is no link and no pipe (needs links)', async () => {
  user.write('plants', plant('"x"'))
  user.write('notes', 'mine')
  symlinkSync('notes', join(user.home, 'link'))
  symlinkSync('nothing', join(user.home, 'dangling'))
  execFileSync('mkfifo', [join(user.home, 'pipe')])
  for (const name of ['link', 'dangling', 'pipe'])
    expect(await user.import(`plants --rejects ${name}`)).toMatchObject({
      code: 2,
      err: expect.stringContaining('already exists, and would be overwritten\n'),
    })
  expect([user.read('notes'), user.has('nothing')]).toEqual(['mine', false])
})

test.each([
  ['--dry-run', 'one', '1'],
  ['--atomic', 'one other', '2'],
])('%s finds an id that comes again in %s', async (flag, inputs, line) => {
  user.write('one', plant(1) + plant(2) + (flag === '--dry-run' ? plant(2, 'Moss') : ''))
  user.write('other', plant(3) + plant(2, 'Moss'))
  const { err, ...counts } = await user.import(`${inputs} ${flag} --rejects bad`)
  expect(counts).toMatchObject({ code: 6, rejected: { 409: 1 } })
  expect(err).toMatch(/^plants: (?:one:3|other:2): [^\n]*\bid 2\b/)
  expect(await user.list()).toBe('')
  expect(user.has('bad')).toBe(line === '2') // a dry run writes nothing
})
