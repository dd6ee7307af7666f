import type { InputOptions } from '../formats/chunk.js'
import type { ImportAnswers } from './parse-checkpoint.js'

/**
 * Adds what a person has answered to the options of the command line. The dialogue asks only for
 * what no option says, so no answer replaces an option.
 */
export function applyAnswers<Plan extends InputOptions>(plan: Plan, answers: ImportAnswers): Plan {
  return { ...plan, ...answers, map: { ...plan.map, ...answers.map } }
}
