import { assertDefined } from '../errors.js'
import type { Sample } from '../formats/chunk.js'
import { ColumnsError } from '../formats/sample.js'
import type { Io } from '../platform/io.js'
import { type ImportPlan, openInput } from './inputs.js'

/**
 * Reads the sample of the first file, about which the dialogue of an import asks.
 *
 * @returns also why the file cannot be imported, if only its columns are the reason
 * @throws {PlantsError} as an import does for any other reason
 */
export async function sampleInput(
  plan: ImportPlan,
  io: Io,
): Promise<{ sample: Sample; failure?: ColumnsError }> {
  try {
    const reader = await openInput(assertDefined(plan.inputs[0]), plan, io)
    reader.close()
    return { sample: reader.sample }
  } catch (error) {
    if (!(error instanceof ColumnsError)) throw error
    return { sample: error.sample, failure: error }
  }
}
