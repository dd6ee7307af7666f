import { readdirSync } from 'node:fs'
import { beforeEach, describe, expect, test } from 'vitest'
import { run } from '../../../src/cli/program/run.js'
import { PlantsError } from '../../../src/errors.js'
import {
  buildPlantLine,
  countPlants,
  fillChunk,
  ImportSandbox,
} from '../../helpers/sandbox/import-sandbox.js'
import { CapturedOutput, createIo } from '../../helpers/sandbox/run.js'
import { DatabaseSync } from '../../helpers/sandbox/sqlite-file.js'
import { buildPlantWorkbook, buildRows } from '../../helpers/sandbox/workbook.js'

// An import remembers nothing: the same command reads everything again, and stores what is missing.

let user: ImportSandbox

beforeEach(() => {
  user = new ImportSandbox()
})

const listNames = async () => (await user.run('list -o csv')).out.split('\n').slice(1, -1)

/** Runs the command, and interrupts it after its first chunk. */
async function interrupt(command: string, stdin?: string) {
  const stop = new AbortController()
  const now = () => {
    if (countPlants(user.store) > 0) stop.abort(new PlantsError('interrupted', 'Interrupted'))
    return performance.now()
  }
  return user.import(command, stdin, { now, signal: stop.signal })
}

describe('a list by name', () => {
  test('with ids in some rows is stored once, and nothing of it is rejected later', async () => {
    user.write('list.csv', 'id,name\n,Fern\n7,Fern\n')
    expect(await user.import('list.csv --by-name')).toMatchObject({ code: 0, created: 2 })
    expect(await listNames()).toEqual(['7,Fern,', '8,Fern,'])
    const again = await user.import('list.csv --by-name')
    expect(again).toMatchObject({ code: 0, skipped: 2 })
  })

  test('of next month has one plant more, and one tag changed', async () => {
    user.write('list.csv', 'name,tag\nFern,shade\nMoss,\n')
    await user.import('list.csv --by-name')
    user.write('list.csv', 'name,tag\nAloe,\nFern,sun\nMoss,\n')
    const command = 'list.csv --by-name'
    const same = await user.import(command)
    expect(same).toMatchObject({ created: 1, skipped: 1, rejected: { 409: 1 } })
    const update = await user.import(`${command} --if-exists update`)
    expect(update).toMatchObject({ code: 0, updated: 1, skipped: 2 })
    expect(await listNames()).toEqual(['1,Fern,sun', '2,Moss,', '3,Aloe,'])
  })

  test('does not overwrite a plant that has taken a generated id meanwhile', async () => {
    user.write('list.ndjson', `${fillChunk('{"name":"Fern"}')}{"name":"Moss","tag":"wet"}\n`)
    let isTaken = false
    const now = () => {
      if (!isTaken && countPlants(user.store) === 1) {
        isTaken = true
        const db = new DatabaseSync(user.store)
        db.exec("INSERT INTO plants (id, name) VALUES (2, 'Oak')")
        db.close()
      }
      return performance.now()
    }
    const command = 'list.ndjson --by-name --if-exists update'
    const first = await user.import(command, undefined, { now })
    expect(first).toMatchObject({ code: 6, created: 1, rejected: { 409: 1 } })
    expect(first.err).toContain('Run the same command again')
    expect(await user.import(command)).toMatchObject({ code: 0, created: 1, skipped: 1 })
    expect(await listNames()).toEqual(['1,Fern,', '2,Oak,', '3,Moss,wet'])
  })

  test('leaves gaps where a constraint of the owner rejects a name, and fills them', async () => {
    await user.run('create --id 1 --name Oak')
    const db = new DatabaseSync(user.store)
    db.exec(`CREATE TRIGGER t BEFORE INSERT ON plants WHEN NEW.id % 7 = 0
      BEGIN SELECT RAISE(ABORT, 'no seventh'); END`)
    const names = Array.from({ length: 20 }, (_, index) => `Fern ${index}`)
    user.write('list.csv', `name\n${names.join('\n')}\n`)
    const command = 'list.csv --by-name'
    expect(await user.import(command)).toMatchObject({ created: 17, rejected: { 422: 3 } })
    expect(await user.import(command)).toMatchObject({ created: 2, rejected: { 422: 1 } })
    expect(await user.import(command)).toMatchObject({ created: 1, skipped: 19, code: 0 })
    db.close()
    expect((await listNames()).map((row) => row.split(',')[1])).toEqual(
      expect.arrayContaining(['Oak', ...names]),
    )
    expect(countPlants(user.store)).toBe(21)
  })
})

describe('an import that was interrupted', () => {
  const text = `{"id":1,"name":"Fern"}\n${fillChunk('{"id":2}')}{"id":3,"name":"Moss"}\n{"id":4}\n`
  const hint = 'To continue, run the same command again\n'

  test.each(['', '--if-exists skip', '--if-exists update'])(
    'is continued by the same command, with all rejected records: %s',
    async (flags) => {
      user.write('list', text)
      const command = `list --rejects bad ${flags}`
      const first = await interrupt(command)
      expect(first).toMatchObject({ code: 130, created: 1, rejected: { 422: 1 } })
      expect(first.err).toContain(`Interrupted after 2 plants\n`)
      expect(first.err).toContain(hint)
      expect(readdirSync(user.home).filter((name) => /bad|tmp/.test(name))).toEqual([])
      const again = { code: 6, created: 1, skipped: 1, rejected: { 422: 2 } }
      expect(await user.import(command)).toMatchObject(again)
      expect(user.readRejected('bad').map(({ line }) => line)).toEqual([2, 4])
    },
  )

  test('and read stdin leaves its rejects file', async () => {
    const first = await interrupt('- --rejects bad', text)
    expect(first).toMatchObject({ code: 130, created: 1 })
    expect(first.err).toContain('run the same command again with a new --rejects file')
    expect(user.readRejected('bad').map(({ line }) => line)).toEqual([2])
  })

  test('by an unclosed quote of stdin leaves its rejects file', async () => {
    const firstChunk = `id,name\nx,Fern\n1,${'Moss'.repeat(200_000)}\n`
    const table = `${firstChunk}2,"Rose\n`
    expect(await user.import('- --rejects bad', table)).toMatchObject({ code: 2 })
    expect(user.read('bad')).toMatch(/\n2,.*,x,Fern\n$/)
  })

  test('stores nothing with --atomic, and leaves no rejects file', async () => {
    user.write('list', text)
    const stop = new AbortController()
    let calls = 0
    const now = () => {
      calls += 1
      if (calls > 2) stop.abort(new PlantsError('interrupted', 'Interrupted'))
      return performance.now()
    }
    const options = { now, signal: stop.signal }
    const result = await user.import('list --atomic --rejects bad', undefined, options)
    expect(result).toMatchObject({ code: 130, err: expect.stringContaining('nothing was changed') })
    expect([countPlants(user.store), user.has('bad')]).toEqual([0, false])
  })

  test('treats the store as it finds it: a changed plant differs, and a deleted one comes back', async () => {
    user.write('list', `${buildPlantLine(1)}${fillChunk(buildPlantLine(2))}${buildPlantLine(3)}`)
    await interrupt('list')
    await user.run('update 1 --name Renamed')
    await user.run('delete 2 --yes')
    expect(await user.import('list')).toMatchObject({ created: 2, rejected: { 409: 1 } })
    const update = await user.import('list --if-exists update')
    expect(update).toMatchObject({ code: 0, updated: 1, skipped: 2 })
  })
})

test('two imports of one list at once store each record once', async () => {
  const lines = Array.from(
    { length: 3000 },
    (_, index) => `{"id":${index},"name":"Fern ${index % 1000}"}\n`,
  )
  user.write('list', lines.join(''))
  const results = await Promise.all(
    [1, 2].map(async (n) => (await user.run(`import list --rejects bad${n}`)).code),
  )
  expect(results).toEqual([0, 0])
  expect(countPlants(user.store)).toBe(3000)
})

test('two imports with one rejects file lose no record', async () => {
  user.write('one', '{"id":1}\n')
  user.write('two', '{"id":2}\n')
  const results = await Promise.all(
    ['one', 'two'].map((file) => user.run(`import ${file} --if-exists update --rejects bad`)),
  )
  expect(results.map(({ code }) => code).sort()).toEqual([6, 74])
  const rest = readdirSync(user.home).filter((name) => name.endsWith('.tmp'))
  expect(rest).toHaveLength(1)
  const lines = [...user.readRejected('bad'), ...user.readRejected(String(rest[0]))]
  expect(lines.map(({ record }) => record)).toEqual(expect.arrayContaining([{ id: 1 }, { id: 2 }]))
})

test('an import succeeds although nobody reads its summary', async () => {
  const io = createIo({ cwd: user.home, env: user.env })
  const stdout = new CapturedOutput({}, 'stdout')
  stdout.write = () => Promise.reject(Object.assign(new Error('EPIPE'), { code: 'EPIPE' }))
  user.write('plants', '{"name":"A"}\n')
  expect(await run(['import', 'plants', '--by-name', '--atomic'], { ...io, stdout })).toBe(0)
  expect(await user.list()).toBe(buildPlantLine(1, 'A'))
})

test('a short row keeps the tag in a CSV, and an empty cell removes it', async () => {
  const before = buildPlantLine(1, 'Fern', 'shade') + buildPlantLine(2, 'Moss', 'wet')
  await user.import('', before)
  const table = 'id,name,tag\n1,Fern 2\n2,Moss 2,\n'
  const result = await user.import('--if-exists update', table)
  expect(result).toMatchObject({ code: 0, updated: 2 })
  expect(await listNames()).toEqual(['1,Fern 2,shade', '2,Moss 2,'])
})

test('a short row of a workbook removes the tag, because its cell is empty', async () => {
  await user.import('', buildPlantLine(1, 'Fern', 'shade'))
  user.write('list.xlsx', buildPlantWorkbook(buildRows(['1', 'Fern'])))
  const result = await user.import('list.xlsx --if-exists update')
  expect(result).toMatchObject({ code: 0, updated: 1 })
  expect(await listNames()).toEqual(['1,Fern,'])
})

test('a repeated import rejects the same records for the same reasons', async () => {
  await user.run('create --id 1 --name Moss --tag sun')
  user.write('list.csv', 'name,tag\nMoss,wet\nMoss,dry\n')
  await user.import('list.csv --by-name --rejects first')
  await user.import('list.csv --by-name --rejects second')
  expect(user.read('first')).toContain('Plant 1 has this name')
  expect(user.read('second')).toBe(user.read('first'))
})
