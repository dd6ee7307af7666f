import { isWindows } from '../errors.js'

/**
 * Quotes a word of a command that people copy: for sh, bash and zsh, or for PowerShell and cmd on
 * Windows.
 */
export function quoteWord(text: string, system = { isWindows }): string {
  if (system.isWindows) return /^[\w./:\\+=-]+$/.test(text) ? text : `"${text}"`
  return /^(?!=)[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
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

/** Writes an option with its value, such as ` --store ./my.db`, or nothing without a value. */
export function formatOption(name: string, value: string | undefined): string {
  if (value === undefined) return ''
  return ` --${name}${value.startsWith('-') ? '=' : ' '}${quoteWord(value)}`
}
