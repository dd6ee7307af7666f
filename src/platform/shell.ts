import { isWindows } from './errors.js'

/** Quotes a word, so that people can copy a command: for sh, bash and zsh, or for PowerShell and cmd on Windows. */
export function shellWord(text: string, system: { isWindows: boolean } = { isWindows }): string {
  if (system.isWindows) return /^[\w./:\\+=-]+$/.test(text) ? text : `"${text}"`
  return /^(?!=)[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

/** Such as ` --store ./my.db`; nothing for an option that was not given. */
export function shellOption(name: string, value: string | undefined): string {
  return value === undefined
    ? ''
    : ` --${name}${value.startsWith('-') ? '=' : ' '}${shellWord(value)}`
}
