import { smallestId } from '../plant/fields.js'
import type { Io } from '../platform/io.js'
import { type ImportPlan, isInputError, openInput } from './inputs.js'
import { Mapper } from './map-record.js'

/**
 * Whether any record of the files can become a change. It stops reading at the first such record,
 * which most files begin with.
 */
export async function hasImportableRecord(plan: ImportPlan, io: Io): Promise<boolean> {
  const nextId = plan.idFrom === undefined ? undefined : smallestId
  const names = plan.match && new Map()
  for (const input of plan.inputs) {
    const reader = await openInput(input, plan, io)
    try {
      const mapper = new Mapper(plan, reader.header, { nextId, names })
      for await (const { records } of reader.chunks)
        if (records.some((raw) => !('error' in mapper.map(raw)))) return true
    } catch (error) {
      // The import will find the same error, and report the records before the error.
      if (isInputError(error)) return true
      throw error
    } finally {
      reader.close()
    }
  }
  return false
}
