import { expect } from 'vitest'
import { PlantsError } from '../../../src/errors.js'
import { fc } from '../../helpers/expect/arbitraries.js'
import type { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { parseObjects } from '../../helpers/sandbox/sandbox.js'

/*
 * A list that comes again, month after month, and a model of what an import makes of it.
 *
 * The model has the rules of matching once more, in the simplest way. `assertPromises` needs no
 * rule: it says what an import promises to whoever does not know them.
 */

export interface Plant {
  id: number
  name: string
  tag?: string | undefined
}

interface Row {
  /** The id; a text is none. */
  id: number | 'x' | undefined
  /** Undefined for an empty cell, or null in JSON. */
  name: string | undefined
  tag: string | undefined
  /** Whether the import begins another chunk behind the row. */
  endsChunk: boolean
}

/** How a list is written. In JSON, a tag that a row does not have is missing, or null. */
type Form = 'table' | 'table without tags' | 'missing keys' | 'null'

interface Edit {
  type: 'insert' | 'remove' | 'rename' | 'move' | 'renumber' | 'sort'
  at: number
  row: Row
  /** Whether a new row has an id that another has. */
  repeatsId: boolean
}

/** What happens to the first import of a month, before the last one runs undisturbed. */
interface Disturbances {
  /** After how many steps an import is stopped. */
  stops: number[]
  /** Whether two imports of the list run at once. */
  isPair: boolean
}

interface Month extends Disturbances {
  edits: Edit[]
  form: Form
  policy: 'same' | 'skip' | 'update' | 'sync'
  byName: boolean
  isPiped: boolean
  isAtomic: boolean
}

export interface Garden {
  ids: 'none' | 'some' | 'all'
  first: Edit[]
  months: Month[]
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

const row: fc.Arbitrary<Row> = fc.record({
  id: fc.oneof(
    { weight: 20, arbitrary: fc.integer({ min: 1, max: 12 }) },
    fc.constant('x' as const),
  ),
  name: fc.oneof(
    { weight: 40, arbitrary: fc.constantFrom(...Object.keys(foldedNames)) },
    fc.constant(undefined),
  ),
  tag: fc.constantFrom(undefined, 'wet', 'dry'),
  endsChunk: fc.integer({ min: 0, max: 5 }).map((value) => value === 5),
})

const edit = (types: Edit['type'][]): fc.Arbitrary<Edit> =>
  fc.record({
    type: fc.constantFrom(...types),
    at: fc.nat({ max: 20 }),
    row,
    repeatsId: fc.integer({ min: 0, max: 20 }).map((value) => value === 20),
  })

export const gardens: fc.Arbitrary<Garden> = fc.record({
  ids: fc.constantFrom('none', 'some', 'all'),
  first: fc.array(edit(['insert']), { maxLength: 14 }),
  months: fc.array(
    fc.record({
      edits: fc.array(edit(['insert', 'remove', 'rename', 'move', 'renumber', 'sort']), {
        maxLength: 6,
      }),
      form: fc.constantFrom('table', 'table', 'table without tags', 'missing keys', 'null'),
      policy: fc.constantFrom('same', 'skip', 'update', 'sync', 'sync', 'sync'),
      byName: fc.integer({ min: 0, max: 3 }).map((value) => value > 0),
      isPiped: fc.boolean(),
      isAtomic: fc.boolean(),
      stops: fc.array(fc.nat({ max: 24 }), { maxLength: 3 }),
      isPair: fc.boolean(),
    }),
    { minLength: 1, maxLength: 4 },
  ),
})

export interface GardenStore {
  /** Runs an import that ends before its end. */
  stop: ((words: string[], steps: number, stdin?: string) => Promise<unknown>) | undefined
  isService: boolean
}

/** Imports the lists of a garden month after month, and compares the store with the model. */
export async function importMonths(user: ImportSandbox, garden: Garden, store: GardenStore) {
  const plants: Plant[] = [{ id: 3, name: 'Ahorn', tag: 'wet' }]
  await user.run('create --id 3 --name Ahorn --tag wet')
  const list: Row[] = []
  applyEdits(list, garden.first, garden.ids)
  for (const month of garden.months) {
    applyEdits(list, month.edits, garden.ids)
    // A list whose first records have no key for an id is not imported, and a service does not say
    // whether a change has changed anything.
    const mayLackIds = month.form === 'missing keys' && garden.ids !== 'all'
    const byName = month.byName || mayLackIds || store.isService
    // Nor does the matcher, if a record with an id keeps the tag of its plant.
    const form = store.isService && month.form === 'missing keys' ? 'null' : month.form
    await importMonth(user, plants, list, { ...month, byName, form }, store)
  }
}

async function importMonth(
  user: ImportSandbox,
  plants: Plant[],
  list: readonly Row[],
  month: Month,
  { stop, isService }: GardenStore,
): Promise<void> {
  const readStore = async () => (await user.run('export -o ndjson')).out
  const { words, stdin } = writeList(user, list, month)
  const runImport = (...more: string[]) => importList(user, [...words, ...more], stdin)
  const before = structuredClone(plants)
  const counts = importIntoModel(plants, list, month)
  const ids = list.map(({ id }) => id).filter(Number)
  const hasRepeatedIds = new Set(ids).size < ids.length
  // A dry run rolls each chunk back, so it does not find an id that is repeated in a later one.
  if (!hasRepeatedIds && counts.code !== 2)
    expect(await runImport('--dry-run')).toEqual({ ...counts, dryRun: true })
  expect(await readStore()).toBe(formatPlants(before))

  const stops = stop ? month.stops : []
  for (const steps of stops) await stop?.(words, steps, stdin)
  if (month.isPair) await Promise.all([runImport(), runImport()])
  const isAtomic = month.isAtomic && !isService && counts.code === 0
  const result = await runImport(...(isAtomic ? ['--atomic'] : []))
  if (!month.isPair && stops.length === 0) expect(result).toEqual(counts)
  const exported = await readStore()
  expect(exported).toBe(formatPlants(plants))
  assertPromises(before, parseObjects(exported) as unknown as Plant[], list, month, counts)

  const again = await runImport()
  expect(await readStore()).toBe(exported)
  const noChange = { created: 0, updated: 0, deleted: 0 }
  if (!hasRepeatedIds) expect({ ...noChange, ...again }).toMatchObject(noChange)
}

/** Writes a list into a file, unless the import reads it from a pipe. */
function writeList(user: ImportSandbox, list: readonly Row[], month: Month) {
  const { form, policy, byName, isPiped } = month
  const isTable = form.startsWith('table')
  const text = isTable ? formatTable(list, form) : formatLines(list, form)
  const stdin = isPiped && policy !== 'sync' ? text : undefined
  if (stdin === undefined) user.write('list', text)
  const flags = policy === 'sync' ? ['--sync', '--yes'] : ['--if-exists', policy]
  if (byName) flags.push('--by-name')
  const words = [stdin === undefined ? 'list' : '-', '--format', isTable ? 'csv' : 'ndjson']
  return { words: [...words, ...flags], stdin }
}

/** Imports a list, and returns the counts of its summary that are not 0. */
async function importList(user: ImportSandbox, words: string[], stdin: string | undefined) {
  const result: Record<string, unknown> = { ...(await user.import(words, stdin)) }
  const { err: _, rejects: __, undo: ___, missing, ...counts } = result
  // A list with `--if-exists update` may be a part of the store.
  return words.includes('--sync') && missing ? { ...counts, missing } : counts
}

/** Stops an import in this process, after it has asked so many times whether it should stop. */
export async function stopImport(
  user: ImportSandbox,
  words: string[],
  steps: number,
  stdin?: string,
) {
  const stop = new AbortController()
  const { signal } = stop
  const throwIfAborted = signal.throwIfAborted.bind(signal)
  let remainingSteps = steps
  signal.throwIfAborted = () => {
    remainingSteps -= 1
    if (remainingSteps < 0) stop.abort(new PlantsError('interrupted', 'Interrupted'))
    throwIfAborted()
  }
  await user.import(words, stdin, { signal })
}

function applyEdits(list: Row[], edits: readonly Edit[], ids: Garden['ids']): void {
  for (const edit of edits) {
    const at = list.length === 0 ? 0 : edit.at % list.length
    const target = list[at] ?? { ...edit.row }
    const change = {
      insert: () => list.splice(at, 0, { ...edit.row, id: chooseId(list, edit, ids) }),
      remove: () => list.splice(at, 1),
      sort: () => list.sort((one, other) => (String(one.name) < String(other.name) ? -1 : 1)),
      rename: () => Object.assign(target, { name: edit.row.name }),
      move: () => Object.assign(target, { tag: edit.row.tag }),
      renumber: () => Object.assign(target, { id: chooseId(list, edit, ids) }),
    }
    change[edit.type]()
  }
}

function chooseId(list: readonly Row[], { row, repeatsId, at }: Edit, ids: Garden['ids']) {
  if (ids === 'none' || (ids === 'some' && at % 2 === 0)) return undefined
  if (typeof row.id !== 'number' || repeatsId) return row.id
  let id = row.id
  while (list.some((other) => other.id === id)) id += 1
  return id
}

interface Counts {
  code: number
  created?: number
  updated?: number
  skipped?: number
  deleted?: number
  missing?: number
  rejected?: Record<number, number>
}

/** Imports a list into a model, and returns what the summary of the import says. */
function importIntoModel(plants: Plant[], list: readonly Row[], month: Month): Counts {
  const rows = toRecords(list, month.form)
  if (month.policy === 'sync' && rows.length === 0) return { code: 2 }
  const matching = matchRows(rows, plants, month)
  const { missing } = matching
  const outcomes = importRows(plants, rows, matching, month)
  const count = (outcome: string) => outcomes.filter((other) => other === outcome).length
  const { 409: conflicts, 422: invalid } = { 409: count('409'), 422: count('422') }
  const isRejected = conflicts + invalid > 0
  const deletes = month.policy === 'sync' && !isRejected
  for (const plant of deletes ? missing : []) plants.splice(plants.indexOf(plant), 1)
  plants.sort((one, other) => one.id - other.id)
  const counts = {
    created: count('created'),
    updated: count('updated'),
    skipped: count('skipped'),
    deleted: deletes ? missing.length : 0,
    missing: month.policy === 'sync' && isRejected ? missing.length : 0,
  }
  const rejected = leaveOutZeros({ 409: conflicts, 422: invalid })
  return {
    code: isRejected ? 6 : 0,
    ...leaveOutZeros(counts),
    ...(isRejected && { rejected }),
  }
}

function leaveOutZeros(counts: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0))
}

function importRows(plants: Plant[], rows: readonly Row[], matching: Matching, month: Month) {
  const ids = [...plants, ...rows].map(({ id }) => Number(id) || 0)
  let lastId = Math.max(0, ...ids)
  return rows.map((row, index) => {
    const { id, name, tag } = row
    const rejection = explainRejection(row, rows.slice(0, index), month)
    if (rejection !== undefined) return rejection
    const plant = id === undefined ? matching.plantOf.get(row) : plants.find((one) => one.id === id)
    if (plant) return applyPolicy(plant, row, matching, month)
    if (id === undefined) lastId += 1
    plants.push({ id: Number(id ?? lastId), name: String(name), tag })
    return 'created'
  })
}

/** Returns the `error` of a row that is rejected, whatever the store has. */
function explainRejection({ id, name, tag }: Row, earlierRows: readonly Row[], month: Month) {
  if (id === 'x' || name === undefined || (id === undefined && !month.byName)) return '422'
  const first = earlierRows.find((row) => row.id === id && row.name !== undefined)
  const isRepeated = month.policy === 'sync' && id !== undefined && first !== undefined
  return isRepeated && (first.name !== name || first.tag !== tag) ? '409' : undefined
}

interface Matching {
  plantOf: Map<Row, Plant>
  equalRows: Set<Row>
  missing: Plant[]
  hasTags: boolean
}

/** Changes a plant of the model as `--if-exists` says, and returns the outcome. */
function applyPolicy(plant: Plant, row: Row, { equalRows, hasTags }: Matching, month: Month) {
  const { id, name, tag } = row
  const { policy } = month
  const isEqual = equalRows.has(row) || (plant.name === name && plant.tag === tag)
  if (policy === 'skip' || equalRows.has(row)) return 'skipped'
  if (policy === 'same') return id !== undefined && isEqual ? 'skipped' : '409'
  const newTag = mayRemoveTag(row, hasTags, month) ? tag : (tag ?? plant.tag)
  const isChanged = plant.name !== name || plant.tag !== newTag
  Object.assign(plant, { name, tag: newTag })
  return isChanged ? 'updated' : 'skipped'
}

/** Whether a row without a tag removes that of its plant. */
function mayRemoveTag({ id }: Row, hasTags: boolean, { form, policy }: Month): boolean {
  if (form === 'missing keys') return policy === 'sync' && hasTags
  return form !== 'table without tags' && (id !== undefined || hasTags)
}

/** A row of a table whose cells are all empty is not a record. */
function toRecords(list: readonly Row[], form: Form): Row[] {
  const rows = list.map((row) => ({
    ...row,
    tag: form === 'table without tags' ? undefined : row.tag,
  }))
  return form.startsWith('table') ? rows.filter(({ id, name, tag }) => id ?? name ?? tag) : rows
}

const fold = (name: string | undefined) => (name === undefined ? '' : foldedNames[name])

/** Finds the plants for which rows without ids stand, and those for which no row does. */
function matchRows(records: readonly Row[], plants: readonly Plant[], month: Month): Matching {
  const keepsNames = month.policy === 'same' || month.policy === 'skip'
  const isClaimed = (plant: Plant) =>
    records.some(
      ({ id, name }) => id === plant.id && (!keepsNames || fold(name) === fold(plant.name)),
    )
  const freePlants = plants.filter((plant) => !isClaimed(plant))
  const rows = records.filter(
    ({ id, name }) => month.byName && id === undefined && name !== undefined,
  )
  const hasTags = records.some(({ tag }) => tag !== undefined)
  const plantOf = new Map<Row, Plant>()
  const isPaired = (plant: Plant) => [...plantOf.values()].includes(plant)
  const pair = (areAlike: (row: Row, plant: Plant) => boolean) => {
    for (const row of rows.filter((one) => !plantOf.has(one))) {
      const plant = freePlants.find((one) => !isPaired(one) && areAlike(row, one))
      if (plant) plantOf.set(row, plant)
    }
  }
  const haveEqualTags = (row: Row, plant: Plant) => !hasTags || row.tag === plant.tag
  pair((row, plant) => row.name === plant.name && haveEqualTags(row, plant))
  const equalRows = new Set(plantOf.keys())
  pair((row, plant) => fold(row.name) === fold(plant.name) && haveEqualTags(row, plant))
  pair((row, plant) => fold(row.name) === fold(plant.name))
  return { plantOf, equalRows, missing: freePlants.filter((plant) => !isPaired(plant)), hasTags }
}

/** Asserts what an import promises to whoever does not know the rules of matching. */
function assertPromises(
  before: Plant[],
  after: Plant[],
  list: readonly Row[],
  month: Month,
  { code }: Counts,
): void {
  const rows = toRecords(list, month.form)
  if (month.policy !== 'sync') assertNothingLost(before, after, rows, month)
  else if (code === 0) assertEqualToList(after, rows)
}

function assertEqualToList(after: readonly Plant[], rows: readonly Row[]): void {
  // A list in which no row has a tag keeps those of the plants.
  const hasTags = rows.some(({ tag }) => tag !== undefined)
  const toText = (fields: Partial<Row> | Plant | undefined) =>
    JSON.stringify([fields?.name, hasTags ? fields?.tag : ''])
  const rowOfId = new Map(rows.filter(({ id }) => id !== undefined).map((row) => [row.id, row]))
  const plantRows = [...rowOfId.values(), ...rows.filter(({ id }) => id === undefined)]
  expect(after.map(toText).sort()).toEqual(plantRows.map(toText).sort())
  for (const [id, row] of rowOfId)
    expect(toText(after.find((plant) => plant.id === id))).toBe(toText(row))
}

function assertNothingLost(before: Plant[], after: Plant[], rows: readonly Row[], month: Month) {
  const ids = new Set(after.map(({ id }) => id))
  expect(before.filter(({ id }) => !ids.has(id))).toEqual([])
  if (month.policy !== 'update') expect(after).toEqual(expect.arrayContaining(before))
  if (!month.byName || rows.some(({ id }) => id !== undefined)) return
  for (const name of Object.values(foldedNames)) {
    const countName = (items: readonly Partial<Row | Plant>[]) =>
      items.filter((item) => fold(item.name) === name).length
    expect(countName(after)).toBe(Math.max(countName(before), countName(rows)))
  }
}

const padding = ' '.repeat(262_144)

function formatTable(list: readonly Row[], form: Form): string {
  const hasTags = form === 'table'
  const rows = list.map(({ id = '', name = '', tag = '', endsChunk }) => {
    const cells = [String(id), `"${name}"`, ...(hasTags ? [tag] : [])].join()
    // White space around a cell does not count.
    return `${endsChunk ? padding : ''}${cells}\n`
  })
  return `id,name${hasTags ? ',tag' : ''}\n${rows.join('')}`
}

function formatLines(list: readonly Row[], form: Form): string {
  const lines = list.map(({ id, name = null, tag, endsChunk }) => {
    const noValue = form === 'null' ? null : undefined
    return `${JSON.stringify({ id: id ?? noValue, name, tag: tag ?? noValue })}${endsChunk ? padding : ''}\n`
  })
  return lines.join('')
}

function formatPlants(plants: readonly Plant[]): string {
  return plants.map(({ id, name, tag }) => `${JSON.stringify({ id, name, tag })}\n`).join('')
}
