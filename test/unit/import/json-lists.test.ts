import { execFileSync } from 'node:child_process'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { isWindows } from '../../helpers/sandbox/sandbox.js'

const hasJq = !isWindows && canRun('jq', '--version')

function canRun(...[program = '', ...args]: string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const list = [
  { id: 1, name: 'Fern' },
  { id: 2, name: 'Moss' },
]
const pad = 'x'.repeat(1_100_000)

const cases: {
  title: string
  value: unknown
  file?: string
  message: string
  command: string
  /** The options that the hint adds to the command that failed. */
  add?: string
  /** What the hint says about several lists. */
  select?: string
  created?: number
}[] = [
  {
    title: 'an object with a list in it',
    value: { categories: ['a'], plants: list },
    message:
      'list.json is not a list of plants: it is an object with the keys "categories", "plants", ' +
      'which contains objects with "id", "name"',
    command: "jq -c '.plants[]' list.json",
  },
  {
    title: 'the list of plants among lists of other things',
    value: { beds: [{ bed: 1 }, { bed: 2 }, { bed: 3 }], 'my plants': list },
    message: 'is an object with the keys "beds", "my plants"',
    command: `jq -c '.["my plants"][]' list.json`,
  },
  {
    title: 'a list that is deeper',
    value: { meta: { count: 2 }, data: { result: { plants: list } } },
    message: 'is an object with the keys "meta", "data"',
    command: "jq -c '.data.result.plants[]' list.json",
  },
  {
    title: 'an object with several lists of plants',
    value: { beds: [{ bed: 1 }], plants: [list[0]], trees: [list[1]] },
    message: 'is an object with the keys "beds", "plants", "trees"',
    command: "jq -c '.plants[], .trees[]' list.json",
    select: ', with only the lists that you want',
  },
  {
    title: 'an object with several objects that have a list of plants',
    value: { meta: { page: 1 }, north: { plants: [list[0]] }, south: { trees: [list[1]] } },
    message: 'is an object with the keys "meta", "north", "south"',
    command: "jq -c '.north.plants[], .south.trees[]' list.json",
    select: ', with only the lists that you want',
  },
  {
    title: 'an object by name',
    value: { Rosa: { id: 1, tag: 'x' }, 'Acer rubrum': { id: 2, tag: 'y' } },
    message: 'is an object with the keys "Rosa", "Acer rubrum", which contains objects with "name"',
    command: "jq -c 'to_entries[] | {name: .key} + .value' list.json",
  },
  {
    title: 'an object by name without ids',
    value: { Rosa: { family: 'x' }, Acer: { family: 'y' } },
    message: 'is an object with the keys "Rosa", "Acer"',
    command: "jq -c 'to_entries[] | {name: .key} + .value' list.json",
    add: '--by-name',
  },
  {
    title: 'an object by id',
    value: { 7: { name: 'Fern' }, 8: { name: 'Moss' } },
    message: 'is an object with the keys "7", "8"',
    command: "jq -c 'to_entries[] | {id: (.key | tonumber)} + .value' list.json",
  },
  {
    title: 'an object of names by id',
    value: { 7: 'Fern', 8: 'Moss' },
    message: 'is an object with the keys "7", "8"',
    command: "jq -c 'to_entries[] | {id: (.key | tonumber), name: .value}' list.json",
  },
  {
    title: 'GeoJSON',
    file: 'my trees.geojson',
    value: {
      type: 'FeatureCollection',
      features: list.map((properties) => ({ type: 'Feature', properties, geometry: null })),
    },
    message:
      'my trees.geojson is not a list of plants: it is GeoJSON, which contains objects with "id", "name"',
    command: "jq -c '.features[] | .properties' 'my trees.geojson'",
  },
  {
    title: 'GeoJSON with the ids outside of the properties',
    value: {
      type: 'FeatureCollection',
      features: list.map(({ id, name }) => ({ type: 'Feature', id, properties: { Name: name } })),
    },
    message: 'it is GeoJSON, which contains objects with "id", "Name"',
    command: "jq -c '.features[] | {id} + .properties' list.json",
  },
  {
    title: 'fields in an object of each object',
    value: list.map(({ id, ...tags }) => ({ type: 'node', id, tags })),
    message: 'list.json has no key "name": it has only "type", "id", "tags"',
    command: "jq -c '.[] | {id} + .tags' list.json",
  },
  {
    title: 'elements of OpenStreetMap, some of them without tags',
    value: {
      version: 0.6,
      elements: [...list.map(({ id, ...tags }) => ({ id, tags })), { id: 3 }],
    },
    message: 'is an object with the keys "version", "elements"',
    command: "jq -c '.elements[] | {id} + .tags' list.json",
  },
  {
    title: 'lists of cells',
    value: [
      [1, 'Fern', null],
      [2, 'Moss', 'wet'],
    ],
    message: 'list.json is not a list of plants: it is a list of lists\n',
    command: "jq -c '.[] | {id: .[0], name: .[1], tag: .[2]}' list.json",
  },
  {
    title: 'lists of cells below the names of the columns',
    value: [
      ['Name', 'bed', 'ID'],
      ['Fern', 'N', 1],
      ['Moss', 'S', 2],
    ],
    message: 'list.json is not a list of plants: it is a list of lists\n',
    command: "jq -c '.[1:][] | {id: .[2], name: .[0]}' list.json",
  },
  {
    title: 'lists of cells without ids',
    value: [
      ['tag', 'name'],
      ['wet', 'Fern'],
      ['dry', 'Moss'],
    ],
    message: 'list.json is not a list of plants: it is a list of lists\n',
    command: "jq -c '.[1:][] | {name: .[1], tag: .[0]}' list.json",
    add: '--by-name',
  },
  {
    title: 'lists of cells below other names of columns',
    value: [
      ['Nr', 'Sorte'],
      [1, 'Fern'],
      [2, 'Moss'],
    ],
    message: 'list.json is not a list of plants: it is a list of lists\n',
    command: "jq -c '.[1:][] | {id: .[0], name: .[1]}' list.json",
  },
  {
    title: 'an object with lists of cells',
    value: { columns: ['id', 'name'], 'the rows': list.map(({ id, name }) => [id, name]) },
    message: 'it is an object with the keys "columns", "the rows", which contains lists\n',
    command: `jq -c '.["the rows"][] | {id: .[0], name: .[1]}' list.json`,
  },
  {
    title: 'an object with a list of names',
    value: { count: 2, plants: ['Fern', 'Moss'] },
    message: 'it is an object with the keys "count", "plants", which contains strings\n',
    command: "jq -c '.plants[] | {name: .}' list.json",
    add: '--by-name',
  },
  {
    title: 'a packed file whose name has a quote and a space',
    file: "Bob's list.json.gz",
    value: { plants: list },
    message: 'is an object with the keys "plants"',
    command: String.raw`gzip -dc 'Bob'\''s list.json.gz' | jq -c '.plants[]'`,
  },
  {
    title: 'a list without ids in an object that is too large to be parsed',
    value: { note: pad, plants: [{ name: 'Fern' }, { name: 'Moss', pad }] },
    message: 'is an object with the keys "note", "plants", which contains objects with "name"',
    command: "jq -c '.plants[]' list.json",
    add: '--by-name',
    created: 1,
  },
]

function writeValue(user: ImportSandbox, file: string, value: unknown): void {
  const text = JSON.stringify(value)
  user.write(file, file.endsWith('.gz') ? gzipSync(text) : text)
}

test.each(cases)(
  'the error for $title shows the program of jq that makes a list of it',
  async ({ value, file = 'list.json', message, command, add, select = '' }) => {
    const user = new ImportSandbox()
    writeValue(user, file, value)
    const { code, err } = await user.import([file])
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(message) })
    const adding = add === undefined ? '' : `, and add ${add}`
    expect(err).toContain(
      `  Pipe this into the same command, with - instead of ${file}${adding}${select}: ${command}\n`,
    )
  },
)

test.skipIf(!hasJq).each(cases)(
  'the command of the hint for $title leads to an import (needs jq)',
  async ({ value, file = 'list.json', command, add = '', created = 2 }) => {
    const user = new ImportSandbox()
    writeValue(user, file, value)
    const stdin = execFileSync('sh', ['-c', command], { cwd: user.home, maxBuffer: 1e8 })
    expect(await user.import(`- ${add}`, stdin)).toMatchObject({ created })
  },
)

test('the error for an object in another encoding shows no program of jq, because jq reads UTF-8', async () => {
  const user = new ImportSandbox()
  const text = JSON.stringify({ plants: [{ id: 1, name: 'Größe' }] })
  user.write('list.json', Buffer.from(text, 'latin1'))
  const { code, err } = await user.import('list.json --encoding latin1')
  expect({ code, err }).toEqual({
    code: 2,
    err: expect.stringContaining(
      'list.json is not a list of plants: it is an object with the keys "plants"',
    ),
  })
  expect(err).toContain('\n  Save list.json as UTF-8, and import it without --encoding\n')
  user.write('list.json', text)
  expect((await user.import('list.json')).err).toContain(": jq -c '.plants[]' list.json\n")
})

const rowLines = '[1,"Fern"]\n[2,"Moss"]\n'

test.each([
  ['list.json', rowLines, "'{id: .[0], name: .[1]}'"],
  ['list.ndjson', rowLines, "'{id: .[0], name: .[1]}'"],
  ['list', `["id","name"]\n${rowLines}`, `'select(. != ["id","name"]) | {id: .[0], name: .[1]}'`],
])(
  'the error for lines that are lists of cells shows a program of jq: %s',
  async (file, text, program) => {
    const user = new ImportSandbox()
    user.write(file, text)
    const { code, err } = await user.import(file)
    const command = `jq -c ${program} ${file}`
    expect({ code, err }).toEqual({
      code: 2,
      err:
        `plants: ${file} is not a list of plants: its lines are lists\n` +
        `  Pipe this into the same command, with - instead of ${file}: ${command}\n`,
    })
    if (!hasJq) return
    const stdin = execFileSync('sh', ['-c', command], { cwd: user.home })
    expect(await user.import('-', stdin)).toMatchObject({ code: 0, created: 2 })
  },
)

test('the error for lists without names says how to write a plant', async () => {
  const { code, err } = await new ImportSandbox().import('', '[[1,2],[3,4]]')
  expect([code, err]).toEqual([
    2,
    'plants: stdin is not a list of plants: it is a list of lists\n' +
      '  Write each plant as an object, such as {"id":1,"name":"Fern"}\n',
  ])
})

test('the error for objects that each have one plant shows a program of jq, on one line or on several', async () => {
  const user = new ImportSandbox()
  const line = '{"plant":{"id":1,"name":"Fern"}}\n'
  for (const stdin of [line, line + line])
    expect((await user.import('', stdin)).err).toContain(
      'stdin has no keys "id", "name": it has only "plant"\n' +
        '  Pipe the input through this first: jq -c .plant\n',
    )
})

test('the error for an object that is too large to be parsed counts all its keys', async () => {
  const user = new ImportSandbox()
  const plants = Array.from({ length: 30 }, (_, id) => [
    `Rosa ${id}`,
    { id, pad: pad.slice(0, 4e4) },
  ])
  user.write('list.json', JSON.stringify(Object.fromEntries(plants)))
  const { code, err } = await user.import('list.json')
  expect(code).toBe(2)
  expect(err).toContain('"Rosa 7" and 22 more, which contains objects with "name", "id", "pad"')
  expect(err).toContain(": jq -c 'to_entries[] | {name: .key} + .value' list.json\n")
})

test('the error for a file named .ndjson that has an array names --format', async () => {
  const user = new ImportSandbox()
  user.write('list.ndjson', JSON.stringify(list))
  const { code, err } = await user.import('list.ndjson')
  expect({ code, err }).toEqual({
    code: 2,
    err: 'plants: list.ndjson is not NDJSON: it begins with an array\n' + '  Add --format json\n',
  })
  expect(await user.import('list.ndjson --format json')).toMatchObject({ created: 2 })
})

test('the error for a list without ids, or with other keys, names the option that helps', async () => {
  const user = new ImportSandbox()
  const { err } = await user.import('', '[{"name":"Fern"},{"name":"Moss"}]')
  expect(err).toBe(
    'plants: stdin has no key "id": it has only "name"\n' +
      '  If the plants have no ids, add --by-name, or for one plant for each record, --id-from 1. If a key has the ids, name it with --map id=KEY\n',
  )
  const other = await user.import('', '[{"Nr":1,"Sorte":"Fern"}]')
  expect(other.err).toContain('stdin has no keys "id", "name": it has only "Nr", "Sorte"\n')
  expect(other.err).toContain(
    'Name the keys with --map id=KEY,name=KEY or, if the plants have no ids, with --map name=KEY',
  )
})

test('the error for a list whose objects have other keys shows both the program and --map', async () => {
  const user = new ImportSandbox()
  const { err } = await user.import('', '{"items":[{"Nr":1,"Sorte":"Fern"}]}')
  expect(err).toContain(
    "Pipe the input through this first, and add --map id=KEY,name=KEY: jq -c '.items[]'\n",
  )
})

test.each([
  ['{"type":"FeatureCollection","features":[]}', 'it is GeoJSON, and its list "features" is empty'],
  ['{"count":0,"plants":[]}', 'its list "plants" is empty'],
])('an import says which list of the JSON is empty: %s', async (text, reason) => {
  const { code, err } = await new ImportSandbox().import('', text)
  expect([code, err]).toEqual([2, expect.stringContaining(`stdin contains no plants: ${reason}\n`)])
})

test('an import names the file that contains no records', async () => {
  const sandbox = new ImportSandbox()
  for (const name of ['a.json', 'b.json']) sandbox.write(name, '[]')
  expect((await sandbox.import('a.json')).err).toContain('a.json contains no records\n')
  const { err } = await sandbox.import('a.json b.json')
  expect(err).toContain('None of the 2 files contains a record\n')
})
