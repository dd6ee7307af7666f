import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { run } from '../../src/cli/program/run.js'
import { PlantsError } from '../../src/errors.js'
import { createIo } from '../helpers/sandbox/run.js'
import { parseObjects, Sandbox } from '../helpers/sandbox/sandbox.js'
import { buildJsonResponse, ScriptedServer } from '../helpers/scripted-server/scripted-server.js'
import { token } from '../helpers/scripted-server/service.js'

const plantsOf = (count: number, name: string) =>
  Array.from({ length: count }, (_, index) => ({ id: index + 1, name, tag: 'wet' }))

test.each([
  ['list', 'list'],
  ['delete --tag wet --yes', 'delete --tag wet --dry-run'],
])('plants %s prints one JSON value, and plants %s a table or NDJSON', async (line, harmless) => {
  for (const count of [0, 1000]) {
    const user = new Sandbox()
    const plants = plantsOf(count, 'a,"b"\u001b')
    if (count > 0)
      expect((await user.run('import', { stdin: JSON.stringify(plants) })).code).toBe(0)
    const rows = plants.map(({ id }) => `${id},"a,""b""\u001b",wet\n`)
    expect((await user.run(`${harmless} --output csv`)).out).toBe(`id,name,tag\n${rows.join('')}`)
    const shown = harmless === line ? plants : plants.map((plant) => ({ dryRun: true, ...plant }))
    const ndjson = shown.map((plant) => `${JSON.stringify(plant)}\n`).join('')
    expect((await user.run(`${harmless} --output ndjson`)).out).toBe(ndjson)
    expect(JSON.parse((await user.run(`${line} --output json`)).out)).toEqual(plants)
  }
})

test.each(['stores list', 'tokens list', 'doctor'])(
  'plants %s prints an array as json, and lines as ndjson',
  async (line) => {
    const user = new Sandbox()
    await user.run('tokens create')
    const objects = parseObjects((await user.run(`${line} --output ndjson`)).out)
    expect(JSON.parse((await user.run(`${line} --output json`)).out)).toEqual(objects)
  },
)

/** Runs a command with plants with the tag "wet"; at the first write to stdout, `fails` is called. */
async function running(count: number, line: string, fails: (stop: AbortController) => void) {
  const user = new Sandbox()
  const stdin = JSON.stringify(plantsOf(count, 'Fern'))
  expect(await user.run('import', { stdin })).toMatchObject({ code: 0, err: '' })
  const stop = new AbortController()
  let writes = 0
  const write = async () => {
    writes += 1
    if (writes === 1) fails(stop)
  }
  let err = ''
  const log = async (text: string) => {
    err += text
  }
  const output = {
    isTerminal: false,
    columns: 80,
    rows: 24,
    log,
    openStream: () => new PassThrough(),
  }
  const sandbox = { env: user.env, cwd: user.home, signal: stop.signal }
  const io = createIo(sandbox, { ...output, write }, { ...output, write: log })
  const code = await run([...line.split(' '), '--output', 'json'], io)
  const [error] = err.trimEnd().split('\n').slice(-1)
  return { code, ...JSON.parse(error || '{}'), left: Number((await user.run('count')).out) }
}

function failingWith(code: string): () => never {
  return () => {
    throw Object.assign(new Error(code), { code })
  }
}

test.each<[line: string, left: number]>([
  ['delete 1 --yes', 1],
  ['delete --tag none --yes', 2],
  ['delete 1 --dry-run', 2],
])('plants %s reports that only its output could not be written', async (line, left) => {
  const result = { code: 74, error: 500, left }
  expect(await running(2, line, failingWith('ENOSPC'))).toMatchObject(result)
})

const hundred = Array.from({ length: 100 }, (_, index) => index + 1).join(' ')
const [deletion, update] = ['delete --tag wet --yes', `update ${hundred} --tag x`]

test.each([
  [deletion, 0],
  [update, 100],
  [`${deletion} --dry-run`, 100],
])(
  'plants %s succeeds without a message when its reader has closed the output',
  async (line, left) => {
    expect(await running(100, line, failingWith('EPIPE'))).toMatchObject({ code: 0, left })
  },
)

test.each([
  [deletion, 36],
  [update, 100],
  [`${update} --dry-run`, 100],
  [`get ${hundred}`, 100],
])('plants %s ends at an interruption after the plants that it has printed', async (line, left) => {
  const stopIt = (stop: AbortController) =>
    stop.abort(new PlantsError('interrupted', 'Interrupted'))
  const result = { code: 130, error: 500, message: 'Interrupted', kind: 'interrupted', left }
  expect(await running(100, line, stopIt)).toEqual(result)
})

test.each([
  ['get 2 1', 3],
  ['update 2 1 --tag x', 5],
  ['delete 2 1 --yes', 5],
])(
  'the exit code of plants %s is that of the worst error, whichever comes first',
  async (line, code) => {
    const missing = buildJsonResponse(404, { error: 404, message: 'No plant has this id' })
    const rejectsToken = buildJsonResponse(401, { error: 401, message: 'Who?' })
    // A response with another plant leaves the outcome of a change unknown.
    const otherPlant = buildJsonResponse(200, { id: 3, name: 'Fern' })
    const others = (first: string, second: string) => ({
      [`GET /plants/${first}`]: [missing],
      [`PATCH /plants/${first}`]: [missing],
      [`DELETE /plants/${first}`]: [missing],
      [`GET /plants/${second}`]: [rejectsToken],
      [`PATCH /plants/${second}`]: [otherPlant],
      [`DELETE /plants/${second}`]: [otherPlant],
    })
    for (const responses of [others('2', '1'), others('1', '2')]) {
      const { url } = await ScriptedServer.listen({ others: responses })
      const env = { PLANTS_TOKEN: token, PLANTS_STORE: url }
      expect(await new Sandbox().run(line, { env })).toMatchObject({ code })
    }
  },
)
