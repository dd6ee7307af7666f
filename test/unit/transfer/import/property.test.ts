import { expect, test } from 'vitest'
import { check, fc } from '../../../helpers/fast-check.js'
import { Importer } from '../../../helpers/imports.js'
import { rounds } from '../../../helpers/rounds.js'

/** Records, and the error of each; that all ways into a store say so: conformance/service/verdicts.test.ts. */
const valid = [1, 2, 3, 4].flatMap((id) => [`{"id":${id},"name":"a"}`, ` {"name": "b", "tag":"}{", "id":${id}.0 }\t`])
const broken = ['{', '{"id":5,"name":"a"},', '{"id":5,"name":"a"} {}', '"\xff"', 'id,name', '{"id":01,"name":"a"}']
const invalid = [
  '{}',
  '[]',
  'null',
  '1',
  '{"id":"5","name":"a"}',
  '{"id":5,"name":"\\ud800"}',
  '{"id":1e19,"name":"a"}',
]

test('an import creates each id once, and keeps what the others had', {
  timeout: rounds(120_000),
}, async () => {
  const records = fc.oneof({ weight: 2, arbitrary: fc.constantFrom(...valid) }, fc.constantFrom(...broken, ...invalid))
  const gaps = fc.constantFrom('\n', '\n', '\r\n', '\n\n', '\r\n\r\n', '\n \t\n', '\n\r\n\n')
  const line = fc.tuple(
    records.map((text) => Buffer.from(text, 'latin1')),
    gaps,
  )
  const some = fc.array(line, { minLength: 1, maxLength: 10 })
  await check(40, [some, fc.boolean(), fc.boolean()], async (lines, hasMark, hasEnd) => {
    const user = new Importer()
    const { input, places } = inputOf(lines, hasMark, hasEnd)
    const errors = errorsOf(lines.map(([record]) => record.toString('latin1')))
    const rejected = errors.flatMap((error, index) =>
      error === 0 ? [] : { error, line: places[index], record: recordIn(lines[index]?.[0] ?? Buffer.of(), error) },
    )
    const counts: Record<number, number> = {}
    for (const { error } of rejected) counts[error] = (counts[error] ?? 0) + 1
    const created = errors.length - rejected.length
    const expected = { ...(created > 0 && { created }), ...(rejected.length > 0 && { rejected: counts }) }

    user.write('plants', input)
    expect(await user.import('plants --format ndjson --dry-run')).toMatchObject({ dryRun: true, ...expected })
    const code = rejected.length > 0 ? 6 : 0
    expect(await user.import('plants --format ndjson --rejects bad')).toMatchObject({ code, ...expected })
    expect(user.journals).toEqual([])
    expect(user.has('bad')).toBe(code > 0)
    if (code === 0) return

    const kept = rejected.map(({ line, record }) => ({ line, record }))
    expect(user.rejected('bad').map(({ line, record }) => ({ line, record }))).toEqual(kept)
    expect(user.read('bad').split('\n')).toHaveLength(kept.length + 1)

    const before = await user.list()
    expect(await user.import('bad --format ndjson --rejects worse')).toMatchObject({ code })
    expect(user.rejected('worse').map(({ record }) => record)).toEqual(kept.map(({ record }) => objectIn(record)))
    expect(await user.list()).toBe(before)
  })
})

/** The error of each record in its turn, or 0. */
function errorsOf(records: string[]): number[] {
  const ids = new Set<string>()
  return records.map((record) => {
    if (broken.includes(record)) return 400
    if (invalid.includes(record)) return 422
    const id = /"id":(\d)/.exec(record)?.[1] ?? ''
    return ids.size === ids.add(id).size ? 409 : 0
  })
}

test.each(['error', 'skip', 'same', 'update'])(
  'an import with --if-exists %s does what a model does',
  async (policy) => {
    const texts = fc.constantFrom('A', 'B', '', 'a "b", c')
    const patch = fc.record({ id: fc.nat(3), name: texts, tag: fc.option(texts) }, { requiredKeys: ['id'] })
    const parts =
      policy === 'update'
        ? [
            ['id', 'name'],
            ['tag', 'id'],
          ]
        : []
    const tables = fc.constantFrom(undefined, ['id', 'name', 'tag'], ...parts)
    const twoInputs = fc.array(fc.array(patch, { minLength: 1, maxLength: 8 }), { minLength: 2, maxLength: 2 })
    await check(16, [twoInputs, tables, fc.boolean()], async (inputs, columns, isLastAtomic) => {
      const user = new Importer()
      let model = new Map<number, Patch>()
      for (const patches of inputs) {
        const next = new Map(model)
        const { rejected, ...counts } = patchAll(next, patches, policy, columns)
        const isAtomic = isLastAtomic && patches === inputs.at(-1)
        const isUndone = isAtomic && rejected[409] + rejected[422] > 0
        if (!isUndone) model = next
        const run = async (more: string) => {
          const flags = `--if-exists ${policy} --format ${columns ? 'csv' : 'ndjson'}`
          const { err: _, ...result } = await user.import(flags + more, textOf(patches, columns))
          return { ...noCounts, ...result, rejected: { ...noCounts.rejected, ...result.rejected } }
        }
        expect(await run(' --dry-run')).toMatchObject({ ...counts, rejected })
        const changed = isUndone ? { created: 0, updated: 0 } : {}
        expect(await run(isAtomic ? ' --atomic' : '')).toMatchObject({ ...counts, rejected, ...changed })
        expect(await user.list()).toBe(listOf(model))
      }
    })
  },
)

const noCounts = { created: 0, updated: 0, skipped: 0, rejected: { 409: 0, 422: 0 } }

interface Patch {
  id: number
  name?: string | undefined
  tag?: string | null
}

/** Imports a record into a model, and returns what that was, or its error; an update is a merge patch (RFC 7396). */
function patchModel(model: Map<number, Patch>, patch: Patch, policy: string) {
  const stored = model.get(patch.id)
  const { id, name, tag = null } = policy === 'update' ? { ...stored, ...patch } : patch
  if (name === undefined) return 422
  const isSame = stored?.name === name && stored.tag === tag
  if (stored && (policy === 'error' || (policy === 'same' && !isSame))) return 409
  if (stored && (policy === 'skip' || isSame)) return 'skipped'
  model.set(id, { id, name, tag })
  return stored ? 'updated' : 'created'
}

/** @param columns of a table, in which an empty cell is no tag, or no name, which is not allowed */
function patchAll(model: Map<number, Patch>, patches: Patch[], policy: string, columns: string[] | undefined) {
  const counts = { ...noCounts, rejected: { ...noCounts.rejected } }
  for (const patch of patches) {
    const { id, name, tag = null } = patch
    const row = { id, ...(columns?.includes('name') && { name }), ...(columns?.includes('tag') && { tag }) }
    const outcome = patchModel(model, columns ? row : patch, policy)
    if (typeof outcome === 'number') counts.rejected[outcome] += 1
    else counts[outcome] += 1
  }
  return counts
}

function textOf(patches: Patch[], columns: string[] | undefined): string {
  if (!columns) return patches.map((patch) => JSON.stringify(patch)).join('\n')
  const cell = (value: unknown) => (typeof value === 'string' ? `"${value.replaceAll('"', '""')}"` : (value ?? ''))
  const rows = patches.map((patch) => columns.map((column) => cell(Reflect.get(patch, column))).join())
  return [columns.join(), ...rows].join('\n')
}

function listOf(model: Map<number, Patch>): string {
  const plants = [...model.values()].toSorted((a, b) => a.id - b.id)
  return plants.map(({ id, name, tag }) => `${JSON.stringify({ id, name, tag: tag ?? undefined })}\n`).join('')
}

/** What a rejects file has of a record. */
function recordIn(bytes: Buffer, error: number): unknown {
  const text = bytes.toString().trim()
  return error === 400 || !text.startsWith('{') ? text : JSON.parse(text)
}

/** A text that is no JSON object comes back as an object without fields. */
function objectIn(record: unknown): unknown {
  return typeof record === 'string' ? {} : record
}

/** An input of these lines, and the line of each record. */
function inputOf(lines: [record: Buffer, gap: string][], hasMark: boolean, hasEnd: boolean) {
  const places: number[] = []
  let input = Buffer.from(hasMark ? '\ufeff' : '')
  let line = 1
  for (const [record, between] of lines) {
    const gap = places.length < lines.length - 1 || hasEnd ? between : ''
    places.push(line)
    input = Buffer.concat([input, record, Buffer.from(gap)])
    line += gap.split('\n').length - 1
  }
  return { input, places }
}
