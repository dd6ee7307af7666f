import { chmodSync, copyFileSync, renameSync, rmSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { gzipSync } from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import { run } from '../../../src/cli/program/run.js'
import { buildPlantLine, ImportSandbox, nextChunk } from '../../helpers/sandbox/import-sandbox.js'
import { CapturedOutput, createIo, type RunOptions } from '../../helpers/sandbox/run.js'
import { isWindows, readMode } from '../../helpers/sandbox/sandbox.js'
import { queryFile } from '../../helpers/sandbox/sqlite-file.js'

let user: ImportSandbox

beforeEach(() => {
  user = new ImportSandbox()
})

const pathOf = (name: string) => join(user.home, name)
const checkpoints = () => queryFile(user.store, 'SELECT * FROM imports')
const resuming = expect.stringContaining('Resuming an interrupted import after ')

test('an import stops after the chunk with --max-errors records, and the same command resumes', async () => {
  await user.run('create --id 99 --name Q')
  const chunks = [
    ['1', '"x"', '2'],
    ['3', '4'],
    ['99', '5', '"y"'],
    ['6', '"z"'],
  ]
  user.write(
    'plants',
    chunks.map((ids) => ids.map((id) => buildPlantLine(id, 'P')).join('')).join(nextChunk),
  )
  const command = 'plants --rejects bad --max-errors 1'
  for (const [created, rejected] of [
    [2, { 422: 1 }],
    [5, { 409: 1, 422: 2 }],
  ] as const)
    expect(await user.import(command)).toMatchObject({ code: 6, created, rejected })
  const rejected = { 409: 1, 422: 3 }
  expect(await user.import(command)).toMatchObject({ code: 6, created: 6, rejected, err: resuming })
  expect(user.readRejected('bad').map(({ line }) => line)).toEqual([2, 8, 10, 13])
  expect(checkpoints()).toEqual([])
})

test('numbers go on in the second input, whatever the store has by then', async () => {
  user.write('one', '{"name":"A"}\n{"name":"B"}\n')
  user.write('other', '{"name":3}\n')
  user.write('last', '{"name":"D"}\n')
  const command = 'one other last --max-errors 1 --id-from next'
  expect(await user.import(command)).toMatchObject({ created: 2, rejected: { 422: 1 } })
  await user.run('create --id 9 --name Z')
  const rejected = { 422: 1 }
  expect(await user.import(command)).toMatchObject({ created: 3, rejected, err: resuming })
  const stored = [
    buildPlantLine(1, 'A'),
    buildPlantLine(2, 'B'),
    buildPlantLine(3, 'D'),
    buildPlantLine(9, 'Z'),
  ]
  expect(await user.list()).toBe(stored.join(''))
})

test('an interrupted import that numbers is found by the contents of a file, too', async () => {
  user.write('list', `name\nA\nx,y\n${nextChunk}B\n`)
  const flags = '--format csv --id-from next --max-errors 1'
  expect(await user.import(`list ${flags}`)).toMatchObject({ code: 6, created: 1 })
  renameSync(pathOf('list'), pathOf('moved'))
  for (const other of [`moved ${flags} --encoding latin1`, `moved moved ${flags}`])
    expect(await user.import(other)).toMatchObject({ code: 2 })
  expect(await user.import(`moved ${flags}`)).toMatchObject({ created: 2, err: resuming })
  expect(await user.list()).toBe(buildPlantLine(1, 'A') + buildPlantLine(2, 'B'))
})

test('--restart of a file leaves the interrupted import of others with it', async () => {
  user.write('one', '{"name":"A"}\n')
  user.write('other', `{"name":1}\n${nextChunk}{"name":"B"}\n`)
  const flags = '--id-from next --max-errors 1'
  expect(await user.import(`one other ${flags}`)).toMatchObject({ code: 6, created: 1 })
  const [before] = checkpoints().filter(({ state }) => String(state).startsWith('{'))
  expect(await user.import('one --id-from next --restart')).toMatchObject({ created: 1 })
  expect(checkpoints()).toContainEqual(before)
  const hint = 'import each other file with --match name'
  const err = expect.stringContaining(hint)
  expect(await user.import(`one other ${flags}`)).toMatchObject({ code: 2, err })
  expect(await user.import('other --id-from next --match name')).toMatchObject({ created: 1 })
  expect(await user.list()).toBe(
    buildPlantLine(1, 'A') + buildPlantLine(2, 'A') + buildPlantLine(3, 'B'),
  )
})

test('with rules that find another header, it is another import', async () => {
  user.write('plants.csv', `id,tag\nid,name\n1,A\nx,B\n${nextChunk}2,C\n`)
  expect(await user.import('plants.csv --max-errors 1')).toMatchObject({ code: 6, created: 1 })
  expect(await user.import('plants.csv --if-exists update')).toMatchObject({ code: 2 })
  expect(await user.import('plants.csv')).toMatchObject({ created: 2, err: resuming })
})

test('an input that would end an import that numbers is read before anything is stored', async () => {
  user.write('one', 'name\nA\n')
  user.write('other', `name\nB\n${nextChunk}"C\n`)
  const command = 'one other --format csv --id-from 7'
  expect(await user.import(command)).toMatchObject({ code: 2 })
  user.write('other', 'name\nB\n"C"\n')
  expect(await user.import(command)).toMatchObject({ code: 0, created: 3 })
})

test('an import prints its summary after its last commit, and none if that fails', async () => {
  user.write('plants', buildPlantLine(1) + buildPlantLine(2))
  await user.run('create --id 9 --name Z')
  const keepCheckpoints =
    "CREATE TRIGGER keep BEFORE DELETE ON imports BEGIN SELECT RAISE(ABORT, 'Kept'); END"
  queryFile(user.store, keepCheckpoints)
  const { code, out, err } = await user.run('import plants')
  expect([code, out]).toEqual([1, ''])
  expect(err).toContain('To resume, run the same command again')
  queryFile(user.store, 'DROP TRIGGER keep')
  expect(await user.import('plants')).toMatchObject({ code: 0, created: 2, err: resuming })
  expect(checkpoints()).toEqual([])
})

test('stdin is not resumed', async () => {
  const stdin = `${buildPlantLine(1)}bad\n${nextChunk}${buildPlantLine(2)}`
  expect(await user.import('--max-errors 1', stdin)).toMatchObject({ code: 6, created: 1 })
  const { err, ...counts } = await user.import('', stdin)
  expect(counts).toEqual({ code: 6, created: 1, skipped: 1, rejected: { 400: 1 } })
  expect(err).not.toContain('Resuming')
  expect(checkpoints()).toEqual([])
})

test('no progress stays between what was rejected', async () => {
  const stdin = `bad\n${buildPlantLine(1)}${nextChunk}bad\n${buildPlantLine(2)}`
  const terminals: RunOptions['terminals'] = ['stdout', 'stderr']
  let seconds = 0
  const now = () => 1000 * seconds++ // so that progress is drawn each time
  const line = 'import --format ndjson --no-color'
  const { err } = await user.run(line, { stdin, now, terminals })
  const isProgress = /\d done/
  expect(err).toMatch(isProgress)
  // What stays of lines that are drawn over from their start.
  const lines = stripVTControlCharacters(err.replaceAll(/^.*\r/gm, '')).split('\n')
  expect(lines).toHaveLength(5) // with the sentence at the end, its hint, and nothing after it
  expect(lines.filter((line) => isProgress.test(line))).toEqual([])
})

describe('an import that was stopped', () => {
  const stored = [1, 2, 3, 4].map((id) => buildPlantLine(id)).join('')
  const text = stored.replace(buildPlantLine(3), `bad\n${nextChunk}${buildPlantLine(3)}`)
  const command = 'plants --max-errors 1'
  const refused = {
    code: 2,
    err: expect.stringMatching(/^plants: This import was interrupted, .*--restart/s),
  }
  const restarted = { created: 2, skipped: 2, rejected: { 400: 1 } }

  beforeEach(async () => {
    user.write('plants', text)
    expect(await user.import(command)).toMatchObject({ code: 6, created: 2 })
  })

  test('is refused while its file is away, or differs', async () => {
    renameSync(pathOf('plants'), pathOf('away'))
    expect(await user.import(command)).toMatchObject({ code: 2 })
    for (const other of [text.replace('Plant 1', 'Moss 11'), text + buildPlantLine(5), '']) {
      user.write('plants', other)
      expect(await user.import(command)).toEqual(refused)
    }
    expect(await user.list()).toBe(buildPlantLine(1) + buildPlantLine(2))
    expect(checkpoints()).toHaveLength(1)
  })

  test.each(['', '--rejects bad', '--if-exists update'])(
    'resumes after its file was touched, with: "%s"',
    async (flags) => {
      utimesSync(pathOf('plants'), 1, 1)
      expect(await user.import(`${command} ${flags}`)).toMatchObject({ created: 4, err: resuming })
      expect(await user.list()).toBe(stored)
    },
  )

  test.each(['--map tag=x', '--encoding latin1', '--atomic'])(
    'does not go on with %s, but begins again',
    async (flag) => {
      expect(await user.import(`plants ${flag}`)).toEqual(refused)
      expect(await user.import('plants --restart')).toMatchObject(restarted)
      expect(checkpoints()).toEqual([])
    },
  )

  test.each(['', ' --restart'])('that --restart began is resumed with: "%s"', async (flag) => {
    const err = expect.not.stringContaining('Resuming')
    expect(await user.import(`${command} --restart`)).toMatchObject({ skipped: 2, err })
    expect(await user.import(command + flag)).toMatchObject({ ...restarted, err: resuming })
  })

  test('is not to begin again where it would be numbered', async () => {
    const message = 'This import was interrupted, and --id-from has changed since'
    const err = `plants: ${message}\n  Use the same options and files\n`
    expect(await user.import('plants --id-from 1')).toEqual({ code: 2, err })
  })

  test('by another version is refused, and begins again with --restart', async () => {
    queryFile(user.store, `UPDATE imports SET state = '{"version":2}'`)
    const err = expect.stringContaining('another version')
    expect(await user.import(command)).toEqual({ code: 2, err })
    expect(await user.import('plants --restart')).toMatchObject(restarted)
  })
})

describe('the rejects file of an import that was stopped', () => {
  const command = 'plants --rejects rejects --max-errors 1'

  beforeEach(async () => {
    user.write('plants', `{bad 1}\n${buildPlantLine(1)}${nextChunk}{bad 2}\n${buildPlantLine(2)}`)
    expect(await user.import(command)).toMatchObject({ code: 6, created: 1 })
  })

  test('is not written over when it was corrected', async () => {
    const left = user.read('rejects')
    const isRefused = async () => {
      const content = user.read('rejects')
      const err = expect.stringContaining('rejects has changed since the import wrote it')
      expect(await user.import(command)).toMatchObject({ code: 2, err })
      expect(user.read('rejects')).toBe(content)
    }
    user.write('rejects', left.slice(0, -5))
    await isRefused()
    user.write('rejects', left.replace('bad 1', '{"id":7,"name":"Fern"}'))
    await isRefused()
    user.write('rejects', left)
    copyFileSync(pathOf('rejects'), pathOf('new'))
    renameSync(pathOf('new'), pathOf('rejects')) // another file
    await isRefused()
    const other = 'plants --rejects other --max-errors 1'
    const err = expect.stringContaining(`. Its rejected records are in ${pathOf('rejects')}\n`)
    expect(await user.import(other)).toMatchObject({ created: 2, rejects: pathOf('other'), err })
    expect(user.readRejected('other')).toMatchObject([{ record: '{bad 2}' }])
  })

  test.each([
    [0, 'rejects'],
    [9, 'rejects'],
    [Infinity, 'rejects'],
    [9, 'other'],
  ])('has each record once, if a kill left %d bytes; then %s', async (length, path) => {
    const rows = user.read('rejects')
    const rejects = JSON.stringify({ path: pathOf('rejects'), length: 0, rows })
    const json = `json('${rejects.replaceAll("'", "''")}')`
    queryFile(
      user.store,
      `UPDATE imports SET state = json_set(state, '$.position.rejects', ${json})`,
    )
    if (length > 0) user.write('rejects', rows.slice(0, length))
    else rmSync(pathOf('rejects'))
    const result = { created: 2, rejected: { 400: 2 }, rejects: pathOf(path) }
    expect(await user.import(`plants --rejects ${path}`)).toMatchObject(result)
    const [first, second] = [{ record: '{bad 1}' }, { record: '{bad 2}' }]
    const isOther = path === 'other'
    expect(user.readRejected('rejects')).toMatchObject(isOther ? [first] : [first, second])
    expect(isOther ? user.readRejected(path) : [second]).toMatchObject([second])
  })

  test.skipIf(isWindows)('is for its owner alone when it goes on (needs modes)', async () => {
    chmodSync(pathOf('rejects'), 0o664)
    expect(await user.import(command)).toMatchObject({ created: 2 })
    expect(readMode(pathOf('rejects'))).toBe('600')
  })

  test('is not written over by --restart', async () => {
    const err = expect.stringContaining('rejects already exists')
    expect(await user.import(`${command} --restart`)).toEqual({ code: 2, err })
    rmSync(pathOf('rejects'))
    expect(await user.import('plants --rejects rejects --restart')).toMatchObject({
      created: 1,
      skipped: 1,
    })
    expect(user.readRejected('rejects')).toMatchObject([
      { record: '{bad 1}' },
      { record: '{bad 2}' },
    ])
  })
})

describe('a complete import that numbered its plants', () => {
  const refused = { code: 2, err: expect.stringMatching(/^plants: The same input was imported /) }

  test('is not repeated by chance', async () => {
    user.write('plants', '{"name":"A"}\n{"name":"B"}\n')
    const command = 'plants --id-from next'
    expect(await user.import(command)).toMatchObject({ code: 0, created: 2 })
    utimesSync(pathOf('plants'), 1, 1)
    copyFileSync(pathOf('plants'), pathOf('copy'))
    for (const again of [
      ...['', ' --rejects bad', ' --if-exists update', ' --atomic'].map((flags) => command + flags),
      'plants --id-from 7',
      'copy --id-from next --format ndjson',
    ])
      expect(await user.import(again)).toEqual(refused)
    expect(await user.import(`${command} --restart`)).toMatchObject({ code: 0, created: 2 })
    user.write('plants', '{"name":"C"}\n')
    expect(await user.import(command)).toMatchObject({ code: 0, created: 1 })
    const stored = ['A', 'B', 'A', 'B', 'C'].map((name, index) => buildPlantLine(index + 1, name))
    expect(await user.list()).toBe(stored.join(''))
  })

  test('is remembered by each of its files, packed or not', async () => {
    user.write('one.csv', 'name\nA\n')
    user.write('other.csv', 'name\nB\n')
    user.write('one.csv.gz', gzipSync('name\nA\n'))
    const flags = '--id-from next'
    expect(await user.import(`one.csv other.csv ${flags}`)).toMatchObject({ created: 2 })
    for (const files of ['other.csv one.csv', 'other.csv', 'one.csv.gz'])
      expect(await user.import(`${files} ${flags}`)).toEqual(refused)
  })

  test('is remembered with its plants, whatever becomes of its summary', async () => {
    const io = createIo({ cwd: user.home, env: user.env })
    const stdout = new CapturedOutput({}, 'stdout')
    stdout.write = () => Promise.reject(Object.assign(new Error('EPIPE'), { code: 'EPIPE' }))
    user.write('plants', '{"name":"A"}\n')
    const command = 'plants --id-from next --atomic'
    expect(await run(['import', ...command.split(' ')], { ...io, stdout })).toBe(0)
    expect(await user.import(command)).toEqual(refused)
    expect(await user.list()).toBe(buildPlantLine(1, 'A'))
  })

  test('with --atomic is remembered with what it creates, and only then', async () => {
    const command = 'plants --id-from next --atomic'
    user.write('plants', '{"name":"A"}\nbad\n')
    expect(await user.import(command)).toMatchObject({ code: 6, rejected: { 400: 1 } })
    expect(checkpoints()).toEqual([])
    user.write('plants', '{"name":"A"}\n')
    expect(await user.import(command)).toMatchObject({ code: 0, created: 1 })
    for (const again of [command, 'plants --id-from next'])
      expect(await user.import(again)).toEqual(refused)
  })

  test('by name is remembered, and may come again by name alone', async () => {
    user.write('plants', `${buildPlantLine(1, 'A')}{"name":"B"}\n`)
    const byName = 'plants --id-from next --match name'
    expect(await user.import(byName)).toMatchObject({ code: 0, created: 2 })
    expect(await user.import(byName)).toMatchObject({ code: 0, skipped: 2 })
    expect(await user.import('plants --id-from next')).toEqual(refused)
  })

  test('is not remembered if it has numbered none', async () => {
    user.write('plants', buildPlantLine(1, 'A'))
    expect(await user.import('plants --id-from next')).toMatchObject({ code: 0, created: 1 })
    expect(checkpoints()).toEqual([])
  })
})
