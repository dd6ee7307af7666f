import { type ImportPlan, openInput } from '../../import/inputs.js'
import { PlantNames } from '../../import/names.js'
import type { CommandContext } from '../context.js'

/** The names of a list without ids, by which the dialogue proposes a way to an id. */
interface NameCounts {
  /** How many different names the list has. */
  nameCount: number
  /** How many of them the store has. */
  storedCount: number
}

/** @param plan an import that finds the names, and reads no ids */
export async function countNames(plan: ImportPlan, context: CommandContext): Promise<NameCounts> {
  const { io } = context
  const names = new Set<string>()
  for (const input of plan.inputs) {
    const reader = await openInput(input, plan, io)
    try {
      for await (const chunk of reader.readChunks())
        for (const name of chunk.names) if (typeof name === 'string') names.add(name)
    } finally {
      reader.close()
    }
  }
  const store = await (await context.createOpener()).openExisting()
  try {
    const storedNames = await PlantNames.read(store, undefined, io.getStopSignal())
    const storedCount = [...names].filter((name) => storedNames.find(name) !== undefined).length
    return { nameCount: names.size, storedCount }
  } finally {
    await store?.close()
  }
}
