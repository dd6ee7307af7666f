import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import type { RunOptions } from '../../helpers/run.js'
import { printed, refusal, World } from '../../helpers/world.js'

// What these commands print is in transcripts/plants.txt.

const onTerminal: RunOptions = { terminals: ['stdout', 'stderr'] }
const [moss, oak, fern] = [
  '{"id":1,"name":"Moss"}',
  '{"id":2,"name":"Oak","tag":"b"}',
  '{"id":3,"name":"Fern","tag":"b"}',
]
let user: World

beforeEach(() => {
  user = new World()
})

/** Creates plants, with ids from 1 on unless they have others. */
async function plant(...plants: object[]): Promise<void> {
  const stdin = plants
    .map((fields, index) => JSON.stringify({ id: index + 1, ...fields }))
    .join('\n')
  expect(await user.run('import --if-exists update', { stdin })).toMatchObject({ code: 0 })
}

describe('a table', () => {
  test('is aligned, also if its first page holds a single plant', async () => {
    await plant(
      ...Array.from({ length: 10_000 }, (_, index) => ({
        id: index + 100,
        name: `Plant ${index + 100}`,
      })),
    )
    expect(
      (await user.run(['list', '--no-color', '--search', 'Plant 999', '--limit', '3'], onTerminal))
        .out,
    ).toBe('  ID  NAME        TAG\n 999  Plant 999\n9990  Plant 9990\n9991  Plant 9991\n')
  })

  test('has the widths of its first page, also where the names of a later one are short', async () => {
    await plant(
      { name: 'A long name', tag: 'b' },
      ...Array.from({ length: 2999 }, () => ({ name: 'Fern', tag: 'b' })),
    )
    const lines = (await user.run('list --output text')).out.trimEnd().split('\n')
    expect([lines[0], lines.at(-1)]).toEqual(['  ID  NAME         TAG', '3000  Fern         b'])
  })

  test('aligns wide characters, combining marks and emoji', async () => {
    await plant(
      { name: 'Fern', tag: 'shade' },
      { id: 20, name: '羊歯', tag: 'shade' },
      { id: 300, name: 'Fe\u0301 👩‍🌾', tag: 'x' },
    )
    const out = ' ID  NAME   TAG\n  1  Fern   shade\n 20  羊歯   shade\n300  Fe\u0301 👩‍🌾  x\n'
    expect(await user.run('list --no-color', onTerminal)).toMatchObject({ code: 0, out })
  })

  test('cuts what does not fit the terminal, but never an id', async () => {
    await plant(
      { name: '羊'.repeat(30), tag: 'short' },
      { name: 'Fern', tag: `${'long '.repeat(20)}tag` },
    )
    const out =
      'ID  NAME              TAG\n 1  羊羊羊羊羊羊羊…   short\n 2  Fern              long long long …\n'
    expect((await user.run('list --no-color', { ...onTerminal, columns: 38 })).out).toBe(out)
    expect((await user.run('list --output text')).out).toContain(`${'long '.repeat(20)}tag`)
  })
})

test('a list escapes what could drive a terminal, in every format', async () => {
  await plant({ name: '\u001b[31m' })
  for (const format of ['text', 'csv', 'tsv', 'json', 'ndjson'])
    expect((await user.run(`list --output ${format}`, onTerminal)).out).not.toContain('\u001b[31m')
})

test('a list is escaped if stdout is a terminal, whatever stderr is', async () => {
  await plant({ name: '\u001b[31m' })
  const print = async (terminal: 'stdout' | 'stderr') =>
    (await user.run('list -o csv', { terminals: [terminal] })).out
  expect([await print('stdout'), await print('stderr')]).toEqual([
    'id,name,tag\n1,\\u{1b}[31m,\n',
    'id,name,tag\n1,\u001b[31m,\n',
  ])
})

describe('a store that is missing', () => {
  const hint = 'Check the address. plants create creates a missing store'
  const readers = [
    'list',
    'count',
    'get 1',
    'delete 1 --yes',
    'delete --tag x --yes',
    'export',
    'backup x.bak',
  ]

  test.each([...readers, 'update 1 --no-tag', 'tokens list'])(
    'is an error of %s, if it was named, also where a file is empty',
    async (line) => {
      user.write('empty.db', '')
      for (const name of ['typo.db', 'empty.db'])
        expect(await user.run(line, { env: { PLANTS_STORE: `./${name}` } })).toEqual(
          refusal(`There is no store at ${join(user.home, name)}`, hint, 4),
        )
      expect([user.has('typo.db'), user.read('empty.db')]).toEqual([false, ''])
    },
  )
})

describe('ids on stdin', () => {
  beforeEach(() => plant({ name: 'Moss' }, { name: 'Oak', tag: 'b' }, { name: 'Fern', tag: 'b' }))

  test('end at line feeds alone: a name chooses nothing to delete', async () => {
    const stdin = '{"id":2,"name":"a\u20281\u20293\u0085"}\n'
    expect(await user.run('delete - --yes', { stdin })).toEqual(printed(`${oak}\n`))
  })

  test('may begin with a byte order mark, and need no line break at their end', async () => {
    expect(await user.run('get -', { stdin: '\ufeff3' })).toEqual(printed(`${fern}\n`))
  })

  test.each(['{"id":1', '{"id":9223372036854775808}', '{"name":"Fern"}'])(
    'change nothing if a line is neither an id nor a plant: %s',
    async (line) => {
      const message = `Line 3 of stdin is neither an id nor a plant with an id: ${JSON.stringify(line)}`
      const expected = refusal(
        message,
        'Pipe ids to stdin, one on each line, or plants: plants list --output ndjson',
      )
      expect(await user.run('delete - --yes', { stdin: `\ufeff1\n\n${line}` })).toEqual(expected)
      expect((await user.run('list')).out).toBe(`${moss}\n${oak}\n${fern}\n`)
    },
  )

  test.each([
    [
      'cut inside a character',
      Buffer.from('1\n\xc3', 'latin1'),
      'Stdin is not UTF-8',
      'Convert it',
    ],
    [
      'without an end',
      Buffer.alloc(7_000_000, '1'),
      'A line of stdin is too long for a plant',
      'Pipe ids',
    ],
  ])('are bounded: %s', async (_, stdin, message, hint) => {
    const { err, ...result } = await user.run('delete - --yes', { stdin })
    expect(result).toEqual({ code: 2, out: '' })
    expect(err).toContain(`plants: ${message}\n  ${hint}`)
    expect((await user.run('count')).out).toBe('3\n')
  })

  test('are not deleted without --yes, because nobody can be asked', async () => {
    const options: RunOptions = { stdin: '2\n3', terminals: ['stdin', 'stderr'] }
    expect(await user.run('delete - --no-color', options)).toEqual(
      refusal('Deleting requires confirmation', 'To delete without confirmation, add --yes'),
    )
    expect(await user.run('delete - --yes', options)).toEqual(printed(`${oak}\n${fern}\n`))
  })
})

test('delete takes thousands with a tag', async () => {
  await plant(...Array.from({ length: 2500 }, () => ({ name: 'Fern', tag: 'many' })))
  const { code, out, err } = await user.run('delete --tag many --yes')
  expect([code, out.split('\n').length - 1, err]).toEqual([
    0,
    2500,
    'plants: Deleted 2,500 plants\n',
  ])
})

test('a table says that there are more plants, and how to go on', async () => {
  await plant({ name: 'Moss' }, { name: 'Oak' }, { name: 'Fern' })
  const errOf = async (line: string) =>
    (await user.run(`${line} --no-color`, { ...onTerminal, columns: 200 })).err
  expect(await errOf('list --limit 2')).toBe('plants: For more plants: --after 2\n')
  expect(await errOf('list --limit 1 --desc')).toBe('plants: For more plants: --after 3\n')
  expect(await errOf('list --limit 2 --sort name')).toBe(
    'plants: For more plants, leave out --limit\n',
  )
  expect(await errOf('list --limit 3')).toBe('')
  expect(await user.run('list --limit 1')).toEqual(printed(`${moss}\n`))
})

test('an empty table says what a filter is', async () => {
  expect((await user.run('list --no-color', onTerminal)).err).toContain('There is no store at')
  await plant({ name: 'Fern', tag: 'Shade' })
  const none = 'plants: No plants match. A tag is matched in its case, --search in any\n'
  for (const filter of ['--tag shade', '--search xylem'])
    expect((await user.run(`list --no-color ${filter}`, onTerminal)).err).toBe(none)
  await user.run('delete 1 --yes')
  expect((await user.run('list --no-color', onTerminal)).err).toBe('plants: No plants\n')
})
