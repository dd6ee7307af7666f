import type { ImportPlan } from '../import/inputs.js'

/**
 * Describes how to import a file once more: `run the command again with --match name`.
 *
 * @param options the options that the command then needs, each with a space before it
 */
export function describeRepetition(plan: ImportPlan, options = ''): string {
  // The other files of the same command may be unchanged, or may not fit the options.
  const action = plan.inputs.length === 1 ? 'run the command again' : 'import only this file'
  // If records got generated ids, only their names show that they are stored.
  const needsMatch = plan.idFrom !== undefined && plan.match === undefined && !plan.dryRun
  const allOptions = needsMatch ? `${options} --match name` : options
  return allOptions === '' ? action : `${action} with${allOptions}`
}
