/* Opens what an import writes to: a store or a service. For a dry run, nothing stays written. */
import { createHash } from 'node:crypto'
import type { ImportPlan } from '../../../import/inputs.js'
import { toWireJson } from '../../../plant/json.js'
import { applyPatch } from '../../../plant/plant.js'
import type { Change, Outcome } from '../../../stores/change.js'
import { findKind, hasCapability } from '../../../stores/kinds.js'
import { type KeyedPlant, planChanges } from '../../../stores/plan.js'
import type { DirectStore, Store } from '../../../stores/store.js'
import { maxConcurrency } from '../../../stores/store-kind.js'
import type { CommandContext } from '../../context.js'

export interface ImportTarget {
  write: Store['write']
  /** All writes are one transaction. Only a direct store has it, for `--atomic`. */
  transaction?: DirectStore['transaction'] | undefined
  /** The store to read from; undefined if there is none yet, and for a dry run at a service. */
  store?: Pick<Store, 'read'> | undefined
  /** At most this many records are written at once; undefined for a whole chunk. */
  maxRecords?: number
  close(): Promise<void>
}

export function openTarget(plan: ImportPlan, context: CommandContext): Promise<ImportTarget> {
  const isDirect = hasCapability(context.address, 'direct')
  if (plan.dryRun) return isDirect ? openDirectDryRun(context) : openServiceDryRun(plan, context)
  return isDirect ? openDirectStore(plan, context) : openService(context)
}

/** Opens a direct store. Without `--atomic`, a missing file is created with the first change. */
async function openDirectStore(plan: ImportPlan, context: CommandContext): Promise<ImportTarget> {
  const opener = await context.createDirectOpener()
  const { direct } = findKind(context.address).capabilities
  const mayStayMissing = 'isCreatedOnOpen' in direct && !plan.atomic
  let store = mayStayMissing ? await opener.openExisting() : await opener.openOrCreate()
  return {
    store,
    async write(changes, options) {
      store ??= await opener.openOrCreate()
      return store.write(changes, options)
    },
    transaction: store?.transaction.bind(store),
    close: async () => store?.close(),
  }
}

/**
 * Each chunk of a dry run is rolled back at its end, and not all of them together, so that other
 * writers do not wait for the whole dry run.
 */
async function openDirectDryRun(context: CommandContext): Promise<ImportTarget> {
  const store = await (await context.createDirectOpener()).openExisting()
  if (!store) return createPlanningTarget(() => [])
  return {
    store,
    write: (changes, options) =>
      store.transaction((transaction) => transaction.write(changes, options), {
        shouldCommit: () => false,
      }),
    close: () => store.close(),
  }
}

async function openService(context: CommandContext): Promise<ImportTarget> {
  const store = await context.openOrCreateStore()
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

/**
 * A dry run stores nothing at a service, and reads its plants only to match records with them. A
 * record without a name can only update a plant, so a plant with its id is assumed to exist. No
 * other plant is, but for those that were matched.
 */
async function openServiceDryRun(plan: ImportPlan, context: CommandContext): Promise<ImportTarget> {
  const assume = (change: Change) => {
    if (change.type !== 'update') return []
    const { patch, expectedName } = change
    const name = expectedName ?? (patch.name == null ? '' : undefined)
    return name === undefined ? [] : [{ plant: { id: patch.id, name } }]
  }
  const target = createPlanningTarget((changes) => changes.flatMap(assume))
  if (plan.byName) {
    const store = await context.openOrCreateStore()
    return { ...target, store, close: () => store.close() }
  }
  const name = context.address.name
  await context.warn(`The dry run checks only the input, not which ids exist at ${name}`)
  return target
}

/** @param listAssumedPlants lists the plants that the store is assumed to have */
function createPlanningTarget(
  listAssumedPlants: (changes: readonly Change[]) => readonly KeyedPlant[],
): ImportTarget {
  return {
    async write(changes): Promise<Outcome[]> {
      return planChanges(listAssumedPlants(changes), changes).outcomes
    },
    close: async () => undefined,
  }
}
