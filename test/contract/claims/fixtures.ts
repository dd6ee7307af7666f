import { expect } from 'vitest'
import { measureFieldLength, type NewPlant, type PlantPatch } from '../../../src/plant/plant.js'
import type { Change, Create, Outcome, Update } from '../../../src/stores/change.js'
import type { ReadQuery } from '../../../src/stores/query.js'
import { compare, matches } from '../../../src/stores/select.js'
import type { Store } from '../../../src/stores/store.js'
import { gather } from '../../helpers/sandbox/store.js'

/** A store under test, and what shows that a plant is stored and not only remembered. */
export interface Subject<S extends Store> {
  store: S
  /** reads a plant through a store that is opened afresh */
  readBack(id: bigint): Promise<NewPlant | undefined>
}

export type OpenEmpty<S extends Store> = () => Promise<Subject<S>>

export const fern: NewPlant = { id: 1n, name: 'Fern', tag: 'shade' }
export const moss: NewPlant = { id: 2n, name: 'Moss' }
export const ivy: NewPlant = { id: 3n, name: 'Ivy', tag: '' }
export const wetMoss: NewPlant = { ...moss, tag: 'wet' }
/** Another plant with the id of `fern`. */
export const otherFern: NewPlant = { id: 1n, name: 'Moss' }

/** Strings with characters that SQL, JSON, COPY or CSV could take for syntax. */
export const difficultStrings = [
  '',
  ' Fern ',
  'not composed: e\u0301 \u00e9',
  '蕨 🌿 \u{10ffff} \uffff \ufffd',
  '\u0001\b\f\v\u001b[31m\u007f\u009b\u2028',
  `"'\\%_?;--,`,
  '\t\r\n',
  '\\N',
  '\\.',
]

export function buildFern(id: bigint): NewPlant {
  return { id, name: 'Fern' }
}

/** The plants 0, 1, 2 and so on, named by their ids unless `buildFields` says something else. */
export function buildPlants(
  count: number,
  buildFields: (index: number) => Partial<NewPlant> = () => ({}),
): NewPlant[] {
  return Array.from({ length: count }, (_, index) => ({
    id: BigInt(index),
    name: `Fern ${index}`,
    ...buildFields(index),
  }))
}

export function compareIds(left: NewPlant, right: NewPlant): number {
  return left.id < right.id ? -1 : 1
}

/** What the fields of plants measure together, in the unit by which a store limits a page. */
export function measurePage(plants: NewPlant[]): number {
  return plants.reduce((sum, plant) => sum + measureFieldLength(plant), 0)
}

export async function readPages(store: Store, query: ReadQuery): Promise<NewPlant[][]> {
  const pages: NewPlant[][] = []
  for await (const page of store.read(query)) pages.push(page)
  return pages
}

/** Compares what a store reads and counts with the model of all stores. */
export async function expectSelection(
  store: Store,
  storedPlants: NewPlant[],
  query: ReadQuery,
): Promise<void> {
  const { tag, search, limit } = query
  const select = (part: ReadQuery) =>
    storedPlants.filter((plant) => matches(plant, part)).toSorted(compare(part))
  const selection = {
    query,
    plants: await gather(store.read(query)),
    count: await store.count({ tag, search }),
  }
  expect(selection).toStrictEqual({
    query,
    plants: select(query).slice(0, limit),
    count: BigInt(select({ tag, search }).length),
  })
}

export async function readIds(store: Store, query?: ReadQuery): Promise<bigint[]> {
  return (await gather(store.read(query))).map(({ id }) => id)
}

export function toCreate(plant: NewPlant, options: Omit<Create, 'type' | 'plant'> = {}): Change {
  return { type: 'create', plant, ...options }
}

export function toUpdate(patch: PlantPatch, options: Omit<Update, 'type' | 'patch'> = {}): Change {
  return { type: 'update', patch, ...options }
}

export function toDelete(id: bigint): Change {
  return { type: 'delete', id }
}

/** A service does not report what a plant was before. */
export function buildUpdatedOutcome(store: Store, plant: NewPlant, before: NewPlant): Outcome {
  return store.transaction ? { type: 'updated', plant, before } : { type: 'updated', plant }
}

/** The type of an outcome, or the `error` of a rejected one, which is an HTTP status. */
export type Status = Outcome['type'] | number

export function readStatus(outcome: Outcome): Status {
  return outcome.type === 'rejected' ? outcome.problem.error : outcome.type
}

export async function writeForStatuses(store: Store, ...changes: Change[]): Promise<Status[]> {
  return (await store.write(changes)).map(readStatus)
}

type Write = (store: Store, changes: Change[]) => Promise<Outcome[]>

/** A write of several changes takes other ways than writes of one, and must come to the same. */
export const writeModes: { mode: string; write: Write }[] = [
  { mode: 'in one write', write: (store, changes) => store.write(changes) },
  {
    mode: 'in a write for each change',
    write: async (store, changes) => {
      const outcomes: Outcome[] = []
      for (const change of changes) outcomes.push(...(await store.write([change])))
      return outcomes
    },
  },
]

export interface OutcomeRow {
  change: Change
  /** All of the outcome, or only its status. */
  outcome: Outcome | Status
}

/** Writes the changes of a table and compares their outcomes. A failure shows the change, too. */
export async function expectOutcomes(
  table: OutcomeRow[],
  write: (changes: Change[]) => Promise<Outcome[]>,
): Promise<void> {
  const outcomes = await write(table.map(({ change }) => change))
  const rows = outcomes.map((outcome, index) => {
    const row = table[index]
    const isWhole = typeof row?.outcome === 'object'
    return { change: row?.change, outcome: isWhole ? outcome : readStatus(outcome) }
  })
  expect(rows).toStrictEqual(table)
}
