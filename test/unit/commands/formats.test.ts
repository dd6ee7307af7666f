import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { run } from '../../../src/cli/program/run.js'
import { PlantsError } from '../../../src/platform/errors.js'
import { Hostile } from '../../helpers/hostile.js'
import { token } from '../../helpers/http-store.js'
import { objectsOf } from '../../helpers/json-lines.js'
import { ioOf, runPlants } from '../../helpers/run.js'
import { World } from '../../helpers/world.js'

test.each([
  ['list', 'list'],
  ['delete --tag x --yes', 'delete --tag x --dry-run'],
])('%s prints one JSON value, and %s a table or NDJSON', async (line, harmless) => {
  for (const count of [0, 1000]) {
    const user = new World()
    const plants = Array.from({ length: count }, (_, index) => ({
      id: index + 1,
      name: 'a,"b"',
      tag: 'x',
    }))
    if (count > 0)
      expect((await user.run('import', { stdin: JSON.stringify(plants) })).code).toBe(0)
    const rows = plants.map(({ id }) => `${id},"a,""b""",x\n`)
    expect((await user.run(`${harmless} --output csv`)).out).toBe(`id,name,tag\n${rows.join('')}`)
    const shown = harmless === line ? plants : plants.map((plant) => ({ dryRun: true, ...plant }))
    const ndjson = shown.map((plant) => `${JSON.stringify(plant)}\n`).join('')
    expect((await user.run(`${harmless} --output ndjson`)).out).toBe(ndjson)
    expect(JSON.parse((await user.run(`${line} --output json`)).out)).toEqual(plants)
  }
})

test.each(['stores list', 'tokens list', 'doctor --quick'])(
  '%s is an array as json, and lines as ndjson',
  async (line) => {
    const user = new World()
    await user.run('tokens create')
    const objects = objectsOf((await user.run(`${line} --output ndjson`)).out)
    expect(JSON.parse((await user.run(`${line} --output json`)).out)).toEqual(objects)
  },
)

test('an error alone prints no empty list', async () => {
  expect(await new World().run('delete 2 --yes --output json')).toMatchObject({ code: 1, out: '' })
})

/** Runs a command with plants with the tag "wet"; at one of the writes to stdout, `fails` is called. */
async function running(
  count: number,
  line: string,
  fails: (stop: AbortController) => void,
  failing = 1,
) {
  const user = new World()
  const plants = Array.from({ length: count }, (_, index) => ({
    id: index + 1,
    name: 'Fern',
    tag: 'wet',
  }))
  expect(await user.run('import', { stdin: JSON.stringify(plants) })).toMatchObject({
    code: 0,
    err: '',
  })
  const stop = new AbortController()
  let writes = 0
  const write = async () => {
    writes += 1
    if (writes === failing) fails(stop)
  }
  let err = ''
  const log = async (text: string) => {
    err += text
  }
  const output = { isTerminal: false, columns: 80, rows: 24, log, stream: () => new PassThrough() }
  const world = { env: user.env, cwd: user.home, signal: stop.signal }
  const io = ioOf(world, { ...output, write }, { ...output, write: log })
  const code = await run([...line.split(' '), '--output', 'json'], io)
  const [error] = err.trimEnd().split('\n').slice(-1)
  return { code, ...JSON.parse(error ?? ''), left: Number((await user.run('count')).out) }
}

function failingWith(code: string): () => never {
  return () => {
    throw Object.assign(new Error(code), { code })
  }
}

test.each<[line: string, hint: string, left: number, failing?: number]>([
  ['delete 1 --yes', 'Deleted 1 plant', 1, 2], // the end of the document
  ['delete 1 2 --yes', 'Deleted 2 plants', 0],
  ['delete --tag none --yes', 'Deleted 0 plants', 2],
  ['delete 1 --dry-run', 'Nothing was changed', 2],
])(
  '%s reports what was deleted when its output cannot be written',
  async (line, hint, left, failing) => {
    const result = { code: 74, error: 500, hint, left }
    expect(await running(2, line, failingWith('ENOSPC'), failing)).toMatchObject(result)
  },
)

const hundred = Array.from({ length: 100 }, (_, index) => index + 1).join(' ')
const [deletion, update] = ['delete --tag wet --yes', `update ${hundred} --tag x`]

test.each([
  [deletion, 'Deleted 64 plants. No more were deleted', 36],
  [update, 'Updated 64 plants. No more were updated', 100],
])(
  '%s stops when nobody reads the output any more, and reports what was done',
  async (line, hint, left) => {
    const result = { code: 74, error: 500, message: 'The output was closed', hint, left }
    expect(await running(100, line, failingWith('EPIPE'))).toEqual(result)
  },
)

test.each([
  [deletion, 'Interrupted after deleting 64 plants', 36],
  [update, 'Interrupted after updating 64 plants', 100],
  [`${update} --dry-run`, 'Interrupted after updating 0 plants', 100],
  [`get ${hundred}`, 'Interrupted', 100],
])(
  '%s reports how many plants it has changed when it is interrupted',
  async (line, message, left) => {
    const stopIt = (stop: AbortController) =>
      stop.abort(new PlantsError('interrupted', 'Interrupted'))
    expect(await running(100, line, stopIt)).toEqual({ code: 130, error: 500, message, left })
  },
)

test('changes that are in flight to a service are each named when they are interrupted', async () => {
  const silent = () => undefined
  const others = {
    'DELETE /plants/1': [silent],
    'DELETE /plants/2': [silent],
    'DELETE /plants/3': [silent],
  }
  const service = await Hostile.listen({ others })
  const stop = new AbortController()
  const line = ['delete', '1', '2', '3', '--yes', '--store', service.url]
  const deletion = runPlants(line, { env: { PLANTS_TOKEN: token }, signal: stop.signal })
  await expect.poll(() => service.lines.length).toBe(3)
  stop.abort(new PlantsError('interrupted', 'Interrupted'))
  const { code, err } = await deletion
  const named = Array.from(
    err.matchAll(/Whether plant (\d) was changed is unknown/g),
    ([, id]) => id,
  )
  expect([code, named.toSorted()]).toEqual([130, ['1', '2', '3']])
})
