import { type ImportPlan, openInput } from '../../import/inputs.js'
import { PlantNames } from '../../import/names.js'
import { findNextId } from '../../stores/next-id.js'
import type { Store } from '../../stores/store.js'
import type { CommandContext } from '../context.js'

/** The names of a list without ids, by which the dialogue proposes a way to an id. */
interface NameCounts {
  /** How many different names the list has. */
  nameCount: number
  /** How many of them the store has. */
  storedCount: number
  /** Whether several records have the same name. */
  areRepeated: boolean
}

/** @param plan an import that finds the names, and reads no ids */
export async function countNames(plan: ImportPlan, context: CommandContext): Promise<NameCounts> {
  const { io } = context
  const names = new Set<string>()
  let recordCount = 0
  for (const input of plan.inputs) {
    const reader = await openInput(input, plan, io)
    try {
      for await (const chunk of reader.chunks)
        for (const name of chunk.names) {
          if (typeof name !== 'string') continue
          names.add(name)
          recordCount += 1
        }
    } finally {
      reader.close()
    }
  }
  return readStore(context, async (store) => {
    const storedNames = await PlantNames.read(store, undefined, io.getStopSignal())
    const storedCount = [...names].filter((name) => storedNames.find(name) !== undefined).length
    return { nameCount: names.size, storedCount, areRepeated: names.size < recordCount }
  })
}

/** Returns an id above all ids of the store. */
export function findNextIdOfStore(context: CommandContext): Promise<bigint> {
  return readStore(context, findNextId)
}

/** @param read gets undefined if the store does not exist yet */
async function readStore<T>(
  context: CommandContext,
  read: (store: Store | undefined) => Promise<T>,
): Promise<T> {
  const store = await (await context.createOpener()).openExisting()
  try {
    return await read(store)
  } finally {
    await store?.close()
  }
}
