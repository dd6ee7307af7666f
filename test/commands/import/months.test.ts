import { beforeEach, describe, expect, test } from 'vitest'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'

// A list comes again each month. Which plant each record stands for is tested with random lists in
// random-months.test.ts; these are lists as people have them.

let user: ImportSandbox

beforeEach(() => {
  user = new ImportSandbox()
})

/** Imports a list twice. The second time must change nothing. */
async function importTwice(rows: readonly string[], flags: string) {
  user.write('list.csv', `${rows.join('\n')}\n`)
  const result = await user.import(`list.csv ${flags}`)
  const plants = await list()
  const again = await user.import(`list.csv ${flags}`)
  expect([again.created, again.updated]).toEqual([undefined, undefined])
  expect(await list()).toEqual(plants)
  return result
}

const list = async () => (await user.run('list -o csv')).out.split('\n').slice(1, -1)

describe('a list whose names occur twice', () => {
  const first = ['name,tag', 'Lavender,South', 'Lavender,North', 'Rose,Pond']

  test('is sorted anew, and has a row more', async () => {
    expect(await importTwice(first, '--by-name')).toMatchObject({ code: 0, created: 3 })
    const rows = ['name,tag', 'Rose,Pond', 'Lavender,North', 'Lavender,Pond', 'Lavender,South']
    const second = await importTwice(rows, '--by-name')
    expect(second).toMatchObject({ code: 0, created: 1, skipped: 3 })
    expect(await list()).toHaveLength(4)
  })

  test('has one of them in another bed', async () => {
    await importTwice(first, '--by-name')
    const rows = ['name,tag', 'Lavender,East', 'Lavender,North', 'Rose,Pond']
    const second = await importTwice(rows, '--by-name --if-exists update')
    expect(second).toMatchObject({ code: 0, updated: 1, skipped: 2 })
    expect(await list()).toEqual(['1,Lavender,East', '2,Lavender,North', '3,Rose,Pond'])
  })

  test('is a list of equal plants, each of which is a plant of its own', async () => {
    const oaks = ['name,tag', 'Oak,A', 'Oak,A', 'Oak,B']
    const { err } = await importTwice(oaks, '--by-name')
    expect(err).toContain('each a plant of its own: 1')
    const second = await importTwice([...oaks, 'Oak,A'], '--by-name')
    expect(second).toMatchObject({ created: 1, skipped: 3 })
    expect(second.err).toContain('each a plant of its own: 2')
    expect(await list()).toHaveLength(4)
  })

  test.each(['', '--if-exists skip', '--if-exists update'])(
    'has no tags, and the tags of the store stay: %s',
    async (flags) => {
      await importTwice(first, '--by-name')
      const second = await importTwice(['name', 'Lavender', 'Lavender'], `--by-name ${flags}`)
      expect(second).toMatchObject({ code: 0, skipped: 2 })
      expect(await list()).toEqual(['1,Lavender,South', '2,Lavender,North', '3,Rose,Pond'])
    },
  )
})

test('a plant that is spelled otherwise stands for the record with its tag, and for no other', async () => {
  await importTwice(['name,tag', 'oak,A'], '--by-name')
  const rows = ['name,tag', 'Oak,A', 'Oak,C']
  const second = await importTwice(rows, '--by-name --if-exists update')
  expect(second).toMatchObject({ code: 0, created: 1, updated: 1 })
  expect(await list()).toEqual(['1,Oak,A', '2,Oak,C'])
})

describe('a list with ids in some rows', () => {
  const numbered = Array.from({ length: 9 }, (_, index) => `${index + 1},Plant ${index + 1},`)

  test('gets a number that the store has given to another plant', async () => {
    await importTwice(['id,name,tag', ...numbered, ',Iris,'], '--by-name')
    const rows = ['id,name,tag', ...numbered, '10,Peony,', ',Iris,']
    expect(await importTwice(rows, '--by-name')).toMatchObject({
      skipped: 10,
      rejected: { 409: 1 },
    })
    const update = await importTwice(rows, '--by-name --if-exists update')
    expect(update).toMatchObject({ code: 0, created: 1, updated: 1 })
    const names = (await list()).map((row) => row.split(',')[1])
    expect(names.filter((name) => name === 'Iris')).toHaveLength(1)
    expect(names).toEqual(expect.arrayContaining(['Peony', 'Plant 1', 'Plant 9']))
  })

  test('has a third plant of a name, without a number', async () => {
    const first = ['id,name,tag', '1,Lavender,South', '2,Rose,Pond']
    await importTwice(first, '--by-name --if-exists update')
    const rows = [...first, ',Lavender,North']
    expect(await importTwice(rows, '--by-name --if-exists update')).toMatchObject({ created: 1 })
    expect(await list()).toEqual(['1,Lavender,South', '2,Rose,Pond', '3,Lavender,North'])
  })

  test('generates no id that a rejected record has', async () => {
    user.write('list.csv', 'id,name\n9,Fern\n10,\n,Iris\n')
    expect(await user.import('list.csv --by-name')).toMatchObject({ rejected: { 422: 1 } })
    const corrected = await importTwice(['id,name', '9,Fern', '10,Rose', ',Iris'], '--by-name')
    expect(corrected).toMatchObject({ code: 0, created: 1, skipped: 2 })
    expect(await list()).toEqual(['9,Fern,', '10,Rose,', '11,Iris,'])
  })
})

test('a list in another spelling has no new plants', async () => {
  const first = [
    "Rosa 'New Dawn'",
    'Abelia x grandiflora',
    'Hosta  sieboldiana',
    'Ilex P\u00e9rnyi',
  ]
  const others = ['Xanthium', 'anthium', 'Seedling', 'Seedling X']
  await importTwice(['name', ...first, ...others], '--by-name')
  const second = [
    'Rosa \u2018New Dawn\u2019',
    'Abelia \u00d7grandiflora',
    'HOSTA sieboldiana',
    'Ilex Pe\u0301rnyi',
  ]
  const rows = ['name', ...second, ...others]
  expect(await importTwice(rows, '--by-name')).toMatchObject({ skipped: 4, rejected: { 409: 4 } })
  const update = await importTwice(rows, '--by-name --if-exists update')
  expect(update).toMatchObject({ code: 0, updated: 4, skipped: 4 })
  expect((await list()).map((row) => row.split(',')[1])).toEqual([...second, ...others])
})

test('a rejects file is not matched, and the hint is to correct the list', async () => {
  user.write('list.csv', 'name,tag\nLavender,South\n,Pond\nLavender,North\n')
  const first = await user.import('list.csv --by-name --rejects r.csv')
  expect(first.err).toContain('Correct the input, and run the command again with a new --rejects')
  const plants = await list()
  expect(await user.import('r.csv --by-name')).toMatchObject({ code: 2 })
  expect(await list()).toEqual(plants)
})

test('two lists that are imported by name one after the other are one list, unless one command has both', async () => {
  user.write('north.csv', 'name,tag\nLavender,North\nLavender,North\nRose,North\n')
  user.write('south.csv', 'name,tag\nLavender,South\nRose,North\n')
  expect(await user.import('north.csv --by-name')).toMatchObject({ code: 0, created: 3 })
  const second = await user.import('south.csv --by-name')
  expect(second).toMatchObject({ code: 6, skipped: 1, rejected: { 409: 1 } })
  const both = ['north.csv', 'south.csv', '--by-name', '--store', './both.db']
  expect(await user.import(both)).toMatchObject({ code: 0, created: 5 })
  expect(await user.import(both)).toMatchObject({ code: 0, skipped: 5 })
})

test('a file of corrections says nothing of --sync', async () => {
  const plants = Array.from({ length: 300 }, (_, index) => `${index + 1},Plant ${index + 1}`)
  await importTwice(['id,name', ...plants], '')
  const result = await importTwice(['id,name', '7,Fern', '8,Iris', '9,Moss'], '--if-exists update')
  expect(result).toMatchObject({ code: 0, updated: 3 })
  expect(result.err).not.toContain('--sync')
})
