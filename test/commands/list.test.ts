import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import type { RunOptions } from '../helpers/sandbox/run.js'
import { parseObjects, Sandbox, toJsonResult, toTextResult } from '../helpers/sandbox/sandbox.js'
import { insertPlants } from '../helpers/sandbox/sqlite-file.js'

// What these commands print is in transcripts/plants.txt, and how a table is laid out in
// unit/output/text-table.test.ts.

const onTerminal: RunOptions = { terminals: ['stdout', 'stderr'] }
const oak = '{"id":2,"name":"Oak","tag":"b"}\n'
const fern = '{"id":3,"name":"Fern","tag":"b"}\n'
let user: Sandbox

beforeEach(() => {
  user = new Sandbox()
})

/** Creates plants, with ids from 1 on unless they have others. */
async function plant(...plants: object[]): Promise<void> {
  const stdin = JSON.stringify(plants.map((fields, index) => ({ id: index + 1, ...fields })))
  expect(await user.run('import --if-exists update', { stdin })).toMatchObject({ code: 0 })
}

test('list --after selects the plants that its help describes, with --sort and --desc, too', async () => {
  await plant({ name: 'b' }, { name: 'a' }, { name: 'c' })
  const listIds = async (command: string) =>
    parseObjects((await user.run(command)).out).map(({ id }) => id)
  const { out } = await user.run('list --help')
  expect(out.replaceAll(/\s+/g, ' ')).toContain(
    'only plants with ids above this one or, in descending order of ids, below it',
  )
  expect(await listIds('list --after 2')).toEqual([3])
  expect(await listIds('list --after 2 --sort name --desc')).toEqual([3])
  expect(await listIds('list --after 2 --desc')).toEqual([1])
  expect(await listIds('list --after 2 --sort id --desc')).toEqual([1])
})

test('a table has the widths of its first page, also if that is a single plant', async () => {
  await plant({ name: 'A long name', tag: 'b' })
  insertPlants(user.store, 10_000)
  const search = ['list', '--no-color', '--search', 'Plant 999', '--limit', '3']
  expect((await user.run(search, onTerminal)).out).toBe(
    '  ID  NAME        TAG\n 999  Plant 999\n9990  Plant 9990\n9991  Plant 9991\n',
  )
  const lines = (await user.run('list --output text --limit 3000')).out.trimEnd().split('\n')
  expect([lines[0], lines[1], lines.at(-1)]).toEqual([
    ...['  ID  NAME         TAG', '   1  A long name  b', '3000  Plant 3000'],
  ])
})

test.each([
  ...['list', 'count', 'get 1', 'delete 1 --yes', 'delete --tag x --yes', 'export', 'backup x.bak'],
  ...['update 1 --no-tag', 'tokens list'],
])('plants %s fails if the named store is missing or an empty file', async (line) => {
  user.write('empty.db', '')
  for (const name of ['typo.db', 'empty.db']) {
    const err = expect.stringContaining(`no store at ${join(user.home, name)}\n`)
    const result = await user.run(line, { env: { PLANTS_STORE: `./${name}` } })
    expect(result).toEqual({ code: 4, out: '', err })
  }
  expect([user.has('typo.db'), user.read('empty.db')]).toEqual([false, ''])
})

describe('ids on stdin', () => {
  beforeEach(() => plant({ name: 'Moss' }, { name: 'Oak', tag: 'b' }, { name: 'Fern', tag: 'b' }))

  test('end at line feeds only, so that a name with other line breaks selects no plant to delete', async () => {
    const stdin = '{"id":2,"name":"a\u20281\u20293\u0085"}\n'
    expect(await user.run('delete - --yes', { stdin })).toEqual(toTextResult(oak))
  })

  test('may be empty or /dev/null, which selects nothing', async () => {
    for (const line of ['get -', 'delete - --yes', 'update - --tag x'])
      for (const stdin of [{}, { stdin: '' }])
        expect(await user.run(line, stdin)).toEqual(toJsonResult())
    expect((await user.run('import -')).code).toBe(0)
  })

  test.each([
    ['is cut', '{"id":1'],
    ['has too large an id', '{"id":9223372036854775808}'],
    ['has no id', '{"name":"Fern"}'],
    ['is not UTF-8', Buffer.from('\xc3', 'latin1')],
    ['never ends', Buffer.alloc(7_000_000, '1')],
  ])('change nothing if a line %s', async (_, line) => {
    const stdin = Buffer.concat([Buffer.from('\ufeff1\n\n'), Buffer.from(line)])
    const err = expect.stringMatching(/^plants: .*stdin/i)
    expect(await user.run('delete - --yes', { stdin })).toEqual({ code: 2, out: '', err })
    expect((await user.run('count')).out).toBe('3\n')
  })

  test('are not deleted without --yes, because nobody can be asked', async () => {
    const options: RunOptions = { stdin: '\ufeff2\n3', terminals: ['stdin', 'stderr'] }
    expect(await user.run('delete -', options)).toMatchObject({ code: 2, out: '' })
    const onTerminal: RunOptions = { stdin: '2', terminals: ['stdin', 'stdout', 'stderr'] }
    const err = expect.stringContaining('Deleting plants requires confirmation')
    expect(await user.run('delete -', onTerminal)).toEqual({ code: 2, out: '', err })
    expect(await user.run('delete - --yes', options)).toEqual(toTextResult(oak + fern))
  })
})

test('a line of stdin that is longer than a plant can be deletes nothing', async () => {
  await plant({ name: 'Fern' })
  const { code, err } = await user.run('delete - --yes', { stdin: ' '.repeat(6_291_457) })
  expect([code, err]).toEqual([2, expect.stringContaining('longer than a plant can be')])
  expect((await user.run('count')).out).toBe('1\n')
})
