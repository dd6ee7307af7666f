import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { buildPlantLine, ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'

// JSON that is no list of plants.

let user: ImportSandbox

beforeEach(() => {
  user = new ImportSandbox()
})

const list = [
  { id: 1, name: 'Fern' },
  { id: 2, name: 'Moss' },
]
const pad = 'x'.repeat(1_100_000)
const page = 'See: plants help importing'

test.each<{ title: string; value: object }>([
  { title: 'on one line', value: { count: 2, 'my plants': list, beds: [{ bed: 1 }] } },
  {
    title: 'of more than 1 MiB',
    value: { note: `"]}${pad}`, beds: [{ a: [] }], 'my plants': list },
  },
])('--key reads the list in an object $title', async ({ value }) => {
  for (const text of [JSON.stringify(value), JSON.stringify(value, null, 1)]) {
    for (const file of ['list.json', 'list']) {
      user.write(file, text)
      const { code, err } = await user.import(file)
      expect(code).toBe(2)
      expect(err).toContain(`plants: ${file} is not a list of plants: it is an object\n`)
      expect(err).toMatch(/\n {2}keys with lists: .*"my plants"/)
      expect(err).toContain('\n  Add --key with one of these keys\n')
      expect(await user.import([file, '--key', 'my plants', '--dry-run'])).toMatchObject({
        created: 2,
      })
    }
  }
})

test('an error in the list of --key names its line', async () => {
  user.write('list.json', '{"a":{"plants":1},\n"plants":[\n{"id":1,"name":"Fern"},\n{"id":x}]}')
  const { code, err } = await user.import('list.json --key plants')
  expect([code, err]).toEqual([2, expect.stringContaining('list.json:4: Not JSON: ')])
})

test('--key names a key of the outermost object alone', async () => {
  user.write('list.json', JSON.stringify({ data: { plants: list }, rows: list }))
  const { code, err } = await user.import('list.json --key plants')
  expect(code).toBe(2)
  expect(err).toContain('list.json has no list of objects under the key "plants"\n')
  expect(err).toContain('  keys with lists: "rows"\n')
})

test.each(['list.csv', 'list.tsv', 'list.txt'])('--key is a usage error for %s', async (file) => {
  user.write(file, 'id,name\n1,Fern\n')
  const { code, err } = await user.import(`${file} --key plants`)
  expect([code, err]).toEqual([
    2,
    expect.stringContaining('is not JSON, so it has no list under a key'),
  ])
})

test.each<{ title: string; text: string; hint?: string }>([
  { title: 'GeoJSON', text: readList('f23-overpass.geojson') },
  { title: 'ArcGIS', text: '{"fields":[{"name":"a"}],"features":[{"attributes":{"Name":"Oak"}}]}' },
  {
    title: 'ArcGIS of more than 1 MiB',
    text: `{"note":"${pad}","fields":[{"name":"a"}],"features":[{"attributes":{"Name":"Oak"}}],"e":[]}`,
  },
  {
    title: 'Opendatasoft',
    text: '[{"recordid":"a","fields":{"nom":"Oak"}},{"recordid":"b","fields":{"nom":"Elm"}}]',
  },
  { title: 'lines of GeoJSON', text: '{"type":"Feature","properties":{"name":"Oak"}}\n'.repeat(2) },
  { title: 'a list of names', text: '["Fern","Moss"]' },
  { title: 'a list of lists', text: '[[1,"Fern"],[2,"Moss"]]' },
  { title: 'lines that are lists', text: '[1,"Fern"]\n[2,"Moss"]\n' },
  { title: 'a string of JSON', text: readList('f14c-string-of-json.json') },
  { title: 'an object by name', text: '{"Fern":{"tag":"wet"},"Moss":{}}' },
  { title: 'an empty list', text: '{"count":0,"plants":[]}' },
])('the error for $title names the page', async ({ text }) => {
  user.write('list.json', text)
  const { code, err } = await user.import('list.json')
  expect(code).toBe(2)
  expect(err).toContain('list.json is not a list of plants')
  expect(err).toContain(`\n  ${page}\n`)
})

test('--key of records that hold objects names the page', async () => {
  user.write('list.json', '{"features":[{"attributes":{"Name":"Oak"}}]}')
  const { code, err } = await user.import('list.json --key features')
  expect([code, err]).toEqual([2, expect.stringContaining(`\n  ${page}\n`)])
})

test('the error names the keys that hold objects or lists', async () => {
  user.write('list.json', '{"id":1,"tags":{"species":"Oak"},"bed":"a"}\n'.repeat(2))
  const { err } = await user.import('list.json')
  expect(err).toContain('its objects hold objects\n  keys with objects or lists: "tags"\n')
})

test('an id with decimals is no object', async () => {
  user.write('list.json', '{"id":1.5,"kind":"Fern"}\n'.repeat(2))
  const { err } = await user.import('list.json')
  expect(err).toContain('keys: "id", "kind"\n')
})

test('no key that holds objects or lists is proposed', async () => {
  user.write('list.json', '{"nr":1,"bed":{"x":1},"plants":["a"],"plant":"Fern"}\n'.repeat(2))
  const { err } = await user.import('list.json')
  expect(err).toContain('keys: "nr", "plant"\n')
})

function readList(name: string): string {
  return readFileSync(join(import.meta.dirname, '../../data/lists', name), 'utf8')
}

test('JSON5 is not read as a table', async () => {
  user.write('f14-list.json5', readList('f14-list.json5'))
  const { code, err } = await user.import('f14-list.json5')
  expect([code, err]).toEqual([2, expect.stringContaining('Not JSON: ')])
})

test('two objects on one line are two records', async () => {
  user.write('list.json', readList('f14b-one-line.json'))
  expect(await user.import('list.json')).toMatchObject({ code: 0, created: 2 })
  expect(await user.list()).toBe(buildPlantLine(1, 'Fern') + buildPlantLine(2, 'Moss'))
})

test('null is a missing id', async () => {
  user.write('list.json', readList('f04-id-null.json'))
  expect(await user.import('list.json --by-name')).toMatchObject({
    code: 0,
    created: 2,
  })
})

test.each([
  { name: 'f03-jsonapi-ids-outside', key: 'data', code: 2 },
  { name: 'f21-name-by-language', key: undefined, code: 6 },
  { name: 'f22-first-page', key: 'results', code: 0 },
])('$name ends with exit code $code', async ({ name, key, code }) => {
  user.write('list.json', readList(`${name}.json`))
  const options = key === undefined ? [] : ['--key', key]
  expect(await user.import(['list.json', ...options])).toMatchObject({ code })
})
