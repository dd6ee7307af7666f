import { expect, test } from 'vitest'
import { check, fc } from '../../helpers/expect/arbitraries.js'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'

interface Patch {
  id: number
  name?: string | undefined
  tag?: string | null
}

test.each(['skip', 'same', 'update'])(
  'an import with --if-exists %s has the outcome of a model',
  async (policy) => {
    const texts = fc.constantFrom('A', 'B', '', 'a "b", c')
    const patch = fc.record(
      { id: fc.nat(3), name: texts, tag: fc.option(texts) },
      { requiredKeys: ['id'] },
    )
    const all = ['id', 'name', 'tag']
    const parts = [['id', 'name'], ['tag', 'id'], all, undefined]
    const tables = fc.constantFrom(...(policy === 'update' ? parts : [all, undefined]))
    const patches = fc.array(patch, { minLength: 1, maxLength: 8 })
    const twoInputs = fc.tuple(patches, patches)
    await check(3, [twoInputs, tables, fc.boolean()], async (inputs, columns, isLastAtomic) => {
      const user = new ImportSandbox()
      let model = new Map<number, Patch>()
      for (const [index, patches] of inputs.entries()) {
        const next = new Map(model)
        const counts = patchAll(next, patches, policy, columns)
        const isAtomic = isLastAtomic && index === 1
        const isUndone = isAtomic && counts.rejected[409] + counts.rejected[422] > 0
        if (!isUndone) model = next
        const run = async (flag: string) => {
          const flags = `--if-exists ${policy} --format ${columns ? 'csv' : 'ndjson'} ${flag}`
          const result = await user.import(flags, textOf(patches, columns))
          return { ...noCounts, ...result, rejected: { ...noCounts.rejected, ...result.rejected } }
        }
        expect(await run('--dry-run')).toMatchObject(counts)
        const undone = isUndone && { created: 0, updated: 0 }
        expect(await run(isAtomic ? '--atomic' : '')).toMatchObject({ ...counts, ...undone })
        expect(await user.list()).toBe(listOf(model))
      }
    })
  },
)

const noCounts = { created: 0, updated: 0, skipped: 0, rejected: { 409: 0, 422: 0 } }

/** Imports a record into a model, and returns what that was, or its error; an update is a merge patch (RFC 7396). */
function patchModel(model: Map<number, Patch>, patch: Patch, policy: string) {
  const stored = model.get(patch.id)
  const { id, name, tag = null } = policy === 'update' ? { ...stored, ...patch } : patch
  if (name === undefined) return 422
  const isSame = stored?.name === name && stored.tag === tag
  if (stored && policy === 'same' && !isSame) return 409
  if (stored && (policy === 'skip' || isSame)) return 'skipped'
  model.set(id, { id, name, tag })
  return stored ? 'updated' : 'created'
}

/** @param columns of a table, in which an empty cell is no tag, or no name, which is not allowed */
function patchAll(
  model: Map<number, Patch>,
  patches: Patch[],
  policy: string,
  columns: string[] | undefined,
) {
  const counts = structuredClone(noCounts)
  for (const patch of patches) {
    const { id } = patch
    const row = {
      id,
      ...(columns?.includes('name') && { name: patch.name || undefined }),
      ...(columns?.includes('tag') && { tag: patch.tag || null }),
    }
    const outcome = patchModel(model, columns ? row : patch, policy)
    if (typeof outcome === 'number') counts.rejected[outcome] += 1
    else counts[outcome] += 1
  }
  return counts
}

function textOf(patches: Patch[], columns: string[] | undefined): string {
  if (!columns) return patches.map((patch) => JSON.stringify(patch)).join('\n')
  const cell = (value: unknown) =>
    typeof value === 'string' ? `"${value.replaceAll('"', '""')}"` : (value ?? '')
  const rows = patches.map((patch) => columns.map((column) => cell(Reflect.get(patch, column))))
  return [columns, ...rows].map((cells) => cells.join()).join('\n')
}

function listOf(model: Map<number, Patch>): string {
  return [...model.values()]
    .toSorted((one, other) => one.id - other.id)
    .map(({ id, name, tag }) => `${JSON.stringify({ id, name, tag: tag ?? undefined })}\n`)
    .join('')
}
