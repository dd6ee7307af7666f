import { isWindows } from '../../errors.js'
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
  const options = Object.entries(toOptions(answers)).flatMap(([flag, value]) =>
    value === undefined ? [] : [flag, value],
  )
  if (answers.byName) options.push('--by-name')
  if (answers.sync) options.push('--sync')
  const end = argv.indexOf('--')
  const argvBefore = end === -1 ? argv : argv.slice(0, end)
  const argvAfter = end === -1 ? [] : argv.slice(end)
  const line = [...argvBefore, ...options, ...argvAfter]
  return ['plants', ...line.map((argument) => quoteForShell(argument, system))].join(' ')
}

function toOptions(answers: ImportAnswers): Record<string, string | undefined> {
  const { encoding, sheet, columns, map, ifExists, sync } = answers
  const pairs = Object.entries(map ?? {}).flatMap(([field, columns]) =>
    columns.length === 0 ? `${field}=` : columns.map((column) => `${field}=${column}`),
  )
  return {
    '--encoding': encoding,
    '--sheet': sheet,
    '--columns': columns?.join(','),
    // The only answer about the columns may be that there are no ids.
    '--map': pairs.length === 0 ? undefined : pairs.join(','),
    '--if-exists': sync ? undefined : ifExists,
  }
}

/**
 * Quotes an argument for PowerShell on Windows, and elsewhere so that bash, zsh and fish read the
 * same argument. Within single quotes, fish reads `\\` as one backslash, and the other shells read
 * it as two, so backslashes are written outside of the quotes. PowerShell takes typographic quotes
 * for single quotes.
 */
export function quoteForShell(argument: string, system = { isWindows }): string {
  if (/^(?![=@])[\w./:@+=-]+$/.test(argument)) return argument
  if (system.isWindows) return `'${argument.replace(/['‘’‚‛]/g, '$&$&')}'`
  return `'${argument.replaceAll(/['\\]/g, "'\\$&'")}'`
}
