/* Opens what an import writes to: a store or a service. For a dry run, nothing stays written. */
import { createHash } from 'node:crypto'
import { assertDefined } from '../../../errors.js'
import type { ImportPlan } from '../../../import/inputs.js'
import { smallestId } from '../../../plant/fields.js'
import { toWireJson } from '../../../plant/json.js'
import { applyPatch, type StoredPlant } from '../../../plant/plant.js'
import { type Change, getTargetId, isReadRejected, type Outcome } from '../../../stores/change.js'
import { findKind } from '../../../stores/kinds.js'
import { type KeyedPlant, planChanges } from '../../../stores/plan.js'
import type { DirectStore, Store } from '../../../stores/store.js'
import { maxConcurrency } from '../../../stores/store-kind.js'
import type { CommandContext } from '../../context.js'
import { openDirect, openToWrite } from '../../open-store.js'
import { splitIntoPages } from '../../outcomes.js'

export interface ImportTarget {
  write: Store['write']
  /** All writes are one transaction. Only a direct store has it, for `--atomic`. */
  transaction?: DirectStore['transaction'] | undefined
  /** The store to read from; undefined if there is none yet. */
  store?: Pick<Store, 'read' | 'count' | 'check'> | undefined
  /** Whether it is a direct store, which counts its plants soon. */
  isDirect?: true
  /** At most this many records are written at once; undefined for a whole chunk. */
  maxRecords?: number
  close(): Promise<void>
}

export async function openTarget(plan: ImportPlan, context: CommandContext): Promise<ImportTarget> {
  const kind = findKind(context.address)
  if (!kind.isDirect) return plan.dryRun ? openServiceDryRun(context) : openService(context)
  // A missing file is created with the first change, unless there is one transaction.
  const purpose = kind.isCreatedOnOpen && !plan.atomic ? 'read' : 'write'
  const store = await openDirect(context, purpose, { needsPrimary: true })
  return plan.dryRun ? createDryRun(store) : createDirectTarget(store, context)
}

function createDirectTarget(
  existingStore: DirectStore | undefined,
  context: CommandContext,
): ImportTarget {
  let store = existingStore
  return {
    store,
    async write(changes, options) {
      store ??= assertDefined(await openDirect(context, 'write'))
      return store.write(changes, options)
    },
    isDirect: true,
    transaction: store?.transaction.bind(store),
    close: async () => store?.close(),
  }
}

/**
 * Each chunk of a dry run is rolled back at its end, and not all of them together, so that other
 * writers do not wait for the whole dry run.
 */
function createDryRun(store: DirectStore | undefined): ImportTarget {
  return {
    store,
    isDirect: true,
    write: async (changes, options) =>
      store
        ? store.transaction((transaction) => transaction.write(changes, options), {
            shouldCommit: () => false,
          })
        : planChanges([], changes).outcomes,
    close: async () => store?.close(),
  }
}

async function openService(context: CommandContext): Promise<ImportTarget> {
  const store = await openToWrite(context)
  return {
    store,
    // If the service ends the import, no record behind these may be stored.
    maxRecords: maxConcurrency,
    write: (changes, options) => store.write(changes.map(addKey), options),
    close: () => store.close(),
  }
}

/** Adds an idempotency key that is the same whenever this plant is created. */
function addKey(change: Change): Change {
  if (change.type === 'delete') return change
  const plant = change.type === 'create' ? change.plant : applyPatch(change.patch)
  if (plant === undefined) return change
  return { ...change, key: createHash('sha256').update(toWireJson(plant)).digest('base64url') }
}

/** A dry run stores nothing at a service, and reads the plants that the changes name. */
async function openServiceDryRun(context: CommandContext): Promise<ImportTarget> {
  const store = await openToWrite(context)
  let isReadable = true
  const readPlants = async (ids: readonly bigint[]) => {
    if (!isReadable) return undefined
    try {
      return await findPlants(store, ids)
    } catch (error) {
      if (!isReadRejected(error)) throw error
      isReadable = false
      const { address, reporter } = context
      await reporter.warn(
        `The dry run checks only the input, not which ids exist at ${address.name}`,
      )
      return undefined
    }
  }
  return {
    store,
    async write(changes) {
      const plants = await readPlants(changes.map(getTargetId))
      return plants ? planChanges(plants, changes).outcomes : assumeOutcomes(changes)
    },
    close: () => store.close(),
  }
}

/**
 * Finds the plants that have the ids, of which there is at least one. A page has a thousand plants,
 * so the ids are looked for in a list of at most twice as many plants, from the first id on. Only
 * those behind this list are requested one by one.
 */
async function findPlants(store: Store, ids: readonly bigint[]): Promise<KeyedPlant[]> {
  const wantedIds = new Set(ids)
  const [firstId = smallestId] = BigInt64Array.from(wantedIds).sort()
  const after = firstId === smallestId ? undefined : firstId - 1n
  const pages: StoredPlant[][] = []
  let remainingIds = [...wantedIds]
  let remainingRows = 2 * wantedIds.size
  for await (const page of store.read({ after, limit: remainingRows, inPages: true })) {
    pages.push(page.filter(({ id }) => wantedIds.has(id)))
    const { id: lastId } = assertDefined(page.at(-1))
    remainingIds = remainingIds.filter((id) => id > lastId)
    remainingRows -= page.length
    if (remainingIds.length === 0) break
  }
  const hasListEnded = remainingRows > 0
  for (const idsOfPage of hasListEnded ? [] : splitIntoPages(remainingIds))
    pages.push([...(await store.get(idsOfPage)).values()])
  return pages.flat().map((plant) => ({ plant }))
}

/**
 * Where nothing can be read, a record without a name, which can only update a plant, is assumed to
 * find one, and any other is assumed to be new.
 */
function assumeOutcomes(changes: readonly Change[]): Outcome[] {
  const assumedPlants = changes.flatMap((change) =>
    change.type === 'update' && change.patch.name === undefined
      ? [{ plant: { id: change.patch.id, name: '' } }]
      : [],
  )
  return planChanges(assumedPlants, changes).outcomes.map((outcome) =>
    outcome.type === 'updated' ? { type: 'updated', plant: outcome.plant } : outcome,
  )
}
