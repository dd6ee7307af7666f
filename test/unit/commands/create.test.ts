import { expect, test } from 'vitest'
import type { NewPlant } from '../../../src/plant/plant.js'
import { fc, newPlant } from '../../helpers/fast-check.js'
import { rounds } from '../../helpers/rounds.js'
import { answer, printed, refusal, World } from '../../helpers/world.js'

// What is no JSON and no plant: unit/plant, and for all ways into a store conformance/service/verdicts.test.ts.

const limit = 1_048_576
const onePlant =
  'create takes one plant, such as {"id":1,"name":"Fern","tag":"shade"}. For many: plants import'
const convert = 'Convert it to UTF-8 first'
const noPlant =
  'Invalid plant: id must be an integer from -9223372036854775808 to 9223372036854775807, but is missing'
const deep = '['.repeat(100_000) + ']'.repeat(100_000)

test.each<[stdin: string | Uint8Array, message: unknown, hint: string]>([
  [
    '{"name":Fern}',
    'Stdin is not JSON: Unexpected token \'F\', "{"name":Fern}" is not valid JSON',
    onePlant,
  ],
  ['{"id":1,"name":"Fern"}\r\n\r\n{"id":2', /^Stdin is not JSON: /, onePlant],
  ['{"name":"","nmae":1}', noPlant, onePlant],
  [deep, 'Invalid plant: it must be an object, but was an array', onePlant],
  [Uint8Array.of(0x22, 0xc0, 0xaf, 0x22), 'Stdin is not UTF-8', convert],
  [Uint8Array.of(0xff, 0xfe, 0x7b, 0, 0x7d, 0), 'Stdin is not UTF-8', convert],
  ['\ufeff', 'Stdin is empty', onePlant],
  [
    `{"id":1,"name":"Fern"}${' '.repeat(limit - 21)}`,
    'Stdin is larger than 1 MiB (1048576 bytes)',
    onePlant,
  ],
])('rejects what is on stdin: %#', async (stdin, message, hint) => {
  const user = new World()
  const { code, out, err } = await user.run('create', { stdin })
  const [first = '', second] = err.replace('plants: ', '').split('\n')
  expect({ code, out, second }).toEqual({ code: 2, out: '', second: `  ${hint}` })
  if (message instanceof RegExp) expect(first).toMatch(message)
  else expect(first).toBe(message)
  expect(user.has('data')).toBe(false)
})

test.each(['create --id next', 'create --id next --file -', 'create --id next -'])(
  'takes JSON without an id: %s',
  async (line) => {
    const user = new World()
    expect(await user.run(line, { stdin: '{"name":"Moss"}' })).toEqual(
      answer({ id: 1, name: 'Moss' }),
    )
    expect((await user.run(line, { stdin: '{"id":7,"name":"Moss"}' })).code).toBe(2)
  },
)

test('rejects an argument that is not UTF-8, which JSON can hold', async () => {
  const user = new World()
  expect(await user.run(['create', '--id', '1', '--name', 'F\ufffdrn'])).toEqual(
    refusal(
      'An argument is not UTF-8, or holds U+FFFD',
      'Use a UTF-8 terminal, or read the plant from JSON with --file',
    ),
  )
  const stdin = '{"id":1,"name":"F\ufffdrn"}'
  expect((await user.run('create', { stdin })).out).toBe('{"name":"F\ufffdrn"}\n')
})

// The other messages about files are in transcripts/usage.txt.
test('rejects a file that is too large', async () => {
  const user = new World()
  user.write('a', ' '.repeat(limit + 1))
  expect(await user.run('create --file a')).toEqual(
    refusal('a is larger than 1 MiB (1048576 bytes)', onePlant),
  )
  expect(user.has('data')).toBe(false)
})

test.each([
  [
    'a million zeros before the point of an id',
    `{"id":1${'0'.repeat(1_000_000)}e-1000000,"name":""}`,
  ],
  ['a byte order mark and CRLF', '\ufeff{\r\n\t"id": 1,\r\n\t"name": ""\r\n}\r\n'],
])('takes %s', async (_, stdin) => {
  const user = new World()
  expect(await user.run('create', { stdin })).toMatchObject({ code: 0, err: '' })
  expect(await user.run('list')).toEqual(printed('{"id":1,"name":""}\n'))
})

test('takes a body of exactly 1 MiB', async () => {
  const user = new World()
  const name = 'x'.repeat(limit - 18)
  expect(await user.run('create', { stdin: `{"id":1,"name":"${name}"}` })).toEqual(answer({ name }))
})

test('keeps a character across two reads of a file', async () => {
  const user = new World()
  const name = `${'x'.repeat(65_536 - 16 - 2)}\u{1f331}`
  user.write('plant.json', `{"id":1,"name":"${name}"}`)
  expect(await user.run('create --file plant.json')).toEqual(answer({ name }))
})

test.each([
  ['--name=--tag', { name: '--tag' }],
  ['--name -5', { name: '-5' }],
  ['--tag create --name help', { name: 'help', tag: 'create' }],
])('takes %s', async (flags, plant) => {
  expect(await new World().run(`create --id 1 ${flags}`)).toEqual(answer(plant))
})

test.each(['--id 1', '--name Fern', '--tag ferns'])(
  '--file beside %s is a usage error',
  async (flag) => {
    const stdin = '{"id":1,"name":"Fern"}'
    expect(await new World().run(`create --file - ${flag}`, { stdin })).toMatchObject({
      code: 2,
      out: '',
    })
  },
)

test('an unknown field may be nested deeply', async () => {
  const err = 'plants: warning: ignored unknown field "deep"\n'
  const result = await new World().run('create', { stdin: `{"id":1,"name":"Fern","deep":${deep}}` })
  expect(result).toEqual({ ...answer({ name: 'Fern' }), err })
})

// Those of JSON: unit/plant/json.test.ts.
test('any plant created by flags comes out as it was', async () => {
  const user = new World()
  const trip = async ({ id, ...plant }: NewPlant) => {
    const { name, tag } = plant
    const flags = [`--id=${id}`, `--name=${name}`, ...(tag === undefined ? [] : [`--tag=${tag}`])]
    expect(JSON.parse((await user.run(['create', ...flags])).out)).toEqual(plant)
    const { out } = await user.run(`delete ${id} --yes`)
    expect(JSON.parse(out)).toEqual({ id: Number(id), ...plant })
    expect(out).toContain(`{"id":${id},`)
  }
  await fc.assert(fc.asyncProperty(newPlant(), trip), { numRuns: rounds(30) })
})
