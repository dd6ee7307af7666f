import { isWindows } from '../../errors.js'
import { listOptions } from '../../fields/column-answers.js'
import { quoteForShell } from '../../platform/shell.js'
import type { ImportAnswers } from './answers.js'

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
  const optionsEnd = [...argv, '--'].indexOf('--')
  const line = argv.toSpliced(optionsEnd, 0, ...options)
  return ['plants', ...line.map((argument) => quoteForShell(argument, system))].join(' ')
}
