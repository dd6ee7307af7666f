import { expect, test } from 'vitest'
import { fc } from '../../../helpers/fast-check.js'
import { Importing, lines } from '../../../helpers/importing.js'
import { rounds } from '../../../helpers/rounds.js'

interface Listed {
  records: Buffer[]
  /** what stands behind each record, and blank lines */
  breaks: string[]
  hasMark: boolean
  hasEnd: boolean
}

test('an import puts into a store what create accepts one by one, and rejects the rest for the same reasons', {
  timeout: rounds(120_000),
}, async () => {
  const compare = async (list: Listed) => {
    const [one, many, looking] = [new Importing(), new Importing(), new Importing()]
    const { input, places } = inputOf(list)
    const expected = await createEach(one, list.records)
    many.write('plants', input)
    const { code, summary } = await many.import(['plants', '--format', 'ndjson', '--rejects', 'bad'])
    const rejected = expected.flatMap((error, index) => (error === 0 ? [] : { index, error }))
    const created = expected.length - rejected.length
    expect({ code, summary }).toMatchObject({
      code: rejected.length > 0 ? 6 : 0,
      summary: { created, rejected: rejected.length },
    })
    expect(await many.list()).toBe(await one.list())
    if (rejected.length > 0) {
      expect(many.reasons('bad').map(({ line, error }) => ({ line, error }))).toEqual(
        rejected.map(({ index, error }) => ({ line: places[index]?.line, error })),
      )
      const kept = rejected.map(({ index }) => input.subarray(places[index]?.start, places[index]?.end))
      expect(many.bytes('bad').equals(Buffer.concat([Buffer.from(list.hasMark ? '\ufeff' : ''), ...kept]))).toBe(true)
    } else expect(many.has('bad') || many.has('bad.reasons')).toBe(false)
    const check = await looking.import(['--format', 'ndjson', '--dry-run'], { stdin: input })
    expect(check.summary).toMatchObject({
      dryRun: true,
      created: created,
      rejected: rejected.length,
      reasons: countOf(rejected),
    })
    expect(many.journals()).toEqual([])
  }
  await fc.assert(fc.asyncProperty(list(), compare), { numRuns: rounds(20) })
})

test('what was rejected, imported again, is rejected again for the same reasons', {
  timeout: rounds(60_000),
}, async () => {
  const compare = async (list: Listed) => {
    const user = new Importing()
    const { input } = inputOf(list)
    const flags = ['--format', 'ndjson', '--rejects']
    const { summary } = await user.import([...flags, 'bad'], { stdin: input })
    const stored = await user.list()
    if (!user.has('bad')) return
    expect(await user.import(['bad', ...flags, 'worse'])).toMatchObject({
      code: 6,
      summary: { created: 0, reasons: (summary as { reasons: object }).reasons },
    })
    expect(user.bytes('worse').equals(user.bytes('bad'))).toBe(true)
    expect(await user.list()).toBe(stored)
    const errors = (name: string) => user.reasons(name).map(({ error }) => error)
    expect(errors('worse')).toEqual(errors('bad'))
  }
  await fc.assert(fc.asyncProperty(list(), compare), { numRuns: rounds(15) })
})

test('however an input is cut into files, the same plants are created', { timeout: rounds(60_000) }, async () => {
  const compare = async (list: Listed, cuts: number[]) => {
    const [whole, cut] = [new Importing(), new Importing()]
    const { input, places } = inputOf({ ...list, hasMark: false })
    const ends = [...new Set(cuts.flatMap((at) => places[at]?.end ?? []))].toSorted((a, b) => a - b)
    const files = [0, ...ends].map((start, index) => cut.write(`part-${index}`, input.subarray(start, ends[index])))
    const results = [
      await whole.import(['--format', 'ndjson'], { stdin: input }),
      await cut.import(['--format', 'ndjson', ...files]),
    ]
    expect(results[1]?.summary).toEqual(results[0]?.summary)
    expect(await cut.list()).toBe(await whole.list())
  }
  await fc.assert(fc.asyncProperty(list(), fc.array(fc.nat(12), { maxLength: 3 }), compare), { numRuns: rounds(15) })
})

/** What `plants create` says of each record in its turn: the `error`, or 0. */
async function createEach(user: Importing, records: Buffer[]): Promise<number[]> {
  const errors: number[] = []
  for (const record of records) {
    user.write('plant', record)
    const { code, err } = await user.run(['create', '--file', 'plant', '--output', 'json'])
    errors.push(code === 0 ? 0 : JSON.parse(lines(err).at(-1) ?? '').error)
  }
  return errors
}

test('an import that updates changes what its records have, as a model does', { timeout: rounds(60_000) }, async () => {
  const texts = fc.constantFrom('A', 'B', '', 'a "b", c')
  const record = fc.record(
    { id: fc.constantFrom(1, 2, 3, 4), name: texts, tag: fc.option(texts) },
    { requiredKeys: ['id'] },
  )
  const tables = fc.constantFrom<string[] | undefined>(undefined, ['id', 'name'], ['tag', 'id'], ['id', 'name', 'tag'])
  const compare = async (inputs: Patch[][], columns: string[] | undefined, isAtomic: boolean) => {
    const user = new Importing()
    let model = new Map<number, Patch>()
    for (const patches of inputs) {
      const next = new Map(model)
      const { created, ...counts } = patchAll(next, patches, columns)
      const isUndone = isAtomic && counts.rejected > 0
      if (!isUndone) model = next
      const stdin = textOf(patches, columns)
      const flags = ['--if-exists', 'update', '--format', columns ? 'csv' : 'ndjson']
      expect((await user.import([...flags, '--dry-run'], { stdin })).summary).toMatchObject({
        dryRun: true,
        created,
        ...counts,
      })
      const { summary } = await user.import(isAtomic ? [...flags, '--atomic'] : flags, { stdin })
      expect(summary).toMatchObject(isUndone ? { ...counts, created: 0, updated: 0 } : { created, ...counts })
      expect(await user.list()).toBe(listOf(model))
    }
  }
  const inputs = fc.array(fc.array(record, { minLength: 1, maxLength: 8 }), { minLength: 2, maxLength: 2 })
  await fc.assert(fc.asyncProperty(inputs, tables, fc.boolean(), compare), { numRuns: rounds(40) })
})

interface Patch {
  id: number
  name?: string | undefined
  tag?: string | null
}

/** Changes or creates a plant of a model as a merge patch does (RFC 7396), and tells what that was. */
function patchModel(model: Map<number, Patch>, patch: Patch): 'created' | 'updated' | 'skipped' | 'rejected' {
  const stored = model.get(patch.id)
  const { id, name, tag = null } = { ...stored, ...patch }
  if (name === undefined) return 'rejected'
  model.set(id, { id, name, tag })
  if (!stored) return 'created'
  return stored.name === name && stored.tag === tag ? 'skipped' : 'updated'
}

/**
 * What a row of a table says: each of its columns, and no others. An empty cell is no tag, or no name, which is not
 * allowed.
 */
function inColumns({ id, name, tag = null }: Patch, columns: string[]): Patch {
  return { id, ...(columns.includes('name') && { name }), ...(columns.includes('tag') && { tag }) }
}

function patchAll(model: Map<number, Patch>, patches: Patch[], columns: string[] | undefined) {
  const counts = { created: 0, updated: 0, skipped: 0, rejected: 0 }
  for (const patch of patches) counts[patchModel(model, columns ? inColumns(patch, columns) : patch)] += 1
  return counts
}

/** The records as a table with these columns, or as NDJSON. */
function textOf(patches: Patch[], columns: string[] | undefined): string {
  if (!columns) return patches.map((patch) => JSON.stringify(patch)).join('\n')
  const cell = (value: unknown) => (typeof value === 'string' ? `"${value.replaceAll('"', '""')}"` : (value ?? ''))
  return [columns, ...patches.map((patch) => columns.map((column) => cell(Reflect.get(patch, column))))]
    .map((row) => row.join())
    .join('\n')
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
    const isLast = index === records.length - 1
    const gap = breaks[index % breaks.length] ?? '\n'
    const own = isLast && !hasEnd ? '' : gap.slice(0, gap.indexOf('\n') + 1)
    const start = input.length
    places.push({ line, start, end: start + record.length + own.length })
    input = Buffer.concat([input, record, Buffer.from(isLast && !hasEnd ? '' : gap)])
    line += gap.split('\n').length - 1
  }
  return { input, places }
}

function countOf(rejected: { error: number }[]): Record<number, number> {
  const reasons: Record<number, number> = {}
  for (const { error } of rejected) reasons[error] = (reasons[error] ?? 0) + 1
  return reasons
}

function list(): fc.Arbitrary<Listed> {
  return fc.record({
    records: fc.array(fc.oneof({ weight: 4, arbitrary: record() }, oddRecord()), { minLength: 1, maxLength: 10 }),
    breaks: fc.array(fc.constantFrom('\n', '\n', '\r\n', '\n\n', '\r\n\r\n', '\n \t\n', '\n\r\n\n'), {
      minLength: 1,
      maxLength: 4,
    }),
    hasMark: fc.boolean(),
    hasEnd: fc.boolean(),
  })
}

const space = () => fc.constantFrom('', '', '', ' ', '  ', '\t', ' \t ')

/**
 * An object that is a plant, or nearly: fields in any order, some twice, some of another kind. No tag is null, which
 * only an import accepts.
 */
function record(): fc.Arbitrary<Buffer> {
  const id = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom('1', '2', '3', '9007199254740993', '-9223372036854775808') },
    number(),
  )
  const base = fc.tuple(id, string()).map(([digits, name]): [string, string][] => [
    ['"id"', digits],
    ['"name"', name],
  ])
  const extra = fc.oneof(
    { weight: 4, arbitrary: fc.tuple(fc.constantFrom('"tag"', '"name"'), string()) },
    fc.tuple(
      fc.constantFrom('"id"', '"\\u0069d"', '"name"', '"tag"', '"t\\u0061g"'),
      fc.oneof(number(), string(), fc.json({ maxDepth: 2 })),
    ),
    fc.tuple(
      fc.constantFrom('"nmae"', '""', '"__proto__"', '"constructor"', '"ID"', '"id "'),
      fc.json({ maxDepth: 2 }),
    ),
  )
  const members = fc.tuple(
    fc.oneof({ weight: 5, arbitrary: base }, fc.constant([])),
    fc.array(extra, { maxLength: 2 }),
    fc.boolean(),
  )
  const ordered = members.map(([first, others, isTurned]) => {
    const rest = others.filter(([key, value]) => JSON.parse(key) !== 'tag' || value !== 'null')
    return isTurned ? [...rest, ...first] : [...first, ...rest]
  })
  return fc.tuple(ordered, fc.array(space(), { minLength: 5, maxLength: 5 })).map(([all, [a, b, c, d, e]]) => {
    const body = all.map(([key, value]) => `${b}${key}${c}:${d}${value}${a}`).join(',')
    return Buffer.from(`${e}{${body}}${a}`)
  })
}

function number(): fc.Arbitrary<string> {
  const odd = [
    '0',
    '-0',
    '-1',
    '1.0',
    '1e3',
    '1E+2',
    '2e0',
    '20e-1',
    '1.5',
    '1e19',
    '1e-1',
    '0e99',
    '01',
    '+1',
    '1.',
    '.5',
    '1e400',
    '-',
    '1e999999999',
  ]
  const edges = [
    '9223372036854775807',
    '9223372036854775808',
    '-9223372036854775809',
    '9007199254740992',
    '4294967296',
    '999999999',
    '1000000000',
    '281474976710656',
  ]
  return fc.oneof(fc.constantFrom(...odd, ...edges), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String))
}

/** Strings in JSON, written plainly or with escapes; some that no plant may hold. */
function string(): fc.Arbitrary<string> {
  const plain = fc.string({ unit: 'binary', maxLength: 12 }).map((text) => JSON.stringify(text))
  const usual = fc.string({ unit: 'grapheme', maxLength: 12 }).map((text) => JSON.stringify(text))
  const escaped = fc
    .string({ maxLength: 6 })
    .map(
      (text) =>
        `"${Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`,
    )
  const odd = fc.constantFrom(
    '"\\ud800"',
    '"\\udf31\\ud83c"',
    '"\\u0000"',
    '"\\x"',
    '"\t"',
    '"\\/"',
    '"}{"',
    '"\\"',
    '"\\\\"',
    'null',
    '"\ufeff"',
    '"\u2028"',
    '"\u007f"',
    '"a\\nb"',
  )
  return fc.oneof({ weight: 3, arbitrary: usual }, { weight: 2, arbitrary: plain }, escaped, odd)
}

/** What is no object, no JSON or no UTF-8; never blank, and never of two lines. */
function oddRecord(): fc.Arbitrary<Buffer> {
  const texts = [
    'null',
    '[]',
    '1',
    '"x"',
    '{',
    '}',
    '{"id":1',
    '{"id":4,"name":"a"}}',
    '{"id":4,"name":"a"} {"id":5,"name":"b"}',
    '{"id":4,"name":"a"},',
    'x',
    '[{"id":4,"name":"a"}]',
    '{"id":4,"name":"a",}',
    '{}',
    'id,name',
    '#',
    '\\',
  ]
  const bytes = fc
    .uint8Array({ minLength: 1, maxLength: 8 })
    .map((all) => all.map((byte) => ([0x0a, 0x0d, 0x09, 0x20].includes(byte) ? 0x2e : byte)))
  const damaged = fc.tuple(record(), fc.nat(), bytes).map(([good, at, put]) => {
    const from = at % good.length
    return Buffer.concat([good.subarray(0, from), put, good.subarray(from + 1)])
  })
  const odd = fc.oneof(
    fc.constantFrom(...texts).map((text) => Buffer.from(text)),
    bytes.map((all) => Buffer.from(all)),
    damaged,
  )
  // At the start of a text the mark is skipped, so that create would read another record than an import does.
  return odd.filter((record) => !record.subarray(0, 3).equals(Buffer.from('\ufeff')))
}
