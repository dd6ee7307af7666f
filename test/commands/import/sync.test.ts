import { readdirSync } from 'node:fs'
import { beforeEach, describe, expect, test } from 'vitest'
import { PlantsError } from '../../../src/errors.js'
import { toWireJson } from '../../../src/plant/json.js'
import { check, fc, generateNewPlant, generateText } from '../../helpers/expect/arbitraries.js'
import { countPlants, ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { parseObjects } from '../../helpers/sandbox/sandbox.js'
import { queryFile } from '../../helpers/sandbox/sqlite-file.js'

// The list is the store: test/contract/sync.test.ts has its usual month, in each kind of store.

const header = 'id,name,tag'
const firstMonth = [header, '1,Lavender,South', '2,Rose,Pond', '3,Mint,Herbs', '4,Sage,Herbs']
const secondMonth = [header, '5,Thyme,Herbs', '1,Lavender,South', '2,Rose,North', '4,Salvia,Herbs']

let user: ImportSandbox

beforeEach(() => {
  user = new ImportSandbox()
})

const write = (file: string, rows: readonly string[]) => user.write(file, `${rows.join('\n')}\n`)
const list = async () => (await user.run('list -o csv')).out.trim().split('\n')

async function importFirstMonth(): Promise<void> {
  write('list.csv', firstMonth)
  await user.import('list.csv')
}

describe('a dry run with --sync', () => {
  test('has the numbers of the import, asks nobody and changes nothing', async () => {
    await importFirstMonth()
    write('list.csv', secondMonth)
    const counts = { created: 1, updated: 2, skipped: 1, deleted: 1 }
    const dryRun = await user.import('list.csv --sync --dry-run')
    expect(dryRun).toMatchObject({ code: 0, dryRun: true, ...counts })
    expect(await list()).toEqual(firstMonth)
    expect(await user.import('list.csv --sync --yes')).toMatchObject({ code: 0, ...counts })
  })
})

test('a dry run with --sync as NDJSON has a line for each change, the deletions last', async () => {
  await importFirstMonth()
  write('list.csv', secondMonth)
  const { out } = await user.run('import list.csv --sync --dry-run -o ndjson')
  const [summary, ...changes] = parseObjects(out).reverse()
  expect(changes.reverse()).toEqual([
    { change: 'create', id: 5, after: { id: 5, name: 'Thyme', tag: 'Herbs' } },
    {
      change: 'update',
      id: 2,
      before: { id: 2, name: 'Rose', tag: 'Pond' },
      after: { id: 2, name: 'Rose', tag: 'North' },
    },
    {
      change: 'update',
      id: 4,
      before: { id: 4, name: 'Sage', tag: 'Herbs' },
      after: { id: 4, name: 'Salvia', tag: 'Herbs' },
    },
    { change: 'delete', id: 3, before: { id: 3, name: 'Mint', tag: 'Herbs' } },
  ])
  expect(summary).toMatchObject({ dryRun: true, created: 1, updated: 2, deleted: 1 })
  expect(await list()).toEqual(firstMonth)
})

test('the first command that undoes a stopped and repeated import restores the first month', async () => {
  await importFirstMonth()
  await user.run('tokens create --note ci')
  const tokens = (await user.run('tokens list')).out
  // Behind two long rows, another chunk begins.
  const rows = secondMonth.map((row) => (/^[15]/.test(row) ? row + ' '.repeat(600_000) : row))
  write('list.csv', rows)
  const stop = new AbortController()
  const now = () => {
    if (countPlants(user.store) > 4) stop.abort(new PlantsError('interrupted', 'Interrupted'))
    return performance.now()
  }
  const first = await user.import('list.csv --sync --yes', undefined, { now, signal: stop.signal })
  expect(first).toMatchObject({ code: 130, created: 1 })
  expect(await list()).toHaveLength(firstMonth.length + 1)
  const second = await user.import('list.csv --sync --yes')
  expect(second).toMatchObject({ code: 0, updated: 2, deleted: 1 })
  const [, undo = ''] = /To undo, .*: plants (restore .*)\n/.exec(first.err) ?? []
  expect(await user.run(undo)).toMatchObject({ code: 0 })
  expect(await list()).toEqual(firstMonth)
  expect((await user.run('tokens list')).out).toBe(tokens)
})

test.each([
  { format: 'ndjson', texts: generateText() },
  {
    format: 'csv',
    texts: generateText()
      .map((text) => text.trim())
      .filter(Boolean),
  },
])('any plants, exported as $format, replace those of another store', async (row) => {
  const plants = fc.uniqueArray(generateNewPlant(row.texts), {
    selector: ({ id }) => id,
    minLength: 1,
    maxLength: 40,
  })
  await check(3, [plants, plants], async (newPlants, oldPlants) => {
    user = new ImportSandbox()
    const lines = (all: typeof newPlants) => all.map((plant) => `${toWireJson(plant)}\n`).join('')
    await user.import('--format ndjson', lines(newPlants))
    const file = `list.${row.format}`
    await user.run(`export ${file}`)
    const other = ['--store', './other.db']
    await user.import(['--format', 'ndjson', ...other], lines(oldPlants))
    expect(await user.import([file, '--sync', '--yes', ...other])).toMatchObject({ code: 0 })
    const exported = (await user.run(['export', '-o', 'ndjson', ...other])).out
    expect(exported).toBe((await user.run('export -o ndjson')).out)
    const again = await user.import([file, '--sync', '--yes', ...other])
    expect(again).toEqual({ code: 0, skipped: newPlants.length, err: '' })
  })
})

describe('--sync deletes nothing', () => {
  test.each([
    { what: 'a record is rejected', rows: [...secondMonth, 'x,Fern,'], missing: 1 },
    { what: 'a record has too many cells', rows: [...secondMonth, '6,Fern,a,b'], missing: 1 },
    {
      what: 'two plants have one id',
      rows: [header, '1,Lavender,South', '1,Lily,Pond'],
      missing: 3,
    },
  ])('if $what', async ({ rows, missing }) => {
    await importFirstMonth()
    write('list.csv', rows)
    const result = await user.import('list.csv --sync --yes')
    expect(result).toMatchObject({ code: 6, missing })
    expect(result).not.toHaveProperty('deleted')
    expect(await list()).toContain('3,Mint,Herbs')
  })

  test('if a record of an atomic import is rejected, and then changes nothing', async () => {
    await importFirstMonth()
    write('list.csv', [...secondMonth, 'x,Fern,'])
    expect(await user.import('list.csv --sync --atomic --yes')).toMatchObject({ code: 6 })
    expect(await list()).toEqual(firstMonth)
  })

  test.each([
    { what: 'nobody has agreed', rows: secondMonth, flags: '' },
    { what: 'the list has no records', rows: [header], flags: '--yes' },
    {
      what: 'the header may be a plant',
      rows: ['7,Fern,', '8,Iris,'],
      flags: '--map id=1,name=2 --yes',
    },
    {
      what: 'the list is a rejects file',
      rows: [`rejected_line,rejected_reason,${header}`, '3,"why",1,Lavender,South'],
      flags: '--yes',
    },
    { what: 'a policy is given, too', rows: secondMonth, flags: '--if-exists skip --yes' },
    { what: 'a rejects file is wanted', rows: secondMonth, flags: '--rejects r.csv --yes' },
  ])('and nothing changes, if $what', async ({ rows, flags }) => {
    await importFirstMonth()
    write('next.csv', rows)
    expect(await user.import(`next.csv --sync ${flags}`)).toMatchObject({ code: 2 })
    expect(await list()).toEqual(firstMonth)
  })

  test('and nothing changes, if the list comes from a pipe', async () => {
    await importFirstMonth()
    const result = await user.import('- --sync --yes', `${secondMonth.join('\n')}\n`)
    expect(result).toMatchObject({ code: 2 })
    expect(await list()).toEqual(firstMonth)
  })
})

test('several files are one list', async () => {
  await importFirstMonth()
  write('a.csv', secondMonth.slice(0, 3))
  write('b.csv', [header, ...secondMonth.slice(3)])
  const counts = { created: 1, updated: 2, skipped: 1, deleted: 1 }
  expect(await user.import('a.csv b.csv --sync --yes')).toMatchObject({ code: 0, ...counts })
})

test('an equal record that occurs twice is one plant', async () => {
  await importFirstMonth()
  write('list.csv', [...firstMonth, '3,Mint,Herbs'])
  expect(await user.import('list.csv --sync --yes')).toMatchObject({ code: 0, skipped: 5 })
})

test('own ids replace the generated ones', async () => {
  write('list.csv', ['name,tag', 'Lavender,South', 'Rose,Pond'])
  await user.import('list.csv --by-name')
  const numbered = [header, '11,Lavender,South', '12,Rose,Pond']
  write('list.csv', numbered)
  const result = await user.import('list.csv --sync --yes')
  expect(result).toMatchObject({ code: 0, created: 2, deleted: 2 })
  expect(await list()).toEqual(numbered)
})

describe('a record without a tag', () => {
  test('removes the tag of its plant, in JSON', async () => {
    await importFirstMonth()
    user.write('e.ndjson', '{"id":1,"name":"Lavender"}\n{"id":2,"name":"Rose","tag":"Pond"}\n')
    expect(await user.import('e.ndjson --sync --yes')).toMatchObject({ updated: 1, deleted: 2 })
    expect(await list()).toEqual([header, '1,Lavender,', '2,Rose,Pond'])
  })

  test.each(['id,name', 'name'])('keeps it, if no record has one: %s', async (names) => {
    await importFirstMonth()
    const start = names === 'name' ? 2 : 0
    const rows = firstMonth.slice(1).map((row) => row.slice(start).replace(/,[^,]*$/, ''))
    write('list.csv', [names, ...rows])
    const flags = names === 'name' ? '--by-name --sync --yes' : '--sync --yes'
    expect(await user.import(`list.csv ${flags}`)).toMatchObject({ code: 0, skipped: 4 })
    expect(await list()).toEqual(firstMonth)
  })
})

test('an empty cell removes the tag of a plant, if all are empty, too', async () => {
  await importFirstMonth()
  const rows = firstMonth.slice(1).map((row) => row.replace(/[^,]*$/, ''))
  write('list.csv', [header, ...rows, '4,Sage'])
  expect(await user.import('list.csv --sync --yes')).toMatchObject({ code: 0, updated: 4 })
  expect(await list()).toEqual([header, ...rows])
})

test('an export into another store and back changes nothing', async () => {
  await importFirstMonth()
  await user.run('export list.ndjson')
  const into = ['list.ndjson', '--sync', '--yes', '--store', 'other.db']
  expect(await user.import(into)).toMatchObject({ code: 0, created: 4 })
  expect(await user.import(into)).toMatchObject({ code: 0, skipped: 4 })
})

test('a plant that was changed since it was read is not deleted', async () => {
  await importFirstMonth()
  write('list.csv', secondMonth)
  // The import has read the plants when it begins to write.
  queryFile(
    user.store,
    `CREATE TRIGGER moved AFTER INSERT ON plants WHEN NEW.id = 5
      BEGIN UPDATE plants SET tag = 'Pots' WHERE id = 3; END`,
  )
  const result = await user.import('list.csv --sync --yes')
  expect(result).toMatchObject({ code: 6, created: 1, missing: 1 })
  expect(await list()).toContain('3,Mint,Pots')
  expect(await user.import('list.csv --sync --yes')).toMatchObject({ code: 0, deleted: 1 })
})

describe('an import with --if-exists update says what the list lacks', () => {
  test.each(['', '--dry-run'])('if it has at least half of the store: %s', async (flags) => {
    await importFirstMonth()
    write('list.csv', secondMonth)
    const { err, ...counts } = await user.import(`list.csv --if-exists update ${flags}`)
    expect(counts).toMatchObject({ code: 0, created: 1, updated: 2, skipped: 1, missing: 1 })
    expect(err).toContain('--sync')
  })

  test('if a new plant is in it twice', async () => {
    await importFirstMonth()
    write('list.csv', [...secondMonth, '5,Thyme,Pots'])
    const counts = await user.import('list.csv --if-exists update')
    expect(counts).toMatchObject({ code: 0, created: 1, missing: 1 })
  })

  test('by the names of plants', async () => {
    write('list.csv', ['name', 'Lavender', 'Rose', 'Mint'])
    await user.import('list.csv --by-name')
    write('list.csv', ['name', 'Mint', 'Rose', 'Sage'])
    const counts = await user.import('list.csv --by-name --if-exists update')
    expect(counts).toMatchObject({ code: 0, created: 1, skipped: 2, missing: 1 })
  })

  test.each([
    { what: 'a record is rejected', rows: [...secondMonth, 'x,Fern,'] },
    { what: 'it has only some corrections', rows: secondMonth.slice(0, 3) },
  ])('and nothing if $what', async ({ rows }) => {
    await importFirstMonth()
    write('list.csv', rows)
    const { err, ...counts } = await user.import('list.csv --if-exists update')
    expect(counts).not.toHaveProperty('missing')
    expect(err).not.toContain('--sync')
  })
})

test('an import that changes nothing deletes no older copy', async () => {
  await importFirstMonth()
  const listCopies = () => readdirSync(user.data).filter((name) => name.includes('.before-import-'))
  for (const bed of ['a', 'b', 'c', 'd', 'e']) {
    write('list.csv', [header, `1,Lavender,${bed}`])
    await user.import('list.csv --sync --yes')
  }
  const copies = listCopies()
  expect(copies).toHaveLength(5)
  queryFile(
    user.store,
    "CREATE TRIGGER no BEFORE UPDATE ON plants BEGIN SELECT RAISE(ABORT, 'no'); END",
  )
  write('list.csv', [header, '1,Lavender,f'])
  expect(await user.import('list.csv --sync --yes')).toMatchObject({ code: 6 })
  expect(listCopies()).toEqual(copies)
})
