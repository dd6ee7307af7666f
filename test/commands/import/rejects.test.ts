import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { run } from '../../../src/cli/program/run.js'
import {
  buildPlantLine,
  countPlants,
  fillChunk,
  ImportSandbox,
  parseCounts,
} from '../../helpers/sandbox/import-sandbox.js'
import { CapturedOutput, createIo } from '../../helpers/sandbox/run.js'
import { isWindows, parseObjects } from '../../helpers/sandbox/sandbox.js'

let user: ImportSandbox

beforeEach(() => {
  user = new ImportSandbox()
})

test.each([
  ['a rejected record', '{"id":1,"name":"A"}\n{"id":2}\n', 6],
  ['a document that is cut', `[${'{"id":1,"name":"A"},'.repeat(7000)}`, 2],
  ['plants only', '{"id":1,"name":"A"}\n', 0],
])(
  'an import of %s exits with its own code although its reader has left',
  async (_, text, code) => {
    user.write('plants', text)
    const stdout = new CapturedOutput({}, 'stdout')
    stdout.write = () => Promise.reject(Object.assign(new Error('EPIPE'), { code: 'EPIPE' }))
    const io = { ...createIo({ cwd: user.home, env: user.env }), stdout }
    expect(await run(['import', 'plants'], io)).toBe(code)
  },
)

test('the rejects file of several inputs keeps the order of their records', async () => {
  await user.run('create --id 99 --name First')
  const bad: [text: string, error: number, record: unknown][] = [
    ['x\r', 400, 'x'],
    [buildPlantLine(1, 'Twice').trim(), 409, { id: 1, name: 'Twice' }],
    ['{"id":1.5}', 422, { id: 1.5 }],
    [`{"id":40,"name":"${'x'.repeat(1_048_576)}"}\r`, 413, {}],
    [buildPlantLine(99, 'Taken').trim(), 409, { id: 99, name: 'Taken' }],
    ['[]\r', 422, '[]'],
  ]
  const lines = bad.map(([text], index) => `${buildPlantLine(index + 1)}${text}\n`)
  user.write('mixed', `\ufeff${lines.join('')} \t\r\n\n{}`)
  const expected = [
    ...bad.map(([, error, record], index) => ({ error, line: 2 * index + 2, record })),
    { error: 422, line: 15, record: {} },
    { error: 422, line: 1, record: { id: 3, name: 1 } },
  ]
  const result = await user.import('mixed - --rejects bad --output json', '{"id":3,"name":1}')
  const rejected = { 400: 1, 409: 2, 413: 1, 422: 4 }
  const rejects = join(user.home, 'bad')
  expect(result).toMatchObject({ code: 6, created: 6, rejected, rejects })
  const errors = parseObjects(result.err).map(({ error, line }) => ({ error, line }))
  expect(errors).toEqual([
    ...expected.map(({ error, line }) => ({ error, line })),
    { error: 422, line: undefined },
  ])
  const kept = user.readRejected('bad').map(({ line, record }) => ({ line, record }))
  expect(kept).toEqual(expected.map(({ line, record }) => ({ line, record })))
})

test('the rejects file has every rejected record as JSON, and stderr shows the first twenty', async () => {
  user.write('bad', '{"id":"x","name":"Fern"}\n'.repeat(25))
  const { err: json } = await user.run('import bad --output json')
  const lines = parseObjects(json).map(({ line }) => line)
  expect(lines).toEqual([...Array.from({ length: 25 }, (_, index) => index + 1), undefined])
  const { err: text } = await user.run('import bad --output text')
  expect(text.match(/^plants: bad:\d+: /gm)).toHaveLength(20)
  expect(text).toContain('Rejected 25 plants (the first 20 are above, and 5 more)\n')
})

test.each([
  ['headers', 'name,id\nC,y\n'],
  ['formats', '{"id":"y","name":"C"}\n'],
])('an import has no common rejects file for inputs with several %s', async (_, other) => {
  user.write('one', 'id,name\nx,A\n')
  user.write('other', other)
  const err = expect.stringContaining('plants: other has another header')
  expect(await user.import('one other --rejects bad')).toEqual({ code: 2, err })
  expect([user.has('bad'), user.has('data')]).toEqual([false, false])
})

describe('a rejects file', () => {
  test('is imported with the options of its input, such as --no-quotes and columns by number', async () => {
    const rows = ['Stock', 'Nr\tSorte\tBeet', 'x1\t"Rosa\t"a"', '2\tAcer\tb', '3\tIlex\tc\t"d']
    user.write('list.tsv', `${rows.join('\n')}\n`)
    const options = '--no-quotes --map id=1,name=2 --map tag=3'
    const first = await user.import(`list.tsv ${options} --rejects bad.csv`)
    expect(first).toMatchObject({ code: 6, created: 1, rejected: { 400: 1, 422: 1 } })
    const corrected = user.read('bad.csv').replace('\tx1\t', '\t1\t').replace('\t"""d"', '')
    user.write('bad.csv', corrected)
    const { code, created, err } = await user.import(`bad.csv ${options}`)
    expect({ code, created, err }).toEqual({ code: 0, created: 2, err: '' })
    const plants = [
      buildPlantLine(1, '"Rosa', '"a"'),
      buildPlantLine(2, 'Acer', 'b'),
      buildPlantLine(3, 'Ilex', 'c'),
    ]
    expect(await user.list()).toBe(plants.join(''))
  })

  test('is not kept if it is empty', async () => {
    expect(await user.import('--rejects bad', buildPlantLine(2))).toMatchObject({ code: 0 })
    expect(user.has('bad')).toBe(false)
  })

  test.skipIf(isWindows)('cannot be a link or a pipe (needs links)', async () => {
    user.write('plants', buildPlantLine('"x"'))
    user.write('notes', 'mine')
    symlinkSync('notes', join(user.home, 'link'))
    symlinkSync('nothing', join(user.home, 'dangling'))
    execFileSync('mkfifo', [join(user.home, 'pipe')])
    for (const name of ['link', 'dangling', 'pipe'])
      expect(await user.import(`plants --rejects ${name}`)).toMatchObject({ code: 2 })
    expect([user.read('notes'), user.has('nothing')]).toEqual(['mine', false])
  })

  test('is not a file that appears while the import runs, and no record is lost', async () => {
    user.write('plants', `{"id":1}\n${buildPlantLine(2)}`)
    // The clock is asked after each chunk.
    const now = () => {
      if (countPlants(user.store) > 0) user.write('bad', 'of another program')
      return performance.now()
    }
    const { code, out, err } = await user.run('import plants --rejects bad', { now })
    expect([code, parseCounts(out)]).toEqual([74, { created: 1, rejected: { 422: 1 } }])
    const [, rest] = /The rejected records are in (.*): rename it/.exec(err) ?? []
    expect(readFileSync(String(rest), 'utf8')).toContain('{"rejected_line":1,')
    expect(user.read('bad')).toBe('of another program')
  })

  test('has no name until the import ends', async () => {
    user.write('plants', `${fillChunk('{"id":1,"name":1}')}{"id":2}\n`)
    const names: string[][] = []
    const now = () => {
      names.push(readdirSync(user.home))
      return performance.now()
    }
    expect(await user.run('import plants --rejects bad', { now })).toMatchObject({ code: 6 })
    expect(names.some((files) => files.includes('bad'))).toBe(false)
    expect(names.some((files) => files.some((name) => name.endsWith('.tmp')))).toBe(true)
    expect(readdirSync(user.home).filter((name) => name.endsWith('.tmp'))).toEqual([])
  })

  test.each([
    ['a file', 'list.csv', false],
    ['stdin', '-', true],
  ])('of %s that ends in a quote has its name: $2', async (_, input, hasName) => {
    const text = `id,name\nx,X\n${'1,Fern\n'.repeat(40_000)}2,"Moss\n`
    user.write('list.csv', text)
    const result = await user.import(`${input} --format csv --rejects bad.csv`, text)
    expect(result).toMatchObject({ code: 2 })
    expect(user.has('bad.csv')).toBe(hasName)
  })

  test('keeps the store from being created if it exists', async () => {
    user.write('list.csv', 'id,name\n1,Fern\n')
    user.write('bad.csv', 'mine')
    const err = expect.stringContaining('bad.csv already exists')
    expect(await user.import('list.csv --rejects bad.csv')).toEqual({ code: 2, err })
    expect([user.read('bad.csv'), user.has('data')]).toEqual(['mine', false])
  })
})

test.each<[string, string, Record<string, string>]>([
  ['a table', 'id,name\nx,Moss 2\n1,Fern,é\n', { ',x,': ',2,', ',é': '' }],
  ['a table with a column without a name', 'id,name,\nx,Moss 2,in pot\n', { ',x,': ',2,' }],
  ['a table whose rows end with CR', 'id,name,note\rx,Moss 2,"a\r"\r', { ',x,': ',2,' }],
  ['NDJSON', '{"id":"2","name":"Moss 2"}\n', { '"2"': '2' }],
  ['an object over several lines', '{\n"id":"2",\n"name":"Moss 2"\n}', { '"2"': '2' }],
  ['a JSON array', '[{"id":"2",\n"name":"Moss 2"}]', { '"2"': '2' }],
])(
  'the import of a corrected rejects file changes only the plants of its records: %s',
  async (_, text, corrections) => {
    await user.import('', buildPlantLine(1, 'Fern', 'shade') + buildPlantLine(2, 'Moss', 'bog'))
    user.write('plants', text)
    expect(await user.import('plants --if-exists update --rejects bad')).toMatchObject({ code: 6 })
    let corrected = user.read('bad')
    for (const [wrong, right] of Object.entries(corrections))
      corrected = corrected.replace(wrong, right)
    user.write('bad', corrected)
    expect(await user.import('bad --if-exists update')).toMatchObject({ code: 0, updated: 1 })
    expect(await user.list()).toBe(
      buildPlantLine(1, 'Fern', 'shade') + buildPlantLine(2, 'Moss 2', 'bog'),
    )
  },
)

describe('an import says that a file has an id twice', () => {
  test.each([
    ['list.csv', 'id,name\n7,Fern\n8,Ash\n7,Elm\n7,Fern\n', 4],
    ['list.ndjson', [7, 8, 7].map((id, index) => buildPlantLine(id, `P${index}`)).join(''), 3],
  ])('if the plant of the first is stored: %s', async (file, content, line) => {
    user.write(file, content)
    const first = file.endsWith('csv') ? 2 : 1
    const { code, err } = await user.import(file)
    expect(code).toBe(6)
    expect(err).toBe(
      `plants: ${file}:${line}: The id 7 also occurs in line ${first}, with a different plant\n` +
        'plants: Rejected 1 plant\n' +
        '  Where an id occurs twice, give each plant an id of its own\n',
    )
  })

  test('but not if the id was taken before', async () => {
    await user.run('create --id 7 --name Oak')
    user.write('list.csv', 'id,name\n7,Fern\n7,Elm\n')
    const { err } = await user.import('list.csv')
    expect(err).not.toContain('too')
    expect(err.match(/A different plant with id 7 already exists/g)).toHaveLength(2)
  })
})

describe('a rejected line that was not JSON', () => {
  const line = '{"rejected_line":1,"rejected_reason":"Not JSON","rejected_text":"{}"}\n'
  const hint = 'Replace "rejected_text" and its text with the keys and values of the corrected line'

  test('has no plant in its text', async () => {
    user.write('bad', line)
    const { err } = await user.run('import bad --output text')
    expect(err).toBe(
      'plants: bad has no plants: its lines have only "rejected_text", the text of lines that were not JSON\n' +
        `  ${hint}\n`,
    )
  })

  test('is kept as it is if it is imported next to plants', async () => {
    user.write('bad', buildPlantLine(1) + line)
    const { err } = await user.run('import bad --rejects again --output text')
    expect(err).toContain(
      `plants: bad:2: The line has only the text of a line that was not JSON. ${hint}\n`,
    )
    expect(user.readRejected('again')).toMatchObject([{ line: 2, record: '{}' }])
  })
})

test('a rejected line that is not JSON is corrected in the rejects file as the hint says', async () => {
  user.write('list.ndjson', '{"id":1,"name":"Fern"}\n{"id":2,"name":"Moss"\n')
  const { err } = await user.run('import list.ndjson --rejects bad.ndjson --output text')
  expect(err).toContain(
    '/bad.ndjson, and import it with the same options and a new --rejects file\n',
  )
  expect(user.read('bad.ndjson')).toContain('"rejected_text":')
  const corrected = user.read('bad.ndjson').replace(/"rejected_text":.*}/, '"id":2,"name":"Moss"}')
  user.write('bad.ndjson', corrected)
  expect(await user.import('bad.ndjson --rejects new.ndjson')).toMatchObject({
    code: 0,
    created: 1,
  })
})

test('a dry run says that it does not write the rejects file', async () => {
  user.write('list.csv', 'id,name\nx,X\n')
  const { err } = await user.run('import list.csv --dry-run --rejects bad.csv --output text')
  expect(err).toContain(`plants: The dry run does not write ${join(user.home, 'bad.csv')}\n`)
  expect(existsSync(join(user.home, 'bad.csv'))).toBe(false)
})

test.each([
  ['-', '--rejects writes a text file', '--rejects rejected.csv'],
  ['bad.fods', '--rejects writes a text file', '--rejects rejected.csv'],
  ['bad.csv.gz', '--rejects writes a text file', '--rejects rejected.csv'],
  ['bad.json', 'The rejected records of this input are written as CSV', 'such as rejected.csv'],
  ['bad.tsv', 'The rejected records of this input are written as CSV', 'such as rejected.csv'],
])('the rejects file of a table cannot be %s', async (path, message, advice) => {
  user.write('list.csv', 'id,name\nx,X\n1,Fern\n')
  const { code, err } = await user.run(`import list.csv --rejects ${path} --output text`)
  expect([code, user.has('data')]).toEqual([2, false])
  expect(err).toContain(message)
  expect(err).toContain(`${advice}\n`)
})

test('the rejects file of JSON cannot be a table, and that of tabs can', async () => {
  user.write('list.ndjson', '{}\n')
  expect(await user.import('list.ndjson --rejects bad.csv')).toMatchObject({ code: 2 })
  user.write('list.tsv', 'id\tname\nx\tX\n')
  expect(await user.import('list.tsv --rejects bad.tsv')).toMatchObject({ code: 6 })
})

test('a record with several possible keys keeps them in the rejects file', async () => {
  const user = new ImportSandbox()
  await user.import(
    '--rejects bad.ndjson',
    '{"id":1,"name":"Fern"}\n{"Id":3,"iD":4,"name":"Ivy"}\n',
  )
  expect(user.read('bad.ndjson')).toContain('"Id":3,"iD":4,"name":"Ivy"}')
})
