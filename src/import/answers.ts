import type { InputOptions } from '../formats/chunk.js'

/** The options that are answers of a person in the dialogue. */
export type ImportAnswers = Partial<
  Pick<InputOptions, 'encoding' | 'sheet' | 'columns' | 'map' | 'byName'>
>

/**
 * Adds the answers of a person to the options of the command line. The dialogue asks only for
 * options that are missing, so no answer replaces an option.
 */
export function applyAnswers<Plan extends InputOptions>(plan: Plan, answers: ImportAnswers): Plan {
  return { ...plan, ...answers, map: { ...plan.map, ...answers.map } }
}
