import { assertDefined } from '../../errors.js'
import { ColumnsError, type Sample } from '../../fields/missing-fields.js'
import type { InputOptions } from '../../fields/open.js'
import { type ImportPlan, openInput } from '../../import/inputs.js'
import type { Io } from '../../platform/io.js'

/** The options that are answers of a person in the dialogue. */
export type ImportAnswers = Partial<
  Pick<ImportPlan, 'encoding' | 'sheet' | 'columns' | 'map' | 'byName' | 'ifExists' | 'sync'>
>

/**
 * Adds the answers of a person to the options of the command line. The dialogue asks only for
 * options that are missing, so no answer replaces an option.
 */
export function applyAnswers<Plan extends InputOptions>(plan: Plan, answers: ImportAnswers): Plan {
  return { ...plan, ...answers, map: { ...plan.map, ...answers.map } }
}

/**
 * Reads the sample of the first file, about which the dialogue asks.
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
