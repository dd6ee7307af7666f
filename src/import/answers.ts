import type { InputOptions } from '../formats/chunk.js'
import type { ImportAnswers } from './parse-checkpoint.js'

/** Returns the plan with the options that were answered. Those that were typed come first. */
export function applyAnswers<Plan extends InputOptions>(plan: Plan, answers: ImportAnswers): Plan {
  return { ...plan, ...answers, map: { ...plan.map, ...answers.map } }
}
