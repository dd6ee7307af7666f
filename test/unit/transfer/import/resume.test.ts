import { readFileSync, renameSync, rmSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { beforeEach, describe, expect, test } from 'vitest'
import { PlantsError } from '../../../../src/platform/errors.js'
import { check, fc } from '../../../helpers/fast-check.js'
import { countOf, grouped } from '../../../helpers/import.js'
import { Importer, plant } from '../../../helpers/imports.js'
import { query } from '../../../helpers/sqlite-file.js'

let user: Importer

beforeEach(() => {
  user = new Importer()
})

/** `!` is not JSON. */
const json = (id: string) => `{"id":${id === 'x' ? '"x"' : id},"name":"P"}`

/** The text of records with these ids, and the line of the first one; each is on a line of its own. */
const formats: Record<string, (ids: string[]) => [text: string, first: number]> = {
  ndjson: (ids) => [ids.map((id) => `${json(id)}\n`).join(''), 1],
  csv: (ids) => [
    ['id,name', ...ids.map((id) => (id === '!' ? '!,P"' : `${id},P`)), ''].join('\n'),
    2,
  ],
  array: (ids) => [`[${ids.map(json).join(',\n')}]`, 1],
}

test.each(Object.entries(formats))(
  'an import of %s stops after --max-errors records, and the same command resumes after them',
  async (format, write) => {
    const wrong = fc.constantFrom('x', '99', ...(/csv|ndjson/.test(format) ? '!' : ''))
    const record = fc.oneof(fc.integer({ min: 1, max: 6 }).map(String), wrong)
    const few = fc.array(record, { minLength: 1, maxLength: 10 })
    await check(10, [few, fc.integer({ min: 1, max: 3 })], async (some, limit) => {
      user = new Importer()
      await user.run('create --id 99 --name P')
      const ids = [...some, '1000']
      const [text, first] = write(ids)
      user.write('plants', text)
      const created = new Set<string>()
      const rejected: number[] = []
      let inRun = 0
      for (const [index, id] of ids.entries()) {
        if (/[x!]|99/.test(id) || created.has(id)) {
          rejected.push(index + first)
          inRun += 1
        } else created.add(id)
        const isLast = index === ids.length - 1
        if (inRun < limit && !isLast) continue
        const run = await user.import(`plants --rejects bad --max-errors ${limit}`)
        const counts = {
          created: run.created ?? 0,
          rejected: Object.values(run.rejected ?? {}).reduce((a, b) => a + b, 0),
        }
        expect(counts).toEqual({ created: created.size, rejected: rejected.length })
        const stopped =
          'and the import stopped there\n  To resume after them, run the same command again'
        expect(run.err.includes(stopped)).toBe(!isLast)
        inRun = 0
      }
      expect(user.journals).toEqual([])
      if (rejected.length > 0)
        expect(user.rejected('bad').map(({ line }) => line)).toEqual(rejected)
      const all = [...created, '99'].map(Number).toSorted((one, other) => one - other)
      expect(await user.list()).toBe(all.map((id) => plant(id, 'P')).join(''))
    })
  },
)

test('--max-errors in the last record ends the import', async () => {
  user.write('plants', `{"id":-1}\n${plant(1)}{"id":-1}\n`)
  for (const end of ['stopped there', 'Resuming'])
    expect((await user.import('plants --max-errors 2')).err).not.toContain(end)
})

test('assigned ids go on after a rejected record, in the second input', async () => {
  await user.run('create --id 2 --name Z')
  user.write('one', '{"name":"A"}\n{"name":"B"}\n')
  user.write('other', '{"nmae":"C"}\n{"name":"D"}\n')
  const command = 'one other --max-errors 1 --id-from 1'
  expect(await user.import(command)).toMatchObject({ created: 1, rejected: { 409: 1 } })
  expect((await user.import(command)).err).toContain('plants: other:1: ')
  expect(await user.import(command)).toMatchObject({ created: 2, rejected: { 409: 1, 422: 1 } })
  expect(await user.list()).toBe(plant(1, 'A') + plant(2, 'Z') + plant(3, 'D'))
})

test.each(['--dry-run', '--atomic'])('%s stops, too, and creates nothing', async (flag) => {
  const stdin = ['id,name', '1,A', '1,A', 'x,Bad', '2,A', 'x,Bad', ''].join('\n')
  expect(await user.import(`${flag} --max-errors 2`, stdin)).toMatchObject({
    rejected: { 409: 1, 422: 1 },
  })
  expect(await user.list()).toBe('')
})

test('--dry-run plans nothing beyond the record that stops it', async () => {
  const planned = (...ids: number[]) =>
    ids.map((id) => `{"dryRun":true,"id":${id},"after":{"name":"Plant ${id}"}}\n`).join('')
  const stdin = `${plant(1)}${plant(1)}${plant(2)}${plant(2)}${plant(3)}`
  for (const [limit, all] of [
    [1, planned(1)],
    [2, planned(1, 2)],
    [3, planned(1, 2, 3)],
  ]) {
    const { code, out } = await user.run(`import --dry-run --max-errors ${limit} -o ndjson`, {
      stdin,
    })
    const [, changes] = /^(.*\n|)\{"dryRun":true,"created"/s.exec(out) ?? []
    expect([code, changes]).toEqual([6, all])
  }
})

test('a checkpoint with nothing created binds to no flags', async () => {
  user.write('plants', '[{"id":1,')
  expect(await user.import('plants --rejects bad')).toMatchObject({ code: 2 })
  expect(query(user.store, 'SELECT * FROM imports')).toEqual([])
  user.write('plants', plant(1))
  expect(await user.import('plants')).toEqual({ code: 0, created: 1, err: '' })
})

test('an import that is interrupted in the middle of a file says how far it came, and draws over its progress', async () => {
  const all = Array.from({ length: 100_000 }, (_, id) => plant(id)).join('')
  user.write('plants', all)
  const stop = new AbortController()
  let seconds = 0
  const now = () => {
    if (countOf(user.store) > 0) stop.abort(new PlantsError('interrupted', 'Interrupted'))
    return 1000 * seconds++
  }
  const { code, out, err } = await user.run('import plants', {
    signal: stop.signal,
    now,
    terminals: ['stderr'],
  })
  const done = countOf(user.store)
  expect(done).toBeLessThan(100_000)
  const end = `plants: Interrupted after ${grouped(done)} plants\n  To resume, run the same command again\n`
  expect([code, out, screen(err)]).toEqual([130, '', end])
  expect(err).toContain(`${grouped(done)} done`)
  const resumed = `plants: Resuming an interrupted import: ${grouped(done)} plants are done\n`
  expect(await user.import('plants')).toEqual({ code: 0, created: 100_000, err: resumed })
  expect((await user.list()) === all).toBe(true)
})

test.each(['text', 'json'])(
  'no progress stays between what was rejected, with --output %s',
  async (output) => {
    const stdin = Array.from({ length: 50_000 }, (_, id) =>
      id % 10_000 === 0 ? 'bad\n' : plant(id),
    ).join('')
    let seconds = 0
    const now = () => 1000 * seconds++ // so that progress is drawn each time
    const { err } = await user.run(`import --format ndjson --no-color -o ${output}`, {
      stdin,
      now,
      terminals: ['stdout', 'stderr'],
    })
    const isProgress = /\d %|done/
    expect(isProgress.test(err)).toBe(output === 'text')
    const lines = screen(err).trimEnd().split('\n')
    expect(lines).toHaveLength(output === 'text' ? 7 : 6) // with the sentence at the end, and its hint
    expect(lines.filter((line) => isProgress.test(line))).toEqual([])
  },
)

/** What stays of lines that are drawn over from their start. */
function screen(text: string): string {
  return text
    .split('\n')
    .map((line) => stripVTControlCharacters(line.split('\r').at(-1) ?? ''))
    .join('\n')
}

describe('an import that was stopped', () => {
  const stored = [1, 2, 3, 4].map((id) => plant(id)).join('')
  const text = stored.replace(plant(3), `bad\n${plant(3)}`)
  const command = 'plants --max-errors 1'
  const restart = 'plants --restart --if-exists same'
  const again = { created: 2, skipped: 2, rejected: { 400: 1 } }

  beforeEach(async () => {
    user.write('plants', text)
    expect(await user.import(command)).toMatchObject({ code: 6, created: 2 })
  })

  test('is rejected while its file is away, or differs before', async () => {
    const path = join(user.home, 'plants')
    renameSync(path, `${path}.away`)
    expect((await user.import(command)).code).toBe(2)
    for (const changed of [
      text.replace('Plant 1', 'Moss 11'),
      text + plant(5),
      text.slice(0, 30),
      '',
    ]) {
      user.write('plants', changed)
      const hint = 'Use the file as it was, or add --restart --if-exists same'
      const err = `plants: plants is not the file that an earlier run has begun to import\n  ${hint}\n`
      expect(await user.import(command)).toEqual({ code: 2, err })
    }
    expect(await user.list()).toBe(plant(1) + plant(2))
    renameSync(`${path}.away`, path)
    utimesSync(path, 1, 1) // a new time alone does not matter
    expect((await user.import(command)).err).toContain(
      'plants: Resuming an interrupted import: 3 plants are done\n',
    )
    expect(await user.list()).toBe(stored)
  })

  test('begins again when the store was deleted', async () => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(user.store + suffix, { force: true })
    const { err, ...counts } = await user.import('plants')
    expect([counts, err.includes('Resuming')]).toEqual([
      { code: 6, created: 4, rejected: { 400: 1 } },
      false,
    ])
    expect(await user.list()).toBe(stored)
  })

  test.each(['--map tag=x', '--id-from 1', '--rejects bad', '--format json', '--encoding latin1'])(
    'does not go on with %s, but begins again',
    async (flag) => {
      const message = `This import was started without ${flag.split(' ')[0]}`
      const err = `plants: ${message}\n  Use the same options, or add --restart --if-exists same\n`
      expect(await user.import(`plants ${flag}`)).toEqual({ code: 2, err })
      expect(await user.import(restart)).toMatchObject(again)
      expect(user.journals).toEqual([])
    },
  )

  test('begins again with --restart after a damaged checkpoint', async () => {
    for (const state of ['{"version":2,', '{"version":3}', '']) {
      query(user.store, `UPDATE imports SET state = '${state}'`)
      const message = 'The checkpoint of this import is damaged'
      for (const [flag, how] of [
        ['', 'add --restart --if-exists same'],
        [' --if-exists update', 'add --restart'],
        [' --id-from next', 'delete what it created, and add --restart'],
      ]) {
        const err = `plants: ${message}\n  To begin again, ${how}\n`
        expect(await user.import(`${command}${flag}`)).toEqual({ code: 2, err })
      }
    }
    expect(await user.import(restart)).toMatchObject(again)
    expect(query(user.store, 'SELECT * FROM imports')).toEqual([])
  })
})

test('--restart writes the rejects file anew', async () => {
  user.write('plants', `${plant(1)}bad\n${plant(2)}`)
  await user.import('plants --rejects bad --max-errors 1')
  const { code, err } = await user.import('plants --rejects bad --restart --if-exists same')
  expect([code, err.includes('Resuming')]).toEqual([6, false])
  expect(user.rejected('bad')).toMatchObject([{ line: 2, record: 'bad' }])
  expect(await user.list()).toBe(plant(1) + plant(2))
})

test('--restart needs no rejects file of before, and overwrites no other one', async () => {
  user.write('plants', `${plant(1)}bad\n${plant(2)}`)
  const command = 'plants --rejects bad'
  await user.import(`${command} --max-errors 1`)
  const restart = `${command} --restart --if-exists same`
  for (const text of ['notes\n', 'x'.repeat(1000)]) {
    user.write('bad', text)
    const err = expect.stringMatching(
      /bad already exists, and would be overwritten\n {2}Choose another file .*, or remove it/,
    )
    expect(await user.import(restart)).toEqual({ code: 2, err })
  }
  rmSync(join(user.home, 'bad'))
  expect(await user.import(restart)).toMatchObject({ code: 6, created: 1 })
  expect(user.rejected('bad')).toMatchObject([{ line: 2, record: 'bad' }])
})

test('an import into a file needs no folder for its state', async () => {
  user.write('file', '')
  const env = { PLANTS_STATE_DIR: join(user.home, 'file') }
  expect(await user.run(`import ${user.write('plants', plant(1))}`, { env })).toMatchObject({
    code: 0,
    err: '',
  })
})

test('a complete import that numbered its plants is not repeated by chance', async () => {
  user.write('plants', '{"name":"A"}\n{"name":"B"}\n')
  const command = 'plants --id-from next'
  expect(await user.import(command)).toMatchObject({ code: 0, created: 2 })
  for (const flags of [
    '',
    ' --rejects bad',
    ' --if-exists same',
    ' --if-exists update',
    ' --atomic',
  ]) {
    const err =
      /^plants: plants was imported on \d{4}-\d\d-\d\d at \d\d:\d\d UTC: 2 plants created, those without an id got 1 to 2\n {2}Add --match name for plants with new names alone, or --restart to create all again\n$/
    expect(await user.import(command + flags)).toEqual({ code: 2, err: expect.stringMatching(err) })
  }
  expect(await user.import(`${command} --restart`)).toMatchObject({ code: 0, created: 2 })
  user.write('plants', '{"name":"C"}\n')
  expect(await user.import(command)).toMatchObject({ code: 0, created: 1 })
  expect(await user.list()).toBe(
    ['A', 'B', 'A', 'B', 'C'].map((name, index) => plant(index + 1, name)).join(''),
  )
})

test('an import with --atomic is remembered with what it creates, and only then', async () => {
  const command = `${user.write('plants', '{"name":"A"}\n{"name":"B"}\nbad\n')} --id-from next --atomic`
  const err = expect.stringMatching(
    /: Not JSON[^\n]*\nplants: 1 plant was rejected, so nothing was changed\n/,
  )
  expect(await user.import(command)).toMatchObject({ code: 6, err })
  expect(query(user.store, 'SELECT * FROM imports')).toEqual([])
  user.write('plants', '{"name":"A"}\n{"name":"B"}\n')
  expect(await user.import(command)).toMatchObject({ code: 0, created: 2 })
  for (const again of [command, command.replace(' --atomic', '')])
    expect(await user.import(again)).toEqual({
      code: 2,
      err: expect.stringContaining('2 plants created'),
    })
})

test('what a stopped import has stored is not stored again with --atomic', async () => {
  const command = `${user.write('plants', '{"name":"A"}\nbad\n{"name":"B"}\n')} --id-from next`
  expect(await user.import(`${command} --max-errors 1`)).toMatchObject({ code: 6, created: 1 })
  const err = expect.stringMatching(
    /^plants: This import was started without --atomic\n {2}Use the same options, or /,
  )
  expect(await user.import(`${command} --atomic`)).toEqual({ code: 2, err })
  expect(await user.import(command)).toMatchObject({ code: 6, created: 2 })
})

test('a complete import that numbered nothing is not remembered', async () => {
  user.write('plants', plant(1))
  for (const created of [1, undefined]) {
    const { code, created: made } = await user.import('plants --id-from next --if-exists update')
    expect([code, made]).toEqual([0, created])
  }
  expect(query(user.store, 'SELECT * FROM imports')).toEqual([])
})

test('an import that fails at once forgets no complete one', async () => {
  const list = user.write('plants', '{"name":"A"}\n')
  const command = `${list} --id-from next --rejects bad`
  expect(await user.import(command)).toMatchObject({ code: 0, created: 1 })
  user.write('plants', '[{')
  expect(await user.import(command)).toMatchObject({ code: 2 })
  user.write('plants', '{"name":"A"}\n')
  expect(await user.import(command)).toMatchObject({
    code: 2,
    err: expect.stringContaining('was imported on'),
  })
})

test('rejects that are not those of the interrupted import are left alone', async () => {
  user.write('plants.ndjson', `bad\n${plant(1)}bad\n`)
  const command = 'plants.ndjson --rejects rejects --max-errors 1'
  expect(await user.import(command)).toMatchObject({ code: 6 })
  user.write('rejects', 'x'.repeat(1000))
  const err = expect.stringContaining(
    'rejects is not the file that the interrupted import has written',
  )
  expect(await user.import(command)).toEqual({ code: 2, err })
  expect(readFileSync(join(user.home, 'rejects'), 'utf8')).toBe('x'.repeat(1000))
})

test('an import resumes behind an input without records', async () => {
  user.write('empty.csv', '')
  user.write('blank.csv', 'id,name\n\n')
  user.write('plants.csv', 'id,name\n1,a\nx,b\n2,c\n')
  const command = 'empty.csv blank.csv plants.csv --max-errors 1'
  expect(await user.import(command)).toMatchObject({ code: 6, created: 1 })
  expect(await user.import(command)).toMatchObject({
    created: 2,
    err: expect.stringContaining('Resuming'),
  })
  expect(await user.list()).toBe(plant(1, 'a') + plant(2, 'c'))
})
