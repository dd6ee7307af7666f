import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { Hostile, json } from '../../helpers/hostile.js'
import { token } from '../../helpers/http-store.js'
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

test('--search takes at most 200 characters', async () => {
  await plant({ name: 'Fern' })
  expect(await user.run(['list', '--search', '🌿'.repeat(200)])).toEqual(printed(''))
  const message = '--search must have at most 200 characters, but has 201'
  expect(await user.run(['count', '--search', 'x'.repeat(201)])).toEqual(
    refusal(message, 'Search for a part of it'),
  )
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

  test('may begin with a byte order mark, and need no line break at their end', async () => {
    expect(await user.run('get -', { stdin: '\ufeff3' })).toEqual(printed(`${fern}\n`))
  })

  test.each(['{"id":1', '{"id":9223372036854775808}', '{"name":"Fern"}'])(
    'change nothing if a line is neither an id nor a plant: %s',
    async (line) => {
      const message = `Line 3 of stdin is neither an id nor a plant with an id: ${JSON.stringify(line)}`
      const expected = refusal(message, 'For one plant on each line: plants list --output ndjson')
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
    [
      'too many',
      '1\n'.repeat(1_000_001),
      'Stdin has more than 1,000,000 ids',
      'For parts of that many: split -l 1000000',
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

test.each([
  ['3', 'For the plant with this id: plants get 3'],
  ['canina rosa', 'A search is one text, with its words in this order'],
  ['xylem', undefined],
])('a search for %s that finds nothing says what a search is', async (text, hint) => {
  await plant({ name: 'Rosa canina' })
  const err = `plants: No plants match${hint === undefined ? '' : `. ${hint}`}\n`
  expect(await user.run(['list', '--search', text], onTerminal)).toMatchObject({ code: 0, err })
})

describe('a tag that no plant has', () => {
  const garden = [
    { tag: 'Kräuter' },
    { tag: 'Kräuter' },
    { tag: 'Kräuter im Topf' },
    { name: 'kräuter' },
    { tag: 'Maß' },
  ]
  const none = 'plants: No plants match'

  beforeEach(() => plant(...garden.map((fields) => ({ name: 'Fern', ...fields }))))

  test.each([
    ['--tag kräuter', `${none}. There is a tag Kräuter\n`],
    ['--tag KRAUTER --limit 3', `${none}. There is a tag Kräuter\n`],
    ['--tag Topf', `${none}\n`],
    ['--tag Kräuter --search xyz', `${none}\n`],
    ['--tag=', `${none}\n`],
    [`--tag ${'x'.repeat(201)}`, `${none}\n`],
    ['--no-tag --search xyz', `${none}\n`],
  ])('is looked for in another case: list %s', async (options, err) => {
    expect(await user.run(`list --no-color ${options}`, { ...onTerminal, columns: 400 })).toEqual({
      code: 0,
      out: '',
      err,
    })
  })

  test('is looked for in one more request of a service, on a terminal alone', async () => {
    const nothing = json(200, [])
    const found = json(200, [{ id: 1, name: 'Fern', tag: 'Kräuter' }], {
      Link: '</plants?after=1>; rel="next"',
    })
    const list = async (options: RunOptions, second = found) => {
      const service = await Hostile.listen({ others: { 'GET /plants': [nothing, second] } })
      const world = { ...options, env: { PLANTS_TOKEN: token } }
      const { err } = await user.run(`list --tag kräuter --no-color --store ${service.url}`, world)
      return { err, lines: service.lines }
    }
    const first = 'GET /plants?limit=1000&tag=kr%C3%A4uter'
    expect(await list({})).toEqual({ err: '', lines: [first] })
    expect(await list(onTerminal)).toEqual({
      err: `${none}. There is a tag Kräuter\n`,
      lines: [first, 'GET /plants?limit=1000&search=kr%C3%A4uter'],
    })
    const failed = await list(onTerminal, json(400, { error: 400, message: 'No search' }))
    expect(failed.err).toBe(`${none}\n`)
  })
})
