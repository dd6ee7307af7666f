import { expect, test } from 'vitest'
import { fc } from '../../../helpers/fast-check.js'
import { Importer, lines } from '../../../helpers/imports.js'
import { rounds } from '../../../helpers/rounds.js'

interface Listed {
  records: Buffer[]
  /** what stands after each record, and blank lines */
  breaks: string[]
  hasMark: boolean
  hasEnd: boolean
}

test('an import creates what create accepts one by one, and rejects the rest for the same reasons', {
  timeout: rounds(120_000),
}, async () => {
  const compare = async (list: Listed) => {
    const [one, user] = [new Importer(), new Importer()]
    const { input, places } = inputOf(list)
    const all = await createEach(one, list.records)
    const rejected = all.flatMap(({ error }, index) => (error === 0 ? [] : { error, ...places[index] }))
    const counts: Record<number, number> = {}
    for (const { error } of rejected) counts[error] = (counts[error] ?? 0) + 1
    const created = all.length - rejected.length
    const expected = { ...(created > 0 && { created }), ...(rejected.length > 0 && { rejected: counts }) }

    user.write('plants', input)
    expect(await user.import('plants --format ndjson --dry-run')).toMatchObject({ dryRun: true, ...expected })
    const code = rejected.length > 0 ? 6 : 0
    expect(await user.import('plants --format ndjson --rejects bad')).toMatchObject({ code, ...expected })
    expect([await user.list(), user.journals]).toEqual([await one.list(), []])
    expect([user.has('bad'), user.has('bad.reasons')]).toEqual([code > 0, code > 0])
    if (code === 0) return

    const reasons = (name: string) => user.reasons(name).map(({ line, error }) => ({ line, error }))
    expect(reasons('bad')).toEqual(rejected.map(({ line, error }) => ({ line, error })))
    const kept = rejected.map(({ start, end }) => input.subarray(start, end))
    expect(user.bytes('bad').equals(Buffer.concat([Buffer.from(list.hasMark ? '\ufeff' : ''), ...kept]))).toBe(true)

    // What was rejected is rejected again for the same reasons, unless it was the second with its id.
    const again = new Importer()
    again.write('bad', user.bytes('bad'))
    again.write('plants', await user.list())
    await again.import('plants')
    expect(await again.import('bad --format ndjson --rejects worse')).toMatchObject({ code, rejected: counts })
    expect(again.bytes('worse').equals(user.bytes('bad'))).toBe(true)
    expect(await again.list()).toBe(await user.list())
  }
  await fc.assert(fc.asyncProperty(list(), compare), { numRuns: rounds(20) })
})

/** The `error` of `plants create` for each record in its turn, or 0. */
async function createEach(user: Importer, records: Buffer[]): Promise<{ error: number }[]> {
  const errors: { error: number }[] = []
  for (const record of records) {
    user.write('plant', record)
    const { code, err } = await user.run('create --file plant --output json')
    errors.push(code === 0 ? { error: 0 } : JSON.parse(lines(err).at(-1) ?? ''))
  }
  return errors
}

test('however an input is cut into files, the same plants are created', { timeout: rounds(60_000) }, async () => {
  const compare = async (list: Listed, cuts: number[]) => {
    const [whole, cut] = [new Importer(), new Importer()]
    const { input, places } = inputOf({ ...list, hasMark: false })
    const ends = [...new Set(cuts.flatMap((at) => places[at]?.end ?? []))].toSorted((a, b) => a - b)
    const files = [0, ...ends].map((start, index) => cut.write(`part-${index}`, input.subarray(start, ends[index])))
    const { created, rejected } = await whole.import('--format ndjson', input)
    const counts = { ...(created && { created }), ...(rejected && { rejected }) }
    expect(await cut.import(['--format', 'ndjson', ...files])).toMatchObject(counts)
    expect(await cut.list()).toBe(await whole.list())
  }
  await fc.assert(fc.asyncProperty(list(), fc.array(fc.nat(12), { maxLength: 3 }), compare), { numRuns: rounds(15) })
})

test('an import that updates changes what its records have, as a model does', { timeout: rounds(60_000) }, async () => {
  const texts = fc.constantFrom('A', 'B', '', 'a "b", c')
  const id = fc.constantFrom(1, 2, 3, 4)
  const patch = fc.record({ id, name: texts, tag: fc.option(texts) }, { requiredKeys: ['id'] })
  const tables = fc.constantFrom<string[] | undefined>(undefined, ['id', 'name'], ['tag', 'id'], ['id', 'name', 'tag'])
  const compare = async (inputs: Patch[][], columns: string[] | undefined, isAtomic: boolean) => {
    const user = new Importer()
    let model = new Map<number, Patch>()
    for (const patches of inputs) {
      const next = new Map(model)
      const { created = 0, updated = 0, skipped = 0, rejected = 0 } = patchAll(next, patches, columns)
      const isUndone = isAtomic && rejected > 0
      if (!isUndone) model = next
      const stdin = textOf(patches, columns)
      const flags = `--if-exists update --format ${columns ? 'csv' : 'ndjson'}`
      const counts = { created: 0, updated: 0, skipped: 0, rejected: { 422: 0 } }
      const expected = { created, updated, skipped, rejected: { 422: rejected } }
      expect({ ...counts, ...(await user.import(`${flags} --dry-run`, stdin)) }).toMatchObject(expected)
      const { err: _, ...result } = await user.import(isAtomic ? `${flags} --atomic` : flags, stdin)
      const changed = isUndone ? { created: 0, updated: 0 } : {}
      expect({ ...counts, ...result }).toMatchObject({ ...expected, ...changed })
      expect(await user.list()).toBe(listOf(model))
    }
  }
  const inputs = fc.array(fc.array(patch, { minLength: 1, maxLength: 8 }), { minLength: 2, maxLength: 2 })
  await fc.assert(fc.asyncProperty(inputs, tables, fc.boolean(), compare), { numRuns: rounds(40) })
})

interface Patch {
  id: number
  name?: string | undefined
  tag?: string | null
}

/** Changes or creates a plant of a model as a merge patch does (RFC 7396), and returns what that was. */
function patchModel(model: Map<number, Patch>, patch: Patch) {
  const stored = model.get(patch.id)
  const { id, name, tag = null } = { ...stored, ...patch }
  if (name === undefined) return 'rejected'
  model.set(id, { id, name, tag })
  if (!stored) return 'created'
  return stored.name === name && stored.tag === tag ? 'skipped' : 'updated'
}

/** @param columns of a table, in which an empty cell is no tag, or no name, which is not allowed */
function patchAll(model: Map<number, Patch>, patches: Patch[], columns: string[] | undefined) {
  const counts: Partial<Record<ReturnType<typeof patchModel>, number>> = {}
  for (const patch of patches) {
    const { id, name, tag = null } = patch
    const row = { id, ...(columns?.includes('name') && { name }), ...(columns?.includes('tag') && { tag }) }
    const outcome = patchModel(model, columns ? row : patch)
    counts[outcome] = (counts[outcome] ?? 0) + 1
  }
  return counts
}

/** The records as a table with these columns, or as NDJSON. */
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

function inputOf({ records, breaks, hasMark, hasEnd }: Listed) {
  const places: { line: number; start: number; end: number }[] = []
  let input = Buffer.from(hasMark ? '\ufeff' : '')
  let line = 1
  for (const [index, record] of records.entries()) {
    const gap = index === records.length - 1 && !hasEnd ? '' : (breaks[index % breaks.length] ?? '\n')
    const start = input.length
    places.push({ line, start, end: start + record.length + gap.indexOf('\n') + 1 })
    input = Buffer.concat([input, record, Buffer.from(gap)])
    line += gap.split('\n').length - 1
  }
  return { input, places }
}

function list(): fc.Arbitrary<Listed> {
  const breaks = fc.constantFrom('\n', '\n', '\r\n', '\n\n', '\r\n\r\n', '\n \t\n', '\n\r\n\n')
  return fc.record({
    records: fc.array(fc.oneof({ weight: 4, arbitrary: record() }, oddRecord()), { minLength: 1, maxLength: 10 }),
    breaks: fc.array(breaks, { minLength: 1, maxLength: 4 }),
    hasMark: fc.boolean(),
    hasEnd: fc.boolean(),
  })
}

const oneOf = (words: string) => fc.constantFrom(...words.split(' '))

/** An object that is nearly a plant: fields in any order, some twice, some of another kind. */
function record(): fc.Arbitrary<Buffer> {
  const id = fc.oneof({ weight: 6, arbitrary: oneOf('1 2 3 9007199254740993 -9223372036854775808') }, number())
  const base = fc.tuple(id, string()).map((values) => values.map((value, at) => [['"id"', '"name"'][at] ?? '', value]))
  const any = fc.oneof(number(), string(), fc.json({ maxDepth: 2 }))
  const extra = fc.oneof(
    { weight: 4, arbitrary: fc.tuple(oneOf('"tag" "name"'), string()) },
    fc.tuple(oneOf('"id" "\\u0069d" "name" "tag" "t\\u0061g"'), any),
    fc.tuple(oneOf('"nmae" "" "__proto__" "constructor" "ID" "id\u00a0"'), fc.json({ maxDepth: 2 })),
  )
  const first = fc.oneof({ weight: 5, arbitrary: base }, fc.constant([]))
  const spaces = fc.array(fc.constantFrom('', '', '', ' ', '  ', '\t', ' \t '), { minLength: 5, maxLength: 5 })
  return fc
    .tuple(first, fc.array(extra, { maxLength: 2 }), fc.boolean(), spaces)
    .map(([members, others, isTurned, [a, b, c, d, e]]) => {
      // only an import accepts null for no tag
      const rest = others.filter(([key, value]) => JSON.parse(key) !== 'tag' || value !== 'null')
      const all = isTurned ? [...rest, ...members] : [...members, ...rest]
      return Buffer.from(`${e}{${all.map(([key, value]) => `${b}${key}${c}:${d}${value}${a}`).join()}}${a}`)
    })
}

function number(): fc.Arbitrary<string> {
  const odd = oneOf('0 -0 -1 1.0 1e3 1E+2 2e0 20e-1 1.5 1e19 1e-1 0e99 01 +1 1. .5 1e400 - 1e999999999')
  const edges = oneOf(
    '9223372036854775807 9223372036854775808 -9223372036854775809 9007199254740992 4294967296 999999999 1000000000 281474976710656',
  )
  return fc.oneof(odd, edges, fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String))
}

/** Strings in JSON, written plainly or with escapes; some that no plant may hold. */
function string(): fc.Arbitrary<string> {
  const plain = fc.string({ unit: 'binary', maxLength: 12 }).map((text) => JSON.stringify(text))
  const usual = fc.string({ unit: 'grapheme', maxLength: 12 }).map((text) => JSON.stringify(text))
  const asEscape = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  const escaped = fc.string({ maxLength: 6 }).map((text) => `"${text.split('').map(asEscape).join('')}"`)
  const odd = oneOf(
    '"\\ud800" "\\udf31\\ud83c" "\\u0000" "\\x" "\t" "\\/" "}{" "\\" "\\\\" null "\ufeff" "\u2028" "\u007f" "a\\nb"',
  )
  return fc.oneof({ weight: 3, arbitrary: usual }, { weight: 2, arbitrary: plain }, escaped, odd)
}

/** What is no object, no JSON or no UTF-8; never blank, and never of two lines. */
function oddRecord(): fc.Arbitrary<Buffer> {
  const texts = oneOf(
    'null [] 1 "x" { } {"id":1 {"id":4,"name":"a"}} {"id":4,"name":"a"}\t{"id":5,"name":"b"} {"id":4,"name":"a"}, x [{"id":4,"name":"a"}] {"id":4,"name":"a",} {} id,name # \\',
  )
  const bytes = fc
    .uint8Array({ minLength: 1, maxLength: 8 })
    .map((all) => all.map((byte) => ([0x0a, 0x0d, 0x09, 0x20].includes(byte) ? 0x2e : byte)))
  const damaged = fc.tuple(record(), fc.nat(), bytes).map(([good, at, put]) => {
    const from = at % good.length
    return Buffer.concat([good.subarray(0, from), put, good.subarray(from + 1)])
  })
  const odd = fc.oneof(
    texts.map((text) => Buffer.from(text)),
    bytes.map((all) => Buffer.from(all)),
    damaged,
  )
  // At the start of a text the mark is skipped, so that create would read another record than an import does.
  return odd.filter((one) => !one.subarray(0, 3).equals(Buffer.from('\ufeff')))
}
