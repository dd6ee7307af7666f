import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { printed, refusal, World } from '../../helpers/world.js'

const onTerminal = { terminals: ['stdout', 'stderr'] as ('stdout' | 'stderr')[] }
let user: World

beforeEach(async () => {
  user = new World()
  const lines = ['{"id":3,"name":"fern","tag":"b"}', '{"id":1,"name":"Moss"}', '{"id":2,"name":"a,\\"b\\"","tag":""}']
  expect(await user.run('import', { stdin: lines.join('\n') })).toMatchObject({ code: 0 })
})

test.each([
  [
    'list --sort name',
    '{"id":2,"name":"a,\\"b\\"","tag":""}\n{"id":3,"name":"fern","tag":"b"}\n{"id":1,"name":"Moss"}\n',
  ],
  ['list --sort tag --fields id --limit 2', '{"id":2}\n{"id":3}\n'],
  ['list --fields tag,id --after 1 --limit 1', '{"tag":"","id":2}\n'],
  ['list --output csv', 'id,name,tag\n1,Moss,\n2,"a,""b""",""\n3,fern,b\n'],
  ['list --output csv --delimiter ; --bom', '\ufeffid;name;tag\n1;Moss;\n2;"a,""b""";""\n3;fern;b\n'],
  ['list --output tsv --bom --fields id --limit 1', '\ufeffid\n1\n'],
  ['list --output tsv --fields name,id,name --after 2', 'name\tid\nfern\t3\n'],
  ['list --output json --fields id', '[\n{"id":1},\n{"id":2},\n{"id":3}\n]\n'],
  ['list --output json --tag none', '[\n]\n'],
  ['list --desc --fields id', '{"id":3}\n{"id":2}\n{"id":1}\n'],
  ['list --sort tag --desc --fields id --limit 1', '{"id":3}\n'],
  ['list --output ndjson --limit 1', '{"id":1,"name":"Moss"}\n'],
  ['list --no-tag', '{"id":1,"name":"Moss"}\n'],
  ['export --no-tag --output csv', 'id,name,tag\n1,Moss,\n'],
  ['count', '3\n'],
  ['count --no-tag', '1\n'],
  ['count --tag b --output text', '1 plant\n'],
  ['count --search M', '1\n'],
  ['count --by tag', '{"tag":"","count":1}\n{"tag":"b","count":1}\n{"count":1}\n'],
  ['count --by tag --output csv', 'tag,count\n"",1\nb,1\n,1\n'],
  ['count --by name --search m --output json', '[\n{"name":"Moss","count":1}\n]\n'],
  ['count --by name --limit 1 --output text', 'NAME  COUNT\nMoss      1\n'],
  ['count --by name --min 2', ''],
])('%s', async (line, out) => {
  expect(await user.run(line)).toEqual(printed(out))
})

describe('a table that --limit cuts', () => {
  test.each([
    ['list --limit 3', ''],
    ['list --limit 2', 'plants: Only 2 plants shown. For more: --after 2\n'],
    ['list --limit 1 --after 1 --fields id', 'plants: Only 1 plant shown. For more: --after 2\n'],
    ['list --limit 1 --sort name --search=b', 'plants: Only 1 of 2 plants shown. For all, leave out --limit\n'],
    ['list --limit 1 --desc', 'plants: Only 1 plant shown. For all, leave out --limit\n'],
    ['list --limit 1 --store ./data/plants.db', 'plants: Only 1 plant shown. For more: --after 1\n'],
    ['list --limit 1 --output ndjson', ''],
  ])('says how to see more: %s', async (line, err) => {
    expect(await user.run([...line.split(' '), '--no-color'], onTerminal)).toMatchObject({ code: 0, err })
  })
})

test.each([
  ['list --search FERN', 'plants: Found 1 plant\n'],
  ['list --no-tag --desc', 'plants: Found 1 plant\n'],
  ['list --search x', 'plants: No plants match\n'],
  ['list', ''],
  ['list --search fern --quiet', ''],
  ['list --search fern --output ndjson', ''],
])('says how many plants a table shows that were asked for: %s', async (line, err) => {
  expect(await user.run([...line.split(' '), '--no-color'], onTerminal)).toMatchObject({ code: 0, err })
})

test('searches for at most 200 characters', async () => {
  expect(await user.run(['list', '--search', '🌿'.repeat(200)])).toEqual(printed(''))
  const message = '--search must have at most 200 characters, but has 201'
  expect(await user.run(['count', '--search', 'x'.repeat(201)])).toEqual(refusal(message, 'Search for a part of it'))
})

test('aligns a table whose first page holds a single plant', async () => {
  const plants = Array.from(
    { length: 10_000 },
    (_, id) => `{"id":${id + 100},"name":"Plant ${id + 100}","tag":"t${(id + 100) % 3}"}`,
  )
  await user.run('import', { stdin: plants.join('\n') })
  const { out } = await user.run(['list', '--search', 'Plant 999', '--limit', '5', '--no-color'], onTerminal)
  expect(out).toBe(`  ID  NAME        TAG
 999  Plant 999   t0
9990  Plant 9990  t0
9991  Plant 9991  t1
9992  Plant 9992  t2
9993  Plant 9993  t0
`)
  const { out: many } = await user.run(
    ['list', '--search', 'Plant', '--after', '700', '--limit', '400', '--no-color'],
    onTerminal,
  )
  const names = many.split('\n').slice(0, -1)
  expect(new Set(names.map((line) => line.search(/NAME|Plant/)))).toEqual(new Set([6]))
})

test('escapes what could drive a terminal in every format', async () => {
  await user.run(['create', '--id', '9', '--name', '\u001b[31m'])
  for (const format of ['text', 'csv', 'tsv', 'json', 'ndjson'])
    expect((await user.run(['list', '--output', format], onTerminal)).out).not.toContain('\u001b[31m')
})

test.each([
  ['list --delimiter ; --bom', '--delimiter applies to csv, but the output is ndjson', 'For csv: --output csv'],
  ['export --bom', '--bom applies to csv and tsv, but the output is ndjson', 'For csv: --output csv'],
  ['export --output csv --delimiter x', '--delimiter must be one of ,, ;, |, but was "x"', undefined],
  ['count --min 2', '--min needs --by', 'For example: plants count --by name'],
  ['count --limit 2', '--limit needs --by', 'For example: plants count --by name'],
  ['count --by id', '--by must be one of name, tag, but was "id"', undefined],
  ['count --output csv', '--output must be one of text, json, ndjson, but was "csv"', 'See: plants help formats'],
  [
    'list --desc --store http://127.0.0.1:9',
    '--desc is not supported at http://127.0.0.1:9: a service lists plants only in ascending order of id',
    'Leave it out',
  ],
  ['list --sort size', '--sort must be one of id, name, tag, but was "size"', undefined],
  ['list --sort -name', '--sort must be one of id, name, tag, but was "-name"', 'For descending order: --desc'],
  ['list --sort=-name', '--sort must be one of id, name, tag, but was "-name"', 'For descending order: --desc'],
  ['list --sort --tag x', '--sort must be one of id, name, tag, but was "--tag"', 'For descending order: --desc'],
  [
    'list --fields id,size',
    '--fields must be one or more of id, name, tag, separated by commas, but was "id,size"',
    'For example: --fields name,id',
  ],
  [
    'list --sort name --store http://127.0.0.1:9',
    '--sort name is not supported at http://127.0.0.1:9: a service lists plants only in ascending order of id',
    'Leave it out',
  ],
])('refuses %s', async (line, message, hint) => {
  expect(await user.run(line)).toEqual(refusal(message, hint))
})

describe('a store that is not there', () => {
  test.each([
    'list',
    'count',
    'get 1',
    'update 1 --no-tag',
    'delete 1 --yes',
    'delete --tag x --yes',
    'export',
    'backup x.bak',
  ])('is an error of %s when it was named', async (line) => {
    const path = join(user.home, 'typo.db')
    const expected = refusal(
      `There is no store at ${path}`,
      'Check the address. plants create creates a missing store',
      4,
    )
    expect(await user.run(`${line} --store ./typo.db`)).toEqual(expected)
    expect(await user.run(line, { env: { PLANTS_STORE: './typo.db' } })).toEqual(expected)
  })

  test.each(['list', 'count', 'get 1', 'delete 1 --yes', 'export', 'backup x.bak', 'tokens list', 'serve --port 0'])(
    'is missing for %s where a file is empty, and create makes that one a store',
    async (line) => {
      const path = join(user.home, 'empty.db')
      writeFileSync(path, '')
      const forService =
        'Check the address. To create a store, and a token for clients: plants tokens create --store ./empty.db'
      const hint = line.startsWith('serve') ? forService : 'Check the address. plants create creates a missing store'
      const expected = refusal(`There is no store at ${path}`, hint, 4)
      expect(await user.run(`${line} --store ./empty.db`)).toEqual(expected)
      expect(statSync(path).size).toBe(0)
      expect((await user.run('create --id 1 --name Fern --store ./empty.db')).code).toBe(0)
    },
  )

  test('is said to be made by create, import and tokens create, once', async () => {
    const made = (file: string) => `plants: Created store ${join(user.home, file)}\n`
    const tokens = 'tokens create --store ./t.db'
    expect((await user.run(tokens, { mayShowSecrets: true })).err).toBe(made('t.db'))
    expect((await user.run(tokens, { mayShowSecrets: true })).err).toBe('')
    expect((await user.run('create --id 1 --name Fern --store ./a.db')).err).toBe(made('a.db'))
    expect((await user.run('create --id 2 --name Fern --store ./a.db')).err).toBe('')
    expect((await user.run('import --store ./b.db', { stdin: '{"id":1,"name":"Fern"}' })).err).toBe(made('b.db'))
  })

  test('has no plants when it is the default one', async () => {
    const other = new World()
    expect(await other.run('count')).toEqual(printed('0\n'))
    expect((await other.run('list')).code).toBe(0)
  })
})

describe('delete', () => {
  test('takes several ids, and one that no plant has does not stop the others', async () => {
    const { code, out, err } = await user.run('delete 3 7 1 3 8 --yes')
    const missing = (id: number) =>
      `plants: No plant has id ${id} in ${user.home}/data/plants.db\n  List the plants with: plants list\n`
    expect({ code, out, err }).toEqual({
      code: 1,
      out: '{"id":3,"name":"fern","tag":"b"}\n{"id":1,"name":"Moss"}\n',
      err: missing(7) + missing(8),
    })
    expect((await user.run('count')).out).toBe('1\n')
  })

  test('takes a tag, and says how many it was', async () => {
    await user.run('create --id 4 --name Ivy --tag b')
    expect(await user.run('delete --tag b --yes')).toEqual({
      code: 0,
      out: '{"id":3,"name":"fern","tag":"b"}\n{"id":4,"name":"Ivy","tag":"b"}\n',
      err: 'plants: Deleted 2 plants\n',
    })
    expect(await user.run('delete --tag b --yes')).toEqual({
      code: 0,
      out: '',
      err: 'plants: Deleted 0 plants\n',
    })
    expect((await user.run('count')).out).toBe('2\n')
  })

  test('with --dry-run prints what it would delete, asks nothing, and deletes nothing', async () => {
    const fern = '{"dryRun":true,"id":3,"name":"fern","tag":"b"}\n'
    expect(await user.run('delete --tag b --dry-run')).toEqual({
      code: 0,
      out: fern,
      err: 'plants: Would delete 1 plant\n',
    })
    expect(await user.run('delete 3 --dry-run --yes')).toEqual(printed(fern))
    expect(await user.run('delete 3 --dry-run --output text')).toEqual(printed('Would delete fern (id 3, tag b)\n'))
    expect((await user.run('delete 3 7 --dry-run')).code).toBe(1)
    expect((await user.run('count')).out).toBe('3\n')
  })

  test('goes on after ids that no plant has', async () => {
    const missing = Array.from({ length: 100 }, (_, index) => `${index + 1000}`)
    const { code, out } = await user.run(['delete', ...missing, '1', '--yes'])
    expect({ code, out }).toEqual({ code: 1, out: '{"id":1,"name":"Moss"}\n' })
  })

  test('takes thousands with a tag', async () => {
    const lines = Array.from({ length: 2500 }, (_, index) => `{"id":${index + 10},"name":"Fern","tag":"many"}`)
    await user.run('import', { stdin: lines.join('\n') })
    const { code, out, err } = await user.run('delete --tag many --yes')
    expect({ code, out: out.split('\n').length - 1, err }).toEqual({
      code: 0,
      out: 2500,
      err: 'plants: Deleted 2,500 plants\n',
    })
  })

  test.each([
    ['delete 1 2', 'Deleting requires confirmation'],
    ['delete --tag b', 'Deleting requires confirmation'],
  ])('wants --yes where nobody can be asked: %s', async (line, message) => {
    expect(await user.run(line)).toEqual(refusal(message, 'To delete without confirmation, add --yes'))
  })
})

describe('create --id next', () => {
  test('takes the greatest id plus one, and says which that is', async () => {
    expect(await user.run('create --id next --name Ivy')).toEqual(printed('{"id":4,"name":"Ivy"}\n'))
    expect(await user.run('create --id next --output text', { stdin: '' })).toMatchObject({ code: 2 })
    expect(await user.run('create --id next --name Ivy --output text')).toEqual(printed('Planted Ivy (id 5)\n'))
    expect(await user.run('create --id next --file -', { stdin: '{"id":1,"name":"Oak"}' })).toEqual(
      printed('{"id":6,"name":"Oak"}\n'),
    )
    expect((await user.run('create --id next --name Elm --dry-run')).out).toContain('"id":7,')
  })

  test('begins with 1, and gives each of many an id of its own', async () => {
    const other = new World()
    const results = await Promise.all(Array.from({ length: 20 }, () => other.run('create --id next --name Fern')))
    const ids = results.map(({ out }) => JSON.parse(out).id)
    expect(ids.toSorted((a, b) => a - b)).toEqual(ids.map((_, index) => index + 1))
  })

  test.each([
    [
      'create --id next --name Ivy --idempotency-key a',
      '--id next cannot be used with --idempotency-key: a repeat would create another plant',
    ],
    ['create --id next --name Ivy --dry-run --store http://127.0.0.1:9', 'The service chooses the id of --id next'],
  ])('refuses %s', async (line, message) => {
    expect(await user.run(line)).toEqual(refusal(message, 'Use a specific id'))
  })

  test('says when there is none after the greatest', async () => {
    await user.run('create --id 9223372036854775807 --name Last')
    const message = 'There is no id after 9223372036854775807, which a plant has'
    expect(await user.run('create --id next --name Ivy')).toEqual(refusal(message, 'Choose one with --id NUMBER', 1))
  })
})
