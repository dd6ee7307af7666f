import { assertDefined } from '../../errors.js'
import { describeRejectedRecord } from '../../import/format-rejects.js'
import type { ImportInput } from '../../import/input-file.js'
import { type ImportPlan, openInput } from '../../import/inputs.js'
import { Mapper, type MapperState } from '../../import/map-record.js'
import { smallestId } from '../../plant/fields.js'
import type { Io } from '../../platform/io.js'

interface ImportPreview {
  /** How many records are valid. The store may reject one of them, such as one whose id exists. */
  acceptedCount: number
  rejectedCount: number
  /** The first rejected records: their file, line and reason. */
  reasons: readonly string[]
}

/**
 * Reads all records as an import does, and stores nothing.
 *
 * @throws {PlantsError} `input` if a further file does not fit the answers. The import would stop
 * at that file, when the files before it are stored.
 */
export async function previewImport(plan: ImportPlan, io: Io): Promise<ImportPreview> {
  const reasons: string[] = []
  const counts = { acceptedCount: 0, rejectedCount: 0 }
  // Only the counts are shown, so it does not matter which ids are generated.
  const state: MapperState = plan.idFrom === undefined ? {} : { nextId: smallestId }
  for (const input of plan.inputs)
    for await (const reason of readReasons(input, plan, state, io)) {
      counts[reason === undefined ? 'acceptedCount' : 'rejectedCount'] += 1
      if (reason !== undefined && reasons.length < maxReasons) reasons.push(reason)
    }
  return { ...counts, reasons }
}

/** Yields for each record why it will be rejected, or undefined if it is valid. */
async function* readReasons(
  input: ImportInput,
  plan: ImportPlan,
  state: MapperState,
  io: Io,
): AsyncGenerator<string | undefined> {
  const reader = await openInput(input, plan, io)
  try {
    const mapper = new Mapper(plan, reader.header, state)
    for await (const { records, lines } of reader.chunks)
      for (const [index, raw] of records.entries()) {
        const change = mapper.map(raw)
        yield 'error' in change
          ? describeRejectedRecord(input.name, assertDefined(lines[index]), change.message)
          : undefined
      }
  } finally {
    reader.close()
  }
}

const maxReasons = 3
