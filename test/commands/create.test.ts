import { describe, expect, test } from 'vitest'
import { createProblem } from '../../src/stores/change.js'
import { createNext } from '../../src/stores/next-id.js'
import { check, generateNewPlant } from '../helpers/expect/arbitraries.js'
import { parseObjects, Sandbox, toJsonResult } from '../helpers/sandbox/sandbox.js'
import { ScriptedServer } from '../helpers/scripted-server/scripted-server.js'
import { token } from '../helpers/scripted-server/service.js'

// Messages of create are in transcripts/create.txt and usage.txt, and invalid plants are in
// unit/plant and service/verdicts.test.ts.

const limitBytes = 1_048_576
const deepArray = '['.repeat(100_000) + ']'.repeat(100_000)
const largePlant = `{"id":1,"name":"Fern"}`.padEnd(limitBytes + 1)

test.each<{ input: string; json: string | Uint8Array; error: number }>([
  { input: 'text that is not JSON', json: '{"name":Fern}', error: 400 },
  { input: 'two values', json: '{"id":1,"name":"Fern"}\r\n\r\n{"id":2', error: 400 },
  { input: 'an object without an id', json: '{"name":"","nmae":1}', error: 422 },
  { input: 'a deeply nested array', json: deepArray, error: 422 },
  { input: 'overlong UTF-8', json: Uint8Array.of(0x22, 0xc0, 0xaf, 0x22), error: 400 },
  { input: 'more than 1 MiB', json: largePlant, error: 413 },
])('create rejects $input, from stdin and from a file', async ({ json, error }) => {
  const sandbox = new Sandbox()
  sandbox.write('plant.json', json)
  for (const line of ['create', 'create --file plant.json']) {
    const { code, out, err } = await sandbox.run(`${line} --output json`, { stdin: json })
    expect({ code, out, ...parseObjects(err).at(-1) }).toMatchObject({ code: 2, out: '', error })
  }
  expect(sandbox.has('data')).toBe(false)
})

test.each(['create --id next', 'create --id next --file -', 'create --id next -'])(
  'plants %s reads JSON without an id, and rejects one with an id',
  async (line) => {
    const sandbox = new Sandbox()
    const stored = toJsonResult({ id: 1, name: 'Moss' })
    expect(await sandbox.run(line, { stdin: '{"name":"Moss"}' })).toEqual(stored)
    expect((await sandbox.run(line, { stdin: '{"id":7,"name":"Moss"}' })).code).toBe(2)
  },
)

test.each(['--id 2', '--name Moss', '--tag shade', '--name Moss --id next'])(
  'create %s rejects a plant from JSON as well',
  async (options) => {
    const sandbox = new Sandbox()
    sandbox.write('plant.json', '{"id":1,"name":"Fern"}')
    const err = expect.stringContaining('A plant from JSON cannot be combined with')
    const result = await sandbox.run(`create --file plant.json ${options}`)
    expect(result).toEqual({ code: 2, out: '', err })
    expect(sandbox.has('data')).toBe(false)
  },
)

test('create --id next fails with a hint when other clients take each next id first', async () => {
  let last = 0n
  const error = createProblem('conflict', 'A plant with this id already exists')
  const store = {
    async *read() {
      last += 1n
      yield [{ id: last, name: 'Ivy' }]
    },
    write: async () => [{ type: 'rejected' as const, problem: error }],
  }
  const failure = {
    kind: 'conflict',
    message: 'Other clients took every next id first',
    hint: 'Try again',
  }
  await expect(createNext(store, { name: 'Moss' })).rejects.toMatchObject(failure)
  expect(last).toBe(100n)
})

test('create rejects U+FFFD in an argument, where it stands for invalid UTF-8, but not in JSON', async () => {
  const sandbox = new Sandbox()
  expect((await sandbox.run(['create', '--id', '1', '--name', 'F\ufffdrn'])).code).toBe(2)
  expect(sandbox.has('data')).toBe(false)
  const stdin = '{"id":1,"name":"F\ufffdrn"}'
  expect((await sandbox.run('create', { stdin })).out).toBe('{"name":"F\ufffdrn"}\n')
})

test.each([
  {
    json: 'an id with a million zeros before its exponent',
    text: `{"id":1${'0'.repeat(1_000_000)}e-1000000,"name":""}`,
    name: '',
  },
  {
    json: 'a byte order mark and CRLF',
    text: '\ufeff{\r\n\t"id": 1,\r\n\t"name": ""\r\n}\r\n',
    name: '',
  },
  {
    json: 'exactly 1 MiB',
    text: `{"id":1,"name":"${'x'.repeat(limitBytes - 18)}"}`,
    name: 'x'.repeat(limitBytes - 18),
  },
  {
    json: 'an unknown member that is deeply nested',
    text: `{"id":1,"name":"Fern","deep":${deepArray}}`,
    name: 'Fern',
  },
  {
    json: 'a character of four bytes, split between two reads',
    text: `{"id":1,"name":"${'x'.repeat(65_518)}🌱"}`,
    name: `${'x'.repeat(65_518)}🌱`,
  },
])('create reads JSON with $json, from stdin and from a file', async ({ text, name }) => {
  const sandbox = new Sandbox()
  sandbox.write('plant.json', text)
  for (const line of ['create', 'create --file plant.json']) {
    const { code, out } = await sandbox.run(line, { stdin: text })
    expect({ code, out }).toEqual({ code: 0, out: toJsonResult({ name }).out })
    const deleted = await sandbox.run('delete 1 --yes')
    expect(deleted.out).toBe(`${JSON.stringify({ id: 1, name })}\n`)
  }
})

test.each([
  { flags: '--name=--id', plant: { name: '--id' } },
  { flags: '--name -5', plant: { name: '-5' } },
  { flags: '--tag create --name help', plant: { name: 'help', tag: 'create' } },
])('create accepts values that look like options or commands: $flags', async ({ flags, plant }) => {
  expect(await new Sandbox().run(`create --id 1 ${flags}`)).toEqual(toJsonResult(plant))
})

test('create stores and prints any plant of options unchanged', async () => {
  const sandbox = new Sandbox()
  await check(10, [generateNewPlant()], async ({ id, ...plant }) => {
    const { name, tag } = plant
    const flags = [`--id=${id}`, `--name=${name}`, ...(tag === undefined ? [] : [`--tag=${tag}`])]
    expect(JSON.parse((await sandbox.run(['create', ...flags])).out)).toEqual(plant)
    const { out } = await sandbox.run(`delete ${id} --yes`)
    expect(JSON.parse(out)).toEqual({ id: Number(id), ...plant })
    expect(out).toContain(`{"id":${id},`)
  })
})

describe('create --dry-run', () => {
  const fern = 'create --id 1 --name Fern --tag shade'

  test.each([
    { problem: 'whose id exists', line: 'create --id 1 --name Moss', code: 1 },
    {
      problem: 'with another idempotency key',
      line: `${fern} --idempotency-key other`,
      code: 1,
    },
    { problem: 'in a file that is not a store', line: `${fern} --store text.db`, code: 4 },
  ])('rejects a plant $problem, as create does', async ({ line, code }) => {
    const sandbox = new Sandbox()
    sandbox.write('text.db', 'This is no database, and long enough to be none. '.repeat(20))
    await sandbox.run(`${fern} --idempotency-key k`)
    const result = await sandbox.run(line)
    expect(result.code).toBe(code)
    expect(await sandbox.run(`${line} --dry-run`)).toEqual(result)
  })

  test('names the service, and sends it nothing', async () => {
    const server = await ScriptedServer.listen({})
    const sandbox = new Sandbox()
    const line = `${fern} --dry-run --store ${server.url}/v1`
    const env = { PLANTS_TOKEN: token }
    const { code, out } = await sandbox.run(`${line} --output text`, { env })
    expect([code, out]).toEqual([0, expect.stringContaining(` in ${server.url}/v1\n`)])
    expect(server.connections).toBe(0)
  })
})
