import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { check, fc } from '../../../helpers/fast-check.js'
import { countOf } from '../../../helpers/import.js'
import { Importer, nextChunk, plant } from '../../../helpers/imports.js'
import { query } from '../../../helpers/sqlite-file.js'

let user: Importer

beforeEach(() => {
  user = new Importer()
})

interface Row {
  name: string
  tag?: string | undefined
}

const names = fc.constantFrom(
  'Ahorn',
  'ahorn',
  'B\u00e4rlauch',
  'Ba\u0308rlauch',
  'Rose "3 L"',
  '\u{1f335}',
)
const rows = fc.array(fc.record({ name: names, tag: fc.constantFrom(undefined, 'wet', 'dry') }), {
  maxLength: 12,
})

test.each([undefined, 'error', 'skip', 'same', 'update'])(
  'a list that is imported by name does what a model does, and changes nothing when it comes again; --if-exists %s',
  async (policy) => {
    const flags = `--match name --id-from next${policy ? ` --if-exists ${policy}` : ''}`
    await check(
      12,
      [rows, rows, fc.constantFrom('csv', 'ndjson'), fc.boolean()],
      async (before, list, format, isPiped) => {
        user = new Importer()
        const model = before.map((row, index) => ({ id: index + 1, ...row }))
        await user.import('--format ndjson', linesOf(model))
        const [text, columns] =
          format === 'csv' ? [tableOf(list), ['name', 'tag']] : [linesOf(list), undefined]
        user.write('list', text)
        const run = async (more = '') => {
          const all = `${isPiped ? '-' : 'list'} --format ${format} ${flags}${more}`
          const { err: _, ...result } = await user.import(all, text)
          return result
        }
        const counts = matchAll(model, list, policy ?? 'same', columns)
        expect(await run(' --dry-run')).toEqual({ ...counts, dryRun: true })
        expect(await run()).toEqual(counts)
        expect(await user.list()).toBe(linesOf(model))
        await run(' --restart')
        expect(await user.list()).toBe(linesOf(model))
      },
    )
  },
)

/** Imports a list into a model, and returns what an import prints of that. */
function matchAll(
  model: (Row & { id: number })[],
  list: Row[],
  policy: string,
  columns: string[] | undefined,
) {
  const counts = { created: 0, updated: 0, skipped: 0 }
  const rejected: Record<number, number> = {}
  const reject = (error: number) => {
    rejected[error] = (rejected[error] ?? 0) + 1
  }
  const atStart = new Map<string, number>()
  for (const { name } of model) atStart.set(name, (atStart.get(name) ?? 0) + 1)
  for (const { name, tag } of list) {
    const found = model.find((one) => one.name === name)
    const hasTag = tag !== undefined || columns?.includes('tag')
    if ((atStart.get(name) ?? 0) > 1) reject(422)
    else if (!found) {
      model.push({ id: Math.max(0, ...model.map(({ id }) => id)) + 1, name, tag })
      counts.created += 1
    } else if (policy === 'error' || (policy === 'same' && found.tag !== tag)) reject(409)
    else if (policy !== 'update' || !hasTag || found.tag === tag) counts.skipped += 1
    else {
      found.tag = tag
      counts.updated += 1
    }
  }
  const some = Object.entries(counts).filter(([, count]) => count > 0)
  const isComplete = Object.keys(rejected).length === 0
  return { code: isComplete ? 0 : 6, ...Object.fromEntries(some), ...(!isComplete && { rejected }) }
}

function linesOf(plants: object[]): string {
  return plants.map((one) => `${JSON.stringify(one)}\n`).join('')
}

function tableOf(list: Row[]): string {
  return `name,tag\n${list.map(({ name, tag = '' }) => `"${name.replaceAll('"', '""')}",${tag}\n`).join('')}`
}

test('a record with an id is that plant, and the first with a new name is the plant of that name', async () => {
  await user.run('create --id 5 --name Rose')
  const input = [
    plant(9, 'Rose'),
    '{"name":"Rose"}\n',
    plant(3, 'Sage'),
    plant(4, 'Sage'),
    '{"name":"Sage"}\n',
  ]
  expect(await user.import('--match name', input.join(''))).toEqual({
    code: 0,
    created: 3,
    skipped: 2,
    err: '',
  })
  expect(await user.list()).toBe(
    plant(3, 'Sage') + plant(4, 'Sage') + plant(5, 'Rose') + plant(9, 'Rose'),
  )
})

test('a name that an earlier record has given to another plant does not rename that back', async () => {
  await user.run('create --id 5 --name Rose')
  const input = `${plant(5, 'Sage')}{"name":"Rose","tag":"x"}\n{"name":"Sage","tag":"y"}\n`
  const { err, ...counts } = await user.import('--match name --if-exists update', input)
  expect(counts).toEqual({ code: 6, updated: 2, rejected: { 409: 1 } })
  expect(err).toContain('plants: stdin:2: Plant 5 has another name now\n')
  expect(await user.list()).toBe(plant(5, 'Sage', 'y'))
})

test('plants with one name are rejected with the first of their ids', async () => {
  const many = Array.from({ length: 1007 }, (_, index) => plant(index * 3, 'Rose')).join('')
  await user.import('', `${plant(-7, 'Sage')}${many}${plant(4, 'Sage')}`)
  const { err } = await user.import('--match name', '{"name":"Rose"}\n{"name":"Sage"}\n')
  expect(err).toContain('plants: stdin:1: Plants 0, 3, 6, 9, 12 have the name "Rose"\n')
  expect(err).toContain('plants: stdin:2: Plants -7, 4 have the name "Sage"\n')
})

test('an import goes on by name after it was stopped', async () => {
  await user.run('create --id 7 --name Weide --tag Baum')
  user.write(
    'list.csv',
    `name,tag\nAhorn,Baum\nWeide,Baum\n,x\n${nextChunk}Ahorn,Baum\nBirke,\n,x\n${nextChunk}Ahorn,Busch\nBirke,\nErle,\n`,
  )
  const command = 'list.csv --match name --id-from next --max-errors 1 --rejects bad.csv'
  expect(await user.import(command)).toMatchObject({
    code: 6,
    created: 1,
    skipped: 1,
    rejected: { 422: 1 },
  })
  for (const flags of ['--id-from next', '--match name'])
    expect((await user.import(`list.csv --rejects bad.csv ${flags}`)).err).toBe(
      'plants: An interrupted import was begun with other options, or a file has changed since\n  Use the same options and files\n',
    )
  expect(await user.import(command)).toMatchObject({ created: 2, skipped: 2, rejected: { 422: 2 } })
  const end = await user.import(command)
  expect(end).toMatchObject({ created: 3, skipped: 3, rejected: { 422: 2, 409: 1 } })
  expect(user.rejected('bad.csv').map(({ reason }) => reason)).toEqual([
    'Invalid plant: name must be a string of Unicode text without U+0000, but is missing',
    'Invalid plant: name must be a string of Unicode text without U+0000, but is missing',
    'Plant 8 has this name, but its tag differs',
  ])
  const now = [
    plant(7, 'Weide', 'Baum'),
    plant(8, 'Ahorn', 'Baum'),
    plant(9, 'Birke'),
    plant(10, 'Erle'),
  ]
  expect(await user.list()).toBe(now.join(''))
})

test('an import that was stopped begins again by name', async () => {
  user.write('list.csv', `name\nAhorn\nBirke\nx,y\n${nextChunk}Esche\n`)
  const command = 'list.csv --id-from next --match name'
  expect(await user.import(`${command} --max-errors 1`)).toMatchObject({ code: 6, created: 2 })
  user.write('list.csv', 'name\nEsche\nBirke\nAhorn\n')
  expect(await user.import(`${command} --restart`)).toMatchObject({ created: 1, skipped: 2 })
  expect(await user.list()).toBe(plant(1, 'Ahorn') + plant(2, 'Birke') + plant(3, 'Esche'))
})

test('new plants get numbers above all ids of the store and of the file', async () => {
  await user.run('create --id 3 --name Weide')
  user.write('list.csv', 'id,name\n,Ahorn\n9,Birke\n,Weide\n')
  expect(await user.import('list.csv --match name --id-from next')).toMatchObject({
    code: 0,
    created: 2,
    skipped: 1,
  })
  expect(await user.list()).toBe(plant(3, 'Weide') + plant(9, 'Birke') + plant(10, 'Ahorn'))
})

test('an import by name is not remembered, and one that was remembered before stays so', async () => {
  user.write('list.csv', 'name\nAhorn\nBirke\n')
  const by = 'list.csv --match name --id-from next'
  expect(await user.import(by)).toMatchObject({ code: 0, created: 2 })
  expect(await user.import(by)).toMatchObject({ code: 0, skipped: 2 })
  expect(query(user.store, 'SELECT * FROM imports')).toEqual([])
  user.write('more.csv', 'name\nErle\n')
  expect(await user.import('more.csv --id-from next')).toMatchObject({ code: 0, created: 1 })
  const remembered = query(user.store, 'SELECT state FROM imports')
  const { code, err } = await user.import('more.csv --id-from next')
  expect([code, err]).toEqual([
    2,
    expect.stringContaining('\n  For plants with new names alone, add --match name\n'),
  ])
  expect(await user.import(by.replace('list', 'more'))).toMatchObject({ code: 0, skipped: 1 })
  expect(query(user.store, 'SELECT state FROM imports')).toEqual(remembered)
})

test('a table without ids needs no numbers if all its names are stored', async () => {
  await user.run('create --id 7 --name Weide --tag Baum')
  user.write('list.csv', 'Kind,Nr\nWeide,A-7\n')
  const map = '--map name=Kind,id= --if-exists update'
  expect(await user.import(`list.csv --match name ${map}`)).toMatchObject({ code: 0, skipped: 1 })
  const { err } = await user.import(
    '--match name --if-exists update',
    'name,tag\nErle,\nWeide,Busch\n',
  )
  expect(err).toContain('plants: stdin:2: No plant has the name "Erle"\n')
  expect(await user.list()).toBe(plant(7, 'Weide', 'Busch'))
})

test('a record with a name that is stored is rejected for what is wrong with it', async () => {
  await user.run('create --id 7 --name Weide --tag Baum')
  user.write('list', '{"name":"Weide","tag":5}\n')
  for (const input of ['list', '-'])
    expect((await user.import(`${input} --match name`, user.read('list'))).err).toContain(
      'tag must be a string of Unicode text without U+0000, but was a number\n',
    )
})

test('all or nothing is by name, too', async () => {
  await user.run('create --id 7 --name Weide --tag Baum')
  const import_ = (text: string) =>
    user.import('--match name --id-from next --atomic --if-exists update', text)
  expect(await import_('name,tag\nWeide,\nErle,\nx,y,z\n')).toMatchObject({
    code: 6,
    rejected: { 400: 1 },
  })
  expect(await user.list()).toBe(plant(7, 'Weide', 'Baum'))
  expect(await import_('name,tag\nWeide,\nErle,\nErle,Baum\n')).toMatchObject({
    code: 0,
    created: 1,
    updated: 2,
  })
  expect(await user.list()).toBe(plant(7, 'Weide') + plant(8, 'Erle', 'Baum'))
})

test('no store is made for a dry run by name', async () => {
  const run = await user.import(
    '--match name --id-from next --dry-run',
    '{"name":"A"}\n{"name":"A"}\n',
  )
  expect(run).toMatchObject({ code: 0, created: 1, skipped: 1 })
  expect([user.has('data'), countOf(join(user.data, 'plants.db'))]).toEqual([false, 0])
})
