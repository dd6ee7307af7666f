import { type ImportPlan, openInput } from '../../import/inputs.js'
import { Mapper } from '../../import/map-record.js'
import { PlantNames } from '../../import/names.js'
import type { CommandContext } from '../command-context.js'

/** The names of a list without ids, by which the dialogue proposes a way to an id. */
export interface NameCounts {
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
  // Ids are counted only so that each record becomes a plant with its name.
  const countingPlan: ImportPlan = { ...plan, idFrom: 1n, ifExists: 'same' }
  for (const input of plan.inputs) {
    const reader = await openInput(input, countingPlan, io)
    try {
      const mapper = new Mapper(countingPlan, reader, { recordCount: 0 })
      for await (const { records } of reader.chunks)
        for (const change of records.map((record) => mapper.map(record))) {
          if ('error' in change || change.type !== 'create') continue
          names.add(change.plant.name)
          recordCount += 1
        }
    } finally {
      reader.close()
    }
  }
  const store = await (await context.createOpener()).openExisting()
  try {
    const storedNames = await PlantNames.read(store, undefined, io.getStopSignal())
    const storedCount = [...names].filter((name) => storedNames.find(name) !== undefined).length
    return { nameCount: names.size, storedCount, areRepeated: names.size < recordCount }
  } finally {
    await store?.close()
  }
}
