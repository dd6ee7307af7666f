import { randomUUID } from 'node:crypto'
import type { PlantPatch } from '../../src/plant/plant.js'
import { PlantRows } from '../../src/plant/rows.js'
import { Outcome } from '../../src/stores/common/conflict.js'
import type { Batch, BulkStore, Checkpoint, CreateManyOptions } from '../../src/stores/common/store.js'

export type BulkOptions = Partial<Omit<CreateManyOptions, 'checkpoint'>> & {
  /** the id of a checkpoint that holds the outcomes */
  checkpoint?: string
}

/** Rows that nobody has looked at. */
export function batchOf(plants: PlantPatch[]): Batch {
  const rows = new PlantRows(new Uint8Array(), plants.length)
  for (const plant of plants) rows.add(plant)
  return { rows, order: undefined, outcomes: new Uint8Array(plants.length), rejections: new Map() }
}

/** Creates a batch, and gives the name of the outcome of each row. */
export async function createAll(
  store: BulkStore,
  batch: Batch,
  { checkpoint, ...options }: BulkOptions = {},
): Promise<string[]> {
  const keep = (): Checkpoint => ({ id: checkpoint ?? '', state: batch.outcomes.join('') })
  await store.createMany(batch, {
    ...{ ifExists: 'error', stopsAtReject: false, keyOf: () => randomUUID(), onProgress: () => undefined },
    ...{ stop: new AbortController().signal, checkpoint: checkpoint === undefined ? undefined : keep },
    ...options,
  })
  return outcomesOf(batch)
}

export function outcomesOf({ outcomes }: Batch): string[] {
  const names = Object.keys(Outcome)
  return [...outcomes].map((outcome) => names[outcome] ?? '')
}
