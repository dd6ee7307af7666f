import { expect, test } from 'vitest'
import { check, fc } from '../../helpers/expect/arbitraries.js'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'

interface Row {
  name: string
  tag?: string | undefined
}

const names = fc.constantFrom('Ahorn', 'ahorn', 'B\u00e4r', 'Ba\u0308r', 'Rose "3 L"', '\u{1f335}')
const rows = fc.array(fc.record({ name: names, tag: fc.constantFrom(undefined, 'wet', 'dry') }), {
  maxLength: 12,
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
        const { err: _, ...result } = await user.import(all, text)
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

/** Imports a list into a model, and returns what an import prints of that. */
function matchAll(
  model: (Row & { id: number })[],
  list: Row[],
  policy: string,
  hasTags: boolean,
): { code: number } {
  const counts: Record<string, number> = {}
  const rejected: Record<number, number> = {}
  const count = <Key extends string | number>(counts: Record<Key, number>, key: Key) => {
    counts[key] = (counts[key] ?? 0) + 1
  }
  const atStart = model.map(({ name }) => name)
  for (const { name, tag } of list) {
    const found = model.find((one) => one.name === name)
    if (atStart.indexOf(name) !== atStart.lastIndexOf(name)) count(rejected, 422)
    else if (!found) {
      model.push({ id: model.length + 1, name, tag })
      count(counts, 'created')
    } else if (policy === 'same' && found.tag !== tag) count(rejected, 409)
    else if (policy !== 'update' || !(hasTags || tag) || found.tag === tag) count(counts, 'skipped')
    else {
      found.tag = tag
      count(counts, 'updated')
    }
  }
  const isComplete = Object.keys(rejected).length === 0
  return isComplete ? { code: 0, ...counts } : { code: 6, ...counts, ...{ rejected } }
}

function linesOf(plants: object[]): string {
  return plants.map((one) => `${JSON.stringify(one)}\n`).join('')
}

function tableOf(list: Row[]): string {
  const rows = list.map(({ name, tag = '' }) => `"${name.replaceAll('"', '""')}",${tag}\n`)
  return `name,tag\n${rows.join('')}`
}
