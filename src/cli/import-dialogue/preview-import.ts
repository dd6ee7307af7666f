import { assertDefined } from '../../errors.js'
import { describeRejectedRecord } from '../../import/format-rejects.js'
import type { ImportInput } from '../../import/input-file.js'
import { examineInputs, type ImportPlan, openInput } from '../../import/inputs.js'
import { Mapper, type MapperState } from '../../import/map-record.js'
import { PlantNames } from '../../import/names.js'
import type { Io } from '../../platform/io.js'
import { describeUnreadCells } from '../describe-unread-cells.js'

interface ImportPreview {
  /** How many records are valid. The store may reject one of them, such as one whose id exists. */
  acceptedCount: number
  rejectedCount: number
  /** The first rejected records: their file, line and reason. */
  reasons: readonly string[]
  /** Which rows and cells of the files are not read. */
  warnings: readonly string[]
}

/**
 * Reads all records as an import does, and stores nothing.
 *
 * @throws {PlantsError} `input` if a further file does not fit the answers. The import would stop
 * at that file, when the files before it are stored.
 */
export async function previewImport(plan: ImportPlan, io: Io): Promise<ImportPreview> {
  const reasons: string[] = []
  const warnings: string[] = []
  const counts = { acceptedCount: 0, rejectedCount: 0 }
  const names = plan.byName && (await readNames(plan, io))
  const state: MapperState = { recordCount: 0, names }
  for (const input of plan.inputs)
    for await (const reason of readReasons(input, plan, { state, warnings }, io)) {
      counts[reason === undefined ? 'acceptedCount' : 'rejectedCount'] += 1
      if (reason !== undefined && reasons.length < maxReasons) reasons.push(reason)
    }
  return { ...counts, reasons, warnings }
}

/**
 * Only counts are shown, so it does not matter which ids are generated, but they must be above all
 * ids in the files, as in the import.
 */
async function readNames(plan: ImportPlan, io: Io): Promise<PlantNames> {
  const firstReader = await openInput(assertDefined(plan.inputs[0]), plan, io)
  try {
    return await PlantNames.read(undefined, await examineInputs(plan, firstReader, io))
  } finally {
    firstReader.close()
  }
}

/**
 * Yields for each record why it will be rejected, or undefined if it is valid.
 *
 * @param preview the state of the mapper, and the list to which the warnings are added
 */
async function* readReasons(
  input: ImportInput,
  plan: ImportPlan,
  { state, warnings }: { state: MapperState; warnings: string[] },
  io: Io,
): AsyncGenerator<string | undefined> {
  const reader = await openInput(input, plan, io)
  try {
    const mapper = new Mapper(plan, reader, state)
    for await (const chunk of reader.chunks)
      for (const [index, change] of mapper.map(chunk).entries())
        yield 'error' in change
          ? describeRejectedRecord(input.name, assertDefined(chunk.lines[index]), change.message)
          : undefined
    // Nothing is stored yet, as in a dry run.
    warnings.push(...describeUnreadCells(reader, input.name, { ...plan, dryRun: true }))
  } finally {
    reader.close()
  }
}

const maxReasons = 3
