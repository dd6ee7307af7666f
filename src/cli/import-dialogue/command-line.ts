import { isWindows } from '../../errors.js'
import type { ImportAnswers } from '../../import/parse-checkpoint.js'

/**
 * Builds the command that does without questions what was answered: the words that were typed, and
 * an option for each answer.
 *
 * @param argv behind the name of the program
 */
export function buildCommandLine(
  argv: readonly string[],
  answers: ImportAnswers,
  system = { isWindows },
): string {
  const options = Object.entries(toOptions(answers)).flatMap(([flag, value]) =>
    value === undefined ? [] : [flag, value],
  )
  const end = argv.indexOf('--')
  const before = end === -1 ? argv : argv.slice(0, end)
  const after = end === -1 ? [] : argv.slice(end)
  const line = [...before, ...options, ...after]
  return ['plants', ...line.map((word) => quoteForShell(word, system))].join(' ')
}

/**
 * Replaces the value of `--store`, wherever it stands: a line that is copied is kept by the shell,
 * and seen by others, so it has no password.
 */
export function replaceStore(argv: readonly string[], typed: string, safe: string): string[] {
  return argv.map((word) => {
    const flag = word.endsWith(typed) ? word.slice(0, -typed.length) : undefined
    return flag === '' || flag === '--store=' ? flag + safe : word
  })
}

function toOptions(answers: ImportAnswers): Record<string, string | undefined> {
  const { encoding, sheet, delimiter, columns, map, idFrom, match } = answers
  const pairs = map && Object.entries(map).map(([field, column]) => `${field}=${column}`)
  return {
    '--encoding': encoding,
    '--sheet': sheet,
    '--delimiter': delimiter === '\t' ? 'tab' : delimiter,
    '--columns': columns?.join(','),
    '--map': pairs?.join(','),
    '--match': match,
    '--id-from': idFrom,
  }
}

/**
 * Quotes a word for bash, zsh and fish alike, or for PowerShell on Windows. Within single quotes,
 * fish reads `\\` as one backslash, and the others as two: so backslashes stand outside of them.
 * PowerShell takes typographic quotes for single ones, too.
 */
export function quoteForShell(word: string, system = { isWindows }): string {
  if (/^(?![=@])[\w./:@+=-]+$/.test(word)) return word
  if (system.isWindows) return `'${word.replace(/['‘’‚‛]/g, '$&$&')}'`
  return `'${word.replaceAll(/['\\]/g, "'\\$&'")}'`
}
