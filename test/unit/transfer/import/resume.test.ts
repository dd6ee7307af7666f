import { copyFileSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { beforeEach, describe, expect, test } from 'vitest'
import { PlantsError } from '../../../../src/platform/errors.js'
import { countOf, grouped } from '../../../helpers/import.js'
import { Importer, nextChunk, plant } from '../../../helpers/imports.js'
import { query } from '../../../helpers/sqlite-file.js'

let user: Importer

beforeEach(() => {
  user = new Importer()
})

const sameOptions = 'Use the same options and files'
const changed = (hint: string) =>
  `plants: An interrupted import was begun with other options, or a file has changed since\n  ${hint}\n`
const beginAnew = `${sameOptions}, or begin anew with --restart: what is stored and equal is skipped`

test.each([
  ['NDJSON', (id: string) => `{"id":${id},"name":"P"}\n`, '', 1],
  ['CSV', (id: string) => `${id},P\n`, 'id,name\n', 2],
])(
  'an import of %s stops after the chunk with --max-errors records, and the same command resumes',
  async (_, write, first, line) => {
    await user.run('create --id 99 --name Q')
    const chunks = [
      ['1', '"x"', '2'],
      ['3', '4'],
      ['99', '5', '"y"'],
      ['6', '"z"'],
    ]
    user.write('plants', first + chunks.map((ids) => ids.map(write).join('')).join(nextChunk))
    const command = 'plants --rejects bad --max-errors 1'
    const stopped = 'and the import stopped there\n  To resume, run the same command again\n'
    for (const [created, rejected] of [
      [2, { 422: 1 }],
      [5, { 409: 1, 422: 2 }],
    ] as const) {
      const { err, ...counts } = await user.import(command)
      expect(counts).toMatchObject({ code: 6, created, rejected })
      expect(err).toContain(stopped)
    }
    const { err, ...counts } = await user.import(command)
    expect(counts).toMatchObject({ code: 6, created: 6, rejected: { 409: 1, 422: 3 } })
    expect(err).toContain('Resuming an interrupted import after 8 plants\n')
    const blank = nextChunk.length
    const lines = [1, 5 + 2 * blank, 7 + 2 * blank, 9 + 3 * blank].map((at) => at + line)
    expect(user.rejected('bad').map(({ line }) => line)).toEqual(lines)
    expect(query(user.store, 'SELECT * FROM imports')).toEqual([])
  },
)

test('numbers go on in the second input', async () => {
  await user.run('create --id 2 --name Z')
  user.write('one', '{"name":"A"}\n{"name":"B"}\n')
  user.write('other', '{"nmae":"C"}\n{"name":"D"}\n')
  const command = 'one other --max-errors 1 --id-from 1'
  expect(await user.import(command)).toMatchObject({ created: 1, rejected: { 409: 1 } })
  const { err, ...counts } = await user.import(command)
  expect(counts).toMatchObject({ created: 2, rejected: { 409: 1, 422: 1 } })
  expect(err).toContain('plants: other:1: ')
  expect(await user.list()).toBe(plant(1, 'A') + plant(2, 'Z') + plant(3, 'D'))
})

test.each(['--dry-run', '--atomic'])('%s stops, too, and creates nothing', async (flag) => {
  const stdin = `${plant(1)}bad\n${nextChunk}${plant(2)}`
  expect(await user.import(`${flag} --max-errors 1`, stdin)).toMatchObject({
    rejected: { 400: 1 },
  })
  expect(await user.list()).toBe('')
})

test('a checkpoint with nothing created binds to no options', async () => {
  user.write('plants', '[{"id":1,')
  expect(await user.import('plants --rejects bad')).toMatchObject({ code: 2 })
  expect(user.has('bad')).toBe(false)
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
  const resumed = `plants: Resuming an interrupted import after ${grouped(done)} plants\n`
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
  const text = stored.replace(plant(3), `bad\n${nextChunk}${plant(3)}`)
  const command = 'plants --max-errors 1'
  const restart = 'plants --restart'
  const again = { created: 2, skipped: 2, rejected: { 400: 1 } }

  beforeEach(async () => {
    user.write('plants', text)
    expect(await user.import(command)).toMatchObject({ code: 6, created: 2 })
  })

  test('is rejected while its file is away, or differs', async () => {
    const path = join(user.home, 'plants')
    renameSync(path, `${path}.away`)
    expect((await user.import(command)).code).toBe(2)
    for (const other of [text.replace('Plant 1', 'Moss 11'), text + plant(5), '']) {
      user.write('plants', other)
      expect(await user.import(command)).toEqual({ code: 2, err: changed(beginAnew) })
    }
    expect(await user.list()).toBe(plant(1) + plant(2))
    renameSync(`${path}.away`, path)
  })

  test.each(['', '--rejects bad', '--if-exists update'])(
    'resumes after its file was touched, with: "%s"',
    async (flags) => {
      utimesSync(join(user.home, 'plants'), 1, 1)
      expect((await user.import(`${command} ${flags}`)).err).toContain(
        'plants: Resuming an interrupted import after 3 plants\n',
      )
      expect(await user.list()).toBe(stored)
    },
  )

  test('begins again when the store was deleted', async () => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(user.store + suffix, { force: true })
    const { err, ...counts } = await user.import('plants')
    expect([counts, err.includes('Resuming')]).toEqual([
      { code: 6, created: 4, rejected: { 400: 1 } },
      false,
    ])
    expect(await user.list()).toBe(stored)
  })

  test.each([
    ['--map tag=x', beginAnew],
    ['--encoding latin1', beginAnew],
    ['--atomic', beginAnew],
    ['--id-from 1', sameOptions],
  ])('does not go on with %s, but begins again', async (flag, hint) => {
    expect(await user.import(`plants ${flag}`)).toEqual({ code: 2, err: changed(hint) })
    expect(await user.import(restart)).toMatchObject(again)
    expect(query(user.store, 'SELECT * FROM imports')).toEqual([])
  })

  test('by another version is refused, and begins again with --restart', async () => {
    query(user.store, `UPDATE imports SET state = '{"version":2}'`)
    const err = 'plants: Another version of plants began this import\n'
    expect(await user.import(command)).toEqual({ code: 2, err: expect.stringContaining(err) })
    expect(await user.import(restart)).toMatchObject(again)
    expect(query(user.store, 'SELECT * FROM imports')).toEqual([])
  })
})

describe('the rejects file of an import that was stopped', () => {
  const rows = ['{bad 1}\n', '{bad 2}\n']
  const command = 'plants --rejects rejects --max-errors 1'
  const path = () => join(user.home, 'rejects')

  beforeEach(async () => {
    user.write('plants', `${rows[0]}${plant(1)}${nextChunk}${rows[1]}${plant(2)}`)
    expect(await user.import(command)).toMatchObject({ code: 6, created: 1 })
  })

  const isRefused = async (by: string) => {
    const content = readFileSync(path(), 'utf8')
    const err = expect.stringMatching(
      /rejects is not as the import has left it.*\n {2}Choose another file/,
    )
    expect(await user.run(`import ${command}`), by).toMatchObject({ code: 2, err })
    expect(readFileSync(path(), 'utf8')).toBe(content)
  }

  test('is not written over when it was corrected', async () => {
    const left = readFileSync(path(), 'utf8')
    writeFileSync(path(), left.slice(0, -5))
    await isRefused('a shorter one')
    writeFileSync(path(), `${left.replace('bad 1', '{"id":7,"name":"Fern"}')}`)
    await isRefused('a longer one')
    writeFileSync(path(), left)
    copyFileSync(path(), `${path()}.new`)
    renameSync(`${path()}.new`, path())
    await isRefused('another file')
    expect(await user.import(command.replace('rejects r', 'rejects other-r'))).toMatchObject({
      created: 2,
    })
    expect(user.rejected('other-rejects')).toMatchObject([{ record: '{bad 2}' }])
  })

  test('has each record once, also if its last ones were written before a kill', async () => {
    const left = readFileSync(path(), 'utf8')
    const next = left.replaceAll('bad 1', 'bad 2').replace(':1,', `:${3 + nextChunk.length},`)
    writeFileSync(path(), left + next)
    expect(await user.import(command)).toMatchObject({ created: 2, rejected: { 400: 2 } })
    expect(user.rejected('rejects')).toMatchObject([{ record: '{bad 1}' }, { record: '{bad 2}' }])
  })
})

test('--restart overwrites no rejects file', async () => {
  user.write('plants', `${plant(1)}bad\n${nextChunk}${plant(2)}`)
  const command = 'plants --rejects bad'
  await user.import(`${command} --max-errors 1`)
  const err = expect.stringMatching(/bad already exists, and would be overwritten\n {2}Choose/)
  expect(await user.import(`${command} --restart`)).toEqual({ code: 2, err })
  rmSync(join(user.home, 'bad'))
  expect(await user.import(`${command} --restart`)).toMatchObject({ created: 1, skipped: 1 })
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

const imported = expect.stringMatching(
  /^plants: The same input was imported before, and its plants were numbered\n {2}For plants with new names alone, add --match name\n$/,
)

test('a complete import that numbered its plants is not repeated by chance', async () => {
  user.write('plants', '{"name":"A"}\n{"name":"B"}\n')
  const command = 'plants --id-from next'
  expect(await user.import(command)).toMatchObject({ code: 0, created: 2 })
  utimesSync(join(user.home, 'plants'), 1, 1)
  copyFileSync(join(user.home, 'plants'), join(user.home, 'copy'))
  for (const again of [
    ...['', ' --rejects bad', ' --if-exists update', ' --atomic'].map((flags) => command + flags),
    'plants --id-from 7',
    'copy --id-from next --format ndjson',
  ])
    expect(await user.import(again)).toEqual({ code: 2, err: imported })
  expect(await user.import(`${command} --restart`)).toMatchObject({ code: 0, created: 2 })
  user.write('plants', '{"name":"C"}\n')
  expect(await user.import(command)).toMatchObject({ code: 0, created: 1 })
  expect(await user.list()).toBe(
    ['A', 'B', 'A', 'B', 'C'].map((name, index) => plant(index + 1, name)).join(''),
  )
})

test('an import with --atomic is remembered with what it creates, and only then', async () => {
  const command = `${user.write('plants', '{"name":"A"}\n{"name":"B"}\nbad\n')} --id-from next --atomic`
  const err = expect.stringMatching(/: Not JSON[^\n]*\nplants: Rejected 1 plant\n/)
  expect(await user.import(command)).toMatchObject({ code: 6, err })
  expect(query(user.store, 'SELECT * FROM imports')).toEqual([])
  user.write('plants', '{"name":"A"}\n{"name":"B"}\n')
  expect(await user.import(command)).toMatchObject({ code: 0, created: 2 })
  for (const again of [command, command.replace(' --atomic', '')])
    expect(await user.import(again)).toEqual({ code: 2, err: imported })
})

test('a complete import that numbered nothing is not remembered', async () => {
  user.write('plants', plant(1))
  for (const created of [1, undefined]) {
    const { code, created: made } = await user.import('plants --id-from next --if-exists update')
    expect([code, made]).toEqual([0, created])
  }
  expect(query(user.store, 'SELECT * FROM imports')).toEqual([])
})

test('an import resumes behind an input without records', async () => {
  user.write('empty.csv', '')
  user.write('blank.csv', 'id,name\n\n')
  user.write('plants.csv', `id,name\n1,a\nx,b\n${nextChunk}2,c\n`)
  const command = 'empty.csv blank.csv plants.csv --max-errors 1'
  expect(await user.import(command)).toMatchObject({ code: 6, created: 1 })
  expect(await user.import(command)).toMatchObject({
    created: 2,
    err: expect.stringContaining('Resuming'),
  })
  expect(await user.list()).toBe(plant(1, 'a') + plant(2, 'c'))
})

test('a store remembers the newest hundred of the complete imports that have numbered plants', async () => {
  for (let list = 1; list <= 102; list += 1) {
    user.write('plants', `{"name":"Fern ${list}"}\n`)
    expect((await user.run('import plants --id-from next')).code).toBe(0)
  }
  expect(query(user.store, 'SELECT count(*) AS count FROM imports')).toEqual([{ count: 100 }])
})
