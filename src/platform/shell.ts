import { isWindows } from '../errors.js'

/**
 * Quotes a word of a command that people copy: for sh, bash and zsh, or for PowerShell and cmd on
 * Windows.
 */
export function quoteWord(text: string, system = { isWindows }): string {
  if (system.isWindows) return /^[\w./:\\+=-]+$/.test(text) ? text : `"${text}"`
  return /^(?!=)[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

/** Writes an option with its value, such as ` --store ./my.db`, or nothing without a value. */
export function formatOption(name: string, value: string | undefined): string {
  if (value === undefined) return ''
  return ` --${name}${value.startsWith('-') ? '=' : ' '}${quoteWord(value)}`
}
