import type { ImportPlan } from '../import/inputs.js'

/**
 * Describes how to import a file once more: `run the command again with --sheet Nord`.
 *
 * @param options the options that the command then needs, each with a space before it
 */
export function describeRepetition(plan: ImportPlan, options = ''): string {
  // The other files of the same command may be unchanged, or may not fit the options.
  const action = plan.inputs.length === 1 ? 'run the command again' : 'import only this file'
  return options === '' ? action : `${action} with${options}`
}
