import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { run } from '../../../src/cli/program/run.js'
import { PlantsError } from '../../../src/platform/errors.js'
import { ioOf } from '../../helpers/run.js'
import { printed, World } from '../../helpers/world.js'

const csv = ['--output', 'csv']

describe.each([0, 1, 1000])('with %i plants', (count) => {
  const stored = Array.from({ length: count }, (_, index) => ({ id: index + 1, name: 'a,"b"', tag: 'x' }))
  const header = 'id,name,tag\n'

  test.each([
    ['list', ['list']],
    ['export', ['export']],
    ['delete', ['delete', '--tag', 'x', '--yes']],
  ])('%s prints one JSON value, NDJSON or a table', async (_, argv) => {
    const user = new World()
    if (count > 0)
      expect(await user.run('import', { stdin: JSON.stringify(stored) })).toMatchObject({ code: 0, err: '' })
    const rows = stored.map(({ id }) => `${id},"a,""b""",x\n`)
    expect((await user.run([...argv.filter((word) => word !== '--yes'), ...csv, ...dryRun(argv)])).out).toBe(
      header + rows.join(''),
    )
    const ndjson = await user.run([...argv.filter((word) => word !== '--yes'), '--output', 'ndjson', ...dryRun(argv)])
    const isDryRun = dryRun(argv).length > 0 && { dryRun: true }
    expect(ndjson.out).toBe(stored.map((plant) => `${JSON.stringify({ ...isDryRun, ...plant })}\n`).join(''))
    expect(JSON.parse((await user.run([...argv, '--output', 'json'])).out)).toEqual(stored)
  })
})

/** A command that deletes is repeated as a dry run. */
function dryRun(argv: string[]): string[] {
  return argv[0] === 'delete' ? ['--dry-run'] : []
}

test('one plant is a header and a row', async () => {
  const user = new World()
  expect(await user.run(['create', '--id', '1', '--name', 'Fern', ...csv])).toEqual(printed('name,tag\nFern,\n'))
  expect(await user.run(['create', '--id', 'next', '--name', 'Moss', ...csv])).toEqual(
    printed('id,name,tag\n2,Moss,\n'),
  )
  expect(await user.run(['create', '--id', '3', '--name', 'Ivy', '--dry-run', ...csv])).toEqual(
    printed('id,name,tag\n3,Ivy,\n'),
  )
  expect(await user.run(['get', '1', '--output', 'tsv'])).toEqual(printed('id\tname\ttag\n1\tFern\t\n'))
  expect(await user.run(['update', '1', '--tag', 'a', ...csv])).toEqual(printed('id,name,tag\n1,Fern,a\n'))
})

test('update --dry-run prints the plant as it would be, and changes nothing', async () => {
  const user = new World()
  await user.run('create --id 1 --name Fern')
  const change = ['update', '1', '--tag', 'shade', '--dry-run']
  expect(await user.run(change)).toEqual(printed('{"dryRun":true,"id":1,"name":"Fern","tag":"shade"}\n'))
  expect(await user.run([...change, '--output', 'text'])).toEqual(
    printed('Would update Fern (id 1): tag none → "shade"\n'),
  )
  expect((await user.run('get 1')).out).toBe('{"id":1,"name":"Fern"}\n')
  expect((await user.run('update 2 --tag shade --dry-run')).code).toBe(1)
})

test('a list is an array as json, and lines as ndjson', async () => {
  const user = new World()
  for (const line of ['stores list', 'tokens list', 'config list', 'doctor', 'list']) {
    const { out } = await user.run(`${line} --output json`)
    expect({ line, isArray: Array.isArray(JSON.parse(out)) }).toEqual({ line, isArray: true })
    const { out: lines } = await user.run(`${line} --output ndjson`)
    for (const each of lines.split('\n').filter(Boolean)) expect(JSON.parse(each)).toBeTypeOf('object')
  }
})

test('a saved format applies to the commands that print it', async () => {
  const user = new World()
  const env = { PLANTS_OUTPUT: 'csv' }
  await user.run('create --id 1 --name Fern')
  expect(await user.run('list', { env })).toEqual(printed('id,name,tag\n1,Fern,\n'))
  expect(await user.run('count', { env })).toEqual(printed('1\n'))
  expect(await user.run('export', { env: { PLANTS_OUTPUT: 'text' } })).toEqual(printed('{"id":1,"name":"Fern"}\n'))
})

test.each(['json', 'ndjson', 'csv', 'tsv'])('an error alone prints no empty list as %s', async (output) => {
  const user = new World()
  await user.run('create --id 1 --name Fern')
  expect(await user.run(['delete', '2', '--yes', '--output', output])).toMatchObject({ code: 1, out: '' })
  expect((await user.run(['delete', '1', '2', '--yes', '--output', output])).out).toContain('Fern')
})

test('errors are JSON with json and ndjson', async () => {
  for (const output of ['json', 'ndjson']) {
    const { err } = await new World().run(['get', '1', '--output', output])
    expect(JSON.parse(err)).toMatchObject({ error: 404 })
  }
  expect((await new World().run(['get', '1', ...csv])).err).toMatch(/^plants: No plant has id 1 /)
})

/** Runs a command with plants, and at one of the writes to stdout, `fails` is called. */
async function running(ids: number[], failing: number, args: string[], fails: (stop: AbortController) => void) {
  const user = new World()
  const plants = ids.map((id) => ({ id, name: 'Fern', tag: 'wet' }))
  expect(await user.run('import', { stdin: JSON.stringify(plants) })).toMatchObject({ code: 0, err: '' })
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
  const code = await run([...args, '--output', 'json'], io)
  const [error] = err.trimEnd().split('\n').slice(-1)
  return { code, ...JSON.parse(error ?? ''), left: Number((await user.run('count')).out) }
}

const isFull = () => {
  throw Object.assign(new Error('full'), { code: 'ENOSPC' })
}
const isClosed = () => {
  throw Object.assign(new Error('closed'), { code: 'EPIPE' })
}
const fern = '{"id":1,"name":"Fern","tag":"wet"}'

test.each<[string, number[], number, string[], string, number]>([
  ['one plant', [1], 1, ['delete', '1', '--yes'], `Deleted, but not printed completely: ${fern}`, 0],
  ['the end of the document', [1], 2, ['delete', '1', '--yes'], `Deleted, but not printed completely: ${fern}`, 0],
  ['several plants', [1, 2], 1, ['delete', '1', '2', '--yes'], 'Deleted, but not printed completely: 2 plants', 0],
  ['an empty list', [1], 1, ['delete', '--tag', 'none', '--yes'], 'Nothing was deleted', 1],
  ['a dry run', [1], 1, ['delete', '1', '--dry-run'], 'Nothing was deleted', 1],
])('delete says what was deleted when %s cannot be written', async (_, ids, failing, args, hint, left) => {
  expect(await running(ids, failing, args, isFull)).toMatchObject({ code: 74, error: 500, hint, left })
})

const hundred = Array.from({ length: 100 }, (_, index) => index + 1)

test.each([
  [
    'delete',
    ['delete', '--tag', 'wet', '--yes'],
    'Deleted, but not printed completely: 64 plants. No more were deleted',
    36,
  ],
  [
    'update',
    ['update', ...hundred.map(String), '--tag', 'x'],
    'Updated, but not printed completely: 64 plants. No more were updated',
    100,
  ],
])('%s says what was done when nobody reads it any more, and does no more', async (_, args, hint, left) => {
  const result = { code: 74, error: 500, message: 'The output was closed', hint, left }
  expect(await running(hundred, 1, args, isClosed)).toEqual(result)
})

test.each([
  ['delete', ['delete', '--tag', 'wet', '--yes'], 'Interrupted after deleting 64 plants', 36],
  ['update', ['update', ...hundred.map(String), '--tag', 'x'], 'Interrupted after updating 64 plants', 100],
  [
    'a dry run',
    ['update', ...hundred.map(String), '--no-tag', '--dry-run'],
    'Interrupted after updating 0 plants',
    100,
  ],
  ['get', ['get', ...hundred.map(String)], 'Interrupted', 100],
])('%s says how many plants it has changed when it is interrupted', async (_, args, message, left) => {
  const stopIt = (stop: AbortController) => stop.abort(new PlantsError('interrupted', 'Interrupted'))
  expect(await running(hundred, 1, args, stopIt)).toEqual({ code: 130, error: 500, message, left })
})
