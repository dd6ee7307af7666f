import { assertDefined, isWindows } from '../../errors.js'
import { listOptions } from '../../fields/column-answers.js'
import { ColumnsError, type Sample } from '../../fields/missing-fields.js'
import type { InputOptions } from '../../fields/open.js'
import { type ImportPlan, openInput } from '../../import/inputs.js'
import type { Io } from '../../platform/io.js'
import { quoteForShell } from '../../platform/shell.js'
import { findEndOfOptions } from '../command-names.js'

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

/**
 * Builds the command that runs the same import without questions. It is the command line that was
 * typed, with an option for each answer.
 *
 * @param argv the arguments after the name of the program
 */
export function buildCommandLine(
  argv: readonly string[],
  answers: ImportAnswers,
  system = { isWindows },
): string {
  const { encoding, ifExists, sync } = answers
  const options = listOptions(answers)
  if (encoding !== undefined) options.unshift('--encoding', encoding)
  if (sync) options.push('--sync')
  else if (ifExists) options.push('--if-exists', ifExists)
  const line = argv.toSpliced(findEndOfOptions(argv), 0, ...options)
  return ['plants', ...line.map((argument) => quoteForShell(argument, system))].join(' ')
}
