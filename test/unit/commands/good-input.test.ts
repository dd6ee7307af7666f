import { expect, test } from 'vitest'
import { answer, printed, World } from '../../helpers/world.js'

// Ids and texts are in transcripts/create.txt, too.

test.each([
  ['zeros before the point', `1${'0'.repeat(1_000_000)}e-1000000`],
  ['zeros behind the point', `0.${'0'.repeat(1_000_000)}1e1000001`],
  ['zeros in the exponent', `1e${'0'.repeat(1_000_000)}`],
])('takes an id of a million %s', async (_, text) => {
  const user = new World()
  expect(await user.run('create', { stdin: `{"id":${text},"name":"Fern"}` })).toEqual(answer({ name: 'Fern' }))
  expect(await user.run('list')).toEqual(answer({ id: 1, name: 'Fern' }))
})

test.each([
  ['a byte order mark and CRLF', '\ufeff{\r\n\t"id": 1,\r\n\t"name": "Fern"\r\n}\r\n', '{"id":1,"name":"Fern"}'],
  ['fields in any order', '{"tag":"shade","name":"Fern","id":1}', '{"id":1,"name":"Fern","tag":"shade"}'],
  [
    'the last of repeated keys',
    '{"id":"x","\\u0069d":2,"name":5,"name":"Fern","tag":null,"tag":"a"}',
    '{"id":2,"name":"Fern","tag":"a"}',
  ],
  [
    'the last of repeated ids, exact',
    '{"id":1,"id":9007199254740993,"name":"Fern"}',
    '{"id":9007199254740993,"name":"Fern"}',
  ],
  ['escapes for what they stand for', '{"id":1,"name":"\\u0046\\ud83c\\udf31\\/"}', '{"id":1,"name":"F\u{1f331}/"}'],
])('keeps %s', async (_, document, stored) => {
  const user = new World()
  await user.run('create', { stdin: document })
  expect(await user.run('list')).toEqual(printed(`${stored}\n`))
})

test('takes a body of exactly 1 MiB', async () => {
  const user = new World()
  const name = 'x'.repeat(1_048_576 - 18)
  expect(await user.run('create', { stdin: `{"id":1,"name":"${name}"}` })).toEqual(answer({ name }))
  user.write('plant.json', `{"id":2,"name":"${name}"}`)
  expect(await user.run('create --file plant.json')).toEqual(answer({ name }))
})

test.each([0, 1, 2, 3])('keeps a character across two reads of a file, %i bytes before the border', async (before) => {
  const user = new World()
  const name = `${'x'.repeat(65_536 - 16 - before)}\u{1f331}`
  user.write('plant.json', `{"id":1,"name":"${name}"}`)
  expect(await user.run('create --file plant.json')).toEqual(answer({ name }))
})

test.each([
  ['--name=--tag', { name: '--tag' }],
  ['--name=a=b', { name: 'a=b' }],
  ['--name -', { name: '-' }],
  ['--name -5', { name: '-5' }],
  ['--tag create --name help', { name: 'help', tag: 'create' }],
])('takes %s', async (flags, plant) => {
  expect(await new World().run(`create --id 1 ${flags}`)).toEqual(answer(plant))
})

test.each(['0', '1.5', '0.001ms', '30s', '2m', '1h', '9999999', '999999999.999h'])(
  'takes the timeout %s',
  async (timeout) => {
    const user = new World()
    expect(await user.run(`create --id 1 --name Fern --timeout ${timeout}`)).toEqual(answer({ name: 'Fern' }))
    expect(await user.run(`list --timeout ${timeout}`)).toEqual(answer({ id: 1, name: 'Fern' }))
  },
)

test('flags override the fields of a file and of stdin, right or wrong', async () => {
  const user = new World()
  const stdin = '{"id":1e400,"name":5,"tag":"shade"}'
  user.write('plant.json', stdin)
  expect(await user.run('create --file plant.json --id 1 --name Fern')).toEqual(answer({ name: 'Fern', tag: 'shade' }))
  expect(await user.run('create --file - --id=2 --name=Moss --tag=x', { stdin })).toEqual(
    answer({ name: 'Moss', tag: 'x' }),
  )
  expect((await user.run('list')).out).toBe('{"id":1,"name":"Fern","tag":"shade"}\n{"id":2,"name":"Moss","tag":"x"}\n')
})

test('an unknown field may be nested deeply', async () => {
  const stdin = `{"id":1,"name":"Fern","deep":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
  const err = 'plants: warning: ignored unknown field "deep"\n'
  expect(await new World().run('create', { stdin })).toEqual({ ...answer({ name: 'Fern' }), err })
})
