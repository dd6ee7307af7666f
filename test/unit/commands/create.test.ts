import { describe, expect, test } from 'vitest'
import { createProblem } from '../../../src/stores/change.js'
import { createNext } from '../../../src/stores/next-id.js'
import { check, newPlant } from '../../helpers/expect/arbitraries.js'
import { Sandbox, toJsonResult } from '../../helpers/sandbox/sandbox.js'
import { ScriptedServer } from '../../helpers/scripted-server/scripted-server.js'
import { token } from '../../helpers/scripted-server/service.js'

// What is said is in transcripts/create.txt and usage.txt, what is no plant in unit/plant, and for
// all ways into a store in conformance/service/verdicts.test.ts.

const limit = 1_048_576
const deep = '['.repeat(100_000) + ']'.repeat(100_000)
const large = `{"id":1,"name":"Fern"}${' '.repeat(limit - 21)}`

test.each<[string, string | Uint8Array, error: number]>([
  ['what is no JSON', '{"name":Fern}', 400],
  ['more than one value', '{"id":1,"name":"Fern"}\r\n\r\n{"id":2', 400],
  ['a field that is missing', '{"name":"","nmae":1}', 422],
  ['what is deeply nested', deep, 422],
  ['overlong UTF-8', Uint8Array.of(0x22, 0xc0, 0xaf, 0x22), 400],
  ['more than 1 MiB', large, 413],
])('rejects %s, from stdin and a file', async (_, text, error) => {
  const user = new Sandbox()
  user.write('plant.json', text)
  for (const line of ['create', 'create --file plant.json']) {
    const { code, out, err } = await user.run(`${line} --output json`, { stdin: text })
    expect({ code, out, ...JSON.parse(err) }).toMatchObject({ code: 2, out: '', error })
  }
  expect(user.has('data')).toBe(false)
})

test.each(['create --id next', 'create --id next --file -', 'create --id next -'])(
  'takes JSON without an id: %s',
  async (line) => {
    const user = new Sandbox()
    const stored = toJsonResult({ id: 1, name: 'Moss' })
    expect(await user.run(line, { stdin: '{"name":"Moss"}' })).toEqual(stored)
    expect((await user.run(line, { stdin: '{"id":7,"name":"Moss"}' })).code).toBe(2)
  },
)

test('says what to do when others take every next id first', async () => {
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

test('rejects an argument that is not UTF-8, which JSON can hold', async () => {
  const user = new Sandbox()
  expect((await user.run(['create', '--id', '1', '--name', 'F\ufffdrn'])).code).toBe(2)
  expect(user.has('data')).toBe(false)
  const stdin = '{"id":1,"name":"F\ufffdrn"}'
  expect((await user.run('create', { stdin })).out).toBe('{"name":"F\ufffdrn"}\n')
})

test.each([
  ['a million zeros before the point', `{"id":1${'0'.repeat(1_000_000)}e-1000000,"name":""}`, ''],
  ['a byte order mark and CRLF', '\ufeff{\r\n\t"id": 1,\r\n\t"name": ""\r\n}\r\n', ''],
  ['exactly 1 MiB', `{"id":1,"name":"${'x'.repeat(limit - 18)}"}`, 'x'.repeat(limit - 18)],
  ['an unknown field that is nested', `{"id":1,"name":"Fern","deep":${deep}}`, 'Fern'],
  // between two reads
  ['a long character', `{"id":1,"name":"${'x'.repeat(65_518)}🌱"}`, `${'x'.repeat(65_518)}🌱`],
])('takes %s, from stdin and a file', async (_, text, name) => {
  const user = new Sandbox()
  user.write('plant.json', text)
  for (const line of ['create', 'create --file plant.json']) {
    const { code, out } = await user.run(line, { stdin: text })
    expect([code, out]).toEqual([0, toJsonResult({ name }).out])
    expect((await user.run('delete 1 --yes')).out).toBe(`${JSON.stringify({ id: 1, name })}\n`)
  }
})

test.each([
  ['--name=--id', { name: '--id' }],
  ['--name -5', { name: '-5' }],
  ['--tag create --name help', { name: 'help', tag: 'create' }],
])('takes %s', async (flags, plant) => {
  expect(await new Sandbox().run(`create --id 1 ${flags}`)).toEqual(toJsonResult(plant))
})

test('any plant created by options comes out as it was', async () => {
  const user = new Sandbox()
  await check(10, [newPlant()], async ({ id, ...plant }) => {
    const { name, tag } = plant
    const flags = [`--id=${id}`, `--name=${name}`, ...(tag === undefined ? [] : [`--tag=${tag}`])]
    expect(JSON.parse((await user.run(['create', ...flags])).out)).toEqual(plant)
    const { out } = await user.run(`delete ${id} --yes`)
    expect(JSON.parse(out)).toEqual({ id: Number(id), ...plant })
    expect(out).toContain(`{"id":${id},`)
  })
})

describe('a dry run', () => {
  const fern = 'create --id 1 --name Fern --tag shade'

  test.each([
    ['whose id exists', 'create --id 1 --name Moss', 1],
    ['whose key is another', `${fern} --idempotency-key other`, 1],
    ['in a file that is no store', `${fern} --store text.db`, 4],
  ])('rejects a plant %s, as a create does', async (_, line, code) => {
    const user = new Sandbox()
    user.write('text.db', 'This is no database, and long enough to be none. '.repeat(20))
    await user.run(`${fern} --idempotency-key k`)
    const real = await user.run(line)
    expect(real.code).toBe(code)
    expect(await user.run(`${line} --dry-run`)).toEqual(real)
  })

  test('names the service, and sends nothing', async () => {
    const [server, user] = [await ScriptedServer.listen({}), new Sandbox()]
    const line = `${fern} --dry-run --store ${server.url}/v1`
    const env = { PLANTS_TOKEN: token }
    const { code, out } = await user.run(`${line} --output text`, { env })
    expect([code, out]).toEqual([0, expect.stringContaining(` in ${server.url}/v1\n`)])
    expect(server.connections).toBe(0)
  })
})
