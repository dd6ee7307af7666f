import { expect, test } from 'vitest'
import { check, fc } from '../../helpers/expect/arbitraries.js'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'

interface Row {
  name: string
  tag?: string | undefined
}

/** Names with the form in which gardeners compare them. */
const foldedNames: Record<string, string> = {
  Ahorn: 'ahorn',
  '  AHORN': 'ahorn',
  'B\u00e4r': 'b\u00e4r',
  'Ba\u0308r': 'b\u00e4r',
  "Rosa 'Peace'": "rosa 'peace'",
  'Rosa \u2018Peace\u2019': "rosa 'peace'",
  'Abelia x grandiflora': 'abelia \u00d7 grandiflora',
  'Abelia \u00d7grandiflora': 'abelia \u00d7 grandiflora',
  Xanthium: 'xanthium',
  Anthium: 'anthium',
}
const names = fc.constantFrom(...Object.keys(foldedNames))
const rows = fc.array(fc.record({ name: names, tag: fc.constantFrom(undefined, 'wet', 'dry') }), {
  maxLength: 14,
})

test.each([
  { options: '--by-name', policy: 'same' },
  { options: '--by-name --if-exists skip', policy: 'skip' },
  { options: '--by-name --if-exists same', policy: 'same' },
  { options: '--by-name --if-exists update', policy: 'update' },
])(
  'an import with $options has the outcome of a model, and repeating it changes nothing',
  async ({ options, policy }) => {
    const flags = options
    const formats = fc.constantFrom('csv' as const, 'ndjson' as const)
    await check(3, [rows, rows, formats, fc.boolean()], async (before, list, format, isPiped) => {
      const user = new ImportSandbox()
      const model = before.map((row, index) => ({ id: index + 1, ...row }))
      await user.import('--format ndjson', linesOf(model))
      const text = format === 'csv' ? tableOf(list) : linesOf(list)
      user.write('list', text)
      const run = async (more: string) => {
        const all = `${isPiped ? '-' : 'list'} --format ${format} ${flags}${more}`
        const { err: _, missing: __, ...result } = await user.import(all, text)
        return result
      }
      const counts = matchAll(model, list, policy, format === 'csv')
      expect(await run(' --dry-run')).toEqual({ ...counts, dryRun: true })
      expect(await run(counts.code === 0 ? ' --atomic' : '')).toEqual(counts)
      expect(await user.list()).toBe(linesOf(model))
      await run('')
      expect(await user.list()).toBe(linesOf(model))
    })
  },
)

test.each([
  { format: 'csv', list: 'id,name,tag\n7,Rose,a,b\n,Iris,\n' },
  { format: 'ndjson', list: '{"id":7,"name":"Rose","Tag":"a","TAG":"b"}\n{"name":"Iris"}\n' },
])('a record of $format that is rejected when it is read claims its id', async (row) => {
  const user = new ImportSandbox()
  const flags = `- --format ${row.format} --by-name`
  const iris = (id: number) => linesOf([{ id, name: 'Iris' }])
  expect(await user.import(flags, row.list)).toMatchObject({ code: 6, created: 1 })
  expect(await user.list()).toBe(iris(8))
  const other = new ImportSandbox()
  await other.import('--format ndjson', iris(7))
  expect(await other.import(`${flags} --if-exists update`, row.list)).toMatchObject({ created: 1 })
  expect(await other.list()).toBe(iris(7) + iris(8))
})

/** Imports a list into a model, and returns what an import prints of that. */
function matchAll(
  model: (Row & { id: number })[],
  list: Row[],
  policy: string,
  hasTagColumn: boolean,
): { code: number } {
  const hasTags = list.some(({ tag }) => tag !== undefined)
  const fold = ({ name }: Row) => foldedNames[name]
  const haveEqualTags = (row: Row, plant: Row) => !hasTags || row.tag === plant.tag
  const plantOf = new Map<Row, Row>()
  const pair = (areAlike: (row: Row, plant: Row) => boolean) => {
    for (const row of list) {
      const free = model.filter((plant) => ![...plantOf.values()].includes(plant))
      const plant = plantOf.has(row) ? undefined : free.find((one) => areAlike(row, one))
      if (plant) plantOf.set(row, plant)
    }
  }
  pair((row, plant) => row.name === plant.name && haveEqualTags(row, plant))
  const equal = new Set(plantOf.keys())
  pair((row, plant) => fold(row) === fold(plant) && haveEqualTags(row, plant))
  pair((row, plant) => fold(row) === fold(plant))
  const counts: Record<string, number> = {}
  for (const row of list) {
    const plant = plantOf.get(row)
    if (!plant) model.push({ id: model.length + 1, ...row })
    const isEqual = equal.has(row)
    const tag = hasTags && (hasTagColumn || row.tag) ? row.tag : plant?.tag
    const key = plant
      ? applyPolicy(plant, { name: row.name, tag }, isEqual ? 'skip' : policy)
      : 'created'
    counts[key] = (counts[key] ?? 0) + 1
  }
  const { rejected, ...others } = counts
  return rejected
    ? { code: 6, ...others, ...{ rejected: { 409: rejected } } }
    : { code: 0, ...others }
}

function applyPolicy(plant: Row, fields: Row, policy: string): string {
  if (policy === 'skip') return 'skipped'
  if (policy === 'same') return 'rejected'
  const isChanged = plant.name !== fields.name || plant.tag !== fields.tag
  Object.assign(plant, fields)
  return isChanged ? 'updated' : 'skipped'
}

function linesOf(plants: object[]): string {
  return plants.map((one) => `${JSON.stringify(one)}\n`).join('')
}

function tableOf(list: Row[]): string {
  const rows = list.map(({ name, tag = '' }) => `"${name}",${tag}\n`)
  return `name,tag\n${rows.join('')}`
}
