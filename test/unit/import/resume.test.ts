import { renameSync, symlinkSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { beforeEach, describe, expect, test } from 'vitest'
import { buildPlantLine, ImportSandbox, nextChunk } from '../../helpers/sandbox/import-sandbox.js'
import type { RunOptions } from '../../helpers/sandbox/run.js'
import { queryFile } from '../../helpers/sandbox/sqlite-file.js'

// An interrupted import, which the same command resumes. `nextChunk` begins another chunk, and an
// import stops only between two chunks.

let sandbox: ImportSandbox

beforeEach(() => {
  sandbox = new ImportSandbox()
})

const resolvePath = (name: string) => join(sandbox.home, name)
const readCheckpoints = () => queryFile(sandbox.store, 'SELECT * FROM imports')
const resuming = expect.stringContaining('Resuming an interrupted import after ')

test('an import stops after the chunk that reaches --max-errors, and the same command resumes it', async () => {
  await sandbox.run('create --id 99 --name Q')
  const chunks = [
    ['1', '"x"', '2'],
    ['3', '4'],
    ['99', '5', '"y"'],
    ['6', '"z"'],
  ]
  sandbox.write(
    'plants',
    chunks.map((ids) => ids.map((id) => buildPlantLine(id, 'P')).join('')).join(nextChunk),
  )
  const command = 'plants --rejects bad --max-errors 1'
  for (const [created, rejected] of [
    [2, { 422: 1 }],
    [5, { 409: 1, 422: 2 }],
  ] as const)
    expect(await sandbox.import(command)).toMatchObject({ code: 6, created, rejected })
  const rejected = { 409: 1, 422: 3 }
  expect(await sandbox.import(command)).toMatchObject({
    code: 6,
    created: 6,
    rejected,
    err: resuming,
  })
  expect(sandbox.readRejected('bad').map(({ line }) => line)).toEqual([2, 8, 10, 13])
  expect(readCheckpoints()).toEqual([])
})

test('an import is resumed from a directory that is entered by a symbolic link', async () => {
  sandbox.write('plants', [1, '"x"', 2, '"y"'].map((id) => buildPlantLine(id, 'P')).join(nextChunk))
  expect(await sandbox.import('plants --max-errors 1 --rejects bad')).toMatchObject({ created: 1 })
  symlinkSync('.', resolvePath('link'))
  const resumed = await sandbox.import('link/plants --max-errors 9 --rejects link/bad')
  expect(resumed).toMatchObject({ code: 6, created: 2, rejected: { 422: 2 } })
  expect(resumed.err).toMatch(/Resuming an interrupted import after \d plants\n/)
  expect(sandbox.readRejected('bad')).toHaveLength(2)
  expect(readCheckpoints()).toEqual([])
})

test('a resumed import generates the next ids for its second input, although the store has others', async () => {
  sandbox.write('one', '{"name":"A"}\n{"name":"B"}\n')
  sandbox.write('other', '{"name":3}\n')
  sandbox.write('last', '{"name":"D"}\n')
  const command = 'one other last --max-errors 1 --id-from next'
  expect(await sandbox.import(command)).toMatchObject({ created: 2, rejected: { 422: 1 } })
  await sandbox.run('create --id 9 --name Z')
  const rejected = { 422: 1 }
  expect(await sandbox.import(command)).toMatchObject({ created: 3, rejected, err: resuming })
  const stored = [
    buildPlantLine(1, 'A'),
    buildPlantLine(2, 'B'),
    buildPlantLine(3, 'D'),
    buildPlantLine(9, 'Z'),
  ]
  expect(await sandbox.list()).toBe(stored.join(''))
})

test('an interrupted import that generates ids is also found by the contents of its file', async () => {
  sandbox.write('list', `name\nA\nx,y\n${nextChunk}B\n`)
  const flags = '--format csv --id-from next --max-errors 1'
  expect(await sandbox.import(`list ${flags}`)).toMatchObject({ code: 6, created: 1 })
  renameSync(resolvePath('list'), resolvePath('moved'))
  for (const args of [`moved ${flags} --encoding latin1`, `moved moved ${flags}`])
    expect(await sandbox.import(args)).toMatchObject({ code: 2 })
  expect(await sandbox.import(`moved ${flags}`)).toMatchObject({ created: 2, err: resuming })
  expect(await sandbox.list()).toBe(buildPlantLine(1, 'A') + buildPlantLine(2, 'B'))
})

test('--restart for one file leaves the interrupted import of that file with another one', async () => {
  sandbox.write('one', '{"name":"A"}\n')
  sandbox.write('other', `{"name":1}\n${nextChunk}{"name":"B"}\n`)
  const flags = '--id-from next --max-errors 1'
  expect(await sandbox.import(`one other ${flags}`)).toMatchObject({ code: 6, created: 1 })
  const [interrupted] = readCheckpoints().filter(({ state }) => String(state).startsWith('{'))
  expect(await sandbox.import('one --id-from next --restart')).toMatchObject({ created: 1 })
  expect(readCheckpoints()).toContainEqual(interrupted)
  const hint = 'import each other file with --match name'
  const err = expect.stringContaining(hint)
  expect(await sandbox.import(`one other ${flags}`)).toMatchObject({ code: 2, err })
  expect(await sandbox.import('other --id-from next --match name')).toMatchObject({ created: 1 })
  expect(await sandbox.list()).toBe(
    buildPlantLine(1, 'A') + buildPlantLine(2, 'A') + buildPlantLine(3, 'B'),
  )
})

test('an import is not resumed with an option that finds another header', async () => {
  sandbox.write('plants.csv', `id,tag\nid,name\n1,A\nx,B\n${nextChunk}2,C\n`)
  expect(await sandbox.import('plants.csv --max-errors 1')).toMatchObject({ code: 6, created: 1 })
  expect(await sandbox.import('plants.csv --if-exists update')).toMatchObject({ code: 2 })
  expect(await sandbox.import('plants.csv')).toMatchObject({ created: 2, err: resuming })
})

test('an import that generates ids finds an unreadable input before it stores anything', async () => {
  sandbox.write('one', 'name\nA\n')
  sandbox.write('other', `name\nB\n${nextChunk}"C\n`)
  const command = 'one other --format csv --id-from 7'
  expect(await sandbox.import(command)).toMatchObject({ code: 2 })
  sandbox.write('other', 'name\nB\n"C"\n')
  expect(await sandbox.import(command)).toMatchObject({ code: 0, created: 3 })
})

test('an import prints its summary after its last commit, and no summary if the commit fails', async () => {
  sandbox.write('plants', buildPlantLine(1) + buildPlantLine(2))
  await sandbox.run('create --id 9 --name Z')
  const keepCheckpoints =
    "CREATE TRIGGER keep BEFORE DELETE ON imports BEGIN SELECT RAISE(ABORT, 'Kept'); END"
  queryFile(sandbox.store, keepCheckpoints)
  const { code, out, err } = await sandbox.run('import plants')
  expect([code, out]).toEqual([1, ''])
  expect(err).toContain('To resume, run the same command again')
  queryFile(sandbox.store, 'DROP TRIGGER keep')
  expect(await sandbox.import('plants')).toMatchObject({ code: 0, created: 2, err: resuming })
  expect(readCheckpoints()).toEqual([])
})

test('an import from stdin is not resumed', async () => {
  const stdin = `${buildPlantLine(1)}bad\n${nextChunk}${buildPlantLine(2)}`
  expect(await sandbox.import('--max-errors 1', stdin)).toMatchObject({ code: 6, created: 1 })
  const { err, ...counts } = await sandbox.import('', stdin)
  expect(counts).toEqual({ code: 6, created: 1, skipped: 1, rejected: { 400: 1 } })
  expect(err).not.toContain('Resuming')
  expect(readCheckpoints()).toEqual([])
})

test('no line of progress stays on the screen between rejected records', async () => {
  const stdin = `bad\n${buildPlantLine(1)}${nextChunk}bad\n${buildPlantLine(2)}`
  const terminals: RunOptions['terminals'] = ['stdout', 'stderr']
  let seconds = 0
  // Progress is drawn once a second, so this clock draws it each time.
  const now = () => 1000 * seconds++
  const line = 'import --format ndjson --no-color'
  const { err } = await sandbox.run(line, { stdin, now, terminals })
  const isProgress = /\d done/
  expect(err).toMatch(isProgress)
  // A carriage return begins a line again, so only the text after the last one stays.
  const lines = stripVTControlCharacters(err.replaceAll(/^.*\r/gm, '')).split('\n')
  // These are two rejected records, the sentence at the end, its hint, and an empty line.
  expect(lines).toHaveLength(5)
  expect(lines.filter((line) => isProgress.test(line))).toEqual([])
})

test('an import that broken syntax ends after a chunk says how it begins again', async () => {
  const start = `id,name\n1,Fern\n${nextChunk}2,`
  sandbox.write('list.csv', `${start}"Moss\n`)
  const hint =
    'Close it, or add --no-quotes if quotes are ordinary characters in this table. When you run ' +
    'the command again, add --restart. Plants that are stored unchanged are skipped'
  const result = await sandbox.import('list.csv')
  const err = expect.stringContaining(`A quote is not closed\n  ${hint}\n`)
  expect(result).toMatchObject({ code: 2, created: 1, err })
  sandbox.write('list.csv', `${start}"Moss"\n`)
  const second = await sandbox.import('list.csv --restart')
  expect(second).toMatchObject({ code: 0, created: 1, skipped: 1 })
})

describe('an interrupted import', () => {
  const copyHint =
    'Use the same options and files. To import changed files, copy them to other names, ' +
    'and add --match name --id-from next. Plants that are stored unchanged are skipped'
  const stored = [1, 2, 3, 4].map((id) => buildPlantLine(id)).join('')
  const text = stored.replace(buildPlantLine(3), `bad\n${nextChunk}${buildPlantLine(3)}`)
  const command = 'plants --max-errors 1'
  const interruptedError = {
    code: 2,
    err: expect.stringMatching(/^plants: This import was interrupted, .*--restart/s),
  }
  const restarted = { created: 2, skipped: 2, rejected: { 400: 1 } }

  beforeEach(async () => {
    sandbox.write('plants', text)
    expect(await sandbox.import(command)).toMatchObject({ code: 6, created: 2 })
  })

  test('is not resumed while its file is missing, or differs', async () => {
    renameSync(resolvePath('plants'), resolvePath('moved'))
    expect(await sandbox.import(command)).toMatchObject({ code: 2 })
    for (const changed of [text.replace('Plant 1', 'Moss 11'), text + buildPlantLine(5), '']) {
      sandbox.write('plants', changed)
      expect(await sandbox.import(command)).toEqual(interruptedError)
    }
    expect(await sandbox.list()).toBe(buildPlantLine(1) + buildPlantLine(2))
    expect(readCheckpoints()).toHaveLength(1)
  })

  test.each(['', '--rejects bad', '--if-exists update'])(
    'is resumed after its file was touched, with the flags "%s"',
    async (flags) => {
      utimesSync(resolvePath('plants'), 1, 1)
      expect(await sandbox.import(`${command} ${flags}`)).toMatchObject({
        created: 4,
        err: resuming,
      })
      expect(await sandbox.list()).toBe(stored)
    },
  )

  test.each(['--map tag=x', '--encoding latin1', '--atomic'])(
    'is not resumed with %s, and --restart begins it again',
    async (flag) => {
      expect(await sandbox.import(`plants ${flag}`)).toEqual(interruptedError)
      expect(await sandbox.import('plants --restart')).toMatchObject(restarted)
      expect(readCheckpoints()).toEqual([])
    },
  )

  test.each(['--no-quotes', '--delimiter ,', '--format csv', '--columns id,name'])(
    'of a table is not resumed with %s',
    async (flag) => {
      sandbox.write('list.csv', `id,name\n5,A\nx,B\n${nextChunk}6,C\n`)
      expect(await sandbox.import('list.csv --max-errors 1')).toMatchObject({ code: 6, created: 1 })
      expect(await sandbox.import(`list.csv ${flag}`)).toMatchObject({ code: 2 })
      expect(await sandbox.import('list.csv')).toMatchObject({ created: 2, err: resuming })
    },
  )

  test.each(['', ' --restart'])(
    'that --restart began is resumed with the flags "%s"',
    async (flag) => {
      const err = expect.not.stringContaining('Resuming')
      expect(await sandbox.import(`${command} --restart`)).toMatchObject({ skipped: 2, err })
      expect(await sandbox.import(command + flag)).toMatchObject({ ...restarted, err: resuming })
    },
  )

  test('has no hint to restart it where its plants would get other ids', async () => {
    const message = 'This import was interrupted, and --id-from has changed since'
    const err = `plants: ${message}\n  ${copyHint}\n`
    expect(await sandbox.import('plants --id-from 1')).toEqual({ code: 2, err })
  })

  test('that generates ids imports a changed file under another name, as its hint says', async () => {
    sandbox.write('list', `{"name":"Fern"}\nbad\n${nextChunk}{"name":"Ivy"}\n`)
    const command = 'list --id-from next'
    expect(await sandbox.import(`${command} --max-errors 1`)).toMatchObject({ created: 1 })
    const changedText = '{"name":"Fern"}\n{"name":"Moss"}\n{"name":"Ivy"}\n'
    sandbox.write('list', changedText)
    const message = 'This import was interrupted, and list has changed since'
    const err = `plants: ${message}\n  ${copyHint}\n`
    expect(await sandbox.import(command)).toEqual({ code: 2, err })
    sandbox.write('copy', changedText)
    const result = await sandbox.import('copy --match name --id-from next')
    expect(result).toMatchObject({ code: 0, created: 2, skipped: 1 })
  })

  test('that has stored nothing does not prevent an import with other options', async () => {
    sandbox.write('other.ndjson', `bad\n${nextChunk}{"name":"Fern"}\n`)
    expect(await sandbox.import('other.ndjson --max-errors 1')).toMatchObject({ code: 6 })
    const result = await sandbox.import('other.ndjson --id-from 100')
    expect(result).toMatchObject({ code: 6, created: 1, rejected: { 400: 1 } })
  })

  test('of another version of the program is not resumed, and --restart begins it again', async () => {
    queryFile(sandbox.store, `UPDATE imports SET state = '{"version":2}'`)
    const err = expect.stringContaining('another version')
    expect(await sandbox.import(command)).toEqual({ code: 2, err })
    expect(await sandbox.import('plants --restart')).toMatchObject(restarted)
  })
})
